"""Models made of models: parts saved complete under `parts/0`, `parts/1`, …, and the wrappers of a spec.

A spec `wrapper:inner` builds the inner model first and hands it to the wrapper's class as its one part; for
a class that says `separate`, each summand of `a+b` is a part by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.models.base import Model, model_of


class Parted(Model):
    """A model that owns others. Subclasses fit them in `_fit` and add their own arrays in `_write` and `_read`."""

    parts: list[Model]

    def __init__(self, parts: Sequence[Model], **params: Any) -> None:
        super().__init__(**params)
        self.parts = list(parts)

    @property
    def searching(self) -> list[Model]:
        """The parts that can search: the others (the given order) re-rank what these find."""
        return [part for part in self.parts if type(part).rank is not Model.rank]

    def _report(self) -> dict[str, Any]:
        return {"parts": [part.report_ for part in self.parts]}

    def _write(self, writer: PartWriter) -> None:
        for number, part in enumerate(self.parts):
            part._write_all(writer.part(str(number)))

    @classmethod
    def from_artifact(cls, artifact: Artifact) -> Self:
        numbers = sorted(artifact.manifest["parts"], key=int)
        model = cls([model_of(artifact.part(number)) for number in numbers], **cls._saved_params(artifact))
        model._restore(artifact)
        model._read(artifact)
        return model


class Wrapper(Parted):
    """What stands before the colon of a spec. `name` is what a spec calls it."""

    separate: ClassVar[bool] = False
    """Whether each summand of the inner spec is a part by itself (`mart:a+b` has two)."""

    @property
    def spec(self) -> str:
        return f"{self.name}:" + "+".join(part.spec for part in self.parts)
