"""Loops for the features of listed documents: compared with their query, and with the other documents of the list.

List i has the documents `items[indptr[i]:indptr[i + 1]]`. -1 is an unknown document, whose features are 0. A query has
few terms and a list few documents, so lookups use a small hash table per list. No query needs an array as large as the
vocabulary or the collection.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clickbridge.numerics.bm25 import length_norm, saturated
from clickbridge.numerics.threads import kernel
from clickbridge.numerics.topk import _search

Array = np.ndarray[Any, Any]
Rows = tuple[Array, Array, Array]
"""Sparse rows: indptr, terms, values."""
NO_SCALE = np.empty(0, dtype=np.float32)
NO_SCALE.flags.writeable = False


@kernel
def _unit(indptr, indices, data, scale, out):  # type: ignore[no-untyped-def]
    for row in range(len(indptr) - 1):
        squares = 0.0
        for p in range(indptr[row], indptr[row + 1]):
            value = np.float64(data[p]) * (scale[indices[p]] if len(scale) > 0 else 1.0)
            out[p] = value
            squares += value * value
        if squares > 0:
            length = np.sqrt(squares)
            for p in range(indptr[row], indptr[row + 1]):
                out[p] /= length


def unit_data(indptr: Array, indices: Array, data: Array, scale: Array | None = None) -> Array:
    """Values of sparse rows, multiplied by the `scale` of their terms and normalised so that each row has length 1.
    Rows of zeros stay zero."""
    out = np.empty(len(data), dtype=np.float32)
    _unit(indptr, indices, data, NO_SCALE if scale is None else scale, out)
    out.flags.writeable = False  # like the rows it is used with, so that loops are compiled for one type only
    return out


@kernel
def _sum_weights(indptr, indices, weights, out):  # type: ignore[no-untyped-def]
    for row in range(len(indptr) - 1):
        for p in range(indptr[row], indptr[row + 1]):
            for k in range(weights.shape[1]):
                out[k, row] += weights[indices[p], k]


def summed_weights(indptr: Array, indices: Array, weights: Array) -> Array:
    """For each column of `weights` (which has a row for each term), its sum over the terms of each row."""
    out = np.zeros((weights.shape[1], len(indptr) - 1))
    _sum_weights(indptr, indices, weights, out)
    return out


def nearest(queries: Rows, inverted: Rows, n_items: int, k: int) -> Rows:
    """The k items with the largest dot products for each row of `queries`, among those that share a term with it, as
    sparse rows. `inverted` has a row of items for each term."""
    n, k = len(queries[0]) - 1, min(k, n_items)
    items, scores = np.empty((n, k), dtype=np.int32), np.empty((n, k))
    counts = np.zeros(n, dtype=np.int64)
    if k:
        _search(*queries, *inverted, n_items, 0, n, items, scores, counts)
    taken = np.arange(k) < counts[:, None]
    return np.concatenate([[0], np.cumsum(counts)]), items[taken], scores[taken]


@kernel
def _table_size(n):  # type: ignore[no-untyped-def]
    """A power of two such that at least half of the slots stay empty."""
    size = 8
    while size < 2 * n:
        size *= 2
    return size


@kernel
def _place(keys, key):  # type: ignore[no-untyped-def]
    """The slot of a key in the table, or the empty slot where it would be inserted."""
    mask = len(keys) - 1
    place = np.uint64(((np.int64(key) * 2654435761) >> 15) & mask)
    while keys[place] >= 0 and keys[place] != key:
        place = np.uint64((np.int64(place) + 1) & mask)
    return place


@kernel
def _number(keys, numbers, values):  # type: ignore[no-untyped-def]
    """Fills the table with the positions of `values`. Negative values are left out; of equal ones the first counts."""
    keys[:] = -1
    for i in range(len(values)):
        if values[i] >= 0:
            place = _place(keys, values[i])
            if keys[place] < 0:
                keys[place], numbers[place] = values[i], i


@kernel
def _longest(indptr):  # type: ignore[no-untyped-def]
    longest = 0
    for i in range(len(indptr) - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    return longest


@kernel
def _room(longest):  # type: ignore[no-untyped-def]
    """An empty table with room for `longest` values, which can be reused."""
    size = _table_size(longest)
    return np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)


@kernel
def _numbered(room, values):  # type: ignore[no-untyped-def]
    """A table of these values in the first slots of `room`."""
    size = _table_size(len(values))
    keys, numbers = room[0][:size], room[1][:size]
    _number(keys, numbers, values)
    return keys, numbers


@kernel
def word_sums(  # type: ignore[no-untyped-def]
    indptr, items, q_indptr, q_terms, d_indptr, d_terms, d_counts, idf, lengths, averages, k1, b, weights,
    bm25, vsm, sums,
):  # fmt: skip
    """Sums over the words that a query and the fields of its documents share. A query has each term once. Field f of
    document d is row `d * n_fields + f`. `idf` has a row for each term; the last column of `idf`, `lengths` and
    `averages` stands for all fields together. Adds to `bm25[f]`, to `vsm` (for all fields together), and
    `weights[term, k]` to `sums[k, f]`."""
    n_fields, n_weights = len(averages) - 1, weights.shape[1]
    longest = _longest(q_indptr)
    room, total = _room(longest), np.empty(longest)
    for i in range(len(indptr) - 1):
        terms = q_terms[q_indptr[i] : q_indptr[i + 1]]
        keys, numbers = _numbered(room, terms)
        for at in range(indptr[i], indptr[i + 1]):
            doc = items[at]
            if doc < 0 or len(terms) == 0:
                continue
            total[:] = 0.0
            for f in range(n_fields):
                norm = length_norm(lengths[doc, f], averages[f], b)
                for p in range(d_indptr[doc * n_fields + f], d_indptr[doc * n_fields + f + 1]):
                    place = _place(keys, d_terms[p])
                    if keys[place] < 0:
                        continue
                    term = d_terms[p]
                    total[numbers[place]] += d_counts[p]
                    bm25[f, at] += idf[term, f] * saturated(d_counts[p] / norm, k1)
                    for k in range(n_weights):
                        sums[k, f, at] += weights[term, k]
            norm = length_norm(lengths[doc, n_fields], averages[n_fields], b)
            for j in range(len(terms)):
                if total[j] > 0:
                    rare = np.float64(idf[terms[j], n_fields])
                    bm25[n_fields, at] += rare * saturated(total[j] / norm, k1)
                    vsm[at] += rare * rare * total[j]
                    for k in range(n_weights):
                        sums[k, n_fields, at] += weights[terms[j], k]


@kernel
def listed_dots(indptr, items, q_indptr, q_terms, q_values, d_indptr, d_terms, d_values, out):  # type: ignore[no-untyped-def]
    """The dot products of the query row of each list with the rows of its documents. A query has each term once."""
    room = _room(_longest(q_indptr))
    for i in range(len(indptr) - 1):
        terms, values = q_terms[q_indptr[i] : q_indptr[i + 1]], q_values[q_indptr[i] : q_indptr[i + 1]]
        keys, numbers = _numbered(room, terms)
        for at in range(indptr[i], indptr[i + 1]):
            doc, total = items[at], 0.0
            if doc >= 0 and len(terms) > 0:
                for p in range(d_indptr[doc], d_indptr[doc + 1]):
                    place = _place(keys, d_terms[p])
                    if keys[place] >= 0:
                        total += np.float64(values[numbers[place]]) * d_values[p]
            out[at] = total


@kernel
def votes(indptr, items, v_indptr, voters, weights, b_indptr, b_docs, b_values, out):  # type: ignore[no-untyped-def]
    """Weighted sums of what similar queries, the voters, say about the documents of each list. List i has the voters
    `voters[v_indptr[i]:v_indptr[i + 1]]`, with their weights. The ballot of voter q is for the documents
    `b_docs[b_indptr[q]:b_indptr[q + 1]]`; `b_values` has a column for each row of `out`. The loop runs over ballots,
    because they are short, while a document may be on very many of them."""
    room = _room(_longest(indptr))
    for i in range(len(indptr) - 1):
        docs = items[indptr[i] : indptr[i + 1]]
        keys, numbers = _numbered(room, docs)
        for v in range(v_indptr[i], v_indptr[i + 1]):
            for p in range(b_indptr[voters[v]], b_indptr[voters[v] + 1]):
                place = _place(keys, b_docs[p])
                if keys[place] >= 0:
                    for k in range(out.shape[0]):
                        out[k, indptr[i] + numbers[place]] += weights[v] * np.float64(b_values[p, k])
        for j in range(len(docs)):  # a document may be in a list twice
            if docs[j] >= 0:
                first = numbers[_place(keys, docs[j])]
                for k in range(out.shape[0]):
                    out[k, indptr[i] + j] = out[k, indptr[i] + first]


@kernel
def likeness(  # type: ignore[no-untyped-def]
    indptr, items, d_indptr, d_terms, d_values, stride, first_row, last_row, scale, norms, weights, out
):
    """The similarity of each document to the weighted others of its list: d_i · sum_{j != i} w_j d_j, for each row of
    `weights`. Each document has `stride` rows; its vector is the sum of those from `first_row` to `last_row`. If there
    is a `scale`, each value is multiplied by the scale of its term and by `norms[d]`."""
    n_weights = weights.shape[0]
    for i in range(len(indptr) - 1):
        start, stop = indptr[i], indptr[i + 1]
        n_entries = 0
        for at in range(start, stop):
            if items[at] >= 0:
                n_entries += d_indptr[items[at] * stride + last_row] - d_indptr[items[at] * stride + first_row]
        keys = np.full(_table_size(n_entries), -1, dtype=np.int32)
        numbers = np.empty(len(keys), dtype=np.int32)
        ends = np.zeros(stop - start + 1, dtype=np.int64)
        local, values = np.empty(n_entries, dtype=np.int32), np.empty(n_entries)
        entry = np.empty(n_entries, dtype=np.int64)  # the last entry of each term
        n_terms = n = 0
        for at in range(start, stop):
            doc, row_start = items[at], n
            if doc >= 0:
                for p in range(d_indptr[doc * stride + first_row], d_indptr[doc * stride + last_row]):
                    term = d_terms[p]
                    place = _place(keys, term)
                    if keys[place] < 0:
                        keys[place], numbers[place] = term, n_terms
                        entry[n_terms] = -1
                        n_terms += 1
                    number = numbers[place]
                    value = np.float64(d_values[p])
                    if len(scale) > 0:
                        value *= scale[term] * norms[doc]
                    if entry[number] >= row_start:  # the term is in several rows of the document
                        values[entry[number]] += value
                    else:
                        local[n], values[n], entry[number] = number, value, n
                        n += 1
            ends[at - start + 1] = n
        centre = np.zeros((n_terms, n_weights))
        for at in range(start, stop):
            for e in range(ends[at - start], ends[at - start + 1]):
                for k in range(n_weights):
                    centre[local[e], k] += weights[k, at] * values[e]
        for at in range(start, stop):
            for k in range(n_weights):
                total = 0.0
                # The document's own part is subtracted term by term, so that terms of no other document give exactly 0.
                for e in range(ends[at - start], ends[at - start + 1]):
                    total += values[e] * (centre[local[e], k] - weights[k, at] * values[e])
                out[k, at] = total


@kernel
def kept_terms(indptr, docs, shares, q_indptr, q_terms, d_indptr, d_terms, n_fields, asked, kept):  # type: ignore[no-untyped-def]
    """For every query with term t, adds the shares of its documents to `asked[t]`, and the shares of those documents
    that have the term in one of their fields to `kept[t]`."""
    longest = _longest(q_indptr)
    room, seen = _room(longest), np.empty(longest, dtype=np.bool_)
    for i in range(len(indptr) - 1):
        terms = q_terms[q_indptr[i] : q_indptr[i + 1]]
        keys, numbers = _numbered(room, terms)
        for at in range(indptr[i], indptr[i + 1]):
            seen[:] = False
            for p in range(d_indptr[docs[at] * n_fields], d_indptr[(docs[at] + 1) * n_fields]):
                place = _place(keys, d_terms[p])
                if keys[place] >= 0:
                    seen[numbers[place]] = True
            for j in range(len(terms)):
                asked[terms[j]] += shares[at]
                if seen[j]:
                    kept[terms[j]] += shares[at]
