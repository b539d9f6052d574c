"""The few operations that carry learning, and the two limits under which they run.

A model is handed an engine and never chooses one. `threads` and `memory` mean the same for every model: how many
threads may work at once, and how many bytes may be used for working arrays. Results do not depend on either: work is
cut into blocks by size, and blocks are added up in their order.

Solvers in numerics are written on these operations. The loops behind them are in numerics too, and know of an engine
only what is said here: `base` stands below numerics, the engines themselves above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import numpy as np
from scipy import sparse

Array = np.ndarray[Any, Any]
Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    name: str
    threads: int
    memory: int
    narrow: bool
    """Whether a few columns at a time go through the products about as fast, each, as many do."""

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """`work` on every item, several at once; results in the order of the items. Work is done as results are
        asked for, in this process: it may write into arrays that it shares with the caller."""
        ...

    def at_work(self) -> AbstractContextManager[object]:
        """Held around a fit or an update: BLAS has one thread. Large products are cut into blocks for `map`; on small
        ones BLAS's own threads mostly wait for each other, and their number would change the last bits of a sum."""
        ...

    def times(self, a: sparse.csr_array, block: Any) -> Any:
        """Sparse rows times a dense block, in the block's precision."""
        ...

    def gram(self, block: Any) -> Array:
        """block' block, in float64."""
        ...

    def orthonormal(self, block: Any) -> tuple[Any, Array]:
        """(q, r) with q r = block and q'q = 1; dependent columns are dropped. May overwrite the block."""
        ...

    def hold(self, array: Any) -> Any:
        """An array, or sparse rows, brought to where the work is done. It may go in wherever a block or a map does,
        and what is made of it is held there too: nothing comes back before it is fetched."""
        ...

    def fetch(self, held: Any) -> Any:
        """What is held, in this process."""
        ...

    def combined(self, block: Any, matrix: Array) -> Any:
        """block times a small matrix. May overwrite the block."""
        ...

    def cross(self, blocks: Sequence[Any], block: Any) -> Array:
        """The products b' block of all blocks, one below the other, in float64."""
        ...

    def joined(self, blocks: Sequence[Any]) -> Any:
        """The columns of all blocks side by side."""
        ...

    def mixed(self, blocks: Sequence[Any], matrices: Sequence[Array]) -> Any:
        """Blocks times small matrices, added up."""
        ...

    def scaled(self, block: Any, factors: Array | float) -> Any:
        """Every column, or all of the block, times its factor. May overwrite a dense block."""
        ...

    def lengths(self, block: Any, minus: Any = None, factors: Array | float = 1.0) -> Array:
        """Norms of the columns, in float64; with `minus`, of those of block - minus * factors."""
        ...

    def extremes(self, block: Any) -> tuple[Array, Array]:
        """The largest and the smallest number of each column."""
        ...

    def survey(self, maps: Any, gram: bool) -> Any:
        """The rows of a map in numbers: a `Survey` of numerics/rows.py, with L'L if that is asked for."""
        ...

    def half(self, rows: Any, maps: Any, how: Any, keep_dense: bool) -> Any:
        """One half of an RMLS iteration: sparse rows times a map, turned, thresholded and given their lengths. From
        `Rows`, `Maps` and a `Shrinkage` to a `Half`, all in numerics/rmls.py."""
        ...

    def by_rows(self, work: Callable[..., Any], n_rows: int, *shared: Any) -> list[Any]:
        """`work(engine, start, stop, *shared)` over a partition of the rows, in its order, wherever the engine works:
        a function of a module, which depends on nothing but what it is given."""
        ...

    def exchange(
        self, split: Callable[[Any, int], tuple[Any, ...]], items: list[Any], merge: Callable[..., Any], *shared: Any
    ) -> tuple[list[Any], list[Any]]:
        """`split(item, n)` gives a report and n pieces of what it makes of an item; `merge(number, *shared, *pieces)`
        makes one thing of the pieces of that number, of all items. Reports and what `merge` makes are given back,
        each in order; pieces go from worker to worker."""
        ...

    def top_k(self, queries: Array, images: Array, k: int, hidden: Array | None) -> tuple[Array, Array]:
        """Numbers and scores (float64) of the k images with the largest dot products for each query row, best first,
        ties to the lower number; `hidden` marks images that have no score. There are as many columns as k or as
        images; a place for which no image is left has the number -1 and the score -inf."""
        ...


_default: list[Engine] = []


def default_engine() -> Engine:
    """The engine of a caller who names none: this machine, one for the whole process."""
    if not _default:
        from clickbridge.engines.local import Local  # stands on numerics, which stand on this module

        _default.append(Local())
    return _default[0]
