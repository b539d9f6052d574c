"""The parts of a running service, and its background work: loading and replacing models, learning, deleting."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from clickbridge.errors import ClickbridgeError
from clickbridge.serve.answers import ranked, text_document
from clickbridge.serve.config import Config
from clickbridge.serve.events import Event
from clickbridge.serve.experiments import Experiment
from clickbridge.serve.gate import write_log
from clickbridge.serve.live import Live
from clickbridge.serve.metrics import Drift, Metrics
from clickbridge.serve.promotion import roll_back
from clickbridge.serve.refusals import Refused, busy
from clickbridge.serve.rules import Rules
from clickbridge.serve.served import Served
from clickbridge.serve.store import Shown, Store
from clickbridge.serve.suggestions import NO_SUGGESTIONS, Suggestions
from clickbridge.serve.upkeep import Upkeep
from clickbridge.serve.writer import Kept, Writer

REFRESH = 300.0
"""Seconds between two counts of how many people typed each query."""
MOMENT = 0.25
"""Seconds between two checks for events of other workers and for changed folders."""


class Service:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.metrics = Metrics()
        self.rules = Rules(config.pins)  # before the store: if the rules are refused, no store is left open
        self.store = Store(config.store)
        self.live = Live({name: Path(folder) for name, folder in config.models.items()}, self.store)
        self.writer = Writer(self.store, self.live.learn, config.queue, self._write_failed)
        self.experiment = Experiment(*config.experiment) if config.experiment else None
        self._suggestions: dict[str, Suggestions] = {}
        self.failure: str | None = None
        """The reason why the service cannot become ready, if there is one."""
        self._drifts: dict[tuple[str, str], Drift] = {}
        self._stop = threading.Event()
        self.upkeep = Upkeep(config, self.store, self.live, self.metrics, self._stop)
        self._threads = [
            threading.Thread(target=self._run, name="background", daemon=True),
            threading.Thread(target=self._keep_up, name="upkeep", daemon=True),
        ]

    # --- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        self.writer.start()
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._stop.set()
        self.writer.close()
        for thread in self._threads:
            thread.join()
        self.store.close()

    def _run(self) -> None:
        try:
            self.live.open()
        except ClickbridgeError as error:
            self.failure = str(error)
            write_log({"at": round(time.time(), 3), "error": f"clickbridge: {error}"})
            return
        self._warm()
        while not self._stop.wait(MOMENT):
            self._guarded(self.live.catch_up)
            self._guarded(self._swap_changed)
            self._guarded(self.rules.reload)

    def _keep_up(self) -> None:
        refreshed = -REFRESH
        while not self._stop.wait(MOMENT):
            if not self.live.ready:
                continue
            if time.monotonic() - refreshed >= REFRESH or set(self._suggestions) != set(self.live.models):
                refreshed = time.monotonic()
                self._guarded(self.refresh_suggestions)
            self._guarded(self.upkeep.run)

    def _warm(self) -> None:
        """Runs the rarer kinds of requests once, so that no user waits for what they load first. Ranking is ready as
        soon as a model is loaded."""
        for served in self.live.models.values():
            ranked(served.fitted, "", [text_document(0, "text", served.fitted)])
            self.drift(served)

    def _guarded(self, task: Callable[[], None]) -> None:
        """Runs a background task. An error is logged, and the task runs again next time."""
        try:
            task()
        except ClickbridgeError as error:
            write_log({"at": round(time.time(), 3), "task": task.__name__, "error": str(error)})

    def _swap_changed(self) -> None:
        for name in self.live.changed():
            self.swap(name)

    def roll_back(self, name: str) -> Served:
        """Restores the previous model."""
        roll_back(self.live.paths[name])
        return self.swap(name)

    def swap(self, name: str) -> Served:
        """Loads the current content of a folder. If it fails verification, an error is raised and the old model
        stays."""
        try:
            fresh = self.live.load(name)
        except ClickbridgeError:
            self.metrics.swaps.labels(name, "refused").inc()
            raise
        self.metrics.swaps.labels(name, "swapped").inc()
        write_log({"at": round(time.time(), 3), "model": name, "swapped to": fresh.version})
        return fresh

    def _write_failed(self, error: Exception) -> None:
        self.metrics.store_failures.inc()
        write_log({"at": round(time.time(), 3), "error": str(error) or type(error).__name__})

    # --- questions -------------------------------------------------------------------------------

    def check_ready(self) -> None:
        if not self.live.ready:
            raise busy(self.failure or "the models are being loaded", "not_ready", 1)

    def drift(self, served: Served) -> Drift:
        key = (served.name, served.version)
        found = self._drifts.get(key)
        if found is None:
            self._drifts = {k: v for k, v in self._drifts.items() if k[0] != served.name}
            found = self._drifts[key] = Drift(self.metrics, served.name, served.fitted.queries.keys)
        return found

    def suggestions(self, served: Served) -> Suggestions:
        """The queries that may be shown to others; none while they are being counted."""
        return self._suggestions.get(served.name, NO_SUGGESTIONS)

    def refresh_suggestions(self) -> None:
        """Counts again how many people typed each query."""
        stored = self.store.users_by_query(self.config.min_users)
        models = self.live.models.values()
        self._suggestions = {m.name: Suggestions(m.fitted, stored, self.config.min_users) for m in models}

    def user(self, name: str | None) -> int:
        """The hash of a user; 0 if there is none."""
        return self.store.secret.user(name) if name else 0

    def note_query(self, served: Served, query: str, scored: bool) -> None:
        """Counts a query for the metrics of drift."""
        queries = served.fitted.queries
        key = queries.key_of(query)
        self.drift(served).query(key, key in queries.numbers, scored)

    def remember(self, page: Shown) -> None:
        if self.config.click_window:
            self.writer.show(page)

    async def shown_pages(self, query_ids: Sequence[str]) -> dict[str, Shown]:
        """Answers by their ids, if they are still kept."""
        waiting = {query_id: page for query_id in query_ids if (page := self.writer.find(query_id))}
        missing = [query_id for query_id in query_ids if query_id not in waiting]
        return waiting | (await asyncio.to_thread(self.store.shown, missing) if missing else {})

    # --- events ----------------------------------------------------------------------------------

    async def keep(self, events: Sequence[Event], pages: Sequence[Shown] = ()) -> Kept:
        """Stores events, and answers that later events may refer to. Returns once they are durable and learned."""
        if not events and not pages:
            return Kept()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Kept] = loop.create_future()

        def settle(kept: Kept) -> None:
            if not future.done():
                future.set_result(kept)

        def done(kept: Kept) -> None:
            loop.call_soon_threadsafe(settle, kept)

        self.writer.submit(events, done, pages)
        kept = await future
        if kept.error is not None:
            if isinstance(kept.error, ClickbridgeError | Refused):
                raise kept.error
            raise busy("the events could not be written: send them again", "store_unavailable", 5)
        self.metrics.events.labels("accepted").inc(kept.accepted)
        self.metrics.events.labels("duplicate").inc(kept.duplicates)
        for event in events:
            self.metrics.page(event.results or (), event.clicks)
        return kept
