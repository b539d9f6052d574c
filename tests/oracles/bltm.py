"""The bilingual topic model's penalised bound, written down for one pair, and its maximum by brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

Array = np.ndarray[Any, Any]


def pair_bound(q: Array, counts: Array, side: Array, log_joint: Array, sigma: float) -> float:
    """sum_n c_n sum_k q_nk (log joint_nk - log q_nk) - sigma/2 |m^1 - m^2|^2."""
    safe = np.maximum(q, 1e-300)
    words = float((counts[:, None] * q * (log_joint - np.log(safe))).sum())
    shares = [counts[side == s] @ q[side == s] / counts[side == s].sum() for s in (0, 1)]
    return words - sigma / 2 * float(((shares[0] - shares[1]) ** 2).sum())


def best_responsibilities(counts: Array, side: Array, log_joint: Array, sigma: float) -> Array:
    """The maximum over q, each row through a softmax, by a general optimiser."""

    def of(flat: Array) -> Array:
        logits = flat.reshape(log_joint.shape)
        raised = np.exp(logits - logits.max(axis=1, keepdims=True))
        return raised / raised.sum(axis=1, keepdims=True)

    found = minimize(
        lambda flat: -pair_bound(of(flat), counts, side, log_joint, sigma), log_joint.ravel(), method="BFGS",
        options={"gtol": 1e-9, "maxiter": 2000},
    )  # fmt: skip
    return of(found.x)
