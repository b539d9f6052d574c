"""The projection against dense eigenvectors and the paper's power iteration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clickbridge.engines.local import Local
from clickbridge.numerics import diffusion
from clickbridge.numerics.diffusion import components, spread
from clickbridge.numerics.ragged import Ragged
from clickbridge.online.eigen import Lists, decompose, keep_frequent, leading, scales
from oracles.online import dense_k, power_iteration

Array = np.ndarray[Any, Any]


def as_lists(lists: list[list[int]], n: int) -> Lists:
    ragged = Ragged.of_lengths([len(pages) for pages in lists])
    return Lists(ragged, np.array([p for pages in lists for p in pages], dtype=np.int64), n)


def random_lists(seed: int, m: int, n: int, length: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    near = rng.integers(n, size=m)
    spans = [np.unique((c + rng.integers(-6, 7, size=length)) % n) for c in near]
    return [[int(p) for p in span] for span in spans]


@pytest.mark.parametrize("least", [0, 10_000], ids=["in stretches", "in one"])
@pytest.mark.parametrize("threads", [1, 2, 3, 9])
def test_the_implicit_product_is_k_v(threads: int, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffusion, "LEAST_PLACES", least)
    monkeypatch.setattr(diffusion, "LEAST_WORK", 0)
    lists = random_lists(0, 40, 30, 6)
    v = np.random.default_rng(1).standard_normal((30, 50))
    flat = as_lists(lists, 30)
    scale, _, _ = scales(flat)
    found = spread(flat.indptr, flat.pages, scale, v, Local(threads))
    np.testing.assert_allclose(found, dense_k(lists, 30) @ v, atol=1e-12)
    np.testing.assert_array_equal(found, spread(flat.indptr, flat.pages, scale, v, Local(1)))


def test_the_product_of_nothing() -> None:
    empty = as_lists([], 3)
    assert not spread(empty.indptr, empty.pages, np.zeros(3), np.ones((3, 2))).any()
    assert components(empty.indptr, empty.pages, 3).tolist() == [-1, -1, -1]
    assert decompose(empty, 4).spaces == []


def test_components_are_chains_of_shared_lists() -> None:
    flat = as_lists([[4, 5], [], [0, 1], [1, 2], [5, 3]], 8)
    assert components(flat.indptr, flat.pages, 8).tolist() == [0, 0, 0, 1, 1, 1, -1, -1]


def test_small_components_are_decomposed_whole() -> None:
    lists = [[0, 1, 2], [1, 2], [2, 0], [5, 6], [6, 7, 8], [8, 5]]
    found = decompose(as_lists(lists, 10), 10)
    assert [space.pages.tolist() for space in found.spaces] == [[0, 1, 2], [5, 6, 7, 8]]
    k = dense_k(lists, 10)
    for space in found.spaces:
        assert space.values[0] == pytest.approx(1.0)
        again = space.vectors * space.values @ space.vectors.T
        np.testing.assert_allclose(again, k[np.ix_(space.pages, space.pages)], atol=1e-12)
        np.testing.assert_allclose(space.vectors.T @ space.vectors, np.eye(len(space.pages)), atol=1e-12)


def test_leading_vectors_are_those_of_power_iteration_and_of_a_dense_solver() -> None:
    lists = random_lists(3, 150, 60, 7)
    flat = as_lists(lists, 60)
    k = dense_k(lists, 60)
    values, vectors, residual = leading(flat, scales(flat)[0], 6, tolerance=1e-6)
    assert residual < 1e-4
    exact = np.linalg.eigvalsh(k)[::-1][:6]
    np.testing.assert_allclose(values, exact, atol=1e-5)
    by_power, table_1 = power_iteration(k, 4)
    np.testing.assert_allclose(values[:4], by_power, atol=1e-5)
    # Vectors up to their sign; these eigenvalues stand apart.
    assert np.abs(np.sum(vectors[:, :4] * table_1, axis=0)).min() > 1 - 1e-4


def test_a_large_component_reports_its_residual() -> None:
    lists = random_lists(4, 900, 300, 8)
    space = decompose(as_lists(lists, 300), 20, tolerance=1e-4).spaces[0]
    k = dense_k(lists, 300)
    reached = np.linalg.norm(k @ space.vectors - space.vectors * space.values, axis=0).max()
    assert reached == pytest.approx(space.residual, rel=0.2, abs=1e-5)
    assert space.residual <= 1e-4
    np.testing.assert_allclose(space.values, np.linalg.eigvalsh(k)[::-1][:20], atol=1e-4)


def test_rare_pages_can_be_left_out() -> None:
    kept = keep_frequent(as_lists([[0, 1], [1, 2], [3], [1, 0]], 4), 2)
    assert kept.indptr.tolist() == [0, 2, 3, 3, 5]
    assert kept.pages.tolist() == [0, 1, 1, 1, 0]


def test_repeats_are_the_same() -> None:
    flat = as_lists(random_lists(5, 400, 120, 6), 120)
    one, two = (decompose(flat, 10, seed=7).spaces[0] for _ in range(2))
    assert one.vectors.tobytes() == two.vectors.tobytes()
