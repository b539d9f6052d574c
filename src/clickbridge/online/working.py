"""The working state, which adds up events: the writable side of a state.

Every event is added to weights, evidence and a table. So for kappa = 1 the order of events does not matter, and an
event can be subtracted again. Time is counted in events: each one, whether a page with or without a click or an undo,
multiplies everything learned before by kappa (eq. 22). Instead of changing every weight, event n is added divided by
kappa^n, and numbers are multiplied by `scale` = kappa^n when they are read. So at event m, the share kappa^(m - n) of
event n is left, and that is what an undo subtracts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from clickbridge.numerics.feedback import learn_latent, learn_own, read_only
from clickbridge.numerics.hash_table import empty_table, room_for, without_small
from clickbridge.online.entry import FORGET
from clickbridge.online.events import Events, query_hash
from clickbridge.online.state import LaterPages, State, by_component, rows_of
from clickbridge.online.steps import NewPage, Rules, Step

Array = np.ndarray[Any, Any]
LEAST_SCALE = 1e-100
NOTHING_LEFT = 1e-15
"""A number of the table that has faded below this is dropped when all are rescaled: so with decay the table does not
grow forever."""


class WorkingState:
    """Adds up events. `find` gives the page numbers of documents, -1 for unknown ones. Only one thread at a time may
    use it."""

    def __init__(self, rules: Rules, state: State, find: Callable[[Sequence[str]], Array]) -> None:
        self.rules, self.find = rules, find
        self.weights, self.evidence = np.array(state.weights), np.array(state.evidence)
        self.keys, self.values = np.array(state.keys), np.array(state.values)
        self.used = int(np.count_nonzero(self.keys))
        self.scale, self.events, self.forgotten = state.scale, state.events, state.forgotten
        self.users = dict(state.users)
        self._later = state.later
        self._ids = list(state.later.ids)
        self._numbers = {doc_id: rules.n_known + i for i, doc_id in enumerate(self._ids) if doc_id}
        self._component, self._start = Appended(state.later.component), Appended(state.later.start)
        self._z, self._z_tilde = Appended(state.later.z), Appended(state.later.z_tilde)
        self.layout = state.later.behind(rules.projection.layout)

    # --- pages -----------------------------------------------------------------------------------

    @property
    def n_pages(self) -> int:
        return self.rules.n_known + len(self._ids)

    def later_number(self, doc_id: str) -> int | None:
        """The number of a page that was added later; None for a document that was on no page yet."""
        return self._numbers.get(doc_id)

    def _add_pages(self, new: Sequence[NewPage]) -> None:
        for page in new:
            self._numbers[page.doc_id] = self.n_pages
            self._ids.append(page.doc_id)
            self._start.add(np.array([len(self._z)]))
            self._component.add(np.array([-1 if page.place is None else page.place[0]]))
            if page.place is not None:
                self._z.add(page.place[1])
                self._z_tilde.add(page.place[2])
        self.layout = self._later_arrays().behind(self.rules.projection.layout)

    def _later_arrays(self, ids: tuple[str, ...] = ()) -> LaterPages:
        return LaterPages(ids, *(part.view() for part in (self._component, self._start, self._z, self._z_tilde)))

    # --- events ----------------------------------------------------------------------------------

    def add(self, step: Step) -> None:
        """Adds one planned event; it must be the next one."""
        assert step.number == self.events + 1
        if step.new:
            self._add_pages(step.new)
        if step.entry.kind == FORGET:
            self._forget()
        elif self.rules.kappa != 1.0:
            self.scale *= self.rules.kappa
        if len(step.labels):
            self._sum(
                np.array([0, len(step.pages)]),
                step.pages,
                step.labels,
                np.array([step.worth / self.scale]),
                np.array([query_hash(step.entry.key)], dtype=np.uint64),
                np.array([step.entry.user], dtype=np.uint64),
            )
        if self.scale < LEAST_SCALE:
            self._rescale()
        self.events += 1

    def add_log(self, events: Events, queries: Array, users: bool) -> None:
        """Adds all events of a GRAPH at once, with the same result as one after the other. `queries` are the hashes of
        all its queries. Only for a state without events."""
        assert self.events == 0
        some = events.with_clicks()
        ages = len(events) - 1 - np.flatnonzero(events.ordering)
        worth = some.amounts * self.rules.kappa**ages
        labels = self.rules.labels_of_lists(some.indptr, some.docs, some.clicked)
        who = some.user if users else np.zeros(len(some), dtype=np.uint64)
        self._sum(some.indptr, some.docs, labels, worth, queries[some.query], who)
        self.events = len(events)

    def _sum(self, indptr: Array, pages: Array, labels: Array, amounts: Array, queries: Array, users: Array) -> None:
        if len(self.layout.dims):
            top = self.rules.list_length
            learn_latent(indptr, pages, top, labels, amounts, self.layout, self.weights, self.evidence)
        done, n = 0, len(amounts)
        while done < n:
            next_one = int(indptr[done + 1] - indptr[done]) + 1
            self.keys, self.values = room_for(self.keys, self.values, self.used, next_one)
            done, self.used = learn_own(
                indptr, pages, labels, amounts, queries, done, self.keys, self.values, self.used
            )
        for e in np.flatnonzero(users).tolist() if users.any() else ():
            here = slice(indptr[e], indptr[e + 1])
            self._sum_user(int(users[e]), pages[here], labels[here], float(amounts[e]))

    def _sum_user(self, user: int, pages: Array, labels: Array, amount: float) -> None:
        for c, members in by_component(self.layout, pages):
            d = int(self.layout.dims[c])
            old = self.users.get((user, c))
            # A new array: the old one belongs to states that were given out.
            own = np.zeros(d + 1) if old is None else old.copy()
            own[:d] += amount * (labels[members] @ rows_of(self.layout, pages[members], d, turned=True))
            own[d] += amount
            self.users[user, c] = own

    def _rescale(self) -> None:
        for values in (self.weights, self.evidence, self.values):
            values *= self.scale
        self.users = {key: own * self.scale for key, own in self.users.items()}
        self.keys, self.values, self.used = without_small(self.keys, self.values, NOTHING_LEFT)
        self.scale = 1.0

    def _forget(self) -> None:
        self.weights[:], self.evidence[:] = 0.0, 0.0
        self.keys, self.values = empty_table()
        self.used, self.users, self.scale = 0, {}, 1.0
        self.forgotten = self.events + 1

    # --- given out -------------------------------------------------------------------------------

    def state(self) -> State:
        """Everything learned so far, as a value."""
        if len(self._ids) > len(self._later):
            self._later = self._later_arrays(tuple(self._ids))
        return State.of(
            self.weights.copy(), self.evidence.copy(), self.keys.copy(), self.values.copy(),
            scale=self.scale, events=self.events, forgotten=self.forgotten, later=self._later, users=dict(self.users),
        )  # fmt: skip


class Appended:
    """An array that can only be appended to, so that views of it never change."""

    def __init__(self, values: Array) -> None:
        self._buffer, self._size = values, len(values)

    def __len__(self) -> int:
        return self._size

    def add(self, values: Array) -> None:
        size = self._size + len(values)
        if size > len(self._buffer):
            # Grows by one half, so that over many small additions each number is copied only a few times.
            fresh = np.empty(size * 3 // 2 + 16, dtype=self._buffer.dtype)
            fresh[: self._size] = self._buffer[: self._size]
            self._buffer = fresh
        self._buffer[self._size : size] = values
        self._size = size

    def view(self) -> Array:
        return read_only(self._buffer[: self._size])
