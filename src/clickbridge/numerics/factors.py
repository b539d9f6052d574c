"""Stochastic gradient descent for bilinear factors of sparse features: score = offset + x' U V' y + biases.

A sample is a query row, a document row and, for a pairwise loss, a second document whose score is subtracted.
Batches make the result independent of the number of threads. First, all scores of a batch are computed from the same
factors, with the samples divided among the threads. Then every thread applies all steps of the batch, in order, to its
own latent columns. AdaGrad sets the step sizes, with one sum of squares for each row of a factor, because rare features
need longer steps than common ones.

Weight decay is implicit: after a step, w becomes w / (1 + step * shrink). AdaGrad's step is rate / |gradients so far|.
It is unbounded if the gradients of a row are zero, as for two documents with the same features or with none. There the
explicit form, w (1 - step * shrink), would change its sign and diverge; the implicit form shrinks w for any step. The
gradient moves a row by at most `rate` per step, so factors grow no faster than the number of samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.engines.base import Engine, default_engine
from clickbridge.numerics.losses import LOSSES, slope_of
from clickbridge.numerics.single_features import SingleFeatures, single_features
from clickbridge.numerics.threads import any_order_kernel, kernel

Array = np.ndarray[Any, Any]
BATCH = 256
LEAST_WORK = 400_000
"""With fewer multiplications in a batch, starting a second thread takes longer than it saves."""


@dataclass
class Factors:
    """`u` and `v` map query and document features. `b_x`, `b_y` and `b_g` are the biases of query, document and global
    features."""

    u: Array
    v: Array
    b_x: Array
    b_y: Array
    b_g: Array

    def copy(self) -> Factors:
        return Factors(*(a.copy() for a in self.arrays))

    @property
    def arrays(self) -> tuple[Array, ...]:
        return self.u, self.v, self.b_x, self.b_y, self.b_g


@dataclass(frozen=True)
class Samples:
    """`negative` is -1 for a pointwise sample. `target` is the target of a pointwise loss. `globals` has a row of
    global features for each sample; for a pair it is the difference of both rows. `offset` is added to the score."""

    query: Array
    positive: Array
    negative: Array
    target: Array
    globals: Array
    offset: Array

    def __len__(self) -> int:
        return len(self.query)

    @property
    def arrays(self) -> tuple[Array, ...]:
        return self.query, self.positive, self.negative, self.target, self.globals, self.offset


# Loops over latent columns use only float32, so that they compile to SIMD instructions. Compiled loops take a sparse
# matrix as (indptr, indices, data) and the samples as (query, positive, negative, target, globals, offset).


@kernel
def _add_row(matrix, row, sign, factor, out):  # type: ignore[no-untyped-def]
    indptr, indices, data = matrix
    for p in range(indptr[row], indptr[row + 1]):
        value, image = np.float32(sign * data[p]), factor[indices[p]]
        for c in range(len(image)):
            out[c] += value * image[c]


@any_order_kernel
def _dot(a, b):  # type: ignore[no-untyped-def]
    total = np.float32(0)
    for c in range(len(a)):
        total += a[c] * b[c]
    return total


@kernel
def _bias(matrix, row, bias):  # type: ignore[no-untyped-def]
    indptr, indices, data = matrix
    total = 0.0
    for p in range(indptr[row], indptr[row + 1]):
        total += data[p] * bias[indices[p]]
    return total


@kernel
def _forward(x, y, factors, samples, loss, start, stop, first, a, b, slope):  # type: ignore[no-untyped-def]
    """Images and slopes of samples start..stop. Those of sample s are written at s - first."""
    u, v, b_x, b_y, b_g = factors
    query, positive, negative, target, global_rows, offset = samples
    for s in range(start, stop):
        i = s - first
        a[i, :] = 0.0
        b[i, :] = 0.0
        _add_row(x, query[s], 1.0, u, a[i])
        _add_row(y, positive[s], 1.0, v, b[i])
        score = offset[s] + _bias(y, positive[s], b_y)
        if negative[s] >= 0:
            _add_row(y, negative[s], -1.0, v, b[i])
            score -= _bias(y, negative[s], b_y)
        else:
            score += _bias(x, query[s], b_x)
        for g in range(len(b_g)):
            score += b_g[g] * global_rows[s, g]
        score += _dot(a[i], b[i])
        slope[i] = slope_of(loss, score, target[s], negative[s] >= 0)


@kernel
def _step_row(matrix, row, slope, other, size, rate, shrink, factor, squares, low, high):  # type: ignore[no-untyped-def]
    """One AdaGrad step on the rows of a factor that belong to the features of a sparse row. `size` is the squared
    length of the whole `other`, so that every thread has the same sums of squares."""
    indptr, indices, data = matrix
    for p in range(indptr[row], indptr[row + 1]):
        feature, value = indices[p], slope * data[p]
        squares[feature] += value * value * size
        step = rate / np.sqrt(squares[feature] + 1e-8)
        keep, move = np.float32(1.0 / (1.0 + step * shrink)), np.float32(step * value)
        image = factor[feature, low:high]
        for c in range(len(image)):
            image[c] = keep * (image[c] - move * other[c])


@kernel
def _apply(x, y, factors, samples, first, n, a, b, slope, rate, shrink, squares, low, high):  # type: ignore[no-untyped-def]
    """Applies all steps of a batch to latent columns low..high."""
    u, v, u_squares, v_squares = factors[0], factors[1], squares[0], squares[1]
    query, positive, negative = samples[0], samples[1], samples[2]
    for i in range(n):
        if slope[i] == 0.0:
            continue
        s = first + i
        size_a, size_b = _dot(a[i], a[i]), _dot(b[i], b[i])
        _step_row(x, query[s], slope[i], b[i, low:high], size_b, rate, shrink, u, u_squares, low, high)
        _step_row(y, positive[s], slope[i], a[i, low:high], size_a, rate, shrink, v, v_squares, low, high)
        if negative[s] >= 0:
            _step_row(y, negative[s], -slope[i], a[i, low:high], size_a, rate, shrink, v, v_squares, low, high)


@kernel
def _step_bias(matrix, row, slope, rate, shrink, bias, squares):  # type: ignore[no-untyped-def]
    indptr, indices, data = matrix
    for p in range(indptr[row], indptr[row + 1]):
        gradient, feature = slope * data[p], indices[p]
        squares[feature] += gradient * gradient
        step = rate / np.sqrt(squares[feature] + 1e-8)
        bias[feature] = (bias[feature] - step * gradient) / (1.0 + step * shrink)


@kernel
def _apply_biases(x, y, factors, samples, first, n, slope, rate, shrink, squares):  # type: ignore[no-untyped-def]
    _, _, b_x, b_y, b_g = factors
    x_squares, y_squares, g_squares = squares
    query, positive, negative, _, global_rows, _ = samples
    for i in range(n):
        if slope[i] == 0.0:
            continue
        s = first + i
        _step_bias(y, positive[s], slope[i], rate, shrink, b_y, y_squares)
        if negative[s] >= 0:
            _step_bias(y, negative[s], -slope[i], rate, shrink, b_y, y_squares)
        else:
            _step_bias(x, query[s], slope[i], rate, shrink, b_x, x_squares)
        for g in range(len(b_g)):
            gradient = slope[i] * global_rows[s, g]
            g_squares[g] += gradient * gradient
            b_g[g] -= rate / np.sqrt(g_squares[g] + 1e-8) * gradient


@kernel
def _take_in(mean, value, n):  # type: ignore[no-untyped-def]
    """Updates a running mean with the n-th value."""
    share = mean.dtype.type(1 / n)
    for i in range(len(mean)):
        mean[i] += (value[i] - mean[i]) * share


class Descent:
    """Stochastic gradient descent. Holds the factors, their AdaGrad sums, and the mean of the factors over the
    epochs."""

    def __init__(
        self,
        x: sparse.csr_array,
        y: sparse.csr_array,
        factors: Factors,
        loss: str,
        rate: float = 0.1,
        shrink: float = 0.0,
        biases: bool = True,
        engine: Engine | None = None,
    ) -> None:
        self.x, self.y = _parts(x), _parts(y)
        self.factors, self.loss = factors, LOSSES[loss]
        self.rate, self.shrink, self.biases = rate, shrink, biases
        self.engine = engine or default_engine()
        self.threads = max(1, min(self.engine.threads, factors.u.shape[1]))
        if BATCH * factors.u.shape[1] * (_mean_row(x) + 2 * _mean_row(y)) < LEAST_WORK:
            self.threads = 1
        # One copy per thread: all have the same numbers, and no thread reads sums that another is changing.
        self._squares = [(np.zeros(x.shape[1]), np.zeros(y.shape[1])) for _ in range(self.threads)]
        self._bias_squares = tuple(np.zeros(len(b)) for b in (factors.b_x, factors.b_y, factors.b_g))
        self._single: SingleFeatures | None = None
        if single_features(x) and single_features(y) and not len(factors.b_g):
            self._single = SingleFeatures(x, y, factors.arrays, self.loss, rate, shrink, biases)
            self.threads = 1
        self.mean = factors.copy()
        self.epochs = 0

    def epoch(self, samples: Samples) -> None:
        """One pass over the samples in the given order. Afterwards the factors are added to the mean."""
        if self._single is not None:
            self._single.descend(samples.arrays)
        else:
            self._batches(samples)
        self.epochs += 1
        for mean, value in zip(self.mean.arrays, self.factors.arrays, strict=True):
            _take_in(mean.ravel(), value.ravel(), self.epochs)

    def _batches(self, samples: Samples) -> None:
        width = self.factors.u.shape[1]
        a, b = (np.zeros((BATCH, width), dtype=np.float32) for _ in range(2))
        slope = np.zeros(BATCH)
        for first in range(0, len(samples), BATCH):
            self._batch(samples, first, min(first + BATCH, len(samples)), a, b, slope)

    def _batch(self, s: Samples, first: int, stop: int, a: Array, b: Array, slope: Array) -> None:
        n, f, rows = stop - first, self.factors.arrays, s.arrays

        def forward(_: int, low: int, high: int) -> None:
            _forward(self.x, self.y, f, rows, self.loss, first + low, first + high, first, a, b, slope)

        def apply(thread: int, low: int, high: int) -> None:
            steps = self.rate, self.shrink, self._squares[thread]
            _apply(self.x, self.y, f, rows, first, n, a, b, slope, *steps, low, high)

        self._share(n, forward)
        self._share(f[0].shape[1], apply)
        if self.biases:
            steps = self.rate, self.shrink, self._bias_squares
            _apply_biases(self.x, self.y, f, rows, first, n, slope, *steps)

    def _share(self, n: int, work: Callable[[int, int, int], None]) -> None:
        """Calls `work(thread, start, stop)` over a partition of n."""
        if self.threads == 1:
            work(0, 0, n)
            return
        bounds = [n * i // self.threads for i in range(self.threads + 1)]
        for _ in self.engine.map(lambda i: work(i, bounds[i], bounds[i + 1]), range(self.threads)):
            pass


def _mean_row(matrix: sparse.csr_array) -> float:
    return matrix.nnz / max(matrix.shape[0], 1)


def _parts(matrix: sparse.csr_array) -> tuple[Array, Array, Array]:
    return matrix.indptr, matrix.indices, matrix.data.astype(np.float32)


def random_factors(n_x: int, n_y: int, dim: int, n_globals: int, scale: float, seed: int) -> Factors:
    """Small random maps, and biases of 0. `scale` is the expected length of the image of a feature."""
    rng = np.random.default_rng(seed)
    u, v = ((rng.standard_normal((n, dim)) * scale / np.sqrt(dim)).astype(np.float32) for n in (n_x, n_y))
    return Factors(u, v, np.zeros(n_x), np.zeros(n_y), np.zeros(n_globals))
