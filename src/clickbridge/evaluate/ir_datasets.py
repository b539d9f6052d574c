"""Reads collections of ir_datasets: any object with `docs_iter`, `queries_iter` and `qrels_iter`.

dataset = ir_datasets.load("beir/nfcorpus/test")
graph = ClickGraph.build(clicks_of(dataset), documents_of(dataset))     # judgments as clicks, to learn from
queries, grades = queries_of(dataset), judgments_of(dataset)            # to measure with
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clickbridge.types import Document, PairCount

IDS = ("doc_id", "query_id")


def documents_of(dataset: Any) -> Iterator[Document]:
    """The documents of a collection, each with its text fields."""
    for doc in dataset.docs_iter():
        texts = {name: value for name, value in _fields(doc) if name not in IDS and isinstance(value, str) and value}
        yield Document(doc.doc_id, texts)


def queries_of(dataset: Any) -> dict[str, str]:
    """The text of each query by its id. The field is `text`, or else `title` or `query`."""
    return {query.query_id: _text(query) for query in dataset.queries_iter()}


def judgments_of(dataset: Any) -> dict[str, dict[str, float]]:
    """Grades by query and document, in the form of `read_qrels` and ir_measures."""
    out: dict[str, dict[str, float]] = {}
    for judgment in dataset.qrels_iter():
        out.setdefault(judgment.query_id, {})[judgment.doc_id] = max(float(judgment.relevance), 0.0)
    return out


def clicks_of(dataset: Any, least: float = 1.0) -> Iterator[PairCount]:
    """Judgments as clicks, for learning without a log: a grade of g counts as g clicks."""
    queries = queries_of(dataset)
    for query_id, grades in judgments_of(dataset).items():
        for doc_id, grade in grades.items():
            if grade >= least and queries.get(query_id):
                yield PairCount(queries[query_id], doc_id, round(grade))


def _fields(record: Any) -> Iterator[tuple[str, Any]]:
    return ((name, getattr(record, name)) for name in record._fields)


def _text(query: Any) -> str:
    named = dict(_fields(query))
    return next((named[n] for n in ("text", "query", "title") if isinstance(named.get(n), str)), "")
