"""Query clusters by soft k-means (Kim and Choi 2009, eq. 25 to 27), in chunks that suit the processor's cache.

A query is the mean of its list's z; for full lists this is the paper's sum divided by a constant. The paper's hardness
beta = 1000 fits its N. Here it is relative: beta = hardness / mean squared distance to the nearest centre.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clickbridge.engines.base import Engine, default_engine
from clickbridge.numerics.diffusion import list_means

Array = np.ndarray[Any, Any]
CHUNK = 16_384
SAMPLE = 20_000
"""Queries from which the first centres are drawn."""
MOST_ROUNDS = 50
LEAST_GAIN = 1e-4


def query_vectors(indptr: Array, pages: Array, z: Array, engine: Engine | None = None) -> Array:
    """Eq. (25), divided by the number of pages: one row for each list that has a page."""
    return list_means(indptr, pages, z, engine)


def soft_k_means(
    points: Array,
    n_clusters: int,
    hardness: float,
    *,
    seed: int = 0,
    rounds: int = MOST_ROUNDS,
    engine: Engine | None = None,
    relative: bool = True,
) -> tuple[Array, float]:
    """Returns (centres, beta). `hardness` is beta itself, unless `relative` is set. It stops when the free energy
    -(1/beta) sum log sum exp(-beta d^2) no longer falls."""
    n_clusters = min(n_clusters, len(points))
    rng = np.random.default_rng(seed)
    sample = points if len(points) <= SAMPLE else points[np.sort(rng.choice(len(points), SAMPLE, replace=False))]
    centres, spread = first_centres(sample, n_clusters, rng)
    # As many centres as distinct queries leave no distance: then any hardness does.
    size = float(np.mean(np.einsum("ij,ij->i", sample, sample, dtype=np.float64)))
    beta = hardness / spread if spread > 1e-9 * size else 1.0 / (size or 1.0)
    beta = beta if relative else hardness
    before = np.inf
    for _ in range(rounds):
        centres, energy = step(points, centres, beta, engine)
        if before - energy <= LEAST_GAIN * abs(before) and np.isfinite(before):
            break
        before = energy
    return centres, beta


def first_centres(points: Array, n: int, rng: np.random.Generator) -> tuple[Array, float]:
    """k-means++: each next centre is drawn in proportion to its squared distance. Returns also the mean distance."""
    centres = np.empty((n, points.shape[1]), dtype=points.dtype)
    centres[0] = points[rng.integers(len(points))]
    far = _squared(points, centres[:1])[:, 0]
    for k in range(1, n):
        total = float(far.sum())
        chosen = rng.choice(len(points), p=far / total) if total > 0 else int(rng.integers(len(points)))
        centres[k] = points[chosen]
        np.minimum(far, _squared(points, centres[k : k + 1])[:, 0], out=far)
    return centres, float(far.mean())


def _squared(points: Array, centres: Array) -> Array:
    """Squared distances in float64, never below 0."""
    out = -2.0 * (points @ centres.T).astype(np.float64)
    out += np.einsum("ij,ij->i", points, points, dtype=np.float64)[:, None]
    out += np.einsum("ij,ij->i", centres, centres, dtype=np.float64)
    return np.maximum(out, 0.0, out=out)


def step(points: Array, centres: Array, beta: float, engine: Engine | None = None) -> tuple[Array, float]:
    """One round of (26) and (27): the new centres, and the free energy of the old ones. A cluster without points keeps
    its centre."""
    sums = np.zeros(centres.shape, dtype=np.float64)
    mass = np.zeros(len(centres))
    energy = 0.0

    def part(first: int) -> tuple[Array, Array, float]:
        chunk = points[first : first + CHUNK]
        shares, logs = responsibilities(chunk, centres, beta)
        return shares.T @ chunk, shares.sum(axis=0, dtype=np.float64), float(logs.sum())

    # The parts are added in their order, so the result does not depend on the number of threads.
    for s, m, e in (engine or default_engine()).map(part, range(0, len(points), CHUNK)):
        sums += s
        mass += m
        energy -= e / beta
    alive = mass > 1e-12
    fresh = np.where(alive[:, None], sums / np.where(alive, mass, 1.0)[:, None], centres)
    return fresh.astype(centres.dtype), energy


def responsibilities(points: Array, centres: Array, beta: float) -> tuple[Array, Array]:
    """Eq. (26) by log-sum-exp: shares in the points' precision, and log sum_k exp(-beta d_k^2)."""
    # Distances do not change with the origin; near the centres, float32 loses less of them.
    middle = centres.mean(axis=0)
    points, centres = points - middle, centres - middle
    logits = points @ centres.T
    logits *= 2 * beta
    logits -= (beta * np.einsum("ij,ij->i", centres, centres)).astype(logits.dtype)
    highest = logits.max(axis=1, keepdims=True)
    logits -= highest
    shares = np.exp(logits, out=logits)
    total = shares.sum(axis=1, keepdims=True)
    shares /= total
    own = np.einsum("ij,ij->i", points, points, dtype=np.float64)
    return shares, highest[:, 0].astype(np.float64) + np.log(total[:, 0].astype(np.float64)) - beta * own
