"""Models that only count clicks: nothing else is learned, and an update adds the new ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from scipy import sparse

from clickbridge.engines.base import Engine
from clickbridge.models.change import Change
from clickbridge.models.fitted import Choices, Fitted
from clickbridge.models.latent_features import check_updatable, updated_responses
from clickbridge.models.model import Model
from clickbridge.models.study import Study
from clickbridge.settings import Counting


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedClickMemory(Fitted):
    """`responses` has a row for each known query and a column for each document."""

    settings: Counting
    responses: sparse.csr_array

    def updated(self, change: Change, engine: Engine) -> Self:
        check_updatable(self.model, self.settings, change)
        responses, queries, _ = updated_responses(self.responses, self.queries, change, self.settings)
        return replace(self, catalogue=change.after, queries=queries, responses=responses)

    def describe(self) -> dict[str, Any]:
        return {"views": ["click"]}


class ClickMemory(Model):
    """Base of models that rank by counted clicks. Subclasses name their fitted class."""

    light = True
    Settings: ClassVar[type[Counting]] = Counting

    def learn(self, study: Study, choices: Choices) -> Fitted:
        s: Counting = self.settings
        known, kind = study.clicked(s), self.fitted_type
        assert issubclass(kind, FittedClickMemory)
        return kind(
            model=self.name, settings=s, catalogue=study.catalogue, choices=choices, queries=known.queries,
            notes=known.notes, responses=known.clicked.matrix,
        )  # fmt: skip
