"""Dense vectors of queries and documents that came with the data (`ingest --vectors NAME=FILE`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clickbridge.errors import InputError
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.log.clean import normalise_query
from clickbridge.types import edge_name

Vectors = dict[str, dict[str, np.ndarray[Any, Any]]]
"""By name, then by side (`query`, `doc`): one row an item, NaN where it has none."""
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
