"""LISTS files: JSONL with one query per line and its results to re-rank, with grades and scores if there are any."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from clickbridge.errors import InputError, shown
from clickbridge.frames import Frame, is_frame
from clickbridge.io.files import written_aside
from clickbridge.io.json_text import parse_json
from clickbridge.io.list_frames import list_records
from clickbridge.io.streams import lines, open_stream
from clickbridge.types import ResultList
from clickbridge.wording import count_of


def read_lists(source: str | Path | Frame, columns: Mapping[str, str] | None = None) -> list[ResultList]:
    """Reads lists of results, to re-rank or to measure on, from a LISTS file or a data frame.

    Parameters
    ----------
    source : str, Path or data frame
        A JSONL file; or a data frame with one list per row (`query_id`, `query`, `results` and optionally `labels` and
        `scores`), or with one result per row (`query_id`, `query`, `doc_id`, `label`, `score`).
    columns : mapping of str to str, optional
        The frame's column for each of these names, such as `{"doc_id": "sku"}`.

    Returns
    -------
    list of ResultList

    Examples
    --------
    >>> from clickbridge import read_lists
    >>> import pyarrow as pa
    >>> judged = pa.table({"query": ["pizza", "pizza"], "doc_id": ["d1", "d2"], "label": [0, 1]})
    >>> read_lists(judged)[0].results
    ['d1', 'd2']
    """
    out: list[ResultList] = []
    seen: set[str] = set()
    name, unit = ("the lists", "row") if is_frame(source) else (str(source), "line")
    for number, record in list_records(source, columns) if is_frame(source) else _records(str(source)):
        try:
            result = _result_list(record)
        except ValueError as error:
            raise InputError(f"{name}, {unit} {number}: {error}") from None
        if result.query_id in seen:
            raise InputError(f"{name}, {unit} {number}: query_id {shown(result.query_id)} occurs twice; give each once")
        seen.add(result.query_id)
        out.append(result)
    if not out:
        raise InputError(f"{name} holds no list: one JSON object per line with query_id, query and results")
    return out


def _records(path: str) -> Iterator[tuple[int, Any]]:
    with open_stream(path) as stream:
        for number, line in enumerate(lines(stream, path), 1):
            if not line:
                continue
            try:
                yield number, parse_json(line)
            except orjson.JSONDecodeError as error:
                raise InputError(f"{path}, line {number}: not JSON{_found(line) or f': {error.msg}'}") from None


def _found(line: bytes) -> str:
    """What the line is instead, where it is of a run, and what to do."""
    words = line.split()
    run = len(words) == 6 and words[3].isdigit()
    return " but a line of a TREC run: give --queries TOPICS as well (in Python: lists_of_run)" if run else ""


def write_lists(path: str | Path, lists: Iterable[ResultList]) -> None:
    """Writes lists as a LISTS file (JSONL), which `read_lists` reads.

    Parameters
    ----------
    path : str or Path
        The file to write. If writing fails, no incomplete file is left.
    lists : iterable of ResultList
        The lists, one for each line.

    Examples
    --------
    >>> from clickbridge import read_lists, ResultList, write_lists
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_lists(f"{folder}/lists.jsonl", [ResultList("q1", "ny pizza", ["d1", "d2"], [0, 1])])
    ...     read_lists(f"{folder}/lists.jsonl")[0].labels
    [0.0, 1.0]
    """
    with written_aside(path) as out:
        out.writelines(list_lines(lists))


def list_lines(lists: Iterable[ResultList]) -> Iterator[bytes]:
    """The lines of a LISTS file."""
    for result in lists:
        record: dict[str, Any] = {"query_id": result.query_id, "query": result.query, "results": result.results}
        record |= {} if result.labels is None else {"labels": result.labels}
        record |= {} if result.scores is None else {"scores": result.scores}
        record |= {} if result.vectors is None else {"vectors": result.vectors}
        yield orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)


def _result_list(record: Any) -> ResultList:
    if type(record) is not dict:
        raise ValueError("a line must be a JSON object")
    query, query_id = record.get("query"), record.get("query_id")
    query = "" if query is None else query
    if type(query) is not str:
        raise ValueError(f"query must be text, got {shown(query)}")
    if query_id is None and query:
        query_id = "_".join(query.split())
    results = [_id(value) for value in _list(record, "results")]
    labels, scores = _numbers(record, "labels", len(results), 0.0), _numbers(record, "scores", len(results))
    if len(set(results)) != len(results):
        # Logged pages may show a result twice. A ranking has it once, so its first position and its best grade count.
        first = sorted({doc_id: place for place, doc_id in reversed(list(enumerate(results)))}.values())
        if labels is not None:
            best: dict[str, float] = {}
            for doc_id, label in zip(results, labels, strict=True):
                best[doc_id] = max(label, best.get(doc_id, label))
            labels = [best[results[i]] for i in first]
        results = [results[i] for i in first]
        scores = None if scores is None else [scores[i] for i in first]
    return ResultList(_id(query_id), query, results, labels, scores, _vectors(record))


def _id(value: Any) -> str:
    if type(value) is int:
        return str(value)
    if type(value) is not str or value.split() != [value]:
        raise ValueError(f"an id must be text without white space, got {shown(value)}")
    return value


def _list(record: dict[str, Any], name: str) -> list[Any]:
    value = record.get(name)
    if type(value) is not list:
        raise ValueError(f"{name} must be a list, got {shown(value)}")
    return value


def _vectors(record: dict[str, Any]) -> dict[str, list[float]] | None:
    """The dense vectors of the query by name, for views `dense:NAME`."""
    vectors = record.get("vectors")
    if vectors is None:
        return None
    if type(vectors) is not dict:
        raise ValueError("vectors must be an object of name: list of numbers")
    return {name: _numbers(vectors, name, len(_list(vectors, name))) or [] for name in vectors}


def _numbers(record: dict[str, Any], name: str, length: int, low: float = -math.inf) -> list[float] | None:
    if record.get(name) is None:
        return None
    values = _list(record, name)
    if len(values) != length:
        raise ValueError(f"{len(values)} {name} for {count_of(length, 'result')}")
    for value in values:
        if type(value) not in (int, float) or not math.isfinite(value) or value < low:
            raise ValueError(f"{name} must be numbers{' of at least 0' if low == 0 else ''}, got {shown(value)}")
    return [float(value) for value in values]
