"""Learning with an S-kernel: problem (5) of Wu et al. 2011, and its pairwise form (10) with the dual (15).

Training data are points (x, y) with their Gram matrix, and either a response for each point or preferences
between points. One weight is learned for each point: f(x, y) = sum_p alpha_p k((x, y), (x_p, y_p)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from clickbridge.errors import SettingError
from clickbridge.numerics.boxqp import HINGE, LOGISTIC, SQUARED, coordinate_ascent_dual

Array = np.ndarray[Any, Any]
LOSSES = {"hinge": HINGE, "squared": SQUARED, "logistic": LOGISTIC}


@dataclass(frozen=True)
class KernelSolution:
    """`alpha` are the weights of the points. `theta` are the weights of the examples: for preferences with the hinge
    loss, beta / lambda as in (11). `gap` = primal - dual bounds the distance of the objective from its optimum."""

    alpha: Array
    theta: Array
    values: Array
    primal: float
    dual: float
    passes: int

    @property
    def gap(self) -> float:
        return self.primal - self.dual


def learn_responses(
    gram: Array, responses: Array, lam: float = 1.0, loss: str = "hinge", **stop: Any
) -> KernelSolution:
    """Solves problem (5): the mean loss over points with a response each (signs for hinge and logistic)."""
    n = len(gram)
    if loss in ("hinge", "logistic") and not np.isin(responses, (-1.0, 1.0)).all():
        raise SettingError(f"{loss} loss needs responses -1 and 1: use squared loss for other numbers")
    points, none = np.arange(n), np.full(n, -1)
    return _learn(gram, points, none, np.asarray(responses, dtype=np.float64), 1 / max(n, 1), lam, loss, stop)


def learn_preferences(
    gram: Array, better: Array, worse: Array, lam: float = 1.0, loss: str = "hinge", mean: bool = False, **stop: Any
) -> KernelSolution:
    """Solves problem (10): the loss of each preference's margin f(better) - f(worse), summed, or averaged with `mean`.
    `offset` are the margins of a given function that f corrects."""
    n = len(better)
    return _learn(gram, better, worse, np.ones(n), 1 / max(n, 1) if mean else 1.0, lam, loss, stop)


def _learn(
    gram: Array, pos: Array, neg: Array, target: Array, c: float, lam: float, loss: str, stop: dict[str, Any]
) -> KernelSolution:
    if loss not in LOSSES:
        raise SettingError(f"loss must be one of {', '.join(LOSSES)}; got {loss!r}")
    if not lam > 0:
        raise SettingError(f"lambda must be above 0; got {lam}")
    a, values, passes, primal, dual = coordinate_ascent_dual(
        gram, pos, neg, target, loss=LOSSES[loss], c=c, lam=lam, **stop
    )
    theta = a / lam
    alpha = np.bincount(pos, theta, minlength=len(gram))
    paired = neg >= 0
    alpha -= np.bincount(neg[paired], theta[paired], minlength=len(gram))
    return KernelSolution(alpha, theta, values, primal, dual, passes)
