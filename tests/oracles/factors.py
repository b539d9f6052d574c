"""Gradient descent on bilinear factors, one dense row at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def score(x: Array, y: Array, g: Array, offset: float, factors: dict[str, Array], with_query_bias: bool) -> float:
    bias = factors["b_y"] @ y + (factors["b_x"] @ x if with_query_bias else 0.0) + factors["b_g"] @ g
    return float(offset + bias + (x @ factors["u"]) @ (y @ factors["v"]))


def slope(loss: str, value: float, aim: float) -> float:
    if loss == "hinge":
        sign = 1.0 if aim > 0.5 else -1.0
        return -sign if sign * value < 1 else 0.0
    if loss == "logistic":
        return float(1 / (1 + np.exp(-value)) - aim)
    return value - aim


def descend(
    x: Array, y: Array, samples: Any, factors: dict[str, Array], loss: str, rate: float, shrink: float, batch: int
) -> None:
    """One epoch with AdaGrad: slopes of a batch from the factors before it, steps one sample after the other."""
    squares = {name: np.zeros(len(values)) for name, values in factors.items()}
    for first in range(0, len(samples), batch):
        taken = []
        for s in range(first, min(first + batch, len(samples))):
            pair = samples.negative[s] >= 0
            row = x[samples.query[s]]
            difference = y[samples.positive[s]] - (y[samples.negative[s]] if pair else 0)
            value = score(row, difference, samples.globals[s], samples.offset[s], factors, not pair)
            taken.append(
                (
                    s,
                    pair,
                    slope(loss, value, 1.0 if pair else samples.target[s]),
                    row @ factors["u"],
                    difference @ factors["v"],
                )
            )
        for s, pair, steep, a, b in taken:
            if steep == 0:
                continue
            sides = [("u", "b_x", x[samples.query[s]], b, 1.0), ("v", "b_y", y[samples.positive[s]], a, 1.0)]
            if pair:
                sides.append(("v", "b_y", y[samples.negative[s]], a, -1.0))
            for name, bias, row, other, sign in sides:
                for feature in np.flatnonzero(row):
                    gradient = steep * sign * row[feature]
                    squares[name][feature] += gradient**2 * (other @ other)
                    step = rate / np.sqrt(squares[name][feature] + 1e-8)
                    moved = factors[name][feature] - step * gradient * other
                    factors[name][feature] = moved / (1 + step * shrink)
                    if bias == "b_x" and pair:
                        continue
                    squares[bias][feature] += gradient**2
                    step = rate / np.sqrt(squares[bias][feature] + 1e-8)
                    factors[bias][feature] = (factors[bias][feature] - step * gradient) / (1 + step * shrink)
            gradient = steep * samples.globals[s]
            squares["b_g"] += gradient**2
            factors["b_g"] -= rate / np.sqrt(squares["b_g"] + 1e-8) * gradient
