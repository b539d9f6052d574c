"""The models to compare: specs, which are fitted in processes of their own, and the caller's model objects, fitted or
not, which run in this process."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

from clickbridge.engines.base import Engine
from clickbridge.errors import SettingError
from clickbridge.evaluate.own import OwnModel, Score, Scorer, is_own, not_a_model
from clickbridge.evaluate.single import fitted_of, reranked
from clickbridge.evaluate.trial import Trial, peak_mb, query_milliseconds
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.models.fitted import Fitted
from clickbridge.models.model import Model
from clickbridge.models.specs import parse_spec
from clickbridge.types import ResultList

Entrant = str | Model | Fitted | Scorer | Score


def entrants(models: Sequence[Entrant] | Mapping[str, Entrant] | str, baseline: str) -> dict[str, Entrant]:
    """All models by name, each once, including the baseline. An unknown spec is refused before anything is learned."""
    if isinstance(models, str):
        models = models.split(",")
    if isinstance(models, Model | Fitted) or is_own(models):
        models = [cast(Entrant, models)]
    given = models.items() if isinstance(models, Mapping) else [(_name(model), model) for model in models]
    out: dict[str, Entrant] = {}
    named = [(name.strip(), model.strip() if isinstance(model, str) else model) for name, model in given]
    if baseline not in dict(named):
        out[baseline] = baseline
    for name, model in named:
        if name in out and not (isinstance(model, str) and out[name] == model):
            raise SettingError(f"two models are called {name}: give them names, such as {{'mine': model}}")
        out[name] = model
    seen: dict[str, str] = {}
    for spec in (model for model in out.values() if isinstance(model, str)):
        canonical = str(parse_spec(spec))
        if canonical in seen:
            raise SettingError(f"{seen[canonical]} and {spec} are the same model: name it once")
        seen[canonical] = spec
    if len(out) < 2:
        words = ", ".join(name for name, _ in named)
        raise SettingError(f"compare needs a model besides the baseline {baseline}; got {words}")
    return out


def _name(model: Any) -> str:
    """The name of a spec is the spec; that of a model is its spec with changed settings, such as pls(dim=300)."""
    if isinstance(model, str):
        return model
    if isinstance(model, Fitted):
        return model.spec
    if is_own(model):
        return OwnModel(model).spec
    if not isinstance(model, Model):
        raise not_a_model(model, "a model is a spec, a model, or an object or function that scores documents")
    changed = _changed(model)
    return f"{model.spec}({', '.join(f'{name}={value}' for name, value in changed.items())})" if changed else model.spec


def _changed(model: Model) -> dict[str, Any]:
    """The settings of a model and its parts that differ from the defaults."""
    own = {n: getattr(model, n) for n, s in model.declared().items() if getattr(model, n) != s.default}
    for part in getattr(model, "parts", ()):
        own |= {f"{part.name}.{name}": value for name, value in _changed(part).items()}
    return own


def own_trial(
    name: str,
    model: Model | Fitted | Scorer | Score,
    graph: ClickGraph,
    lists: Sequence[ResultList],
    engine: Engine | None = None,
) -> Trial:
    """Runs a model object of the caller. An unfitted one is copied before it is fitted."""
    start = time.perf_counter()
    if isinstance(model, Model) and "fitted_" not in model.__dict__:
        fitted = fitted_of(copy.deepcopy(model).fit(graph, engine=engine))
        seconds: object = time.perf_counter() - start
    else:
        fitted = fitted_of(model)
        seconds = fitted.report.get("seconds")
    ranked, scores = reranked(fitted, lists)
    settings = _changed(model) if isinstance(model, Model) else {}
    took = seconds if isinstance(seconds, float) else 0.0
    return Trial(
        name, settings, took, query_milliseconds(fitted, lists), peak_mb(), fitted.report, ranked,
        scores, False,
    )  # fmt: skip
