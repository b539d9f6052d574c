"""What every engine does, whatever it runs on: each operation against NumPy and SciPy."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from clickbridge.engines.base import Engine
from clickbridge.numerics import krylov, svd
from clickbridge.numerics.rmls import ABSOLUTE, FactoredRows, FormedRows, Shrinkage
from clickbridge.numerics.rows import SparseRows, sparse_rows
from oracles.rmls import decorrelated, soft_row

Array = np.ndarray[Any, Any]
PRECISIONS = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def random_csr(rows: int, columns: int, density: float = 0.2, seed: int = 0) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    return sparse.csr_array(rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < density))


def normal(seed: int, *shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def test_limits_are_numbers(make: Any) -> None:
    for limits in ({}, {"threads": 3}, {"memory": 1 << 30}, {"threads": 2, "memory": 1 << 20}):
        engine = make(**limits)
        assert isinstance(engine.name, str)
        assert engine.threads >= 1
        assert engine.memory > 0
        assert {name: getattr(engine, name) for name in limits} == limits


# --- exchange ------------------------------------------------------------------------------------


@pytest.mark.parametrize("texts", [["a bb a ccc", "bb a", "dddd"], ["one"], []])
def test_pieces_of_one_number_meet(engine: Engine, texts: list[str]) -> None:
    """Words counted by several: all of one length are with one worker."""

    def split(text: str, n: int) -> tuple[Any, ...]:
        pieces: list[list[str]] = [[] for _ in range(n)]
        for word in text.split():
            pieces[len(word) % n].append(word)
        return len(text.split()), *pieces

    def merge(number: int, mark: str, *pieces: list[str]) -> dict[str, int]:
        words = [word for piece in pieces for word in piece]
        return {mark + word: words.count(word) for word in words}

    reports, merged = engine.exchange(split, texts, merge, "w:")
    assert reports == [len(text.split()) for text in texts]
    found = {word: count for part in merged for word, count in part.items()}
    every = " ".join(texts).split()
    assert found == {"w:" + word: every.count(word) for word in every}
    assert sum(map(len, merged)) == len(found), "no word is with two"


# --- map -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_come_in_the_order_of_the_items(make: Any, threads: int) -> None:
    engine = make(threads=threads)

    def slow(item: int) -> int:
        time.sleep(0.002 * (item % 3 == 0))
        return item * item

    expected = [item * item for item in range(40)]
    assert list(engine.map(slow, range(40))) == expected
    assert list(engine.map(slow, iter(range(40)))) == expected
    assert list(engine.map(slow, [])) == []
    assert list(engine.map(slow, [7])) == [49]


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_comes_out_at_its_place_and_ends_the_work(make: Any, threads: int) -> None:
    running: set[int] = set()

    def work(item: int) -> int:
        running.add(item)
        try:
            time.sleep(0.001)
            if item == 5:
                raise KeyError("the fifth")
            return item
        finally:
            running.remove(item)

    results = make(threads=threads).map(work, range(1000))
    assert [next(results) for _ in range(5)] == list(range(5))
    with pytest.raises(KeyError, match="the fifth"):
        next(results)
    assert not running


def test_not_many_more_items_are_begun_than_were_asked_for(engine: Engine) -> None:
    begun = []
    results = engine.map(lambda item: begun.append(item) or item, range(1000))
    assert next(results) == 0
    del results
    assert len(begun) < 100


def test_work_may_hand_out_work(engine: Engine) -> None:
    """More of it than there are threads: none may wait for one that waits for it."""
    found = engine.map(lambda i: sum(engine.map(lambda j: i * j, range(10))), range(20))
    assert list(found) == [45 * i for i in range(20)]


def test_several_callers_at_once(engine: Engine) -> None:
    found: dict[int, list[int]] = {}

    def call(caller: int) -> None:
        found[caller] = list(engine.map(lambda item: caller * item, range(50)))

    callers = [threading.Thread(target=call, args=(caller,)) for caller in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert found == {caller: [caller * item for item in range(50)] for caller in range(6)}


# --- products ------------------------------------------------------------------------------------


@PRECISIONS
@pytest.mark.parametrize("shape", [(7, 5), (1, 5), (7, 1), (0, 5), (7, 0), (0, 0), (300, 200)])
@pytest.mark.parametrize("width", [0, 1, 3])
def test_times_is_scipy_s_product(engine: Engine, shape: tuple[int, int], width: int, dtype: Any) -> None:
    a, block = random_csr(*shape), normal(1, shape[1], width, dtype=dtype)
    found = engine.times(a, block)
    assert found.dtype == dtype
    assert found.shape == (shape[0], width)
    np.testing.assert_allclose(found, a @ block.astype(np.float64), rtol=1e-4, atol=1e-4)


def test_times_takes_long_indices_and_refuses_what_does_not_fit(engine: Engine) -> None:
    a, block = random_csr(30, 20), normal(1, 20, 3, dtype=np.float64)
    long = a.copy()
    long.indices, long.indptr = a.indices.astype(np.int64), a.indptr.astype(np.int64)
    np.testing.assert_allclose(engine.times(long, block), a @ block, rtol=1e-12)
    with pytest.raises(ValueError, match="do not fit"):
        engine.times(a, block[:-1])


@PRECISIONS
@pytest.mark.parametrize("shape", [(300, 7), (3, 7), (5, 1), (0, 3), (3, 0)])
def test_gram(engine: Engine, shape: tuple[int, int], dtype: Any) -> None:
    block = normal(0, *shape, dtype=dtype)
    found = engine.gram(block)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, block.T.astype(np.float64) @ block, rtol=1e-4, atol=1e-4)


# --- several blocks ------------------------------------------------------------------------------


@PRECISIONS
@pytest.mark.parametrize("n_rows", [300, 2, 1])
def test_blocks_beside_each_other(engine: Engine, n_rows: int, dtype: Any) -> None:
    blocks = [normal(i, n_rows, width, dtype=dtype) for i, width in enumerate((4, 1, 7))]
    block, together = normal(9, n_rows, 3, dtype=dtype), np.hstack(blocks)
    held = [engine.hold(one.copy()) for one in blocks]
    crossed = engine.cross(held, engine.hold(block.copy()))
    assert crossed.dtype == np.float64
    np.testing.assert_allclose(crossed, together.T.astype(np.float64) @ block, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(engine.fetch(engine.joined(held)), together)
    matrices = [normal(20 + i, one.shape[1], 5, dtype=dtype) for i, one in enumerate(blocks)]
    mixed = engine.fetch(engine.mixed(held, matrices))
    assert mixed.dtype == dtype
    np.testing.assert_allclose(mixed, together @ np.vstack(matrices), rtol=1e-4, atol=1e-4)
    for one, left in zip(blocks, held, strict=True):
        np.testing.assert_array_equal(engine.fetch(left), one)


def test_a_basis_that_is_kept_gives_what_power_steps_give(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "narrow", True, raising=False)  # it works on a card, where wide blocks are faster
    monkeypatch.setattr(svd, "LARGE", 1)
    monkeypatch.setattr(krylov, "BLOCK", 8)
    monkeypatch.setattr(svd, "BLOCK", 8)
    rng = np.random.default_rng(0)
    matrix = sparse.csr_array((rng.random((900, 1000)) < 0.02) * rng.standard_normal((900, 1000)), dtype=np.float32)
    matrix *= np.sort(rng.random(900))[:, None] ** 3
    operator = svd.MatrixOperator(sparse.csr_array(matrix), np.float32, engine)
    said: list[str] = []
    kept = svd.randomised_svd(operator, 10, tolerance=1e-4, progress=said.append)
    assert said
    assert all(words.endswith("columns") for words in said)
    np.testing.assert_allclose(kept.s, np.linalg.svd(matrix.toarray(), compute_uv=False)[:10], rtol=1e-5)
    assert kept.residual < 1e-4


# --- orthonormal columns -------------------------------------------------------------------------


@PRECISIONS
@pytest.mark.parametrize("case", ["full", "one", "wide", "dependent", "zero column", "zeros", "no rows", "no columns"])
def test_orthonormal(engine: Engine, case: str, dtype: Any) -> None:
    good = normal(0, 200, 6, dtype=dtype)
    blocks = {
        "full": (good, 6),
        "one": (good[:, :1], 1),
        "wide": (normal(1, 4, 9, dtype=dtype), 4),
        "dependent": (np.hstack([good[:, :2], good[:, :1] + good[:, 1:2], good[:, 2:]]), 6),
        "zero column": (np.hstack([np.zeros_like(good[:, :1]), good]), 6),
        "zeros": (np.zeros_like(good), 0),
        "no rows": (good[:0], 0),
        "no columns": (good[:, :0], 0),
    }
    block, rank = blocks[case]
    q, r = engine.orthonormal(block.copy())
    assert q.dtype == r.dtype == dtype
    assert q.shape == (len(block), rank)
    assert r.shape == (rank, block.shape[1])
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(q.T @ q, np.eye(rank), atol=tolerance)
    np.testing.assert_allclose(q @ r, block, atol=tolerance)


# --- half an iteration ---------------------------------------------------------------------------


@pytest.mark.parametrize("keep_dense", [True, False])
@pytest.mark.parametrize("decorrelate", [0.0, 0.5])
@pytest.mark.parametrize("factored", [True, False])
def test_half(engine: Engine, factored: bool, decorrelate: float, keep_dense: bool) -> None:
    a, middle, b = (random_csr(*shape, 0.3).astype(np.float32) for shape in ((50, 20), (20, 30), (30, 12)))
    w, maps = (a @ (middle @ b)).toarray(), normal(4, 12, 5)
    rows = FactoredRows(a, middle, b, 2) if factored else FormedRows(sparse.csr_array(w))
    found = engine.half(rows, sparse_rows(maps), Shrinkage(ABSOLUTE, 0.1, 2.0, 0.0, decorrelate), keep_dense)
    assert isinstance(found.maps, SparseRows) != keep_dense
    made = found.maps if keep_dense else found.maps.dense()
    omega = w.astype(np.float64) @ maps
    turned = decorrelated(omega, decorrelate) if decorrelate else omega
    np.testing.assert_allclose(made, [soft_row(row, 0.1, 2.0) for row in turned], atol=1e-4)
    np.testing.assert_allclose(found.alignment, (made * omega).sum(axis=0), rtol=1e-3, atol=1e-3)


# --- top k ---------------------------------------------------------------------------------------


def sorted_top(queries: Array, images: Array, k: int, hidden: Array | None) -> tuple[Array, Array]:
    """By a stable sort of all scores."""
    scores = queries.astype(np.float64) @ images.T.astype(np.float64)
    if hidden is not None:
        scores[:, hidden] = -np.inf
    items = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    values = np.take_along_axis(scores, items, axis=1)
    return np.where(values > -np.inf, items, -1), values


@PRECISIONS
@pytest.mark.parametrize("k", [0, 1, 7, 40, 100])
@pytest.mark.parametrize(("n_queries", "n_images"), [(1, 40), (600, 40), (3, 1), (0, 40), (3, 0)])
@pytest.mark.parametrize("some_hidden", [True, False])
def test_top_k(make: Any, n_queries: int, n_images: int, k: int, some_hidden: bool, dtype: Any) -> None:
    """Whole numbers: many ties, and scores that are exact."""
    rng = np.random.default_rng(0)
    queries, images = (rng.integers(-2, 3, (n, 3)).astype(dtype) for n in (n_queries, n_images))
    hidden = rng.random(n_images) < 0.5 if some_hidden else None
    expected = sorted_top(queries, images, k, hidden)
    for threads in (1, 2, 3):
        items, scores = make(threads=threads).top_k(queries, images, k, hidden)
        assert scores.dtype == np.float64
        np.testing.assert_array_equal(items, expected[0])
        np.testing.assert_array_equal(scores, expected[1])


def test_top_k_of_many_images(make: Any) -> None:
    """More than one tile, scores that round."""
    queries, images = normal(0, 300, 8), normal(1, 20_000, 8)
    items, scores = make(threads=1).top_k(queries, images, 5, None)
    product = queries @ images.T
    np.testing.assert_allclose(scores, -np.sort(-product, axis=1)[:, :5], rtol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(product, items.astype(np.int64), axis=1), scores, rtol=1e-5)
    for limits in ({"threads": 2}, {"threads": 3}, {"threads": 3, "memory": 1}):
        for one, other in zip((items, scores), make(**limits).top_k(queries, images, 5, None), strict=True):
            assert one.tobytes() == other.tobytes()
