"""The block SVD against numpy.linalg.svd and SciPy's svds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import svds

from clickbridge.numerics.svd import (
    MatrixOperator,
    ProductOperator,
    fix_signs,
    randomised_svd,
)

Array = np.ndarray[Any, Any]


def random_csr(rows: int, columns: int, density: float = 0.2, seed: int = 0) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    return sparse.csr_array(rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < density))


def decaying(rows: int, columns: int, seed: int = 0) -> sparse.csr_array:
    """Singular values 1, .8, .64, …"""
    rng = np.random.default_rng(seed)
    k = min(rows, columns)
    u, v = (np.linalg.qr(rng.standard_normal((n, k)))[0] for n in (rows, columns))
    return sparse.csr_array((u * 0.8 ** np.arange(k)) @ v.T)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(60, 40), (40, 60), (90, 90), (5, 30), (1, 4), (4, 1)])
def test_against_numpy(shape: tuple[int, int], dtype: Any) -> None:
    matrix = decaying(*shape)
    rank = min(8, *shape)
    found = randomised_svd(MatrixOperator(matrix, dtype), rank, dtype=dtype)
    u, s, vt = np.linalg.svd(matrix.toarray(), full_matrices=False)
    tolerance = 2e-5 if dtype == np.float32 else 1e-9
    assert found.u.dtype == found.s.dtype == found.v.dtype == dtype
    np.testing.assert_allclose(found.s, s[:rank], atol=tolerance)
    for block in (found.u, found.v):
        np.testing.assert_allclose(block.T @ block, np.eye(rank), atol=tolerance)
    # Subspaces, whatever the signs: the products of true and found vectors are orthogonal matrices.
    assert np.linalg.svd(u[:, :rank].T @ found.u, compute_uv=False).min() > 1 - tolerance
    assert np.linalg.svd(vt[:rank] @ found.v, compute_uv=False).min() > 1 - tolerance
    assert found.residual < tolerance
    expected = np.linalg.norm(matrix @ found.v - found.u * found.s, axis=0).max() / found.s[0]
    assert found.residual == pytest.approx(expected, abs=tolerance)


def test_against_scipy_on_a_product_never_formed() -> None:
    a, middle, b = random_csr(120, 70, 0.1, 1), random_csr(120, 90, 0.05, 2), random_csr(90, 80, 0.1, 3)
    found = randomised_svd(ProductOperator(a, middle, b, np.float64), 10, dtype=np.float64, power_steps=20)
    u, s, vt = svds((a.T @ middle @ b).astype(np.float64), k=10, rng=np.random.default_rng(0))
    np.testing.assert_allclose(found.s, np.sort(s)[::-1], rtol=1e-8)
    np.testing.assert_allclose(np.abs(np.sum(u[:, ::-1] * found.u, axis=0)), 1, atol=1e-6)
    np.testing.assert_allclose(np.abs(np.sum(vt[::-1].T * found.v, axis=0)), 1, atol=1e-6)
    assert found.residual < 1e-6


def test_operators_multiply_like_their_matrices() -> None:
    a, middle, b = random_csr(12, 7, 0.4, 1), random_csr(12, 9, 0.4, 2), random_csr(9, 8, 0.4, 3)
    whole = (a.T @ middle @ b).toarray()
    rng = np.random.default_rng(0)
    product = ProductOperator(a, middle, b, np.float64)
    formed = MatrixOperator(sparse.csr_array(whole), np.float64)
    v, u = rng.standard_normal((8, 3)), rng.standard_normal((7, 3))
    for operator in (product, formed):
        assert operator.shape == (7, 8)
        np.testing.assert_allclose(operator.forward(v), whole @ v, atol=1e-12)
        np.testing.assert_allclose(operator.adjoint(u), whole.T @ u, atol=1e-12)
    assert product.nnz == a.nnz + middle.nnz + b.nnz
    found = randomised_svd(product, 3, dtype=np.float64)
    np.testing.assert_allclose(found.s, np.linalg.svd(whole, compute_uv=False)[:3], rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_operators_leave_their_inputs_alone(dtype: Any) -> None:
    """Sorting the indices of a matrix that shares them with its source once spoiled the source."""
    unsorted = sparse.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1]), np.array([0, 2, 3])), shape=(2, 3))
    eye = sparse.csr_array(np.eye(2))
    before = [unsorted.data.copy(), unsorted.indices.copy(), unsorted.toarray()]
    for make in (
        lambda m: ProductOperator(m, eye, m, dtype),
        lambda m: ProductOperator(eye, m, sparse.csr_array(np.eye(3)), dtype),
        lambda m: MatrixOperator(m, dtype),
    ):
        randomised_svd(make(unsorted), 1, dtype=dtype)
        assert unsorted.data.tolist() == before[0].tolist()
        assert unsorted.indices.tolist() == before[1].tolist()
        assert unsorted.toarray().tolist() == before[2].tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fewer_triplets_where_the_rank_is_less(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    low = sparse.csr_array(rng.standard_normal((40, 3)) @ rng.standard_normal((3, 30)))
    found = randomised_svd(MatrixOperator(low, dtype), 20, dtype=dtype)
    assert len(found.s) == found.u.shape[1] == found.v.shape[1] == 3
    np.testing.assert_allclose((found.u * found.s) @ found.v.T, low.toarray(), atol=1e-4)


def test_nothing_to_decompose() -> None:
    for shape in [(5, 4), (0, 4), (4, 0)]:
        found = randomised_svd(MatrixOperator(sparse.csr_array(shape, dtype=np.float32), np.float32), 3)
        assert (found.u.shape, found.s.shape, found.v.shape) == ((shape[0], 0), (0,), (shape[1], 0))
        assert found.residual == 0


def test_one_seed_gives_the_same_bits_and_fixed_signs() -> None:
    operator = MatrixOperator(decaying(50, 40), np.float32)
    one, two, other = (randomised_svd(operator, 6, seed=seed) for seed in (3, 3, 4))
    for name in ("u", "s", "v"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()
    np.testing.assert_allclose(one.u, other.u, atol=1e-3)
    assert (one.u[np.abs(one.u).argmax(axis=0), np.arange(6)] > 0).all()


def test_signs() -> None:
    u, v = fix_signs(np.array([[1.0, -3.0], [-2.0, 1.0]]), np.array([[1.0, 1.0]]))
    assert u.tolist() == [[-1, 3], [2, -1]]
    assert v.tolist() == [[-1, -1]]


def test_a_warm_start_needs_no_steps() -> None:
    matrix = random_csr(80, 60, 0.3)
    operator = MatrixOperator(matrix, np.float64)
    true = np.linalg.svd(matrix.toarray())
    arguments: dict[str, Any] = {"dtype": np.float64, "power_steps": 0, "oversample": 0}
    warm = randomised_svd(operator, 5, start=true.Vh[:5].T, **arguments)
    cold = randomised_svd(operator, 5, **arguments)
    assert warm.residual < 1e-10 < 1e-2 < cold.residual
    wider = randomised_svd(operator, 5, start=true.Vh[:20].T, **arguments)
    np.testing.assert_allclose(wider.s, true.S[:5], rtol=1e-9)


def test_a_warm_start_from_nothing_is_harmless() -> None:
    """Columns of zeros, or twice the same, must not take the place of a direction."""
    matrix = decaying(40, 30)
    operator = MatrixOperator(matrix, np.float64)
    same = np.ones((30, 4))
    for start in (np.zeros((30, 3)), same):
        found = randomised_svd(operator, 5, dtype=np.float64, start=start)
        np.testing.assert_allclose(found.s, 0.8 ** np.arange(5), rtol=1e-8)
