"""The table of numbers by key, against a dict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickbridge.numerics.hash_table import (
    add_at,
    empty_table,
    mixed,
    packed,
    room_for,
    unpacked,
    value_at,
    without_small,
)

KEYS = st.integers(1, 40) | st.integers(1, 2**64 - 1)


@given(st.lists(st.tuples(KEYS, st.floats(-5, 5)), max_size=120))
@settings(deadline=None)
def test_it_is_a_dict(steps: list[tuple[int, float]]) -> None:
    keys, values = empty_table(8)
    used, expected = 0, {}
    for key, amount in steps:
        keys, values = room_for(keys, values, used, 1)
        used += add_at(keys, values, np.uint64(key), amount)
        expected[key] = expected.get(key, 0.0) + amount
    assert used == len(expected)
    assert used * 8 <= len(keys) * 5
    for key, amount in expected.items():
        assert value_at(keys, values, np.uint64(key)) == amount
    assert value_at(keys, values, np.uint64(41)) == expected.get(41, 0.0)
    flat = packed(keys, values)
    assert flat[0].tolist() == sorted(expected)
    again = packed(*unpacked(*flat))
    assert [a.tobytes() for a in again] == [a.tobytes() for a in flat]


@pytest.mark.filterwarnings("ignore:overflow")  # wanted, and only the interpreter mentions it
def test_keys_are_mixed_well() -> None:
    made = {int(mixed(np.uint64(q), np.uint64(p))) for q in range(100) for p in range(100)}
    assert len(made) == 10_000
    assert 0 not in made
    low = np.bincount([key & 15 for key in made], minlength=16)
    assert low.min() > 500


def test_what_has_faded_can_be_dropped() -> None:
    keys, values = empty_table(64)
    for key, value in ((1, 2.0), (2, 1e-20), (3, -2.0), (4, 0.0), (5, -1e-20)):
        add_at(keys, values, np.uint64(key), value)
    kept_keys, kept_values, used = without_small(keys, values, 1e-15)
    assert used == 2
    assert [a.tolist() for a in packed(kept_keys, kept_values)] == [[1, 3], [2.0, -2.0]]
