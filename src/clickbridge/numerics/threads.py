"""The decorators of compiled loops, and how rows are divided among threads.

A loop is compiled, or loaded from Numba's cache on disk, at its first call. So importing clickbridge never loads Numba.
Loops release the interpreter lock, so plain threads are enough. Numba's own threading layers are not used: they fail in
a forked child, or abort when two threads call them at once.
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
# A child that is forked while another thread holds the lock would otherwise wait forever.
os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)


class Kernel:
    """A placeholder for a loop until its first call. Then its name in its module, and in the modules of loops that call
    it, is bound to Numba's own object, so that later calls go there directly."""

    def __init__(self, function: Any, any_order: bool = False) -> None:
        update_wrapper(self, function)
        self._function = function
        # No assumptions about infinities and NaN: they must be kept.
        self._options: dict[str, Any] = {"fastmath": {"reassoc", "contract", "nsz"}} if any_order else {}
        self._compiled: Any = None

    def __call__(self, *arguments: Any) -> Any:
        return (self._compiled or self.compiled())(*arguments)

    def compiled(self) -> Any:
        with _LOCK:
            if self._compiled is None:
                from numba import njit

                names, own = self._function.__globals__, self._function.__name__
                # Numba reads globals when it compiles, and cannot call a placeholder.
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
    """The decorator of compiled loops. For SIMD instructions, inner loops should run over slices of rows and use
    `unsigned` indices: the compiler cannot vectorise indices that may be negative or are computed from several."""
    return Kernel(function)


def any_order_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for loops whose sums may be taken in any order, which allows SIMD instructions for them. Their width
    depends on the processor, so the last bits of sums do, too."""
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
    """The same numbers, none of which may be negative, as an unsigned type. Makes no copy."""
    return indices.view(_UNSIGNED.get(indices.dtype, indices.dtype))


def over_rows(n_rows: int, engine: Engine | None, work: Callable[[int, int], None], smallest: int = 64) -> None:
    """Calls `work(start, stop)` for each part of the rows, one part per thread. `work` writes its results in place."""
    if n_rows < 2 * smallest:
        work(0, n_rows)
        return
    engine = engine or default_engine()
    parts = min(engine.threads, n_rows // smallest)
    bounds = [n_rows * i // parts for i in range(parts + 1)]
    for _ in engine.map(lambda part: work(*part), list(pairwise(bounds))):
        pass
