"""A GRAPH on disk. Only this module knows its files, their columns and the keys of its manifest (docs/formats.md).

PyArrow is imported when files are opened, so that code that only uses a GRAPH, or reads a saved model, does not load
it.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from clickbridge.errors import ArtifactError
from clickbridge.graph.parts import Array, Clicks, Impressions, Pairs, columns
from clickbridge.io.secret import Secret

if TYPE_CHECKING:
    import pyarrow as pa

    from clickbridge.graph.clickgraph import ClickGraph
    from clickbridge.io.artifact import Artifact, PartWriter
    from clickbridge.log.aggregate import LogAggregator

KIND = "graph"
QUERIES, DOCS = ("queries", "key"), ("docs", "doc_id")
"""Tables, and the column in the order of which queries and documents are numbered."""
VECTORS, USERS = "vectors", "users"
COLUMNS: dict[str, dict[str, type[np.generic]]] = {
    "pairs": {
        "query": np.int32, "doc": np.int32, "clicks": np.int64, "impressions": np.int64, "users": np.int32,
        "first": np.float64, "last": np.float64,
    },
    "impressions": {
        "query": np.int32, "indptr": np.int64, "doc": np.int32, "clicked": np.uint8, "time": np.float64,
        "user": np.uint64,
    },
    "clicks": {
        "query": np.int32, "doc": np.int32, "clicks": np.int32, "time": np.float64, "user": np.uint64,
        "impressions": np.int32,
    },
}  # fmt: skip
"""Each column is a file `part.column`; those that a log knows nothing about are absent."""
SAME_KIND = {"i": "iu", "u": "iub", "f": "f"}
"""Kinds of numbers that can stand for each other in a column."""
PRESENT = {
    "pairs": ("pairs", "query"),
    "impressions": ("impressions", "query"),
    "clicks": ("clicks", "query"),
    "users": ("pairs", "users"),
    "times": ("pairs", "first"),
}
"""What the manifest lists as present, and the column that shows it. `documents` is listed where they have fields."""
Part = TypeVar("Part", Pairs, Impressions, Clicks)


# --- a GRAPH in memory -------------------------------------------------------------------------------


def write_graph(path: str | Path, graph: ClickGraph) -> None:
    import pyarrow as pa

    from clickbridge.io.artifact import ArtifactWriter

    with ArtifactWriter(path, KIND) as writer:
        writer.table(QUERIES[0], pa.table({QUERIES[1]: pa.array(list(graph.query_keys), pa.string())}))
        writer.table(DOCS[0], graph.docs)
        for name, dtypes in COLUMNS.items():
            part = getattr(graph, name)
            for column, values in ({} if part is None else columns(part)).items():
                if values is not None:
                    writer.array(f"{name}.{column}", np.asarray(values, dtypes[column]))
        for name, sides in graph.vectors.items():
            for side, values in sides.items():
                writer.array(vectors_name(name, side), values)
        if graph.secret is None:
            raise ArtifactError("only the owner of this GRAPH can read its secret: ask for permission to read its key")
        if graph.secret:
            writer.secret(USERS, graph.secret)
        writer.commit(**header(graph.defaults, graph.summary, graph.parts, graph.redact))


def parts_present(has: Callable[[str, str], bool], has_fields: bool) -> list[str]:
    """The names of the parts that the GRAPH has, as in its manifest. `has` tells whether a part has a column."""
    found = [name for name, (part, column) in PRESENT.items() if has(part, column)]
    return [*found, "documents"] if has_fields else found


def header(defaults: Mapping[str, Any], summary: Mapping[str, Any], parts: list[str], redact: str) -> dict[str, Any]:
    """The entries of a GRAPH's manifest besides its files."""
    return {"defaults": dict(defaults), "summary": dict(summary), "parts_present": parts, "redact": redact}


def read_graph(path: str | Path) -> dict[str, Any]:
    """The arguments of a ClickGraph."""
    from clickbridge.io.artifact import open_artifact

    artifact = open_artifact(path, KIND)
    pairs = _read_part(artifact, "pairs", Pairs)
    if pairs is None:
        raise ArtifactError(f"the manifest of {path} has no pairs: ingest again")
    queries, docs = artifact.table(QUERIES[0])[QUERIES[1]], artifact.table(DOCS[0])
    events = _read_part(artifact, "impressions", Impressions), _read_part(artifact, "clicks", Clicks)
    for name, part in zip(COLUMNS, (pairs, *events), strict=True):
        if part is not None:
            check_part(str(path), name, part, len(queries), len(docs))
    return {
        "queries": Keys(queries),
        "docs": docs,
        "pairs": pairs,
        "impressions": events[0],
        "clicks": events[1],
        "defaults": artifact.manifest.get("defaults"),
        "summary": artifact.manifest.get("summary"),
        "vectors": _read_vectors(artifact),
        "secret": _secret_of(artifact),
        "redact": artifact.manifest.get("redact", "shown"),
    }


def _secret_of(artifact: Artifact) -> Secret | None:
    """The secret of a GRAPH, read when it is needed; None if the user may not read it."""
    if f"{USERS}.key" not in artifact.manifest["files"]:
        return Secret()
    return artifact.secret(USERS) if os.access(artifact.file(f"{USERS}.key"), os.R_OK) else None


def earlier_secret(path: str | Path) -> Secret | None:
    """The secret of the GRAPH that will be replaced, so that users keep their hashes."""
    from clickbridge.io.artifact import Artifact
    from clickbridge.io.manifest import read_manifest

    try:
        return _secret_of(Artifact(Path(path), read_manifest(Path(path)))) or None
    except (ArtifactError, OSError):
        return None  # there is none, or none that can be read


def _read_part(artifact: Artifact, name: str, kind: type[Part]) -> Part | None:
    found = {c: artifact.array(f"{name}.{c}") for c in COLUMNS[name] if f"{name}.{c}" in artifact}
    return kind(**found) if "query" in found else None


def check_part(place: str, name: str, part: Pairs | Impressions | Clicks, n_queries: int, n_docs: int) -> None:
    """Refuses a part whose columns do not fit together or refer to items that do not exist."""
    if flaw := _flaw(name, columns(part), n_queries, n_docs):
        raise ArtifactError(f"{place}: {name} {flaw}: ingest again")


def _flaw(kind: str, part: Mapping[str, Array | None], n_queries: int, n_docs: int) -> str | None:
    """What is wrong with the columns of a part, if anything. Compiled loops do not check these numbers."""
    found = {name: np.asarray(values) for name, values in part.items() if values is not None}
    for name, values in found.items():
        if values.dtype.kind not in SAME_KIND[np.dtype(COLUMNS[kind][name]).kind]:
            return f"has {name} of the wrong type"
    ends = found.pop("indptr", None)
    by_page = ("query", "time", "user") if ends is not None else ()
    n_rows, n_pages = len(found["doc"]), len(found["query"])
    for name, values in found.items():
        if values.shape != (n_pages if name in by_page else n_rows,):
            return f"has {name} of the wrong length"
    for name, limit in (("query", n_queries), ("doc", n_docs)):
        values = found[name]
        if len(values) and not 0 <= values.min() <= values.max() < limit:
            return f"names a {name} that does not exist"
    if ends is None:
        return None
    sound = ends.shape == (n_pages + 1,) and ends.dtype.kind in "iu" and ends[0] == 0 and ends[-1] == n_rows
    return None if sound and not (ends[1:] < ends[:-1]).any() else "has pages that do not follow each other"


def vectors_name(name: str, side: str) -> str:
    return f"{VECTORS}.{name}.{side}"


def _read_vectors(artifact: Artifact) -> dict[str, dict[str, Array]]:
    out: dict[str, dict[str, Array]] = {}
    for file in artifact.manifest["files"]:
        if file.startswith(f"{VECTORS}.") and file.endswith(".npy"):
            name, _, side = file.removeprefix(f"{VECTORS}.").removesuffix(".npy").rpartition(".")
            out.setdefault(name, {})[side] = artifact.array(file.removesuffix(".npy"))
    return out


class Keys(Sequence[str]):
    """The query keys of an opened GRAPH, decoded at first use."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column

    @cached_property
    def _values(self) -> list[str]:
        values: list[str] = self._column.to_pylist()
        return values

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, i):  # type: ignore[no-untyped-def]
        return self._values[i]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)


# --- an aggregated log, a batch at a time ------------------------------------------------------------


def write_log(writer: PartWriter, log: LogAggregator) -> list[str]:
    """Writes all parts that an aggregated log supports. Returns their names."""
    _write_table(writer, QUERIES[0], log.query_keys())
    fields = _write_table(writer, DOCS[0], log.documents())
    unknown = (set() if log.summary.has_times else {"time", "first", "last"}) | (
        set() if log.summary.has_users else {"user", "users"}
    )
    _write_events(writer, log, unknown)
    with _column_files(writer, "pairs", unknown) as files:
        for batch in log.pairs():
            _append(files, batch)
    if log.summary.has_users:
        writer.secret(USERS, log.secret)
    return parts_present(lambda part, column: writer.has(f"{part}.{column}.npy"), len(fields) > 1)


def _write_table(writer: PartWriter, name: str, rows: pa.RecordBatchReader) -> list[str]:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(writer.path(f"{name}.parquet"), rows.schema, compression="zstd") as file:
        for batch in rows:
            file.write_batch(batch)
    names: list[str] = rows.schema.names
    return names


def _write_events(writer: PartWriter, log: LogAggregator, unknown: set[str]) -> None:
    summary, n_shown = log.summary, 0
    # Without pages, times and users the pairs alone say all there is to say.
    alone = not (summary.has_impressions or summary.has_times or summary.has_users)
    no_pages = set() if summary.has_impressions else set(COLUMNS["impressions"])
    no_clicks = set() if log.batches.has_clicks and not alone else set(COLUMNS["clicks"])
    no_clicks |= set() if log.batches.has_stated_impressions else {"impressions"}
    with (
        _column_files(writer, "impressions", unknown | no_pages) as pages,
        _column_files(writer, "clicks", unknown | no_clicks) as clicks,
    ):
        if pages:
            pages["indptr"].append(np.zeros(1))
        for batch in log.events():
            ends = n_shown + np.cumsum(batch.pages["length"], dtype=np.int64)
            n_shown += len(batch.pages["doc"])
            _append(pages, batch.pages | {"indptr": ends})
            _append(clicks, batch.clicks)


class ColumnFile:
    """An .npy file that grows. Its header has space for any length, and is written again at the end."""

    def __init__(self, path: Path, dtype: type[np.generic]) -> None:
        self._dtype, self._length = np.dtype(dtype), 0
        self._file = path.open("wb")
        self._file.write(self._header())

    def _header(self) -> bytes:
        out = io.BytesIO()
        kind = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": (self._length,)}
        np.lib.format.write_array_header_1_0(out, kind)
        return out.getvalue()

    def append(self, values: Array) -> None:
        self._file.write(np.ascontiguousarray(values, self._dtype).data)
        self._length += len(values)

    def close(self) -> None:
        with self._file as file:
            file.seek(0)
            file.write(self._header())


@contextmanager
def _column_files(writer: PartWriter, part: str, absent: set[str]) -> Iterator[dict[str, ColumnFile]]:
    kept = {column: dtype for column, dtype in COLUMNS[part].items() if column not in absent}
    files = {column: ColumnFile(writer.path(f"{part}.{column}.npy"), dtype) for column, dtype in kept.items()}
    try:
        yield files
    finally:
        for file in files.values():
            file.close()


def _append(files: dict[str, ColumnFile], values: Mapping[str, Array]) -> None:
    for column, file in files.items():
        file.append(values[column])


def written_pairs(writer: PartWriter) -> Pairs:
    """The pairs of a GRAPH that is not committed yet."""
    paths = {c: writer.written(f"pairs.{c}.npy") for c in COLUMNS["pairs"] if writer.has(f"pairs.{c}.npy")}
    return Pairs(**{column: np.load(path, mmap_mode="r") for column, path in paths.items()})
