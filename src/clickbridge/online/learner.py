"""The learner: the only owner of the learned state and of the numbers of events.

Any number of threads may send events and read the model. One thread writes at a time. It takes all waiting events,
plans them (an event that cannot be learned is refused here, without affecting the others), writes them to the store in
one go, and only then learns them and lets their callers continue. If they cannot be written, none of them counts: their
numbers are free again, and every caller gets the error. Readers get a published value that never changes. A new one is
made when someone reads and something was learned since the last one.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from clickbridge.errors import ArtifactError, InputError, SettingError
from clickbridge.online.entry import FORGET, PAGE, UNDO, Entry, check_number
from clickbridge.online.fitted_online import FittedOnline
from clickbridge.online.steps import Step, Steps
from clickbridge.online.store import Recent, Store
from clickbridge.online.takes_clicks import Page, TakesClicks

MOST_UNDONE = 100_000
"""Undone events that are remembered as such, the last ones."""


class _Request:
    """The events of one caller, and their outcome. A number instead of an event means: undo that event."""

    def __init__(self, entries: Sequence[Entry | int]) -> None:
        self.entries = entries
        self.numbers: list[int] | None = None
        self.error: BaseException | None = None

    @property
    def done(self) -> bool:
        return self.numbers is not None or self.error is not None


class Learner(TakesClicks):
    """Learns from one result page after the other: `learner = Learner(model.fitted)`, `learner.learn(page)`.

    `fitted` is the model with everything learned so far. Any number of threads may learn and read at once. A `Learner`
    keeps its events in memory only; `Journal` writes them to disk.

    Parameters
    ----------
    fitted : FittedOnline
        The fitted value of an `Online` model to start from.
    store : Store, optional
        Where events are written before they are learned. By default the last ones are kept in memory.

    Examples
    --------
    >>> from clickbridge import build_model, example_graph, Impression, Learner
    >>> learner = Learner(build_model("online:given", blend="0,1,1").fit(example_graph()).fitted)
    >>> for _ in range(20):
    ...     _ = learner.learn(Impression("ny pizza", ["slice", "oven"], ["oven"]))
    >>> learner.fitted.rerank("ny pizza", ["slice", "oven"]).doc_ids
    ['oven', 'slice']
    """

    def __init__(self, fitted: FittedOnline, store: Store | None = None) -> None:
        self._store: Store = Recent() if store is None else store
        self._lock = threading.Lock()
        """Held briefly: for the attributes below, and for the sums while they change or are copied."""
        self._turns = threading.Condition(self._lock)
        self._waiting: list[_Request] = []
        self._writer: int | None = None
        """The thread whose turn it is to write; it does not hold the lock while it waits for the disk."""
        self._start(fitted)

    def _start(self, fitted: FittedOnline) -> None:
        self._working, self._published, self._changed = fitted.working(), fitted, False
        self._undone: set[int] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy has what was learned, but not the store of events."""
        return Learner, (self.fitted,)

    # --- reading ---------------------------------------------------------------------------------

    @property
    def fitted(self) -> FittedOnline:
        """The model with everything learned so far."""
        if not self._changed:
            return self._published
        with self._lock:
            if self._changed:
                self._published = self._published.with_state(self._working.state())
                self._changed = False
            return self._published

    @property
    def events(self) -> int:
        """The number of events learned so far, which is also the number of the last event."""
        return self._working.events

    @property
    def durable(self) -> bool:
        """Whether events are written to disk."""
        return self._store.durable

    # --- events ----------------------------------------------------------------------------------

    @property
    def learner(self) -> Learner:
        """The learner itself."""
        return self

    def entry(self, page: Page, amount: float = 1.0) -> Entry:
        """A page as an event for `take`, normalised and checked. Nothing is learned yet.

        Parameters
        ----------
        page : Impression or dict
            The result page and its clicks.
        amount : float
            How often the page counts.

        Returns
        -------
        Entry
            The event.
        """
        return self._published.entry(page, amount)

    def undo_of(self, page: Page, number: int | None = None, amount: float = 1.0) -> Entry:
        """The event for `take` that undoes a page. Nothing is undone yet.

        Parameters
        ----------
        page : Impression or dict
            The page, as it was learned.
        number : int, optional
            The number of its event. Needed where older events weigh less (`kappa` below 1).
        amount : float
            How often the page counted.

        Returns
        -------
        Entry
            The event.
        """
        since = number
        if number is not None:
            kept = self._store.entry(check_number(number, self.events))
            since = number if kept is None or kept.since is None else kept.since
        elif self._published.settings.kappa != 1.0:
            raise SettingError("with kappa below 1 an event's weight depends on its number: give unlearn that number")
        return self._published.entry(page, amount, kind=UNDO, of=number, since=since)

    def undo_of_click(self, page: Page, doc_id: str, number: int | None = None) -> list[Entry]:
        """The events for `take` that undo one click: the page is undone, and learned again without it.

        Parameters
        ----------
        page : Impression or dict
            The page, as it was learned.
        doc_id : str
            The document whose click is undone.
        number : int, optional
            The number of the page's event, as for `undo_of`.

        Returns
        -------
        list of Entry
            Two events.
        """
        kept = None if number is None else self._store.entry(number)
        out = self.undo_of(page, number, 1.0 if kept is None else kept.amount)
        rest = tuple(d for d in out.clicks if d != doc_id)
        return [out, replace(out, kind=PAGE, clicks=rest, of=None)]

    def take(self, entries: Sequence[Entry | int]) -> list[int]:
        """Learns events that `entry`, `undo_of` or `undo_of_click` made, in this or another process.

        If one is refused, none is learned. Returns when the events are written and learned.

        Parameters
        ----------
        entries : sequence of Entry or int
            The events. A number means: undo that event.

        Returns
        -------
        list of int
            The number of each event, in the same order.
        """
        for number in entries:
            if not isinstance(number, Entry) and (isinstance(number, bool) or not isinstance(number, int)):
                raise _cannot_undo(number)
        if not entries:
            return []
        request = _Request(entries)
        inner = self._writer == threading.get_ident()
        try:
            if self._take_turn(request):
                self._write()
        except BaseException:
            with self._lock:
                self._waiting = [other for other in self._waiting if other is not request]
            raise
        finally:
            if not inner and self._writer == threading.get_ident():
                self._end_turn()
        if request.error is not None:
            raise request.error
        assert request.numbers is not None
        return request.numbers

    # --- writing: one thread at a time -----------------------------------------------------------

    def _take_turn(self, request: _Request | None = None) -> bool:
        """Waits until this thread may write; False if another thread has written its request already."""
        me = threading.get_ident()
        with self._lock:
            if request is not None:
                self._waiting.append(request)
            while self._writer not in (None, me) and not (request is not None and request.done):
                self._turns.wait()
            if request is not None and request.done:
                return False
            self._writer = me
            return True

    def _end_turn(self) -> None:
        with self._lock:
            self._writer = None
            self._turns.notify_all()

    def _write(self) -> None:
        """Writes and learns all waiting events."""
        with self._lock:
            requests, self._waiting = self._waiting, []
        try:
            planned = self._planned(requests)
            steps = [step for _, own in planned for step in own]
            if not steps:
                return
            try:
                self._store.write([(step.number, step.entry) for step in steps])
            except Exception as error:
                for request, _ in planned:
                    request.error = _again(error)
                return
            with self._lock:
                for step in steps:
                    self._add(step)
                self._changed = True
            for request, own in planned:
                request.numbers = [step.number for step in own]
        except BaseException:
            # Interrupted, in the worst case after the events were written and before they were learned.
            self._store.give_up()
            for request in requests:
                if not request.done:
                    request.error = ArtifactError("learning was interrupted: the event may not have been learned")
            raise

    def _planned(self, requests: Sequence[_Request]) -> list[tuple[_Request, list[Step]]]:
        """The events that can be learned, with their numbers. Each of the others is refused on its own."""
        out: list[tuple[_Request, list[Step]]] = []
        plan, undone = Steps(self._working), set[int]()
        for request in requests:
            try:
                entries = [self._resolved(entry, undone) for entry in request.entries]
                out.append((request, plan.steps(entries)))
            except Exception as error:
                request.error = error
            else:
                undone |= {entry.of for entry in entries if entry.of is not None}
        return out

    def _resolved(self, entry: Entry | int, undone: set[int]) -> Entry:
        """An undo, with the page that it undoes."""
        number = entry.of if isinstance(entry, Entry) else entry
        if number is None:
            assert isinstance(entry, Entry)
            return entry
        if number in self._undone or number in undone or number <= self._working.forgotten:
            raise _cannot_undo(number)
        if isinstance(entry, Entry):
            return entry
        kept = self._store.entry(number)
        if kept is None or kept.kind != PAGE:
            raise _cannot_undo(number)
        return replace(kept, kind=UNDO, of=number, since=number if kept.since is None else kept.since)

    def _add(self, step: Step) -> None:
        self._working.add(step)
        if step.entry.kind == FORGET:
            self._undone = set()
        elif step.entry.of is not None:
            self._undone.add(step.entry.of)
            if len(self._undone) > MOST_UNDONE:
                self._undone = set(sorted(self._undone)[MOST_UNDONE // 2 :])

    # --- for those who keep a learner ------------------------------------------------------------

    @contextmanager
    def paused(self) -> Iterator[FittedOnline]:
        """A context manager during which new events wait.

        Returns
        -------
        context manager
            It gives the current model.
        """
        inner = self._writer == threading.get_ident()
        try:
            self._take_turn()
            yield self.fitted
        finally:
            if not inner and self._writer == threading.get_ident():
                self._end_turn()

    def can_undo(self, number: int) -> bool:
        """Whether an event is kept and has not been undone.

        Parameters
        ----------
        number : int
            The number of the event, as `learn` returned it.

        Returns
        -------
        bool
            True if `undo` would take this number.
        """
        try:
            self._resolved(number, set())
        except InputError:
            return False
        return True

    def drop_user(self, user: int) -> int:
        """Removes the weights of one user (setting `per_user`).

        Parameters
        ----------
        user : int
            The hash of the user.

        Returns
        -------
        int
            How many weight vectors there were.
        """
        with self.paused(), self._lock:
            mine = [key for key in self._working.users if key[0] == user]
            for key in mine:
                del self._working.users[key]
            self._changed = True
        return len(mine)

    def restart(self, fitted: FittedOnline) -> None:
        """Continues from another fitted value, after a fit or an update.

        Parameters
        ----------
        fitted : FittedOnline
            The value to continue from. Events that were kept can no longer be undone.
        """
        if self.durable:
            raise ArtifactError("the model's journal is open: close it before the model is fitted or updated")
        with self.paused(), self._lock:
            self._store = Recent()
            self._start(fitted)

    def replay(self, number: int, entry: Entry) -> None:
        """Learns an event that was written before. An event that the state already contains is skipped.

        Parameters
        ----------
        number : int
            Its number when it was written.
        entry : Entry
            What was written.
        """
        if number > self.events:
            self._add(Steps(self._working).step(entry))
            self._changed = True
        elif entry.of is not None:
            self._undone.add(entry.of)


def _cannot_undo(number: Any) -> InputError:
    return InputError(f"event {number} cannot be undone: it was undone, is no page, or is no longer kept")


def _again(error: Exception) -> Exception:
    """A separate error object for each caller, since a traceback belongs to one thread."""
    try:
        out = copy.copy(error)
    except Exception:
        return error
    out.__cause__ = error
    return out
