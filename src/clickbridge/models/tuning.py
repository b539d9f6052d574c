"""Choosing numbers by nDCG@5 on held-back lists: coordinate ascent over small grids."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.hold_back import MIN_USABLE
from clickbridge.numerics.ndcg import ndcg_of_lists
from clickbridge.numerics.topk import paired_dots
from clickbridge.types import ResultList
from clickbridge.views.fields import FieldCounts, default_weights, parse_fields

if TYPE_CHECKING:
    from clickbridge.models.base import Model
    from clickbridge.models.lexical import LexicalModel

Array = np.ndarray[Any, Any]
FIELD_GRID = (0.0, 0.1, 0.2, 0.35, 0.6, 1.0, 1.7, 3.0, 5.0, 8.0, 14.0)
SCALES = (0.25, 0.5, 0.7, 1.4, 2.0, 4.0)
MEASURED_AT = 5
POOL_DEPTH = 20
MOST_LISTS = 20_000
"""Lists that choices are made on; the mean nDCG of so many is known to three places, and more only cost time."""


class LabelledLists:
    """Lists as flat arrays: `labels[indptr[i]:indptr[i + 1]]` belong to list i.

    Results are put in an order of no meaning first. Pages come in the order of some engine, and people click
    what stands on top: left as it is, a model of many ties would look good for keeping that order. Of more than
    MOST_LISTS lists so many are drawn, always the same.
    """

    def __init__(self, lists: Sequence[ResultList]) -> None:
        usable = [result for result in lists if result.labels and max(result.labels) > 0]
        self.lists = [shuffled(result) for result in at_most(MOST_LISTS, usable, seed=0)]
        self.indptr = np.concatenate([[0], np.cumsum([len(r.results) for r in self.lists], dtype=np.int64)])
        self.labels = np.array([label for r in self.lists for label in r.labels or ()], dtype=np.float64)

    def __len__(self) -> int:
        return len(self.lists)

    def ndcg(self, scores: Array) -> float:
        return float(np.nanmean(ndcg_of_lists(scores, self.labels, self.indptr, MEASURED_AT)))


def at_most(n: int, lists: list[ResultList], seed: int) -> list[ResultList]:
    """The lists, or of more than `n` so many drawn at random, in the order they came."""
    if len(lists) <= n:
        return lists
    drawn = np.random.default_rng(seed).choice(len(lists), n, replace=False)
    return [lists[i] for i in np.sort(drawn)]


def shuffled(result: ResultList) -> ResultList:
    """The same list in an order that depends on the query and the ids alone; what the order was stays as
    scores, for a model that goes by it."""
    salt = result.query.encode()
    order = sorted(range(len(result.results)), key=lambda i: zlib.crc32(result.results[i].encode(), zlib.crc32(salt)))
    labels = result.labels or []
    scores = result.scores or [float(-i) for i in range(len(labels))]
    return ResultList(
        result.query_id,
        result.query,
        [result.results[i] for i in order],
        [labels[i] for i in order],
        [scores[i] for i in order],
        result.vectors,
    )


def coordinate_ascent(
    start: Array,
    grid: Sequence[float],
    value: Callable[[Array], float],
    rounds: int = 4,
    least_gain: float = 1e-4,
    scales: Sequence[float] = SCALES,
) -> tuple[Array, float]:
    """Improves one coordinate at a time over the grid, then the scale of all, until a round gains nothing."""
    best, best_value = start.astype(np.float64), value(start)
    for _ in range(rounds):
        before = best_value
        moves = [(i, candidate) for i in range(len(best)) for candidate in grid]
        for i, candidate in [*moves, *((None, factor) for factor in scales)]:
            trial = best.copy()
            if i is None:
                trial *= candidate
            else:
                trial[i] = candidate
            if not trial.any() or np.array_equal(trial, best):
                continue
            trial_value = value(trial)
            if trial_value > best_value + least_gain:
                best, best_value = trial, trial_value
        if best_value <= before:
            break
    return best, best_value


def learn_field_weights(model: LexicalModel, graph: ClickGraph, counts: FieldCounts) -> tuple[Array, str]:
    """Field weights that maximise nDCG@5 on held-back lists, and one line that says what was done."""
    start = default_weights(counts.names)
    if len(counts.names) == 1:
        return np.ones(1), f"{model.name}: one field, {counts.names[0]}"
    # More than the usual tenth: a lexical model learns nothing else from the clicks.
    held = graph.hold_back(fraction=0.25, seed=model.seed)
    # Pages were chosen by an engine that matched all fields already, which makes a match in the body look
    # worthless; so the weights must also serve a search of the whole collection.
    ranker = _pool_ranker(model, counts, start)
    pooled = held.lists([ranker], POOL_DEPTH, pages=False)
    lists = LabelledLists([*held.lists([ranker]), *pooled] if held.shown is not None else pooled)
    if len(lists) < MIN_USABLE:
        return start, (
            f"{model.name}: {len(lists)} usable held-back queries are too few to learn field weights; "
            "title, name and heading count 3, other fields 1"
        )
    value = _value_of_weights(model, graph, counts, lists)
    weights, found = coordinate_ascent(start, FIELD_GRID, value)
    words = ", ".join(f"{n}:{w:.3g}" for n, w in zip(counts.names, weights, strict=True) if w > 0)
    return (
        weights,
        f"{model.name}: field weights {words} (nDCG@5 {found:.3f} on {len(lists)} held-back lists)",
    )


def _value_of_weights(
    model: LexicalModel, graph: ClickGraph, counts: FieldCounts, lists: LabelledLists
) -> Callable[[Array], float]:
    """nDCG@5 as a function of the field weights, over only the documents and words the lists need."""
    docs, items = np.unique(
        np.array([graph.doc_idx(d) for r in lists.lists for d in r.results], dtype=np.int64),
        return_inverse=True,
    )
    queries = model.map_queries([r.query for r in lists.lists])
    n_terms = counts.pattern.shape[1]
    columns = np.unique(queries.indices[queries.indices < n_terms])
    part = counts.restrict(docs, columns)
    extra = np.arange(n_terms, n_terms + model.extra_columns)
    narrow = sparse.csr_array(queries[:, np.concatenate([columns, extra])])

    def value(weights: Array) -> float:
        images = model.document_map(part, weights, columns)
        return lists.ndcg(paired_dots(narrow, images, lists.indptr, items))

    return value


def _pool_ranker(model: LexicalModel, counts: FieldCounts, weights: Array) -> Callable[[str, int], list[str]]:
    from clickbridge.search.index import SparseIndex

    index = SparseIndex(model.document_map(counts, weights))

    def rank(query: str, k: int) -> list[str]:
        items, _, found = index.search(model.map_queries([query]), k)
        return [model.doc_ids_[i] for i in items[0, : found[0]]]

    return rank


def document_field_weights(
    graph: ClickGraph, fields: str, language: str, stop_words: str, seed: int, owner: Model
) -> dict[str, float]:
    """Field weights for views of document text: as given, or as BM25F learns them, noted by the `owner`."""
    from clickbridge.models.lexical import BM25

    if fields != "auto":
        return parse_fields(fields, graph.field_names)
    if len(graph.field_names) == 1:
        return {graph.field_names[0]: 1.0}
    probe = BM25(language=language, stop_words=stop_words, seed=seed).fit(graph)
    owner.notes_ += [f"{owner.name}: {note.removeprefix(f'{probe.name}: ')}" for note in probe.notes_]
    return dict(zip(probe.field_names_, probe.field_weights_.tolist(), strict=True))
