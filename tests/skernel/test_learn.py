"""Learning: what is refused, and that theta = beta / lambda solves the paper's problem."""

from __future__ import annotations

import numpy as np
import pytest

from clickbridge.errors import SettingError
from clickbridge.skernel.learn import LOSSES, learn_preferences, learn_responses
from oracles.skernel import box_qp, risk


def test_theta_is_beta_over_lambda() -> None:
    pytest.importorskip("clarabel")
    rows = np.random.default_rng(0).standard_normal((8, 12))
    gram, better, worse, lam = rows @ rows.T, np.array([0, 1, 2, 3]), np.array([4, 5, 6, 7]), 40.0
    found = learn_preferences(gram, better, worse, lam, tolerance=1e-10, passes=10_000)
    differences = np.eye(8)[better] - np.eye(8)[worse]
    beta, value = box_qp(differences @ gram @ differences.T, lam)
    np.testing.assert_allclose(found.theta, beta / lam, atol=1e-6)
    np.testing.assert_allclose(found.alpha, differences.T @ beta / lam, atol=1e-6)
    assert found.dual == pytest.approx(value, rel=1e-6)
    assert 0 <= found.gap <= 1e-9 * found.primal
    np.testing.assert_allclose(found.values, gram @ found.alpha)


@pytest.mark.parametrize("loss", LOSSES)
def test_sums_and_means_differ_by_the_scale_of_lambda(loss: str) -> None:
    rows = np.random.default_rng(1).standard_normal((6, 9))
    gram, better, worse = rows @ rows.T, np.array([0, 1, 2]), np.array([3, 4, 5])
    one = learn_preferences(gram, better, worse, 3.0, loss, tolerance=1e-10, passes=5000)
    mean = learn_preferences(gram, better, worse, 1.0, loss, mean=True, tolerance=1e-10, passes=5000)
    np.testing.assert_allclose(one.alpha, mean.alpha, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_responses_of_points(loss: str) -> None:
    rows = np.random.default_rng(2).standard_normal((5, 3))
    gram, t = rows @ rows.T, np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    found = learn_responses(gram, t, 0.1, loss, tolerance=1e-9, passes=10_000)
    assert found.primal == pytest.approx(risk(gram, found.alpha, np.arange(5), None, t, loss, 0.2, 0.1))
    if loss == "squared":  # ridge regression in closed form: (K + n lam / 2 I) alpha = t
        np.testing.assert_allclose(gram @ found.alpha, gram @ np.linalg.solve(gram + 0.25 * np.eye(5), t), atol=1e-4)


def test_refusals() -> None:
    gram = np.eye(2)
    with pytest.raises(SettingError, match="hinge loss needs responses -1 and 1: use squared"):
        learn_responses(gram, np.array([0.0, 1.0]))
    learn_responses(gram, np.array([0.0, 1.0]), loss="squared")
    with pytest.raises(SettingError, match="loss must be one of hinge, squared, logistic; got 'cubic'"):
        learn_responses(gram, np.array([1.0, 1.0]), loss="cubic")
    with pytest.raises(SettingError, match="lambda must be above 0; got 0"):
        learn_preferences(gram, np.array([0]), np.array([1]), 0.0)
