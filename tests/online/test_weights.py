"""The closed form against a direct solve of the paper's objective."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clickbridge.online.weights import click_to_weight, inverse_less, latent
from oracles.online import all_pairs, dense_k, direct_weights

Array = np.ndarray[Any, Any]
N, ALPHA = 9, 0.8


@pytest.fixture(scope="module")
def problem() -> tuple[Array, Array, Array, Array]:
    """(K, eigenvalues, Z', y) of a small graph, every dimension kept."""
    rng = np.random.default_rng(0)
    lists = [sorted(rng.choice(N, rng.integers(2, 5), replace=False).tolist()) for _ in range(12)]
    k = dense_k(lists, N)
    values, vectors = np.linalg.eigh(k)
    y = np.zeros(N * (N - 1) // 2)
    y[rng.choice(len(y), 12, replace=False)] = rng.integers(-3, 4, size=12)
    return k, values, latent(values, vectors, ALPHA), y


@pytest.mark.parametrize("kept", [N, 4])
@pytest.mark.parametrize("smoothness", [True, False])
@pytest.mark.parametrize(("form", "pair_weight"), [("corrected", 1.0), ("weighted", 0.5 / N)])
def test_the_closed_form_is_the_optimum(
    problem: tuple[Array, Array, Array, Array], kept: int, smoothness: bool, form: str, pair_weight: float
) -> None:
    k, values, z, y = problem
    values, z = values[-kept:], z[:, -kept:]
    u = click_to_weight(values, z.sum(axis=0), N, ALPHA, form=form, tau=0.5, smoothness=smoothness)
    u = u @ (z.T @ all_pairs(N) @ y)
    expected = direct_weights(z.T, k, y, ALPHA, pair_weight, smoothness)
    # Of weights that differ by a constant f, none is better: compare what orders pages.
    differences = all_pairs(N).T @ z
    np.testing.assert_allclose(differences @ u, differences @ expected, atol=1e-9)


def test_the_corrected_and_the_printed_form_by_hand(problem: tuple[Array, Array, Array, Array]) -> None:
    _, values, z, _ = problem
    w, big = z.sum(axis=0), np.diag(1 / (1 - ALPHA * values))
    by_hand = np.linalg.inv(np.eye(N) / (1 - ALPHA) + (N - 1) * big - np.outer(w, w))
    np.testing.assert_allclose(click_to_weight(values, w, N, ALPHA, form="corrected"), by_hand, atol=1e-12)
    printed = np.linalg.inv(np.eye(N) / (1 - ALPHA) + N * big - np.outer(w, w))
    np.testing.assert_allclose(click_to_weight(values, w, N, ALPHA, form="printed"), printed, atol=1e-12)
    assert np.abs(printed - by_hand).max() > 1e-3
    without = np.linalg.inv((N + 1) * big - np.outer(w, w))
    found = click_to_weight(values, w, N, ALPHA, form="printed", smoothness=False)
    np.testing.assert_allclose(found, without, atol=1e-12)


def test_at_full_weight_of_unlabelled_pairs_alpha_has_no_say() -> None:
    """Why they are weighted: with more pages the order from alpha .05 becomes that from .95."""
    rng = np.random.default_rng(1)
    lists = [sorted(rng.choice(200, 6, replace=False).tolist()) for _ in range(300)]
    k = dense_k(lists, 200)
    values, vectors = np.linalg.eigh(k)
    g = rng.standard_normal(200) * (rng.random(200) < 0.05)
    g -= g.mean()

    def order(alpha: float, form: str) -> Array:
        z = latent(values, vectors, alpha)
        return np.argsort(
            np.argsort(z @ (click_to_weight(values, z.sum(axis=0), 200, alpha, form=form, tau=1.0) @ (z.T @ g)))
        )

    agreement = {f: np.corrcoef(order(0.05, f), order(0.95, f))[0, 1] for f in ("corrected", "weighted")}
    assert agreement["corrected"] > 0.99
    assert agreement["weighted"] < 0.97


def test_a_singular_matrix_has_a_pseudo_inverse() -> None:
    """Of a regular graph: three pages, always together."""
    values = np.array([1.0, 0.0, 0.0])
    vectors = np.linalg.eigh(np.full((3, 3), 1 / 3))[1][:, ::-1]
    z = latent(values, vectors, 0.9)
    u = click_to_weight(values, z.sum(axis=0), 3, 0.9)
    assert np.isfinite(u).all()
    f = z @ (u @ (z[0] - z[1]))
    assert f[0] > f[2] > f[1]
    assert inverse_less(np.empty(0), np.empty(0), 1.0).shape == (0, 0)
