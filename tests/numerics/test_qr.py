"""Cholesky QR, also where Cholesky alone would fail."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from clickbridge.engines.local import Local
from clickbridge.numerics import qr as module
from clickbridge.numerics.qr import ROWS, gram, orthonormal, squares


def test_a_difference_is_measured_without_being_formed() -> None:
    rng = np.random.default_rng(0)
    block, other = (rng.standard_normal((10 * ROWS, 4), dtype=np.float32) for _ in range(2))
    factors, engine = np.arange(4, dtype=np.float32), Local(threads=1)
    expected = np.square(block.astype(np.float64) - other * factors).sum(axis=0)
    squares(block[:9], other[:9], factors, engine)
    tracemalloc.start()
    try:
        found = squares(block, other, factors, engine)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert peak < block.nbytes / 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("small", [True, False])
def test_orthonormal(small: bool, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where Cholesky alone would fail, by Householder or by shifts."""
    if not small:
        monkeypatch.setattr(module, "SMALL", 0)
    rng = np.random.default_rng(0)
    good = rng.standard_normal((200, 6))
    eps = float(np.finfo(dtype).eps)
    nearly = np.hstack([good, good[:, :1] + eps**0.6 * rng.standard_normal((200, 1))])
    for block in (good, nearly, good[:, :1]):
        given = block.astype(dtype)
        q, r = orthonormal(given.copy())
        np.testing.assert_allclose(q.T @ q, np.eye(q.shape[1]), atol=300 * eps)
        np.testing.assert_allclose(q @ r, given, atol=300 * eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dependent_columns_are_dropped_wherever_they_stand(dtype: Any) -> None:
    a, b, c = np.random.default_rng(0).standard_normal((3, 20, 1)).astype(dtype)
    zero = np.zeros_like(a)
    for columns, rank in [([a, a, b], 2), ([zero, a, b, a, c], 3), ([a, b, a], 2), ([zero, zero], 0), ([a, zero], 1)]:
        block = np.hstack(columns)
        q, r = orthonormal(block.copy())
        assert q.shape == (20, rank)
        assert r.shape == (rank, block.shape[1])
        np.testing.assert_allclose(q.T @ q, np.eye(rank), atol=1e-5)
        np.testing.assert_allclose(q @ r, block, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(20, 3), (3, 20), (5, 1), (0, 3), (3, 0)])
def test_gram(shape: tuple[int, int], dtype: Any) -> None:
    block = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    found = gram(block)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, block.T @ block, rtol=1e-5, atol=1e-5)
    assert (found == found.T).all()
