"""The leading space by a basis that is kept, of operators whose singular values are known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from clickbridge.engines.local import Local
from clickbridge.numerics import krylov, svd
from clickbridge.numerics.krylov import Basis, leading_space
from clickbridge.numerics.svd import MatrixOperator, basis_memory, basis_pays, randomised_svd

Array = np.ndarray[Any, Any]
ROWS, COLUMNS = 2200, 2400


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(svd, "LARGE", 1)
    with Local(threads=1).at_work():
        yield


class Known:
    """An operator with these singular values, and vectors drawn at random."""

    def __init__(self, values: Array, rows: int = ROWS, columns: int = COLUMNS, dtype: Any = np.float64) -> None:
        rng = np.random.default_rng(0)
        sides = (np.linalg.qr(rng.standard_normal((n, len(values))))[0] for n in (rows, columns))
        self.u, self.v = (side.astype(dtype) for side in sides)
        self.values = values.astype(dtype)
        self.shape, self.inner, self.nnz, self.engine = (rows, columns), 0, 1, Local(threads=1)

    def forward(self, v: Array) -> Array:
        return np.asarray(self.u @ (self.values[:, None] * (self.v.T @ v)))

    def adjoint(self, u: Array) -> Array:
        return np.asarray(self.v @ (self.values[:, None] * (self.u.T @ u)))


def slowly(n: int) -> Array:
    """As of a click graph: a few large ones, and a long tail."""
    return np.asarray(np.arange(1, n + 1) ** -0.6)


def repeated(n: int, times: int) -> Array:
    """The fifth value again and again, more often than a block has columns."""
    values = slowly(n)
    values[4 : 4 + times] = values[4]
    return np.sort(values)[::-1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(ROWS, COLUMNS), (COLUMNS, ROWS)])
def test_singular_values_and_vectors_are_found(dtype: Any, shape: tuple[int, int]) -> None:
    operator = Known(slowly(600), *shape, dtype)
    found = randomised_svd(operator, 40, dtype=dtype, tolerance=1e-4)
    assert found.residual < 1e-4
    assert found.s.dtype == found.u.dtype == dtype
    np.testing.assert_allclose(found.s, operator.values[:40], atol=1e-5)
    clear = slice(0, 30)  # the gaps to the rest are far above the residual
    np.testing.assert_allclose(np.abs(np.sum(operator.u[:, clear] * found.u[:, clear], axis=0)), 1, atol=1e-3)
    np.testing.assert_allclose(np.abs(np.sum(operator.v[:, clear] * found.v[:, clear], axis=0)), 1, atol=1e-3)
    np.testing.assert_allclose(found.u.T @ found.u, np.eye(40), atol=1e-4)


def test_a_zero_operator_has_no_dimensions() -> None:
    found = randomised_svd(Known(np.zeros(600)), 5)
    assert (found.u.shape, found.s.shape, found.v.shape) == ((ROWS, 0), (0,), (COLUMNS, 0))
    assert found.residual == 0


def test_the_tolerance_is_kept() -> None:
    residuals = [randomised_svd(Known(slowly(600)), 30, dtype=np.float64, tolerance=t).residual for t in (1e-2, 1e-5)]
    assert residuals[0] <= 1e-2
    assert residuals[1] <= 1e-5


@pytest.mark.parametrize("times", [krylov.BLOCK + 1, 45, 60])
def test_values_that_are_repeated_more_often_than_a_block_is_wide_are_all_found(times: int) -> None:
    operator = Known(repeated(600, times), dtype=np.float32)
    found = randomised_svd(operator, 70)
    np.testing.assert_allclose(found.s[: times + 4], operator.values[: times + 4], atol=1e-4)


def test_the_basis_says_so_itself_and_only_then() -> None:
    def space(values: Array) -> Any:
        operator = Known(values)
        rng = np.random.default_rng(1)
        drawn = (rng.standard_normal((COLUMNS, n)) for n in (krylov.BLOCK, krylov.PROBE))
        first, probe = (operator.forward(block) for block in drawn)
        return leading_space(
            operator.engine, lambda b: operator.forward(operator.adjoint(b)), first, probe, 50, tolerance=1e-3,
            dtype=np.float64,
        )  # fmt: skip

    assert space(repeated(600, 45)) is None
    assert space(repeated(600, krylov.BLOCK - 4)).shape == (ROWS, 50)
    assert space(slowly(600)).shape == (ROWS, 50)


def test_a_basis_is_orthonormal_and_its_projection_is_that_of_the_operator() -> None:
    operator = Known(slowly(600))
    basis = Basis(operator.engine, lambda block: operator.forward(operator.adjoint(block)), np.float64)
    rng = np.random.default_rng(0)
    basis.begin(rng.standard_normal((ROWS, 7)))
    for new in [False] * 14 + [True]:
        more = basis.step(new)
        assert more is not None
        if new:
            assert basis.begin(rng.standard_normal((ROWS, 3)))
            more = basis.step(new)
            assert more is not None
        basis.grow(more[0])
    basis.step(new=True)
    q = np.hstack(basis.blocks)
    assert q.shape[1] == basis.width == 7 * 15 + 3 * 2
    np.testing.assert_allclose(q.T @ q, np.eye(basis.width), atol=1e-10)
    np.testing.assert_allclose(basis.projected, q.T @ operator.forward(operator.adjoint(q)), atol=1e-10)


def test_an_operator_of_low_rank_ends_early() -> None:
    found = randomised_svd(Known(slowly(5)), 30, dtype=np.float64)
    assert len(found.s) == 5
    np.testing.assert_allclose(found.s, slowly(5), rtol=1e-9)


def test_threads_change_no_bit() -> None:
    rng = np.random.default_rng(0)
    matrix = sparse.random_array((20_000, 21_000), density=1e-4, rng=rng, format="csr")
    one, two = (randomised_svd(MatrixOperator(matrix, np.float32, Local(threads=n)), 4) for n in (1, 2))
    for name in ("u", "s", "v"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()


def test_power_steps_are_taken_where_a_basis_does_not_pay() -> None:
    sizes = ((60_000, 80_000), 1000, 10**6)
    assert basis_pays(*sizes, 100, 60_000, 4, 8 << 30)
    assert not basis_pays(*sizes, 100, 60_000, 4, basis_memory(*sizes, 100, 4) - 1)
    assert not basis_pays(*sizes, 100, 300, 4, 8 << 30)  # hardly more dimensions than are looked for


def test_a_warm_start_and_a_kept_one_go_by_steps() -> None:
    said: list[str] = []
    operator = Known(slowly(600), dtype=np.float32)
    cold = randomised_svd(operator, 20, progress=said.append)
    assert said[-1].endswith("columns")
    warm = randomised_svd(operator, 20, start=cold.v, progress=said.append)
    assert said[-1] == "decomposition: step 4 of 4"
    np.testing.assert_allclose(warm.s, cold.s, atol=1e-4)
