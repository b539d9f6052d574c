"""LISTS from data frames: one list per row, or one result per row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from clickbridge.errors import InputError
from clickbridge.frames import arrow_table, frame_rows, renamed

FIELDS = ("query_id", "query", "results", "labels", "scores", "doc_id", "label", "score")
ONE_OF = {"doc_id": "results", "label": "labels", "score": "scores"}
"""A column with one value a result, and the list that its values become."""


def list_records(frame: Any, columns: Mapping[str, str] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Records as a LISTS file has them, each with the number of its first row.

    With a column `results`, a row is a list. With a column `doc_id`, a row is one result: rows of the same
    `query_id` (or, without one, of the same `query`) are a list, in the order they come.
    """
    table = renamed(arrow_table(frame, "the lists"), columns or {}, FIELDS, "the lists")
    names = table.column_names
    if not {"query", "query_id"} & set(names) or not {"results", "doc_id"} & set(names):
        raise InputError(
            f"lists need columns query and results, or query and doc_id; they have {', '.join(names)}: name them with "
            'columns={"query": ..., "doc_id": ...}'
        )
    if "results" in names:
        yield from enumerate(frame_rows(table), 1)
    else:
        yield from _grouped(frame_rows(table)).values()


def _grouped(rows: Iterator[dict[str, Any]]) -> dict[Any, tuple[int, dict[str, Any]]]:
    out: dict[Any, tuple[int, dict[str, Any]]] = {}
    for number, row in enumerate(rows, 1):
        key = row.get("query") if row.get("query_id") is None else row["query_id"]
        _, record = out.setdefault(key, (number, {"query_id": row.get("query_id"), "query": row.get("query")}))
        for one, many in ONE_OF.items():
            if one in row:
                record.setdefault(many, []).append(row[one])
    for _, record in out.values():
        # A query without any label is not judged; one without any score came in its order alone.
        for many in ("labels", "scores"):
            if not any(value is not None for value in record.get(many, ())):
                record.pop(many, None)
    return out
