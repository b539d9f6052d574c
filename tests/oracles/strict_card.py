"""A card that refuses what CuPy refuses: arrays of this machine's memory where those of a card are needed. It also
counts bytes, and can refuse more than it has.

The emulation alone cannot tell the two kinds of arrays apart, since both are NumPy's. Here those of the card are of a
class of their own. What is not caught: a card's array that is assigned to a part of one in this machine's memory.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.engines.emulation import Emulation, as_numbers, to_bf16

TAKE_EITHER = {"asarray", "array"}


class OnDevice(np.ndarray[Any, Any]):
    card: StrictCard

    def __array_finalize__(self, source: Any) -> None:
        if isinstance(source, OnDevice):
            self.card = source.card

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **more: Any) -> Any:
        for one in (*inputs, *out):
            refuse_host(one, ufunc.__name__)
        given = {**more, "out": tuple(map(plain, out))} if out else more
        made = getattr(ufunc, method)(*map(plain, inputs), **given)
        return out[0] if out else self.card.own(made)

    def __setitem__(self, where: Any, value: Any) -> None:
        refuse_host(value, "setitem")
        super().__setitem__(where, value)

    def astype(self, *given: Any, **more: Any) -> Any:
        return self.card.own(plain(self).astype(*given, **more))


def refuse_host(value: Any, name: str) -> None:
    if isinstance(value, np.ndarray) and not isinstance(value, OnDevice) and value.ndim:
        raise TypeError(f"{name} of an array that is not on the card")


def product(a: sparse.csr_array, block: Any) -> Any:
    """By SciPy: the order of sums is not what this card is for."""
    return a @ as_numbers(plain(block))


def plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, OnDevice) else value


class Functions:
    """What the engine uses of CuPy."""

    def __init__(self, card: StrictCard, source: Any = np) -> None:
        self._card, self._source = card, source

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._source, name)
        if name == "linalg":
            return Functions(self._card, found)
        return self._strict(name, found) if callable(found) and not isinstance(found, type) else found

    def _strict(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:
            for one in given if name not in TAKE_EITHER else ():
                for value in one if isinstance(one, list) else [one]:
                    refuse_host(value, name)
            if name in TAKE_EITHER and isinstance(given[0], np.ndarray) and not isinstance(given[0], OnDevice):
                return self._card.own(np.array(given[0], *given[1:], **more))
            return self._card.own(work(*map(plain, given), **more))

        return call


class StrictCard(Emulation):
    """With `bounded`, more bytes at once than `memory` are refused; without, a matrix alone may be larger."""

    def __init__(self, memory: int, bounded: bool = False) -> None:
        super().__init__(memory)
        self.xp = Functions(self)
        self.bounded = bounded
        self.most = 0
        self._sizes: dict[int, int] = {}
        self._used = 0

    def own(self, made: Any) -> Any:
        if not isinstance(made, np.ndarray | np.generic):
            return made
        array = np.asarray(made)
        self._count(array)
        device = array.view(OnDevice)
        device.card = self
        return device

    def _count(self, array: Any) -> None:
        while isinstance(array.base, np.ndarray):
            array = array.base
        if id(array) not in self._sizes:
            self._sizes[id(array)] = array.nbytes
            self._used += array.nbytes
            weakref.finalize(array, self._gone, id(array))
        self.most = max(self.most, self.used())
        if self.bounded and self.used() > self.memory:
            raise MemoryError(f"{self.used()} bytes are too many for a card of {self.memory}")

    def _gone(self, number: int) -> None:
        self._used -= self._sizes.pop(number)

    def used(self) -> int:
        return self._used

    def holds(self, array: Any) -> bool:
        return isinstance(array, OnDevice)

    def put(self, array: Any) -> Any:
        return self.own(np.array(plain(array)))

    def get(self, array: Any) -> Any:
        return np.array(plain(array)) if isinstance(array, OnDevice) else array

    def matrix(self, a: sparse.csr_array, dtype: Any) -> Any:
        copied = sparse.csr_array(a, dtype=dtype, copy=True)
        for part in (copied.data, copied.indices, copied.indptr):
            self._count(part)
        return copied

    def gather(self, a: Any, block: Any, out: Any) -> Any:
        for one in (block, out):
            refuse_host(one, "gather")
        made = product(a, block)
        plain(out)[...] = to_bf16(made) if out.dtype == np.uint16 else made
        return out

    def gather_shrink(self, a: Any, block: Any, out: Any, *how: Any) -> Any:
        for one in (block, out):
            refuse_host(one, "gather_shrink")
        raw = product(a, block)
        return self.own(super().shrink(raw, raw, plain(out), *how))

    def shrink(self, source: Any, raw: Any, out: Any, *how: Any) -> Any:
        for one in (source, raw, out):
            refuse_host(one, "shrink")
        return self.own(super().shrink(plain(source), plain(raw), plain(out), *how))

    def top(self, scores: Any, first: int, hidden: Any, k: int) -> Any:
        refuse_host(scores, "top")
        return tuple(map(self.own, super().top(plain(scores), first, plain(hidden), k)))

    def merge(self, items: list[Any], scores: list[Any], k: int) -> Any:
        return tuple(map(self.own, super().merge([*map(plain, items)], [*map(plain, scores)], k)))
