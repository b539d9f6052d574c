"""What a campaign tried and what it found."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field

MOST_KEPT = 20


@dataclass
class Tally:
    tried: int = 0
    hit: int = 0
    """Tries that met their mark: inputs that were refused with an error of ours, verbs that were struck before their
    end, disks that were full before it."""
    found: int = 0
    faults: list[str] = field(default_factory=list)
    """The first things that were not as promised, each with a way to see it again."""

    def fault(self, what: str) -> None:
        self.found += 1
        if len(self.faults) < MOST_KEPT:
            self.faults.append(what)

    def error(self, where: str, error: BaseException) -> None:
        last = traceback.extract_tb(error.__traceback__)[-1]
        self.fault(f"{where}: {type(error).__name__}: {str(error)[:200]} ({last.filename}:{last.lineno})")

    def line(self, name: str) -> str:
        return f"{name}: {self.tried:,} tried, {self.hit:,} refused or struck, {self.found:,} found"
