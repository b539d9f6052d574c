"""Removes a person from an online learner: their events in the journal, and their own weights."""

from __future__ import annotations

from dataclasses import dataclass

from clickbridge.errors import MissingPart
from clickbridge.online.entry import PAGE
from clickbridge.online.journal import Journal
from clickbridge.wording import agree, count_of


@dataclass(frozen=True)
class ForgottenEvents:
    """What was removed. `left` counts what is still found of the person afterwards."""

    events: int
    weights: int
    left: int

    @property
    def line(self) -> str:
        """One line that says what was removed, and what could not be."""
        return (
            f"forgotten: {count_of(self.events, 'event')} of the journal undone, "
            f"{count_of(self.weights, 'own weight')} removed, the journal compacted; checked: "
            f"{count_of(self.left, 'event')} of this user {agree(self.left, 'are')} left. What was compacted before is "
            "a sum over all users, in which none can be identified"
        )


def forget_user(journal: Journal, user: str) -> ForgottenEvents:
    """Undoes the user's events that the journal still has, removes their weights and compacts the journal, so that none
    of their events is left on disk. The journal must be open. Events of other users wait meanwhile."""
    learner = journal.learner
    fitted = learner.fitted
    if not fitted.settings.per_user:
        raise MissingPart(f"{journal.folder} keeps no users: nothing in it can be attributed to one person")
    who = fitted.secret.user(user)
    with learner.paused():
        mine = [number for number, entry in journal.kept() if entry.kind == PAGE and entry.user == who]
        undone = [number for number in mine if learner.can_undo(number)]
        for number in undone:
            learner.undo(number)
        weights = learner.drop_user(who)
        journal.compact()
    left = sum(key[0] == who for key in learner.fitted.state.users) + sum(e.user == who for _, e in journal.kept())
    return ForgottenEvents(len(undone), weights, left)
