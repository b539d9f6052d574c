"""Families of S-kernels (Wu et al. 2011, Section 5): kernels on pairs (x, y) whose functions are S-functions.

All have the form  g(x, y) * inner(k_X(x, x'), k_Y(y, y')) * g(x', y')  with an S-function g. They differ in `inner`:

    product      k_X k_Y                     eq. (8); with g = 1 the pairwise kernel of Basilico and Hofmann
    exponential  exp(rho k_X k_Y)            eq. (6), c_i = rho^i / i!, converges everywhere
    geometric    1 / (1 - rho k_X k_Y)       eq. (6), c_i = rho^i, converges for |rho k_X k_Y| < 1
    linear       c_0 + c_1 k_X k_Y           eq. (6), a finite series
    multiple     sum_i c_i k_X^i k_Y^i       eq. (7), several kernels on each side

The term i = 0 of a series is g(x, y) g(x', y'). With it, the learned function can keep g and only correct it. Without
it (product), a pair that is similar to no known pair scores 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from clickbridge.errors import SettingError
from clickbridge.numerics.points import EXPONENTIAL, GEOMETRIC, LINE, inner_values, points_gram, sums_over_points

Array = np.ndarray[Any, Any]
FORMS = {"product": LINE, "linear": LINE, "exponential": EXPONENTIAL, "geometric": GEOMETRIC}
FAMILIES = tuple(FORMS)


class Inner(Protocol):
    """The inner part of an S-kernel, computed from values of the two kernels, entry by entry."""

    def __call__(self, k_x: Array, k_y: Array) -> Array: ...


@dataclass(frozen=True)
class Family:
    """A family of S-kernels. rho is the weight of similarity relative to g itself."""

    name: str
    rho: float = 1.0

    def __post_init__(self) -> None:
        if self.name not in FORMS:
            raise SettingError(f"family must be one of {', '.join(FAMILIES)}; got {self.name!r}")

    @property
    def form(self) -> tuple[int, float, float]:
        """The inner part in the form that compiled loops take."""
        if self.name == "product":
            return LINE, 0.0, 1.0
        return FORMS[self.name], 1.0, float(self.rho)

    def __call__(self, k_x: Array, k_y: Array) -> Array:
        product = np.asarray(k_x * k_y)
        self._check(float(np.abs(product).max(initial=0.0)))
        return inner_values(*self.form, product)

    def _check(self, largest: float) -> None:
        if self.name == "geometric" and self.rho * largest >= 1:
            raise SettingError(
                f"the series converges below {1 / self.rho:g}; the kernels reach {largest:.4g}: use a smaller rho"
            )

    def gram(self, k_x: Array, x_of: Array, k_y: Array, y_of: Array, g: Array) -> Array:
        """The Gram matrix of points, where many points share the same x or y: point p is (x_of[p], y_of[p]), with the
        factor g[p]."""
        self._check_both(k_x, k_y)
        return points_gram(*self.form, k_x, x_of, k_y, y_of, g)

    def sums(self, k_x: Array, k_y: Array, y_of: Array, weights: Array) -> Array:
        """For each row of `k_y`, the sum over points p of inner(k_x[p], k_y[row, y_of[p]]) weights[p]."""
        self._check_both(k_x, k_y)
        return sums_over_points(*self.form, k_x, k_y, y_of, weights)

    def _check_both(self, k_x: Array, k_y: Array) -> None:
        if self.name == "geometric":
            self._check(float(np.abs(k_x).max(initial=0.0) * np.abs(k_y).max(initial=0.0)))


def family(name: str, rho: float = 1.0) -> Family:
    """A family by its name."""
    return Family(name, rho)


@dataclass(frozen=True)
class PowerSeries:
    """sum_i c_i (k_X k_Y)^i, with a finite number of terms."""

    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        check_coefficients(self.coefficients)

    def __call__(self, k_x: Array, k_y: Array) -> Array:
        product = k_x * k_y
        out = np.zeros(product.shape)
        for c in reversed(self.coefficients):  # Horner
            out = out * product + c
        return out


@dataclass(frozen=True)
class MultipleKernels:
    """sum_i c_i k_X^i k_Y^i; the kernels' values come stacked along the first axis (eq. 7)."""

    coefficients: Sequence[float]

    def __post_init__(self) -> None:
        check_coefficients(self.coefficients)

    def __call__(self, k_x: Array, k_y: Array) -> Array:
        if not len(k_x) == len(k_y) == len(self.coefficients):
            raise ValueError(f"{len(self.coefficients)} coefficients for {len(k_x)} and {len(k_y)} kernels")
        return np.einsum("i,i...,i...->...", np.asarray(self.coefficients), k_x, k_y)


def check_coefficients(coefficients: Sequence[float]) -> None:
    if any(c < 0 or not np.isfinite(c) for c in coefficients):
        raise SettingError(f"coefficients of an S-kernel must be finite and not negative; got {tuple(coefficients)}")


def s_kernel(inner: Inner, g: Array, g_other: Array, k_x: Array, k_y: Array) -> Array:
    """Values of the S-kernel: rows are points (x, y), columns are points (x', y')."""
    out: Array = np.asarray(g)[:, None] * inner(k_x, k_y)
    out *= np.asarray(g_other)
    return out
