"""LETOR files (SVMrank's format), so that other learners can have the same features.

    # clickbridge 1:bm25 2:pls
    2 qid:7 1:0.53 3:1 # doc 49018

One line per document: its grade, its query, its features by number from 1, and the document in a comment. A
feature without a value (NaN) is left out. Feature names stand in the first comment, spaces as underscores.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clickbridge.errors import InputError
from clickbridge.io.files import written_aside
from clickbridge.io.streams import lines, open_stream

Array = np.ndarray[Any, Any]
HEADER = "# clickbridge"
MOST_FEATURES = 10_000
"""Rows are dense: a feature's number says how much memory each of them takes."""


@dataclass(frozen=True)
class LetorRow:
    grade: float
    query_id: str
    doc_id: str
    features: Array


def write_letor(path: str | Path, names: Sequence[str], rows: Iterable[LetorRow]) -> None:
    """Rows of one query must stand together, as learners expect."""
    with written_aside(path) as out:
        titles = " ".join(f"{n}:{'_'.join(name.split())}" for n, name in enumerate(names, 1))
        out.write(f"{HEADER} {titles}\n".encode())
        for row in rows:
            pairs = (f"{n}:{v:.9g}" for n, v in enumerate(row.features.tolist(), 1) if math.isfinite(v))
            out.write(f"{row.grade:g} qid:{row.query_id} {' '.join(pairs)} # doc {row.doc_id}\n".encode())


def read_letor(path: str) -> tuple[list[str], list[LetorRow]]:
    """Names of the features (empty where the file has none) and its rows; absent features are NaN."""
    names: list[str] = []
    parsed: list[tuple[float, str, str, dict[int, float]]] = []
    with open_stream(str(path)) as stream:
        for number, line in enumerate(lines(stream, str(path)), 1):
            text = line.decode("utf8", errors="replace")
            if text.startswith("#"):
                if text.startswith(HEADER) and not names:
                    names = [item.partition(":")[2] for item in text.removeprefix(HEADER).split()]
                continue
            if text.strip():
                try:
                    parsed.append(_row(text))
                except ValueError:
                    wanted = f"GRADE qid:ID NUMBER:VALUE ... [# doc ID], numbers up to {MOST_FEATURES:,}"
                    raise InputError(f"{path}, line {number}: a LETOR line is {wanted}; got {text[:60]!r}") from None
    width = max([len(names), *(n for *_, features in parsed for n in features)])
    return names, [LetorRow(g, q, d, _dense(features, width)) for g, q, d, features in parsed]


def _row(text: str) -> tuple[float, str, str, dict[int, float]]:
    body, _, comment = text.partition("#")
    grade, query, *pairs = body.split()
    if not query.startswith("qid:"):
        raise ValueError
    features = {}
    for pair in pairs:
        number, _, value = pair.partition(":")
        features[int(number)] = float(value)
        if not 1 <= int(number) <= MOST_FEATURES:
            raise ValueError
    words = comment.split()
    return (
        float(grade),
        query.removeprefix("qid:"),
        words[1] if words[:1] == ["doc"] and len(words) > 1 else "",
        features,
    )


def _dense(features: dict[int, float], width: int) -> Array:
    out = np.full(width, np.nan)
    out[np.array(list(features), dtype=np.int64) - 1] = list(features.values())
    return out
