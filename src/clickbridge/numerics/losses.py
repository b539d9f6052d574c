"""The losses that descent on factors knows, by their derivatives."""

from __future__ import annotations

import numpy as np

from clickbridge.numerics.threads import kernel

HINGE, LOGISTIC, SQUARED = 0, 1, 2
LOSSES = {"hinge": HINGE, "logistic": LOGISTIC, "squared": SQUARED}


@kernel
def slope_of(loss, score, target, pairwise):  # type: ignore[no-untyped-def]
    """Derivative of the loss by the score. A pair aims at a large difference whatever its target."""
    aim = 1.0 if pairwise else target
    if loss == HINGE:
        sign = 1.0 if aim > 0.5 else -1.0
        return -sign if sign * score < 1.0 else 0.0
    if loss == LOGISTIC:
        return 1.0 / (1.0 + np.exp(-score)) - aim
    return score - aim
