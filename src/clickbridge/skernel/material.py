"""What the kernel models learn from: known queries with their kernel, and preferences.

The part of the log that gives a kernel is not the part that gives the preferences: a preference whose own clicks made
its query a neighbour would teach nothing but itself. That holds for the click kernel and for the latent map alike.
Text kernels see no click, so where both have weight 0 the whole log gives preferences.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clickbridge.graph.clickgraph import ClickGraph, sum_pairs
from clickbridge.graph.parts import Pairs
from clickbridge.log.preference import preferences
from clickbridge.skernel.latent import LatentMap
from clickbridge.skernel.neighbourhood import Training
from clickbridge.skernel.similarity import QueryKernel
from clickbridge.skernel.tuning import TEXT_ALONE

if TYPE_CHECKING:
    from clickbridge.skernel.model import KernelModel

Array = np.ndarray[Any, Any]
TAUGHT_BY_CLICKS = ("click", "latent")
"""Parts of k_Q that have learned from clicks."""
KERNEL_SHARE = 0.5
"""How much of the log gives them, where they are used; the rest gives preferences."""


@dataclass
class Material:
    """What a GRAPH gives."""

    kernel: QueryKernel
    training: Training
    query_clicks: Array
    point_scores: Array
    note: str


def gather(model: KernelModel, graph: ClickGraph, parts: Set[str]) -> Material:
    """`parts` are those of TAUGHT_BY_CLICKS that weigh anything."""
    pages, seen = graph.impressions, graph
    pairs: Pairs | None = graph.pairs
    if parts:
        halves = graph.hold_back(1 - KERNEL_SHARE, by="click", seed=model.seed)
        pages, seen = halves.shown, halves.graph
        pairs = halves.clicked if pages is None else sum_pairs(pages, None)
    found = preferences(pages, pairs, model.preference)
    clicks = graph.matrix(rows="queries")
    known = np.union1d(np.unique(found.query), np.flatnonzero(np.diff(clicks.indptr)))
    numbers = np.full(graph.n_queries, -1, dtype=np.int64)
    numbers[known] = np.arange(len(known))
    keys = [graph.query_keys[int(i)] for i in known]
    latent = LatentMap.fit(seen, keys, model.language, model.seed) if "latent" in parts else None
    kernel = QueryKernel(TEXT_ALONE, model.click_kernel, model.language)
    kernel.fit(keys, seen.matrix(rows="queries")[known], latent)
    training = Training.of(found, numbers, len(known), model.seed)
    names = " and ".join(name for name in TAUGHT_BY_CLICKS if name in parts)
    source = f"{KERNEL_SHARE:.0%} of the log for the {names} kernel, the rest" if parts else "the log"
    note = f"{model.spec}: {len(found):,} preferences ({found.rule}) of {source}; {found.opposed:,} cancelled out"
    query_clicks = np.asarray(clicks[known].sum(axis=1)).ravel()
    return Material(kernel, training, query_clicks, model.score_points(keys, training), note)
