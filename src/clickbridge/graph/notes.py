"""Notes: lines for the user about what was done. A reason that several models share is told once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from clickbridge.io.values import stored


@stored
class Note(str):
    """A line that gives a reason, by a name, and what follows from it. Where another line has given the reason, only
    what follows is left, or the whole line if nothing does."""

    reason: str
    follows: str

    def __new__(cls, text: str, reason: str, follows: str = "") -> Self:
        note = super().__new__(cls, text)
        note.reason, note.follows = reason, follows
        return note

    def __reduce__(self) -> tuple[type[Self], tuple[str, ...]]:
        return type(self), (*self.to_stored(),)

    def to_stored(self) -> list[str]:
        return [str(self), self.reason, self.follows]

    @classmethod
    def from_stored(cls, value: list[str]) -> Self:
        text, reason, follows = value
        return cls(text, reason, follows)


def said_by(who: str, note: str) -> str:
    """A note with the name of the model that says it."""
    return prefixed(f"{who}: ", note)


def prefixed(head: str, note: str) -> str:
    if isinstance(note, Note):
        return Note(f"{head}{note}", note.reason, note.follows and f"{head}{note.follows}")
    return f"{head}{note}"


def said_once(notes: Iterable[str]) -> tuple[str, ...]:
    """Notes, each line once, and each reason once."""
    out: dict[str, None] = {}
    told: set[str] = set()
    for note in notes:
        if isinstance(note, Note) and note not in out:
            short = note.follows if note.reason in told else ""
            told.add(note.reason)
            out[short or note] = None
        else:
            out[note] = None
    return tuple(out)
