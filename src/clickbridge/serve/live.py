"""The models in use. Replacing one is a single assignment; requests that use the old one finish with it.

Models learn events in the order of the store, whichever process wrote them: after each commit, and regularly for those
of other workers. So all workers reach the same state.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clickbridge.errors import ClickbridgeError
from clickbridge.serve.events import Event
from clickbridge.serve.refusals import Refused
from clickbridge.serve.served import Served, version_of
from clickbridge.serve.store import Store


class Live:
    def __init__(self, paths: Mapping[str, Path], store: Store) -> None:
        self.paths, self.store = dict(paths), store
        self.models: dict[str, Served] = {}
        self._turn = threading.RLock()
        """Held while events are learned or a model is replaced."""
        self._stamps: dict[str, tuple[int, ...]] = {}

    @property
    def ready(self) -> bool:
        return len(self.models) == len(self.paths)

    @property
    def first(self) -> str:
        return next(iter(self.paths))

    def get(self, name: str | None) -> Served:
        """A model by its name; the first one if no name is given."""
        found = self.models.get(self.first if name is None else name)
        if found is None:
            raise Refused(404, "unknown_model", f"no model {name!r}; there are {', '.join(self.paths)}", "model")
        return found

    def get_or_first(self, name: str | None) -> Served:
        """Like `get`, but unknown names give the first model, for protocols whose clients must name some model."""
        return self.get(name if name in self.models else None)

    def states(self) -> list[dict[str, Any]]:
        return [{"name": m.name, "spec": m.spec, "version": m.version, "events": m.seq} for m in self.models.values()]

    # --- loading and swapping --------------------------------------------------------------------

    def open(self) -> None:
        """Loads all models that are not loaded yet."""
        for name in self.paths:
            if name not in self.models:
                self.load(name)

    def load(self, name: str) -> Served:
        """Loads a model in the background, adds the events of the store, and puts it in place. If verification fails,
        an error is raised and the old model stays."""
        path = self.paths[name]
        self._stamps[name] = stamp(path)
        fresh = Served(name, path, self.store)
        fresh.catch_up()
        with self._turn:
            fresh.catch_up()
            # In the order in which the models were given, not in the order of loading.
            self.models = {
                n: fresh if n == name else self.models[n] for n in self.paths if n == name or n in self.models
            }
        return fresh

    def changed(self) -> list[str]:
        """The models whose folder has another version than the one in use."""
        out = []
        for name, served in self.models.items():
            now = stamp(self.paths[name])
            if now == self._stamps.get(name):
                continue
            self._stamps[name] = now  # so that a refused folder is not tried again and again
            try:
                same = version_of(self.paths[name]) == served.version
            except ClickbridgeError:
                same = False  # loading it will report what is wrong
            if not same:
                out.append(name)
        return out

    # --- events ----------------------------------------------------------------------------------

    def learn(self, events: Sequence[Event]) -> None:
        """Learns events that were just stored, and others that came in between."""
        if not events:
            return
        with self._turn:
            for served in self.models.values():
                if served.learns and events[0].seq != served.seq + 1:
                    served.catch_up()
                else:
                    served.learn(events)

    def catch_up(self) -> None:
        """Learns what other workers stored."""
        with self._turn:
            last = self.store.last()
            for served in self.models.values():
                if served.seq < last:
                    served.catch_up()

    def paused(self) -> threading.RLock:
        """Nothing is learned while it is held."""
        return self._turn


def stamp(path: Path) -> tuple[int, ...]:
    """Changes whenever the manifest is replaced."""
    try:
        found = (path / "manifest.json").stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_ino, found.st_size
