"""The few operations that carry learning, and the two limits under which they run.

A model is handed an engine and never chooses one. `threads` and `memory` mean the same for every model: how many
threads may work at once, and how many bytes may be used for working arrays. Results do not depend on either: work is
cut into blocks by size, and blocks are added up in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """`work` on every item, several at once; results in the order of the items."""
        ...

    def times(self, a: sparse.csr_array, block: Array) -> Array:
        """Sparse rows times a dense block."""
        ...

    def gram(self, block: Array) -> Array:
        """block' block, in float64."""
        ...

    def orthonormal(self, block: Array) -> tuple[Array, Array]:
        """(q, r) with q r = block and q'q = 1; dependent columns are dropped. May overwrite the block."""
        ...

    def top_k(self, queries: Array, images: Array, k: int, hidden: Array | None) -> tuple[Array, Array]:
        """Numbers and scores of the k images with the largest dot products for each query row, best first, ties to
        the lower number; `hidden` marks images that have no score (-inf)."""
        ...
