"""Algorithm 2 of 13 in loops over rows, as printed, and the objective (4)."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def soft_row(omega: Array, threshold: float, theta: float) -> Array:
    """Eq. (5): C_u max(|omega| - beta, 0) sign(omega), of length theta unless it is zero."""
    row = np.array([max(abs(value) - threshold, 0.0) * np.sign(value) for value in omega])
    length = np.sqrt(sum(value * value for value in row))
    return theta * row / length if length > 0 else row


def algorithm_2(
    w: Array, l_y: Array, passes: int, beta: float, gamma: float, theta_x: float = 1.0, theta_y: float = 1.0
) -> list[tuple[Array, Array]]:
    """(L_x, L_y) after each pass."""
    out = []
    for _ in range(passes):
        l_x = np.array([soft_row(l_y.T @ w[u], beta, theta_x) for u in range(w.shape[0])])
        l_y = np.array([soft_row(l_x.T @ w[:, v], gamma, theta_y) for v in range(w.shape[1])])
        out.append((l_x, l_y))
    return out


def objective(w: Array, l_x: Array, l_y: Array, beta: float, gamma: float) -> float:
    """(4), to be made small."""
    fit = sum(w[u, v] * (l_x[u] @ l_y[v]) for u in range(w.shape[0]) for v in range(w.shape[1]))
    return float(-fit + beta * np.abs(l_x).sum() + gamma * np.abs(l_y).sum())


def decorrelated(omega: Array, power: float) -> Array:
    """omega (omega' omega / its largest eigenvalue)^(-power/2) by an SVD of omega."""
    u, s, vt = np.linalg.svd(omega, full_matrices=False)
    relative = np.maximum(s / s[0], 10**-4.5)
    return (u * (s * relative**-power)) @ vt
