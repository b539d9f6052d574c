"""Derivatives of the losses that gradient descent on factors can use."""

from __future__ import annotations

import numpy as np

from clickbridge.numerics.threads import kernel

HINGE, LOGISTIC, SQUARED = 0, 1, 2
LOSSES = {"hinge": HINGE, "logistic": LOGISTIC, "squared": SQUARED}


@kernel
def slope_of(loss, score, target, pairwise):  # type: ignore[no-untyped-def]
    """The derivative of the loss by the score. For a pair, the target is ignored: a larger difference is better."""
    aim = 1.0 if pairwise else target
    if loss == HINGE:
        sign = 1.0 if aim > 0.5 else -1.0
        return -sign if sign * score < 1.0 else 0.0
    if loss == LOGISTIC:
        return 1.0 / (1.0 + np.exp(-score)) - aim
    return score - aim
