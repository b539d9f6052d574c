"""Descent over rows of one feature: the same steps as those of dense rows, one sample after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from clickbridge.engines.local import Local
from clickbridge.numerics.factors import Descent, Factors, Samples, random_factors
from clickbridge.numerics.single_features import single_features
from oracles.factors import descend

NAMES = ("u", "v", "b_x", "b_y", "b_g")


def side(seed: int, n_rows: int, n_features: int) -> sparse.csr_array:
    """Rows of one feature, which some share, with values of their own."""
    rng = np.random.default_rng(seed)
    parts: Any = (
        (0.5 + rng.random(n_rows)).astype(np.float32),
        rng.integers(n_features, size=n_rows),
        np.arange(n_rows + 1),
    )
    return sparse.csr_array(parts, shape=(n_rows, n_features))


def problem(pairwise: bool, n: int = 60) -> tuple[Any, Any, Samples]:
    rng = np.random.default_rng(3)
    negative = rng.integers(7, size=n) if pairwise else np.full(n, -1)
    samples = Samples(
        rng.integers(9, size=n), rng.integers(7, size=n), negative, rng.integers(2, size=n).astype(float),
        np.zeros((n, 0)), 0.1 * rng.standard_normal(n),
    )  # fmt: skip
    return side(1, 9, 6), side(2, 7, 8), samples


def start(dim: int = 5) -> Factors:
    return random_factors(6, 8, dim, 0, 1.0, seed=1)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
@pytest.mark.parametrize("pairwise", [True, False], ids=["pairs", "points"])
@pytest.mark.parametrize(("dim", "shrink"), [(5, 0.01), (64, 0.0)])
def test_one_epoch_is_the_oracle_s(loss: str, pairwise: bool, dim: int, shrink: float) -> None:
    x, y, samples = problem(pairwise)
    first = start(dim)
    slow = {name: values.astype(np.float64) for name, values in zip(NAMES, first.copy().arrays, strict=True)}
    descent = Descent(x, y, first, loss, rate=0.05, shrink=shrink)
    descent.epoch(samples)
    descend(x.toarray(), y.toarray(), samples, slow, loss, 0.05, shrink, batch=1)
    for name, found in zip(NAMES, descent.factors.arrays, strict=True):
        np.testing.assert_allclose(found, slow[name], rtol=2e-3, atol=2e-4, err_msg=name)


def test_sums_of_squares_go_on_from_pass_to_pass() -> None:
    x, y, samples = problem(pairwise=True)
    once, twice = (Descent(x, y, start(), "logistic") for _ in range(2))
    half = [Samples(*(column[part] for column in samples.arrays)) for part in (slice(30), slice(30, None))]
    once.epoch(samples)
    for part in half:
        twice.epoch(part)
    for one, two in zip(once.factors.arrays, twice.factors.arrays, strict=True):
        np.testing.assert_array_equal(one, two)


def test_it_takes_one_thread_and_any_number_gives_the_same_bits() -> None:
    found = []
    for threads in (1, 2, 3):
        x, y, samples = problem(pairwise=True, n=900)
        descent = Descent(x, y, start(17), "hinge", engine=Local(threads))
        assert descent.threads == 1
        descent.epoch(samples)
        found.append(b"".join(a.tobytes() for a in descent.factors.arrays))
    assert found[0] == found[1] == found[2]


def test_without_biases_none_are_learned() -> None:
    x, y, samples = problem(pairwise=True)
    descent = Descent(x, y, start(), "logistic", biases=False)
    descent.epoch(samples)
    assert not any(a.any() for a in descent.factors.arrays[2:])


def test_a_document_against_itself_moves_nothing_but_by_decay() -> None:
    x, y, samples = problem(pairwise=True)
    same = Samples(samples.query, samples.positive, samples.positive, *samples.arrays[3:])
    descent = Descent(x, y, start(64), "logistic", rate=1.0, shrink=10.0)
    before = np.linalg.norm(descent.factors.u, axis=1)
    descent.epoch(same)
    assert (np.linalg.norm(descent.factors.u, axis=1) <= before).all()
    assert all(np.isfinite(array).all() for array in descent.factors.arrays)


def test_no_samples() -> None:
    x, y, samples = problem(pairwise=True, n=0)
    descent = Descent(x, y, start(), "logistic")
    before = descent.factors.u.copy()
    descent.epoch(samples)
    np.testing.assert_array_equal(descent.factors.u, before)


def test_what_has_single_features() -> None:
    assert single_features(side(0, 4, 3))
    assert not single_features(sparse.csr_array(np.array([[1.0, 0.0], [0.0, 0.0]])))
    assert not single_features(sparse.csr_array(np.array([[1.0, 1.0], [0.0, 1.0]])))
