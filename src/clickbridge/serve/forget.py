"""Removes a person from a service's store: what they searched for, saw and clicked."""

from __future__ import annotations

from dataclasses import dataclass

from clickbridge.serve.store import Store
from clickbridge.wording import agree, count_of


@dataclass(frozen=True)
class ForgottenFeedback:
    """What was removed. `left` counts what is still found of the person afterwards, in a new query."""

    events: int
    answers: int
    left: int

    @property
    def line(self) -> str:
        """One line that says what was removed, and what could not be."""
        return (
            f"forgotten: {count_of(self.events, 'event')} and {count_of(self.answers, 'answer')} that they clicked; "
            f"checked: {count_of(self.left, 'event')} of this user {agree(self.left, 'are')} left. "
            "A MODEL that has learned from them is fitted again by clickbridge forget MODEL --refit"
        )


def forget_user(store: Store, user: str) -> ForgottenFeedback:
    """Removes a user, by the id that clients send, from a store. A service may be using it."""
    who = store.secret.user(user)
    events, answers = store.forget(who)
    return ForgottenFeedback(events, answers, store.events_of(who))
