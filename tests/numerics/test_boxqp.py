"""Coordinate ascent in the dual against a general solver, and against the objectives it claims to solve."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from clickbridge.numerics.boxqp import HINGE, LOGISTIC, SQUARED, coordinate_ascent_dual
from oracles.skernel import box_qp, risk

Array = np.ndarray[Any, Any]
NAMES = {HINGE: "hinge", SQUARED: "squared", LOGISTIC: "logistic"}
every_loss = pytest.mark.parametrize("loss", list(NAMES), ids=NAMES.get)


def problem(n_points: int, n_pairs: int, seed: int, rank: int = 4) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n_points, rank))
    pos = rng.integers(0, n_points, n_pairs)
    return rows @ rows.T, pos, (pos + rng.integers(1, n_points, n_pairs)) % n_points


def pair_matrix(gram: Array, pos: Array, neg: Array) -> Array:
    one = np.eye(len(gram))
    differences = one[pos] - one[neg]
    return differences @ gram @ differences.T


@pytest.mark.parametrize("lam", [0.3, 1.0, 20.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_hinge_dual_is_the_general_solvers(seed: int, lam: float) -> None:
    pytest.importorskip("clarabel")
    gram, pos, neg = problem(12, 15, seed)
    beta, f, _, primal, dual = coordinate_ascent_dual(
        gram, pos, neg, np.ones(15), lam=lam, tolerance=1e-9, passes=20_000
    )
    w = pair_matrix(gram, pos, neg)
    witness, value = box_qp(w, lam)
    assert ((beta >= 0) & (beta <= 1)).all()
    # W is singular, so beta itself is not unique; the objective and the margins are.
    assert dual == pytest.approx(value, rel=1e-6)
    assert primal == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(f[pos] - f[neg], w @ witness / lam, atol=1e-4)


@every_loss
@pytest.mark.parametrize("paired", [True, False], ids=["pairs", "points"])
def test_no_other_function_does_better(loss: int, paired: bool) -> None:
    """The primal objective over all weights of points, by a general-purpose minimiser started at the solution."""
    gram, pos, neg = problem(6, 8, 1)
    rng = np.random.default_rng(2)
    t = np.ones(8) if paired else rng.choice([-1.0, 1.0], 8)
    neg = neg if paired else np.full(8, -1)
    a, f, _, primal, dual = coordinate_ascent_dual(
        gram, pos, neg, t, loss=loss, c=0.5, lam=0.7, tolerance=1e-10, passes=20_000
    )
    alpha = np.bincount(pos, a / 0.7, minlength=6)
    if paired:
        alpha -= np.bincount(neg, a / 0.7, minlength=6)
    np.testing.assert_allclose(gram @ alpha, f, atol=1e-9)

    def objective(weights: Array) -> float:
        return risk(gram, weights, pos, neg if paired else None, t, NAMES[loss], 0.5, 0.7)

    assert objective(alpha) == pytest.approx(primal, rel=1e-9)
    assert dual <= primal + 1e-9
    best = minimize(objective, alpha, method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-9, "fatol": 1e-12})
    assert best.fun >= primal - 1e-6 * abs(primal)


@every_loss
def test_the_gap_closes_and_bounds_the_error(loss: int) -> None:
    gram, pos, neg = problem(15, 40, 3)
    found = [
        coordinate_ascent_dual(gram, pos, neg, np.ones(40), loss=loss, tolerance=tolerance, passes=5000)
        for tolerance in (0.3, 1e-2, 1e-8)
    ]
    best = found[-1][3]
    for tolerance, (_, _, _, primal, dual) in zip((0.3, 1e-2, 1e-8), found, strict=True):
        assert primal - dual <= tolerance * primal
        assert dual <= best + 1e-9
        assert primal >= best - 1e-9


@every_loss
def test_margins_that_are_there_already(loss: int) -> None:
    """An offset of the margins equals a given function in front: solved by hand for one pair."""
    a, f, _, primal, dual = coordinate_ascent_dual(
        np.eye(2), np.array([0]), np.array([1]), np.ones(1), loss=loss, offset=np.array([0.4]), tolerance=1e-12
    )
    margin = f[0] - f[1]
    grid = np.linspace(-1, 2, 300_001)  # the correction's margin m costs lam/2 m^2/2
    losses = {
        HINGE: np.maximum(0, 1 - grid - 0.4),
        SQUARED: (grid + 0.4 - 1) ** 2,
        LOGISTIC: np.logaddexp(0, -grid - 0.4),
    }[loss]
    objective = losses + grid**2 / 4
    assert margin == pytest.approx(grid[np.argmin(objective)], abs=1e-4)
    assert primal == pytest.approx(objective.min(), abs=1e-8)
    assert dual == pytest.approx(primal, abs=1e-8)
    assert a[0] > 0


def test_nothing_to_learn_from() -> None:
    none = np.empty(0, dtype=np.int64)
    a, f, passes, primal, dual = coordinate_ascent_dual(np.eye(3), none, none, np.empty(0))
    assert (len(a), f.tolist(), passes, primal, dual) == (0, [0.0, 0.0, 0.0], 0, 0.0, 0.0)


def test_a_pair_of_equal_points_costs_its_loss() -> None:
    gram = np.ones((2, 2))
    beta, f, _, primal, dual = coordinate_ascent_dual(gram, np.array([0]), np.array([1]), np.ones(1))
    assert beta.tolist() == [1.0]
    assert f.tolist() == [0.0, 0.0]
    assert primal == dual == 1.0
