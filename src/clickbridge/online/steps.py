"""From an entry to what it adds to the state. A plan computes everything that could fail and changes nothing, so an
event that cannot be learned is refused before it is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from clickbridge.numerics.feedback import ABOVE, EVERY, RESIDUAL, labels_of_lists
from clickbridge.online.entry import FORGET, UNDO, Entry
from clickbridge.online.projection import Projection

if TYPE_CHECKING:
    from clickbridge.online.working import WorkingState

Array = np.ndarray[Any, Any]
PREFERENCES = {"residual": RESIDUAL, "all": EVERY, "skip-above": ABOVE}
NOTHING = np.empty(0)


class Rules(NamedTuple):
    """How pages become numbers."""

    projection: Projection
    rates: Array
    """How often each rank of the pages shown is clicked."""
    pairs: str
    list_length: int
    kappa: float
    selected: bool = False
    """Only clicks on pages of the projection teach."""

    @property
    def n_known(self) -> int:
        """The number of pages that the projection knows. Later pages have higher numbers."""
        return self.projection.n_pages

    def labels_of_lists(self, indptr: Array, pages: Array, clicked: Array) -> Array:
        """The label of each result of many lists: the pairs it wins minus the pairs it loses."""
        if self.selected:
            clicked = clicked * self.projection.has_place(pages)
        out = np.empty(len(clicked))
        labels_of_lists(indptr, clicked, PREFERENCES[self.pairs], self.rates, out)
        return out


class NewPage(NamedTuple):
    doc_id: str
    place: tuple[int, Array, Array] | None
    """Component, z and z~, where it has a place."""


class Step(NamedTuple):
    """A planned event: everything needed to add it."""

    number: int
    entry: Entry
    pages: Array
    labels: Array
    """Empty where the page orders nothing: nothing clicked, or everything."""
    worth: float
    """What it counts for when it comes; negative for an undo."""
    new: list[NewPage]


class Steps:
    """Plans events, one after the other. Documents in `gone` were removed and are not added again."""

    def __init__(self, working: WorkingState, gone: frozenset[str] = frozenset()) -> None:
        self.working, self.gone = working, gone
        self._next = working.events + 1
        self._new: dict[str, int] = {}

    def steps(self, entries: Sequence[Entry]) -> list[Step]:
        """Plans all events. If one of them fails, an error is raised and none is planned."""
        number, n_new = self._next, len(self._new)
        try:
            return [self.step(entry) for entry in entries]
        except BaseException:
            self._next = number
            for doc_id in list(self._new)[n_new:]:
                del self._new[doc_id]
            raise

    def step(self, entry: Entry) -> Step:
        number, rules = self._next, self.working.rules
        if entry.kind == FORGET:
            self._next += 1
            return Step(number, entry, NOTHING, NOTHING, 0.0, [])
        pages, new = self._numbered(entry.results)
        chosen = set(entry.clicks)
        clicked = np.array([doc_id in chosen for doc_id in entry.results], dtype=np.float64)
        # If nothing was clicked, or everything, the page says nothing about order, but it counts as an event.
        orders = 0 < len(chosen) < len(clicked)
        labels = rules.labels_of_lists(np.array([0, len(clicked)]), pages, clicked) if orders else NOTHING
        since = number if entry.since is None else entry.since
        worth = entry.amount * rules.kappa ** (number - since) * (-1.0 if entry.kind == UNDO else 1.0)
        first = self.working.n_pages + len(self._new)
        self._new.update((page.doc_id, first + i) for i, page in enumerate(new))
        self._next += 1
        return Step(number, entry, pages, labels, worth, new)

    def _numbered(self, doc_ids: tuple[str, ...]) -> tuple[Array, list[NewPage]]:
        """The numbers of the pages, and the new pages, which are folded in by this list."""
        working = self.working
        pages = working.find(doc_ids)
        new: list[NewPage] = []
        if not len(pages) or pages.min() >= 0:
            return pages, new
        listed, first = pages.copy(), working.n_pages + len(self._new)
        for i in np.flatnonzero(pages < 0).tolist():
            doc_id = doc_ids[i]
            found = working.later_number(doc_id)
            found = self._new.get(doc_id) if found is None else found
            if found is not None:
                pages[i] = found
            elif doc_id not in self.gone:
                pages[i] = first + len(new)
                new.append(NewPage(doc_id, working.rules.projection.fold_in(listed)))
        return pages, new
