"""Descent on bilinear factors against the same steps written with dense rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from clickbridge.engines.local import Local
from clickbridge.numerics import factors as module
from clickbridge.numerics.factors import Descent, Samples, random_factors
from oracles.factors import descend

NAMES = ("u", "v", "b_x", "b_y", "b_g")


def problem(pairwise: bool, seed: int = 0, n: int = 40) -> tuple[Any, Any, Samples]:
    rng = np.random.default_rng(seed)
    x = sparse.random_array((9, 6), density=0.5, random_state=rng, dtype=np.float32, format="csr")
    y = sparse.random_array((7, 8), density=0.4, random_state=rng, dtype=np.float32, format="csr")
    negative = rng.integers(7, size=n) if pairwise else np.full(n, -1)
    target = rng.integers(2, size=n).astype(float)
    samples = Samples(
        rng.integers(9, size=n), rng.integers(7, size=n), negative, target,
        rng.standard_normal((n, 2)), 0.1 * rng.standard_normal(n),
    )  # fmt: skip
    return sparse.csr_array(x), sparse.csr_array(y), samples


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
@pytest.mark.parametrize("pairwise", [True, False], ids=["pairs", "points"])
def test_one_epoch_is_the_oracle_s(loss: str, pairwise: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 8)
    x, y, samples = problem(pairwise)
    start = random_factors(6, 8, 5, 2, 1.0, seed=1)
    slow = {name: values.astype(np.float64) for name, values in zip(NAMES, start.copy().arrays, strict=True)}
    descent = Descent(x, y, start, loss, rate=0.05, shrink=0.01, engine=Local(1))
    descent.epoch(samples)
    descend(x.toarray(), y.toarray(), samples, slow, loss, 0.05, 0.01, 8)
    for name, found in zip(NAMES, descent.factors.arrays, strict=True):
        np.testing.assert_allclose(found, slow[name], rtol=2e-3, atol=2e-4, err_msg=name)


def test_threads_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_WORK", 0)
    found = []
    for threads in (1, 2, 3):
        x, y, samples = problem(pairwise=True, n=700)
        descent = Descent(x, y, random_factors(6, 8, 10, 2, 1.0, seed=1), "hinge", engine=Local(threads))
        assert descent.threads == threads
        for _ in range(2):
            descent.epoch(samples)
        found.append(b"".join(a.tobytes() for a in descent.factors.arrays))
    assert found[0] == found[1] == found[2]


def test_small_batches_wake_no_second_thread() -> None:
    x, y, _ = problem(pairwise=True)
    assert Descent(x, y, random_factors(6, 8, 10, 2, 1.0, seed=1), "hinge", engine=Local(2)).threads == 1


def test_the_mean_is_over_epochs() -> None:
    x, y, samples = problem(pairwise=True)
    descent = Descent(x, y, random_factors(6, 8, 4, 2, 1.0, seed=1), "logistic", engine=Local(1))
    seen = []
    for _ in range(3):
        descent.epoch(samples)
        seen.append(descent.factors.u.copy())
    np.testing.assert_allclose(descent.mean.u, np.mean(seen, axis=0), rtol=1e-5, atol=1e-7)


def test_without_biases_none_are_learned() -> None:
    x, y, samples = problem(pairwise=True)
    descent = Descent(x, y, random_factors(6, 8, 4, 2, 1.0, seed=1), "logistic", biases=False, engine=Local(1))
    descent.epoch(samples)
    assert not any(a.any() for a in descent.factors.arrays[2:])


def test_nothing_to_learn_from() -> None:
    x, y, samples = problem(pairwise=True, n=0)
    start = random_factors(6, 8, 4, 2, 1.0, seed=1)
    before = start.u.copy()
    Descent(x, y, start, "hinge").epoch(samples)
    np.testing.assert_array_equal(start.u, before)


def test_empty_rows_move_nothing() -> None:
    x, y = sparse.csr_array((2, 3), dtype=np.float32), sparse.csr_array((2, 3), dtype=np.float32)
    one = np.zeros(1, dtype=np.int64)
    samples = Samples(one, one, one + 1, np.ones(1), np.zeros((1, 0)), np.zeros(1))
    descent = Descent(x, y, random_factors(3, 3, 2, 0, 1.0, seed=1), "hinge")
    before = descent.factors.u.copy()
    descent.epoch(samples)
    np.testing.assert_array_equal(descent.factors.u, before)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_decay_shrinks_whatever_the_step_is(loss: str) -> None:
    """Two documents of the same features have no gradient for the query: AdaGrad's step is then as long as can be."""
    x, y, samples = problem(pairwise=True, n=400)
    same = Samples(samples.query, samples.positive, samples.positive, *samples.arrays[3:])
    descent = Descent(x, y, random_factors(6, 8, 4, 2, 1.0, seed=1), loss, rate=1.0, shrink=10.0)
    before = np.linalg.norm(descent.factors.u, axis=1)
    descent.epoch(same)
    assert (np.linalg.norm(descent.factors.u, axis=1) <= before).all()
    assert all(np.isfinite(array).all() for array in descent.factors.arrays)
