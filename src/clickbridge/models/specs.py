"""Specs: how a model is named on the command line.

    spec    = wrapper ":" spec | name { "+" name }
    wrapper = "mart" | "rrf" | "robust" | "online"

A wrapper applies to everything on the right of its colon. A few names are short for longer specs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clickbridge.errors import SettingError
from clickbridge.models.composite import Composite, Wrapper
from clickbridge.models.model import Model
from clickbridge.models.registry import MODELS, SHORT_FOR, SUMS, WRAPPERS, model_class
from clickbridge.settings import addressed
from clickbridge.wording import did_you_mean


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
        if wrapper not in WRAPPERS:
            raise SettingError(f"no wrapper {wrapper!r} in {text!r}; there are {', '.join(WRAPPERS)}")
        return Spec(wrapper=wrapper, inner=parse_spec(rest))
    names = tuple(name.strip() for name in text.split("+"))
    for name in names:
        if name not in MODELS:
            wrappers = ", ".join(f"{wrapper}:SPEC" for wrapper in WRAPPERS)
            where = f" in {text!r}" if name != text else ""
            near = did_you_mean(name, MODELS)
            raise SettingError(f"no model {name!r}{where}{near}; there are {', '.join(MODELS)}, and {wrappers}")
    if len(set(names)) != len(names):
        raise SettingError(f"{text!r} names a model twice: set its weight with --set weights= instead")
    return Spec(names)


def added(one: Model, two: Model) -> Model:
    """one + two. Sums whose weights are not set are flattened: a + b + c is one sum of three."""
    return _sum_of([part for model in (one, two) for part in _summands(model)])


def _summands(model: Model) -> list[Model]:
    open_sum = model.name in SUMS and isinstance(model, Composite) and model.weights == "auto"
    return list(model.parts) if open_sum else [model]


def _sum_of(parts: Sequence[Model]) -> Model:
    """A sum of maps if all parts are S-functions, and otherwise a sum of list scores."""
    kind = model_class("sum" if all("maps" in part.abilities() for part in parts) else "linear")
    assert issubclass(kind, Composite)
    return kind(parts)


def build_model(spec: str | Spec, settings: Mapping[str, object] | None = None, **more: object) -> Model:
    """Makes an unfitted model from a spec such as "bm25+pls" or "robust:bm25".

    Parameters
    ----------
    spec : str
        Names of models joined by `+`, or `wrapper:spec`; `clickbridge models` lists them.
    settings : mapping, optional
        Settings by name. A setting goes to every part that has it; `bm25.k1` is for bm25 only.
    **more
        Settings as keyword arguments.

    Returns
    -------
    Model
        Not fitted yet.

    Examples
    --------
    >>> from clickbridge import build_model
    >>> build_model("pls", dim=10)
    PLS(dim=10)
    >>> build_model("bm25+pls", {"bm25.k1": 2, "dim": 10})
    Sum(parts=[BM25(k1=2.0), PLS(dim=10)])
    """
    parsed = parse_spec(spec) if isinstance(spec, str) else spec
    components = build_components(parsed)
    for key, value in {**(settings or {}), **more}.items():
        taking = [(c, name) for c in components if (name := addressed(key, c.name, c.setting_names()))]
        if not taking:
            known = list(dict.fromkeys(name for c in components for name in c.setting_names()))
            none = f"{parsed} has no setting" if len(components) == 1 else f"no part of {parsed} has the setting"
            raise SettingError(f"{none} {key!r}{did_you_mean(key, known)}; there are {', '.join(known)}")
        for component, name in taking:
            component.set_params(**{name: value})
    return components[-1]


def build_components(spec: Spec) -> list[Model]:
    """All models in a spec, unfitted. The last one contains the others."""
    if spec.wrapper is None:
        parts = [model_class(name)() for name in spec.names]
        return parts if len(parts) == 1 else [*parts, _sum_of(parts)]
    assert spec.inner is not None
    kind = model_class(spec.wrapper)
    assert issubclass(kind, Wrapper)
    if kind.separate and spec.inner.wrapper is None:
        parts = [model_class(name)() for name in spec.inner.names]
        return [*parts, kind(parts)]
    inner = build_components(spec.inner)
    return [*inner, kind(inner[-1:])]
