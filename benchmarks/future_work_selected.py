"""09 suspects "the small number of the selected URLs" (Section 5): f as printed, with pages on fewer lists selected.

09 selects pages on more than ten lists (`min_lists=11`). Here f alone, else as printed, is learned with smaller limits.
As in 09 only clicks on selected pages teach, and the moves are those of such clicks. The reciprocal rank is of all
clicks.
The data is that of the table 09-ranks: simulated pages of 20, whose ranks 1 to 5 teach, and clara2 in time.

    python benchmarks/future_work_selected.py DATA
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from clickbridge.evaluate.reproduction import paper09
from clickbridge.evaluate.reproduction.lab import Lab
from clickbridge.evaluate.reproduction.relevance_rows import AS_PRINTED
from clickbridge.online.groups import Move
from clickbridge.types import Impression

LIMITS = (11, 6, 3, 2, 1)


def reciprocal_rank(pages: list[Impression], orders: list[list[str]]) -> float:
    """Mean reciprocal rank of the first clicked result."""
    places = [
        [order.index(doc_id) + 1 for doc_id in page.clicks if doc_id in order]
        for page, order in zip(pages, orders, strict=True)
    ]
    return float(np.mean([1 / min(found) for found in places if found]))


def measure(condition: paper09.Condition) -> None:
    lists = paper09.lists_of(condition.pages)
    print(f"{condition.data.about}\nas shown: MRR {reciprocal_rank(condition.pages, paper09.as_shown(lists)):.4f}")
    for limit in LIMITS:
        own = paper09.of_selected(condition, limit)
        model = None if own is None else condition.data.fit("online", {**AS_PRINTED, "min_lists": limit}).model
        if own is None or model is None:
            print(f"  {limit:2} lists: no page")
            continue
        rerank = paper09.by_model(model)
        found = paper09.moved(own.pages, rerank)
        layout = model.fitted.projection.layout  # type: ignore[attr-defined]
        n = int((layout.component >= 0).sum())
        mrr = reciprocal_rank(condition.pages, rerank(lists))
        print(f"  {limit:2} lists: {n:6,} pages; {places(found)}, MRR {mrr:.4f}")


def places(found: list[Move]) -> str:
    """What clicked results of some ranks rise by, and how many they are."""
    said = []
    for low, high in ((1, 5), (6, 20), (6, 10), (11, 20), (1, 20)):
        rises = [m.before - m.after for m in found if low <= m.before <= high]
        said.append(f"{low}-{high} {np.mean(rises) if rises else 0:+.2f} ({len(rises):,})")
    return ", ".join(said)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with clara2")
    parser.add_argument("--fraction", type=float, default=0.1, help="of one week, for the simulated pages")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for each in paper09.settings(Lab(Path(folder), options.fraction, 200, real=options.data)):
            measure(each)
