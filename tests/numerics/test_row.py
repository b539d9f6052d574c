"""One sparse row as two arrays, against SciPy's matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from clickbridge.numerics.row import EMPTY, Row, as_matrix, counted, gathered, row_of, segment_sums, side_by_side

WIDTH = 7
columns = st.lists(st.integers(0, WIDTH - 1), max_size=12)
many = st.lists(columns, max_size=6)


def dense(row: Row, width: int = WIDTH) -> np.ndarray[Any, Any]:
    out = np.zeros(width)
    out[row.columns] = row.values
    return out


@given(columns)
def test_counted(numbers: list[int]) -> None:
    row = counted(numbers)
    assert dense(row).tolist() == [numbers.count(column) for column in range(WIDTH)]
    assert row.columns.tolist() == sorted(set(numbers))
    assert (row.columns.dtype, row.values.dtype) == (np.int32, np.float32)
    assert bool(row) == bool(numbers)


@given(many)
def test_rows_below_each_other(lists: list[list[int]]) -> None:
    rows = [counted(numbers) for numbers in lists]
    matrix = as_matrix(rows, WIDTH)
    assert matrix.shape == (len(rows), WIDTH)
    assert matrix.toarray().tolist() == [dense(row).tolist() for row in rows]
    for number, row in enumerate(rows):
        again = row_of(matrix, number)
        assert again.columns.tolist() == row.columns.tolist()
        assert again.values.tolist() == row.values.tolist()


@given(columns, st.floats(-5, 5))
def test_scaled_and_of_unit_length(numbers: list[int], factor: float) -> None:
    row = counted(numbers)
    np.testing.assert_allclose(dense(row.scaled(factor)), factor * dense(row), rtol=1e-6, atol=1e-30)
    unit, length = row.unit(), np.linalg.norm(dense(row))
    np.testing.assert_allclose(dense(unit), dense(row) / (length or 1.0), rtol=1e-6)
    assert unit.values.dtype == np.float32


def test_a_row_of_zeros_stays_as_it_is() -> None:
    zeros = Row(np.array([2]), np.zeros(1, dtype=np.float32))
    assert zeros.unit() is zeros
    assert EMPTY.unit() is EMPTY
    assert bool(zeros)
    assert not EMPTY


@given(many)
def test_side_by_side(lists: list[list[int]]) -> None:
    rows = [counted(numbers) for numbers in lists]
    starts = [WIDTH * number for number in range(len(rows))]
    joined = side_by_side(rows, starts)
    expected = sparse.hstack([as_matrix([row], WIDTH) for row in rows]).toarray()[0] if rows else np.zeros(0)
    assert dense(joined, WIDTH * len(rows)).tolist() == expected.tolist()
    assert (np.diff(joined.columns) > 0).all()
    assert (joined.columns.dtype, joined.values.dtype) == (np.int32, np.float32)


@given(many, st.data())
def test_gathered_rows_and_their_sums(lists: list[list[int]], data: st.DataObject) -> None:
    """`segment_sums` of what `gathered` finds is a product of the chosen rows with ones."""
    matrix = as_matrix([counted(numbers) for numbers in lists], WIDTH)
    chosen = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=9)) if lists else []
    rows = np.array(chosen, dtype=np.int64)
    places, begins = gathered(matrix.indptr, rows)
    expected = [row_of(matrix, int(n)) for n in rows]
    assert matrix.indices[places].tolist() == [c for row in expected for c in row.columns.tolist()]
    assert matrix.data[places].tolist() == [v for row in expected for v in row.values.tolist()]
    lengths = [len(row.columns) for row in expected]
    assert begins.tolist() == [sum(lengths[:n]) for n in range(len(rows))]
    sums = segment_sums(matrix.data[places], begins)
    np.testing.assert_allclose(sums, [float(row.values.sum()) for row in expected])
