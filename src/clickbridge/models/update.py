"""Taking new clicks, new documents and removals into a fitted model, its features frozen.

Words, idf, field weights, click columns and view weights stay as `fit` left them; responses and the click
features of touched rows change, and a decomposition starts from the old subspace. The result is that of
learning the same frozen features from scratch, within the residual both report. Sums over clicks are
additive only for raw counts: where a response is a logarithm, the count is had back first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from clickbridge.errors import InputError, NotSupported
from clickbridge.log.readers import LogRecord
from clickbridge.models.base import Array, Model, title_of
from clickbridge.types import Document, Impression, PairCount, query_key, text_of_key
from clickbridge.views.stack import ViewStack
from clickbridge.views.view import Source

NEUTRAL: dict[str, tuple[object, ...]] = {
    "half_life": (0.0,),
    "min_clicks": (1,),
    "min_users": (1,),
    "max_clicks_per_user": (0,),
    "response": ("clicks", "log"),
}
"""Settings under which what a click is worth does not depend on the other clicks."""


class Updatable(Model):
    """A model of clicks: `responses_` has a row for each known query and a column for each document.

    Subclasses keep in step what else they hold for a query or a document, and say how to `relearn`.
    """

    query_keys_: list[str]
    query_clicks_: Array
    responses_: sparse.csr_array

    @cached_property
    def _query_numbers(self) -> dict[str, int]:
        return {key: number for number, key in enumerate(self.query_keys_)}

    def update(self, log: Iterable[LogRecord] = (), docs: Iterable[Document] = (), remove: Iterable[str] = ()) -> Self:
        """New clicks and documents with frozen features. What is removed stays away, whatever else names it;
        of a document given twice the last counts, those in `docs` after those in the log."""
        if type(self).relearn is Updatable.relearn:
            return super().update(log, docs, remove)
        gone = set(remove)
        clicks, found = count_clicks(log)
        documents = {d.doc_id: d for d in [*found, *docs] if d.doc_id not in gone}
        clicks = Counter({pair: count for pair, count in clicks.items() if pair[1] not in gone})
        for name, neutral in NEUTRAL.items():
            value = getattr(self, name, neutral[0])
            if clicks and value not in neutral:
                raise NotSupported(
                    f"{self.name} fitted with {name}={value} cannot be updated click by click: fit it again"
                )
        if not ({*self.doc_ids_} - gone or documents or clicks):
            raise InputError("the update removes every document: a model needs at least one")
        self._drop_documents(gone)
        self._put_documents(documents)
        self._put_documents({d: Document(d) for _, d in clicks if d not in self._doc_numbers})
        self._add_clicks(clicks)
        self.relearn()
        self._forget()
        return self

    def relearn(self) -> None:
        """Learns from the rows as they now are; until a model has this, it cannot be updated."""
        raise NotImplementedError

    # --- what follows a change of rows -----------------------------------------------------------

    def select_documents(self, keep: Array) -> None:
        self.doc_ids_ = [d for d, k in zip(self.doc_ids_, keep, strict=True) if k]
        self.titles_ = [t for t, k in zip(self.titles_, keep, strict=True) if k]
        lost = self._clicks_behind(sparse.csr_array(self.responses_[:, ~keep])).sum(axis=1)
        self.query_clicks_ = np.maximum(self.query_clicks_ - np.asarray(lost).ravel(), 0)
        self.responses_ = sparse.csr_array(self.responses_[:, keep])

    def append_documents(self, documents: Sequence[Document]) -> None:
        self.doc_ids_ = [*self.doc_ids_, *(d.doc_id for d in documents)]
        self.titles_ = [*self.titles_, *map(title_of, documents)]
        self.responses_ = resized(self.responses_, self.responses_.shape[0], len(self.doc_ids_))

    def change_documents(self, places: Array, documents: Sequence[Document]) -> None:
        changed = {int(n): title_of(d) for n, d in zip(places, documents, strict=True)}
        self.titles_ = [changed.get(n, title) for n, title in enumerate(self.titles_)]

    def select_queries(self, keep: Array) -> None:
        self.query_keys_ = [q for q, k in zip(self.query_keys_, keep, strict=True) if k]
        self.query_clicks_ = self.query_clicks_[keep]
        self.responses_ = sparse.csr_array(self.responses_[keep])

    def append_queries(self, keys: Sequence[str]) -> None:
        self.query_keys_ = [*self.query_keys_, *keys]
        self.query_clicks_ = np.append(self.query_clicks_, np.zeros(len(keys)))
        self.responses_ = resized(self.responses_, len(self.query_keys_), self.responses_.shape[1])

    # --- steps -----------------------------------------------------------------------------------

    def _drop_documents(self, gone: set[str]) -> None:
        """Documents go, and with them the queries that had clicks on nothing else."""
        keep = np.array([doc_id not in gone for doc_id in self.doc_ids_], dtype=bool)
        if keep.all():
            return
        self.select_documents(keep)
        asked = np.diff(self.responses_.indptr) > 0
        if not asked.all():
            self.select_queries(asked)
        self._forget()

    def _put_documents(self, documents: Mapping[str, Document]) -> None:
        known = [d for d in documents.values() if d.doc_id in self._doc_numbers]
        new = [d for d in documents.values() if d.doc_id not in self._doc_numbers]
        if known:
            self.change_documents(np.array([self._doc_numbers[d.doc_id] for d in known]), known)
        if new:
            self.append_documents(new)
        self._forget()

    def _add_clicks(self, clicks: Counter[tuple[str, str]]) -> None:
        fresh = list(dict.fromkeys(key for key, _ in clicks if key not in self._query_numbers))
        if fresh:
            self.append_queries(fresh)
            self._forget()
        if not clicks:
            return
        rows = np.array([self._query_numbers[key] for key, _ in clicks])
        columns = np.array([self._doc_numbers[doc_id] for _, doc_id in clicks])
        counts = np.fromiter(clicks.values(), dtype=np.float64)
        more = sparse.csr_array(sparse.coo_array((counts, (rows, columns)), shape=self.responses_.shape))
        total = sparse.csr_array(self._clicks_behind(self.responses_) + more)
        if getattr(self, "response", "clicks") == "log":
            total.data = np.log1p(total.data)
        self.responses_ = total.astype(np.float32)
        # A copy: what was loaded is mapped from a file and must not be written to.
        self.query_clicks_ = self.query_clicks_ + np.bincount(rows, counts, minlength=len(self.query_keys_))

    def _clicks_behind(self, responses: sparse.csr_array) -> sparse.csr_array:
        """Clicks from what they are worth."""
        out = responses.astype(np.float64)
        if getattr(self, "response", "clicks") == "log":
            out.data = np.expm1(out.data)
        if not getattr(self, "half_life", 0.0):
            out.data = np.rint(out.data)  # a click less a rounding error would be no click
        return out


class FrozenFeatures(Updatable):
    """A model of views on both sides. New items get what their text (and a vector they bring) gives in the
    frozen columns; `refresh_clicks` makes the columns that come from clicks anew."""

    q_views_: ViewStack
    d_views_: ViewStack
    query_features_: sparse.csr_array
    doc_features_: sparse.csr_array
    query_slots_: Array
    doc_slots_: Array
    """Which column of the other side's click view stands for each item; -1 for one that came after `fit`."""

    def new_features(self, documents: Sequence[Document]) -> sparse.csr_array:
        raise NotImplementedError

    def new_query_features(self, keys: Sequence[str]) -> sparse.csr_array:
        raise NotImplementedError

    def select_documents(self, keep: Array) -> None:
        super().select_documents(keep)
        self.doc_features_ = sparse.csr_array(self.doc_features_[keep])
        self.doc_slots_ = self.doc_slots_[keep]

    def append_documents(self, documents: Sequence[Document]) -> None:
        super().append_documents(documents)
        self.doc_features_ = below(self.doc_features_, self.new_features(documents))
        self.doc_slots_ = np.append(self.doc_slots_, np.full(len(documents), -1))

    def change_documents(self, places: Array, documents: Sequence[Document]) -> None:
        """New text means new text features. What text does not give (a vector that nobody sent along) stays."""
        super().change_documents(places, documents)
        new, old = self.new_features(documents), self.doc_features_[places]
        blocks = []
        for view, (start, stop) in zip(self.d_views_.views, self.d_views_.spans, strict=True):
            block = sparse.csr_array(new[:, start:stop])
            if not view.of_text:
                absent = (np.diff(block.indptr) == 0).astype(np.float32)
                block = sparse.csr_array(block + sparse.diags_array(absent) @ old[:, start:stop])
            blocks.append(block)
        stacked = below(self.doc_features_, sparse.csr_array(sparse.hstack(blocks, format="csr")))
        order = np.arange(self.doc_features_.shape[0])
        order[places] = len(order) + np.arange(len(places))
        self.doc_features_ = sparse.csr_array(stacked[order])

    def select_queries(self, keep: Array) -> None:
        super().select_queries(keep)
        self.query_features_ = sparse.csr_array(self.query_features_[keep])
        self.query_slots_ = self.query_slots_[keep]

    def append_queries(self, keys: Sequence[str]) -> None:
        super().append_queries(keys)
        self.query_features_ = below(self.query_features_, self.new_query_features(keys))
        self.query_slots_ = np.append(self.query_slots_, np.full(len(keys), -1))

    def refresh_clicks(self) -> None:
        """Click features of both sides from the responses as they now are."""
        by_query, by_doc = self.responses_, sparse.csr_array(self.responses_.T)
        texts = {"query": texts_of(self.query_keys_)}
        self.query_features_ = _with_clicks(self.q_views_, self.query_features_, by_query, self.doc_slots_, {})
        self.doc_features_ = _with_clicks(self.d_views_, self.doc_features_, by_doc, self.query_slots_, texts)


def count_clicks(log: Iterable[LogRecord]) -> tuple[Counter[tuple[str, str]], list[Document]]:
    """New clicks by (query key, document id), and documents that the log brings along."""
    clicks: Counter[tuple[str, str]] = Counter()
    documents: dict[str, Document] = {}
    for record in log:
        if isinstance(record, Document):
            documents.setdefault(record.doc_id, record)
            continue
        key = query_key(record.query, record.query_id)
        if isinstance(record, PairCount):
            clicks[key, record.doc_id] += record.clicks
        elif isinstance(record, Impression):
            clicks.update((key, doc_id) for doc_id in record.clicks)
    return Counter({pair: count for pair, count in clicks.items() if count > 0}), list(documents.values())


def texts_of(keys: Iterable[str]) -> list[str]:
    """Query texts by key; empty for a query known by its id alone."""
    return [text_of_key(key) for key in keys]


def below(matrix: sparse.csr_array, rows: sparse.csr_array) -> sparse.csr_array:
    return sparse.csr_array(sparse.vstack([matrix, rows], format="csr"))


def resized(matrix: sparse.csr_array, n_rows: int, n_columns: int) -> sparse.csr_array:
    """The same entries with empty rows and columns behind them."""
    indptr = np.append(matrix.indptr, np.full(n_rows - matrix.shape[0], matrix.indptr[-1]))
    parts: tuple[Any, Any, Any] = (matrix.data, matrix.indices, indptr)
    return sparse.csr_array(parts, shape=(n_rows, n_columns))


def _with_clicks(
    stack: ViewStack,
    features: sparse.csr_array,
    clicks: sparse.csr_array,
    slots: Array,
    other_texts: dict[str, list[str]],
) -> sparse.csr_array:
    """The click and clicktext columns made anew. `slots` says which click column stands for each item of the
    other side, -1 for one that came later. Clicktext of queries stays: it needs texts a model does not keep."""
    blocks = []
    for view, (start, stop) in zip(stack.views, stack.spans, strict=True):
        block = features[:, start:stop]
        if view.kind == "click":
            there = np.flatnonzero(slots >= 0)
            pick = sparse.coo_array((np.ones(len(there)), (there, slots[there])), shape=(len(slots), stop - start))
            block = view.transform(Source({}, features.shape[0], sparse.csr_array(clicks @ pick.tocsr())))
        elif view.kind == "clicktext" and other_texts:
            block = view.transform(Source({}, features.shape[0], clicks, other_texts))
        blocks.append(block)
    return sparse.csr_array(sparse.hstack(blocks, format="csr"))
