"""Coarse rows: the bound holds for every row, and a search by bounds is the exact one, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

from clickbridge.numerics.coarse import CoarseRows, within_reach
from clickbridge.numerics.row import Row
from clickbridge.search.index import DenseIndex, SparseIndex, StackedIndex

numbers = st.floats(-1e3, 1e3, width=32)


@settings(max_examples=60, deadline=None)
@given(
    rows=arrays.arrays(np.float32, st.tuples(st.integers(1, 20), st.integers(1, 12)), elements=numbers),
    scale=st.floats(-3, 3),
    data=st.data(),
)
def test_no_row_is_off_by_more_than_its_slack(rows, scale, data):
    query = data.draw(arrays.arrays(np.float32, rows.shape[1], elements=numbers))
    total, slack = np.zeros(len(rows)), np.zeros(len(rows))
    CoarseRows.of(rows).add(query, scale, total, slack)
    exact = scale * (rows.astype(np.float64) @ query.astype(np.float64))
    assert np.all(np.abs(total - exact) <= slack + 1e-9 * np.abs(exact))


def test_the_bound_is_tight_enough_to_leave_few_rows():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((5000, 300)).astype(np.float32)
    total, slack = np.zeros(5000), np.zeros(5000)
    CoarseRows.of(rows).add(rows[7], 1.0, total, slack)
    assert len(within_reach(total, slack, np.ones(5000, dtype=bool), 10)) < 100


@pytest.mark.parametrize("k", [1, 5, 40, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_a_search_by_bounds_is_the_exact_search(seed, k):
    rng = np.random.default_rng(seed)
    images = rng.standard_normal((300, 24)).astype(np.float32) * rng.exponential(1, 300)[:, None].astype(np.float32)
    images[50:60] = images[50]  # ties go to the lower number
    images[70] = 0
    scorable = rng.random(300) < 0.9
    images[~scorable] = 0
    words = sparse.random_array((300, 40), density=0.1, rng=rng, format="csr", dtype=np.float32)
    coarse, plain = DenseIndex(images, scorable, CoarseRows.of(images)), DenseIndex(images, scorable)
    dense, columns = rng.standard_normal(24).astype(np.float32), np.array([3, 17])
    row = Row(columns, np.array([1.5, 0.5]))
    same(coarse.search(dense, k), plain.search(dense, k))
    there = rng.random(300) < 0.95
    stacks = [StackedIndex([SparseIndex(words), part], there) for part in (coarse, plain)]
    same(*(stack.search([row, dense], k) for stack in stacks))
    same(*(StackedIndex([stack, coarse], there).search([[row, dense], dense], k) for stack in stacks))


def same(one, other):
    assert one[0].tolist() == other[0].tolist()
    assert one[1].tolist() == other[1].tolist()
