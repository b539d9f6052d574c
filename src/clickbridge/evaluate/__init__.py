"""Measures and compares models. The package itself can be called: `clickbridge.evaluate(model, lists)` measures one."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clickbridge.evaluate.single import Evaluation
    from clickbridge.frames import Frame
    from clickbridge.models.fitted import Fitted
    from clickbridge.models.model import Model
    from clickbridge.types import ResultList


class _Package(ModuleType):
    """The function and the package have the same name. This class makes the package callable."""

    def __call__(
        self,
        model: Model | Fitted,
        lists: Sequence[ResultList] | str | Path | Frame,
        measures: str = "nDCG@1,nDCG@3,nDCG@5,AP",
    ) -> Evaluation:
        """Measures a fitted model on judged lists: see `clickbridge.evaluate.single.evaluate`."""
        from clickbridge.evaluate.single import evaluate

        return evaluate(model, lists, measures)


sys.modules[__name__].__class__ = _Package
