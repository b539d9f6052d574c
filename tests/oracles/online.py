"""The incremental re-ranker (09), written from its equations with everything built and nothing saved."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def dense_k(lists: list[list[int]], n: int) -> Array:
    """Eq. (8), (9) and (11): the normalised edge weights."""
    x = np.zeros((n, len(lists)))
    for k, pages in enumerate(lists):
        for page in pages:
            x[page, k] = 1.0
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if x[i] @ x[j]:
                out[i, j] = x[i] @ x[j] / (np.linalg.norm(x[i]) * np.linalg.norm(x[j]))
    d = out.sum(axis=1)
    for i in range(n):
        for j in range(n):
            if out[i, j]:
                out[i, j] /= np.sqrt(d[i] * d[j])
    return out


def power_iteration(k: Array, rank: int, rounds: int = 3000, seed: int = 0) -> tuple[Array, Array]:
    """Table 1: one eigenvector at a time, the earlier ones deflated."""
    rng = np.random.default_rng(seed)
    values, vectors = np.zeros(rank), np.zeros((len(k), rank))
    for r in range(rank):
        v = rng.standard_normal(len(k))
        v /= np.linalg.norm(v)
        for _ in range(rounds):
            b = k @ v
            for t in range(r):
                b -= values[t] * (v @ vectors[:, t]) * vectors[:, t]
            v = b / np.linalg.norm(b)
        values[r], vectors[:, r] = v @ k @ v, v
    return values, vectors


def all_pairs(n: int) -> Array:
    """G of eq. (16): a column for each pair, in lexicographical order."""
    pairs = list(combinations(range(n), 2))
    g = np.zeros((n, len(pairs)))
    for i, (a, b) in enumerate(pairs):
        g[a, i], g[b, i] = 1.0, -1.0
    return g


def direct_weights(z: Array, k: Array, y: Array, alpha: float, pair_weight: float = 1.0, smooth: bool = True) -> Array:
    """Eq. (18) solved as it stands, G and all; `z` is Z, R x N. Unlabelled pairs weigh `pair_weight`, and so does
    the quadratic part of labelled ones; their label enters at weight 1."""
    n = len(k)
    g, mu = all_pairs(n), (1 - alpha) / alpha
    left = pair_weight * z @ g @ g.T @ z.T
    if smooth:
        left = left + z @ (np.eye(n) - k) @ z.T / mu
    return np.linalg.lstsq(left, z @ g @ y, rcond=1e-10)[0]


def soft_k_means_step(points: Array, centres: Array, beta: float) -> tuple[Array, Array]:
    """Eq. (26) and (27) by loops: responsibilities, then new centres."""
    p = np.zeros((len(points), len(centres)))
    for i, q in enumerate(points):
        far = [np.sum((q - mu) ** 2) for mu in centres]
        for k in range(len(centres)):
            p[i, k] = np.exp(-beta * (far[k] - min(far)))  # the same factor above and below: nothing underflows
        p[i] /= p[i].sum()
    return p, np.array(
        [sum(p[i, k] * points[i] for i in range(len(points))) / p[:, k].sum() for k in range(p.shape[1])]
    )
