from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from clickbridge import ClickGraph, read_docs
from clickbridge.types import PairCount


@dataclass(frozen=True)
class Cranfield:
    """A judged collection without clicks: the GRAPH has one made-up click, which lexical models ignore."""

    graph: ClickGraph
    queries: dict[str, str]
    grades: dict[str, dict[str, float]]

    @property
    def texts(self) -> dict[str, str]:
        """The bodies that hold a word."""
        pairs = zip(self.graph.doc_ids, self.graph.field("body"), strict=True)
        return {doc_id: text for doc_id, text in pairs if text.strip()}


@pytest.fixture(scope="session")
def cranfield(real_data: Callable[[str], Path]) -> Cranfield:
    folder = real_data("cranfield")
    docs = list(read_docs(str(folder / "docs.jsonl.gz")))
    with gzip.open(folder / "queries.tsv.gz", "rt", encoding="utf8") as lines:
        queries = dict(line.rstrip("\n").split("\t") for line in lines)
    grades: dict[str, dict[str, float]] = {}
    with gzip.open(folder / "qrels.txt.gz", "rt", encoding="utf8") as lines:
        for query_id, _, doc_id, grade in map(str.split, lines):
            grades.setdefault(query_id, {})[doc_id] = max(float(grade), 0.0)
    graph = ClickGraph.build([PairCount("made up", docs[0].doc_id, 1)], docs)
    return Cranfield(graph, queries, grades)
