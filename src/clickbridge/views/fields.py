"""Documents with several fields as one sparse pattern with a count for each field.

The pattern (document, term) is shared; `values[p, f]` is how often the term occurs in field f. Any weighting of the
fields is then one small matrix-vector product, which makes learning the weights cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from clickbridge.errors import SettingError
from clickbridge.views.word import URL_FIELD, Vocabulary, widen

Array = np.ndarray[Any, Any]
HEADINGS = ("title", "name", "heading")
HEADING_WEIGHT = 3.0
EQUAL = "equal"


class Counter(Protocol):
    """Counts terms of texts over a vocabulary."""

    vocabulary: Vocabulary

    def columns(self, text: str, url: bool = False) -> list[int]: ...

    def count(self, texts: Iterable[str], url: bool = False) -> sparse.csr_array: ...


@dataclass(frozen=True)
class FieldCounts:
    names: list[str]
    pattern: sparse.csr_array
    values: Array
    lengths: Array

    @property
    def n_docs(self) -> int:
        return int(self.pattern.shape[0])

    @property
    def rows(self) -> Array:
        """The document of each entry of the pattern."""
        return np.repeat(np.arange(self.n_docs), np.diff(self.pattern.indptr))

    def document_frequency(self) -> Array:
        return np.bincount(self.pattern.indices, minlength=self.pattern.shape[1]).astype(np.float64)

    def with_values(self, values: Array) -> sparse.csr_array:
        """A matrix with this pattern and other values."""
        parts = (values.astype(np.float32), self.pattern.indices, self.pattern.indptr)
        out = sparse.csr_array(parts, shape=self.pattern.shape)
        out.has_sorted_indices = True
        return out


def count_fields(counter: Counter, texts: Mapping[str, Sequence[str]], n_docs: int) -> FieldCounts:
    """Counts the terms of every field. The vocabulary grows, unless the counter's is frozen."""
    matrices = [counter.count(column, url=name == URL_FIELD) for name, column in texts.items()]
    width = len(counter.vocabulary)
    matrices = [widen(matrix, width) for matrix in matrices]
    lengths = np.zeros((n_docs, len(matrices)), dtype=np.float32)
    pattern = sparse.csr_array((n_docs, width), dtype=np.float32)
    for f, matrix in enumerate(matrices):
        lengths[:, f] = matrix.sum(axis=1)
        pattern = pattern + matrix
    pattern = sparse.csr_array(pattern)
    pattern.sort_indices()
    values = np.zeros((pattern.nnz, len(matrices)), dtype=np.float32)
    row_keys = np.repeat(np.arange(n_docs, dtype=np.int64), np.diff(pattern.indptr)) * width
    keys = row_keys + pattern.indices
    for f, matrix in enumerate(matrices):
        own = np.repeat(np.arange(n_docs, dtype=np.int64), np.diff(matrix.indptr)) * width + matrix.indices
        values[np.searchsorted(keys, own), f] = matrix.data
    return FieldCounts(list(texts), pattern, values, lengths)


def parse_fields(text: str, available: Sequence[str]) -> dict[str, float]:
    """Parses weights such as `title:3,overview`. A field without a number has weight 1. `equal` gives every field 1."""
    if text == EQUAL and EQUAL not in available:
        return dict.fromkeys(available, 1.0)
    weights: dict[str, float] = {}
    for item in text.split(","):
        name, _, number = (part.strip() for part in item.partition(":"))
        name = name if name in available else name.lower()  # as the names of fields are
        if name not in available:
            raise SettingError(f"no field {name!r} in the documents; they have {', '.join(available) or 'none'}")
        try:
            weights[name] = float(number or 1)
        except ValueError:
            weights[name] = -1.0
        if not 0 <= weights[name] < np.inf:
            raise SettingError(f"a field weight is a number, at least 0, such as title:3; got {item!r}")
    if not any(weights.values()):
        raise SettingError(f"at least one field needs a weight above 0; got {text!r}")
    return weights


def default_weights(names: Sequence[str]) -> Array:
    """The default weights: 3 for titles, names and headings, 1 for other fields."""
    return np.array([HEADING_WEIGHT if name in HEADINGS else 1.0 for name in names])
