"""What features of lists are made of: lists of documents against their queries, and against each other.

List i has the documents `items[indptr[i]:indptr[i + 1]]`; -1 is a document that nobody knows, whose numbers are 0. A
query has few terms and a list few documents, so whatever is looked up is kept in a small table for as long as its list
is worked on: no array as wide as the vocabulary or the collection is made for a query.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clickbridge.numerics.bm25 import length_norm, saturated
from clickbridge.numerics.threads import kernel
from clickbridge.numerics.topk import _search

Array = np.ndarray[Any, Any]
Rows = tuple[Array, Array, Array]
"""Row ends, terms, numbers."""
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
    """Numbers of sparse rows times the `scale` of their terms, such that each row has length 1; zeros stay."""
    out = np.empty(len(data), dtype=np.float32)
    _unit(indptr, indices, data, NO_SCALE if scale is None else scale, out)
    out.flags.writeable = False  # as the rows it is used with: one type, one compiled loop
    return out


@kernel
def _sum_weights(indptr, indices, weights, out):  # type: ignore[no-untyped-def]
    for row in range(len(indptr) - 1):
        for p in range(indptr[row], indptr[row + 1]):
            for k in range(weights.shape[1]):
                out[k, row] += weights[indices[p], k]


def summed_weights(indptr: Array, indices: Array, weights: Array) -> Array:
    """For each column of `weights` (a row for each term) its sum over the terms of each row."""
    out = np.zeros((weights.shape[1], len(indptr) - 1))
    _sum_weights(indptr, indices, weights, out)
    return out


def nearest(queries: Rows, inverted: Rows, n_items: int, k: int) -> Rows:
    """The k items with the largest dot product for each row of `queries`, among those that share a term with it, as
    rows of items. `inverted` has a row of items for each term."""
    n, k = len(queries[0]) - 1, min(k, n_items)
    items, scores = np.empty((n, k), dtype=np.int32), np.empty((n, k))
    counts = np.zeros(n, dtype=np.int64)
    if k:
        _search(*queries, *inverted, n_items, 0, n, items, scores, counts)
    taken = np.arange(k) < counts[:, None]
    return np.concatenate([[0], np.cumsum(counts)]), items[taken], scores[taken]


@kernel
def _table_size(n):  # type: ignore[no-untyped-def]
    """A power of two that leaves at least half of the places empty."""
    size = 8
    while size < 2 * n:
        size *= 2
    return size


@kernel
def _place(keys, key):  # type: ignore[no-untyped-def]
    """Where the key stands in the table, or the empty place where it would."""
    mask = len(keys) - 1
    place = np.uint64(((np.int64(key) * 2654435761) >> 15) & mask)
    while keys[place] >= 0 and keys[place] != key:
        place = np.uint64((np.int64(place) + 1) & mask)
    return place


@kernel
def _number(keys, numbers, values):  # type: ignore[no-untyped-def]
    """Fills the table with the places of `values`, which are not negative; of equal ones the first place counts."""
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
    """A table with room for so many values, to be used again and again."""
    size = _table_size(longest)
    return np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)


@kernel
def _numbered(room, values):  # type: ignore[no-untyped-def]
    """As much of the room as these values need, filled with them."""
    size = _table_size(len(values))
    keys, numbers = room[0][:size], room[1][:size]
    _number(keys, numbers, values)
    return keys, numbers


@kernel
def word_sums(  # type: ignore[no-untyped-def]
    indptr, items, q_indptr, q_terms, d_indptr, d_terms, d_counts, idf, lengths, averages, k1, b, weights,
    bm25, vsm, sums,
):  # fmt: skip
    """Words that a query (each term once) and the fields of its documents share. Field f of document d is row
    `d * n_fields + f`; the last column of `idf` (a row for each term), `lengths` and `averages` stands for all fields
    together. Adds to `bm25[f]`, to `vsm` (of all fields), and to `sums[k, f]` the `weights[term, k]`."""
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
    """The dot product of each list's query row with the rows of its documents. A query names a term once."""
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
    """Voters `voters[v_indptr[i]:v_indptr[i + 1]]` of list i, with their weights, give each of its documents what their
    ballots hold for it: voter q has the documents `b_docs[b_indptr[q]:b_indptr[q + 1]]`, and in `b_values` as many
    numbers for each as `out` has rows. Ballots are short, while a document may have been voted for by very many."""
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
        for j in range(len(docs)):  # a document may stand in a list twice
            if docs[j] >= 0:
                first = numbers[_place(keys, docs[j])]
                for k in range(out.shape[0]):
                    out[k, indptr[i] + j] = out[k, indptr[i] + first]


@kernel
def likeness(  # type: ignore[no-untyped-def]
    indptr, items, d_indptr, d_terms, d_values, stride, first_row, last_row, scale, norms, weights, out
):
    """How like each document is to the weighted others of its list: d_i · sum_{j != i} w_j d_j, for each row of
    `weights`. Document d is the sum of rows `first_row` to `last_row` of the `stride` it has; where there is a `scale`,
    each number is multiplied by that of its term and by `norms[d]`."""
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
        entry = np.empty(n_entries, dtype=np.int64)  # of each term, where it stood last
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
                    if entry[number] >= row_start:  # the term stands in several rows of the document
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
                # Its own part of the centre is taken away term by term: what it shares with nobody is 0 exactly.
                for e in range(ends[at - start], ends[at - start + 1]):
                    total += values[e] * (centre[local[e], k] - weights[k, at] * values[e])
                out[k, at] = total


@kernel
def kept_terms(indptr, docs, shares, q_indptr, q_terms, d_indptr, d_terms, n_fields, asked, kept):  # type: ignore[no-untyped-def]
    """Adds to `asked[t]` the share of every document chosen for a query that has term t, and to `kept[t]` that of those
    which hold it in one of their fields."""
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
