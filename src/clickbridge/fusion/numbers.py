"""Features for trees from document fields that are numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from clickbridge.fusion.fixed_arrays import Array, Value, check, frozen
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.io.values import stored
from clickbridge.models.candidates import Candidates

NUMERIC_SHARE = 0.9
"""A field is treated as a number if at least this share of its values are numbers."""


@stored
@dataclass(frozen=True, eq=False, repr=False)
class NumberSignals(Value):
    """Fields that are numbers, such as a year or a price, with their values. The last row is NaN, for unknown
    documents."""

    names: tuple[str, ...]
    values: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", frozen(self.values, np.float64))
        check(self.values.ndim == 2 and self.values.shape[1] == len(self.names), "numbers")

    @classmethod
    def of(cls, graph: ClickGraph) -> Self:
        found = {}
        for name in graph.field_names:
            texts = graph.field(name)
            numbers, filled = np.array([*map(_number, texts), np.nan]), [bool(text.strip()) for text in texts]
            if any(filled) and np.isfinite(numbers[:-1][filled]).mean() >= NUMERIC_SHARE:
                found[name] = numbers
        values = np.stack(list(found.values()), axis=1) if found else np.empty((graph.n_docs + 1, 0))
        return cls(tuple(found), values)

    @property
    def plain_names(self) -> list[str]:
        return [f"number {name}" for name in self.names]

    def plain(self, lists: Candidates) -> Array:
        return self.values[lists.items].T


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return np.nan
    return value if np.isfinite(value) else np.nan
