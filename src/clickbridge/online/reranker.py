"""`online:SPEC`: re-ranks the lists of an engine or a model, and learns from every click (Kim and Choi 2009).

`fit` makes the projection and the clusters and learns the log's clicks; afterwards an event costs O(R) a pair
and cluster, in any order, and can be taken back. What is learned is added to the incoming rank (`blend`), so
with no clicks the incoming order comes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from clickbridge.errors import NotSupported, SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.log.aggregate import user_hash
from clickbridge.log.bias import click_rates, ranks
from clickbridge.log.readers import LogRecord
from clickbridge.models.base import Array, check_k, order, query_of, title_of
from clickbridge.models.wrapper import Wrapper
from clickbridge.numerics.feedback import ABOVE, EVERY, RESIDUAL, pair_labels
from clickbridge.online.blend import SHRINKS, Blend, Trial, learn_blend
from clickbridge.online.events import (
    Events,
    distinct_lists,
    events_from,
    events_of,
    found_lists,
    query_hash,
    query_hashes,
    searches,
)
from clickbridge.online.projection import Projection, Shape, project
from clickbridge.online.state import State
from clickbridge.types import Document, Impression, PairCount, Ranking, ResultList, query_key

PREFERENCES = {"residual": RESIDUAL, "all": EVERY, "skip-above": ABOVE}
CAUTIOUS_PAIRS = "residual"
HELD_BACK = 0.25
CAUTIOUS = Blend(0.0, 0.2, 4.0)
"""Where there is too little to learn a blend from: what the very same query taught, and that gently."""


class Online(Wrapper):
    """A linear ranking function on diffused co-occurrence of results, updated click by click."""

    name = "online"
    about = "re-ranks SPEC's (or given) lists, learns from every click"
    paper = "09"
    settings = (
        "dim", "diffusion", "list_length", "min_lists", "clusters", "hardness", "closed_form", "unlabelled",
        "smoothness", "pairs", "kappa", "blend", "per_user", "seed",
    )  # fmt: skip
    defaults: ClassVar[Mapping[str, Any]] = {"dim": 200}

    dim: int
    diffusion: float
    list_length: int
    min_lists: int
    clusters: int
    hardness: float
    closed_form: str
    unlabelled: float
    smoothness: bool
    pairs: str
    kappa: float
    blend: str
    per_user: float
    seed: int

    projection_: Projection
    state_: State
    rates_: Array
    """How often each rank of the pages shown is clicked."""
    prior_: Array
    """The same by the rank that the inner model gives: what a list's order says before anything is learned."""
    blend_: Blend
    pairs_: str
    _events: Events

    # --- fit -------------------------------------------------------------------------------------

    def _fit(self, graph: ClickGraph) -> None:
        inner = self.parts[0]
        if graph.impressions is None and not searches(inner):
            self.notes_.append("online: the log has no result pages; a query's clicked documents stand for its list")
        refitting = "blend" in self.tuned_
        if not refitting:
            self.tuned_["blend"] = self._tune(graph) if self.blend == "auto" else Blend.parse(self.blend)
        (inner.refit if refitting or self.blend == "auto" else inner.fit)(graph)
        self.notes_ += [note for note in inner.notes_ if note not in self.notes_]
        self.blend_ = self.tuned_["blend"]
        self.pairs_ = self.tuned_.get("pairs", CAUTIOUS_PAIRS if self.pairs == "auto" else self.pairs)
        self._project(graph)
        self._teach(graph)
        del self._events
        p = self.projection_
        self.notes_.append(
            f"online: {int(p.spaces['sizes'].sum()):,} pages in {p.n_components:,} components, the largest of "
            f"{int(p.spaces['sizes'].max(initial=0)):,}; residual {p.residual:.1e}"
        )

    def _project(self, graph: ClickGraph) -> None:
        """Projection and rates of one GRAPH; the inner model is fitted."""
        self.doc_ids_ = graph.doc_ids
        self._forget()
        found = found_lists(graph, self.parts[0], self.list_length)
        self._events = events_of(graph, found, self.list_length).with_clicks()
        lists = distinct_lists(graph.impressions, found.values(), graph.n_docs, self.list_length)
        self.projection_ = project(lists, self._shape())
        self.rates_ = click_rates(self._events.indptr, self._events.clicked, self.list_length, self._events.amounts)
        self.prior_ = self.tuned_.get("prior", self.rates_)

    def _teach(self, graph: ClickGraph) -> None:
        """Weights from the GRAPH's clicks."""
        events = self._events
        self.state_ = State(self.projection_, self.list_length, self.kappa)
        keys = query_hashes(list(graph.query_keys))
        users = events.user if self.per_user else np.zeros(len(events), dtype=np.uint64)
        labels = self._labels(events.indptr, events.clicked)
        self.state_.learn(events.indptr, events.docs, labels, events.amounts, keys[events.query], users)

    def _shape(self) -> Shape:
        return Shape(
            self.dim, self.diffusion, self.clusters, self.hardness, self.closed_form, self.unlabelled,
            self.smoothness, self.min_lists, self.seed,
        )  # fmt: skip

    def _labels(self, indptr: Array, clicked: Array) -> Array:
        out = np.empty(len(clicked))
        kind = PREFERENCES[self.pairs_]
        for first, last in pairwise(indptr):
            pair_labels(clicked[first:last], kind, self.rates_, out[first:last])
        return out

    def _tune(self, graph: ClickGraph) -> Blend:
        """The pairs and the blend that serve held-back clicks best, everything learned from the rest."""
        held = graph.hold_back(HELD_BACK, seed=self.seed)
        inner = self.parts[0].fit(held.graph)
        self.notes_ += inner.notes_
        self._project(held.graph)
        found = found_lists(graph, inner, self.list_length)
        events = events_from(held.shown, held.clicked, found, self.list_length, reachable=True).with_clicks()
        if held.shown is not None and searches(inner):
            # At query time lists come in this model's order, not in that of the page.
            events = events.in_order(inner, graph)
            self.tuned_["prior"] = self.prior_ = click_rates(
                events.indptr, events.clicked, self.list_length, events.amounts
            )
        trial = Trial(events.indptr, events.clicked, self._prior(ranks(events.indptr)), events.amounts)
        keys = query_hashes(list(graph.query_keys))[events.query]
        learned = {}
        for name in PREFERENCES if self.pairs == "auto" else [self.pairs]:
            self.pairs_ = name
            self._teach(held.graph)
            parts = {shrink: self._learned(events.indptr, events.docs, keys, shrink) for shrink in SHRINKS}
            learned[name] = learn_blend(trial, parts, CAUTIOUS)
        best = max(learned, key=lambda name: learned[name].most)
        self.tuned_["pairs"] = best
        self.notes_.append(f"online: pairs {best}, {learned[best].words}")
        return learned[best].blend

    # --- scores ----------------------------------------------------------------------------------

    def _prior(self, rank: Array) -> Array:
        """log rate of ranks counted from 0; below the longest list it goes on falling as 1 / r."""
        longest = len(self.prior_)
        beyond = np.maximum(rank + 1, longest) / longest
        return np.log(self.prior_)[np.minimum(rank, longest - 1)] - np.log(beyond)

    def _learned(self, indptr: Array, pages: Array, queries: Array, shrink: float) -> tuple[Array, Array]:
        return self.state_.latent(indptr, pages, shrink), self.state_.own(indptr, pages, queries, shrink)

    def score_lists(self, lists: Sequence[ResultList]) -> list[Array]:
        return self._score(lists, 0)

    def rerank_for(self, user: str, query: str, doc_ids: Sequence[str]) -> Ranking:
        """As `rerank`, with what this user's own clicks add (`per_user`)."""
        return order(doc_ids, self._score([ResultList("", query, list(doc_ids))], user_hash(user))[0])

    def _score(self, lists: Sequence[ResultList], user: int) -> list[Array]:
        """What the inner model cannot score has no score here either."""
        given = self.parts[0].score_lists(lists)
        places = [np.argsort(-scores, kind="stable") for scores in given]
        number = self._doc_numbers.get
        indptr = np.zeros(len(lists) + 1, dtype=np.int64)
        np.cumsum([len(p) for p in places], out=indptr[1:])
        pages = np.array(
            [number(r.results[i], -1) for r, p in zip(lists, places, strict=True) for i in p.tolist()], dtype=np.int64
        )
        b = self.blend_
        latent, own = self._learned(indptr, pages, query_hashes([query_of(r) for r in lists]), b.shrink)
        total = b.latent * latent + b.own * own
        if user and self.per_user:
            for first, last in pairwise(indptr):
                total[first:last] += b.latent * self.per_user * self.state_.of_user(user, pages[first:last], b.shrink)
        total += self._prior(ranks(indptr))
        out = []
        for scores, place, begin in zip(given, places, indptr.tolist(), strict=False):
            blended = np.empty(len(place))
            blended[place] = total[begin : begin + len(place)]
            blended[scores == -np.inf] = -np.inf
            out.append(blended)
        return out

    def rank(self, query: str, k: int = 10) -> Ranking:
        return self.rank_many([query], k)[0]

    def rank_many(self, queries: Sequence[str], k: int = 10) -> list[Ranking]:
        check_k(k)
        if not self.searching:
            raise NotSupported(f"{self.spec} re-ranks given lists; it cannot search the collection by itself")
        found = self.parts[0].rank_many(queries, max(k, self.list_length))
        lists = [ResultList("", query, r.doc_ids) for query, r in zip(queries, found, strict=True)]
        return [Ranking(ranking.hits[:k]) for ranking in self.rerank_lists(lists)]

    def similar_queries(self, query: str, k: int = 3, min_clicks: int = 1) -> list[tuple[str, float]]:
        return self.parts[0].similar_queries(query, k, min_clicks)

    def similar_documents(self, doc_id: str, k: int = 3) -> Ranking:
        return self.parts[0].similar_documents(doc_id, k)

    # --- events ----------------------------------------------------------------------------------

    def learn(self, page: Impression, amount: float = 1.0) -> int:
        """Takes in one result page with its clicks; returns the event's number."""
        pages, labels, query, user = self._event(page)
        if labels.any():
            self.state_.learn(np.array([0, len(pages)]), pages, labels, np.array([amount]), query, user)
        else:
            # Nothing clicked, or everything: it orders nothing, but it has its number.
            self.state_.events += 1
        return self.state_.events

    def unlearn(self, page: Impression, number: int | None = None, amount: float = 1.0) -> int:
        """Takes a page out again. With decay it must be told which event it was."""
        if number is None and self.kappa != 1.0:
            raise SettingError("with kappa below 1 an event's worth depends on its number: give unlearn that number")
        ago = 0 if number is None else self.state_.events - number
        pages, labels, query, user = self._event(page)
        if labels.any():
            self.state_.unlearn(pages, labels, amount, query, user, ago)
        else:
            self.state_.events += 1
        return self.state_.events

    def undo_click(self, page: Impression, doc_id: str, number: int | None = None) -> int:
        """Takes one click of a page back; its other clicks stay."""
        self.unlearn(page, number)
        return self.learn(replace(page, clicks=[d for d in page.clicks if d != doc_id]))

    def forget_clicks(self) -> None:
        """Back to no click at all; projection and blend stay."""
        self.state_ = State(self.projection_, self.list_length, self.kappa)

    def _event(self, page: Impression) -> tuple[Array, Array, Array, Array]:
        results = list(page.results or ())[: self.list_length]
        pages = self._numbers(results)
        chosen = set(page.clicks)
        clicked = np.array([d in chosen for d in results], dtype=np.float64)
        labels = np.zeros(len(pages))
        if 0 < clicked.sum() < len(clicked):
            pair_labels(clicked, PREFERENCES[self.pairs_], self.rates_, labels)
        user = user_hash(page.user) if self.per_user and page.user else 0
        query = query_hash(query_key(page.query, page.query_id))
        return pages, labels, np.array([query], dtype=np.uint64), np.array([user], dtype=np.uint64)

    def _numbers(self, results: list[str]) -> Array:
        """Page numbers; a page nobody knew is folded in by this list."""
        numbers = self._doc_numbers
        pages = np.array([numbers.get(d, -1) for d in results], dtype=np.int64)
        if len(pages) and pages.min() < 0:
            for i in np.flatnonzero(pages < 0):
                if results[i] not in numbers:
                    self._register(Document(results[i]))
                    self.state_.fold_in(numbers[results[i]], pages)
            pages = np.array([numbers[d] for d in results], dtype=np.int64)
        return pages

    def _register(self, document: Document) -> None:
        if self.doc_ids_ is not self._own_ids:
            # The ids came from a GRAPH or a part, which must not change with us.
            self.doc_ids_ = self._own_ids = list(self.doc_ids_)
            self.titles_ = list(self.titles_)
        self._doc_numbers[document.doc_id] = len(self.doc_ids_)
        self.doc_ids_.append(document.doc_id)
        self.titles_.append(title_of(document))

    _own_ids: list[str] | None = None

    def update(self, log: Iterable[LogRecord] = (), docs: Iterable[Document] = (), remove: Iterable[str] = ()) -> Self:
        """Learns the log's pages and clicks; documents go to the inner model, which clicks leave as it is."""
        documents, gone = list(docs), list(remove)
        inner = self.parts[0]
        if (documents or gone) and searches(inner):
            inner.update((), documents, gone)
        for document in documents:
            self._know(document)
        for record in log:
            if isinstance(record, Impression) and record.results:
                self.learn(record)
            elif isinstance(record, Impression):
                for doc_id in record.clicks:
                    self._learn_click(record, doc_id, 1.0)
            elif isinstance(record, PairCount) and record.clicks:
                self._learn_click(record, record.doc_id, float(record.clicks))
            elif isinstance(record, Document):
                self._know(record)
        return self

    def _know(self, document: Document) -> None:
        if document.doc_id not in self._doc_numbers:
            self._register(document)
            self.state_.fold_in(self._doc_numbers[document.doc_id], np.empty(0, dtype=np.int64))

    def _learn_click(self, record: Impression | PairCount, doc_id: str, amount: float) -> None:
        """A click without a page: on the list the inner model makes."""
        key = query_key(record.query, record.query_id)
        inner = self.parts[0]
        found = inner.rank(key, self.list_length).doc_ids if searches(inner) else []
        results = found if doc_id in found else [*found, doc_id]
        self.learn(Impression(record.query, results, [doc_id], record.query_id, record.user, record.time), amount)

    # --- files -----------------------------------------------------------------------------------

    def _report(self) -> dict[str, Any]:
        b = self.blend_
        return {
            "dim": int(self.projection_.layout.dims.max(initial=0)),
            "weights": {"incoming": 1.0, "latent": b.latent, "own": b.own, "shrink": b.shrink},
            "residual": self.projection_.residual,
            "projection": self.projection_.id,
            **super()._report(),
        }

    def _write(self, writer: PartWriter) -> None:
        super()._write(writer)
        writer.array("rates", self.rates_)
        writer.array("prior", self.prior_)
        writer.strings("pairs", [self.pairs_])
        writer.array("blend", np.array([self.blend_.latent, self.blend_.own, self.blend_.shrink]))
        self.projection_.write(writer)
        self.state_.write(writer)

    def _read(self, artifact: Artifact) -> None:
        self.rates_, self.prior_ = artifact.array("rates"), artifact.array("prior")
        self.pairs_ = artifact.strings("pairs")[0]
        self.blend_ = Blend(*(float(v) for v in artifact.array("blend")))
        self.projection_ = Projection.read(artifact, self._shape(), float(self.report_["residual"]))
        self.state_ = State(self.projection_, self.list_length, self.kappa)
        self.state_.read(artifact)

    def write_state(self, writer: PartWriter) -> None:
        """What clicks changed since `fit`, with the pages that came later."""
        n = self.projection_.n_pages
        writer.strings("later_ids", self.doc_ids_[n:])
        writer.strings("later_titles", self.titles_[n:])
        self.state_.write(writer)

    def restore_state(self, artifact: Artifact) -> None:
        n = self.projection_.n_pages
        self.doc_ids_ = [*self.doc_ids_[:n], *artifact.strings("later_ids")]
        self.titles_ = [*self.titles_[:n], *artifact.strings("later_titles")]
        self._forget()
        self.state_ = State(self.projection_, self.list_length, self.kappa)
        self.state_.read(artifact)
