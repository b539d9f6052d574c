"""Families of S-kernels (Wu et al. 2011, Section 5): kernels on pairs (x, y) whose functions are S-functions.

All are  g(x, y) * inner(k_X(x, x'), k_Y(y, y')) * g(x', y')  with an S-function g, and differ in the inner part:

    product      k_X k_Y                     eq. (8); with g = 1 the pairwise kernel of Basilico and Hofmann
    exponential  exp(rho k_X k_Y)            eq. (6), c_i = rho^i / i!, converges everywhere
    geometric    1 / (1 - rho k_X k_Y)       eq. (6), c_i = rho^i, converges for |rho k_X k_Y| < 1
    linear       c_0 + c_1 k_X k_Y           eq. (6), a finite series
    multiple     sum_i c_i k_X^i k_Y^i       eq. (7), several kernels on each side

The term i = 0 of a series is g(x, y) g(x', y') alone: with it the learned function can keep g itself and only
correct it; without it (product) a pair that nothing known resembles scores 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from clickbridge.errors import SettingError

Array = np.ndarray[Any, Any]
FAMILIES = ("product", "linear", "exponential", "geometric")


class Inner(Protocol):
    """The inner part of an S-kernel: from values of the two kernels, entry by entry."""

    def __call__(self, k_x: Array, k_y: Array) -> Array: ...


@dataclass(frozen=True)
class PowerSeries:
    """sum_i c_i (k_X k_Y)^i, given by its first coefficients, or by its sum and radius of convergence."""

    coefficients: tuple[float, ...] = ()
    total: Callable[[Array], Array] | None = None
    radius: float = np.inf

    def __post_init__(self) -> None:
        if any(c < 0 or not np.isfinite(c) for c in self.coefficients):
            raise SettingError(f"coefficients of an S-kernel must be finite and not negative; got {self.coefficients}")

    def __call__(self, k_x: Array, k_y: Array) -> Array:
        product = k_x * k_y
        if self.radius < np.inf and np.any(np.abs(product) >= self.radius):
            largest = float(np.abs(product).max())
            raise SettingError(
                f"the series converges below {self.radius:g}; the kernels reach {largest:.4g}: use a smaller rho"
            )
        if self.total is not None:
            return self.total(product)
        out = np.zeros(product.shape)
        for c in reversed(self.coefficients):  # Horner
            out = out * product + c
        return out


def family(name: str, rho: float = 1.0) -> PowerSeries:
    """A family by its name; rho weighs likeness against g itself."""
    if name == "product":
        return PowerSeries((0.0, 1.0))
    if name == "linear":
        return PowerSeries((1.0, rho))
    if name == "exponential":
        return PowerSeries(total=lambda z: np.exp(rho * z))
    if name == "geometric":
        return PowerSeries(total=lambda z: 1 / (1 - rho * z), radius=1 / rho if rho > 0 else np.inf)
    raise SettingError(f"family must be {', '.join(FAMILIES)}; got {name!r}")


@dataclass(frozen=True)
class MultipleKernels:
    """sum_i c_i k_X^i k_Y^i; the kernels' values come stacked along the first axis (eq. 7)."""

    coefficients: Sequence[float]

    def __post_init__(self) -> None:
        if any(c < 0 or not np.isfinite(c) for c in self.coefficients):
            raise SettingError(f"coefficients of an S-kernel must be finite and not negative; got {self.coefficients}")

    def __call__(self, k_x: Array, k_y: Array) -> Array:
        if not len(k_x) == len(k_y) == len(self.coefficients):
            raise ValueError(f"{len(self.coefficients)} coefficients for {len(k_x)} and {len(k_y)} kernels")
        return np.einsum("i,i...,i...->...", np.asarray(self.coefficients), k_x, k_y)


def s_kernel(inner: Inner, g: Array, g_other: Array, k_x: Array, k_y: Array) -> Array:
    """Values of the S-kernel: rows are points (x, y), columns are points (x', y')."""
    out: Array = np.asarray(g)[:, None] * inner(k_x, k_y)
    out *= np.asarray(g_other)
    return out
