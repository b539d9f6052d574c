"""The training data of kernel models: known queries with their features, and preferences.

Kernels and preferences are learned from different parts of the log. Otherwise a query could be a neighbour because of
the same clicks that give its preferences, and those would only confirm themselves. This applies to the click kernel and
to the latent map. Text kernels use no clicks, so if both others have weight 0, the whole log gives preferences.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from clickbridge.errors import InputError
from clickbridge.graph.clickgraph import ClickGraph, sum_pairs
from clickbridge.graph.parts import Pairs
from clickbridge.graph.responses import kept_pairs
from clickbridge.graph.sums import pair_keys
from clickbridge.io.values import stored
from clickbridge.log.preference import Pages, Preferences, preferences
from clickbridge.models.candidates import Query
from clickbridge.models.catalogue import KnownQueries
from clickbridge.models.fitted import Fitted
from clickbridge.models.study import Study
from clickbridge.numerics.ragged import Ragged
from clickbridge.skernel.latent_kernel import learn_latent_map
from clickbridge.skernel.query_kernel import QueryFeatures

Array = np.ndarray[Any, Any]
TAUGHT_BY_CLICKS = ("click", "latent")
"""Parts of k_Q that have learned from clicks."""
KERNEL_SHARE = 0.5
"""How much of the log gives them, where they are used; the rest gives preferences."""

PAGE, MOST_PAGES = 10, 20_000
"""Documents of a page that the base makes where the log has none, and how many such pages at most."""


@stored
@dataclass(frozen=True, eq=False)
class KernelTraining:
    """Preferences by known query: those of query i are `indptr[i]:indptr[i + 1]`, in random order, so that the first n
    are a fair sample. `better` and `worse` are points; a point is a pair of a query and a document."""

    indptr: Array
    better: Array
    worse: Array
    point_query: Array
    point_doc: Array
    has_pairs: Array = field(init=False, repr=False)
    """Which queries have any."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "has_pairs", np.diff(self.indptr) > 0)

    def check_stored(self) -> None:
        n_pairs, n_points = int(self.indptr[-1]), len(self.point_query)
        places = [
            *((values, n_pairs, n_points) for values in (self.better, self.worse)),
            (self.point_query, n_points, len(self.has_pairs)),
            (self.point_doc, n_points, 2**31),
        ]
        for values, length, limit in places:
            if values.shape != (length,) or values.dtype.kind not in "iu":
                raise ValueError("preferences and points do not fit together")
            if length and not 0 <= values.min() <= values.max() < limit:
                raise ValueError("a preference names a point, query or document that is not there")
        owner = np.repeat(np.arange(len(self.has_pairs)), np.diff(self.indptr))
        if any((self.point_query[values] != owner).any() for values in (self.better, self.worse)):
            raise ValueError("a preference of one query names points of another")

    @classmethod
    def of(cls, found: Preferences, numbers: Array, n_queries: int, seed: int) -> KernelTraining:
        """`numbers` maps queries of the log to their numbers among the known ones, or -1."""
        query = numbers[found.query]
        keep = query >= 0
        query, better, worse = query[keep], found.better[keep], found.worse[keep]
        order = np.lexsort((np.random.default_rng(seed).random(len(query)), query))
        query, better, worse = query[order], better[order], worse[order]
        n_docs = int(max(better.max(initial=-1), worse.max(initial=-1))) + 1
        points, places = np.unique(
            np.concatenate([query * n_docs + better, query * n_docs + worse]), return_inverse=True
        )
        return cls(
            np.searchsorted(query, np.arange(n_queries + 1)),
            places[: len(query)],
            places[len(query) :],
            points // max(n_docs, 1),
            points % max(n_docs, 1),
        )

    def sample(self, queries: Array, n: int, own: bool = False) -> Array:
        """About n preferences of the given queries, as far as possible equally many of each query. If the first one is
        the searched query itself (`own`), it may have half of them."""
        starts = self.indptr[queries]
        available = self.indptr[queries + 1] - starts
        taken = np.zeros_like(available)
        if own:
            taken[0] = min(available[0], max(n // 2, 1))
        first = int(own)
        taken[first:] = np.minimum(available[first:], water_level(available[first:], n - int(taken.sum())))
        start = np.repeat(starts - np.cumsum(taken) + taken, taken)
        return start + np.arange(len(start))


def water_level(available: Array, n: int) -> int:
    """The largest number per query for which the total stays within n, where no query gives more than it has; at
    least 1."""
    ordered = np.sort(available)
    before = np.cumsum(ordered) - ordered
    left = np.arange(len(ordered), 0, -1)
    levels = (n - before) // left
    # The first query that has more than its share of what is left determines the level.
    over = np.flatnonzero(ordered > levels)
    return max(int(levels[over[0]]), 1) if len(over) else int(ordered.max(initial=1))


@dataclass(frozen=True, eq=False)
class KernelData:
    """The data that all kernel models of a GRAPH share."""

    queries: KnownQueries
    features: QueryFeatures
    training: KernelTraining
    note: str


class FoundPages(NamedTuple):
    """Pages made by a model: what it finds for a query, and the documents that were clicked for the query."""

    query: Array
    indptr: Array
    doc: Array
    clicked: Array


def gather(
    study: Study, parts: Set[str], preference: str, language: str, seed: int, base: Fitted | None = None,
    min_clicks: int = 1,
) -> KernelData:  # fmt: skip
    """Collects the training data. `parts` are those of TAUGHT_BY_CLICKS with a weight above 0. If the log has no pages,
    `base` makes them. Pairs with fewer than `min_clicks` clicks in the whole log do not count as clicked."""
    spec = None if base is None else base.spec
    key = ("kernel material", frozenset(parts), preference, language, seed, spec, min_clicks)
    return study.once(key, lambda: _gather(study, parts, preference, language, seed, base, min_clicks))


def found_pages(base: Fitted, keys: Sequence[str], pairs: Pairs, seed: int) -> FoundPages:
    """For each query with clicks, the best documents of the base, which a page of it would have shown, and the clicked
    documents, which people wanted instead. If there are many queries, a sample is used."""
    asked = np.unique(pairs.query[pairs.clicks > 0])
    if len(asked) > MOST_PAGES:
        asked = np.sort(np.random.default_rng(seed).choice(asked, MOST_PAGES, replace=False))
    found = base.search_many([Query(keys[i]) for i in asked.tolist()], PAGE)
    starts, stops = (np.searchsorted(pairs.query, asked, side) for side in ("left", "right"))
    docs: list[Array] = []
    marks: list[Array] = []
    for (items, _), start, stop in zip(found, starts.tolist(), stops.tolist(), strict=True):
        clicked = pairs.doc[start:stop][pairs.clicks[start:stop] > 0]
        docs.append(np.union1d(items, clicked))
        marks.append(np.isin(docs[-1], clicked))
    indptr = Ragged.of_lengths([len(page) for page in docs]).indptr
    empty = np.empty(0, dtype=np.int64)
    return FoundPages(asked, indptr, np.concatenate([empty, *docs]), np.concatenate([empty, *marks]).astype(bool))


def _gather(
    study: Study, parts: Set[str], preference: str, language: str, seed: int, base: Fitted | None, min_clicks: int
) -> KernelData:
    graph, seen = study.graph, study
    pages: Pages | None = graph.impressions
    pairs: Pairs | None = graph.pairs
    if parts:
        held, seen = study.hold_back(1 - KERNEL_SHARE, seed, by="click")
        pages = held.shown
        pairs = held.clicked if held.shown is None else sum_pairs(held.shown, None)
    if pages is None and base is not None and preference == "auto" and pairs is not None:
        found = preferences(found_pages(base, graph.query_keys, pairs, seed), rule="clicked")
        found = replace(found, rule=f"clicked over what {base.spec} finds")
    else:
        found = preferences(pages, pairs, preference)
    keep = kept_pairs(graph.pairs, min_clicks)[0] if min_clicks > 1 else graph.pairs.clicks > 0
    found = preferred_among(found, graph.pairs, keep) if min_clicks > 1 else found
    counted = graph.matrix(rows="queries", values=keep)
    clicks = sparse.csr_array(graph.matrix(rows="queries").multiply(counted))
    known = np.union1d(np.unique(found.query), np.flatnonzero(np.diff(clicks.indptr)))
    numbers = np.full(graph.n_queries, -1, dtype=np.int64)
    numbers[known] = np.arange(len(known))
    keys = [graph.query_keys[i] for i in known.tolist()]
    latent = learn_latent_map(seen, keys, language, seed) if "latent" in parts else None
    seen_clicks = sparse.csr_array(seen.graph.matrix(rows="queries").multiply(counted))
    features = QueryFeatures.of(keys, seen_clicks[known], language, latent)
    names = " and ".join(name for name in TAUGHT_BY_CLICKS if name in parts)
    source = f"{KERNEL_SHARE:.0%} of the log for the {names} kernel, the rest" if parts else "the log"
    return KernelData(
        study.known(keys, np.asarray(clicks[known].sum(axis=1)).ravel()),
        features,
        KernelTraining.of(found, numbers, len(known), seed),
        f"{len(found):,} preferences ({found.rule}) of {source}; {found.opposed:,} cancelled out",
    )


def preferred_among(found: Preferences, pairs: Pairs, keep: Array) -> Preferences:
    """Only the preferences for documents whose pair with the query is kept."""
    stay = np.isin(pair_keys(found.query, found.better), pair_keys(pairs.query[keep], pairs.doc[keep]))
    return replace(
        found, query=found.query[stay], better=found.better[stay], worse=found.worse[stay], count=found.count[stay]
    )


def check_clicks(graph: ClickGraph) -> None:
    if not np.any(graph.pairs.clicks):
        raise InputError("no click is left to learn from: build the GRAPH from a log with clicks")
