"""Saves a fitted model as a folder and loads it. Parts of a composite are complete models under `parts/0`, `parts/1`,
…; after loading they share the catalogue of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from clickbridge.errors import ArtifactError, ClickbridgeError, SettingError
from clickbridge.graph.dense import Encoder
from clickbridge.io.artifact import Artifact, ArtifactWriter, PartWriter, open_artifact
from clickbridge.io.values import expect, read_value, write_value
from clickbridge.models.catalogue import Catalogue, KnownQueries
from clickbridge.models.display import Display
from clickbridge.models.fitted import Fitted
from clickbridge.models.model import Model
from clickbridge.models.registry import model_class, model_home

KIND = "model"
HEADER = ("model", "settings", "report", "applied", "parts")
"""Fields that are not values of the artifact's data."""


def save(fitted: Fitted, path: str | Path) -> None:
    with ArtifactWriter(path, KIND) as writer:
        header = _write(fitted, writer)
        writer.commit(**header)


def _write(fitted: Fitted, writer: PartWriter) -> dict[str, Any]:
    names = [f.name for f in fields(fitted) if f.init and f.name not in HEADER and f.metadata.get("stored", True)]
    values = {name: write_value(writer, name, getattr(fitted, name)) for name in names}
    for number, part in enumerate(getattr(fitted, "parts", ())):
        own = writer.part(str(number))
        own.header = _write(part, own)
    return {
        "kind": KIND,
        "model": fitted.model,
        "params": asdict(fitted.settings),
        "report": fitted.report,
        "applied": list(fitted.applied),
        "values": values,
    }


def load(path: str | Path, *, encode: Mapping[str, Encoder] | None = None) -> Model:
    """Opens a saved model. Its arrays are memory-mapped, so that opening is fast.

    Parameters
    ----------
    path : str or Path
        A MODEL folder, from `save` or `clickbridge fit`.
    encode : mapping of str to function, optional
        Functions from a list of texts to vectors, by the NAME of their `dense:NAME` view. They are not saved with the
        model, so give them again here.

    Returns
    -------
    Model
        A fitted model, of the class that was saved.

    Examples
    --------
    >>> import tempfile
    >>> from clickbridge import BM25, example_graph, load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     BM25().fit(example_graph()).save(f"{folder}/model")
    ...     load(f"{folder}/model").rank("pizza").doc_ids
    ['oven', 'slice']
    """
    encode = encode or {}
    fitted = _read(open_artifact(path, KIND), None, encode)
    idle = set(encode) - vector_names(fitted)
    if idle:
        name = min(idle)
        raise SettingError(f"encode has {name!r}, but no part of {fitted.spec} has the view dense:{name}")
    fitted.warm()
    return model_class(fitted.model).from_fitted(fitted)


def vector_names(fitted: Fitted) -> set[str]:
    """The names of the dense vectors that a model or one of its parts uses."""
    own = set(getattr(fitted, "vector_names", ()))
    return own.union(*(vector_names(part) for part in getattr(fitted, "parts", ())))


def _read(
    artifact: Artifact, catalogue: Catalogue | None, encode: Mapping[str, Encoder], n_docs: int | None = None
) -> Fitted:
    """Reads one model. For a part, `n_docs` is the number of documents it knows: the first ones of the catalogue."""
    manifest = artifact.manifest
    name = str(manifest.get("model"))
    if model_home(name) is None:
        unknown = f"{artifact.path} is a {name!r} model, which this clickbridge does not know"
        raise ArtifactError(f"{unknown}: update it, or register the model first")
    for key in ("params", "report", "values"):
        if not isinstance(manifest.get(key), dict):
            raise ArtifactError(f"the manifest of {artifact.path} has no {key}: fit the model again")
    kind = model_class(name)
    try:
        settings = kind.Settings(**{k: v for k, v in manifest["params"].items() if k in kind.declared()})
        trees, applied = dict(manifest["values"]), tuple(manifest.get("applied", ()))
        values: dict[str, Any] = {"catalogue": catalogue or read_value(artifact, trees["catalogue"])}
        if any(f.name == "parts" for f in fields(kind.fitted_type)):
            if not isinstance(manifest.get("parts"), dict):
                raise ArtifactError(f"the manifest of {artifact.path} has no parts: fit the model again")
            # Before the choices, which hold those of the parts: their kinds are known once the parts are.
            numbers = sorted(manifest["parts"], key=int)
            known = read_value(artifact, trees["reach"]) if "reach" in trees else n_docs
            values["parts"] = tuple(_read(artifact.part(n), values["catalogue"], encode, known) for n in numbers)
        del trees["catalogue"]
        values |= {field: read_value(artifact, tree) for field, tree in trees.items()}
        _check_sizes(values, len(values["catalogue"]) if n_docs is None else n_docs)
        fitted = kind.fitted_type(
            model=name,
            settings=settings,
            report=manifest["report"],
            applied=applied,
            **values,
        )
        fitted.check_stored()
    except (KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, ClickbridgeError):
            raise
        raise ArtifactError(f"{artifact.path} is not a whole {name} model ({error}): fit it again") from error
    taken = {vectors: encode[vectors] for vectors in getattr(fitted, "vector_names", ()) if vectors in encode}
    return fitted._with(encode=taken) if taken else fitted


def _check_sizes(values: dict[str, Any], n_docs: int) -> None:
    """Checks that arrays have one row per document, or one entry per query. Compiled loops do not check bounds."""
    catalogue, queries = values["catalogue"], values.get("queries")
    if not 0 <= n_docs <= len(catalogue):
        raise ValueError(f"{n_docs} documents of {len(catalogue)}")
    if isinstance(values.get("display"), Display):
        values["display"].check(len(catalogue))
    if "scorable" in values:
        expect("scorable", values["scorable"], (n_docs,), "b")
    if isinstance(values.get("images"), np.ndarray):
        expect("images", values["images"], (n_docs, None))
    sizes = [("titles", len(catalogue.titles), len(catalogue))]
    sizes += [(n, len(values[n]), n_docs) for n in ("scorable", "theta") if n in values]
    sizes += [(n, values[n].shape[0], n_docs) for n in ("images",) if hasattr(values.get(n), "shape")]
    if isinstance(queries, KnownQueries):
        sizes.append(("clicks", len(queries.clicks), len(queries)))
        responses: Any = values.get("responses")
        if hasattr(responses, "shape"):
            sizes += [
                ("responses", responses.shape[0], len(queries)),
                ("responses", responses.shape[1], n_docs),
            ]
    for what, found, needed in sizes:
        if found != needed:
            raise ValueError(f"{what}: {found} instead of {needed}")
