"""Tables 1, 2, 4 and 6 to 8 of Wu, Xu, Li, Oyama (2011): examples and counts, found in the data at hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from clickbridge.evaluate.reproduction.bench import Data
from clickbridge.evaluate.reproduction.lab import Lab
from clickbridge.evaluate.reproduction.paper_table import Cell, Table, TableRow
from clickbridge.evaluate.reproduction.relevance_rows import AS_PRINTED
from clickbridge.models.model import Model
from clickbridge.types import ResultList

FORMS, SHOWN = 15, 5
PUBLISHED: dict[str, tuple[Cell, ...]] = {
    "judged queries": (8294, 2864),
    "judged query-URL pairs": (1_715_844, 282_130),
    "search impressions": (490_085_192, 17_383_935),
    "unique queries": (14_977_647, 2_368_640),
    "unique URLs": (30_166_304, 2_419_866),
    "clicks": (2_605_404_156, 4_996_027),
}


def table_1(lab: Lab) -> Iterator[Table]:
    """Queries with the same search intent: those of the demo with the most similar queries."""
    data = lab.demo
    if data.alike is None:
        return
    grades = data.alike.grades
    likes = {query: [other for other, grade in grades[query].items() if grade > 0] for query in data.alike.queries}
    query = max(likes, key=lambda q: (len(likes[q]), q))
    forms = [query, *sorted(likes[query])][:FORMS]
    rows = [TableRow(f"{n + 1}", tuple(forms[n : n + 3])) for n in range(0, len(forms), 3)]
    yield Table("11R-1", f"Queries that mean {query!r}", data.about, ("", " ", "  "), rows)


def table_2(lab: Lab) -> Iterator[Table]:
    """One page of the simulated log with two clicks and a skipped result."""
    data = lab.simulated("one-week")
    pages = data.graph.impressions
    if pages is None:
        return
    clicked = pages.lists.sums(pages.clicked)
    first = int(np.argmax(clicked >= min(2, clicked.max(initial=0))))
    start, stop = int(pages.indptr[first]), int(pages.indptr[first + 1])
    titles = data.study.catalogue.titles
    rows = [
        TableRow(str(rank), (titles[int(doc)] or data.graph.doc_ids[int(doc)], "yes" if on else "no"))
        for rank, (doc, on) in enumerate(zip(pages.doc[start:stop], pages.clicked[start:stop], strict=True), 1)
    ]
    query = data.graph.query_keys[int(pages.query[first])]
    yield Table(
        "11R-2", f"A record of click-through data for {query!r}", data.about, ("document", "click"), rows[:SHOWN]
    )


def table_4(lab: Lab) -> Iterator[Table]:
    """Counts of the two data sets."""
    sets = [lab.simulated(scale) for scale in ("one-week", "enterprise")]
    found = [_counts(data) for data in sets]
    rows = [TableRow(name, tuple(own[name] for own in found), paper) for name, paper in PUBLISHED.items()]
    about = " | ".join(data.about for data in sets)
    yield Table("11R-4", "Statistics of the data", about, ("web search", "enterprise search"), rows)


def _counts(data: Data) -> dict[str, int]:
    graph, judged = data.graph, data.lists["seen"]
    return {
        "judged queries": len(judged),
        "judged query-URL pairs": sum(len(r.results) for r in judged),
        "search impressions": 0 if graph.impressions is None else len(graph.impressions),
        "unique queries": graph.n_queries,
        "unique URLs": graph.n_docs,
        "clicks": int(graph.pairs.clicks.sum()),
    }


# --- what Robust BM25 finds and the others do not --------------------------------------------------


class Case(NamedTuple):
    """A good document of a judged query, and its rank by each model."""

    judged: ResultList
    doc_id: str
    grade: float
    ranks: dict[str, int]


MODELS = {"Robust BM25": "robust-bm25", "Pairwise Kernel": "pairwise", "BM25": "bm25"}


def tables_6_to_8(lab: Lab) -> Iterator[Table]:
    """Where Robust BM25 as printed gains most over BM25, with similar queries (6) and without (7), and over the
    pairwise kernel (8)."""
    for data in lab.relevance_sets("one-week"):
        models = {label: data.fit(spec, AS_PRINTED).model for label, spec in MODELS.items()}
        robust = models["Robust BM25"]
        if robust is None or any(model is None for model in models.values()):
            continue
        cases = list(_cases(data, {label: model for label, model in models.items() if model is not None}))
        near = {c.judged.query for c in cases if robust.similar_queries(c.judged.query, 1)}
        kinds = {
            "11R-6": ("similar queries help", "BM25", [c for c in cases if c.judged.query in near]),
            "11R-7": ("no similar query is known", "BM25", [c for c in cases if c.judged.query not in near]),
            "11R-8": ("BM25 helps the kernel", "Pairwise Kernel", cases),
        }
        for key, (what, rival, some) in kinds.items():
            yield _example(key, f"Robust BM25, as printed: {what}", data, robust, rival, some)


def _cases(data: Data, models: dict[str, Model]) -> Iterator[Case]:
    lists = data.lists["seen"]
    orders = {label: [ranking.doc_ids for ranking in model.rerank_lists(lists)] for label, model in models.items()}
    for n, judged in enumerate(lists):
        grades = judged.labels or []
        best = max(grades, default=0.0)
        if best < data.relevant:
            continue
        doc_id = judged.results[grades.index(best)]
        yield Case(judged, doc_id, best, {label: own[n].index(doc_id) + 1 for label, own in orders.items()})


def _example(key: str, title: str, data: Data, robust: Model, rival: str, cases: list[Case]) -> Table:
    rows = []
    if cases:
        case = max(cases, key=lambda c: c.ranks[rival] - c.ranks["Robust BM25"])
        near = ", ".join(name for name, _ in robust.similar_queries(case.judged.query, 4))
        facts: dict[str, Cell] = {
            "query": case.judged.query,
            "similar queries": near or "none",
            "document": data.study.catalogue.named(data.study.catalogue.number(case.doc_id)),
            "grade": case.grade,
            **{f"rank by {label}": rank for label, rank in case.ranks.items()},
        }
        rows = [TableRow(name, (value,)) for name, value in facts.items()]
    note = f"the largest gain over {rival} among {len(cases):,} judged queries" if cases else "no such query here"
    return Table(key, title, data.about, (" ",), rows, [note])
