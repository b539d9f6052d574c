"""What is odd in a GRAPH, in lines for the user: a log or documents may be other than what was meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from clickbridge.graph.unmatched_ids import unmatched_ids
from clickbridge.wording import count_of

if TYPE_CHECKING:
    from clickbridge.graph.clickgraph import ClickGraph


ONE_YEAR = 365 * 86_400.0


def oddities(graph: ClickGraph) -> list[str]:
    """Documents that repeat an id, clicks on what the page did not show, times that are none, and clicks on ids without
    a document."""
    summary: dict[str, Any] = graph.summary
    out = []
    if repeated := summary.get("repeated_documents"):
        out.append(f"{count_of(repeated, 'document', 'repeat')} an id; the first of each counts")
    if outside := summary.get("clicks_outside_results"):
        share = count_of(outside, "click", "are", of=summary["clicks"])
        out.append(f"{share} on documents that the page did not show")
    if (latest := _latest(graph)) is not None and latest < ONE_YEAR:
        out.append(
            "all times are in 1970: seconds from the start of the log are fine, but the days of a spreadsheet, such as "
            "45717.5, are to be written as dates"
        )
    unmatched = unmatched_ids(graph)
    if unmatched is not None and unmatched.clicks:
        out.append(str(unmatched))
    return out


def _latest(graph: ClickGraph) -> float | None:
    """The last time of the log, if it has times."""
    parts = [part.time for part in (graph.impressions, graph.clicks) if part is not None and part.time is not None]
    known = [time[np.isfinite(time)] for time in parts]
    return max((float(time.max()) for time in known if len(time)), default=None)


def html_removed(count: int) -> str:
    return f"HTML was taken out of the text of {count_of(count, 'document')}"
