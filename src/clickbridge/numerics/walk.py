"""A sparse random walk from many start nodes. The t-step transition matrix is never formed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from clickbridge.numerics.threads import kernel

Array = np.ndarray[Any, Any]


class Edges(NamedTuple):
    """A graph in the form that the compiled walk needs. `out_weight` is 1 for a node without edges."""

    indptr: Array
    indices: Array
    weights: Array
    out_weight: Array

    @classmethod
    def of(cls, weights: sparse.csr_array) -> Edges:
        """The edges of a symmetric adjacency matrix."""
        total = np.asarray(weights.sum(axis=1)).ravel()
        return cls(weights.indptr, weights.indices, weights.data.astype(np.float64), np.where(total > 0, total, 1.0))


@kernel
def _walk(indptr, indices, data, out_weight, starts, stay, steps, threshold, first, last, totals, columns, values):  # type: ignore[no-untyped-def]
    """v <- A v, with A_kj = (1 - stay) w_kj / sum_i w_ki for k != j, and A_kk = stay. If `columns` is empty, it only
    counts the nodes."""
    n = len(indptr) - 1
    now, after = np.zeros(n), np.zeros(n)
    touched, touched_after = np.empty(n, np.int32), np.empty(n, np.int32)
    counting = len(columns) == 0
    for row in range(first, last):
        size = 1
        touched[0] = starts[row]
        now[starts[row]] = 1.0
        for _ in range(steps):
            size_after = 0
            for t in range(size):
                node = touched[t]
                mass = now[node]
                now[node] = 0.0
                if mass < threshold:
                    continue
                # Nodes are noted only if they get some mass. One noted at 0 would be noted again, beyond the end.
                gain = stay * mass
                if gain > 0.0:
                    if after[node] == 0.0:
                        touched_after[size_after] = node
                        size_after += 1
                    after[node] += gain
                for p in range(indptr[node], indptr[node + 1]):
                    other = indices[p]
                    gain = (1.0 - stay) * data[p] / out_weight[other] * mass
                    if gain > 0.0:
                        if after[other] == 0.0:
                            touched_after[size_after] = other
                            size_after += 1
                        after[other] += gain
            now, after = after, now
            touched, touched_after = touched_after, touched
            size = size_after
        place = 0 if counting else totals[row]
        for t in range(size):
            node = touched[t]
            if not counting:
                columns[place] = node
                values[place] = now[node]
            place += 1
            now[node] = 0.0
        if counting:
            totals[row + 1] = place


def backward_walk(edges: Edges, starts: Array, stay: float, steps: int, threshold: float) -> sparse.csr_array:
    """Row i has, for each node, the probability that a walk from there is at `starts[i]` after `steps` steps.

    At each step the walk stays at its node with probability `stay`, or moves along an edge with a probability
    proportional to its weight. Probabilities below `threshold` are dropped at each step. The rows are not normalised.
    Memory for all nodes is allocated once for all starts.
    """
    n_rows = len(starts)
    how = (starts.astype(np.int64), stay, steps, threshold, 0, n_rows)
    ends = np.zeros(n_rows + 1, dtype=np.int64)
    _walk(*edges, *how, ends, np.empty(0, np.int32), np.empty(0))  # without room for the nodes it only counts them
    ends = np.cumsum(ends)
    columns, values = np.empty(int(ends[-1]), np.int32), np.empty(int(ends[-1]))
    if len(columns):
        _walk(*edges, *how, ends, columns, values)
    out = sparse.csr_array((values, columns, ends), shape=(n_rows, len(edges.indptr) - 1))
    out.sort_indices()
    return out
