"""Group commit: waiting requests share one transaction, outside of the event loop.

The number of waiting events is limited. Beyond the limit a request is refused at once, and should be sent again later.
Accepted events are never dropped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clickbridge.serve.events import Event
from clickbridge.serve.refusals import busy
from clickbridge.serve.store import Shown, Store
from clickbridge.wording import count_of

MOST_AT_ONCE = 5_000
"""The most events in one transaction."""
SHOWN_WAITING = 20_000
"""The most answers that wait to be written. Beyond this the oldest are dropped, and a click on one of them must include
its results."""


@dataclass(slots=True)
class Kept:
    """What happened to the events of one request."""

    accepted: int = 0
    duplicates: int = 0
    error: Exception | None = None


@dataclass(slots=True)
class _Request:
    events: Sequence[Event]
    done: Callable[[Kept], None]
    pages: Sequence[Shown]
    """Answers to store in the same transaction."""


class Writer:
    """A thread that writes events. It calls `learn` with the stored events before the requests are answered."""

    def __init__(
        self,
        store: Store,
        learn: Callable[[Sequence[Event]], None],
        most: int,
        failed: Callable[[Exception], None],
    ) -> None:
        self.store, self._learn, self.most, self._failed = store, learn, most, failed
        self._wake = threading.Condition()
        self._requests: list[_Request] = []
        self._shown: dict[str, Shown] = {}
        self._writing: dict[str, Shown] = {}
        """Answers that wait, and those in the current transaction."""
        self.waiting = 0
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="feedback", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Writes everything that waits, and ends the thread."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join()

    def submit(self, events: Sequence[Event], done: Callable[[Kept], None], pages: Sequence[Shown] = ()) -> None:
        """Adds events to be written. `done` is called from the writing thread when they are durable or have failed."""
        with self._wake:
            if self._closed:
                raise busy("the service is stopping: send the events again", "stopping")
            if self.waiting + len(events) > self.most:
                raise busy(f"{count_of(self.waiting, 'event')} must be written first: send these again in a moment")
            self.waiting += len(events)
            self._requests.append(_Request(events, done, pages))
            self._wake.notify()

    def show(self, page: Shown) -> None:
        """Adds an answer to be written. No request waits for it."""
        with self._wake:
            self._shown[page.query_id] = page
            if len(self._shown) > SHOWN_WAITING:
                del self._shown[next(iter(self._shown))]

    def find(self, query_id: str) -> Shown | None:
        """An answer that has not been written yet."""
        with self._wake:
            return self._shown.get(query_id) or self._writing.get(query_id)

    # --- the writing thread ----------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._wake:
                if not self._requests and not self._closed:
                    self._wake.wait(0.1)
                if self._closed and not self._requests and not self._shown:
                    return
                requests, shown = self._take()
            if requests or shown:
                self._write(requests, shown)

    def _take(self) -> tuple[list[_Request], list[Shown]]:
        count, n = 0, 0
        while n < len(self._requests) and (n == 0 or count + len(self._requests[n].events) <= MOST_AT_ONCE):
            count += len(self._requests[n].events)
            n += 1
        requests, self._requests = self._requests[:n], self._requests[n:]
        self._writing, self._shown = self._shown, {}
        return requests, list(self._writing.values())

    def _write(self, requests: list[_Request], shown: list[Shown]) -> None:
        events = [event for request in requests for event in request.events]
        answers = [Kept() for _ in requests]
        try:
            stored = self.store.append(events, [*shown, *(page for request in requests for page in request.pages)])
            self._learn([event for event in stored if event is not None])
            place = iter(stored)
            for request, answer in zip(requests, answers, strict=True):
                answer.accepted = sum(next(place) is not None for _ in request.events)
                answer.duplicates = len(request.events) - answer.accepted
        except Exception as error:  # reported to every caller; none of them was acknowledged
            self._failed(error)
            for answer in answers:
                answer.error = error
        with self._wake:
            self.waiting -= len(events)
        for request, answer in zip(requests, answers, strict=True):
            request.done(answer)
