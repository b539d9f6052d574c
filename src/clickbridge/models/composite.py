"""Models that consist of other models: sums, and the wrappers of a spec.

A spec `wrapper:inner` builds the inner model first and hands it to the wrapper's class as its only part. If the
class sets `separate`, each summand of `a+b` is a part of its own.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, cast

from clickbridge.engines.base import Engine
from clickbridge.graph.notes import said_once
from clickbridge.io.values import stored
from clickbridge.models.change import Change
from clickbridge.models.fitted import Choices, Fitted
from clickbridge.models.model import Model
from clickbridge.models.registry import model_class
from clickbridge.models.rmls_plan import Plan
from clickbridge.models.study import Study

COSTS = tuple(field.name for field in fields(Plan))


@stored
@dataclass(frozen=True, kw_only=True)
class PartsChoices(Choices):
    """What each part chose."""

    parts: tuple[Any, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedComposite(Fitted):
    """A fitted model that holds others, over one catalogue."""

    parts: tuple[Any, ...]

    @property
    def searching(self) -> list[Any]:
        """The parts that can search. The others, such as the given order, re-rank what these find."""
        return [part for part in self.parts if "search" in part.abilities]

    @property
    def text_fields(self) -> frozenset[str]:
        return frozenset[str]().union(*(part.text_fields for part in self.parts))

    def warm(self) -> None:
        for part in self.parts:
            part.warm()
        super().warm()

    def updated_parts(self, change: Change, engine: Engine) -> tuple[Any, ...]:
        return tuple(part.updated(change, engine) for part in self.parts)

    def describe(self) -> dict[str, Any]:
        return {"parts": [part.report for part in self.parts]}


class Composite(Model):
    """A model that consists of other models. These stay unfitted; their fitted values are in `fitted.parts`."""

    _more_help = "Parameters\n----------\nparts : sequence of Model\n    The models inside, such as `[BM25(), PLS()]`."

    def __init__(self, parts: Sequence[Model], **params: object) -> None:
        super().__init__(**params)
        self.parts = parts

    @classmethod
    def _more_parameters(cls) -> list[inspect.Parameter]:
        return [inspect.Parameter("parts", inspect.Parameter.POSITIONAL_OR_KEYWORD)]

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """The settings by name, as in scikit-learn.

        Parameters
        ----------
        deep : bool
            Also give those of the parts, such as `bm25__k1`.

        Returns
        -------
        dict
            The value of each setting, and `parts`.
        """
        nested = {f"{part.name}__{name}": value for part in self.parts for name, value in part.get_params().items()}
        return {"parts": self.parts, **super().get_params(deep), **(nested if deep else {})}

    def set_params(self, **params: object) -> Self:
        own = {name: value for name, value in params.items() if name in self.declared()}
        if "parts" in params:
            self.parts = cast(Sequence[Model], params["parts"])
        for key, value in params.items():
            owner, nested, name = key.partition("__")
            taking = [part for part in self.parts if part.name == owner] if nested else []
            for part in taking:
                part.set_params(**{name: value})
            if not taking and key not in own and key != "parts":
                own[key] = value
        super().set_params(**own)
        return self

    @property
    def spec(self) -> str:
        return "+".join(part.spec for part in self.parts)

    @property
    def least_users(self) -> int:
        return max(super().least_users, *(part.least_users for part in self.parts))

    def in_language_of(self, study: Study) -> Self:
        parts = [part.in_language_of(study) for part in self.parts]
        out = super().in_language_of(study)
        if out is self and all(new is old for new, old in zip(parts, self.parts, strict=True)):
            return self
        out = copy.copy(out)
        out.parts = parts
        return out

    @property
    def has_plan(self) -> bool:
        return any(part.has_plan for part in self.parts)

    def plans_on(self, study: Study) -> list[dict[str, object]]:
        """The plans of the parts that have some, with the name of the part; the others are named without numbers."""
        if not self.has_plan:
            return super().plans_on(study)
        out: list[dict[str, object]] = []
        for part in self.parts:
            own = part.plans_on(study) if part.has_plan else [{"name": "little" if part.light else "not known"}]
            out += [{"part": part.spec, **dict.fromkeys(COSTS), **plan} for plan in own]
        return out

    def choose_parts(self, study: Study) -> tuple[Choices, ...]:
        """What the parts choose on held-back clicks."""
        return tuple(choose_once(part, study) for part in self.parts)

    def learn_parts(self, study: Study, choices: Sequence[Choices]) -> tuple[Fitted, ...]:
        """The parts, fitted with what they chose."""
        return tuple(learn_once(part, study, own) for part, own in zip(self.parts, choices, strict=True))

    def composed(
        self, study: Study, choices: Choices, parts: tuple[Fitted, ...], notes: Sequence[str] = (), **more: Any
    ) -> Any:
        """The fitted value over these parts: it knows their queries, and says what they say."""
        queries = parts[0].queries.joined([part.queries for part in parts[1:]])
        return self.fitted_type(
            model=self.name, settings=self.settings, catalogue=study.catalogue, choices=choices, queries=queries,
            notes=joined_notes(parts, *notes), parts=parts, **more,
        )  # type: ignore[call-arg]  # fmt: skip

    @classmethod
    def from_fitted(cls, fitted: Fitted) -> Self:
        assert isinstance(fitted, FittedComposite)
        parts = [model_class(part.model).from_fitted(part) for part in fitted.parts]
        model = cls(parts, **{name: getattr(fitted.settings, name) for name in cls.declared()})
        model.fitted_ = fitted
        return model


class Wrapper(Composite):
    """A model around another one: in a spec, what comes before the colon. `name` is its name there."""

    separate: ClassVar[bool] = False
    """Whether each summand of the inner spec is a part by itself (`mart:a+b` has two)."""

    def __init__(self, parts: Model | Sequence[Model], **params: object) -> None:
        """A model is taken as a list of one; a sum without weights of its own as its summands, where each is a part."""
        super().__init__(self._parts_of(parts) if isinstance(parts, Model) else parts, **params)

    @classmethod
    def _parts_of(cls, model: Model) -> Sequence[Model]:
        if cls.separate and isinstance(model, Composite) and getattr(model, "weights", "") == "auto":
            return model.parts
        return [model]

    @property
    def spec(self) -> str:
        return f"{self.name}:{super().spec}"


class FittedWrapper(FittedComposite):
    @property
    def spec(self) -> str:
        return f"{self.model}:" + "+".join(part.spec for part in self.parts)


def identity(model: Model) -> tuple[str, str]:
    """A key that is equal for two models that would learn the same."""
    return model.spec, repr(model.get_params())


def choose_once(model: Model, study: Study) -> Choices:
    """What a model chooses. If several models are tried on a study, each is asked only once."""
    return study.shared(("chosen", identity(model)), lambda: model.choose(study))


def learn_once(model: Model, study: Study, choices: Choices) -> Fitted:
    """What a model learns with these choices, also computed only once. The choices are kept too, since the key uses
    their `id`."""
    key = ("learned", identity(model), id(choices))
    return study.shared(key, lambda: (choices, model.learned(study, choices)))[1]


def joined_notes(parts: Sequence[Fitted], *more: str) -> tuple[str, ...]:
    """The notes of all parts, each line once, followed by `more`."""
    return said_once([*(note for part in parts for note in part.notes), *more])
