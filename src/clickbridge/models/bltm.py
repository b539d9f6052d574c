"""The bilingual topic model (Gao, Toutanova and Yih 2011; a baseline of 13).

A query and the title of a document clicked for it are two texts of one mixture of topics, each side with words
of its own for a topic. Posterior regularisation draws the two sides' shares of each topic together
(`numerics/bltm.py`). A document is ranked by the chance that its topics and its own words give the query:

    log p(q | d) = sum_{w in q} log( (1 - t) p_unigram(w | d) + t sum_k phi^q_k(w) theta_d,k )

Formally that is an S-function with one coordinate for each word of the vocabulary and no zero among a document's
coordinates: no map worth writing down. So it scores lists, and searches by scoring every document.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from clickbridge.errors import MissingPart, SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.hold_back import MIN_USABLE
from clickbridge.graph.responses import responses
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.models.base import Array, Model, check_k, model_of, query_of
from clickbridge.models.latent import COUNTING
from clickbridge.models.lexical import LMIR
from clickbridge.models.tuning import LabelledLists
from clickbridge.numerics.bltm import em_step, fold_in, mixture_scores, normalised
from clickbridge.types import Hit, Ranking, ResultList, text_of_key
from clickbridge.views.fields import HEADINGS
from clickbridge.views.text import Analyzer
from clickbridge.views.word import URL_FIELD, Vocabulary, WordCounter, widen

WEIGHT_GRID = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)
SEED_SHARE = 0.5
"""How much of a topic's first words are those of the document it starts from; the rest is everybody's."""
SETTLED = 1e-5
"""EM stops when the bound gains less than this share of itself."""


class BLTM(Model):
    """Topics of clicked pairs, mixed with a unigram model of the documents."""

    name = "bltm"
    about = "bilingual topic model: query and title share topics"
    paper = "13 6.1.1"
    settings: ClassVar[tuple[str, ...]] = (
        "dim", "iterations", "tie", "topic_prior", "word_prior", "topic_weight", "mu", *COUNTING,
        "fields", "language", "stop_words", "seed",
    )  # fmt: skip
    defaults: ClassVar[dict[str, object]] = {"dim": 300, "iterations": 20}

    dim: int
    iterations: int
    tie: float
    topic_prior: float
    word_prior: float
    topic_weight: str
    mu: float
    fields: str
    language: str
    stop_words: str
    seed: int

    vocabulary_: Vocabulary
    phi_query_: Array
    """Word probabilities, words by topics."""
    phi_title_: Array
    mixture_: Array
    """The common topic mixture."""
    theta_: Array
    """Topic mixtures of the documents, folded in by their titles."""
    unigram_: LMIR
    topic_weight_: float
    bounds_: list[float]

    # --- learning --------------------------------------------------------------------------------

    def _fit(self, graph: ClickGraph) -> None:
        if not graph.field_names:
            raise MissingPart(f"{self.name} needs document text: ingest with --docs")
        if not any(graph.query_texts):
            raise MissingPart(f"{self.name} needs query text: ingest a log that has it, or use lsi-qd")
        if "topic_weight" not in self.tuned_:
            self.tuned_["topic_weight"] = self._tune(graph)
        self._learn(graph)
        self.topic_weight_ = self.tuned_["topic_weight"]
        self.notes_.append(
            f"{self.name}: {self.dim} topics, {len(self.bounds_)} rounds; topics weigh {self.topic_weight_:g}"
        )

    def _learn(self, graph: ClickGraph) -> None:
        self.unigram_ = LMIR(
            mu=self.mu, fields=self.fields, language=self.language, stop_words=self.stop_words, seed=self.seed
        )
        if "unigram" in self.tuned_:
            self.unigram_.tuned_, self.unigram_.applied_ = dict(self.tuned_["unigram"]), []
            self.unigram_.refit(graph)
        else:
            self.unigram_.fit(graph)
            self.tuned_["unigram"] = self.unigram_.tuned_
        self.vocabulary_ = Vocabulary()
        counter = WordCounter(Analyzer(self.language, self.stop_words), self.vocabulary_)
        queries, titles = counter.count(graph.query_texts), counter.count(*self._titles(graph))
        queries = widen(queries, len(self.vocabulary_))
        counted = responses(graph, **{name: getattr(self, name) for name in COUNTING})
        self.notes_ += counted.notes
        pairs = counted.matrix.tocoo()
        query, doc = pairs.coords
        has_words = (np.diff(queries.indptr) > 0)[query] & (np.diff(titles.indptr) > 0)[doc]
        query, doc, weight = query[has_words], doc[has_words], pairs.data[has_words].astype(np.float64)
        self._em(sparse.csr_array(queries[query]), sparse.csr_array(titles[doc]), weight, doc)
        self.theta_ = fold_in(titles, self.phi_title_, self.mixture_, self.topic_prior)

    def _titles(self, graph: ClickGraph) -> tuple[list[str], bool]:
        """The text that shares topics with queries: title, name or heading; without any, all text."""
        name = next((n for n in HEADINGS if n in graph.field_names), None)
        if name is not None:
            return graph.field(name), False
        columns = [graph.field(n) for n in graph.field_names if n != URL_FIELD] or [graph.field(URL_FIELD)]
        return ["\n".join(texts) for texts in zip(*columns, strict=True)], False

    def _em(self, queries: sparse.csr_array, titles: sparse.csr_array, weight: Array, doc: Array) -> None:
        n_words, n_pairs = len(self.vocabulary_), len(weight)
        self.phi_query_, self.phi_title_ = self._start(queries, titles, weight, doc)
        theta = np.full((n_pairs, self.dim), 1 / self.dim)
        dual = np.zeros((n_pairs, self.dim))
        self.bounds_ = []
        for _ in range(self.iterations if n_pairs and n_words else 0):
            bound, self.phi_query_, self.phi_title_ = em_step(
                queries, titles, weight, theta, self.phi_query_, self.phi_title_, dual,
                self.tie, self.topic_prior, self.word_prior,
            )  # fmt: skip
            self.bounds_.append(bound)
            if len(self.bounds_) > 1 and bound - self.bounds_[-2] < SETTLED * abs(bound):
                break
        mass = weight @ theta if n_pairs else np.ones(self.dim)
        self.mixture_ = mass / mass.sum()

    def _start(
        self, queries: sparse.csr_array, titles: sparse.csr_array, weight: Array, doc: Array
    ) -> tuple[Array, Array]:
        """Each topic starts from what was said of one clicked document, drawn by its clicks."""
        rng = np.random.default_rng(self.seed)
        n_words = len(self.vocabulary_)
        clicks = np.bincount(doc, weight) if len(doc) else np.zeros(0)
        with_clicks = np.flatnonzero(clicks)
        if not len(with_clicks):
            return (np.full((n_words, self.dim), 1 / max(n_words, 1)),) * 2
        few = len(with_clicks) < self.dim
        chosen = rng.choice(with_clicks, self.dim, replace=few, p=clicks[with_clicks] / clicks.sum())
        member = sparse.csr_array((weight, (doc, np.arange(len(doc)))), shape=(len(clicks), len(doc)))
        out = []
        for side in (queries, titles):
            said = normalised(np.asarray((member[chosen] @ side).toarray().T, dtype=np.float64))
            common = np.asarray(side.T @ weight, dtype=np.float64) + 1
            noise = rng.uniform(0.5, 1.5, size=said.shape)
            out.append(normalised(SEED_SHARE * said + (1 - SEED_SHARE) * noise * (common / common.sum())[:, None]))
        return out[0], out[1]

    def _tune(self, graph: ClickGraph) -> float:
        """The weight of the topics by nDCG@5 on held-back lists."""
        if self.topic_weight != "auto":
            return self._given_weight()
        held = graph.hold_back(seed=self.seed)
        if held.graph.pairs.clicks.any():
            self._learn(held.graph)
            self.topic_weight_ = 0.5
            lists = LabelledLists(held.lists([lambda query, k: self.rank(query, k).doc_ids]))
            if len(lists) >= MIN_USABLE:
                return self._best_weight(lists)
        self.notes_.append(f"{self.name}: too little is held back to weigh topics; they weigh 0.1")
        return 0.1

    def _given_weight(self) -> float:
        try:
            weight = float(self.topic_weight)
        except ValueError:
            weight = -1.0
        if not 0 <= weight <= 1:
            raise SettingError(f"topic_weight is auto or a number, 0 to 1; got {self.topic_weight!r}")
        return weight

    def _best_weight(self, lists: LabelledLists) -> float:
        values = []
        for weight in WEIGHT_GRID:
            self.topic_weight_ = weight
            values.append(lists.ndcg(np.concatenate(self.score_lists(lists.lists))))
        best = int(np.argmax(values))
        found = f"nDCG@5 {values[best]:.3f} on {len(lists)} held-back lists"
        self.notes_.append(f"{self.name}: topic weight {WEIGHT_GRID[best]:g} ({found})")
        return WEIGHT_GRID[best]

    # --- using -----------------------------------------------------------------------------------

    @cached_property
    def _counter(self) -> WordCounter:
        return WordCounter(Analyzer(self.language, self.stop_words), self._all_words, frozen=True)

    @cached_property
    def _all_words(self) -> Vocabulary:
        """Words of the topics, then those of the unigram model alone."""
        return Vocabulary(dict.fromkeys([*self.vocabulary_, *self.unigram_.vocabulary_]))

    @cached_property
    def _columns(self) -> Array:
        """The unigram model's column of each word, -1 for none."""
        return np.array([self.unigram_.vocabulary_.get(word, -1) for word in self._all_words], dtype=np.int64)

    def _queries(self, keys: Sequence[str]) -> tuple[Array, Array, Array, Array]:
        counts = self._counter.count(text_of_key(key) for key in keys)
        words = np.where(counts.indices < len(self.vocabulary_), counts.indices, -1).astype(np.int64)
        return counts.indptr, words, self._columns[counts.indices], counts.data.astype(np.float64)

    @cached_property
    def _scorable(self) -> Array:
        return self.unigram_.scorable_

    def _scores(self, keys: Sequence[str], indptr: Array, items: Array) -> Array:
        return mixture_scores(
            self._queries(keys), indptr, items, self.theta_, self.phi_query_, self.topic_weight_,
            self.unigram_.images_, self.unigram_.collection_,
        )  # fmt: skip

    def score_lists(self, lists: Sequence[ResultList]) -> list[Array]:
        if not lists:
            return []
        keys = [query_of(result) for result in lists]
        indptr = np.concatenate([[0], np.cumsum([len(r.results) for r in lists], dtype=np.int64)]).astype(np.int64)
        items = np.array([self._doc_numbers.get(d, -1) for r in lists for d in r.results], dtype=np.int64)
        known = items >= 0
        known[known] = self._scorable[items[known]]
        mapped = np.repeat(np.diff(self._queries(keys)[0]) > 0, np.diff(indptr))
        scores = self._scores(keys, indptr, np.where(known, items, 0))
        return np.split(np.where(known & mapped, scores, -np.inf), indptr[1:-1])

    def rank(self, query: str, k: int = 10) -> Ranking:
        check_k(k)
        items = np.flatnonzero(self._scorable)
        result = ResultList("", query, [self.doc_ids_[i] for i in items])
        (scores,) = self.score_lists([result])
        best = np.lexsort((items, -scores))[:k]
        return Ranking(tuple(Hit(result.results[i], float(scores[i])) for i in best if np.isfinite(scores[i])))

    # --- files -----------------------------------------------------------------------------------

    def _report(self) -> dict[str, Any]:
        return {"dim": self.dim, "views": ["word"], "weights": {"topics": self.topic_weight_}, "bounds": self.bounds_}

    def _write(self, writer: PartWriter) -> None:
        writer.strings("terms", self.vocabulary_.terms)
        for name in ("phi_query", "phi_title", "mixture", "theta"):
            writer.array(name, getattr(self, name + "_"))
        writer.array("topic_weight", np.array([self.topic_weight_]))
        self.unigram_._write_all(writer.part("0"))

    def _read(self, artifact: Artifact) -> None:
        self.vocabulary_ = Vocabulary(artifact.strings("terms"))
        for name in ("phi_query", "phi_title", "mixture", "theta"):
            setattr(self, name + "_", artifact.array(name))
        self.topic_weight_ = float(artifact.array("topic_weight")[0])
        self.bounds_ = list(self.report_["bounds"])
        unigram = model_of(artifact.part("0"))
        assert isinstance(unigram, LMIR)
        self.unigram_ = unigram
