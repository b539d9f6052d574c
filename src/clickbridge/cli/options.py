"""Options that several verbs share, as records: a verb takes the record, the command line shows its options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import Field, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def with_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Puts the options of a record in the place of each parameter of a verb that is one."""
    hints = get_type_hints(verb, include_extras=True)
    records = {name: kind for name, kind in hints.items() if isinstance(kind, type) and is_dataclass(kind)}
    places: list[inspect.Parameter] = []
    for place in inspect.signature(verb).parameters.values():
        if place.name in records:
            places += _options(records[place.name])
        else:
            places.append(place.replace(annotation=hints[place.name], kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(verb)
    def called(**given: Any) -> None:
        taken = {
            name: kind(**{option.name: given.pop(option.name) for option in fields(kind) if option.name in given})
            for name, kind in records.items()
        }
        verb(**taken, **given)

    called.__signature__ = inspect.Signature(places)  # type: ignore[attr-defined]
    called.__annotations__ = {place.name: place.annotation for place in places}
    return called


def _options(record: type[Any]) -> Iterator[inspect.Parameter]:
    kinds = get_type_hints(record, include_extras=True)
    for option in fields(record):
        kind = inspect.Parameter.KEYWORD_ONLY
        yield inspect.Parameter(option.name, kind, default=_default(option), annotation=kinds[option.name])


def _default(option: Field[Any]) -> Any:
    return option.default_factory() if callable(option.default_factory) else option.default
