"""Specs: how a model is named on the command line.

    spec    = wrapper ":" spec | name { "+" name }
    wrapper = "mart" | "rrf" | "robust" | "online"

The colon takes all to its right. A few names are short for longer specs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clickbridge.errors import SettingError
from clickbridge.models.base import MODELS, WRAPPERS, Model, model_class
from clickbridge.models.sfunction import SFunction
from clickbridge.models.wrapper import Wrapper

RESERVED_WRAPPERS = ("mart", "rrf", "robust", "online")
SHORT_FOR = {"robust-bm25": "robust:bm25", "mart": "mart:bm25+pls+rmls", "online": "online:given"}


@dataclass(frozen=True)
class Spec:
    """Either `wrapper` around `inner`, or the sum of `names`."""

    names: tuple[str, ...] = ()
    wrapper: str | None = None
    inner: Spec | None = None

    def __str__(self) -> str:
        return f"{self.wrapper}:{self.inner}" if self.wrapper else "+".join(self.names)


def parse_spec(text: str) -> Spec:
    text = SHORT_FOR.get(text.strip(), text.strip())
    wrapper, colon, rest = text.partition(":")
    if colon:
        if wrapper not in RESERVED_WRAPPERS:
            raise SettingError(f"no wrapper {wrapper!r} in {text!r}; there are {', '.join(RESERVED_WRAPPERS)}")
        if wrapper not in WRAPPERS:
            raise SettingError(f"{wrapper}: is not in this version of clickbridge; see `clickbridge models`")
        return Spec(wrapper=wrapper, inner=parse_spec(rest))
    names = tuple(name.strip() for name in text.split("+"))
    for name in names:
        if name not in MODELS:
            raise SettingError(f"no model {name!r} in {text!r}; there are {', '.join(MODELS)}")
    if len(set(names)) != len(names):
        raise SettingError(f"{text!r} names a model twice: set its weight with --set weights= instead")
    return Spec(names)


def build_model(spec: str | Spec, settings: Mapping[str, Any] | None = None) -> Model:
    """An unfitted model. A setting reaches every component that has it; `bm25.k1` addresses one."""
    parsed = parse_spec(spec) if isinstance(spec, str) else spec
    components = build_components(parsed)
    for key, value in (settings or {}).items():
        owner, _, name = key.rpartition(".")
        taking = [c for c in components if name in c.setting_names() and owner in ("", c.name)]
        if not taking:
            raise SettingError(f"no part of {parsed} has the setting {key!r}")
        for component in taking:
            component.set_params(**{name: value})
    return components[-1]


def build_components(spec: Spec) -> list[Model]:
    """Every model that a spec is made of, unfitted; the last one holds the others."""
    if spec.wrapper is None:
        parts = [model_class(name)() for name in spec.names]
        if len(parts) == 1:
            return parts
        composite = "sum" if all(isinstance(part, SFunction) for part in parts) else "linear"
        return [*parts, model_class(composite)(parts)]  # type: ignore[call-arg]
    assert spec.inner is not None
    kind = model_class(spec.wrapper)
    assert issubclass(kind, Wrapper)
    if kind.separate and spec.inner.wrapper is None:
        parts = [model_class(name)() for name in spec.inner.names]
        return [*parts, kind(parts)]
    inner = build_components(spec.inner)
    return [*inner, kind(inner[-1:])]
