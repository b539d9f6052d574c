"""Removes a person from a GRAPH: their pages and clicks, their share of every sum, and queries that only they typed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from clickbridge.errors import ArtifactError, MissingPart
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.parts import Array, Clicks, Impressions
from clickbridge.graph.several import of_queries
from clickbridge.graph.storage import KIND
from clickbridge.wording import agree, count_of


@dataclass(frozen=True)
class Forgotten:
    """Counts of what was removed. `left` is how much is still found of the person afterwards, read again from disk."""

    pages: int = 0
    clicks: int = 0
    pairs: int = 0
    queries: int = 0
    left: int = 0

    @property
    def line(self) -> str:
        """One line that says what was removed, without naming the person."""
        return (
            f"forgotten: {count_of(self.pages, 'result page')}, {count_of(self.clicks, 'click')}, "
            f"{count_of(self.pairs, 'pair')} and {count_of(self.queries, 'query')} that nobody else has; checked: "
            f"{count_of(self.left, 'event')} of this user {agree(self.left, 'are')} left"
        )


def forget_user(path: str | Path, user: str) -> Forgotten:
    """Removes a user, by the id that the log has, from the GRAPH at `path`, in one step."""
    from clickbridge.io.artifact import kept_for_writing

    with kept_for_writing(path, KIND):
        graph = ClickGraph.open(path)
        if "users" not in graph.parts:
            raise MissingPart(f"{path} holds no users: nothing in it can be attributed to one person")
        if graph.secret is None:
            raise ArtifactError(
                f"only the owner of {path} can read its secret and forget a user: run this as the owner"
            )
        rest = without_user(graph, graph.secret.user(user))
        if rest is not graph:
            rest.save(path)
        again = ClickGraph.open(path)
    return Forgotten(
        pages=_length(graph.impressions) - _length(again.impressions),
        clicks=int(graph.pairs.clicks.sum() - again.pairs.clicks.sum()),
        pairs=len(graph.pairs) - len(again.pairs),
        queries=graph.n_queries - again.n_queries,
        left=sum(int(_of_user(part, graph.secret.user(user)).sum()) for part in (again.impressions, again.clicks)),
    )


def without_user(graph: ClickGraph, user: int) -> ClickGraph:
    """The GRAPH without the events of a user, given as a hash; the same object if there are none."""
    pages, clicks = graph.impressions, graph.clicks
    mine = [_of_user(part, user) for part in (pages, clicks)]
    if not any(own.any() for own in mine):
        return graph
    asked = np.zeros(graph.n_queries, dtype=bool)
    for part, own in zip((pages, clicks), mine, strict=True):
        if part is not None:
            asked[part.query[own]] = True
    pages = None if pages is None else pages.take(~mine[0])
    clicks = None if clicks is None else clicks.take(~mine[1])
    for part in (pages, clicks):
        if part is not None:
            asked[part.query] = False
    # Queries that are still marked were typed by nobody else.
    rest = of_queries(graph, ~asked, pages, clicks)
    if not rest.pairs.clicks.any():
        raise ArtifactError("nobody else clicked anything: remove the whole GRAPH instead")
    return rest.like(summary=_counted(rest))


def _of_user(part: Impressions | Clicks | None, user: int) -> Array:
    if part is None or part.user is None:
        return np.zeros(0 if part is None else len(part), dtype=bool)
    return np.asarray(part.user == np.uint64(user))


def _length(part: Impressions | Clicks | None) -> int:
    return 0 if part is None else len(part)


def _counted(graph: ClickGraph) -> dict[str, object]:
    """The summary of the log after the removal."""
    clicks = int(graph.pairs.clicks.sum())
    counts = {"impressions": _length(graph.impressions), "clicks": clicks, "queries": graph.n_queries}
    if "pair_rows" in graph.summary:
        counts["pair_rows"] = min(int(graph.summary["pair_rows"]), _length(graph.clicks))
    return {**graph.summary, **counts, "pairs": int(np.count_nonzero(graph.pairs.clicks))}
