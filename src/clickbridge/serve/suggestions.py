"""Queries that may be shown to others: those that enough different people typed and that do not look personal.

People are counted in the log of the model and in the store. The larger count is used, since a person may be in both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from functools import lru_cache
from heapq import nsmallest
from typing import Any

from clickbridge.log.clean import normalise_query
from clickbridge.log.personal import looks_personal
from clickbridge.models.fitted import Fitted
from clickbridge.types import OPAQUE

TAUGHT_BY = " → "
"""Separates the query and the document that taught a pair of features."""


class Suggestions:
    """The queries of one model that may be shown, in alphabetical order."""

    def __init__(self, fitted: Fitted | None, stored: Mapping[str, int], min_users: int) -> None:
        if fitted is None:
            self._set({})
            return
        known = dict(zip(fitted.display.queries, fitted.display.people.tolist(), strict=True))
        clicks = dict(zip(fitted.queries.keys, fitted.queries.clicks.tolist(), strict=True))
        candidates = {*known, *stored, *(clicks if min_users <= 1 else ())}
        weights = {
            key: (max(known.get(key, 0), stored.get(key, 0)), clicks.get(key, 0.0))
            for key in candidates
            if not key.startswith(OPAQUE)
            and max(known.get(key, 1), stored.get(key, 1)) >= min_users
            and not looks_personal(key)
        }
        self._set(weights)

    def _set(self, weights: dict[str, tuple[int, float]]) -> None:
        self._keys, self._weights = sorted(weights), weights
        self.complete = lru_cache(1_000)(self._complete)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, query: str) -> bool:
        return normalise_query(query) in self._weights

    def _complete(self, typed: str, k: int) -> list[str]:
        """Queries that begin with the typed text. Those of the most people come first, then those with the most
        clicks."""
        # A space at the end means that the word is complete.
        prefix = normalise_query(typed) + (" " if typed[-1:].isspace() and typed.strip() else "")
        start = bisect_left(self._keys, prefix)
        end = bisect_left(self._keys, prefix + "\U0010ffff")
        weights = self._weights
        return nsmallest(k, self._keys[start:end], key=lambda key: (-weights[key][0], -weights[key][1], key))

    def similar(self, fitted: Fitted, query: str, k: int) -> list[tuple[str, float]]:
        """Similar queries that may be shown."""
        depth, most = 4 * k, max(len(fitted.queries), 1)
        while True:
            near = fitted.similar_queries(query, min(depth, most))
            shown = [(text, value) for text, value in near if text in self][:k]
            if len(shown) == k or len(near) < depth or depth >= most:
                return shown
            depth *= 8

    def hidden(self, explanation: dict[str, Any]) -> dict[str, Any]:
        """The explanation without queries that may not be shown."""
        for pair in explanation["pairs"]:
            pair["taught_by"] = [t for t in pair["taught_by"] if t.split(TAUGHT_BY)[0] in self]
        return explanation


NO_SUGGESTIONS = Suggestions(None, {}, 0)
