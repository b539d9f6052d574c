"""An update of a model that has no step for one more click: it learns again, with what it chose at first."""

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
    """What a model learns from the log that it kept and from what is new."""
    log, shown = log.changed(change), fitted.display.changed(change)
    graph = log.graph
    after = model_class(fitted.model).from_fitted(fitted).learned(Study(graph, engine), fitted.choices)
    # Who typed a query is not in the log that is kept; the counts of the first fit stay.
    display = Display.of(graph).with_fields(graph, list(shown.fields))
    display = replace(display, queries=shown.queries, people=shown.people, knows_people=shown.knows_people)
    return after._with(display=display, log=log)
