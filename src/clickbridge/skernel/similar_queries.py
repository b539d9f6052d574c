"""Similar queries by their common clicks, for any model that keeps its clicks (Wu et al. 2011, Table 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import sparse

from clickbridge.errors import NotSupported
from clickbridge.models.catalogue import KnownQueries
from clickbridge.models.fitted import Fitted
from clickbridge.settings import Settings
from clickbridge.skernel.query_kernel import QueryFeatures, QueryKernel

WEIGHTS = {"click": 0.8, "word": 0.1, "char": 0.1}


@runtime_checkable
class KeepsClicks(Protocol):
    """A fitted model that keeps its clicks: `responses` has a row for each known query and a column for each
    document."""

    @property
    def settings(self) -> Settings: ...

    @property
    def queries(self) -> KnownQueries: ...

    @property
    def responses(self) -> sparse.csr_array: ...


def keeper_of(fitted: Fitted) -> KeepsClicks:
    """The model itself, or the first of its parts that keeps clicks."""
    parts: Sequence[Any] = getattr(fitted, "parts", ())
    for found in (fitted, *parts):
        if isinstance(found, KeepsClicks):
            return found
    raise NotSupported(f"{fitted.spec} keeps no clicks: use --by latent, or a model like pls, walk or robust-bm25")


def similar_by_clicks(
    fitted: Fitted, query: str, k: int = 3, min_clicks: int = 1, click_kernel: str = "pearson"
) -> list[tuple[str, float]]:
    """The known queries that are most similar to this one by k_Q, mainly by clicks. The query itself is left out."""
    keeper = keeper_of(fitted)
    queries, language = keeper.queries, getattr(keeper.settings, "language", "english")
    kernel = QueryKernel(QueryFeatures.of(queries.keys, keeper.responses, language), WEIGHTS, click_kernel)
    key = queries.key_of(query)
    asked = kernel.asked(key, queries.number(key))
    total = np.asarray(keeper.responses.sum(axis=1)).ravel()
    near, values = kernel.neighbours(asked, k + 1, queries.may_be_shown() & (total >= min_clicks))
    found = zip(near.tolist(), values.tolist(), strict=True)
    return queries.nearest(((i, value) for i, value in found if i != asked.number), k)
