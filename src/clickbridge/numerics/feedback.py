"""Learning from and ranking of result lists, compiled: eq. (23) to (26) of Kim and Choi (2009) over flat arrays.

Every component of the page graph has a space of its own, with its own clusters and weights. A list is handled
component by component; a page without a place (component -1) adds nothing and gets 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from clickbridge.numerics.table import add_at, mixed, value_at
from clickbridge.numerics.threads import kernel

Array = np.ndarray[Any, Any]
NEGLIGIBLE = 1e-9
"""A cluster with less than this probability is passed over."""
EVERY, ABOVE, RESIDUAL = 0, 1, 2
"""Pairs of a page: clicked over every unclicked result; over those above it; all pairs, less what ranks foretell."""
OF_QUERY = 0xFFFFFFFF
"""In the place of a page number: the query's own count of clicked pages."""


class Layout(NamedTuple):
    """Flat arrays: of pages (component, start in z), of components (all others)."""

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


@kernel
def pair_labels(clicked, kind, rates, out):  # type: ignore[no-untyped-def]
    """G y of one page of results: for each result, its won less its lost pairs."""
    n = len(clicked)
    if kind == RESIDUAL:
        # y_ab = (c_a - c_b) - (p_a - p_b) over all pairs: what the ranks alone foretell teaches nothing.
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
def _query_vector(pages, top, c, layout, query):  # type: ignore[no-untyped-def]
    """Eq. (25) over the list's first pages, as a mean; how many of them lie in component c."""
    members = 0
    query[:] = 0.0
    for i in range(min(top, len(pages))):
        if pages[i] >= 0 and layout.component[pages[i]] == c:
            s = layout.start[pages[i]]
            row = layout.z[s : s + len(query)]
            members += 1
            for t in range(len(query)):
                query[t] += row[t]
    query /= max(members, 1)
    return members


@kernel
def _cluster_shares(pages, top, c, layout, query, out):  # type: ignore[no-untyped-def]
    """P(k | q) of eq. (26) by log-sum-exp. Centres stand side by side, dimension by dimension: the inner loop is
    over clusters, each with a sum of its own, which compiles to wide instructions and keeps the order of sums."""
    n = len(out)
    if n == 1:
        out[0] = 1.0
        return
    if _query_vector(pages, top, c, layout, query) == 0:
        _query_vector(pages, len(pages), c, layout, query)
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
def _first_of_component(pages, i, layout):  # type: ignore[no-untyped-def]
    """Whether place i is the first of its component in the list."""
    if pages[i] < 0 or layout.component[pages[i]] < 0:
        return False
    for j in range(i):  # noqa: SIM110 (a compiled loop)
        if pages[j] >= 0 and layout.component[pages[j]] == layout.component[pages[i]]:
            return False
    return True


@kernel
def latent_scores(indptr, pages, top, layout, weights, evidence, scale, shrink, out):  # type: ignore[no-untyped-def]
    """f(x | q) of eq. (23) for lists end to end, each cluster's share over its evidence plus `shrink`."""
    for e in range(len(indptr) - 1):
        shown = pages[indptr[e] : indptr[e + 1]]
        for i in range(len(shown)):
            if not _first_of_component(shown, i, layout):
                continue
            c = layout.component[shown[i]]
            d = layout.dims[c]
            shares, u = np.empty(layout.n_clusters[c]), np.zeros(d)
            _cluster_shares(shown, top, c, layout, np.empty(d, np.float32), shares)
            for k in range(len(shares)):
                seen = evidence[layout.slot_start[c] + k]
                if shares[k] > NEGLIGIBLE and seen != 0.0:
                    factor = shares[k] * scale / (max(seen, 0.0) * scale + shrink)
                    s = layout.weight_start[c] + k * d
                    row = weights[s : s + d]
                    for t in range(d):
                        u[t] += factor * row[t]
            for j in range(i, len(shown)):
                if shown[j] >= 0 and layout.component[shown[j]] == c:
                    s = layout.start[shown[j]]
                    z = layout.z[s : s + d]
                    total = 0.0
                    for t in range(d):
                        total += u[t] * z[t]
                    out[indptr[e] + j] = total


@kernel
def own_scores(indptr, pages, queries, keys, values, scale, shrink, out):  # type: ignore[no-untyped-def]
    """What the very same query taught about the very same page, over the query's evidence plus `shrink`."""
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
    """Eq. (24) for events end to end: u_k += P(k | q) sum over pages of y_i z~_i, and k's evidence."""
    for e in range(len(indptr) - 1):
        shown = pages[indptr[e] : indptr[e + 1]]
        y = labels[indptr[e] : indptr[e + 1]]
        for i in range(len(shown)):
            if not _first_of_component(shown, i, layout):
                continue
            c = layout.component[shown[i]]
            d = layout.dims[c]
            shares, step = np.empty(layout.n_clusters[c]), np.zeros(d)
            _cluster_shares(shown, top, c, layout, np.empty(d, np.float32), shares)
            for j in range(i, len(shown)):
                if shown[j] >= 0 and layout.component[shown[j]] == c and y[j] != 0.0:
                    s = layout.start[shown[j]]
                    z = layout.z_tilde[s : s + d]
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
def learn_own(indptr, pages, labels, amounts, queries, keys, values):  # type: ignore[no-untyped-def]
    """Adds each event to the table; how many keys are new. The table must have room."""
    new = 0
    for e in range(len(indptr) - 1):
        new += add_at(keys, values, mixed(queries[e], OF_QUERY), amounts[e])
        for p in range(indptr[e], indptr[e + 1]):
            if pages[p] >= 0 and labels[p] != 0.0:
                new += add_at(keys, values, mixed(queries[e], pages[p]), amounts[e] * labels[p])
    return new
