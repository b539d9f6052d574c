"""Sparse rows against dense arrays."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from clickbridge.numerics.rows import block_product, compressed, linked_product, row_blocks, sparse_rows, stacked


def holes(seed: int, n: int, m: int, share: float = 0.3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n, m)) * (rng.random((n, m)) < share)).astype(np.float32)


@given(st.integers(0, 99), st.integers(0, 9), st.integers(1, 12))
def test_round_trip(seed: int, n: int, m: int) -> None:
    matrix = holes(seed, n, m)
    for rows in (compressed(matrix), sparse_rows(matrix), stacked([compressed(matrix[:2]), compressed(matrix[2:])], m)):
        np.testing.assert_array_equal(rows.dense(), matrix)
        assert rows.shape == matrix.shape
        assert rows.nnz == np.count_nonzero(matrix)
        assert rows.indices.dtype == np.int16
        np.testing.assert_allclose(rows.gram(), matrix.T @ matrix, atol=1e-5)
        assert "csr" not in vars(rows), "a copy of the indices is not kept for one product"
        np.testing.assert_allclose(rows.row_norms(), np.linalg.norm(matrix, axis=1), atol=1e-6)
        np.testing.assert_array_equal(rows.dense(1, m), matrix[:, 1:])
    np.testing.assert_array_equal(compressed(matrix)[np.arange(n)[::-1]], matrix[::-1])


def test_wide_rows_have_wide_indices() -> None:
    matrix = np.zeros((2, 40_000), dtype=np.float32)
    matrix[1, -1] = 2
    rows = compressed(matrix)
    assert rows.indices.dtype == np.int32
    assert rows.indices.tolist() == [39_999]


def test_nothing() -> None:
    empty = stacked([], 3)
    assert empty.shape == (0, 3)
    assert empty.dense().shape == (0, 3)
    assert row_blocks(np.zeros(1, dtype=np.int64)) == []


@pytest.mark.parametrize("dense", [True, False])
def test_products(dense: bool) -> None:
    a = sparse.csr_array(holes(1, 30, 20))
    b = holes(2, 20, 7)
    out = np.full((40, 7), np.nan, dtype=np.float32)
    block = block_product(a, b if dense else sparse_rows(b), 5, 25, out)
    np.testing.assert_allclose(block, (a.toarray() @ b)[5:25], atol=1e-5)


@given(st.lists(st.integers(0, 50), max_size=200), st.integers(1, 20))
def test_blocks_cover_all_rows_once(counts: list[int], most: int) -> None:
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    blocks = row_blocks(indptr, most)
    assert [row for start, stop in blocks for row in range(start, stop)] == list(range(len(counts)))
    assert all(0 < stop - start <= most for start, stop in blocks)


def links_to(n_items: int) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Words by queries, and queries by clicked items, of which there may be many more."""
    rng = np.random.default_rng(0)
    words = sparse.csr_array(sparse.random_array((300, 500), density=0.02, rng=rng, dtype=np.float32))
    indices = np.sort(rng.integers(n_items, size=(500, 4)), axis=1).ravel()
    data = rng.random(2000, dtype=np.float32)
    return words, sparse.csr_array((data, indices, np.arange(0, 2001, 4)), shape=(500, n_items))


def test_products_with_dense_images_have_the_bits_of_the_formed_product() -> None:
    words, links = links_to(400)
    images = np.random.default_rng(1).standard_normal((400, 9)).astype(np.float32)
    found = linked_product(words, links, images, 20, 150, np.zeros((200, 9), np.float32))
    formed = sparse.csr_array(words[20:150] @ links)
    np.testing.assert_array_equal(found, block_product(formed, images, 0, 130, np.zeros((200, 9), np.float32)))
    np.testing.assert_allclose(found, words[20:150] @ (links @ images), atol=1e-4)
    assert linked_product(words, links, images, 7, 7, np.zeros((5, 9), np.float32)).shape == (0, 9)


def test_dense_images_of_items_that_are_not_linked_cost_nothing() -> None:
    seconds = []
    for n_items in (10_000, 10_000_000):
        words, links = links_to(n_items)
        images, out = np.zeros((n_items, 1), np.float32), np.zeros((10, 1), np.float32)
        tries = []
        for _ in range(7):
            begun = time.perf_counter()
            linked_product(words, links, images, 0, 10, out)
            tries.append(time.perf_counter() - begun)
        seconds.append(min(tries))
    assert seconds[1] < 5 * seconds[0]
