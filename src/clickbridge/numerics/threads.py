"""Compiled loops, and the rows they share out.

A loop compiles, or loads from Numba's cache on disk, on its first call: importing clickbridge never loads Numba. Loops
release the interpreter lock, so plain threads are enough: no threading layer that dies in a forked child or aborts on
a second caller.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import update_wrapper
from itertools import pairwise
from threading import RLock
from typing import Any

import numpy as np

from clickbridge.engines.base import Engine, default_engine

Array = np.ndarray[Any, Any]
_LOCK = RLock()
# A child that is forked while another thread holds the lock would wait for ever.
os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)


class Kernel:
    """Stands in for a loop until it is first called. Then its module's name, and those in the modules of the loops
    that call it, become Numba's own object: later calls by name go straight there."""

    def __init__(self, function: Any, any_order: bool = False) -> None:
        update_wrapper(self, function)
        self._function = function
        # Nothing is assumed of infinities and NaNs: those must come out as they are.
        self._options: dict[str, Any] = {"fastmath": {"reassoc", "contract", "nsz"}} if any_order else {}
        self._compiled: Any = None

    def __call__(self, *arguments: Any) -> Any:
        return (self._compiled or self.compiled())(*arguments)

    def compiled(self) -> Any:
        with _LOCK:
            if self._compiled is None:
                from numba import njit

                names, own = self._function.__globals__, self._function.__name__
                # Numba takes a global as it finds it, and does not know a stand-in.
                for name in self._function.__code__.co_names:
                    other = names.get(name)
                    if isinstance(other, Kernel) and other is not self:
                        names[name] = other.compiled()
                compiled = njit(nogil=True, cache=True, error_model="python", **self._options)(self._function)
                if names.get(own) is self:
                    names[own] = compiled
                self._compiled = compiled
            return self._compiled


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of every compiled loop here. Inner loops run over slices of rows, and look things up by `unsigned`
    numbers: an index that may be negative, or that is made of several, keeps the compiler from wide instructions."""
    return Kernel(function)


def any_order_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a loop whose sums may be taken in any order: those of a row then go side by side in wide
    instructions. How wide is up to the processor, so the last bits are too."""
    return Kernel(function, any_order=True)


class _Prefetch(Kernel):
    """For compiled loops, an instruction of the processor."""

    def compiled(self) -> Any:
        from numba import config, types
        from numba.extending import intrinsic

        if getattr(config, "DISABLE_JIT"):  # noqa: B009 - made while Numba loads, unknown to the type checker
            return self._function

        @intrinsic
        def fetch(context: Any, array: Any, index: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                from llvmlite import ir

                number, address = ir.IntType(32), ir.IntType(8).as_pointer()
                own = context.make_array(signature.args[0])(context, builder, arguments[0])
                place = builder.bitcast(builder.gep(own.data, [arguments[1]]), address)
                kind = ir.FunctionType(ir.VoidType(), [address, number, number, number])
                # To be read, soon and more than once, as data.
                how = number(0), number(3), number(1)
                builder.call(builder.module.declare_intrinsic("llvm.prefetch", [address], kind), [place, *how])
                return context.get_dummy_value()

            return types.void(array, index), generate

        return fetch


@_Prefetch
def prefetch(array: Array, index: int) -> None:
    """Asks for the line of the cache with this element of a vector; does not wait for it."""


_UNSIGNED = {np.dtype(f"i{size}"): np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def unsigned(indices: Array) -> Array:
    """The same numbers, none of them negative, in a type that says so; nothing is copied."""
    return indices.view(_UNSIGNED.get(indices.dtype, indices.dtype))


def over_rows(n_rows: int, engine: Engine | None, work: Callable[[int, int], None], smallest: int = 64) -> None:
    """Calls `work(start, stop)` over a partition of the rows, one part a thread. Results are in place."""
    if n_rows < 2 * smallest:
        work(0, n_rows)
        return
    engine = engine or default_engine()
    parts = min(engine.threads, n_rows // smallest)
    bounds = [n_rows * i // parts for i in range(parts + 1)]
    for _ in engine.map(lambda part: work(*part), list(pairwise(bounds))):
        pass
