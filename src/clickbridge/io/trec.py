"""Reads and writes TREC runs and judgments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from clickbridge.errors import InputError
from clickbridge.io.files import written_aside
from clickbridge.io.streams import lines, open_stream
from clickbridge.types import Ranking

Run = dict[str, list[str]]
Grades = dict[str, dict[str, float]]
STEP = 1e-6
"""Least relative gap between two scores of a run: float32, which evaluation tools compare in, tells them apart."""
LARGEST = 1e37
"""Scores beyond are cut off, so that float32 holds them and what comes below them."""


def write_run(path: str | Path, rankings: Mapping[str, Ranking] | Iterable[tuple[str, Ranking]], spec: str) -> None:
    """Writes rankings as a TREC run: lines of `query_id Q0 doc_id rank score spec`.

    Scores are made strictly decreasing, also as float32, so that other tools keep the order.

    Parameters
    ----------
    path : str or Path
        The file to write. If writing fails, no incomplete file is left.
    rankings : mapping of str to Ranking, or iterable of (str, Ranking)
        The ranking of each query by the query's id, or pairs of both.
    spec : str
        The name of the run.

    Examples
    --------
    >>> from clickbridge import Ranking, read_run, write_run
    >>> import tempfile
    >>> from clickbridge import Hit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_run(f"{folder}/bm25.run", [("q1", Ranking((Hit("d2", 3.5), Hit("d1", 1.25))))], "bm25")
    ...     read_run(f"{folder}/bm25.run")
    {'q1': ['d2', 'd1']}
    """
    with written_aside(path) as out:
        for query_id, ranking in rankings.items() if isinstance(rankings, Mapping) else rankings:
            scores = falling([hit.score for hit in ranking])
            for rank, (hit, score) in enumerate(zip(ranking, scores, strict=True), 1):
                out.write(f"{query_id} Q0 {hit.doc_id} {rank} {score:.9g} {spec}\n".encode())


def falling(scores: list[float]) -> list[float]:
    """Scores in ranked order, made strictly decreasing. Documents without a score (-inf) continue below the others."""
    out: list[float] = []
    for score in scores:
        finite = math.isfinite(score)
        score = min(max(score, -LARGEST), LARGEST)
        if not out:
            out.append(score if finite else 0.0)
            continue
        ceiling = out[-1] - STEP * max(abs(out[-1]), 1.0)
        out.append(min(score, ceiling) if finite else ceiling)
    return out


def read_run(path: str | Path) -> Run:
    """Reads a TREC run: the documents of each query, sorted by score (highest first), then by rank.

    Parameters
    ----------
    path : str or Path
        Lines of `query_id Q0 doc_id rank score name`. The file may be compressed.

    Returns
    -------
    dict of str to list of str
        Document ids by query id, best first. See `write_run` for an example.
    """
    scored: dict[str, dict[str, tuple[float, int, str]]] = {}
    for number, cells in _cells(path, 6, "query_id Q0 doc_id rank score name"):
        try:
            row = (-float(cells[4]), int(cells[3]), cells[2])
            if math.isnan(row[0]):
                raise ValueError
        except ValueError:
            raise InputError(
                f"{path}, line {number}: rank and score must be numbers, got {cells[3][:40]} {cells[4][:40]}"
            ) from None
        rows = scored.setdefault(cells[0], {})
        if cells[2] in rows:
            raise InputError(f"{path}, line {number}: document {cells[2][:80]} occurs twice for query {cells[0][:80]}")
        rows[cells[2]] = row
    return {query_id: [doc_id for _, _, doc_id in sorted(rows.values())] for query_id, rows in scored.items()}


def read_qrels(path: str | Path) -> Grades:
    """Reads TREC judgments: grades by query and document.

    Parameters
    ----------
    path : str or Path
        Lines of `query_id 0 doc_id grade`. The file may be compressed.

    Returns
    -------
    dict of str to dict of str to float
        Grades by query id and document id. Negative grades (spam in some collections) become 0.

    Examples
    --------
    >>> from clickbridge import read_qrels
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as file:
    ...     print("q1 0 d2 2", file=file, flush=True)
    ...     read_qrels(file.name)
    {'q1': {'d2': 2.0}}
    """
    grades: Grades = {}
    for number, cells in _cells(path, 4, "query_id 0 doc_id grade"):
        try:
            grade = float(cells[3])
            if not math.isfinite(grade):
                raise ValueError
        except ValueError:
            raise InputError(f"{path}, line {number}: the grade must be a number, got {cells[3][:40]}") from None
        grades.setdefault(cells[0], {})[cells[2]] = max(grade, 0.0)
    return grades


def _cells(path: str | Path, width: int, shape: str) -> Iterable[tuple[int, list[str]]]:
    empty = True
    with open_stream(str(path)) as stream:
        for number, line in enumerate(lines(stream, str(path)), 1):
            cells = line.decode("utf-8", "replace").split()
            if not cells:
                continue
            if len(cells) != width:
                raise InputError(f"{path}, line {number}: {len(cells)} columns, expected {width}: {shape}")
            empty = False
            yield number, cells
    if empty:
        raise InputError(f"{path} is empty; expected lines of {shape}")
