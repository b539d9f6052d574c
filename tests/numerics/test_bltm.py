"""EM of the bilingual topic model: the E-step against a general optimiser, the bound, LDA's special case."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from clickbridge.engines.local import Local
from clickbridge.numerics.bltm import em_step, fold_in, normalised
from oracles.bltm import best_responsibilities, pair_bound

Array = np.ndarray[Any, Any]


def texts(seed: int, n: int, words: int, longest: int = 4) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    dense = np.zeros((n, words))
    for row in dense:
        np.add.at(row, rng.integers(words, size=rng.integers(1, longest + 1)), 1)
    return sparse.csr_array(dense)


def start(seed: int, n: int, words: tuple[int, int], topics: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.ones(topics), size=n)
    phi = [normalised(rng.random((w, topics)) + 0.1) for w in words]
    return [theta, *phi, np.zeros((n, topics))]


@pytest.mark.parametrize("sigma", [0.0, 1.0, 20.0])
def test_the_e_step_is_the_optimiser_s(sigma: float) -> None:
    a, b = texts(1, 1, 5), texts(2, 1, 6)
    theta, phi_a, phi_b, dual = start(3, 1, (5, 6), 3)
    before = theta.copy()
    counts = np.concatenate([a.data, b.data])
    side = np.repeat([0, 1], [a.nnz, b.nnz])
    log_joint = np.log(before[0] * np.concatenate([phi_a[a.indices], phi_b[b.indices]]))
    best = best_responsibilities(counts, side, log_joint, sigma)
    bound, new_a, new_b = em_step(a, b, np.ones(1), theta, phi_a, phi_b, dual, sigma, 1.0, 1.0)
    assert bound == pytest.approx(pair_bound(best, counts, side, log_joint, sigma), abs=1e-6)
    np.testing.assert_allclose(theta[0], counts @ best / counts.sum(), atol=1e-4)
    expected = np.zeros_like(phi_a)
    np.add.at(expected, a.indices, counts[side == 0][:, None] * best[side == 0])
    np.testing.assert_allclose(new_a, normalised(expected), atol=1e-4)
    assert new_b.sum(axis=0) == pytest.approx(1)


@pytest.mark.parametrize("sigma", [0.0, 1.0, 10.0])
@pytest.mark.parametrize("prior", [1.0, 1.1])
def test_the_penalised_bound_never_falls(sigma: float, prior: float) -> None:
    a, b = texts(4, 60, 12), texts(5, 60, 15, longest=6)
    theta, phi_a, phi_b, dual = start(6, 60, (12, 15), 4)
    weight = np.random.default_rng(7).integers(1, 5, size=60).astype(float)
    bounds = []
    for _ in range(25):
        bound, phi_a, phi_b = em_step(a, b, weight, theta, phi_a, phi_b, dual, sigma, prior, prior)
        bounds.append(bound)
    assert np.diff(bounds).min() > -1e-7 * abs(bounds[-1])
    assert bounds[-1] > bounds[0] + 1


def test_a_strong_tie_brings_the_sides_together() -> None:
    """At the optimum the dual is sigma times the gap of the two sides' shares."""
    a, b = texts(8, 40, 12), texts(9, 40, 12)
    gaps = []
    for sigma in (0.1, 5.0, 500.0):
        theta, phi_a, phi_b, dual = start(10, 40, (12, 12), 3)
        em_step(a, b, np.ones(40), theta, phi_a, phi_b, dual, sigma, 1.0, 1.01, steps=20_000)
        gaps.append(np.abs(dual).mean() / sigma)
    assert gaps[2] < gaps[1] / 10
    assert gaps[1] < gaps[0]


def test_threads_do_not_change_a_bit() -> None:
    found = []
    for threads in (1, 2, 3):
        a, b = texts(4, 60, 12), texts(5, 60, 15)
        theta, phi_a, phi_b, dual = start(6, 60, (12, 15), 4)
        how = {"sigma": 1.0, "alpha": 1.1, "beta": 1.1, "engine": Local(threads)}
        bound, phi_a, phi_b = em_step(a, b, np.ones(60), theta, phi_a, phi_b, dual, **how)
        found.append((bound, phi_a.tobytes(), theta.tobytes()))
    assert found[0] == found[1] == found[2]


def test_one_empty_side_is_plain_topic_analysis() -> None:
    """Without a second text the model is PLSA: the bound is then the likelihood of the first after the E-step."""
    a, b = texts(11, 30, 10), sparse.csr_array((30, 10))
    theta, phi_a, phi_b, dual = start(12, 30, (10, 10), 3)
    likelihood = float((a.toarray() * np.log(np.maximum(theta @ phi_a.T, 1e-300))).sum())
    bound, _, new_b = em_step(a, b, np.ones(30), theta, phi_a, phi_b, dual, 1.0, 1.0, 1.0)
    assert bound == pytest.approx(likelihood, rel=1e-9)
    np.testing.assert_allclose(new_b, 0.1)


def test_fold_in_finds_the_mixture_that_explains_best() -> None:
    phi = normalised(np.array([[8.0, 1], [1, 8], [1, 1]]))
    mixed = sparse.csr_array(np.array([[9.0, 0, 0], [0, 9, 0], [0, 0, 0], [5, 5, 1]]))
    theta = fold_in(mixed, phi, np.array([0.3, 0.7]), 1.0, rounds=200)
    assert theta[0, 0] > 0.99
    assert theta[1, 1] > 0.99
    assert theta[2].tolist() == [0.3, 0.7]
    grid = np.linspace(0.001, 0.999, 999)
    row = mixed[[3]].toarray()[0]
    values = [float(row @ np.log(phi @ np.array([p, 1 - p]))) for p in grid]
    assert theta[3, 0] == pytest.approx(grid[int(np.argmax(values))], abs=2e-3)


def test_nothing_at_all() -> None:
    empty = sparse.csr_array((0, 3))
    theta, phi_a, phi_b, dual = np.zeros((0, 2)), np.full((3, 2), 1 / 3), np.full((3, 2), 1 / 3), np.zeros((0, 2))
    bound, new_a, _ = em_step(empty, empty, np.zeros(0), theta, phi_a, phi_b, dual, 1.0, 1.0, 1.0)
    assert bound == 0
    np.testing.assert_allclose(new_a, 1 / 3)
    assert fold_in(empty, phi_a, np.array([0.5, 0.5]), 1.0).shape == (0, 2)
