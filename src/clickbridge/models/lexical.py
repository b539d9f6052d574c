"""VSM, BM25F, LMIR and the cosine of words as S-functions: two explicit sparse maps each (11R, Section 3.3).

All support documents with several weighted fields. With one field of weight 1, each equals its textbook formula. The
weights are given (`fields=title:3,overview`) or learned on held-back clicks (`auto`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from clickbridge.engines.base import Engine
from clickbridge.errors import MissingPart
from clickbridge.graph.notes import said_by
from clickbridge.io.values import expect, stored
from clickbridge.models.ascent import bm25_field_weights, learn_field_weights
from clickbridge.models.candidates import Query
from clickbridge.models.change import Change
from clickbridge.models.explain import Contributions, Feature, Part, contributions
from clickbridge.models.fitted import Array, Choices, Fitted
from clickbridge.models.formulas import BM25Formula, CosineFormula, Formula, LMIRFormula, TermStatistics, VSMFormula
from clickbridge.models.model import Model
from clickbridge.models.sfunction import FittedImages, stack_rows
from clickbridge.models.study import Study
from clickbridge.numerics.row import EMPTY, Row, as_matrix, counted, row_of
from clickbridge.settings import ADVANCED, Fields, Printed, Seeded, setting, settings
from clickbridge.types import Document, text_of_key
from clickbridge.views.fields import count_fields, parse_fields
from clickbridge.views.near_words import NearWords
from clickbridge.views.text import Analyzer
from clickbridge.views.word import Vocabulary, WordCounter


@settings
class LexicalSettings(Printed, Fields, Seeded):
    printed: ClassVar[Mapping[str, Any]] = {"fields": "equal", "unknown_words": "drop"}

    unknown_words: str = setting(
        "near",
        "what a query of unknown words finds: near uses the most similar known words, also split or joined; drop finds "
        "nothing",
        choices=("near", "drop"),
        group=ADVANCED,
    )


@stored
@dataclass(frozen=True, kw_only=True)
class LexicalChoices(Choices):
    field_weights: dict[str, float]


@stored
@dataclass(frozen=True, kw_only=True, eq=False)
class FittedLexical(FittedImages):
    """The vocabulary, statistics of the collection, and one sparse image per document."""

    settings: LexicalSettings
    choices: LexicalChoices
    formula: Formula
    vocabulary: Vocabulary
    statistics: TermStatistics

    def check_stored(self) -> None:
        super().check_stored()
        n = len(self.vocabulary)
        if self.images.shape[1] != n + self.formula.extra_columns:
            raise ValueError("images of other words")
        for name in ("idf", "shares"):
            expect(name, getattr(self.statistics, name), (n,))
        expect("average lengths", self.statistics.average_lengths, (None,))

    @property
    def field_weights(self) -> dict[str, float]:
        return self.choices.field_weights

    @cached_property
    def _counter(self) -> WordCounter:
        return WordCounter(Analyzer(self.settings.language, self.settings.stop_words), self.vocabulary, frozen=True)

    def image(self, query: Query) -> Row:
        return self.text_image(text_of_key(query.key))

    @cached_property
    def _near_words(self) -> NearWords:
        return NearWords(Analyzer(self.settings.language, self.settings.stop_words), self.vocabulary)

    def text_image(self, text: str) -> Row:
        words = self._words(text)
        return self.formula.query(words, self.statistics) if words else EMPTY

    def _words(self, text: str) -> Row:
        """The known words of a text. If it has none, the known words that are most like what was typed."""
        words = counted(self._counter.columns(text))
        if words or not text or self.settings.unknown_words == "drop":
            return words
        near = sorted(self._near_words.columns(text).items())
        columns, weights = [column for column, _ in near], [weight for _, weight in near]
        return Row(np.array(columns, dtype=np.int32), np.array(weights, dtype=np.float32))

    def map_keys(self, queries: Sequence[Query]) -> sparse.csr_array:
        rows = [self._words(text_of_key(query.key)) for query in queries]
        return self.formula.queries(as_matrix(rows, len(self.vocabulary)), self.statistics)

    def map_new(self, documents: Sequence[Document]) -> sparse.csr_array:
        texts = {name: [d.fields.get(name, "") for d in documents] for name in self.field_weights}
        counts = count_fields(self._counter, texts, len(documents))
        return self.formula.documents(counts, self.statistics, self._weights)

    @property
    def _weights(self) -> Array:
        return np.array(list(self.field_weights.values()))

    def normaliser(self, image: Row) -> float:
        """The sum of the idf of the query's words: the scale of this query's scores."""
        words = image.columns[image.columns < len(self.vocabulary)]
        return float(self.statistics.idf[words].sum()) or 1.0

    def updated(self, change: Change, engine: Engine) -> Self:
        """Adds, changes and removes documents. Vocabulary, idf and field weights stay. Clicked queries become known."""
        places, changed = change.changed
        rows = stack_rows([sparse.csr_array(self.images[change.kept]), self.map_new([*change.new, *changed])])
        n_after = len(change.after)
        order = np.arange(n_after)
        order[places] = n_after + np.arange(len(places))
        fresh = np.diff(rows.indptr)[int(change.kept.sum()) :] > 0
        scorable = np.concatenate([self.scorable[change.kept], fresh])[order]
        return replace(
            self,
            catalogue=change.after,
            queries=change.merged(self.queries),
            images=sparse.csr_array(rows[order]),
            scorable=scorable,
        )

    def contributions(self, query: str, doc_id: str, k: int) -> Contributions:
        """A lexical score is a sum over shared words."""
        asked, document = self.image(self.query(query)), row_of(self.images, self.catalogue.number(doc_id))
        shared, one, two = np.intersect1d(asked.columns, document.columns, return_indices=True)
        terms = self._terms
        named = [Feature("word", terms[c]) if c < len(terms) else Feature("length", "") for c in shared.tolist()]
        values = asked.values[one].astype(np.float64) * document.values[two]
        return contributions([Part(f, f, value) for f, value in zip(named, values.tolist(), strict=True)], k)

    @cached_property
    def _terms(self) -> list[str]:
        return self.vocabulary.terms

    def describe(self) -> dict[str, Any]:
        return {"fields": {name: round(w, 4) for name, w in self.field_weights.items()}, "views": ["word"]}


class LexicalModel(Model):
    """Base of lexical models. Each has a formula of its own."""

    light = True
    Settings = LexicalSettings
    fitted_type: ClassVar[type[Fitted]] = FittedLexical

    def formula(self) -> Formula:
        """How counts of words become the numbers of the two maps."""
        raise NotImplementedError

    def choose(self, study: Study) -> LexicalChoices:
        s: LexicalSettings = self.settings
        if not study.graph.field_names:
            raise MissingPart(f"{self.name} needs document text: ingest documents with --docs")
        if s.fields != "auto":
            return LexicalChoices(field_weights=parse_fields(s.fields, study.graph.field_names))
        weights, note = self.learn_weights(study)
        return LexicalChoices(field_weights=weights, notes=(said_by(self.name, note),))

    def learn_weights(self, study: Study) -> tuple[dict[str, float], str]:
        """The weight of each field, chosen on held-back clicks, and one line about them."""
        s: LexicalSettings = self.settings
        return learn_field_weights(self.formula(), s.language, s.stop_words, s.seed, study)

    def learn(self, study: Study, choices: Choices) -> FittedLexical:
        assert isinstance(choices, LexicalChoices)
        s: LexicalSettings = self.settings
        formula, names = self.formula(), list(choices.field_weights)
        vocabulary, counts = study.words(names, s.language, s.stop_words)
        if not counts.pattern.nnz:
            raise MissingPart(f"{self.name} needs document text: the fields {', '.join(names)} hold no word")
        weights = np.array(list(choices.field_weights.values()))
        statistics = TermStatistics.of(counts, formula).weighed(counts, weights)
        # A copy, since the counts are shared. Words in a field of weight 0 must not make a document match.
        images = formula.documents(counts, statistics, weights).copy()
        images.eliminate_zeros()
        return FittedLexical(
            model=self.name, settings=s, catalogue=study.catalogue, choices=choices, notes=choices.notes,
            queries=study.clicked().queries, images=images, scorable=counts.lengths @ weights > 0,
            formula=formula, vocabulary=vocabulary, statistics=statistics,
        )  # fmt: skip


class VSM(LexicalModel):
    """The vector space model: the dot product of the tf-idf vectors of query and document.

    Vectors are not normalised by their length, so long documents score higher (11R, Section 3.3.1). `CosWord`
    normalises them.

    Examples
    --------
    >>> from clickbridge import VSM, example_graph
    >>> model = VSM().fit(example_graph())
    >>> model.rerank("where to sleep", ["slice", "hotels", "rooms"]).doc_ids
    ['hotels', 'slice', 'rooms']
    """

    name = "vsm"
    about = "vector space model, unnormalised tf-idf"
    paper = "11R 3.3.1"

    def formula(self) -> Formula:
        return VSMFormula()


@settings
class BM25Settings(LexicalSettings):
    printed: ClassVar[Mapping[str, Any]] = {**LexicalSettings.printed, "lengths": "document"}

    k1: float = setting(1.2, "how much repetition of a word in a document counts; 0 not at all", 0, 1000)
    b: float = setting(0.75, "how much long fields are discounted: 0 not at all, 1 in proportion to their length", 0, 1)
    k3: float = setting(8.0, "how much repetition of a word in the query counts", 0, 1000, group=ADVANCED)
    idf: str = setting(
        "lucene",
        "the formula of the inverse document frequency",
        choices=("lucene", "robertson", "atire"),
        group=ADVANCED,
    )
    lengths: str = setting(
        "fields",
        "what is long: each field against the average of that field (fields), or all fields together (document, the "
        "paper)",
        choices=("fields", "document"),
        group="11R",
    )


class BM25(LexicalModel):
    """BM25 over weighted fields: `BM25(fields={"title": 3, "text": 1}).fit(graph)`.

    BM25F (11R, equation (1), with Robertson's simple extension to weighted fields). With `fields="auto"` the weights of
    the fields are learned from clicks; clicks are used for nothing else. A document is found only if it shares a word
    with the query.

    Examples
    --------
    >>> from clickbridge import BM25, example_graph
    >>> model = BM25(k1=0.9).fit(example_graph())
    >>> model.rank("sleep near the statue", k=2).doc_ids
    ['subway', 'ferry']
    """

    name = "bm25"
    about = "BM25 over weighted fields (BM25F)"
    paper = "11R 3.3.2"
    Settings: ClassVar[type[LexicalSettings]] = BM25Settings

    def formula(self) -> Formula:
        s: BM25Settings = self.settings
        return BM25Formula(s.k1, s.b, s.k3, s.idf, whole=s.lengths == "document")


@settings
class LMIRSettings(LexicalSettings):
    smoothing: str = setting(
        "dirichlet",
        "how a document's word probabilities are smoothed",
        choices=("dirichlet", "jelinek-mercer"),
    )
    mu: float = setting(200.0, "strength of the Dirichlet prior, in words", 1e-6, 1e9)
    lam: float = setting(0.5, "Jelinek-Mercer weight of the collection", 1e-6, 1 - 1e-6)


class LMIR(LexicalModel):
    """A language model for retrieval: documents are ranked by the probability that they generate the query.

    The document's word probabilities are smoothed with those of the collection (11R, Section 3.3.3; Zhai and Lafferty
    2004). With `fields="auto"` the weights of the fields are learned from clicks.

    Examples
    --------
    >>> from clickbridge import LMIR, example_graph
    >>> model = LMIR(mu=500).fit(example_graph())
    >>> model.rank("sleep near the statue", k=2).doc_ids
    ['subway', 'ferry']
    """

    name = "lmir"
    about = "language model, Dirichlet or Jelinek-Mercer smoothing"
    paper = "11R 3.3.3"
    Settings: ClassVar[type[LexicalSettings]] = LMIRSettings

    def formula(self) -> Formula:
        s: LMIRSettings = self.settings
        return LMIRFormula(s.smoothing, s.mu, s.lam)


@settings
class CosWordSettings(LexicalSettings):
    printed: ClassVar[Mapping[str, Any]] = {**LexicalSettings.printed, "stop_words": "drop"}


class CosWord(LexicalModel):
    """The cosine of two tf-idf vectors: `VSM` with both sides at length 1. The baseline Cos_W of 11M.

    Examples
    --------
    >>> from clickbridge import CosWord, example_graph
    >>> model = CosWord().fit(example_graph())
    >>> model.rank("sleep near the statue", k=2).doc_ids
    ['subway', 'ferry']
    """

    name = "cos-word"
    about = "cosine of tf-idf words"
    paper = "11M (Cos_W)"
    Settings = CosWordSettings

    def formula(self) -> Formula:
        return CosineFormula()

    def learn_weights(self, study: Study) -> tuple[dict[str, float], str]:
        """Uses the field weights of BM25F. Tuning the cosine itself would need the lengths of documents, and tuning
        looks only at a few of their words."""
        s: LexicalSettings = self.settings
        return bm25_field_weights(s.language, s.stop_words, s.seed, study)[0], "field weights as bm25 learned them"
