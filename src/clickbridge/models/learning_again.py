"""Updates of models that cannot learn single clicks: they learn again, with the choices of the first fit."""

from __future__ import annotations

from dataclasses import replace

from clickbridge.engines.base import Engine
from clickbridge.models.change import Change
from clickbridge.models.display import Display
from clickbridge.models.fitted import Fitted
from clickbridge.models.kept_log import KeptLog
from clickbridge.models.registry import model_class
from clickbridge.models.study import Study


def learned_again(fitted: Fitted, log: KeptLog, change: Change, engine: Engine) -> Fitted:
    """Fits a model again on the log that it kept and the new one."""
    log, shown = log.changed(change), fitted.display.changed(change)
    graph = log.graph
    after = model_class(fitted.model).from_fitted(fitted).learned(Study(graph, engine), fitted.choices)
    # The log that is kept has no users, so the counts of people per query stay those of the first fit.
    display = Display.of(graph).with_fields(graph, list(shown.fields))
    display = replace(display, queries=shown.queries, people=shown.people, knows_people=shown.knows_people)
    return after._with(display=display, log=log)
