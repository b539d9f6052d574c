"""The sparse walk against powers of the dense transition matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from clickbridge.numerics.walk import Edges, backward_walk


def random_graph(n_left: int, n_right: int, seed: int) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    clicks = sparse.csr_array(
        rng.integers(0, 4, (n_left, n_right)) * (rng.random((n_left, n_right)) < 0.4), dtype=float
    )
    return sparse.csr_array(sparse.block_array([[None, clicks], [clicks.T, None]], format="csr"))


def powers(weights: sparse.csr_array, stay: float, steps: int) -> np.ndarray[Any, Any]:
    """A^t with A_kj = (1 - stay) w_kj / sum_i w_ki off the diagonal and `stay` on it; a node alone only stays."""
    w = weights.toarray()
    out = w.sum(axis=1, keepdims=True)
    a = (1 - stay) * np.divide(w, out, out=np.zeros_like(w), where=out > 0) + stay * np.eye(len(w))
    return np.linalg.matrix_power(a, steps)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.5, 0.9]), st.integers(1, 6))
def test_columns_of_the_power(seed: int, stay: float, steps: int) -> None:
    weights = random_graph(6, 5, seed)
    found = backward_walk(Edges.of(weights), np.arange(11), stay, steps, 0.0).toarray()
    np.testing.assert_allclose(found, powers(weights, stay, steps).T, atol=1e-12)


def test_starts_in_any_order_and_none_at_all() -> None:
    weights = random_graph(6, 5, 1)
    starts = np.array([7, 0, 7, 10])
    found = backward_walk(Edges.of(weights), starts, 0.9, 5, 0.0)
    np.testing.assert_allclose(found.toarray(), powers(weights, 0.9, 5).T[starts], atol=1e-12)
    assert found.has_sorted_indices
    none = backward_walk(Edges.of(weights), np.empty(0, dtype=np.int64), 0.9, 5, 0.0)
    assert none.shape == (0, 11)


def test_a_walk_is_the_same_alone_and_among_others() -> None:
    edges = Edges.of(random_graph(60, 50, 2))
    together = backward_walk(edges, np.arange(110), 0.8, 3, 1e-6)
    for node in (0, 7, 109):
        alone = backward_walk(edges, np.array([node]), 0.8, 3, 1e-6)
        assert alone.toarray().tobytes() == together[[node]].toarray().tobytes()


@pytest.mark.parametrize("threshold", [1e-3, 1e-2])
def test_what_is_dropped_is_small(threshold: float) -> None:
    edges = Edges.of(random_graph(20, 20, 3))
    exact = backward_walk(edges, np.arange(40), 0.9, 5, 0.0)
    rough = backward_walk(edges, np.arange(40), 0.9, 5, threshold)
    assert rough.nnz <= exact.nnz
    difference = exact.toarray() - rough.toarray()
    assert difference.min() > -1e-12
    # Each step drops at most `threshold` from each of the 40 nodes, and weights out of a node sum to 1.
    assert difference.sum(axis=1).max() < 40 * 5 * threshold * 40
    assert rough.sum(axis=1).min() > 0
