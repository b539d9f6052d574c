"""The algebra of S-functions (Wu et al. 2011, Lemma 2): `Sum`, the model behind a spec like `bm25+pls`, whose weights
are learned through `hold_back`; scaling and products of fitted models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from clickbridge.engines.base import Engine
from clickbridge.errors import SettingError
from clickbridge.graph.hold_back import MIN_USABLE, few_held
from clickbridge.graph.notes import said_by
from clickbridge.io.values import stored
from clickbridge.models.ascent import coordinate_ascent, labelled
from clickbridge.models.candidates import Candidates, Labelled, Query, without_gaps
from clickbridge.models.catalogue import KnownQueries
from clickbridge.models.change import Change
from clickbridge.models.composite import Composite, FittedComposite, PartsChoices
from clickbridge.models.explain import Contributions, merge
from clickbridge.models.fitted import Array, Choices, Fitted
from clickbridge.models.sfunction import (
    FittedSFunction,
    Image,
    Images,
    beside,
    is_mapped,
    row_image,
    scaled_image,
    scaled_rows,
)
from clickbridge.models.study import Study
from clickbridge.search.index import Bounds, Found, Index, StackedIndex
from clickbridge.settings import Seeded, setting, settings
from clickbridge.types import Document, ResultList

Mapped = list[tuple[FittedSFunction, Image, float]]
"""Parts of a sum, each with the image of a query and the factor of its scores."""
MOST_POOLED = 2000
"""Held-back queries that the whole collection is searched for beside the pages."""
WEIGHT_GRID = (0.0, 0.03, 0.06, 0.12, 0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0, 8.0, 16.0, 32.0)


@settings
class SumSettings(Seeded):
    weights: str = setting("auto", "weights of the parts, e.g. 1,0.5; auto learns them from held-back clicks")


@stored
@dataclass(frozen=True, kw_only=True)
class SumChoices(PartsChoices):
    """The weights of the parts for queries of the log and, where they differ, for new queries. A part that remembers
    clicks is of much use for the former and of little for the latter."""

    weights: tuple[float, ...]
    new_weights: tuple[float, ...] | None = None


class WeightedSum(Composite):
    """Learns the parts, and their weights on held-back clicks. Subclasses define the column of scores of a part."""

    Settings = SumSettings

    def column(self, part: Fitted, candidates: Candidates) -> Array:
        """Scores of a part on a common scale, the lists one after the other; 0 for documents that it cannot score."""
        raise NotImplementedError

    def choose(self, study: Study) -> SumChoices:
        s: SumSettings = self.settings
        if s.weights != "auto":
            return SumChoices(parts=self.choose_parts(study), weights=self._parse(s.weights))
        held, rest = study.hold_back(seed=s.seed)
        parts = self.choose_parts(rest)
        fitted = self.learn_parts(rest, parts)
        rankers = [part for part in fitted if "search" in part.abilities]
        lists = held.lists(rankers) if rankers or held.shown is not None else []
        usable = labelled(study, lists)
        if len(usable) < MIN_USABLE:
            few = few_held(len(usable), follows="weights are equal")
            return SumChoices(parts=parts, weights=(1.0,) * len(fitted), notes=(said_by(self.spec, few),))
        known = rest.clicked().queries
        if min(len(own) for own in _by_kind(lists, known)) < MIN_USABLE:
            weights, note = self._weigh(fitted, usable, "all queries")
            return SumChoices(parts=parts, weights=weights, notes=(note,))
        if held.shown is not None and rankers:
            # The engine behind the pages has matched words already, so words make little difference there. The
            # weights must also work for a search of the whole collection.
            lists += held.lists(rankers, pages=False, at_most=MOST_POOLED, seed=s.seed)
        old, new = (labelled(study, own) for own in _by_kind(lists, known))
        weights, note = self._weigh(fitted, old, "queries of the log")
        others, said = self._weigh(fitted, new, "new ones")
        return SumChoices(parts=parts, weights=weights, new_weights=others, notes=(note, said))

    def _weigh(self, fitted: Sequence[Fitted], lists: Labelled, kind: str) -> tuple[tuple[float, ...], str]:
        """The weights that rank these lists best, and lines for the user about them."""
        columns = np.stack([self.column(part, lists.candidates) for part in fitted], axis=1)
        equal = np.ones(len(fitted))
        weights, found = coordinate_ascent(equal, WEIGHT_GRID, lambda w: lists.ndcg(columns @ w), scales=())
        weights = weights / weights.max()
        words = ", ".join(f"{p.spec}:{w:.3g}" for p, w in zip(self.parts, weights, strict=True))
        said = f"weights {words} for {kind} (nDCG@5 {found:.3f} on {len(lists)} held-back lists)"
        return tuple(weights.tolist()), said

    def _parse(self, text: str) -> tuple[float, ...]:
        try:
            weights = np.array([float(w) for w in text.split(",")])
        except ValueError:
            weights = np.empty(0)
        if len(weights) != len(self.parts) or not np.isfinite(weights).all() or not weights.any():
            wanted = f"{len(self.parts)} numbers, not all 0, such as 1,0.5"
            raise SettingError(f"weights of {self.spec} are {wanted}; got {text!r}")
        return tuple(weights.tolist())

    def learn(self, study: Study, choices: Choices) -> Fitted:
        assert isinstance(choices, SumChoices)
        return self.composed(study, choices, self.learn_parts(study, choices.parts), choices.notes)


def _by_kind(lists: Sequence[ResultList], known: KnownQueries) -> tuple[list[ResultList], list[ResultList]]:
    """Splits the lists: those of known queries, and those of new queries."""
    old = [result for result in lists if known.number(result.query) >= 0]
    new = [result for result in lists if known.number(result.query) < 0]
    return old, new


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedWeightedSum(FittedComposite):
    choices: SumChoices

    @property
    def spec(self) -> str:
        return "+".join(part.spec for part in self.parts)

    @property
    def abilities(self) -> frozenset[str]:
        """A sum can do what at least one part can. It can be updated only if all parts can."""
        some = frozenset[str]().union(*(part.abilities for part in self.parts))
        every = frozenset.intersection(*(part.abilities for part in self.parts))
        return (some & self.can) - ({"update"} - every) - ({"explain"} - every)

    @property
    def weights(self) -> Array:
        return np.array(self.choices.weights)

    def weights_for(self, query: Query) -> tuple[float, ...]:
        """The parts' weights for a query: known or new."""
        new = self.choices.new_weights
        return self.choices.weights if new is None or self.queries.number(query.key) >= 0 else new

    def updated(self, change: Change, engine: Engine) -> Self:
        """Updates every part; the weights stay."""
        parts = self.updated_parts(change, engine)
        queries = parts[0].queries.joined([part.queries for part in parts[1:]])
        return replace(self, catalogue=change.after, parts=parts, queries=queries)

    def describe(self) -> dict[str, Any]:
        kinds = {"weights": self.choices.weights, "new_weights": self.choices.new_weights}
        weights = {
            name: {part.spec: float(w) for part, w in zip(self.parts, own, strict=True)}
            for name, own in kinds.items()
            if own is not None
        }
        by_part = {name: {part.spec: part.report[name] for part in self.parts} for name in ("dim", "views")}
        return {**by_part, **weights, **super().describe()}


@stored
@dataclass(frozen=True, kw_only=True, eq=False)
class FittedSum(FittedWeightedSum, FittedSFunction):
    """Maps side by side (Lemma 2, (2)). Each part's query map is divided by a query-only normaliser and multiplied
    by its weight."""

    parts: tuple[FittedSFunction, ...]
    scorable: Array = field(init=False, repr=False)
    index: StackedIndex = field(init=False, repr=False)

    def __post_init__(self) -> None:
        scorable = np.logical_or.reduce([part.scorable for part in self.parts])
        self._derive(scorable=scorable, index=StackedIndex([part.index for part in self.parts], scorable))

    @cached_property
    def images(self) -> Images:
        return beside([part.images for part in self.parts])

    # --- maps ------------------------------------------------------------------------------------

    def image(self, query: Query) -> Image:
        found = [(part.image(query), part, w) for part, w in zip(self.parts, self.weights_for(query), strict=True)]
        return [scaled_image(image, w / part.normaliser(image)) for image, part, w in found]

    def map_keys(self, queries: Sequence[Query]) -> list[Images]:
        weights = np.array([self.weights_for(query) for query in queries]).reshape(len(queries), len(self.parts))
        blocks = []
        for part, weight in zip(self.parts, weights.T, strict=True):
            norms = np.array([part.normaliser(part.image(query)) for query in queries])
            own = part.map_keys(queries)
            for block in own if isinstance(own, list) else [own]:
                blocks.append(scaled_rows(block, weight / norms))
        return blocks

    def map_documents(self, documents: Sequence[Document | str]) -> Images:
        return beside([part.map_documents(documents) for part in self.parts])

    def normaliser(self, image: Image) -> float:
        """Each part is over its own already."""
        return 1.0

    # --- scores ----------------------------------------------------------------------------------

    def score_items(self, query: Query, items: Array, incoming: Sequence[float] | None = None) -> Array:
        return self._summed(self._mapped(query), items)

    def score_new(self, query: Query, documents: Sequence[Document]) -> Array:
        return self._added(
            self._mapped(query), len(documents), lambda part, image: part.score_new_image(image, documents)
        )

    def search(self, query: Query, k: int) -> Found:
        mapped, bounds = self._mapped(query), Bounds(len(self.catalogue))
        for part, image, scale in mapped:
            part.index.add_bounds(image, scale, bounds)
        bounds.found &= self.scorable
        return bounds.best(k, lambda items: self._summed(mapped, items))

    def _mapped(self, query: Query) -> Mapped:
        """The parts that can map the query, with its image and the factor for their scores."""
        weights = self.weights_for(query)
        found = ((part, part.image(query), weight) for part, weight in zip(self.parts, weights, strict=True))
        return [(part, image, weight / part.normaliser(image)) for part, image, weight in found if is_mapped(image)]

    def _summed(self, mapped: Mapped, items: Array) -> Array:
        return self._added(mapped, len(items), lambda part, image: part.score_image(image, items))

    @staticmethod
    def _added(mapped: Mapped, n: int, score: Callable[[FittedSFunction, Image], Array]) -> Array:
        """The weighted sum of the parts' scores, which `score` computes; -inf where no part has a score."""
        total, any_score = np.zeros(n), np.zeros(n, dtype=bool)
        for part, image, scale in mapped:
            scores = score(part, image)
            finite = np.isfinite(scores)
            total[finite] += scale * scores[finite]
            any_score |= finite
        return np.where(any_score, total, -np.inf)

    def search_many(self, queries: Sequence[Query], k: int, engine: Engine | None = None) -> list[Found]:
        return Fitted.search_many(self, queries, k, engine)

    # Similarities of two queries, or of two documents: the weighted mean of what the parts say.

    @cached_property
    def _query_index(self) -> Index:
        asked = [Query(key) for key in self.queries.keys]
        return _stacked([part.compared_index(part.map_keys(asked)) for part in self.parts])

    @cached_property
    def _doc_index(self) -> Index:
        return _stacked([part.compared_index(part.images) for part in self.parts])

    def similar_image(self, image: Image) -> Image:
        return self._weighted(image)

    def document_image(self, number: int) -> Image:
        return self._weighted([row_image(part.images, number) for part in self.parts])

    def _weighted(self, images: Sequence[Image]) -> list[Image]:
        total, parts = float(np.abs(self.weights).sum()), zip(self.parts, images, self.choices.weights, strict=True)
        return [scaled_image(part.compared_image(image), weight / total) for part, image, weight in parts]

    def contributions(self, query: str, doc_id: str, k: int) -> Contributions:
        asked, parts = self.query(query), []
        number = np.array([self.catalogue.number(doc_id)])
        for part, weight in zip(self.parts, self.weights_for(asked), strict=True):
            image = part.image(asked)
            if weight and np.isfinite(part.score_image(image, number)[0]):
                parts.append((part.spec, weight / part.normaliser(image), part.contributions(query, doc_id, k)))
        return merge(parts, k)


def _stacked(indexes: Sequence[Index]) -> Index:
    """All documents that at least one part finds."""
    return StackedIndex(indexes, np.ones(indexes[0].n_items, dtype=bool))


class Sum(WeightedSum):
    """A weighted sum of S-functions, searched as one model: `Sum([BM25(), PLS()])`, or `BM25() + PLS()`.

    A sum of S-functions is an S-function, too, so it searches the whole collection. Each part's scores are first
    divided by a number that depends on the query only, so that one weight fits all queries. The weights are learned on
    held-back clicks, unless you set `weights`.

    Examples
    --------
    >>> from clickbridge import BM25, PLS, example_graph
    >>> model = (BM25() + PLS(dim=10)).fit(example_graph())
    >>> model.rank("sleep near the statue", k=2).doc_ids
    ['ferry', 'subway']
    """

    name = "sum"
    about = "a weighted sum of S-functions"
    paper = "11R Lemma 2"
    fitted_type: ClassVar[type[Fitted]] = FittedSum

    def column(self, part: Fitted, candidates: Candidates) -> Array:
        assert isinstance(part, FittedSFunction)
        return normalised_scores(part, candidates)

    def learn(self, study: Study, choices: Choices) -> FittedSum:
        fitted = super().learn(study, choices)
        assert isinstance(fitted, FittedSum)
        approximate = [part for part in fitted.parts if getattr(part.settings, "search", "exact") == "ann"]
        said = [f"{part.model}: search=ann is for a model by itself; a sum is searched exactly" for part in approximate]
        return fitted._with(notes=(*fitted.notes, *said))


def normalised_scores(part: FittedSFunction, candidates: Candidates) -> Array:
    """A part's scores divided by its normaliser, the lists one after the other; 0 where it has none."""
    out = []
    for query, items in candidates.each():
        image = part.image(query)
        out.append(without_gaps(part.score_image(image, items)) / part.normaliser(image))
    return np.concatenate(out) if out else np.empty(0)


# --- Lemma 2 on fitted models ----------------------------------------------------------------------

Scores = Callable[[str, Sequence[str]], Array]


def scaled(model: Any, factor: float) -> Scores:
    """factor * model (Lemma 2, (1)). Documents without a score still have none."""

    def score(query: str, doc_ids: Sequence[str]) -> Array:
        scores = model.score(query, doc_ids)
        return np.where(np.isfinite(scores), factor * without_gaps(scores), -np.inf)

    return score


def product(one: Any, two: Any) -> Scores:
    """a * b: an S-function in the product of the two spaces (Lemma 2, (3)), too large to write its maps down."""

    def score(query: str, doc_ids: Sequence[str]) -> Array:
        a, b = one.score(query, doc_ids), two.score(query, doc_ids)
        both = np.isfinite(a) & np.isfinite(b)
        return np.where(both, without_gaps(a) * without_gaps(b), -np.inf)

    return score
