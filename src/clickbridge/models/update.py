"""Updating a latent model with new clicks, new documents and removed documents, its features frozen.

Words, idf, field weights, click columns and view weights stay as `fit` left them; responses and the click
features of touched rows change, and the decomposition starts from the old subspace. The result is that of a
decomposition of the same frozen features from scratch, within the residual both report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
from scipy import sparse

from clickbridge.errors import NotSupported
from clickbridge.log.readers import LogRecord
from clickbridge.models.base import Array, title_of
from clickbridge.models.pls import PLS
from clickbridge.types import Document, Impression, PairCount, query_key, text_of_key
from clickbridge.views.stack import ViewStack
from clickbridge.views.view import Source


def update_pls(model: PLS, log: Iterable[LogRecord], docs: Iterable[Document], remove: Iterable[str]) -> None:
    clicks, found = count_clicks(log)
    for name, neutral in (("half_life", 0.0), ("min_clicks", 1), ("min_users", 1), ("max_clicks_per_user", 0)):
        if clicks and getattr(model, name) != neutral:
            raise NotSupported(f"{model.name} fitted with {name} cannot be updated click by click: fit it again")
    _drop_documents(model, set(remove))
    _add_documents(model, [*docs, *found])
    _add_clicks(model, clicks)
    _decompose(model)


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
    return clicks, list(documents.values())


def _drop_documents(model: PLS, gone: set[str]) -> None:
    keep = np.array([doc_id not in gone for doc_id in model.doc_ids_], dtype=bool)
    if keep.all():
        return
    model.doc_ids_ = [d for d, k in zip(model.doc_ids_, keep, strict=True) if k]
    model.titles_ = [t for t, k in zip(model.titles_, keep, strict=True) if k]
    model.doc_features_ = sparse.csr_array(model.doc_features_[keep])
    model.responses_ = sparse.csr_array(model.responses_[:, keep])
    model.doc_slots_ = model.doc_slots_[keep]


def _add_documents(model: PLS, documents: list[Document]) -> None:
    """New ids get rows; a known id with new text gets its text's features anew."""
    latest = {document.doc_id: document for document in documents}
    model._forget()
    known = [d for d in latest.values() if d.doc_id in model._doc_numbers]
    new = [d for d in latest.values() if d.doc_id not in model._doc_numbers]
    rows = model.new_features([*known, *new])
    if known:
        places = np.array([model._doc_numbers[d.doc_id] for d in known])
        model.doc_features_ = _with_rows(model.doc_features_, places, rows[: len(known)])
        changed = {model._doc_numbers[d.doc_id]: title_of(d) for d in known}
        model.titles_ = [changed.get(n, title) for n, title in enumerate(model.titles_)]
    _append_documents(model, [d.doc_id for d in new], [title_of(d) for d in new], rows[len(known) :])


def _append_documents(model: PLS, doc_ids: list[str], titles: list[str], rows: sparse.csr_array) -> None:
    if not doc_ids:
        return
    model.doc_ids_ = [*model.doc_ids_, *doc_ids]
    model.titles_ = [*model.titles_, *titles]
    model.doc_features_ = sparse.csr_array(sparse.vstack([model.doc_features_, rows], format="csr"))
    model.responses_ = _resized(model.responses_, model.responses_.shape[0], len(model.doc_ids_))
    # Documents that came after `fit` have no column in the click view of queries.
    model.doc_slots_ = np.append(model.doc_slots_, np.full(len(doc_ids), -1))
    model._forget()


def _add_clicks(model: PLS, clicks: Counter[tuple[str, str]]) -> None:
    unknown = list(dict.fromkeys(d for _, d in clicks if d not in model._doc_numbers))
    _append_documents(model, unknown, [""] * len(unknown), model.new_features([Document(d) for d in unknown]))
    fresh = list(dict.fromkeys(key for key, _ in clicks if key not in model._query_numbers))
    if fresh:
        model.query_keys_ = [*model.query_keys_, *fresh]
        model.query_clicks_ = np.append(model.query_clicks_, np.zeros(len(fresh)))
        texts = [text_of_key(key) for key in fresh]
        rows = model.q_views_.transform(Source({"query": texts}, len(fresh)))
        model.query_features_ = sparse.csr_array(sparse.vstack([model.query_features_, rows], format="csr"))
        model.query_slots_ = np.append(model.query_slots_, np.full(len(fresh), -1))
        model._forget()
    shape = (len(model.query_keys_), len(model.doc_ids_))
    if not clicks:
        model.responses_ = _resized(model.responses_, *shape)
        return
    rows_ = np.array([model._query_numbers[key] for key, _ in clicks])
    columns = np.array([model._doc_numbers[doc_id] for _, doc_id in clicks])
    counts = np.fromiter(clicks.values(), dtype=np.float64)
    more = sparse.csr_array(sparse.coo_array((counts, (rows_, columns)), shape=shape))
    raw = _resized(model.responses_, *shape).astype(np.float64)
    if model.response == "log":
        raw.data = np.expm1(raw.data)
    raw = sparse.csr_array(raw + more)
    if model.response == "log":
        raw.data = np.log1p(raw.data)
    model.responses_ = raw.astype(np.float32)
    # A copy: what was loaded is mapped from a file and must not be written to.
    model.query_clicks_ = model.query_clicks_ + np.bincount(rows_, counts, minlength=shape[0])


def _decompose(model: PLS) -> None:
    """Click features of both sides from the new responses, then every space from its old subspace."""
    by_query, by_doc = model.responses_, sparse.csr_array(model.responses_.T)
    query_texts = {"query": [text_of_key(key) for key in model.query_keys_]}
    model.query_features_ = _with_clicks(model.q_views_, model.query_features_, by_query, model.doc_slots_, {})
    model.doc_features_ = _with_clicks(model.d_views_, model.doc_features_, by_doc, model.query_slots_, query_texts)
    weights = getattr(model, "weights_", np.ones(len(model.spaces_)))
    spaces = []
    for space, weight in zip(model.spaces_, weights, strict=True):
        fresh = model._space(space.q_columns, space.d_columns, space.dim, start=space.l_y)
        spaces.append(model._scaled(fresh, float(weight)))
    model.spaces_ = spaces
    model._forget()
    model._finish()


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


def _with_rows(matrix: sparse.csr_array, places: Array, rows: sparse.csr_array) -> sparse.csr_array:
    stacked = sparse.csr_array(sparse.vstack([matrix, rows], format="csr"))
    order = np.arange(matrix.shape[0])
    order[places] = matrix.shape[0] + np.arange(len(places))
    return sparse.csr_array(stacked[order])


def _resized(matrix: sparse.csr_array, n_rows: int, n_columns: int) -> sparse.csr_array:
    indptr = np.append(matrix.indptr, np.full(n_rows - matrix.shape[0], matrix.indptr[-1]))
    return sparse.csr_array((matrix.data, matrix.indices, indptr), shape=(n_rows, n_columns))
