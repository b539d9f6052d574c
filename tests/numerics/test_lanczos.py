"""Block Lanczos against a dense solver, also where Krylov spaces end early."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickbridge.numerics.lanczos import fewest_rows, leading_eigenpairs

Array = np.ndarray[Any, Any]


def with_spectrum(values: Array, seed: int = 0) -> Array:
    n = len(values)
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    return (turn * values @ turn.T).astype(np.float32)


def check(k: Array, rank: int, tolerance: float = 1e-4) -> tuple[Array, Array]:
    values, vectors, residual = leading_eigenpairs(lambda v: k @ v, len(k), rank, tolerance=tolerance)
    assert residual <= tolerance
    assert values.shape == (rank,)
    assert vectors.shape == (len(k), rank)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(rank), atol=2e-5)
    true = np.linalg.norm(k @ vectors - vectors * values.astype(np.float32), axis=0).max()
    assert true == pytest.approx(residual, rel=0.05, abs=2e-5)
    exact = np.linalg.eigvalsh(k.astype(np.float64))[::-1]
    np.testing.assert_allclose(values, exact[:rank], atol=2 * tolerance)
    return values, vectors


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 25), st.integers(0, 150), st.integers(0, 1000))
def test_any_spectrum(rank: int, more: int, seed: int) -> None:
    n = fewest_rows(rank) + more
    check(with_spectrum(np.random.default_rng(seed).random(n) ** 3, seed), rank)


def test_many_equal_eigenvalues() -> None:
    """One eigenvalue more often than a block is wide: one Krylov space cannot hold its vectors twice."""
    values = np.concatenate([np.full(15, 0.9), np.linspace(0.6, 0, 185)])
    found, _ = check(with_spectrum(values), 20)
    np.testing.assert_allclose(found[:15], 0.9, atol=1e-4)


@pytest.mark.parametrize("n_values", [0, 3, 12])
def test_an_operator_of_low_rank(n_values: int) -> None:
    """The Krylov space ends before the basis is full: directions from outside go on."""
    values = np.zeros(150)
    values[:n_values] = np.linspace(1.0, 0.5, n_values)
    found, _ = check(with_spectrum(values), 10)
    np.testing.assert_allclose(found[n_values:], 0.0, atol=1e-4)


def test_the_identity() -> None:
    found, _ = check(np.eye(120, dtype=np.float32), 8)
    np.testing.assert_allclose(found, 1.0, atol=1e-5)


def test_what_was_not_reached_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clickbridge.numerics.lanczos.MOST_RESTARTS", 0)
    k = with_spectrum(np.linspace(1, 0, 400))
    values, vectors, residual = leading_eigenpairs(lambda v: k @ v, 400, 20, tolerance=1e-6)
    assert residual > 1e-6
    true = np.linalg.norm(k @ vectors - vectors * values.astype(np.float32), axis=0).max()
    assert true == pytest.approx(residual, rel=0.05)
