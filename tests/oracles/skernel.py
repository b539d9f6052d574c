"""Slow, obvious versions of the formulas of Wu et al. 2011 around S-kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def pearson_over_union(u: Array, v: Array) -> float:
    """(9) as printed: over the documents that either query clicked."""
    either = (u > 0) | (v > 0)
    a, b = u[either] - u[either].mean(), v[either] - v[either].mean()
    norm = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / norm) if norm > 0 else float("nan")


def click_kernel(kind: str, u: Array, v: Array) -> float:
    if not u.any() or not v.any():
        return 0.0
    if kind == "cosine":
        return float(u @ v / np.sqrt((u @ u) * (v @ v)))
    if kind == "pearson":
        return float(np.corrcoef(u, v)[0, 1])
    if kind == "jaccard":
        return float(((u > 0) & (v > 0)).sum() / ((u > 0) | (v > 0)).sum())
    p, q = u / u.sum(), v / v.sum()
    middle = (p + q) / 2
    divergence = [sum(a * np.log2(a / m) for a, m in zip(s, middle, strict=True) if a > 0) for s in (p, q)]
    return float(1 - sum(divergence) / 2)


def pairs_by_rule(rule: str, clicked: Sequence[int]) -> set[tuple[int, int]]:
    """Places (preferred, other) of one page, each rule in its own words."""
    on = [i for i, c in enumerate(clicked) if c]
    off = [i for i, c in enumerate(clicked) if not c]
    rules: dict[str, Callable[[int, int], bool]] = {
        "skip-above": lambda i, j: j < i,
        "skip-next": lambda i, j: j == i + 1,
        "last-click": lambda i, j: i == max(on) and j < i,
        "clicked": lambda i, j: True,
    }
    return {(i, j) for i in on for j in off if rules[rule](i, j)}


def w_matrix(kq: Array, kd: Array, g: Array, better: Array, worse: Array) -> Array:
    """W(i, j) below (12), term by term."""
    m = len(better)
    out = np.empty((m, m))
    for i in range(m):
        for j in range(m):
            ip, im, jp, jm = better[i], worse[i], better[j], worse[j]
            out[i, j] = kq[ip, jp] * (
                kd[ip, jp] * g[ip] * g[jp]
                - kd[ip, jm] * g[ip] * g[jm]
                - kd[im, jp] * g[im] * g[jp]
                + kd[im, jm] * g[im] * g[jm]
            )
    return out


def box_qp(w: Array, lam: float) -> tuple[Array, float]:
    """(15) by a general solver: beta and the dual value."""
    import clarabel
    from scipy import sparse

    m = len(w)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    sides = sparse.csc_matrix(np.vstack([np.eye(m), -np.eye(m)]))
    limits = np.concatenate([np.ones(m), np.zeros(m)])
    quadratic = sparse.csc_matrix(np.triu(w / lam))
    solver = clarabel.DefaultSolver(quadratic, -np.ones(m), sides, limits, [clarabel.NonnegativeConeT(2 * m)], settings)
    solution = solver.solve()
    return np.array(solution.x), -float(solution.obj_val)


def risk(gram: Array, alpha: Array, pos: Array, neg: Array | None, t: Array, loss: str, c: float, lam: float) -> float:
    """The primal objective of (5) and (10), as a function of the points' weights."""
    f = gram @ alpha
    z = f[pos] - (0 if neg is None else f[neg])
    losses = {
        "hinge": np.maximum(0, 1 - t * z),
        "squared": (z - t) ** 2,
        "logistic": np.logaddexp(0, -t * z),
    }[loss]
    return float(c * losses.sum() + lam / 2 * alpha @ gram @ alpha)


def tensor_power(row: Array, power: int) -> Array:
    """psi with <psi(x), psi(y)> = <x, y>^power."""
    out = np.ones(1)
    for _ in range(power):
        out = np.kron(out, row)
    return out


class LemmaSix:
    """The two maps of Lemma 6, with the operator Gamma_N = sum_j a_j g_j psi_X(x_j) psi_Y(y_j)', for a power series
    cut after some terms; g is an S-function with explicit maps, multiplied in by Lemma 2 (3)."""

    def __init__(self, coefficients: Sequence[float], xs: Array, ys: Array, weights: Array, g: Array) -> None:
        self.coefficients = coefficients
        self.gammas = [
            sum(
                a * s * np.outer(tensor_power(x, i), tensor_power(y, i))
                for a, s, x, y in zip(weights, g, xs, ys, strict=True)
            )
            for i in range(len(coefficients))
        ]

    def map_x(self, x: Array, g_x: Array) -> Array:
        rows = [np.sqrt(c) * tensor_power(x, i) for i, c in enumerate(self.coefficients)]
        return np.kron(np.concatenate(rows), g_x)

    def map_y(self, y: Array, g_y: Array) -> Array:
        rows = [
            np.sqrt(c) * gamma @ tensor_power(y, i)
            for i, (c, gamma) in enumerate(zip(self.coefficients, self.gammas, strict=True))
        ]
        return np.kron(np.concatenate(rows), g_y)


def least_eigenvalue(gram: Array) -> float:
    return float(np.linalg.eigvalsh((gram + gram.T) / 2).min()) if len(gram) else 0.0
