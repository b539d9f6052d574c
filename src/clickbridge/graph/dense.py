"""Dense vectors of queries and documents: given as a file (`ingest --vectors NAME=FILE`), or computed from text by a
user's function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from clickbridge.errors import InputError
from clickbridge.graph.storage import DOCS, QUERIES, vectors_name
from clickbridge.log.clean import normalise_query
from clickbridge.types import OPAQUE

if TYPE_CHECKING:
    import pyarrow as pa

    from clickbridge.io.artifact import PartWriter

Array = np.ndarray[Any, Any]
Vectors = dict[str, dict[str, Array]]
"""By name, then by side (`query`, `doc`): one row for each item, NaN where it has none."""
Encoder = Callable[[list[str]], ArrayLike]
"""Texts into vectors: one row for each text, all of one length."""
ENCODED_AT_ONCE = 4096
READ_AT_ONCE, READ_BYTES = 4096, 1 << 20
NOBODY, OTHER_SIDE = -1, -2
HEADINGS = ("title", "name", "heading")


# --- brought along -----------------------------------------------------------------------------------


def write_vectors(writer: PartWriter, name: str, path: str) -> None:
    """Reads a Parquet file with the columns side (query or doc), id (query text or id, document id) and vector. Numbers
    are copied directly from its buffers, one batch at a time, and never become Python objects."""
    import pyarrow.parquet as pq

    # Else PyArrow reads a whole row group ahead, which may be the whole file.
    in_pieces = {"buffer_size": READ_BYTES, "pre_buffer": False}
    with _one_line(name, path), pq.ParquetFile(path, **in_pieces) as file:
        _check_columns(name, path, file.schema_arrow)
        keys = {side: _keys(writer, *table) for side, table in (("query", QUERIES), ("doc", DOCS))}
        places = _places(file.read(["side", "id"]), keys)
        out: dict[str, Array] = {}
        width, start = -1, 0
        for batch in file.iter_batches(READ_AT_ONCE, columns=["vector"]):
            vectors, rows = _matrix(path, batch.column(0), width)
            width = vectors.shape[1] if len(rows) else width
            for side, place in places:
                at = place[start + rows]
                if side not in out and (at != OTHER_SIDE).any():
                    out[side] = np.full((len(keys[side]), width), np.nan, dtype=np.float32)
                if side in out:
                    out[side][at[at >= 0]] = vectors[at >= 0]
            start += len(batch)
    if not out:
        raise InputError(f"{path} has no vector whose side is query or doc: check --vectors {name}")
    for side, values in out.items():
        writer.array(vectors_name(name, side), values)


@contextmanager
def _one_line(name: str, path: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError:
        raise InputError(f"no file {path}: check --vectors {name}=FILE") from None
    except (pa.ArrowException, OSError):
        raise InputError(f"{path} must be Parquet with columns side, id, vector: check --vectors {name}") from None


def _check_columns(name: str, path: str, schema: pa.Schema) -> None:
    import pyarrow.types as kinds

    if not {"side", "id", "vector"} <= set(schema.names):
        raise InputError(f"{path} must be Parquet with columns side, id, vector: check --vectors {name}")
    kind = schema.field("vector").type
    is_list = kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)
    if not is_list or not (kinds.is_floating(kind.value_type) or kinds.is_integer(kind.value_type)):
        raise InputError(f"{path}: a vector must be a list of numbers, got {kind}: check --vectors {name}")


def _keys(writer: PartWriter, table: str, column: str) -> pa.ChunkedArray:
    import pyarrow.parquet as pq

    with pq.ParquetFile(writer.written(f"{table}.parquet")) as file:
        return file.read([column])[column]


def _places(rows: pa.Table, keys: Mapping[str, pa.ChunkedArray]) -> list[tuple[str, Array]]:
    """By side, the number of the item that each row of the file names, or NOBODY. What a row calls a query may be a
    text, normalised here, or the id of a query without text, which is never folded; it serves both."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sides, ids = rows["side"].cast("string"), rows["id"].cast("string")
    at = {side: np.flatnonzero(pc.equal(sides, side).fill_null(False).to_numpy()) for side in keys}
    asked = [text or "" for text in ids.take(at["query"]).to_pylist()]
    named = (
        ("query", pa.array([normalise_query(text) for text in asked], pa.string())),
        ("query", pa.array([OPAQUE + text.strip() for text in asked], pa.string())),
        ("doc", ids.take(at["doc"])),
    )
    out = []
    for side, names in named:
        place = np.full(len(rows), OTHER_SIDE, dtype=np.int64)
        place[at[side]] = pc.index_in(names, value_set=keys[side]).fill_null(NOBODY).to_numpy()
        out.append((side, place))
    return out


def _matrix(path: str, column: pa.Array, width: int) -> tuple[Array, Array]:
    """The vectors of a batch, one row each, and which rows of the batch have one. `width` is the length of those
    before, or -1."""
    import pyarrow.compute as pc

    rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    filled = column.drop_null()
    widths = np.unique(pc.list_value_length(filled).to_numpy(zero_copy_only=False)).tolist()
    widths = sorted({*widths, width} - {-1})
    if len(widths) > 1:
        raise InputError(f"{path}: vectors must all have one length, got {widths[:5]}")
    values = filled.flatten().to_numpy(zero_copy_only=False).astype(np.float32, copy=False)
    return values.reshape(len(rows), widths[0] if widths else 0), rows


# --- made from text ----------------------------------------------------------------------------------


def document_text(fields: Mapping[str, str]) -> str:
    """The text of a document for an encoder: one line per field; title, name and heading first, the others by name."""
    names = [*(name for name in HEADINGS if name in fields), *sorted(set(fields) - set(HEADINGS))]
    return "\n".join(fields[name] for name in names if fields[name])


def document_texts(docs: pa.Table) -> Iterator[str]:
    names = [name for name in docs.column_names if name != "doc_id"]
    for batch in docs.select(names).to_batches(max_chunksize=ENCODED_AT_ONCE):
        columns = [column.to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            yield document_text({name: text or "" for name, text in zip(names, row, strict=True)})


def filled(vectors: Vectors, encode: Mapping[str, Encoder], query_texts: list[str], docs: pa.Table) -> Vectors:
    """The vectors of a GRAPH, with new ones for queries and documents that have text but no vector."""
    out = {name: dict(sides) for name, sides in vectors.items()}
    for name, function in encode.items():
        sides = out.setdefault(name, {})
        for side, texts in (("query", query_texts), ("doc", list(document_texts(docs)))):
            made = fill_vectors(name, function, texts, sides.get(side))
            if made is not None:
                sides[side] = made
    return out


def fill_vectors(name: str, encode: Encoder, texts: Sequence[str], have: Array | None = None) -> Array | None:
    """Computes vectors for items that have text but no vector. Existing vectors stay. None if there are no vectors at
    all."""
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
        raise InputError(f"encode {name!r} must give one vector per text, all of one length: {error}") from error
    if len(shape) != 2 or shape[0] != len(texts):
        raise InputError(f"encode {name!r} must give one vector per text: expected {len(texts)}, got shape {shape}")
    return made
