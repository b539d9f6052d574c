"""A hash table with open addressing, from 64-bit keys to numbers, for compiled loops: two flat arrays. Key 0 is an
empty slot.

The caller keeps it at most 5/8 full (`crowded`, `room_for`). Keys are hashes already, so their own bits choose the
slot.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clickbridge.numerics.threads import kernel

Array = np.ndarray[Any, Any]
SMALLEST = 1024


@kernel
def mixed(one, two):  # type: ignore[no-untyped-def]
    """Makes one key from two numbers, with the finaliser of splitmix64. Never 0."""
    x = np.uint64(one) ^ (np.uint64(two) * np.uint64(0x9E3779B97F4A7C15))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return x if x != np.uint64(0) else np.uint64(1)


@kernel
def place_of(keys, key):  # type: ignore[no-untyped-def]
    """The slot of a key, or the empty slot where it would be inserted."""
    mask = np.uint64(len(keys) - 1)
    place = key & mask
    while keys[place] != np.uint64(0) and keys[place] != key:
        place = (place + np.uint64(1)) & mask
    return place


@kernel
def value_at(keys, values, key):  # type: ignore[no-untyped-def]
    place = place_of(keys, key)
    return values[place] if keys[place] != np.uint64(0) else 0.0


@kernel
def add_at(keys, values, key, amount):  # type: ignore[no-untyped-def]
    """Adds to the number of a key. Returns 1 if the key is new, otherwise 0."""
    place = place_of(keys, key)
    if keys[place] == np.uint64(0):
        keys[place] = key
        values[place] = amount
        return 1
    values[place] += amount
    return 0


@kernel
def crowded(used, size):  # type: ignore[no-untyped-def]
    """Whether `used` keys are too many for a table with `size` slots."""
    return used * 8 > size * 5


@kernel
def _move(keys, values, least, new_keys, new_values):  # type: ignore[no-untyped-def]
    """Copies keys into another table, except those with a number below `least`. Returns how many were copied."""
    used = 0
    for i in range(len(keys)):
        if keys[i] != np.uint64(0) and abs(values[i]) >= least:
            used += add_at(new_keys, new_values, keys[i], values[i])
    return used


def empty_table(size: int = SMALLEST) -> tuple[Array, Array]:
    return np.zeros(size, dtype=np.uint64), np.zeros(size)


def room_for(keys: Array, values: Array, used: int, more: int) -> tuple[Array, Array]:
    """The same table, or a larger copy if `more` new keys would crowd it."""
    size = len(keys)
    while crowded(used + more, size):
        size *= 2
    if size == len(keys):
        return keys, values
    new = empty_table(size)
    _move(keys, values, 0.0, *new)
    return new


def without_small(keys: Array, values: Array, least: float) -> tuple[Array, Array, int]:
    """A table as small as possible without the numbers below `least`, and how many keys are left."""
    left = int(np.count_nonzero((keys != 0) & (np.abs(values) >= least)))
    new = room_for(*empty_table(), 0, left)
    return *new, int(_move(keys, values, least, *new))


def packed(keys: Array, values: Array) -> tuple[Array, Array]:
    """Sorted keys with their values, for a file that does not depend on the order of insertion."""
    there = np.flatnonzero(keys)
    order = there[np.argsort(keys[there])]
    return keys[order], values[order]


def unpacked(keys: Array, values: Array) -> tuple[Array, Array]:
    table = room_for(*empty_table(), 0, len(keys))
    _move(np.array(keys), np.array(values), 0.0, *table)
    return table
