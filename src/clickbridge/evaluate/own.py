"""Models from outside clickbridge: anything that scores documents for a query can be measured and compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from clickbridge.errors import InputError, SettingError, shown
from clickbridge.models.fitted import Array, Fitted, order
from clickbridge.models.model import Model
from clickbridge.types import Ranking, ResultList


@runtime_checkable
class Scorer(Protocol):
    """An object that scores documents for a query. Higher is better. It must be ready to use: it is not fitted here."""

    def score(self, query: str, doc_ids: Sequence[str], /) -> Sequence[float] | Array:
        """One score for each document, in the same order; -inf for a document without a score."""
        ...


Score = Callable[[str, Sequence[str]], Sequence[float] | Array]
"""The same, as a plain function."""


class OwnModel:
    """Gives a user's scorer or function what evaluation needs: a name, and re-ranked lists."""

    def __init__(self, model: Scorer | Score) -> None:
        self.report: dict[str, object] = {}
        self.spec = _name(model)
        self._score: Score = model.score if isinstance(model, Scorer) else model

    def rerank_lists(self, lists: Sequence[ResultList]) -> list[Ranking]:
        """Sorts each list by score, highest first. Equal scores keep their order; documents without one come last."""
        return [order(result.results, self._scores(result)) for result in lists]

    def _scores(self, result: ResultList) -> Array:
        found = self._score(result.query, list(result.results))
        try:
            scores = np.array(found, dtype=np.float64)
        except (TypeError, ValueError):
            scores = np.empty(0)
        if scores.shape != (len(result.results),):
            wanted = f"one number for each of the {len(result.results)} documents for {shown(result.query)}"
            raise InputError(f"{self.spec} must give {wanted}; got {shown(found)}")
        scores[np.isnan(scores)] = -np.inf
        return scores


def is_own(model: Any) -> bool:
    """Whether something is a user's own model: an object with `score`, or a function. A class is not."""
    inside = isinstance(model, str | type | Model | Fitted)
    return not inside and (isinstance(model, Scorer) or callable(model))


def not_a_model(model: Any, needs: str) -> SettingError:
    """The error for something that cannot be measured."""
    if isinstance(model, type):
        return SettingError(f"{needs}; got the class {model.__name__}: make one of it, as {model.__name__}()")
    return SettingError(f"{needs}; got {type(model).__name__}")


def _name(model: Scorer | Score) -> str:
    """Its `name`; else what its function or class is called."""
    given = getattr(model, "name", None)
    return given if isinstance(given, str) and given else getattr(model, "__name__", type(model).__name__)
