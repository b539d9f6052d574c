"""Simulates a search page in use: users search, see the learner's current ranking and click; the learner learns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from clickbridge.measures.ranking import evaluate_run, parse_measures
from clickbridge.online.interleave import Verdict, compare
from clickbridge.online.online import Online
from clickbridge.simulate.clicks import clicks_on_page
from clickbridge.types import Impression, ResultList


class Point(NamedTuple):
    searches: int
    clicks: int
    ndcg: float


def learning_curve(
    model: Online, lists: Sequence[ResultList], checkpoints: Sequence[int], rng: np.random.Generator
) -> list[Point]:
    """nDCG@10 of the learner's order after given numbers of searches. The lists are in the engine's order; labels are
    grades 0, 1, 2. The learner starts without clicks."""
    model.forget_clicks()
    out, clicks, done = [], 0, 0
    for checkpoint in checkpoints:
        while done < checkpoint:
            wanted = lists[int(rng.integers(len(lists)))]
            grades = dict(zip(wanted.results, wanted.labels or (), strict=True))
            page = model.rerank(wanted.query, wanted.results).doc_ids[: model.list_length]
            clicked = clicks_on_page([int(grades[d]) for d in page], rng)
            chosen = [d for d, c in zip(page, clicked, strict=True) if c]
            model.learn(Impression(wanted.query, page, chosen))
            clicks += len(chosen)
            done += 1
        out.append(Point(done, clicks, quality(model, lists)))
    return out


def quality(model: Online, lists: Sequence[ResultList]) -> float:
    run = {r.query_id: ranking.doc_ids for r, ranking in zip(lists, model.rerank_lists(lists), strict=True)}
    grades = {r.query_id: dict(zip(r.results, r.labels or (), strict=True)) for r in lists}
    values = evaluate_run(run, grades, parse_measures("nDCG@10"))["nDCG@10"]
    return sum(values.values()) / max(len(values), 1)


def against_the_engine(model: Online, lists: Sequence[ResultList], n_pages: int, rng: np.random.Generator) -> Verdict:
    """Compares the learner's order (first) with the incoming order (second) on interleaved pages."""
    return compare(lists, lambda r: model.rerank(r.query, r.results).doc_ids, lambda r: r.results, n_pages, rng)
