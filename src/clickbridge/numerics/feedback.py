"""Compiled loops that learn from result lists and rank them: eq. (23) to (26) of Kim and Choi (2009) on flat arrays.

Every component of the page graph has its own latent space, clusters and weights. A list is processed component by
component. A page that belongs to none (component -1) is ignored and gets the score 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from clickbridge.numerics.hash_table import add_at, crowded, mixed, value_at
from clickbridge.numerics.threads import kernel

Array = np.ndarray[Any, Any]
NEGLIGIBLE = 1e-9
"""Clusters with a smaller probability are skipped."""
EVERY, ABOVE, RESIDUAL = 0, 1, 2
"""Which pairs of a result page count: a clicked result and every unclicked one; a clicked result and the unclicked ones
above it; or all pairs, minus the clicks that their ranks explain."""
OF_QUERY = 0xFFFFFFFF
"""Used instead of a page number in a key, for the evidence of a query."""


def read_only(values: Array) -> Array:
    """A read-only array, like one mapped from a file, so that compiled loops are compiled for one type only."""
    out = np.ascontiguousarray(values).view(np.ndarray)
    out.setflags(write=False)
    return out


class Layout(NamedTuple):
    """Flat arrays of pages (component, start in z), of components, and of pages added later. The numbers of later pages
    continue after the others. They have arrays of their own, so that adding a page does not copy everything."""

    component: Array
    start: Array
    z: Array
    z_tilde: Array
    dims: Array
    n_clusters: Array
    beta: Array
    centre_start: Array
    centres: Array
    weight_start: Array
    slot_start: Array
    sums: Array
    """For each component, whether its clusters are of sums of z (eq. 25) or of means."""
    later_component: Array = read_only(np.empty(0, dtype=np.int32))
    later_start: Array = read_only(np.empty(0, dtype=np.int64))
    later_z: Array = read_only(np.empty(0, dtype=np.float32))
    later_z_tilde: Array = read_only(np.empty(0, dtype=np.float32))


@kernel
def pair_labels(clicked, kind, rates, out):  # type: ignore[no-untyped-def]
    """G y of one result page: for each result, the pairs it won minus the pairs it lost."""
    n = len(clicked)
    if kind == RESIDUAL:
        # y_ab = (c_a - c_b) - (p_a - p_b) over all pairs: clicks that the ranks alone explain teach nothing.
        total = 0.0
        for i in range(n):
            out[i] = clicked[i] - rates[min(i, len(rates) - 1)]
            total += out[i]
        for i in range(n):
            out[i] = n * out[i] - total
        return
    for i in range(n):
        out[i] = 0.0
    for a in range(n):
        if not clicked[a]:
            continue
        for b in range(a if kind == ABOVE else n):
            if not clicked[b]:
                out[a] += 1.0
                out[b] -= 1.0


@kernel
def labels_of_lists(indptr, clicked, kind, rates, out):  # type: ignore[no-untyped-def]
    """`pair_labels` of many result pages, stored one after the other."""
    for e in range(len(indptr) - 1):
        pair_labels(clicked[indptr[e] : indptr[e + 1]], kind, rates, out[indptr[e] : indptr[e + 1]])


@kernel
def _places(pages, component, start, later_component, later_start, kinds, begins):  # type: ignore[no-untyped-def]
    """The component of each page of a list and its start in z. For a later page: -1 minus its start in `later_z`."""
    for i in range(len(pages)):
        later = pages[i] - len(component)
        if pages[i] < 0:
            kinds[i] = -1
        elif later < 0:
            kinds[i], begins[i] = component[pages[i]], start[pages[i]]
        else:
            kinds[i], begins[i] = later_component[later], -1 - later_start[later]


@kernel
def _row(z, later, begin, d):  # type: ignore[no-untyped-def]
    return z[begin : begin + d] if begin >= 0 else later[-1 - begin : -1 - begin + d]


@kernel
def _query_vector(kinds, begins, top, c, z, later, sums, query):  # type: ignore[no-untyped-def]
    """Eq. (25) over the first pages of a list: the sum if clusters are of sums, otherwise the mean. Returns how many of
    the pages are in component c."""
    members = 0
    query[:] = 0.0
    for i in range(min(top, len(kinds))):
        if kinds[i] == c:
            row = _row(z, later, begins[i], len(query))
            members += 1
            for t in range(len(query)):
                query[t] += row[t]
    if not sums:
        query /= max(members, 1)
    return members


@kernel
def _cluster_shares(kinds, begins, top, c, layout, query, out):  # type: ignore[no-untyped-def]
    """P(k | q) of eq. (26), by log-sum-exp. Centres are stored dimension by dimension. The inner loop runs over
    clusters, each with its own sum: it compiles to SIMD instructions and keeps the order of sums."""
    n = len(out)
    if n == 1:
        out[0] = 1.0
        return
    if _query_vector(kinds, begins, top, c, layout.z, layout.later_z, layout.sums[c], query) == 0:
        _query_vector(kinds, begins, len(kinds), c, layout.z, layout.later_z, layout.sums[c], query)
    far = np.zeros(n, np.float32)
    for t in range(len(query)):
        s = layout.centre_start[c] + t * n
        row = layout.centres[s : s + n]
        for k in range(n):
            gap = query[t] - row[k]
            far[k] += gap * gap
    nearest = far.min()
    total = 0.0
    for k in range(n):
        out[k] = np.exp(-layout.beta[c] * (far[k] - nearest))
        total += out[k]
    out /= total


@kernel
def _first_of_component(kinds, i):  # type: ignore[no-untyped-def]
    """Whether position i is the first of its component in the list."""
    if kinds[i] < 0:
        return False
    for j in range(i):  # noqa: SIM110 (a compiled loop)
        if kinds[j] == kinds[i]:
            return False
    return True


@kernel
def latent_scores(indptr, pages, top, layout, weights, evidence, scale, shrink, out):  # type: ignore[no-untyped-def]
    """f(x | q) of eq. (23) for many lists. The share of each cluster is divided by its evidence plus `shrink`. With
    `shrink` 0 it is f as printed."""
    where = layout.component, layout.start, layout.later_component, layout.later_start
    for e in range(len(indptr) - 1):
        shown = pages[indptr[e] : indptr[e + 1]]
        kinds, begins = np.empty(len(shown), np.int64), np.empty(len(shown), np.int64)
        _places(shown, *where, kinds, begins)
        for i in range(len(shown)):
            if not _first_of_component(kinds, i):
                continue
            c = kinds[i]
            d = layout.dims[c]
            shares, u = np.empty(layout.n_clusters[c]), np.zeros(d)
            _cluster_shares(kinds, begins, top, c, layout, np.empty(d, np.float32), shares)
            for k in range(len(shares)):
                seen = evidence[layout.slot_start[c] + k]
                if shares[k] > NEGLIGIBLE and seen != 0.0:
                    factor = shares[k] * scale
                    if shrink > 0.0:
                        factor /= max(seen, 0.0) * scale + shrink
                    s = layout.weight_start[c] + k * d
                    row = weights[s : s + d]
                    for t in range(d):
                        u[t] += factor * row[t]
            for j in range(i, len(shown)):
                if kinds[j] == c:
                    z = _row(layout.z, layout.later_z, begins[j], d)
                    total = 0.0
                    for t in range(d):
                        total += u[t] * z[t]
                    out[indptr[e] + j] = total


@kernel
def own_scores(indptr, pages, queries, keys, values, scale, shrink, out):  # type: ignore[no-untyped-def]
    """What exactly this query taught about exactly this page, divided by the query's evidence plus `shrink`."""
    for e in range(len(indptr) - 1):
        seen = value_at(keys, values, mixed(queries[e], OF_QUERY))
        for p in range(indptr[e], indptr[e + 1]):
            if seen != 0.0 and pages[p] >= 0:
                won = value_at(keys, values, mixed(queries[e], pages[p]))
                out[p] = won * scale / (max(seen, 0.0) * scale + shrink)
            else:
                out[p] = 0.0


@kernel
def learn_latent(indptr, pages, top, labels, amounts, layout, weights, evidence):  # type: ignore[no-untyped-def]
    """Eq. (24) for many events: u_k += P(k | q) times the sum over pages of y_i z~_i. Also adds to k's evidence."""
    where = layout.component, layout.start, layout.later_component, layout.later_start
    for e in range(len(indptr) - 1):
        shown = pages[indptr[e] : indptr[e + 1]]
        y = labels[indptr[e] : indptr[e + 1]]
        kinds, begins = np.empty(len(shown), np.int64), np.empty(len(shown), np.int64)
        _places(shown, *where, kinds, begins)
        for i in range(len(shown)):
            if not _first_of_component(kinds, i):
                continue
            c = kinds[i]
            d = layout.dims[c]
            shares, step = np.empty(layout.n_clusters[c]), np.zeros(d)
            _cluster_shares(kinds, begins, top, c, layout, np.empty(d, np.float32), shares)
            for j in range(i, len(shown)):
                if kinds[j] == c and y[j] != 0.0:
                    z = _row(layout.z_tilde, layout.later_z_tilde, begins[j], d)
                    for t in range(d):
                        step[t] += y[j] * z[t]
            for k in range(len(shares)):
                if shares[k] > NEGLIGIBLE:
                    worth = amounts[e] * shares[k]
                    evidence[layout.slot_start[c] + k] += worth
                    s = layout.weight_start[c] + k * d
                    row = weights[s : s + d]
                    for t in range(d):
                        row[t] += worth * step[t]


@kernel
def learn_own(indptr, pages, labels, amounts, queries, first, keys, values, used):  # type: ignore[no-untyped-def]
    """Adds events to the table, from `first` on, until the next one might overfill it. Returns the next event and the
    number of keys in use. The caller then enlarges the table."""
    for e in range(first, len(indptr) - 1):
        if crowded(used + indptr[e + 1] - indptr[e] + 1, len(keys)):
            return e, used
        used += add_at(keys, values, mixed(queries[e], OF_QUERY), amounts[e])
        for p in range(indptr[e], indptr[e + 1]):
            if pages[p] >= 0 and labels[p] != 0.0:
                used += add_at(keys, values, mixed(queries[e], pages[p]), amounts[e] * labels[p])
    return len(indptr) - 1, used


@kernel
def listed_pages(order, items, numbers, more, out):  # type: ignore[no-untyped-def]
    """Page numbers of items, in the given order. Items below the size of the catalogue are its documents, larger ones
    are in `more`. -1 is an unknown document; its page number is the last entry of `numbers`."""
    n = len(numbers) - 1
    for r in range(len(order)):
        item = items[order[r]]
        out[r] = numbers[item] if item < n else more[item - n]


@kernel
def blended(indptr, order, pages, given, latent, queries, keys, values, scale, how, prior, out):  # type: ignore[no-untyped-def]
    """The score of every row of many lists: the sum of its latent part, its own part, and the log click rate of its
    rank. `order` sorts rows by decreasing `given` score; `pages` and `latent` are in that order. `how` is (weight of
    the latent part, weight of the own part, shrink, weight of the log rate)."""
    longest = len(prior)
    for e in range(len(indptr) - 1):
        seen = value_at(keys, values, mixed(queries[e], OF_QUERY))
        for p in range(indptr[e], indptr[e + 1]):
            rank = p - indptr[e]
            total = 0.0
            if how[1] != 0.0 and seen != 0.0 and pages[p] >= 0:
                won = value_at(keys, values, mixed(queries[e], pages[p]))
                total = how[1] * (won * scale / (max(seen, 0.0) * scale + how[2]))
            if how[0] != 0.0:
                total = how[0] * latent[p] + total
            # Beyond the longest list the rate falls as 1 / rank.
            if rank < longest:
                total += how[3] * prior[rank]
            else:
                total += how[3] * (prior[longest - 1] - np.log((rank + 1) / longest))
            row = order[p]
            # A document without a score in the inner model has none here either.
            out[row] = total if given[row] != -np.inf else -np.inf
