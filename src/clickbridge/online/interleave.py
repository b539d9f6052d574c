"""Team-draft interleaving (Radlinski, Kurup and Joachims 2008): two rankings are mixed on one page, and the one whose
results are clicked more wins. It compares rankings by what users do, without judgments and without splitting users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from clickbridge.numerics.csr import Array
from clickbridge.simulate.clicks import clicks_on_page
from clickbridge.types import ResultList

Ranker = Callable[[ResultList], Sequence[str]]


class Verdict(NamedTuple):
    """The number of pages that each side won, and of undecided pages."""

    first: int
    second: int
    ties: int

    @property
    def preference(self) -> float:
        """The share of decided pages that the first ranking won; one half if none was decided."""
        decided = self.first + self.second
        return self.first / decided if decided else 0.5


def team_draft(first: Sequence[str], second: Sequence[str], rng: np.random.Generator) -> tuple[list[str], list[int]]:
    """The page, and the team (0 or 1) of each result. In each round both sides add their best result that is not on the
    page yet; a coin decides which side goes first."""
    page: list[str] = []
    teams: list[int] = []
    there: set[str] = set()
    sides = (first, second)
    everything = len({*first, *second})
    while len(page) < everything:
        starter = int(rng.integers(2))
        for team in (starter, 1 - starter):
            choice = next((d for d in sides[team] if d not in there), None)
            if choice is not None:
                page.append(choice)
                teams.append(team)
                there.add(choice)
    return page, teams


def compare(
    lists: Sequence[ResultList], first: Ranker, second: Ranker, n_pages: int, rng: np.random.Generator
) -> Verdict:
    """Compares two rankings with simulated users on interleaved pages of graded lists (labels 0, 1, 2)."""
    wins = [0, 0]
    for number in rng.integers(len(lists), size=n_pages):
        graded = lists[int(number)]
        grades = dict(zip(graded.results, graded.labels or (), strict=True))
        page, teams = team_draft(first(graded), second(graded), rng)
        clicked: Array = clicks_on_page([int(grades[d]) for d in page], rng)
        credit = [sum(1 for c, t in zip(clicked, teams, strict=True) if c and t == team) for team in (0, 1)]
        if credit[0] != credit[1]:
            wins[int(credit[1] > credit[0])] += 1
    return Verdict(wins[0], wins[1], n_pages - sum(wins))
