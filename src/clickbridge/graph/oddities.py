"""What is odd in a GRAPH, in lines for the user: a log or documents may be other than what was meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clickbridge.graph.unmatched_ids import unmatched_ids
from clickbridge.wording import count_of

if TYPE_CHECKING:
    from clickbridge.graph.clickgraph import ClickGraph


def oddities(graph: ClickGraph) -> list[str]:
    """Documents that repeat an id, clicks on what the page did not show, and clicks on ids without a document."""
    summary: dict[str, Any] = graph.summary
    out = []
    if repeated := summary.get("repeated_documents"):
        out.append(f"{count_of(repeated, 'document', 'repeat')} an id; the first of each counts")
    if outside := summary.get("clicks_outside_results"):
        share = count_of(outside, "click", "are", of=summary["clicks"])
        out.append(f"{share} on documents that the page did not show")
    unmatched = unmatched_ids(graph)
    if unmatched is not None and unmatched.clicks:
        out.append(str(unmatched))
    return out


def html_removed(count: int) -> str:
    return f"HTML was taken out of the text of {count_of(count, 'document')}"
