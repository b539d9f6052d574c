"""The learner: the one owner of what is learned and of the numbers of events.

Any number of threads may bring events and ask for the model. One of them writes at a time: it takes all events that
wait, plans them (an event that cannot be learned is refused here, alone), has them written down in one go, and only
then adds them up and lets their callers go. If they cannot be written down, none of them happened: their numbers are
free again, and every caller is told why. Readers get a published value: it is copied when somebody asks and something
was learned since, and never changes afterwards.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from clickbridge.errors import ArtifactError, InputError, SettingError
from clickbridge.online.entry import FORGET, PAGE, UNDO, Entry, check_number
from clickbridge.online.fitted_online import FittedOnline
from clickbridge.online.steps import Step, Steps
from clickbridge.online.store import Recent, Store
from clickbridge.types import Impression

Page = Impression | Mapping[str, object]
MOST_UNDONE = 100_000
"""Undone events that are remembered as such, the last ones."""


class _Request:
    """Events that one caller brings, and what became of them. A number instead of an event: undo that one."""

    def __init__(self, entries: Sequence[Entry | int]) -> None:
        self.entries = entries
        self.numbers: list[int] | None = None
        self.error: BaseException | None = None

    @property
    def done(self) -> bool:
        return self.numbers is not None or self.error is not None


class Learner:
    """Learns from one result page after the other: `learner = Learner(model.fitted)`, `learner.learn(page)`.

    `fitted` is the model with everything learned up to now. Any number of threads may learn and read. `Journal` gives
    one that keeps its events on disk.

    Examples
    --------
    >>> from clickbridge import Impression, build_model, example_graph
    >>> learner = Learner(build_model("online:given", blend="0,1,1").fit(example_graph()).fitted)
    >>> for _ in range(20):
    ...     _ = learner.learn(Impression("ny pizza", ["slice", "oven"], ["oven"]))
    >>> learner.fitted.rerank("ny pizza", ["slice", "oven"]).doc_ids
    ['oven', 'slice']
    """

    def __init__(self, fitted: FittedOnline, store: Store | None = None) -> None:
        self._store: Store = Recent() if store is None else store
        self._lock = threading.Lock()
        """Held for moments: over what follows, and over the sums while they change or are copied."""
        self._turns = threading.Condition(self._lock)
        self._waiting: list[_Request] = []
        self._writer: int | None = None
        """The thread whose turn it is to write; it does not hold the lock while it waits for the disk."""
        self._start(fitted)

    def _start(self, fitted: FittedOnline) -> None:
        self._working, self._published, self._changed = fitted.working(), fitted, False
        self._undone: set[int] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy has what was learned; where events are written down stays here."""
        return Learner, (self.fitted,)

    # --- reading ---------------------------------------------------------------------------------

    @property
    def fitted(self) -> FittedOnline:
        """The model with everything learned up to now."""
        if not self._changed:
            return self._published
        with self._lock:
            if self._changed:
                self._published = self._published.with_state(self._working.state())
                self._changed = False
            return self._published

    @property
    def events(self) -> int:
        """How many events were learned, which is also the number of the last one."""
        return self._working.events

    @property
    def durable(self) -> bool:
        """Whether events are kept on disk."""
        return self._store.durable

    # --- events ----------------------------------------------------------------------------------

    def learn(self, page: Page, amount: float = 1.0) -> int:
        """Takes in one result page with its clicks; returns the event's number."""
        return self._bring([self._published.entry(page, amount)])[0]

    def learn_many(self, pages: Iterable[Page]) -> list[int]:
        """Takes in several pages, all or none."""
        return self._bring([self._published.entry(page) for page in pages])

    def take(self, entries: Sequence[Entry]) -> list[int]:
        """Takes in events that `FittedOnline.entries` made, in this or another process; all or none."""
        return self._bring(entries)

    def undo(self, number: int) -> int:
        """Takes out what is left of an event. The undo is an event of its own."""
        if isinstance(number, bool) or not isinstance(number, int):
            raise _cannot_undo(number)
        return self._bring([number])[0]

    def unlearn(self, page: Page, number: int | None = None, amount: float = 1.0) -> int:
        """Takes out a page that you give again, whether or not its event is still kept. With decay (`kappa` below 1)
        the number says how much of it is left."""
        return self._bring([self._taken_out(page, number, amount)])[0]

    def undo_click(self, page: Page, doc_id: str, number: int | None = None) -> int:
        """Takes one click of a page back, as if the page had come without it."""
        kept = None if number is None else self._store.entry(number)
        out = self._taken_out(page, number, 1.0 if kept is None else kept.amount)
        rest = tuple(d for d in out.clicks if d != doc_id)
        return self._bring([out, replace(out, kind=PAGE, clicks=rest, of=None)])[-1]

    def forget_clicks(self) -> int:
        """Forgets every click. Projection and blend stay, and events are numbered on."""
        return self._bring([Entry(kind=FORGET)])[0]

    def _taken_out(self, page: Page, number: int | None, amount: float) -> Entry:
        since = number
        if number is not None:
            kept = self._store.entry(check_number(number, self.events))
            since = number if kept is None or kept.since is None else kept.since
        elif self._published.settings.kappa != 1.0:
            raise SettingError("with kappa below 1 an event's weight depends on its number: give unlearn that number")
        return self._published.entry(page, amount, kind=UNDO, of=number, since=since)

    def _bring(self, entries: Sequence[Entry | int]) -> list[int]:
        """Returns when the events are written down and learned: their numbers."""
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
        """Waits until it is this thread's turn to write; False where another thread has taken its request along."""
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
        """All events that wait."""
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
            # Interrupted, in the worst case between writing down and adding up.
            self._store.give_up()
            for request in requests:
                if not request.done:
                    request.error = ArtifactError("learning was interrupted: the event may not have been learned")
            raise

    def _planned(self, requests: Sequence[_Request]) -> list[tuple[_Request, list[Step]]]:
        """What can be learned, with its numbers; the rest is refused here, each by itself."""
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
        """An undo with the page that it takes out."""
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
        """A context in which new events wait; it gives the model as it is."""
        inner = self._writer == threading.get_ident()
        try:
            self._take_turn()
            yield self.fitted
        finally:
            if not inner and self._writer == threading.get_ident():
                self._end_turn()

    def can_undo(self, number: int) -> bool:
        """Whether an event is kept and has not been undone."""
        try:
            self._resolved(number, set())
        except InputError:
            return False
        return True

    def drop_user(self, user: int) -> int:
        """Removes the weights of one user, given as a hash; returns how many there were."""
        with self.paused(), self._lock:
            mine = [key for key in self._working.users if key[0] == user]
            for key in mine:
                del self._working.users[key]
            self._changed = True
        return len(mine)

    def restart(self, fitted: FittedOnline) -> None:
        """Continues from another fitted value, after a fit or an update."""
        if self.durable:
            raise ArtifactError("the model's journal is open: close it before the model is fitted or updated")
        with self.paused(), self._lock:
            self._store = Recent()
            self._start(fitted)

    def replay(self, number: int, entry: Entry) -> None:
        """Learns an event that was written down before; one that the state already holds is skipped."""
        if number > self.events:
            self._add(Steps(self._working).step(entry))
            self._changed = True
        elif entry.of is not None:
            self._undone.add(entry.of)


def _cannot_undo(number: Any) -> InputError:
    return InputError(f"event {number} cannot be undone: it was undone, is no page, or is no longer kept")


def _again(error: Exception) -> Exception:
    """An error of its own for each caller: a traceback belongs to one thread."""
    try:
        out = copy.copy(error)
    except Exception:
        return error
    out.__cause__ = error
    return out
