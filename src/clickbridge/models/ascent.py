"""Chooses weights by nDCG@5 on held-back lists: coordinate ascent over small grids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from clickbridge.graph.hold_back import MIN_USABLE, few_held
from clickbridge.models.candidates import Labelled
from clickbridge.models.formulas import BM25Formula, Formula, TermStatistics
from clickbridge.models.study import Study
from clickbridge.progress import Progress, silent
from clickbridge.search.index import SparseIndex
from clickbridge.types import ResultList, text_of_key
from clickbridge.views.fields import FieldCounts, default_weights, parse_fields
from clickbridge.views.text import Analyzer
from clickbridge.views.word import WordCounter

Array = np.ndarray[Any, Any]
FIELD_GRID = (0.0, 0.1, 0.2, 0.35, 0.6, 1.0, 1.7, 3.0, 5.0, 8.0, 14.0)
SCALES = (0.25, 0.5, 0.7, 1.4, 2.0, 4.0)
POOL_DEPTH = 20
ROWS_AT_ONCE = 10_000
"""Listed documents whose words are looked through together."""


def coordinate_ascent(
    start: Array,
    grid: Sequence[float],
    value: Callable[[Array], float],
    rounds: int = 4,
    least_gain: float = 1e-4,
    scales: Sequence[float] = SCALES,
    progress: Progress = silent,
) -> tuple[Array, float]:
    """Improves one coordinate at a time over the grid, then the scale of all, until a round gains nothing."""
    best, best_value = start.astype(np.float64), value(start)
    for number in range(rounds):
        progress(f"round {number + 1} of at most {rounds}")
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


def labelled(study: Study, lists: Sequence[ResultList], most: int | None = None) -> Labelled:
    """Held-back lists with the document numbers of the study's catalogue."""
    known = study.clicked().queries
    more = {} if most is None else {"most": most}
    return Labelled(lists, study.catalogue, known, **more)


# --- field weights ---------------------------------------------------------------------------------


def learn_field_weights(
    formula: Formula, language: str, stop_words: str, seed: int, study: Study
) -> tuple[dict[str, float], str]:
    """Field weights that maximise nDCG@5 on held-back lists with a formula, and one line for the user about them."""
    key = ("field weights", formula, language, stop_words, seed)
    return study.once(key, lambda: _field_weights(formula, language, stop_words, seed, study))


def bm25_field_weights(language: str, stop_words: str, seed: int, study: Study) -> tuple[dict[str, float], str]:
    """The field weights of BM25F with its usual parameters. Models with views and the cosine use them, too."""
    return learn_field_weights(BM25Formula(), language, stop_words, seed, study)


def document_field_weights(
    fields: str, language: str, stop_words: str, seed: int, study: Study
) -> tuple[dict[str, float], tuple[str, ...]]:
    """Field weights for views of document text, as given or as learned by BM25F, and lines for the user about them."""
    names = study.graph.field_names
    if fields != "auto":
        return parse_fields(fields, names), ()
    if len(names) == 1:
        return {names[0]: 1.0}, ()
    weights, note = bm25_field_weights(language, stop_words, seed, study)
    return weights, (note,)


def _field_weights(
    formula: Formula, language: str, stop_words: str, seed: int, study: Study
) -> tuple[dict[str, float], str]:
    names = study.graph.field_names
    if len(names) == 1:
        return {names[0]: 1.0}, f"one field, {names[0]}"
    lookup = _WordLookup(formula, language, stop_words, study)
    start = default_weights(names)
    # More than the usual tenth: a lexical model learns nothing else from the clicks.
    held, _ = study.hold_back(0.25, seed)
    # The engine behind the pages has matched all fields already, which makes a match in the body look worthless. So
    # the weights must also work for a search of the whole collection.
    ranker = lookup.ranker(start)
    pooled = held.lists([ranker], POOL_DEPTH, pages=False)
    lists = labelled(study, [*held.lists([ranker]), *pooled] if held.shown is not None else pooled)
    if len(lists) < MIN_USABLE:
        return dict(zip(names, start.tolist(), strict=True)), (
            few_held(len(lists), "query", "to learn field weights", "title, name and heading count 3, other fields 1")
        )

    def progress(line: str) -> None:
        study.progress(f"learning field weights, {line}")

    weights, found = coordinate_ascent(start, FIELD_GRID, lookup.value(lists), progress=progress)
    words = ", ".join(f"{n}:{w:.3g}" for n, w in zip(names, weights, strict=True) if w > 0)
    said = f"field weights {words} (nDCG@5 {found:.3f} on {len(lists)} held-back lists)"
    return dict(zip(names, weights.tolist(), strict=True)), said


class _WordLookup:
    """A formula applied to counted documents, for any field weights."""

    def __init__(self, formula: Formula, language: str, stop_words: str, study: Study) -> None:
        self.formula, self.catalogue = formula, study.catalogue
        self.vocabulary, self.counts = study.words(study.graph.field_names, language, stop_words)
        self.counter = WordCounter(Analyzer(language, stop_words), self.vocabulary, frozen=True)
        self.statistics = TermStatistics.of(self.counts, formula)

    def map(self, keys: Sequence[str]) -> sparse.csr_array:
        return self.formula.queries(self.counter.count(map(text_of_key, keys)), self.statistics)

    def ranker(self, weights: Array) -> Callable[[list[str], int], list[list[str]]]:
        index = SparseIndex(self.formula.documents(self.counts, self.statistics, weights))
        ids = self.catalogue.doc_ids
        return lambda keys, k: [[ids[i] for i in items] for items, _ in index.search_many(self.map(keys), k)]

    def value(self, lists: Labelled) -> Callable[[Array], float]:
        """nDCG@5 as a function of the field weights. It only uses words that a query and a listed document share."""
        shared, asked = self._shared(lists)
        n_terms, rows = self.counts.pattern.shape[1], shared.rows
        images_of = self.formula.weigher(shared, self.statistics)
        extra = asked.extra[lists.candidates.lists.owner] if self.formula.extra_columns else None

        def value(weights: Array) -> float:
            images = images_of(weights)
            if extra is None:
                return lists.ndcg(np.bincount(rows, asked.words * images.data, minlength=lists.n_rows))
            words = images.indices < n_terms
            scores = np.bincount(rows, asked.words * images.data[words], minlength=lists.n_rows)
            return lists.ndcg(scores + extra * np.asarray(images[:, [n_terms]].todense()).ravel())

        return value

    def _shared(self, lists: Labelled) -> tuple[FieldCounts, _Asked]:
        """One row for each listed document with the counts of the words of its query, and the weights that the query
        gives to these words."""
        queries = self.map(lists.candidates.keys)
        n_terms = self.counts.pattern.shape[1]
        words = sparse.csr_array(queries[:, :n_terms])
        extra = np.asarray(queries[:, [n_terms]].todense()).ravel() if self.formula.extra_columns else np.empty(0)
        owner, items = lists.candidates.lists.owner, lists.candidates.items
        tags = np.arange(1, len(self.counts.values) + 1, dtype=np.float64)
        pattern = self.counts.pattern
        tagged: Any = (tags, pattern.indices, pattern.indptr)
        entries = sparse.csr_array(tagged, shape=pattern.shape)
        present, blocks = ones_like(words), []
        for start in range(0, len(items), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            documents = entries[items[part]]
            both = sparse.csr_array(present[owner[part]].multiply(documents))
            given = sparse.csr_array(words[owner[part]].multiply(ones_like(documents)))
            both.sort_indices()
            given.sort_indices()
            blocks.append((both, given.data))
        stacked = sparse.csr_array(sparse.vstack([both for both, _ in blocks], format="csr"))
        values = self.counts.values[stacked.data.astype(np.int64) - 1]
        counts = FieldCounts(
            self.counts.names, sparse.csr_array(stacked, dtype=np.float32), values, self.counts.lengths[items]
        )
        return counts, _Asked(np.concatenate([given for _, given in blocks]).astype(np.float64), extra)


class _Asked(NamedTuple):
    """The query side: the weight of each shared word, and the extra coordinate if the formula has one."""

    words: Array
    extra: Array


def ones_like(matrix: sparse.csr_array) -> sparse.csr_array:
    parts: Any = (np.ones(len(matrix.data)), matrix.indices, matrix.indptr)
    return sparse.csr_array(parts, shape=matrix.shape)
