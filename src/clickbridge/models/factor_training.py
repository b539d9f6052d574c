"""Gradient descent on bilinear factors: samples from a log and its features, passes over them, and their quality.

score(q, d) = sum over views v of w_v x_v' y_v  +  x' U V' y  +  b_y' y. The first sum matches equal features of both
sides. For a loss without biases its weights are 1: it is an offset of the score, which descent does not change.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.engines.base import Engine
from clickbridge.errors import SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.log.preference import Preferences, preferences
from clickbridge.models.candidates import Labelled
from clickbridge.models.fitted import Array
from clickbridge.models.latent import Features
from clickbridge.models.negative_samples import MOST, NegativeSamples
from clickbridge.models.study import Known
from clickbridge.numerics.csr import csr_times_dense, entries
from clickbridge.numerics.factors import Descent, Factors, Samples, random_factors
from clickbridge.numerics.topk import paired_dots
from clickbridge.views.stack import ViewStack
from clickbridge.views.view import DenseView, TermView, View

START_SCALE = 0.1
"""Expected length of a feature's random first image."""
BLOCK = 1 << 16
"""Rows of lists that are scored at once."""


@dataclass(frozen=True)
class Objective:
    """The loss to minimise, the number of dimensions, and the size of the steps."""

    loss: str
    pairwise: bool
    """Whether a sample is a clicked document against an unclicked one, or one document by itself."""
    biases: bool
    matching: bool
    """Whether equal features of both sides match."""
    decay: float
    dim: int
    rate: float
    negatives: int
    seed: int
    pairs: str = "drawn"
    """Where pairs come from: unclicked documents drawn for each click, or the preferences of the log."""
    counts: bool = False
    """Whether a single document's aim is the response of its pair instead of 1."""


AT_ONCE = 150_000
"""Samples that descent goes through before it waits for another thread. To wait takes as long as thousands of them."""


class Training:
    """One run of gradient descent over the clicks of a GRAPH."""

    def __init__(
        self, graph: ClickGraph, known: Known, features: Features, objective: Objective, engine: Engine
    ) -> None:
        self.graph, self.features, self.objective, self.engine = graph, features, objective, engine
        self.matches = matching(features.q_views, features.d_views) if objective.matching else []
        self._translated = [sparse.csr_array(features.query_features @ match) for match in self.matches]
        self._rows = np.full(graph.n_queries, -1, dtype=np.int64)
        self._rows[known.clicked.numbers] = np.arange(len(known.clicked.numbers))
        self._responses = known.clicked.matrix
        self._descent = self._start()
        self._drawn: dict[int, Samples] = {}

    def _start(self) -> Descent:
        o, x, y = self.objective, self.features.query_features, self.features.doc_features
        n_globals = len(self.matches) if o.biases else 0
        factors = random_factors(x.shape[1], y.shape[1], o.dim, n_globals, START_SCALE, o.seed)
        factors.b_g[:] = 1.0
        return Descent(x, y, factors, o.loss, o.rate, o.decay, o.biases, self.engine)

    @property
    def epochs(self) -> int:
        """The number of passes so far."""
        return self._descent.epochs

    @property
    def factors(self) -> Factors:
        """The mean of the factors over all passes so far; before the first pass, their initial values."""
        return self._descent.mean

    @property
    def match_weights(self) -> Array:
        """One weight for each pair of matching views."""
        return self.factors.b_g if self.objective.biases else np.ones(len(self.matches))

    def run(self, end: int, at_once: bool = False) -> None:
        """Runs one more pass, with newly drawn negative samples; small passes several at once, if that is allowed.
        `end` passes are the most there will be in all: for others nothing is drawn."""
        now, ahead = self.epochs, self._descent.threads < self.engine.threads
        samples, later = [self._next(now)], list[int]()
        if ahead:
            # The first passes at once have to wait for their samples. So they are a quarter of what is left at most.
            most = max((end - now) // 4, 1) if at_once else 1
            n = min(max(AT_ONCE // max(len(samples[0]), 1), 1), most)
            samples += [self._next(epoch) for epoch in range(now + 1, now + n)]
            later = [epoch for epoch in range(now + n, min(now + 2 * n, end)) if epoch not in self._drawn]
        if later:
            self._meanwhile(samples, later)
        else:
            self._descend(samples)
        if not all(np.isfinite(array).all() for array in self._descent.factors.arrays):
            raise SettingError(f"learning_rate {self.objective.rate:g} is too large, the factors overflow: lower it")

    def _next(self, epoch: int) -> Samples:
        drawn = self._drawn.pop(epoch, None)
        return self.samples(epoch) if drawn is None else drawn

    def _descend(self, passes: list[Samples]) -> None:
        for samples in passes:
            self._descent.epoch(samples)

    def _meanwhile(self, passes: list[Samples], next_ones: list[int]) -> None:
        """Draws the samples of the next passes in another thread while descent runs. They depend only on the number of
        the pass."""

        def draw() -> None:
            for epoch in next_ones:
                self._drawn[epoch] = self.samples(epoch)

        for _ in self.engine.map(lambda work: work(), [lambda: self._descend(passes), draw]):
            pass

    # --- samples ---------------------------------------------------------------------------------

    def samples(self, epoch: int) -> Samples:
        """For each click, some documents that were shown with it and not clicked. If the log has no result pages,
        documents drawn at random."""
        rng = np.random.default_rng([self.objective.seed, epoch])
        query, positive, negative = self._pairs(rng)
        query = self._rows[query]
        if self.objective.pairwise:
            match = self._matched(query, positive) - self._matched(query, negative) if self.matches else None
            return self._as_samples(query, positive, negative, np.ones(len(query)), match)
        docs = np.stack([positive, negative], axis=1).ravel()
        query = np.repeat(query, 2)
        if self.objective.counts:
            query, docs = self._each_once(query, docs, rng)
            target = self._worth(query, docs)
        else:  # each clicked document once for each of its negatives
            target = np.tile([1.0, 0.0], len(positive))
        match = self._matched(query, docs) if self.matches else None
        return self._as_samples(query, docs, np.full(len(docs), -1), target, match)

    def _each_once(self, query: Array, doc: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """The pairs without repetitions, in random order: a pair has one response, however often it was drawn."""
        keys = rng.permutation(np.unique(query * self.graph.n_docs + doc))
        return keys // self.graph.n_docs, keys % self.graph.n_docs

    def _pairs(self, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Rows of (query, preferred document, other document), by number in the GRAPH, in random order."""
        if self.objective.pairs == "drawn":
            return self._negatives.draw(self.objective.negatives, rng)
        found = self._preferences
        some = rng.permutation(len(found)) if len(found) <= MOST else rng.choice(len(found), MOST, replace=False)
        return found.query[some], found.better[some], found.worse[some]

    @cached_property
    def _negatives(self) -> NegativeSamples:
        return NegativeSamples(self.graph, self._counts)

    @cached_property
    def _preferences(self) -> Preferences:
        pages = self.graph.impressions
        found = preferences(pages, self.graph.pairs, "counts" if pages is None else "skip-above")
        return found.only(self._counts(found.query, found.better))

    def _counts(self, query: Array, doc: Array) -> Array:
        """Whether the settings that count clicks keep a click."""
        return self._worth(self._rows[query], doc) > 0

    def _worth(self, query: Array, doc: Array) -> Array:
        """The response of each pair; 0 for one that the settings that count clicks leave out."""
        out, known = np.zeros(len(query)), query >= 0
        out[known] = entries(self._responses, query[known], doc[known])
        return out

    def _matched(self, query: Array, doc: Array) -> Array:
        """x_v' y_v of each pair, a column for each pair of matching views."""
        rows = [x[query] for x in self._translated]
        return matched(rows, self.features.doc_features, np.arange(len(doc) + 1), doc, self.engine)

    def _as_samples(
        self, query: Array, positive: Array, negative: Array, target: Array, match: Array | None
    ) -> Samples:
        """Matches of equal features: with biases, their weights are learned; without, they are an offset."""
        nothing, zero = np.zeros((len(query), 0)), np.zeros(len(query))
        if match is None:
            return Samples(query, positive, negative, target, nothing, zero)
        of_pair, offset = (match, zero) if self.objective.biases else (nothing, match.sum(axis=1))
        return Samples(query, positive, negative, target, of_pair, offset)


class Judge:
    """Measures nDCG@5 on held-back lists during training. Only the features of those lists are kept."""

    def __init__(self, training: Training, lists: Labelled, queries: sparse.csr_array) -> None:
        """`queries` has the features of each list's query."""
        features, candidates = training.features, lists.candidates
        self.training, self.lists = training, lists
        docs, self._items = np.unique(candidates.items, return_inverse=True)
        self._owner = candidates.lists.owner
        self._x, self._y = queries, sparse.csr_array(features.doc_features[docs])
        translated = [sparse.csr_array(queries @ match) for match in training.matches]
        self._matched = matched(translated, self._y, candidates.lists.indptr, self._items, training.engine)
        mapped, scorable = (np.diff(m.indptr) > 0 for m in (self._x, self._y))
        self._scored = mapped[self._owner] & scorable[self._items]

    def value(self) -> float:
        factors, engine = self.training.factors, self.training.engine
        a, b = csr_times_dense(self._x, factors.u, engine), csr_times_dense(self._y, factors.v, engine)
        scores = self._matched @ self.training.match_weights + np.asarray(self._y @ factors.b_y)[self._items]
        for start in range(0, len(scores), BLOCK):
            part = slice(start, start + BLOCK)
            scores[part] += np.einsum("ij,ij->i", a[self._owner[part]], b[self._items[part]])
        return self.lists.ndcg(np.where(self._scored, scores, -np.inf))


def matched(
    queries: list[sparse.csr_array], docs: sparse.csr_array, indptr: Array, doc: Array, engine: Engine
) -> Array:
    """Row i of each matrix of `queries` times rows `doc[indptr[i]:indptr[i + 1]]` of `docs`: a column per matrix."""
    columns = [paired_dots(x, docs, indptr, doc, engine) for x in queries]
    return np.stack(columns, axis=1) if columns else np.zeros((len(doc), 0))


# --- equal features of both sides ------------------------------------------------------------------


def matching(queries: ViewStack, docs: ViewStack) -> list[sparse.csr_array]:
    """For each pair of views with the same kind of feature, which columns are equal."""
    out = []
    shape = queries.width, docs.width
    for q_view, (q_start, _) in zip(queries.views, queries.spans, strict=True):
        for d_view, (d_start, _) in zip(docs.views, docs.spans, strict=True):
            one, two = _same_features(q_view, d_view)
            if len(one):
                parts: Any = (np.ones(len(one), dtype=np.float32), (one + q_start, two + d_start))
                out.append(sparse.csr_array(sparse.coo_array(parts, shape=shape)))
    return out


def _same_features(q_view: View, d_view: View) -> tuple[Array, Array]:
    """The columns of both views for the same term, or for the same coordinate of the same dense vectors."""
    if q_view.kind == d_view.kind and isinstance(q_view, TermView) and isinstance(d_view, TermView) and q_view.of_text:
        numbers = d_view.vocabulary
        shared = [(number, numbers[term]) for term, number in q_view.vocabulary.items() if term in numbers]
        pairs = np.array(shared, dtype=np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]
    if isinstance(q_view, DenseView) and q_view.name == d_view.name and q_view.width == d_view.width:
        return np.arange(q_view.width), np.arange(d_view.width)
    return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
