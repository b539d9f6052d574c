"""A comparison made by hand: many models, one of them without a score for some queries, every group of queries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from clickbridge.evaluate.compare import _measured
from clickbridge.evaluate.judged import judged_lists
from clickbridge.evaluate.results import Comparison
from clickbridge.evaluate.slices import Cell, QueryFacts
from clickbridge.evaluate.trial import Trial
from clickbridge.graph.parts import Impressions
from clickbridge.measures import parse_measures
from clickbridge.types import ResultList

SPECS = ("given", "bm25", "pls", "bm25+pls+lmir+cos-click", "walk")
SKILL = (0.0, 0.8, 0.9, 2.0, 0.4)
CLICKS = (0, 3, 40, 500, 5000)


def trial_of(spec: str, skill: float, lists: Sequence[ResultList], silent: int = 0, seed: int = 0) -> Trial:
    """Ranks by the label plus noise; the first `silent` lists have no score."""
    rng = np.random.default_rng([seed, *spec.encode()])
    ranked, scores = [], []
    for number, result in enumerate(lists):
        own = skill * np.array(result.labels) + rng.normal(size=len(result.results))
        if number < silent:
            own = np.full(len(own), -np.inf)
        places = np.argsort(-own, kind="stable")
        ranked.append(places.astype(np.int32))
        scores.append(own[places])
    notes = [f"{spec}: <b>made</b> by hand"]
    return Trial(spec, {"dim": 2}, 1.5, 0.25, 300.0, {"notes": notes}, ranked, scores, reused=spec == "bm25")


@pytest.fixture(scope="session")
def made() -> Comparison:
    rng = np.random.default_rng(3)
    texts = ("pizza", "new york pizza", "<script>alert(1)</script> & co", "how to boil bagels at home", "")
    lists = [
        ResultList(
            f"q{i}", texts[i % 5], [f"d{i}.{j}" for j in range(12)], list(rng.permutation([2.0, 1.0] + [0.0] * 10))
        )
        for i in range(60)
    ]
    trials = {
        spec: trial_of(spec, skill, lists, silent=12 if spec == "walk" else 0)
        for spec, skill in zip(SPECS, SKILL, strict=True)
    }
    measures = parse_measures("nDCG@1,nDCG@5,AP(rel=2)")
    return Comparison(
        models=_measured(trials, judged_lists(lists, "compare"), measures, "given"),
        baseline="given",
        measures=[m.name for m in measures],
        main="nDCG@5",
        refused={"lmir": "lmir needs document text: ingest documents with --docs"},
        by_dim={"pls": {100: Cell(60, 0.5, 0.4, 0.6), 300: Cell(60, 0.6, 0.5, 0.7)}},
        queries={
            r.query_id: facts(r, CLICKS[i % 5]) for i, r in enumerate(lists)
        },
        lists=lists,
        titles={d: f"A title of some length, number {d}" for r in lists for d in r.results[::2]},
        notes=["a note"],
        made={"command": "clickbridge compare graph", "date": "2026-01-01"},
        pages=shown_pages(1_234),
    )  # fmt: skip


def shown_pages(n: int) -> Impressions:
    """Pages of three results for one query: the first is always clicked, on every third page the second too."""
    clicked = np.tile(np.array([1, 0, 0], dtype=np.int8), n)
    clicked[1::9] = 1
    return Impressions(
        np.zeros(n, np.int32), np.arange(0, 3 * n + 1, 3), np.tile(np.arange(3, dtype=np.int32), n), clicked
    )


def facts(asked: ResultList, clicks: int) -> QueryFacts:
    return QueryFacts(asked.query_id, asked.query, clicks, len(asked.query.split()))
