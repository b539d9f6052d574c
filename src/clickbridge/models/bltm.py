"""The bilingual topic model (Gao, Toutanova and Yih 2011; a baseline of 13).

A query and the title of a document clicked for it share one mixture of topics, and each side has its own words for a
topic. Posterior regularisation draws the two sides' shares of each topic together
(`numerics/bltm.py`). A document is ranked by the chance that its topics and its own words give the query:

    log p(q | d) = sum_{w in q} log( (1 - t) p_unigram(w | d) + t sum_k phi^q_k(w) theta_d,k )

Formally that is an S-function with one coordinate for each word of the vocabulary and no zero among a document's
coordinates, so its maps are too large to store. It scores lists, and searches by scoring every document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from clickbridge.errors import MissingPart, SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.hold_back import MIN_USABLE, few_held
from clickbridge.graph.notes import said_by
from clickbridge.io.values import expect, stored
from clickbridge.models.ascent import labelled
from clickbridge.models.candidates import Candidates, Query
from clickbridge.models.catalogue import heading_of
from clickbridge.models.fitted import Array, Choices, Fitted
from clickbridge.models.lexical import LMIR, FittedLexical, LexicalChoices
from clickbridge.models.model import Model
from clickbridge.models.study import Study
from clickbridge.numerics.bltm import em_step, fold_in, mixture, normalised
from clickbridge.numerics.ragged import Ragged
from clickbridge.numerics.row import counted
from clickbridge.search.index import Found, best
from clickbridge.settings import ADVANCED, Counting, Fields, Seeded, setting, settings
from clickbridge.types import text_of_key
from clickbridge.views.text import Analyzer
from clickbridge.views.word import URL_FIELD, Vocabulary, WordCounter, widen

DEFAULT, WEIGHT_GRID = 0.1, (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)
POOL_WEIGHT = 0.5
"""Of the topics, where the model itself finds the documents that weights are judged on."""
SEED_SHARE = 0.5
"""How much of a topic's first words are those of the document it starts from; the rest is everybody's."""
SETTLED = 1e-5
"""EM stops when the bound gains less than this share of itself."""


@settings
class BLTMSettings(Counting, Fields, Seeded):
    dim: int = setting(300, "number of topics", 1, 100_000)
    iterations: int = setting(20, "the most rounds of EM", 1, 10_000)
    tie: float = setting(1.0, "how strongly query and title are drawn to the same topics; 0 not at all", 0, 1e6)
    topic_prior: float = setting(1.01, "Dirichlet prior of a pair's topics", 1, 1000, group=ADVANCED)
    word_prior: float = setting(1.01, "Dirichlet prior of a topic's words", 1, 1000, group=ADVANCED)
    topic_weight: str = setting(
        "auto", "weight of the topics against the unigram model, 0 to 1; auto chooses it on held-back clicks"
    )
    mu: float = setting(200.0, "strength of the Dirichlet prior of the unigram model, in words", 1e-6, 1e9)


@stored
@dataclass(frozen=True, kw_only=True)
class BLTMChoices(Choices):
    unigram: LexicalChoices
    topic_weight: float


@stored
@dataclass(frozen=True, eq=False)
class Topics:
    """Word probabilities of both sides, words by topics, and how common each topic is."""

    phi_query: Array
    phi_title: Array
    mixture: Array
    bounds: tuple[float, ...]
    """The penalised bound after each round of EM."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedBLTM(Fitted):
    """Topics, each document's share of each topic, and the unigram model as the only part."""

    can: ClassVar[frozenset[str]] = frozenset({"search", "new queries"})

    settings: BLTMSettings
    choices: BLTMChoices
    parts: tuple[FittedLexical]
    vocabulary: Vocabulary
    topics: Topics
    theta: Array
    """Topic mixtures of the documents, folded in by their titles."""
    _counter: WordCounter = field(init=False, repr=False)
    _columns: Array = field(init=False, repr=False)
    _collection_weights: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        unigram, s = self.unigram, self.settings
        # Words of the topics, then those of the unigram model alone; and the latter's column of each, -1 for none.
        words = Vocabulary(dict.fromkeys([*self.vocabulary, *unigram.vocabulary]))
        columns = np.array([unigram.vocabulary.get(word, -1) for word in words], dtype=np.int64)
        last = unigram.images[:, [unigram.images.shape[1] - 1]].toarray().ravel().astype(np.float64)
        counter = WordCounter(Analyzer(s.language, s.stop_words), words, frozen=True)
        self._derive(_counter=counter, _columns=columns, _collection_weights=last)

    def check_stored(self) -> None:
        super().check_stored()
        n_topics = self.topics.mixture.size
        expect("the mixture of topics", self.topics.mixture, (n_topics,))
        for phi in (self.topics.phi_query, self.topics.phi_title):
            expect("words of topics", phi, (len(self.vocabulary), n_topics))
        expect("topics of documents", self.theta, (None, n_topics))

    @property
    def unigram(self) -> FittedLexical:
        return self.parts[0]

    @property
    def topic_weight(self) -> float:
        return self.choices.topic_weight

    @property
    def phi_query(self) -> Array:
        return self.topics.phi_query

    @property
    def phi_title(self) -> Array:
        return self.topics.phi_title

    @property
    def mixture(self) -> Array:
        return self.topics.mixture

    @property
    def bounds(self) -> tuple[float, ...]:
        return self.topics.bounds

    # --- scores ----------------------------------------------------------------------------------

    def score_items(self, query: Query, items: Array, incoming: Sequence[float] | None = None) -> Array:
        return self.scores(Candidates.one(query, items))

    def scores(self, candidates: Candidates) -> Array:
        rows = [counted(self._counter.columns(text_of_key(query.key))) for query in candidates.queries]
        asked = Ragged.of_lengths([len(row.columns) for row in rows])
        columns, counts = (
            np.concatenate([np.empty(0, dtype=kind), *(row[part] for row in rows)])
            for part, kind in enumerate((np.int64, np.float64))
        )
        items = candidates.items
        known = candidates.lists.kept_rows(asked.lengths > 0) & (items >= 0)
        known[known] = self.unigram.scorable[items[known]]
        out = np.zeros(len(items))
        topic_words = np.where(columns < len(self.vocabulary), columns, -1)
        images = self.unigram.images
        mixture(
            asked.indptr, topic_words, self._columns[columns], counts, candidates.lists.indptr,
            np.where(known, items, 0), self.theta, self.phi_query, self.topic_weight,
            (images.indptr, images.indices, images.data, self._collection_weights), self.unigram.statistics.shares, out,
        )  # fmt: skip
        return np.where(known, out, -np.inf)

    def search(self, query: Query, k: int) -> Found:
        scores = self.score_items(query, np.arange(len(self.catalogue)))
        return best(scores, np.isfinite(scores), k)

    def describe(self) -> dict[str, Any]:
        weights = {"topics": self.topic_weight}
        return {"dim": self.settings.dim, "views": ["word"], "weights": weights, "bounds": list(self.bounds)}


class BLTM(Model):
    """The bilingual topic model: a query and the title clicked for it are two texts about the same topics.

    The topics are learned by EM, and mixed with a unigram model of the documents (Gao, Toutanova and Yih 2011). `dim`
    is the number of topics. The model scores every document when it searches, so search is slow on large collections.

    Examples
    --------
    >>> from clickbridge import BLTM, example_graph
    >>> model = BLTM(dim=4).fit(example_graph())
    >>> model.rerank("where to sleep", ["slice", "hotels", "rooms"]).doc_ids
    ['hotels', 'rooms', 'slice']
    """

    name = "bltm"
    about = "bilingual topic model: query and title share topics"
    paper = "13 6.1.1"
    Settings = BLTMSettings
    fitted_type: ClassVar[type[Fitted]] = FittedBLTM

    def unigram(self) -> LMIR:
        """The language model that is mixed with the topics, not fitted."""
        s: BLTMSettings = self.settings
        return LMIR(mu=s.mu, fields=s.fields, language=s.language, stop_words=s.stop_words, seed=s.seed)

    # --- choosing --------------------------------------------------------------------------------

    def choose(self, study: Study) -> BLTMChoices:
        """The unigram model's choices, and the weight of the topics that gives the best nDCG@5 on held-back lists."""
        s: BLTMSettings = self.settings
        given = None if s.topic_weight == "auto" else parse_weight(s.topic_weight)
        check_texts(self.name, study.graph)
        if given is not None:
            return BLTMChoices(unigram=self.unigram().choose(study), topic_weight=given)
        held, rest = study.hold_back(seed=s.seed)
        if not rest.graph.pairs.clicks.any():
            note = f"{self.name}: no click is left after holding back; topics weigh {DEFAULT}"
            return BLTMChoices(unigram=self.unigram().choose(study), topic_weight=DEFAULT, notes=(note,))
        choices = BLTMChoices(unigram=self.unigram().choose(rest), topic_weight=POOL_WEIGHT)
        fitted = self.learn(rest, choices)
        lists = labelled(study, held.lists([fitted]))
        if len(lists) < MIN_USABLE:
            few = few_held(len(lists), follows=f"topics weigh {DEFAULT}")
            return replace(choices, topic_weight=DEFAULT, notes=(said_by(self.name, few),))
        trials = [fitted._with(choices=replace(choices, topic_weight=weight)) for weight in WEIGHT_GRID]
        values = [lists.ndcg(trial.scores(lists.candidates)) for trial in trials]
        found = int(np.argmax(values))
        said = f"topic weight {WEIGHT_GRID[found]:g} (nDCG@5 {values[found]:.3f} on {len(lists)} held-back lists)"
        return replace(choices, topic_weight=WEIGHT_GRID[found], notes=(f"{self.name}: {said}",))

    # --- learning --------------------------------------------------------------------------------

    def learn(self, study: Study, choices: Choices) -> FittedBLTM:
        assert isinstance(choices, BLTMChoices)
        s: BLTMSettings = self.settings
        check_texts(self.name, study.graph)
        known, vocabulary = study.clicked(s), Vocabulary()
        counter = WordCounter(Analyzer(s.language, s.stop_words), vocabulary)
        queries, titles = counter.count(study.graph.query_texts), counter.count(titles_of(study))
        queries = widen(queries, len(vocabulary))
        pairs = known.clicked.matrix.tocoo()
        query, doc = known.clicked.numbers[pairs.coords[0]], pairs.coords[1]
        has_words = (np.diff(queries.indptr) > 0)[query] & (np.diff(titles.indptr) > 0)[doc]
        query, doc, weight = query[has_words], doc[has_words], pairs.data[has_words].astype(np.float64)
        clicked = sparse.csr_array(queries[query]), sparse.csr_array(titles[doc])
        topics = learn_topics(*clicked, weight, doc, s, study)
        note = f"{self.name}: {s.dim} topics, {len(topics.bounds)} rounds; topics weigh {choices.topic_weight:g}"
        return FittedBLTM(
            model=self.name, settings=s, catalogue=study.catalogue, choices=choices, queries=study.clicked().queries,
            notes=(*known.notes, *choices.notes, note), parts=(self.unigram().learn(study, choices.unigram),),
            vocabulary=vocabulary, topics=topics,
            theta=fold_in(titles, topics.phi_title, topics.mixture, s.topic_prior),
        )  # fmt: skip


def parse_weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = -1.0
    if not 0 <= weight <= 1:
        raise SettingError(f"topic_weight is auto or a number, 0 to 1; got {text!r}")
    return weight


def check_texts(name: str, graph: ClickGraph) -> None:
    if not graph.field_names:
        raise MissingPart(f"{name} needs document text: ingest documents with --docs")
    if not any(graph.query_texts):
        raise MissingPart(f"{name} needs query text: build the GRAPH from a log that has it, or use lsi-qd")


def titles_of(study: Study) -> Sequence[str]:
    """The text that shares topics with queries: title, name or heading, or all text if there is none of these."""
    texts = study.corpus.texts
    name = heading_of(texts)
    if name is not None:
        return texts[name]
    columns = [texts[name] for name in texts if name != URL_FIELD] or [texts[URL_FIELD]]
    return ["\n".join(parts) for parts in zip(*columns, strict=True)]


# --- topics of clicked pairs -----------------------------------------------------------------------


def learn_topics(
    queries: sparse.csr_array, titles: sparse.csr_array, weight: Array, doc: Array, s: BLTMSettings, study: Study
) -> Topics:
    """EM over pairs: row i of `queries` and of `titles`, clicked `weight[i]` times, the title of document `doc[i]`."""
    n_pairs, n_words = queries.shape
    phi_query, phi_title = first_topics(queries, titles, weight, doc, s)
    theta = np.full((n_pairs, s.dim), 1 / s.dim)
    dual = np.zeros((n_pairs, s.dim))
    bounds: list[float] = []
    for _ in study.steps("bltm: iteration", range(s.iterations if n_pairs and n_words else 0)):
        bound, phi_query, phi_title = em_step(
            queries, titles, weight, theta, phi_query, phi_title, dual, s.tie, s.topic_prior, s.word_prior,
            engine=study.engine,
        )  # fmt: skip
        bounds.append(bound)
        if len(bounds) > 1 and bound - bounds[-2] < SETTLED * abs(bound):
            break
    mass = weight @ theta if n_pairs else np.ones(s.dim)
    return Topics(phi_query, phi_title, mass / mass.sum(), tuple(bounds))


def first_topics(
    queries: sparse.csr_array, titles: sparse.csr_array, weight: Array, doc: Array, s: BLTMSettings
) -> tuple[Array, Array]:
    """Each topic starts from the words of one clicked document, drawn with a probability in proportion to clicks."""
    rng, n_words = np.random.default_rng(s.seed), queries.shape[1]
    clicks = np.bincount(doc, weight) if len(doc) else np.zeros(0)
    with_clicks = np.flatnonzero(clicks)
    if not len(with_clicks):
        return (np.full((n_words, s.dim), 1 / max(n_words, 1)),) * 2
    few = len(with_clicks) < s.dim
    chosen = rng.choice(with_clicks, s.dim, replace=few, p=clicks[with_clicks] / clicks.sum())
    member = sparse.csr_array((weight, (doc, np.arange(len(doc)))), shape=(len(clicks), len(doc)))
    out = []
    for side in (queries, titles):
        said = normalised(np.asarray((member[chosen] @ side).toarray().T, dtype=np.float64))
        common = np.asarray(side.T @ weight, dtype=np.float64) + 1
        noise = rng.uniform(0.5, 1.5, size=said.shape)
        out.append(normalised(SEED_SHARE * said + (1 - SEED_SHARE) * noise * (common / common.sum())[:, None]))
    return out[0], out[1]
