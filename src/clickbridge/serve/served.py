"""One model of the service: its name, its folder, the version in use, and how far it has learned the store."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from clickbridge.errors import ArtifactError, InputError
from clickbridge.models.fitted import Fitted
from clickbridge.models.model import Model
from clickbridge.models.model_folder import load
from clickbridge.online.entry import PAGE, UNDO, Entry
from clickbridge.online.online import Online
from clickbridge.serve.events import Event
from clickbridge.serve.store import Store

MARK = "store:"
"""Prefix of the entry in a model's `applied` that says how far it has learned a store: `store:ID:SEQ`."""
REMEMBERED = 100_000
"""The number of events whose number in the learner is kept, so that they can be undone."""


class Served:
    """A loaded model. A newer version of the model is another `Served`."""

    def __init__(self, name: str, path: Path, store: Store) -> None:
        self.name, self.path, self.store = name, path, store
        self.version = version_of(path)
        self.model: Model = load(path)
        self.seq = self.folded = taken_in(self.model.fitted.applied, store.id)
        """The last event that the model has learned, and the last one that is saved in its folder."""
        self.learns = isinstance(self.model, Online)
        if isinstance(self.model, Online) and self.model.fitted.settings.per_user > 0:
            store.share_secret(self.model.fitted.secret)
        self.passed_over = 0
        """The number of events that this model cannot learn. All workers skip the same ones."""
        self._numbers: dict[int, int] = {}

    @property
    def fitted(self) -> Fitted:
        """The fitted value in use. A request keeps the same one until it ends."""
        return self.model.fitted

    @property
    def spec(self) -> str:
        return self.model.spec

    # --- events: one thread at a time ------------------------------------------------------------

    def learn(self, events: Sequence[Event]) -> None:
        """Learns the next events, in their order."""
        if not events:
            return
        if isinstance(self.model, Online):
            self._learn(self.model, events)
        self.seq = events[-1].seq

    def catch_up(self) -> int:
        """Learns all further events of the store. Returns the number of the last one."""
        if not self.learns:
            self.seq = max(self.store.last(), self.seq)
            return self.seq
        while batch := self.store.after(self.seq):
            if batch[0].seq > self.seq + 1 and self.seq:
                gone = f"events {self.seq + 1} to {batch[0].seq - 1} are no longer in the store"
                raise ArtifactError(f"{self.path} is too old: {gone}; restore a newer MODEL, or fit it again")
            self.learn(batch)
        return self.seq

    def _learn(self, model: Online, events: Sequence[Event]) -> None:
        learner = model.learner
        pending: list[Entry] = []
        for event in events:
            if event.undoes is not None:
                if pending:
                    learner.take(pending)
                    pending = []
                self._undo(model, event.undoes)
                continue
            try:
                entries = self._entries(model, event)
            except InputError:
                self.passed_over += 1
                continue
            if model.fitted.settings.kappa != 1.0:  # to undo an event, its time must be known
                self._numbers[event.seq] = learner.events + len(pending) + 1
            pending += entries
        if pending:
            learner.take(pending)
        while len(self._numbers) > REMEMBERED:
            del self._numbers[next(iter(self._numbers))]

    def _entries(self, model: Online, event: Event) -> list[Entry]:
        fitted = model.fitted
        if not event.query and not event.query_id:
            return []  # an event of a person who was removed
        known = [replace(e, user=event.user) for e in fitted.entries(event.impression)]
        return known if fitted.settings.per_user > 0 else [replace(e, user=0) for e in known]

    def _undo(self, model: Online, event_id: str) -> None:
        event = self.store.find(event_id)
        if event is None:
            return
        entries = [e for e in self._entries(model, event) if e.kind == PAGE]
        # With decay, the weight of an event depends on its time. For events before the first of this version, the
        # number is counted back.
        first = self._numbers.get(event.seq, model.learner.events - (self.seq - event.seq))
        since = None if model.fitted.settings.kappa == 1.0 else max(first, 1)
        model.learner.take([replace(e, kind=UNDO, since=since) for e in entries])

    # --- what stays ------------------------------------------------------------------------------

    def folded_value(self) -> Fitted:
        """The fitted value, marked with how far it has learned the store."""
        return self.fitted._with(applied=marked(self.fitted.applied, self.store.id, self.seq))


def taken_in(applied: Sequence[str], store_id: str) -> int:
    """The number of the last event of a store that a model has learned."""
    marks = [mark.rpartition(":")[2] for mark in applied if mark.startswith(f"{MARK}{store_id}:")]
    return max((int(mark) for mark in marks), default=0)


def marked(applied: Sequence[str], store_id: str, seq: int) -> tuple[str, ...]:
    others = [mark for mark in applied if not mark.startswith(f"{MARK}{store_id}:")]
    return (*others, f"{MARK}{store_id}:{seq}")


def version_of(path: Path) -> str:
    """A version of twelve digits, computed from the content of a MODEL: the same content has the same version."""
    try:
        manifest = orjson.loads((path / "manifest.json").read_bytes())
        return hashlib.sha256(orjson.dumps(_content(manifest), option=orjson.OPT_SORT_KEYS)).hexdigest()[:12]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ArtifactError(f"{path} has no readable manifest ({error}): fit the model again") from None


def _content(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "files": {name: entry["sha256"] for name, entry in manifest["files"].items()},
        "parts": {name: _content(part) for name, part in manifest.get("parts", {}).items()},
        **{name: manifest.get(name) for name in ("model", "params", "applied", "values")},
    }
