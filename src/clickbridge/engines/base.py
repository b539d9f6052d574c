"""The protocol of engines: the few operations that learning needs, and two limits.

A model is given an engine and never chooses one. `threads` and `memory` mean the same for every model: how many threads
may work at once, and how many bytes may be used for working arrays. Results do not depend on them: the size of the data
alone decides how work is cut into blocks, and the results of blocks are added in order.

Solvers in numerics use these operations. The compiled loops are in numerics as well, and know only this protocol. So
numerics imports `base`, and the engines import numerics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import numpy as np
from scipy import sparse

Array = np.ndarray[Any, Any]
Block = TypeVar("Block")
"""A block, a map or sparse rows: what an engine can hold."""
Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    name: str
    threads: int
    memory: int
    narrow: bool
    """Whether products with few columns take about as little time per column as products with many."""

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Calls `work` on every item, several at a time. Yields the results in the order of the items, and works only
        as results are requested. It runs in this process, so `work` may write to arrays of the caller."""
        ...

    def at_work(self) -> AbstractContextManager[object]:
        """A context for a fit or an update, in which BLAS has one thread. Large products are cut into blocks for `map`.
        In small products the threads of BLAS mostly wait for each other, and their number would change the last bits of
        sums."""
        ...

    def times(self, a: sparse.csr_array, block: Any) -> Any:
        """Sparse rows times a dense block, in the block's precision."""
        ...

    def gram(self, block: Any) -> Array:
        """block' block, in float64."""
        ...

    def orthonormal(self, block: Any) -> tuple[Any, Array]:
        """(q, r) with q r = block and q'q = 1. Dependent columns are dropped. May overwrite the block."""
        ...

    def hold(self, array: Any) -> Any:
        """Moves an array, or sparse rows, to where the engine works. The result can be used in place of a block or map.
        Results computed from it stay there, too, until they are fetched."""
        ...

    def fetch(self, held: Any) -> Any:
        """Copies something that is held back into this process."""
        ...

    def combined(self, block: Any, matrix: Array) -> Any:
        """The block times a small matrix. May overwrite the block and give its memory back: neither it nor a view of it
        may be used afterwards."""
        ...

    def cross(self, blocks: Sequence[Any], block: Any) -> Array:
        """The products b' block for all blocks b, stacked vertically, in float64."""
        ...

    def joined(self, blocks: Sequence[Any]) -> Any:
        """The columns of all blocks side by side."""
        ...

    def mixed(self, blocks: Sequence[Any], matrices: Sequence[Array]) -> Any:
        """The sum of blocks times small matrices."""
        ...

    def scaled(self, block: Any, factors: Array | float) -> Any:
        """The block with each column multiplied by its factor, or with all multiplied by one factor. May overwrite a
        dense block."""
        ...

    def lengths(self, block: Any, minus: Any = None, factors: Array | float = 1.0) -> Array:
        """Norms of the columns, in float64. With `minus`, those of block - minus * factors."""
        ...

    def extremes(self, block: Any) -> tuple[Array, Array]:
        """The largest and the smallest number of each column."""
        ...

    def survey(self, maps: Any, gram: bool) -> Any:
        """Statistics of the rows of a map L: a `Survey` of numerics/rows.py, with L'L if `gram` is true."""
        ...

    def half(self, rows: Any, maps: Any, how: Any, keep_dense: bool) -> Any:
        """One half of an RMLS iteration: sparse rows times a map, decorrelated, thresholded, and scaled to length.
        Takes `Rows`, `Maps` and a `Shrinkage`, and returns a `Half`, all of numerics/rmls.py."""
        ...

    def by_rows(self, work: Callable[..., Result], n_rows: int, *shared: object) -> list[Result]:
        """Calls `work(engine, start, stop, *shared)` for each part of the rows, wherever the engine works. Returns the
        results in order. `work` must be a function of a module, and depend only on its arguments."""
        ...

    def exchange(
        self,
        split: Callable[[Item, int], tuple[object, ...]],
        items: list[Item],
        merge: Callable[..., Result],
        *shared: object,
    ) -> tuple[list[Any], list[Result]]:
        """A shuffle. `split(item, n)` turns an item into a report and n pieces. `merge(number, *shared, *pieces)`
        combines the pieces with the same number, of all items. Returns the reports and the results of `merge`, each in
        order. Pieces go directly from worker to worker; of what is large, they are the names of files."""
        ...

    def top_k(self, queries: Array, images: Array, k: int, hidden: Array | None) -> tuple[Array, Array]:
        """Numbers and scores (float64) of the k images with the largest dot products for each query row, best first. Of
        equal scores the lower number comes first. `hidden` marks images without a score. There are k columns, or one
        for each image if these are fewer. Columns without an image have the number -1 and the score -inf."""
        ...


_default: list[Engine] = []


def default_engine() -> Engine:
    """The engine that is used if none is given: `Local`, one for the whole process."""
    if not _default:
        from clickbridge.engines.local import Local  # it imports numerics, which imports this module

        _default.append(Local())
    return _default[0]
