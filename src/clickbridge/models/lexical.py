"""VSM, BM25F and LMIR as S-functions: two explicit sparse maps each (Wu et al. 2011, Section 3.3).

All three read documents of several weighted fields. With one field of weight 1 each equals its textbook
formula. Weights are given (`fields=title:3,overview`) or learned through `hold_back` (`auto`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from clickbridge.errors import MissingPart
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.log.readers import LogRecord
from clickbridge.models.base import Array, as_key, title_of
from clickbridge.models.explain import explanation
from clickbridge.models.sfunction import SFunction, stack_rows
from clickbridge.models.tuning import learn_field_weights
from clickbridge.models.update import count_clicks
from clickbridge.types import Document, Explanation, text_of_key
from clickbridge.views.fields import FieldCounts, count_fields, parse_fields
from clickbridge.views.text import Analyzer
from clickbridge.views.word import Vocabulary, WordCounter

TEXT_SETTINGS = ("fields", "language", "stop_words", "seed")


class LexicalModel(SFunction):
    """What the three share: words, fields, statistics of the collection, and frozen maps for new texts."""

    fields: str
    language: str
    stop_words: str
    seed: int
    extra_columns = 0
    """Coordinates beyond the vocabulary."""

    vocabulary_: Vocabulary
    field_names_: list[str]
    field_weights_: Array
    average_lengths_: Array
    idf_: Array
    collection_: Array
    """P(t), the share of each term in the collection."""

    def _fit(self, graph: ClickGraph) -> None:
        if not graph.field_names:
            raise MissingPart(f"{self.name} needs document text: ingest with --docs")
        given = None if self.fields == "auto" else parse_fields(self.fields, graph.field_names)
        names = list(given) if given else graph.field_names
        self.vocabulary_ = Vocabulary()
        counter = WordCounter(Analyzer(self.language, self.stop_words), self.vocabulary_)
        counts = count_fields(counter, {name: graph.field(name) for name in names}, graph.n_docs)
        if not counts.pattern.nnz:
            raise MissingPart(f"{self.name} needs document text: the fields {', '.join(names)} hold no word")
        self.field_names_ = counts.names
        self.remember_queries(graph)
        self._count_collection(counts)
        if given:
            self.field_weights_ = np.array(list(given.values()))
        else:
            if "field_weights" not in self.tuned_:
                self.tuned_["field_weights"], self.tuned_["note"] = self.learn_weights(graph, counts)
            self.field_weights_ = self.tuned_["field_weights"]
            self.notes_.append(self.tuned_["note"])
        self._weigh_collection(counts)
        self.scorable_ = counts.lengths @ self.field_weights_ > 0
        self.images_ = self.document_map(counts, self.field_weights_)
        # Words of a field of weight 0 must not make a document findable.
        self.images_.eliminate_zeros()

    def learn_weights(self, graph: ClickGraph, counts: FieldCounts) -> tuple[Array, str]:
        return learn_field_weights(self, graph, counts)

    def _count_collection(self, counts: FieldCounts) -> None:
        """Statistics that do not depend on the field weights."""
        has_text = counts.lengths.sum(axis=1) > 0
        self.average_lengths_ = counts.lengths[has_text].mean(axis=0, dtype=np.float64)
        self.idf_ = self.idf_of(counts.document_frequency(), int(has_text.sum()))
        self.field_weights_ = np.ones(len(counts.names))
        self._weigh_collection(counts)

    def _weigh_collection(self, counts: FieldCounts) -> None:
        """P(t) of the weighted texts."""
        width = counts.pattern.shape[1]
        mass = np.bincount(counts.pattern.indices, counts.values @ self.field_weights_, minlength=width)
        self.collection_ = mass / max(mass.sum(), 1e-300)

    def idf_of(self, frequency: Array, n_docs: int) -> Array:
        """log(1 + N / df): positive for every term, as a weight in both maps must be."""
        return np.log1p(n_docs / np.maximum(frequency, 1))

    def document_map(self, counts: FieldCounts, weights: Array, columns: Array | None = None) -> sparse.csr_array:
        """Images of counted documents. `columns` says which terms of the vocabulary the columns are."""
        raise NotImplementedError

    def query_map(self, counts: sparse.csr_array) -> sparse.csr_array:
        """Images of counted queries."""
        raise NotImplementedError

    def map_queries(self, queries: Sequence[str]) -> sparse.csr_array:
        texts = (text_of_key(as_key(query)) for query in queries)
        return self.query_map(self._counter.count(texts))

    def map_new(self, documents: Sequence[Document]) -> sparse.csr_array:
        texts = {name: [d.fields.get(name, "") for d in documents] for name in self.field_names_}
        return self.document_map(count_fields(self._counter, texts, len(documents)), self.field_weights_)

    def update(self, log: Iterable[LogRecord] = (), docs: Iterable[Document] = (), remove: Iterable[str] = ()) -> Self:
        """New, changed and removed documents; words, idf and field weights stay. Clicks make queries known."""
        clicks, found = count_clicks(log)
        clicked = (Document(d) for _, d in clicks if d not in self._doc_numbers)
        gone, latest = set(remove), {d.doc_id: d for d in [*clicked, *found, *docs]}
        n_old = len(self.doc_ids_)
        rows = stack_rows([self.images_, self.map_new(list(latest.values()))])
        place = {doc_id: n_old + n for n, doc_id in enumerate(latest)}
        doc_ids = list(dict.fromkeys(d for d in [*self.doc_ids_, *latest] if d not in gone))
        order = [place[d] if d in place else self._doc_numbers[d] for d in doc_ids]
        titles = [*self.titles_, *map(title_of, latest.values())]
        scorable = np.append(self.scorable_, np.diff(rows.indptr)[n_old:] > 0)
        self.doc_ids_, self.titles_ = doc_ids, [titles[n] for n in order]
        self.images_, self.scorable_ = sparse.csr_array(rows[order]), scorable[order]
        counts = dict(zip(self.query_keys_, self.query_clicks_.tolist(), strict=True))
        for (key, doc_id), count in clicks.items():
            if doc_id not in gone:
                counts[key] = counts.get(key, 0) + count
        self.query_keys_, self.query_clicks_ = list(counts), np.array(list(counts.values()))
        self._forget()
        return self

    @cached_property
    def _counter(self) -> WordCounter:
        return WordCounter(Analyzer(self.language, self.stop_words), self.vocabulary_, frozen=True)

    @cached_property
    def _terms(self) -> list[str]:
        return self.vocabulary_.terms

    def explain(self, query: str, doc_id: str, k: int = 10) -> Explanation:
        """A lexical score is a sum over shared words."""
        (number,) = self.doc_numbers([doc_id])
        both = (self.map_queries([query]) * self.images_[[number]]).tocoo()
        names = [self._terms[c] if c < len(self._terms) else "(length)" for c in both.coords[1]]
        return explanation(
            query, doc_id, [(name, name, value, ()) for name, value in zip(names, both.data, strict=True)], k
        )

    def normaliser(self, queries: sparse.csr_array) -> Array:
        """The query's summed idf: the most a document of saturated matches could get."""
        words = queries[:, : len(self.vocabulary_)]
        total = np.asarray((words > 0).astype(np.float64) @ self.idf_).ravel()
        return np.where(total > 0, total, 1.0)

    def _report(self) -> dict[str, Any]:
        weights = dict(zip(self.field_names_, self.field_weights_.round(4).tolist(), strict=True))
        return {"fields": weights, "views": ["word"]}

    def _write(self, writer: PartWriter) -> None:
        self._write_queries(writer)
        writer.strings("terms", self.vocabulary_.terms)
        writer.strings("fields", self.field_names_)
        writer.sparse("images", self.images_)
        for name in ("field_weights", "average_lengths", "idf", "collection", "scorable"):
            writer.array(name, getattr(self, name + "_"))

    def _read(self, artifact: Artifact) -> None:
        self._read_queries(artifact)
        self.vocabulary_ = Vocabulary(artifact.strings("terms"))
        self.field_names_ = artifact.strings("fields")
        self.images_ = artifact.sparse("images")
        for name in ("field_weights", "average_lengths", "idf", "collection", "scorable"):
            setattr(self, name + "_", artifact.array(name))


class VSM(LexicalModel):
    """tf-idf vectors of query and document, multiplied as they are: no length normalisation (11R, 3.3.1)."""

    name = "vsm"
    about = "vector space model, unnormalised tf-idf"
    paper = "11R 3.3.1"

    settings = TEXT_SETTINGS

    def query_map(self, counts: sparse.csr_array) -> sparse.csr_array:
        return scaled_columns(counts, self.idf_)

    def document_map(self, counts: FieldCounts, weights: Array, columns: Array | None = None) -> sparse.csr_array:
        return scaled_columns(counts.with_values(counts.values @ weights), _at(self.idf_, columns))


class BM25(LexicalModel):
    """BM25F (11R, eq. (1), with Robertson's simple extension to weighted fields).

    tf = sum_f w_f tf_f / (1 - b + b len_f / avglen_f);  image = idf (k1 + 1) tf / (k1 + tf).
    """

    name = "bm25"
    about = "BM25 over weighted fields (BM25F)"
    paper = "11R 3.3.2"

    settings: ClassVar[tuple[str, ...]] = ("k1", "b", "k3", "idf", *TEXT_SETTINGS)
    k1: float
    b: float
    k3: float
    idf: str

    def idf_of(self, frequency: Array, n_docs: int) -> Array:
        if self.idf == "atire":
            return np.log(n_docs / np.maximum(frequency, 1))
        odds = (n_docs - frequency + 0.5) / (frequency + 0.5)
        # Robertson's would turn negative for words in over half of the documents; like bm25s, it stops at 0.
        return np.log(np.maximum(odds, 1)) if self.idf == "robertson" else np.log1p(odds)

    def query_map(self, counts: sparse.csr_array) -> sparse.csr_array:
        out = counts.copy()
        out.data = (self.k3 + 1) * out.data / (self.k3 + out.data)
        return out

    def document_map(self, counts: FieldCounts, weights: Array, columns: Array | None = None) -> sparse.csr_array:
        norms = 1 - self.b + self.b * counts.lengths / np.maximum(self.average_lengths_, 1e-9)
        frequency = (counts.values / np.maximum(norms, 1e-9)[counts.rows]) @ weights
        saturated = (self.k1 + 1) * frequency / np.maximum(self.k1 + frequency, 1e-300)
        return scaled_columns(counts.with_values(saturated), _at(self.idf_, columns))


class LMIR(LexicalModel):
    """Query likelihood under a smoothed document language model (11R, 3.3.3; Zhai and Lafferty 2004).

    With a_d the weight of the collection in document d (Dirichlet: mu / (len + mu); Jelinek-Mercer: lam),
    log p(q|d) = sum_t tf(t,q) log(1 + (1 - a_d) p(t|d) / (a_d P(t))) + len(q) log a_d + const(q):
    one coordinate a term and one more for log a_d. len(q) counts known terms only.
    """

    name = "lmir"
    about = "language model, Dirichlet or Jelinek-Mercer smoothing"
    paper = "11R 3.3.3"
    extra_columns = 1

    settings = ("smoothing", "mu", "lam", *TEXT_SETTINGS)
    smoothing: str
    mu: float
    lam: float

    def query_map(self, counts: sparse.csr_array) -> sparse.csr_array:
        lengths = sparse.csr_array(np.asarray(counts.sum(axis=1)).reshape(-1, 1))
        return sparse.csr_array(sparse.hstack([counts, lengths], format="csr"))

    def document_map(self, counts: FieldCounts, weights: Array, columns: Array | None = None) -> sparse.csr_array:
        frequency, length = counts.values @ weights, counts.lengths @ weights
        if self.smoothing == "dirichlet":
            # (1 - a_d) p(t|d) / a_d = tf / mu
            ratio, collection_weight = frequency / self.mu, self.mu / (length + self.mu)
        else:
            share = frequency / np.maximum(length, 1e-300)[counts.rows]
            ratio, collection_weight = share * (1 - self.lam) / self.lam, np.full(len(length), self.lam)
        collection = _at(self.collection_, columns)[counts.pattern.indices]
        words = counts.with_values(np.log1p(ratio / np.maximum(collection, 1e-300)))
        last = np.where(length > 0, np.log(collection_weight), 0.0).astype(np.float32)
        return sparse.csr_array(sparse.hstack([words, sparse.csr_array(last.reshape(-1, 1))], format="csr"))


def scaled_columns(matrix: sparse.csr_array, scale: Array) -> sparse.csr_array:
    out = matrix.copy()
    out.data = (out.data * scale[out.indices]).astype(np.float32)
    return out


def _at(values: Array, columns: Array | None) -> Array:
    return values if columns is None else values[columns]
