"""Values into artifacts and back: frozen dataclasses of arrays, sparse matrices, texts and numbers.

    @stored
    @dataclass(frozen=True)
    class Space: ...

What a value is made of is written as arrays, and a tree in the manifest says which is which. Only classes marked
`stored` are ever made on reading, by name from this table: no code comes out of a file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from clickbridge.errors import ArtifactError
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.io.secret import Secret

STORED: dict[str, type[Any]] = {}
Kind = TypeVar("Kind", bound=type[Any])
SMALL = 64
"""Lists of texts up to this long are written into the manifest, longer ones into files."""


def stored(kind: Kind) -> Kind:
    """Marks a class whose values may be written and read. A dataclass is its init fields; another class gives
    `to_stored()`, a value of simpler kinds, and is made again by `from_stored(value)`. A class with arrays of places
    has `check_stored()`, which raises ValueError where one is out of range: a file may say anything."""
    home, known = (kind.__module__, kind.__qualname__), STORED.get(kind.__name__, kind)
    if (known.__module__, known.__qualname__) != home:
        raise TypeError(f"a stored class {kind.__name__} is there already, in {known.__module__}: choose another name")
    STORED[kind.__name__] = kind
    return kind


def write_value(writer: PartWriter, name: str, value: Any) -> Any:
    """Writes what needs files under names that begin with `name`; returns the tree for the manifest."""
    if isinstance(value, np.ndarray):
        writer.array(name, value)
        return {"array": name}
    if sparse.issparse(value):
        writer.sparse(name, sparse.csr_array(value))
        return {"sparse": name}
    if isinstance(value, Secret):
        if value:
            writer.secret(name, value)
        return {"secret": name if value else None}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}  # JSON has no word for it
    if _is_stored(value):
        return {"kind": type(value).__name__, "value": _write_kind(writer, name, value)}
    if value is None or isinstance(value, bool | int | float | str):
        return {"plain": value}
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError(f"{name}: only texts can be keys of what is stored")
        return {"map": {key: write_value(writer, f"{name}.{n}", item) for n, (key, item) in enumerate(value.items())}}
    if isinstance(value, list | tuple):
        if len(value) > SMALL and all(isinstance(item, str) and not _is_stored(item) for item in value):
            writer.strings(name, value)
            return {"texts": name, "tuple": isinstance(value, tuple)}
        parts = [write_value(writer, f"{name}.{n}", item) for n, item in enumerate(value)]
        return {"list": parts, "tuple": isinstance(value, tuple)}
    raise TypeError(f"{name}: a {type(value).__name__} cannot be stored")


def _is_stored(value: Any) -> bool:
    return STORED.get(type(value).__name__) is type(value)


def _write_kind(writer: PartWriter, name: str, value: Any) -> Any:
    if hasattr(value, "to_stored"):
        return write_value(writer, name, value.to_stored())
    return {f.name: write_value(writer, f"{name}.{f.name}", getattr(value, f.name)) for f in fields(value) if f.init}


def read_value(artifact: Artifact, tree: Any) -> Any:
    """The value that a tree of the manifest describes."""
    try:
        return _read(artifact, tree)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise ArtifactError(
            f"{artifact.path} does not hold what its manifest says ({error}): build it again"
        ) from error


def _read(artifact: Artifact, tree: Any) -> Any:
    if "plain" in tree:
        return tree["plain"]
    if "number" in tree:
        return float(tree["number"])
    if "array" in tree:
        # A plain array over the same memory: a memory map's own class is slow to index.
        return np.asarray(artifact.array(tree["array"]))
    if "sparse" in tree:
        return artifact.sparse(tree["sparse"])
    if "secret" in tree:
        return Secret() if tree["secret"] is None else artifact.secret(tree["secret"])
    if "texts" in tree:
        texts = artifact.strings(tree["texts"])
        return tuple(texts) if tree["tuple"] else texts
    if "list" in tree:
        items = [_read(artifact, item) for item in tree["list"]]
        return tuple(items) if tree["tuple"] else items
    if "map" in tree:
        return {key: _read(artifact, item) for key, item in tree["map"].items()}
    kind = STORED[tree["kind"]]
    if hasattr(kind, "from_stored"):
        return kind.from_stored(_read(artifact, tree["value"]))
    parts = {name: _read(artifact, item) for name, item in tree["value"].items()}
    if "indptr" in parts:
        _check_ends(parts["indptr"])
    value = kind(**parts)
    if hasattr(value, "check_stored"):
        # Arrays that compiled code goes by: their class knows which number must stay below which.
        value.check_stored()
    return value


def expect(what: str, values: Any, shape: tuple[int | None, ...], kinds: str = "f", below: int | None = None) -> None:
    """For `check_stored`: an array of numbers of these kinds and this shape (None: any size); with `below`, of places
    from 0 up to there. Says what is wrong with a ValueError."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in kinds:
        raise ValueError(f"{what} is not made of such numbers")
    if values.ndim != len(shape) or any(n is not None and n != m for n, m in zip(shape, values.shape, strict=True)):
        raise ValueError(f"{what} has the shape {values.shape}")
    if below is not None and values.size and not 0 <= int(values.min()) <= int(values.max()) < below:
        raise ValueError(f"{what} names a place that is not there")


def _check_ends(indptr: Any) -> None:
    whole = isinstance(indptr, np.ndarray) and indptr.ndim == 1 and indptr.dtype.kind in "iu" and len(indptr) > 0
    if not whole or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise ValueError("lists do not follow each other")
