"""Dense vectors of queries and documents: brought along (`ingest --vectors NAME=FILE`), or made from text by a
function of the user's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clickbridge.errors import InputError
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.log.clean import normalise_query
from clickbridge.types import edge_name

Array = np.ndarray[Any, Any]
Vectors = dict[str, dict[str, Array]]
"""By name, then by side (`query`, `doc`): one row an item, NaN where it has none."""
Encoder = Callable[[list[str]], Any]
"""Texts into vectors: one row a text, all of one length."""
ENCODED_AT_ONCE = 4096
HEADINGS = ("title", "name", "heading")
SIDES = {"query": ("queries.parquet", "key"), "doc": ("docs.parquet", "doc_id")}


def write_vectors(writer: PartWriter, name: str, path: str) -> None:
    """Reads a Parquet file with columns side (query or doc), id (query text or id, document id) and vector."""
    try:
        table = pq.read_table(path, columns=["side", "id", "vector"])
    except FileNotFoundError:
        raise InputError(f"no file {path}: check --vectors {name}=FILE") from None
    except (pa.ArrowException, OSError, KeyError):
        raise InputError(f"{path} must be Parquet with columns side, id, vector: check --vectors {name}") from None
    sides, ids, vectors = (table[column].to_pylist() for column in ("side", "id", "vector"))
    widths = {len(vector) for vector in vectors if vector is not None}
    if len(widths) != 1:
        raise InputError(f"{path}: vectors must all have one length, got {sorted(widths)[:5] or 'none'}")
    for side, (file, column) in SIDES.items():
        chosen = {_key(side, i): v for s, i, v in zip(sides, ids, vectors, strict=True) if s == side and v is not None}
        if not chosen:
            continue
        keys = pq.read_table(writer.written(file), columns=[column])[column].to_pylist()
        out = np.full((len(keys), widths.copy().pop()), np.nan, dtype=np.float32)
        for number, key in enumerate(keys):
            vector = chosen.get(key) or chosen.get(edge_name(key))
            if vector is not None:
                out[number] = vector
        writer.array(f"vectors.{name}.{side}", out)


def _key(side: str, value: Any) -> str:
    return normalise_query(str(value)) if side == "query" else str(value)


def read_vectors(artifact: Artifact) -> Vectors:
    out: Vectors = {}
    for file in artifact.manifest["files"]:
        if file.startswith("vectors.") and file.endswith(".npy"):
            name, _, side = file.removeprefix("vectors.").removesuffix(".npy").rpartition(".")
            out.setdefault(name, {})[side] = artifact.array(file.removesuffix(".npy"))
    return out


def document_text(fields: Mapping[str, str]) -> str:
    """What an encoder reads of a document: a line a field, title, name and heading first, the others by name."""
    names = [*(name for name in HEADINGS if name in fields), *sorted(set(fields) - set(HEADINGS))]
    return "\n".join(fields[name] for name in names if fields[name])


def document_texts(docs: pa.Table) -> Iterator[str]:
    names = [name for name in docs.column_names if name != "doc_id"]
    for batch in docs.select(names).to_batches(max_chunksize=ENCODED_AT_ONCE):
        columns = [column.to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            yield document_text({name: text or "" for name, text in zip(names, row, strict=True)})


def fill_vectors(name: str, encode: Encoder, texts: Sequence[str], have: Array | None = None) -> Array | None:
    """Vectors of items that have text and none yet. Those they have stay; None where there is nothing at all."""
    wanted = [n for n, text in enumerate(texts) if text and (have is None or np.isnan(have[n]).all())]
    out = None if have is None else np.array(have, dtype=np.float32)
    for start in range(0, len(wanted), ENCODED_AT_ONCE):
        rows = wanted[start : start + ENCODED_AT_ONCE]
        made = _encode(name, encode, [texts[n] for n in rows])
        if out is None:
            out = np.full((len(texts), made.shape[1]), np.nan, dtype=np.float32)
        if made.shape[1] != out.shape[1]:
            raise InputError(
                f"encode {name!r} gives vectors of {made.shape[1]} numbers where others have {out.shape[1]}"
            )
        out[rows] = made
    return out


def _encode(name: str, encode: Encoder, texts: list[str]) -> Array:
    try:
        made = np.asarray(encode(texts), dtype=np.float32)
        shape = made.shape
    except (ValueError, TypeError) as error:
        raise InputError(f"encode {name!r} must give one vector a text, all of one length: {error}") from error
    if len(shape) != 2 or shape[0] != len(texts):
        raise InputError(f"encode {name!r} must give one vector a text: expected {len(texts)} rows, got shape {shape}")
    return made
