"""A sparse random walk from many start nodes; the t-step transition matrix is never formed."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.engines.base import Engine, default_engine
from clickbridge.numerics.threads import kernel

Array = np.ndarray[Any, Any]


@kernel
def _walk(indptr, indices, data, out_weight, starts, stay, steps, threshold, first, last, totals, columns, values):  # type: ignore[no-untyped-def]
    """v <- A v, A_kj = (1 - stay) w_kj / sum_i w_ki for k != j, A_kk = stay; counts only where `columns` is empty."""
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
                # Only what adds something is noted: a node noted at mass 0 would be noted again, past the end.
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


def backward_walk(
    weights: sparse.csr_array, starts: Array, stay: float, steps: int, threshold: float, engine: Engine | None = None
) -> sparse.csr_array:
    """Row i: where a walk that is at `starts[i]` after `steps` steps is likely to have begun, not normalised.

    `weights` is the symmetric adjacency. From node k the walk stays with probability `stay`, else moves along
    an edge in proportion to its weight. Probabilities under `threshold` are dropped on the way.
    """
    n, n_rows = weights.shape[0], len(starts)
    out_weight = np.asarray(weights.sum(axis=1)).ravel()
    out_weight = np.where(out_weight > 0, out_weight, 1.0)
    graph = (weights.indptr, weights.indices, weights.data.astype(np.float64), out_weight)
    how = (starts.astype(np.int64), stay, steps, threshold)
    parts = (engine or default_engine()).by_rows(_walk_rows, n_rows, *graph, *how)
    lengths, columns, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    out = sparse.csr_array((values, columns, np.concatenate([[0], np.cumsum(lengths)])), shape=(n_rows, n))
    out.sort_indices()
    return out


def _walk_rows(engine: Engine, start: int, stop: int, *given: Any) -> tuple[Array, Array, Array]:
    """How many nodes each of some walks reaches, which, and with what probability."""
    *graph, starts, stay, steps, threshold = given
    how = (starts[start:stop], stay, steps, threshold, 0, stop - start)
    totals = np.zeros(stop - start + 1, dtype=np.int64)
    _walk(*graph, *how, totals, np.empty(0, np.int32), np.empty(0))
    lengths, ends = totals[1:].copy(), np.cumsum(totals)
    columns, values = np.empty(int(ends[-1]), np.int32), np.empty(int(ends[-1]))
    if len(columns):
        _walk(*graph, *how, ends, columns, values)
    return lengths, columns, values
