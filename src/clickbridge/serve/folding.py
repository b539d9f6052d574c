"""Adds the events of a store to a MODEL: `clickbridge update MODEL --from STORE`, and before old events are deleted.

The model stores how far it has read, so no event is added twice. Events that were undone are left out. But if a model
other than `online:` has already learned an event, undoing it has no effect on the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from clickbridge.engines.base import Engine
from clickbridge.io.artifact import kept_for_writing
from clickbridge.models.model import Model
from clickbridge.models.model_folder import KIND, load, save
from clickbridge.online.online import Online
from clickbridge.serve.events import Event
from clickbridge.serve.served import Served, marked, taken_in
from clickbridge.serve.store import Store


@dataclass(frozen=True)
class Folded:
    """What was added to a MODEL: the number of the last event, and the number of pages."""

    spec: str
    events: int
    pages: int


def fold(path: Path, store: Store, engine: Engine | None = None) -> Folded:
    """Adds all events that the MODEL does not have yet. The folder is replaced in one step."""
    with kept_for_writing(path, KIND):
        if load(path).name == Online.name:
            served = Served(path.name, path, store)
            before = served.seq
            served.catch_up()
            if served.seq > before:
                save(served.folded_value(), path)
            return Folded(served.spec, served.seq, served.seq - before)
        model, last = load(path), store.last()
        before = taken_in(model.fitted.applied, store.id)
        pages = list(store.pages_after(before, last))
        if last > before:
            save(learned(model, pages, store, last, engine).fitted, path)
        return Folded(model.spec, last, len(pages))


def learned(model: Model, pages: list[Event], store: Store, last: int, engine: Engine | None = None) -> Model:
    """The model after learning some pages, marked as having read up to number `last`."""
    records = [page.impression for page in pages if page.query or page.query_id]
    if records:
        model.update(records, engine=engine)
    model.fitted_ = model.fitted._with(applied=marked(model.fitted.applied, store.id, last))
    return model
