"""Half an iteration of RMLS against Algorithm 2 in loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from clickbridge.engines.local import Local
from clickbridge.numerics.locality import neighbours_together
from clickbridge.numerics.rmls import (
    ABSOLUTE,
    DENSITY,
    RELATIVE,
    FactoredRows,
    FormedRows,
    ImageRows,
    Shrinkage,
    decorrelation,
    effective_rank,
    half_iteration,
    kept,
)
from clickbridge.numerics.rows import LINKS, SparseRows, block_product, images_of, sparse_rows, surveyed
from oracles.rmls import algorithm_2, decorrelated, objective, soft_row

Array = np.ndarray[Any, Any]


def some_w(seed: int, n: int = 14, m: int = 9) -> Array:
    rng = np.random.default_rng(seed)
    w = rng.random((n, m)) * (rng.random((n, m)) < 0.4)
    w[3] = 0  # a feature no click reaches
    return w.astype(np.float32)


def half(w: Array, maps: Any, how: Shrinkage, **options: Any) -> Array:
    made = half_iteration(FormedRows(sparse.csr_array(w)), maps, how, **options).maps
    return made.dense() if isinstance(made, SparseRows) else made


@pytest.mark.parametrize("beta", [0.0, 0.05, 0.4])
def test_each_pass_is_algorithm_2(beta: float) -> None:
    w = some_w(0)
    l_y = np.random.default_rng(1).standard_normal((9, 5)).astype(np.float32)
    maps: Any = l_y
    for l_x, after in algorithm_2(w, l_y, 4, beta, beta / 2, theta_x=2.0, theta_y=0.5):
        found = half(w, maps, Shrinkage(ABSOLUTE, beta, theta=2.0))
        np.testing.assert_allclose(found, l_x, atol=2e-5)
        maps = half(w.T, sparse_rows(found), Shrinkage(ABSOLUTE, beta / 2, theta=0.5))
        np.testing.assert_allclose(maps, after, atol=2e-5)


def test_a_threshold_above_everything_leaves_zeros() -> None:
    assert not half(some_w(2), np.ones((9, 4), np.float32), Shrinkage(ABSOLUTE, 1e6)).any()


def test_relative_thresholds_are_multiples_of_the_root_mean_square() -> None:
    w, l_y = some_w(3), np.random.default_rng(2).standard_normal((9, 6)).astype(np.float32)
    omega = w @ l_y
    expected = [soft_row(row, 0.7 * np.sqrt((row**2).mean()), 1.0) for row in omega]
    np.testing.assert_allclose(half(w, l_y, Shrinkage(RELATIVE, 0.7)), expected, atol=1e-5)


@given(st.integers(0, 50), st.integers(1, 7))
def test_density_keeps_the_largest(seed: int, k: int) -> None:
    w, l_y = some_w(seed), np.random.default_rng(seed + 1).standard_normal((9, 7)).astype(np.float32)
    omega = w @ l_y
    ordered = -np.sort(-np.abs(omega), axis=1)
    thresholds = ordered[:, k] if k < 7 else np.zeros(len(omega))
    expected = [soft_row(row, threshold, 1.0) for row, threshold in zip(omega, thresholds, strict=True)]
    found = half(w, l_y, Shrinkage(DENSITY, k))
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert (np.count_nonzero(found, axis=1) <= k).all()


def test_ties_do_not_exceed_the_density() -> None:
    found = half(np.eye(3, dtype=np.float32), np.ones((3, 6), np.float32), Shrinkage(DENSITY, 2))
    assert not found.any()  # six equal values: none is above the third


def test_lengths_follow_the_covariance() -> None:
    w, l_y = some_w(4), np.random.default_rng(3).standard_normal((9, 6)).astype(np.float32)
    found = half(w, l_y, Shrinkage(RELATIVE, 0.2, norm_power=0.5))
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), np.sqrt(np.linalg.norm(w @ l_y, axis=1)), rtol=1e-5)


@pytest.mark.parametrize("power", [0.5, 0.8, 1.0])
def test_decorrelation(power: float) -> None:
    w, l_y = some_w(5, 40, 20), np.random.default_rng(4).standard_normal((20, 6)).astype(np.float32)
    turned = (w @ l_y) @ decorrelation((w @ l_y).T @ (w @ l_y), power)
    np.testing.assert_allclose(turned, decorrelated((w @ l_y).astype(np.float64), power), atol=1e-4)
    if power == 1:
        gram = turned.T @ turned
        np.testing.assert_allclose(gram / gram[0, 0], np.eye(6), atol=1e-4)
    expected = [soft_row(row, 0.0, 1.0) for row in turned]
    np.testing.assert_allclose(half(w, l_y, Shrinkage(ABSOLUTE, 0.0, decorrelate=power)), expected, atol=1e-4)


def test_decorrelation_of_nothing() -> None:
    np.testing.assert_array_equal(decorrelation(np.zeros((3, 3)), 1.0), np.eye(3))


@pytest.mark.parametrize("decorrelate", [0.0, 0.8])
@pytest.mark.parametrize("mode", [(ABSOLUTE, 0.05), (RELATIVE, 0.5), (DENSITY, 3.0)])
def test_plans_and_threads_agree(mode: tuple[int, float], decorrelate: float) -> None:
    rng = np.random.default_rng(6)
    x, r, y = (sparse.random_array((n, m), density=0.1, format="csr", dtype=np.float32, random_state=rng)
               for n, m in ((300, 3000), (300, 200), (200, 50)))  # fmt: skip
    w = sparse.csr_array(x.T @ r @ y)
    l_y = rng.standard_normal((50, 8)).astype(np.float32)
    how = Shrinkage(*mode, decorrelate=decorrelate, norm_power=0.5)
    one = half(w, l_y, how, engine=Local(1))
    for threads in (2, 3, 7):
        np.testing.assert_array_equal(half(w, l_y, how, engine=Local(threads)), one)
    np.testing.assert_allclose(half(w, l_y, how, keep_dense=True), one, atol=1e-5)
    np.testing.assert_allclose(half(w, sparse_rows(l_y), how), one, rtol=1e-3, atol=1e-3)
    for tile in (3, 8, 100):
        rows = FactoredRows(sparse.csr_array(x.T), r, y, tile)
        made = half_iteration(rows, sparse_rows(l_y), how).maps
        assert isinstance(made, SparseRows)
        np.testing.assert_allclose(made.dense(), one, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("seed", range(6))
def test_rounding_is_not_blown_up_by_decorrelation(seed: int) -> None:
    """With fewer queries than dimensions omega has directions that are nothing but rounding. They differ between ways
    of adding up."""
    rng = np.random.default_rng(seed)
    a, middle, b = (
        sparse.csr_array((rng.random(shape) * (rng.random(shape) < 0.25)).astype(np.float32))
        for shape in ((40, 9), (9, 20), (20, 30))
    )
    l_y = sparse_rows(rng.standard_normal((30, 12)).astype(np.float32))
    how = Shrinkage(DENSITY, 3.0, decorrelate=0.8, norm_power=0.5)
    ways = (FormedRows(sparse.csr_array(a @ middle @ b)), ImageRows(a, middle, b), FactoredRows(a, middle, b, 5))
    made = [half_iteration(rows, l_y, how).maps for rows in ways]
    one, *others = (maps.dense() if isinstance(maps, SparseRows) else maps for maps in made)
    for other in others:
        np.testing.assert_allclose(other, one, atol=0.01 * np.abs(one).max())


def test_alignment_is_what_each_dimension_adds_to_the_objective() -> None:
    w, l_y = some_w(7), np.random.default_rng(8).standard_normal((9, 5)).astype(np.float32)
    made = half_iteration(FormedRows(sparse.csr_array(w)), l_y, Shrinkage(RELATIVE, 0.3, decorrelate=0.5))
    assert isinstance(made.maps, SparseRows)
    l_x = made.maps.dense()
    np.testing.assert_allclose(made.alignment, np.einsum("uz,uv,vz->z", l_x, w, l_y), rtol=1e-4, atol=1e-5)


def test_no_rows_and_no_clicks() -> None:
    made = half_iteration(FormedRows(sparse.csr_array((0, 4), dtype=np.float32)), np.ones((4, 3), np.float32),
                          Shrinkage(DENSITY, 1, decorrelate=0.8))  # fmt: skip
    assert made.maps.shape == (0, 3)
    assert not half(np.zeros((2, 4), np.float32), np.ones((4, 3), np.float32), Shrinkage(DENSITY, 1)).any()


# --- the optimum is a useless point ---------------------------------------------------------------


def test_appendix_a() -> None:
    """With l1 limits alone, all rows on one axis reach the upper bound lambda_x lambda_y sum(W)."""
    w = some_w(9)
    axis = np.array([0.0, 0.0, 1.0, 0.0])
    l_x, l_y = 0.7 * np.outer(np.ones(14), axis), 1.3 * np.outer(np.ones(9), axis)
    assert -objective(w, l_x, l_y, 0, 0) == pytest.approx(0.7 * 1.3 * w.sum(), rel=1e-6)
    rng = np.random.default_rng(0)
    for _ in range(50):
        other_x, other_y = rng.laplace(size=(14, 4)), rng.laplace(size=(9, 4))
        other_x *= 0.7 / np.abs(other_x).sum(axis=1, keepdims=True)
        other_y *= 1.3 / np.abs(other_y).sum(axis=1, keepdims=True)
        assert -objective(w, other_x, other_y, 0, 0) <= 0.7 * 1.3 * w.sum() + 1e-9


@given(st.integers(0, 200), st.floats(0, 2), st.floats(0, 2))
def test_rows_on_one_axis_are_never_worse(seed: int, beta: float, gamma: float) -> None:
    """For W >= 0 any point of (3) or (4) is at most as good as the one with each row of the same l2 length
    on one common axis: the l2 limits do not keep the degenerate solution away."""
    rng = np.random.default_rng(seed)
    w = some_w(seed)
    l_x, l_y = rng.standard_normal((14, 3)), rng.standard_normal((9, 3))
    axis = np.array([0.0, 1.0, 0.0])
    flat_x, flat_y = (np.outer(np.linalg.norm(m, axis=1), axis) for m in (l_x, l_y))
    assert objective(w, flat_x, flat_y, beta, gamma) <= objective(w, l_x, l_y, beta, gamma) + 1e-6
    assert np.abs(flat_x).sum() <= np.abs(l_x).sum() + 1e-9  # so (3)'s l1 limits hold too


def test_the_printed_algorithm_collapses_and_the_default_does_not() -> None:
    rng = np.random.default_rng(3)
    topics = rng.integers(0, 10, 300), rng.integers(0, 10, 200)
    w = ((topics[0][:, None] == topics[1]) * 0.9 + 0.1) * (rng.random((300, 200)) < 0.2)
    w = w.astype(np.float32)
    start = rng.standard_normal((200, 40)).astype(np.float32)
    found = {}
    for name, how in {
        "printed": Shrinkage(ABSOLUTE, 0.0),
        "default": Shrinkage(DENSITY, kept(0.1, 40), norm_power=0.5, decorrelate=0.8),
    }.items():
        maps: Any = start
        for _ in range(30):
            maps = half(w.T, half(w, maps, how), how)
        found[name] = sparse_rows(maps)
    assert surveyed(found["printed"]).cosine_to_constant > 0.95
    assert effective_rank(found["printed"].gram()) < 2
    assert surveyed(found["default"]).cosine_to_constant < 0.6
    assert effective_rank(found["default"].gram()) > 8


def test_effective_rank_counts_directions() -> None:
    assert effective_rank(np.eye(5)) == pytest.approx(5)
    assert effective_rank(np.ones((4, 4))) == pytest.approx(1)
    assert effective_rank(np.zeros((4, 4))) == 0
    assert surveyed(sparse_rows(np.ones((4, 4)))).cosine_to_constant == pytest.approx(1)
    assert surveyed(sparse_rows(np.zeros((4, 4)))).cosine_to_constant == 0
    assert surveyed(sparse_rows(np.eye(4))).cosine_to_constant == pytest.approx(0.5)


@pytest.mark.parametrize("decorrelate", [0.0, 0.8])
@pytest.mark.parametrize("kind", ["sparse", "filled", "dense"])
def test_rows_from_images_are_those_of_w(decorrelate: float, kind: str) -> None:
    """A row with more links than are collected at once, one without links, images that are kept dense."""
    rng = np.random.default_rng(0)
    outer, middle, inner = (
        sparse.csr_array(rng.random(shape) * (rng.random(shape) < share), dtype=np.float32)
        for shape, share in (((400, 60), 0.3), ((60, 50), 0.3), ((50, 90), 0.03))
    )
    outer = sparse.csr_array(sparse.vstack([outer, np.zeros((1, 60)), np.ones((1, 60))]), dtype=np.float32)
    assert middle.nnz > LINKS, "links of the last row"
    l_y: Any = rng.standard_normal((90, 8)).astype(np.float32)
    if kind == "sparse":
        l_y[rng.random(l_y.shape) < 0.9] = 0
    maps = l_y if kind == "dense" else sparse_rows(l_y)
    assert isinstance(images_of(inner, maps, Local(1)), SparseRows) == (kind == "sparse")
    how, engine = Shrinkage(RELATIVE, 0.5, decorrelate=decorrelate), Local(2, memory=1)  # nothing is kept
    w = sparse.csr_array(outer @ middle @ inner)
    found, expected = (
        half_iteration(rows, maps, how, engine=engine) for rows in (ImageRows(outer, middle, inner), FormedRows(w))
    )
    assert isinstance(found.maps, SparseRows)
    assert isinstance(expected.maps, SparseRows)
    np.testing.assert_allclose(found.maps.dense(), expected.maps.dense(), atol=2e-5)
    np.testing.assert_allclose(found.alignment, expected.alignment, rtol=1e-4, atol=1e-3)


def test_images() -> None:
    rng = np.random.default_rng(1)
    features = sparse.random_array((300, 70), density=0.05, random_state=rng, dtype=np.float32, format="csr")
    maps = sparse_rows(sparse.random_array((70, 200), density=0.02, random_state=rng, dtype=np.float32, format="csr"))
    for threads in (1, 2):
        found = images_of(sparse.csr_array(features), maps, Local(threads))
        assert isinstance(found, SparseRows)
        found.check((300, 200))
        np.testing.assert_allclose(found.dense(), features.toarray() @ maps.dense(), atol=1e-6)
    empty = images_of(sparse.csr_array((3, 70), dtype=np.float32), maps, Local(1))
    assert empty.shape == (3, 200)
    assert images_of(sparse.csr_array((0, 70), dtype=np.float32), maps, Local(1)).shape == (0, 200)


@pytest.mark.parametrize("how", [
    Shrinkage(RELATIVE, 1.0), Shrinkage(ABSOLUTE, 0.05, 1.5, 0.5), Shrinkage(DENSITY, 3),
    Shrinkage(RELATIVE, 0.5, 1.0, 0.5, 0.7),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("threads", [1, 2])
def test_the_order_of_the_rows_changes_no_bit(how: Shrinkage, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dense maps are multiplied with similar rows of W one after the other; here, row by row as W has them."""
    monkeypatch.setattr("clickbridge.numerics.rmls.ROWS_AT_ONCE", 16)
    rng = np.random.default_rng(5)
    w = sparse.random_array((300, 200), density=0.1, random_state=rng, dtype=np.float32, format="csr")
    maps = rng.standard_normal((200, 17)).astype(np.float32)
    straight, ordered = (FormedRows(sparse.csr_array(w), [(0, 130), (130, 300)]) for _ in range(2))
    assert (np.diff(neighbours_together(sparse.csr_array(w))) < 0).any(), "an order of its own"
    with Local(threads) as engine, engine.at_work():
        found = half_iteration(ordered, maps, how, keep_dense=True, engine=engine)
        room = np.empty((300, 17), np.float32)
        monkeypatch.setattr(straight, "whole", lambda *_: block_product(straight.chain[0], maps, 0, 300, room))
        expected = half_iteration(straight, maps, how, keep_dense=True, engine=engine)
    assert isinstance(found.maps, np.ndarray)
    assert found.maps.any()
    assert found.maps.tobytes() == expected.maps.tobytes()  # type: ignore[union-attr]
    assert found.alignment.tobytes() == expected.alignment.tobytes()
    sparse_half = half_iteration(straight, maps, how, engine=engine)
    np.testing.assert_array_equal(sparse_half.maps.dense(), found.maps)  # type: ignore[union-attr]


def test_a_dense_half_leaves_the_other_side_s_map_alone() -> None:
    w = sparse.csr_array(some_w(1))
    maps = np.random.default_rng(0).standard_normal((9, 4)).astype(np.float32)
    before = maps.copy()
    rows = FormedRows(w)
    one, two = (half_iteration(rows, maps, Shrinkage(ABSOLUTE, 0.1), keep_dense=True).maps for _ in range(2))
    np.testing.assert_array_equal(maps, before)
    np.testing.assert_array_equal(one, two)
    assert one is not two


def test_no_rows_at_all() -> None:
    none = sparse.csr_array((0, 9), dtype=np.float32)
    made = half_iteration(FormedRows(none), np.ones((9, 4), np.float32), Shrinkage(ABSOLUTE, 0.1), keep_dense=True)
    assert isinstance(made.maps, np.ndarray)
    assert made.maps.shape == (0, 4)
    assert made.alignment.tolist() == [0.0] * 4
