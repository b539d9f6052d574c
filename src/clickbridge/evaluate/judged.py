"""What lists are measured against: their own labels, or judgments, which also know documents that are in no list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from clickbridge.errors import InputError
from clickbridge.io.topics import labelled_by
from clickbridge.io.trec import read_qrels
from clickbridge.types import ResultList, as_id
from clickbridge.wording import count_of

Grades = Mapping[str, Mapping[str, float]]
Qrels = Grades | str | Path


@dataclass(frozen=True)
class Judged:
    """Lists with labels, the grades of their queries, and lines for the user about what is left out."""

    lists: list[ResultList]
    grades: Grades
    notes: list[str]


def judged_lists(lists: list[ResultList], who: str, qrels: Qrels | None = None) -> Judged:
    """Lists with grades from judgments or, without these, from their labels."""
    if qrels is not None:
        return _by_judgments(lists, read_qrels(qrels) if isinstance(qrels, str | Path) else _named(qrels))
    labelled = [result for result in lists if result.labels is not None]
    if not any(max(result.labels or [0.0]) > 0 for result in labelled):
        raise InputError(f"no list has a label above 0: {who} needs judged lists, with `labels`")
    grades = {r.query_id: dict(zip(r.results, r.labels or (), strict=True)) for r in labelled}
    return Judged(labelled, grades, _left_out(len(lists) - len(labelled), "labels"))


def _named(qrels: Grades) -> Grades:
    """Judgments whose ids are text. Whole numbers become their digits, as everywhere."""
    if not isinstance(qrels, Mapping) or not all(isinstance(own, Mapping) for own in qrels.values()):
        raise InputError(f"qrels are a file, or grades such as {{'q1': {{'d2': 1}}}}; got a {type(qrels).__name__}")
    return {as_id(query_id): {as_id(doc): grade for doc, grade in own.items()} for query_id, own in qrels.items()}


def _by_judgments(lists: list[ResultList], judgments: Grades) -> Judged:
    """As `clickbridge evaluate --qrels` counts: a relevant document that is in no list is one that was missed."""
    if not lists:
        raise InputError("there are no lists to measure")
    labelled = [r for r in labelled_by([replace(r) for r in lists], judgments) if r.labels is not None]
    grades = {r.query_id: judgments[r.query_id] for r in labelled}
    relevant = {r.query_id: {doc_id for doc_id, grade in grades[r.query_id].items() if grade > 0} for r in labelled}
    notes = _left_out(len(lists) - len(labelled), "judgments")
    if absent := len(judgments.keys() - grades.keys()):
        notes.append(f"{count_of(absent, 'judged query', 'have', of=len(judgments))} no list: not counted")
    if missed := sum(len(relevant[r.query_id].difference(r.results)) for r in labelled):
        of = sum(map(len, relevant.values()))
        none = sum(bool(own := relevant[r.query_id]) and own.isdisjoint(r.results) for r in labelled)
        without = f"; {count_of(none, 'query', 'have')} none in theirs" if none else ""
        documents = count_of(missed, "relevant document", "are", of=of)
        notes.append(f"{documents} not in the list and counted as missed{without}")
    return Judged(labelled, grades, notes)


def _left_out(lists: int, lacking: str) -> list[str]:
    return [f"left out: {count_of(lists, 'list')} without {lacking}"] if lists else []
