"""Takes the events of a store into a MODEL: `clickbridge update MODEL --from STORE`, and before events are dropped.

The model remembers how far it has read, so nothing is taken in twice. Events that were undone are left out; what a
model other than `online:` has learned already stays learned.
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
    """What a MODEL took in: events up to which number, how many pages of them."""

    spec: str
    events: int
    pages: int


def fold(path: Path, store: Store, engine: Engine | None = None) -> Folded:
    """Takes in everything the store has beyond what the MODEL knows; the folder is replaced in one step."""
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
    """The model after some pages, marked as having read up to number `last`."""
    records = [page.impression for page in pages if page.query or page.query_id]
    if records:
        model.update(records, engine=engine)
    model.fitted_ = model.fitted._with(applied=marked(model.fitted.applied, store.id, last))
    return model
