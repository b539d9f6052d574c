"""What an online model, its learner and its journal share: they learn result pages and clicks, and undo them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from clickbridge.online.entry import FORGET, Entry
from clickbridge.types import Impression

if TYPE_CHECKING:
    from clickbridge.online.learner import Learner

Page = Impression | Mapping[str, object]


class TakesClicks:
    """Turns pages and clicks into events for the learner. Any number of threads may call these methods at once; with a
    journal, the events that wait at the same time are written to disk together before they are learned."""

    @property
    def learner(self) -> Learner:
        """The learner that takes the events."""
        raise NotImplementedError

    def learn(self, page: Page, amount: float = 1.0) -> int:
        """Learns from one result page and its clicks. Returns the event's number, which `undo` takes.

        Parameters
        ----------
        page : Impression or dict
            The result page and its clicks. A dict has the same keys as an `Impression`.
        amount : float
            How often the page counts.

        Returns
        -------
        int
            The number of the event.
        """
        return self.learner.take([self.learner.entry(page, amount)])[0]

    def learn_many(self, pages: Iterable[Page]) -> list[int]:
        """Learns from several pages. If one of them is refused, none is learned.

        Parameters
        ----------
        pages : iterable of Impression or dict
            The result pages and their clicks.

        Returns
        -------
        list of int
            The number of each event, in the same order.
        """
        learner = self.learner
        return learner.take([learner.entry(page) for page in pages])

    def undo(self, number: int) -> int:
        """Undoes an event: subtracts what is left of it.

        Parameters
        ----------
        number : int
            The number of the event, as `learn` returned it. An event that is no longer kept is refused; with a journal,
            that is an event before the last `compact`.

        Returns
        -------
        int
            The number of the undo, which is an event, too.
        """
        return self.learner.take([number])[0]

    def unlearn(self, page: Page, number: int | None = None, amount: float = 1.0) -> int:
        """Undoes a page that you pass again, even if its event is no longer kept.

        Parameters
        ----------
        page : Impression or dict
            The page, as it was learned.
        number : int, optional
            The number of the page's event. It is needed with decay (`kappa` below 1): it tells how much of the
            event is left.
        amount : float
            The amount with which the page was learned.

        Returns
        -------
        int
            The number of the undo, which is an event, too.
        """
        return self.learner.take([self.learner.undo_of(page, number, amount)])[0]

    def undo_click(self, page: Page, doc_id: str, number: int | None = None) -> int:
        """Undoes one click of a page, as if the page had never had it.

        Parameters
        ----------
        page : Impression or dict
            The page, as it was learned.
        doc_id : str
            The id of the clicked document. The page's other clicks stay.
        number : int, optional
            The number of the page's event. It is needed with decay (`kappa` below 1): it tells how much of the
            event is left.

        Returns
        -------
        int
            The number of the last event: the page is undone, and learned again without this click.
        """
        return self.learner.take(self.learner.undo_of_click(page, doc_id, number))[-1]

    def forget_clicks(self) -> int:
        """Forgets every click. Projection and blend stay, and the numbers of events continue.

        Returns
        -------
        int
            The number of this event.
        """
        return self.learner.take([Entry(kind=FORGET)])[0]
