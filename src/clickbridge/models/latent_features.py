"""Features of both sides, learned from a GRAPH and carried through updates with their columns frozen.

Vocabulary, idf, field weights, click columns and view weights stay as `fit` learned them. Responses and the click
features of changed rows are updated. Only raw counts of clicks can be added up: if a response is a logarithm, the
clicks are computed back from it first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.errors import MissingPart, NotSupported
from clickbridge.graph.dense import Encoder, fill_vectors
from clickbridge.models.catalogue import KnownQueries
from clickbridge.models.change import Change
from clickbridge.models.fitted import Array
from clickbridge.models.latent import Features, new_document_features
from clickbridge.models.study import Known, Study
from clickbridge.numerics.csr import compact
from clickbridge.settings import Counting
from clickbridge.types import text_of_key
from clickbridge.views.stack import ViewStack, parse_views
from clickbridge.views.view import ClickView, Source

NEUTRAL: dict[str, tuple[object, ...]] = {
    "half_life": (0.0,),
    "min_clicks": (1,),
    "min_users": (1,),
    "max_clicks_per_user": (0,),
    "response": ("clicks", "log"),
}
"""Settings under which what a click is worth does not depend on the other clicks."""


def texts_of(keys: Iterable[str]) -> list[str]:
    """Query texts by key; empty for a query known by its id alone."""
    return [text_of_key(key) for key in keys]


# --- learning --------------------------------------------------------------------------------------


def learn_features(
    name: str, study: Study, known: Known, groups: Sequence[str], weights: Mapping[str, float],
    language: str, stop_words: str,
) -> tuple[Features, list[tuple[Array, Array]]]:  # fmt: skip
    """Fits the views named by `groups`, and the columns of each group on both sides. Only queries with a counted click
    get a row; all documents do."""
    terms = [parse_views(group.replace("&", ",")) for group in groups]
    graph, clicked, catalogue = study.graph, known.clicked, study.catalogue
    query_texts = {"query": texts_of(clicked.keys)}
    names = [title or doc_id for title, doc_id in zip(catalogue.titles, catalogue.doc_ids, strict=True)]
    texts = study.corpus.texts
    q_source = Source(
        query_texts, len(clicked.keys), clicked.matrix, texts, names, graph.vectors_of("query", clicked.numbers)
    )
    q_views, query_features = ViewStack.fit(union(q for q, _ in terms), q_source, language, stop_words)
    d_source = study.documents(
        clicks=sparse.csr_array(clicked.matrix.T), other_texts=query_texts, other_names=clicked.keys,
        vectors=graph.vectors_of("doc", None), field_weights=weights,
    )  # fmt: skip
    d_views, doc_features = ViewStack.fit(union(d for _, d in terms), d_source, language, stop_words)
    if not query_features.nnz or not doc_features.nnz:
        raise MissingPart(f"{name} has nothing to learn from: the views {', '.join(groups)} are empty here")
    slots = [np.arange(n) for n in clicked.matrix.shape]
    features = Features(q_views, d_views, query_features, doc_features, clicked.matrix, *slots)
    return features, [(columns_of(q_views, q), columns_of(d_views, d)) for q, d in terms]


def reads_text(groups: Sequence[str]) -> bool:
    """Whether some view of the documents reads their text, so that field weights matter."""
    # Together: a view of one side alone needs another group for the other side.
    _, terms = parse_views(",".join(groups).replace("&", ","))
    return bool({term.partition(":")[0] for term in terms} & {"word", "bigram", "char"})


def union(lists: Iterable[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(term for terms in lists for term in terms))


def columns_of(stack: ViewStack, terms: Sequence[str]) -> Array:
    spans = dict(zip(stack.terms, stack.spans, strict=True))
    # In the order of the stack, whatever that of the terms: a space over all columns is the features as they are.
    return np.sort(np.concatenate([np.arange(*spans[term], dtype=np.int32) for term in terms]))


# --- updating --------------------------------------------------------------------------------------


def check_updatable(name: str, settings: Any, change: Change) -> None:
    """Refuses new clicks if the value of a click depends on the other clicks."""
    for setting, neutral in NEUTRAL.items():
        value = getattr(settings, setting, neutral[0])
        if change.clicks and value not in neutral:
            raise NotSupported(f"{name} fitted with {setting}={value} cannot be updated click by click: fit it again")


def updated_responses(
    responses: sparse.csr_array, queries: KnownQueries, change: Change, settings: Counting | None
) -> tuple[sparse.csr_array, KnownQueries, Array]:
    """Responses and known queries after a change, and which of the old queries remain. A query is removed if all
    documents clicked for it were removed."""
    log = getattr(settings, "response", "clicks") == "log"
    fading = bool(getattr(settings, "half_life", 0.0))
    counts = clicks_behind(responses, log, fading)
    lost = np.asarray(counts[:, ~change.kept].sum(axis=1)).ravel()
    counts = sparse.csr_array(counts[:, change.kept])
    stay = np.ones(len(queries), dtype=bool) if change.kept.all() else np.diff(counts.indptr) > 0
    keys = [k for k, s in zip(queries.keys, stay, strict=True) if s]
    after = change.merged(replace(queries, keys=keys, clicks=np.maximum((queries.clicks - lost)[stay], 0)))
    counts = resized(sparse.csr_array(counts[stay]), len(after), len(change.after))
    if change.clicks:
        rows = np.array([after.numbers[key] for key, _ in change.clicks])
        columns = change.after.items([doc_id for _, doc_id in change.clicks])
        more = np.fromiter(change.clicks.values(), dtype=np.float64)
        parts: Any = (more, (rows, columns))
        counts = sparse.csr_array(counts + sparse.csr_array(sparse.coo_array(parts, shape=counts.shape)))
    if log:
        counts.data = np.log1p(counts.data)
    return counts.astype(np.float32), after, stay


def clicks_behind(responses: sparse.csr_array, log: bool, fading: bool) -> sparse.csr_array:
    """Computes clicks back from responses."""
    out = responses.astype(np.float64)
    if log:
        out.data = np.expm1(out.data)
    if not fading:
        out.data = np.rint(out.data)  # a click less a rounding error would be no click
    return out


def updated_features(
    features: Features,
    queries: KnownQueries,
    change: Change,
    settings: Counting | None,
    weights: Mapping[str, float],
    encode: Mapping[str, Encoder],
) -> tuple[Features, KnownQueries]:
    """The features after a change: new rows and new click features, with the same columns."""
    responses, after, stay = updated_responses(features.responses, queries, change, settings)
    doc_features = sparse.csr_array(features.doc_features[change.kept])
    doc_features = below(doc_features, new_document_features(features.d_views, change.new, weights, encode))
    places, changed = change.changed
    if changed:
        fresh = new_document_features(features.d_views, changed, weights, encode)
        doc_features = _with_text(features.d_views, doc_features, places, fresh)
    fresh_keys = after.keys[int(stay.sum()) :]
    new_rows = _new_query_features(features.q_views, fresh_keys, encode)
    query_features = below(sparse.csr_array(features.query_features[stay]), new_rows)
    slots = (
        np.append(features.query_slots[stay], np.full(len(fresh_keys), -1)),
        np.append(features.doc_slots[change.kept], np.full(len(change.new), -1)),
    )
    by_doc = sparse.csr_array(responses.T)
    query_features = with_clicks(features.q_views, query_features, responses, slots[1], {})
    query_texts = {"query": texts_of(after.keys)}
    doc_features = with_clicks(features.d_views, doc_features, by_doc, slots[0], query_texts)
    made = replace(
        features, query_features=in_order(query_features), doc_features=in_order(doc_features), responses=responses,
        query_slots=slots[0], doc_slots=slots[1],
    )  # fmt: skip
    return made, after


def _new_query_features(views: ViewStack, keys: Sequence[str], encode: Mapping[str, Encoder]) -> sparse.csr_array:
    """Features of new queries, as far as they follow from their text and from encoders of text."""
    texts = texts_of(keys)
    made = {name: fill_vectors(name, encode[name], texts) for name in views.vector_names if name in encode}
    vectors = {name: rows for name, rows in made.items() if rows is not None}
    return views.transform(Source({"query": texts}, len(keys), vectors=vectors))


def _with_text(
    views: ViewStack, features: sparse.csr_array, places: Array, fresh: sparse.csr_array
) -> sparse.csr_array:
    """Computes text features again for documents with new text. Other features, such as a vector that was not given
    again, stay."""
    old, blocks = features[places], []
    for view, (start, stop) in zip(views.views, views.spans, strict=True):
        block = sparse.csr_array(fresh[:, start:stop])
        if not view.of_text:
            absent = (np.diff(block.indptr) == 0).astype(np.float32)
            block = sparse.csr_array(block + sparse.diags_array(absent) @ old[:, start:stop])
        blocks.append(block)
    stacked = below(features, sparse.csr_array(sparse.hstack(blocks, format="csr")))
    order = np.arange(features.shape[0])
    order[places] = len(order) + np.arange(len(places))
    return sparse.csr_array(stacked[order])


def with_clicks(
    stack: ViewStack, features: sparse.csr_array, clicks: sparse.csr_array, slots: Array, other_texts: Mapping[str, Any]
) -> sparse.csr_array:
    """Computes the click and clicktext columns again. `slots` gives the click column of each item of the other side; -1
    for one that was added later. The clicktext of queries stays, since it needs texts that a model does not keep."""
    blocks = []
    for view, (start, stop) in zip(stack.views, stack.spans, strict=True):
        block = features[:, start:stop]
        if isinstance(view, ClickView):
            there = np.flatnonzero(slots >= 0)
            ones: Any = (np.ones(len(there)), (there, slots[there]))
            pick = sparse.coo_array(ones, shape=(len(slots), stop - start))
            block = view.transform(Source({}, features.shape[0], sparse.csr_array(clicks @ pick.tocsr())))
        elif view.kind == "clicktext" and other_texts:
            block = view.transform(Source({}, features.shape[0], clicks, other_texts))
        blocks.append(block)
    return compact(sparse.csr_array(sparse.hstack(blocks, format="csr")))


def in_order(matrix: sparse.csr_array) -> sparse.csr_array:
    """Sorts the columns within each row, as in a saved model, so that sums of rows are equal to the last bit."""
    matrix.sort_indices()
    return matrix


def below(matrix: sparse.csr_array, rows: sparse.csr_array) -> sparse.csr_array:
    return compact(sparse.csr_array(sparse.vstack([matrix, rows], format="csr")))


def resized(matrix: sparse.csr_array, n_rows: int, n_columns: int) -> sparse.csr_array:
    """The same entries, with empty rows and columns added at the end."""
    indptr = np.append(matrix.indptr, np.full(n_rows - matrix.shape[0], matrix.indptr[-1]))
    parts: tuple[Any, Any, Any] = (matrix.data, matrix.indices, indptr)
    return sparse.csr_array(parts, shape=(n_rows, n_columns))
