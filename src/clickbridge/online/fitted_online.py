"""The online model as a value: an inner model, the projection, and a state of what clicks taught.

    score(x | q) = log rate(incoming rank) + a latent(x | q) + b own(q, x)

A fitted value never changes. Learning from events gives a new value: the `Learner` gives out values with newer states,
and `updated` learns from a whole log at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from clickbridge.engines.base import Engine
from clickbridge.errors import NotSupported
from clickbridge.io.secret import Secret
from clickbridge.models.candidates import Candidates, Query
from clickbridge.models.change import Change
from clickbridge.models.composite import FittedWrapper
from clickbridge.models.fitted import Fitted, as_ids, order
from clickbridge.numerics.feedback import Layout, blended, listed_pages, read_only
from clickbridge.numerics.ragged import Ragged
from clickbridge.online.blend import Blend
from clickbridge.online.choices import OnlineChoices, OnlineSettings
from clickbridge.online.entry import Entry, page_entry
from clickbridge.online.events import query_hash, query_hashes
from clickbridge.online.projection import Projection
from clickbridge.online.state import State
from clickbridge.online.steps import Rules, Steps
from clickbridge.online.working import WorkingState
from clickbridge.search.index import Found
from clickbridge.types import Document, Impression, PairCount, Ranking, ResultList, query_key

Array = np.ndarray[Any, Any]
NO_LATENT, NO_SECRET = np.empty(0), Secret()


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedOnline(FittedWrapper):
    can: ClassVar[frozenset[str]] = frozenset(
        {"search", "new queries", "update", "similar queries", "similar documents"}
    )

    settings: OnlineSettings
    choices: OnlineChoices
    projection: Projection
    rates: Array
    """How often each rank of the pages shown is clicked."""
    pages: Array
    """The page of the projection that each document of the catalogue is; -1 for one that came later."""
    reach: int
    """So many documents of the catalogue, its first ones, the inner model knows."""
    state: State
    secret: Secret = NO_SECRET
    """By which the users' weights are kept, where there are some (`per_user`)."""
    _layout: Layout = field(init=False, repr=False)
    _numbers: Array = field(init=False, repr=False)
    """The page of each document, those that came later with them; at the end -1, for a document that is not known."""
    _beside: Mapping[str, int] = field(init=False, repr=False)
    """Documents that pages showed and the catalogue does not have: their numbers go on behind it."""
    _beside_pages: Array = field(init=False, repr=False)
    _log_prior: Array = field(init=False, repr=False)
    _how: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.state.check(self.projection)
        within = self.pages.min(initial=0) >= -1 and self.pages.max(initial=-1) < self.projection.n_pages
        if not within or len(self.pages) != len(self.catalogue) or not 0 <= self.reach <= len(self.catalogue):
            raise ValueError("documents that do not fit the projection")
        how = np.array([self.blend.latent, self.blend.own, self.blend.shrink, self.blend.incoming])
        self._derive(rates=read_only(self.rates), _log_prior=read_only(np.log(self.prior)), _how=read_only(how))
        self._number_pages()

    def _number_pages(self) -> None:
        numbers, beside = np.append(self.pages, -1), dict[str, int]()
        pages: list[int] = []
        known, n = self.catalogue.numbers, self.projection.n_pages
        for page, doc_id in enumerate(self.state.later.ids, n):
            if doc_id in known:
                numbers[known[doc_id]] = page
            elif doc_id:
                beside[doc_id] = len(known) + len(pages)
                pages.append(page)
        self._derive(
            _layout=self.state.later.behind(self.projection.layout),
            _numbers=read_only(numbers),
            _beside=beside,
            _beside_pages=read_only(np.array(pages, dtype=np.int64)),
        )

    def with_state(self, state: State) -> Self:
        """The same model with a later state. Cheap if there are no new pages."""
        out = self._with(state=state)
        if state.later is not self.state.later:
            out._number_pages()
        return out

    # --- what it is made of ----------------------------------------------------------------------

    @property
    def inner(self) -> Fitted:
        part: Fitted = self.parts[0]
        return part

    @property
    def blend(self) -> Blend:
        return self.choices.blend

    @property
    def pairs(self) -> str:
        return self.choices.pairs

    @property
    def prior(self) -> Array:
        """How often each rank is clicked, where the rank is that of the inner model. This is the part of the score that
        comes from the order of the list, before anything is learned."""
        return self.rates if self.choices.prior is None else self.choices.prior

    @property
    def rules(self) -> Rules:
        how = self.settings
        return Rules(self.projection, self.rates, self.pairs, how.list_length, how.kappa, how.teaching == "selected")

    @property
    def abilities(self) -> frozenset[str]:
        return (self.can & self.inner.abilities) | {"update"}

    @property
    def doc_ids(self) -> list[str]:
        return [*self.catalogue.doc_ids, *self._beside] if self._beside else self.catalogue.doc_ids

    def describe(self) -> dict[str, Any]:
        b = self.blend
        return {
            "dim": int(self.projection.layout.dims.max(initial=0)),
            "weights": {"incoming": b.incoming, "latent": b.latent, "own": b.own, "shrink": b.shrink},
            "residual": self.projection.residual,
            "projection": self.projection.id,
            **super().describe(),
        }

    # --- scores ----------------------------------------------------------------------------------

    def items(self, doc_ids: Sequence[str]) -> Array:
        """Numbers of documents, including those that were only seen on result pages."""
        ids = as_ids(doc_ids)
        found = self.catalogue.items(ids)
        if self._beside:
            for i in np.flatnonzero(found < 0).tolist():
                found[i] = self._beside.get(ids[i], -1)
        return found

    def _for_inner(self, items: Array) -> Array:
        known_to_all = self.reach == len(self.catalogue) and not self._beside
        return items if known_to_all else np.where(items < self.reach, items, -1)

    def score_items(self, query: Query, items: Array, incoming: Sequence[float] | None = None) -> Array:
        return self._score(query, items, incoming)

    def _score(self, query: Query, items: Array, incoming: Sequence[float] | None = None, user: int = 0) -> Array:
        return self._learned(query, items, self.inner.score_items(query, self._for_inner(items), incoming), user)

    def _score_mixed(self, query: Query, items: Array, documents: Sequence[Document | str], user: int = 0) -> Array:
        """The inner model scores new documents if it can; then the part learned from pages is added."""
        return self._learned(query, items, self.inner._score_mixed(query, self._for_inner(items), documents), user)

    def score_for(self, user: int, query: str, documents: Sequence[Document | str]) -> Array:
        """Like `score_documents`, with the weights of one user, given as a hash (`per_user`)."""
        items = self.items([d if isinstance(d, str) else d.doc_id for d in documents])
        return self._score_mixed(self.query(query), items, documents, user)

    def _learned(self, query: Query, items: Array, scores: Array, user: int) -> Array:
        """The inner model's scores, with the learned part added."""
        given = np.asarray(scores, dtype=np.float64)
        indptr = np.array([0, len(items)])
        queries = np.array([query_hash(query.key)], dtype=np.uint64)
        return self._blended(indptr, np.argsort(-given, kind="stable"), items, given, queries, user)

    def scores(self, candidates: Candidates) -> Array:
        given = self.inner.scores(replace(candidates, items=self._for_inner(candidates.items)))
        lists, queries = candidates.lists, query_hashes(candidates.keys)
        return self._blended(lists.indptr, lists.order(given), candidates.items, given, queries)

    def _blended(
        self, indptr: Array, places: Array, items: Array, given: Array, queries: Array, user: int = 0
    ) -> Array:
        """The scores of lists, one after the other. `places` sorts them by their `given` scores."""
        s, pages, latent = self.state, np.empty(len(items), dtype=np.int64), NO_LATENT
        listed_pages(places, items, self._numbers, self._beside_pages, pages)
        if self.blend.latent:
            latent = s.latent(self._layout, indptr, pages, self.settings.list_length, self.blend.shrink)
            if user and self.settings.per_user:
                own = s.of_user(self._layout, user, pages, self.blend.shrink)
                latent += self.settings.per_user * own
        out = np.empty(len(items))
        blended(
            indptr, places, pages, given, latent, queries, s.keys, s.values, s.scale, self._how, self._log_prior, out
        )  # fmt: skip
        return out

    def rerank_for(self, user: str, query: str, doc_ids: Sequence[str]) -> Ranking:
        """Like `rerank`, with the weights that this user's own clicks have taught (`per_user`)."""
        ids = as_ids(doc_ids)
        return order(ids, self._score(self.query(query), self.items(ids), user=self.secret.user(user)), self.title)

    def score_lists(self, lists: Sequence[ResultList]) -> list[Array]:
        candidates = Candidates.of(lists, self.catalogue, self.queries)
        if self._beside:
            items = self.items([doc_id for result in lists for doc_id in result.results])
            candidates = replace(candidates, items=items)
        return candidates.split(self.scores(candidates))

    # --- search ----------------------------------------------------------------------------------

    def search(self, query: Query, k: int) -> Found:
        return self.search_many([query], k)[0]

    def search_many(self, queries: Sequence[Query], k: int, engine: Engine | None = None) -> list[Found]:
        """Re-ranks what the inner model finds."""
        if "search" not in self.abilities:
            raise NotSupported(f"{self.spec} re-ranks given lists; it cannot search the collection by itself")
        found = [items for items, _ in self.inner.search_many(queries, max(k, self.settings.list_length), engine)]
        if not found:
            return []
        lists = Ragged.of_lengths([len(items) for items in found])
        candidates = Candidates(queries, lists, np.concatenate(found))
        return [best_of(*pair, k) for pair in zip(found, candidates.split(self.scores(candidates)), strict=True)]

    def similar_queries(self, query: str, k: int = 3, min_clicks: int = 1) -> list[tuple[str, float]]:
        return self.inner.similar_queries(query, k, min_clicks)

    def similar_documents(self, doc_id: str, k: int = 3) -> Ranking:
        known = doc_id not in self._beside and self.catalogue.number(doc_id) < self.reach
        return self.inner.similar_documents(doc_id, k) if known else Ranking()

    # --- learning --------------------------------------------------------------------------------

    def working(self) -> WorkingState:
        """A working state, to which events can be added."""
        return WorkingState(self.rules, self.state, self._pages_of)

    def _pages_of(self, doc_ids: Sequence[str]) -> Array:
        return self._numbers[self.catalogue.items(doc_ids)]

    def entry(self, page: Impression | Mapping[str, Any], amount: float = 1.0, **more: Any) -> Entry:
        """A page as an event, normalised and checked."""
        s = self.settings
        how: dict[str, Any] = {"longest": s.list_length, "secret": self.secret if s.per_user else None, **more}
        return page_entry(page, amount, known=self.queries, **how)

    def updated(self, change: Change, engine: Engine) -> Self:
        """Updates the documents of the inner model, which does not learn from these clicks. Then learns the log's pages
        and clicks."""
        gone = frozenset(d for d, kept in zip(change.before.doc_ids, change.kept, strict=True) if not kept)
        later = replace(self.state.later, ids=tuple("" if d in gone else d for d in self.state.later.ids))
        fresh = np.full(len(change.after) - int(change.kept.sum()), -1, dtype=np.int64)
        parts = self._inner_with(change, engine)
        base = replace(
            self,
            catalogue=change.after,
            parts=parts,
            reach=len(change.after) if parts is not self.parts else self.reach,
            queries=change.merged(self.queries),
            pages=np.concatenate([self.pages[change.kept], fresh]),
            state=replace(self.state, later=later),
        )
        working = base.working()
        for entry in base._entries(change):
            working.add(Steps(working, gone).step(entry))
        return base.with_state(working.state())

    def _inner_with(self, change: Change, engine: Engine) -> tuple[Any, ...]:
        """The inner model with the change's documents, but without its clicks."""
        if not change.documents and change.kept.all():
            return self.parts
        try:
            return (self.inner.updated(replace(change, clicks=Counter(), records=()), engine),)
        except NotSupported:
            # A document known only from clicks has no text, so the inner model cannot use it.
            if any(d.fields or d.vectors for d in change.documents) or not change.kept.all():
                raise
            return self.parts

    def _entries(self, change: Change) -> Iterator[Entry]:
        for record in change.records:
            if isinstance(record, Impression):
                yield from self.entries(record)
            elif isinstance(record, PairCount) and record.clicks:
                yield self._click(record, record.doc_id, float(record.clicks))

    def entries(self, page: Impression) -> list[Entry]:
        """A page as events: one event, or one for each click if it is not known what was shown."""
        if page.results:
            return [self.entry(page)]
        return [self._click(page, doc_id, 1.0) for doc_id in page.clicks]

    def _click(self, record: Impression | PairCount, doc_id: str, amount: float) -> Entry:
        """A click without a page becomes an event on the list that the inner model finds. If the clicked document is
        not on that list, it is added at the end."""
        found: list[str] = []
        if "search" in self.inner.abilities:
            items, _ = self.inner.search(Query(query_key(record.query, record.query_id)), self.settings.list_length)
            found = [self.catalogue.doc_ids[i] for i in items.tolist()]
        results = found if doc_id in found else [*found, doc_id]
        page = Impression(record.query, results, [doc_id], record.query_id, record.user, record.time)
        return self.entry(page, amount, longest=len(results))


def best_of(items: Array, scores: Array, k: int) -> Found:
    """The k items with the highest scores, best first. Items without a score are left out."""
    places = np.argsort(-scores, kind="stable")[:k]
    places = places[scores[places] > -np.inf]
    return items[places], scores[places]
