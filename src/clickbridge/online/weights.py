"""The matrix between clicks and weights: u = U Z G y (Kim and Choi 2009, eq. 19 to 21, Appendices A and B).

Over all pairs G G' = N I - 1 1', whose diagonal is N - 1, so with mu = (1 - alpha) / alpha the optimum is

    u = [ I / (1 - alpha) + (N - 1) W - w w' ]^-1 Z G y,    W = Z Z', w = Z 1

(the paper prints N W). Pairs without a click have label 0. There are N^2 of them, and at full weight alpha would have
no effect. Here each has the weight tau / N, which keeps the two terms in proportion for any N.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
FORMS = ("weighted", "corrected", "printed")
TINY = 1e-7
"""Directions under this share of the largest are left alone."""


def latent(values: Array, vectors: Array, alpha: float) -> Array:
    """One row z_i for each page: Z = (I - alpha Lambda)^(-1/2) V' (eq. 7), transposed."""
    return vectors / np.sqrt(1.0 - alpha * values)


def click_to_weight(
    values: Array, w: Array, n: int, alpha: float, *, form: str = "weighted", tau: float = 10.0, smoothness: bool = True
) -> Array:
    """U, R x R. `w` is the sum of all z_i, `n` the number of pages.

    weighted: (alpha / (1 - alpha)) Z (I - K) Z' + (tau / N) (N W - w w');  corrected: the same with every pair
    at weight 1;  printed: eq. (19) as printed. Without the smoothness term, Appendix B's ridge goes.
    """
    spread = 1.0 / (1.0 - alpha * values)
    smooth = alpha / (1.0 - alpha) * (1.0 - values) * spread if smoothness else np.zeros_like(values)
    if form == "printed":
        # Eq. (19), or (31), which has N + 1, without the smoothness term.
        return inverse_less(1.0 / (1.0 - alpha) + n * spread if smoothness else (n + 1) * spread, w, 1.0)
    weight = 1.0 if form == "corrected" else tau / max(n, 1)
    return inverse_less(smooth + weight * n * spread, w, weight)


def inverse_less(diagonal: Array, w: Array, weight: float) -> Array:
    """(diag(d) - weight w w')^-1 by Sherman and Morrison. On a regular graph the matrix is singular, f may be
    shifted by a constant: then the inverse on all other directions."""
    left = w / diagonal
    rest = 1.0 - weight * float(w @ left)
    if rest > TINY:
        return np.diag(1.0 / diagonal) + (weight / rest) * np.outer(left, left)
    size, directions = np.linalg.eigh(np.diag(diagonal) - weight * np.outer(w, w))
    keep = size > TINY * float(np.max(size, initial=0.0))
    inverse: Array = (directions[:, keep] / size[keep]) @ directions[:, keep].T
    return inverse
