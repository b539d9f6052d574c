"""Loops over points (x, y) under an S-kernel: their Gram matrix, and sums over points.

The kernel of two points is g inner(z) g' with z = k_X k_Y. There are few different x and y, so both kernels are given
as small matrices, with the index of x and y for each point. The inner functions, with constants c and rho:

    LINE         c + rho z
    EXPONENTIAL  exp(rho z)
    GEOMETRIC    1 / (1 - rho z)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clickbridge.numerics.threads import kernel

Array = np.ndarray[Any, Any]
LINE, EXPONENTIAL, GEOMETRIC = 0, 1, 2


@kernel
def _inner(form, c, rho, z):  # type: ignore[no-untyped-def]
    if form == LINE:
        return c + rho * z
    if form == EXPONENTIAL:
        return np.exp(rho * z)
    return 1.0 / (1.0 - rho * z)


@kernel
def _each(form, c, rho, z, out):  # type: ignore[no-untyped-def]
    for i in range(len(z)):
        out[i] = _inner(form, c, rho, z[i])


@kernel
def _gram(form, c, rho, k_x, x_of, k_y, y_of, g, out):  # type: ignore[no-untyped-def]
    for i in range(len(g)):
        row_x, row_y, line = k_x[x_of[i]], k_y[y_of[i]], out[i]
        for j in range(i + 1):
            line[j] = g[i] * _inner(form, c, rho, row_x[x_of[j]] * row_y[y_of[j]]) * g[j]
    for i in range(len(g)):
        for j in range(i):
            out[j, i] = out[i, j]


@kernel
def _sums(form, c, rho, k_x, k_y, y_of, weights, out):  # type: ignore[no-untyped-def]
    for i in range(len(out)):
        row, total = k_y[i], 0.0
        for p in range(len(weights)):
            total += _inner(form, c, rho, k_x[p] * row[y_of[p]]) * weights[p]
        out[i] = total


def inner_values(form: int, c: float, rho: float, z: Array) -> Array:
    """inner(z) of every entry."""
    flat = np.ascontiguousarray(z, dtype=np.float64).ravel()
    out = np.empty(len(flat))
    _each(form, c, rho, flat, out)
    return out.reshape(np.shape(z))


def points_gram(form: int, c: float, rho: float, k_x: Array, x_of: Array, k_y: Array, y_of: Array, g: Array) -> Array:
    """The Gram matrix of points. Point p consists of x number `x_of[p]` and y number `y_of[p]` and has the factor
    `g[p]`. Both kernels are symmetric."""
    check_numbers(k_x, x_of)
    check_numbers(k_y, y_of)
    out = np.empty((len(g), len(g)))
    _gram(form, c, rho, k_x, x_of, k_y, y_of, g, out)
    return out


def sums_over_points(form: int, c: float, rho: float, k_x: Array, k_y: Array, y_of: Array, weights: Array) -> Array:
    """For each row of `k_y`, the sum over points of inner(k_x[p] k_y[row, y_of[p]]) weights[p], in the order of the
    points. The sum of a row does not depend on the other rows."""
    check_numbers(k_y.T, y_of)
    out = np.empty(len(k_y))
    _sums(form, c, rho, k_x, k_y, y_of, weights, out)
    return out


def check_numbers(table: Array, numbers: Array) -> None:
    """Checks that all numbers are rows of the table, because compiled loops do not check bounds."""
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(table):
        raise IndexError(f"numbers must be from 0 to {len(table) - 1}")
