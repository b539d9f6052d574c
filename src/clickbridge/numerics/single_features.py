"""Gradient descent where every row has a single feature, for example if the only feature of a query is its number.

A step changes one row of U and two of V, so it is cheap to update the factors after every sample. There are no batches,
nothing is stored between score and step, and no row is copied. This uses one thread: passing such short steps to
another thread takes longer than the steps. Meanwhile another thread can draw the next samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.numerics.losses import slope_of
from clickbridge.numerics.threads import any_order_kernel, kernel, unsigned

Array = np.ndarray[Any, Any]


def single_features(matrix: sparse.csr_array) -> bool:
    """Whether each row has exactly one feature."""
    return bool((np.diff(matrix.indptr) == 1).all())


@kernel
def _pace(rate, squares):  # type: ignore[no-untyped-def]
    """The AdaGrad step for this sum of squared gradients."""
    return rate / np.sqrt(squares + 1e-8)


@kernel
def _moved(bias, gradient, step, shrink):  # type: ignore[no-untyped-def]
    return (bias - step * gradient) / (1.0 + step * shrink)


@any_order_kernel
def _descend(x, y, factors, squares, samples, loss, rate, shrink, biases):  # type: ignore[no-untyped-def]
    """For each sample in turn: score, slope, steps. If a sample has one document only, that document is used a second
    time with the value 0. Rows are indexed directly: a view would need atomic reference counting for every sample."""
    (x_feature, x_value), (y_feature, y_value) = x, y
    u, v, b_x, b_y, _ = factors
    u_squares, v_squares, x_squares, y_squares = squares
    query, positive, negative, target, _, offset = samples
    for s in range(len(query)):
        first, second, third = query[s], positive[s], negative[s]
        pairwise = third < len(y_feature)
        if not pairwise:
            third = second
        one, two, three = x_value[first], y_value[second], y_value[third] if pairwise else np.float32(0)
        i, j, k = x_feature[first], y_feature[second], y_feature[third]
        # d = y - y' in latent space: a'd, a'a and d'd in one pass.
        dot, a_size, d_size = np.float32(0), np.float32(0), np.float32(0)
        for n in range(u.shape[1]):
            a, d = u[i, n], two * v[j, n] - three * v[k, n]
            dot += a * d
            a_size += a * a
            d_size += d * d
        score = offset[s] + one * dot + two * b_y[j] - three * b_y[k]
        if not pairwise:
            score += one * b_x[i]
        slope = slope_of(loss, score, target[s], pairwise)
        if slope == 0.0:
            continue
        g_i, g_j, g_k = slope * one, slope * two, -slope * three
        a_size *= one * one
        u_squares[i] += g_i * g_i * d_size
        step_i = _pace(rate, u_squares[i])
        v_squares[j] += g_j * g_j * a_size
        step_j = _pace(rate, v_squares[j])
        v_squares[k] += g_k * g_k * a_size
        step_k = _pace(rate, v_squares[k])
        keep_i = keep_j = keep_k = np.float32(1)
        if shrink > 0.0:
            keep_i = np.float32(1.0 / (1.0 + step_i * shrink))
            keep_j = np.float32(1.0 / (1.0 + step_j * shrink))
            if pairwise:
                keep_k = np.float32(1.0 / (1.0 + step_k * shrink))
        move_i, move_j, move_k = step_i * g_i, step_j * g_j * one, step_k * g_k * one
        for n in range(u.shape[1]):
            a, d = u[i, n], two * v[j, n] - three * v[k, n]
            u[i, n] = keep_i * (a - np.float32(move_i) * d)
            v[j, n] = keep_j * (v[j, n] - np.float32(move_j) * a)
            v[k, n] = keep_k * (v[k, n] - np.float32(move_k) * a)
        if biases:
            y_squares[j] += g_j * g_j
            b_y[j] = _moved(b_y[j], g_j, _pace(rate, y_squares[j]), shrink)
            if pairwise:
                y_squares[k] += g_k * g_k
                b_y[k] = _moved(b_y[k], g_k, _pace(rate, y_squares[k]), shrink)
            else:
                x_squares[i] += g_i * g_i
                b_x[i] = _moved(b_x[i], g_i, _pace(rate, x_squares[i]), shrink)


class SingleFeatures:
    """Passes over samples. Keeps the sums of squares of AdaGrad from one pass to the next."""

    def __init__(
        self, x: sparse.csr_array, y: sparse.csr_array, factors: tuple[Array, ...], loss: int, rate: float,
        shrink: float, biases: bool,
    ) -> None:  # fmt: skip
        """`factors` are `Factors.arrays`, which are changed in place. There are no global features."""
        # The only feature of each row, and its value.
        self._x, self._y = ((unsigned(m.indices), m.data.astype(np.float32)) for m in (x, y))
        self._factors, self._how = factors, (loss, rate, shrink, biases)
        self._squares = tuple(np.zeros(n) for n in 2 * (x.shape[1], y.shape[1]))

    def descend(self, samples: tuple[Array, ...]) -> None:
        """One pass over `Samples.arrays`."""
        # Document -1, which means none, becomes a large number.
        _descend(self._x, self._y, self._factors, self._squares, tuple(unsigned(c) for c in samples), *self._how)
