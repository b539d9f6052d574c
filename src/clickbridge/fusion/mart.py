"""`mart:a+b`: gradient boosted trees over the scores of models and features of text and clicks (13, Section 6.5).

The trees must not learn from scores of queries that a part was fitted on: there the part remembers the answer, and the
trees would trust it too much. So the log is cut into folds. For each fold, all parts are learned on the other folds and
score the lists of this one; the trees learn from these scores. Then the parts are learned on the whole log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from clickbridge.engines.base import Engine
from clickbridge.errors import SettingError
from clickbridge.fusion.crossfit import Block, Fold, crossfit
from clickbridge.fusion.features import Columns, GraphTexts, ListFeatures
from clickbridge.fusion.fixed_arrays import check
from clickbridge.fusion.forest import Forest, damaged
from clickbridge.fusion.growing import Grown, MartSettings, grow, lightgbm_module
from clickbridge.fusion.plain_sum import plain_sum
from clickbridge.fusion.pool import FittedPooling, ranked_high, scored, summed
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.hold_back import POOL
from clickbridge.io.letor import LetorRow, write_letor
from clickbridge.io.values import stored
from clickbridge.models.candidates import Candidates, Query, at_most, behind
from clickbridge.models.composite import FittedWrapper, PartsChoices, Wrapper, identity, joined_notes
from clickbridge.models.fitted import Array, Choices, Fitted
from clickbridge.models.sfunction import FittedSFunction
from clickbridge.models.study import Study
from clickbridge.types import ResultList

ROWS_AT_ONCE = 100_000
POPULAR = 20
"""If the log has no pages, this many of the documents with the most recent clicks are added to every list. They are
what people often want if nothing matches their query."""
STRANGERS = 10
"""Random documents added to each pooled list, so that the trees also see documents that do not match."""


@stored
@dataclass(frozen=True, kw_only=True)
class MartChoices(PartsChoices):
    """The trees, None if there were too few lists to learn from, and the names of their features."""

    forest: Forest | None
    feature_names: tuple[str, ...]
    popular: int = 0
    """So many of the most clicked documents are added to what the parts find."""
    weights: tuple[float, ...] = ()
    """The weights of the parts, if their plain sum ranked lists better than the trees; none if there are trees."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedMart(FittedPooling, FittedWrapper):
    can: ClassVar[frozenset[str]] = frozenset({"search", "new queries"})

    settings: MartSettings
    choices: MartChoices
    features: ListFeatures | None
    """None if the trees use only the parts' scores."""

    def __post_init__(self) -> None:
        check((self.features is None) == (self.settings.features == "scores"), "features")
        check(self.features is None or self.features.text.n_docs == len(self.catalogue), "documents")
        forest, names = self.forest, self.feature_names
        if forest is not None and forest.n_features != len(names):
            raise damaged(f"{forest.n_features} features, {len(names)} names")

    @property
    def forest(self) -> Forest | None:
        return self.choices.forest

    @property
    def feature_names(self) -> tuple[str, ...]:
        return self.choices.feature_names

    @cached_property
    def always(self) -> Array:
        """Documents that are candidates for every query."""
        if self.features is None:
            return np.empty(0, dtype=np.int64)
        return np.sort(self.features.clicks.popular(self.choices.popular))

    @property
    def grown(self) -> bool:
        """Whether there are trees. If not, the parts' scores are added up."""
        return self.forest is not None

    def score_items(self, query: Query, items: Array, incoming: Sequence[float] | None = None) -> Array:
        return self.scores(Candidates.one(query, items, incoming))

    def scores(self, candidates: Candidates) -> Array:
        parts = [self._score(candidates.some(*bounds)) for bounds in batches(candidates.lists.lengths.tolist())]
        return np.concatenate([np.empty(0), *parts])

    def _score(self, candidates: Candidates) -> Array:
        """A long list is treated like a search: the trees rank what at least one part ranks high, and all others follow
        by the parts' scores."""
        own, whole = part_columns(self.parts, candidates)
        near = ranked_high(candidates.lists, own)
        near |= scored(own) & np.isin(candidates.items, self.always)
        if near.all():
            return self._ordered(candidates, own, whole)
        first = self._ordered(
            candidates.taking(near), *({name: column[near] for name, column in some.items()} for some in (own, whole))
        )
        together = summed(candidates.lists, own)
        starts = np.concatenate([[0], np.cumsum(near)])[candidates.lists.indptr]
        parts = [
            behind(near[a:b], first[starts[n] : starts[n + 1]], together[a:b])
            for n, (a, b) in enumerate(pairwise(candidates.lists.indptr.tolist()))
        ]
        return np.concatenate(parts)

    def _ordered(self, candidates: Candidates, own: dict[str, Array], whole: dict[str, Array]) -> Array:
        if self.forest is not None:
            scores = self.forest.predict(self._matrix(candidates, own, whole)[1])
        elif self.choices.weights:
            scores = plain_sum(candidates.lists, list(own), self.choices.weights, {**own, **whole})
        else:
            return summed(candidates.lists, own)
        return np.where(scored(own), scores, -np.inf)

    def columns(self, lists: Sequence[ResultList]) -> tuple[list[str], Array]:
        """Names of the features and their values, one row for each document of each list."""
        candidates = Candidates.of(lists, self.catalogue, self.queries)
        return self._matrix(candidates, *part_columns(self.parts, candidates))

    def _matrix(self, candidates: Candidates, own: Columns, whole: Columns) -> tuple[list[str], Array]:
        return list_matrix(self.features, candidates, own, whole)

    def write_letor(self, path: str | Path, lists: Sequence[ResultList]) -> None:
        """The features of labelled lists as a LETOR file, for other learners."""
        names, x = self.columns(lists)
        rows = ((r, n) for r in lists for n in range(len(r.results)))
        write_letor(
            path,
            names,
            (
                LetorRow(r.labels[n] if r.labels else 0.0, r.query_id, r.results[n], v)
                for (r, n), v in zip(rows, x, strict=True)
            ),
        )

    def importance(self) -> dict[str, float]:
        """Each feature's share of what the trees' splits gained, largest first."""
        if self.forest is None:
            return {}
        gains = self.forest.importance()
        shares = gains / max(gains.sum(), 1e-300)
        ordered = np.argsort(-gains, kind="stable")
        return {self.feature_names[i]: round(float(shares[i]), 5) for i in ordered if shares[i] >= 1e-5}

    def describe(self) -> dict[str, Any]:
        return {"importance": self.importance(), **super().describe()}


class Mart(Wrapper):
    """Gradient boosted trees over the scores of models and features of text and clicks: `Mart([BM25(), PLS()])`.

    Needs LightGBM: `pip install "clickbridge[mart]"`. The score of each part is one feature, next to features of text
    and clicks. The parts are cross-fitted: the trees learn from scores for queries that a part was not fitted on. If
    the trees rank worse than the plain sum of the parts, the sum is used.

    Examples
    --------
    >>> from clickbridge import BM25, Mart, PLS, example_graph
    >>> model = Mart([BM25(), PLS(dim=10)], trees=20).fit(example_graph())
    >>> model.rerank("where to sleep", ["slice", "hotels", "rooms"]).doc_ids
    ['hotels', 'rooms', 'slice']
    """

    name = "mart"
    about = "gradient boosted trees over models, text and clicks"
    paper = "13 6.5"
    Settings = MartSettings
    fitted_type: ClassVar[type[Fitted]] = FittedMart
    separate = True

    def choose(self, study: Study) -> MartChoices:
        return choose_together([self], study)[0]

    def learn(self, study: Study, choices: Choices) -> FittedMart:
        assert isinstance(choices, MartChoices)
        parts = self.learn_parts(study, choices.parts)
        features = list_features(study, self.settings, study.graph)
        return self.composed(study, choices, parts, choices.notes, features=features)

    # --- what the fitted one tells ---------------------------------------------------------------

    @property
    def fitted(self) -> FittedMart:
        found = super().fitted
        assert isinstance(found, FittedMart)
        return found

    def importance(self) -> dict[str, float]:
        """Each feature's share of what the trees' splits gained.

        Returns
        -------
        dict of str to float
            Shares by the name of the feature, largest first. Empty if there are no trees.
        """
        return self.fitted.importance()

    def columns(self, lists: Sequence[ResultList]) -> tuple[list[str], Array]:
        """The features that the trees see.

        Parameters
        ----------
        lists : sequence of ResultList
            Queries with their documents.

        Returns
        -------
        (list of str, array)
            Names of the features, and their values: one row for each document of each list.
        """
        return self.fitted.columns(lists)

    def write_letor(self, path: str | Path, lists: Sequence[ResultList]) -> None:
        """Writes the features of labelled lists as a LETOR file, for other learners.

        Parameters
        ----------
        path : str or Path
            The file to write.
        lists : sequence of ResultList
            Queries with their documents and labels.
        """
        self.fitted.write_letor(path, lists)

    # --- trees -----------------------------------------------------------------------------------

    def block(self, fold: Fold, parts: Sequence[Fitted], study: Study) -> list[Block]:
        """The features and labels of a fold's lists, with parts learned on the rest of the log; None without lists."""
        s: MartSettings = self.settings
        features = list_features(study, s, fold.held.graph)
        lists = at_most(max(s.max_lists // s.folds, 1), self._labelled(fold, parts, features), s.seed)
        if not lists:
            return []
        candidates = Candidates.of(lists, fold.rest.catalogue, fold.rest.clicked().queries)
        names, x = list_matrix(features, candidates, *part_columns(parts, candidates), fold.rest.engine)
        labels = np.array([label for r in lists for label in r.labels or ()])
        return [Block(names, x, labels, candidates.lists.lengths, fold.held.times_asked(lists))]

    def _labelled(self, fold: Fold, parts: Sequence[Fitted], features: ListFeatures | None) -> list[ResultList]:
        """Held-back pages with a click. Without pages, the parts' best documents and the clicked ones."""
        held = fold.held
        if held.shown is not None:
            return held.lists()
        if held.clicked is None or not len(held.clicked):
            return []
        keys = [held.graph.query_keys[int(i)] for i in np.unique(held.clicked.query)]
        ids = fold.rest.catalogue.doc_ids
        drawn = np.random.default_rng(self.settings.seed).integers(len(ids), size=(len(keys), STRANGERS)).tolist()
        popular = [] if features is None else features.clicks.popular(POPULAR).tolist()
        found = {key: {ids[i] for i in (*some, *popular)} for key, some in zip(keys, drawn, strict=True)}
        for part in (part for part in parts if "search" in part.abilities):
            for key, ranking in zip(keys, part.rank_many(keys, POOL), strict=True):
                found[key].update(ranking.doc_ids)
        # A clicked document that no part found would be in the list only because it was clicked, and trees would learn
        # that people want what matches nothing.
        return held.lists([lambda some, _: [sorted(found[key]) for key in some]], missed=False)

    def grow(self, blocks: Sequence[Block]) -> Grown:
        """Trees from cross-fitted lists, or the weights of the parts' plain sum if it ranks better."""
        return grow(self.settings, self.spec, part_names(self.parts), blocks)


def choose_together(marts: Sequence[Mart], study: Study) -> list[MartChoices]:
    """The same as `choose` of each model, for comparing several as in Table 4 of 13. Parts with the same spec and
    settings are learned only once."""
    lightgbm_module()
    settings_of = [mart.settings for mart in marts]
    s: MartSettings = settings_of[0]
    if any((other.folds, other.seed) != (s.folds, s.seed) for other in settings_of):
        raise SettingError("forests that share models must have the same folds and seed")
    unique = {identity(part): part for mart in marts for part in mart.parts}
    choices, folds = crossfit(list(unique.values()), study, s.folds, s.seed)
    chosen = dict(zip(unique, choices, strict=True))
    blocks: list[list[Block]] = [[] for _ in marts]
    said: list[str] = []
    for number, fold in enumerate(folds()):
        learned = dict(zip(unique, fold.parts, strict=True))
        said += joined_notes(fold.parts) if number == 0 else ()  # what they chose
        for mart, own in zip(marts, blocks, strict=True):
            parts = [learned[identity(part)] for part in mart.parts]
            own += mart.block(fold, parts, study)
    out = []
    for mart, own in zip(marts, blocks, strict=True):
        study.progress(f"growing trees of {mart.spec}")
        forest, names, weights, note = mart.grow(own)
        pooled = study.graph.impressions is None and mart.settings.features == "all" and not weights
        popular = POPULAR if pooled else 0
        choices_of = MartChoices(
            parts=tuple(chosen[identity(part)] for part in mart.parts), forest=forest, feature_names=names,
            popular=popular, weights=weights, notes=(note,),
        )  # fmt: skip
        out.append(choices_of)
    return out


def list_features(study: Study, s: MartSettings, clicks: ClickGraph) -> ListFeatures | None:
    """The features of text and clicks for lists, if the trees use more than scores. The texts of documents and queries
    are read once for all folds."""
    if s.features == "scores":
        return None
    texts = study.once(
        ("list texts", s.language, s.stop_words), lambda: GraphTexts.of(study.graph, s.language, s.stop_words)
    )
    return texts.with_clicks(clicks)


def list_matrix(
    features: ListFeatures | None, candidates: Candidates, own: Columns, whole: Columns, engine: Engine | None = None
) -> tuple[list[str], Array]:
    """The names of the features and their values: only the parts' scores, or also the features of text and clicks."""
    return scores_alone(own) if features is None else features.matrix(candidates, own, whole, engine)


def part_columns(parts: Sequence[Any], candidates: Candidates) -> tuple[dict[str, Array], dict[str, Array]]:
    """The scores of the parts, and those of S-functions also divided by the query's normaliser, which makes them
    comparable between queries."""
    own: dict[str, Array] = {}
    whole: dict[str, Array] = {}
    for name, part in zip(part_names(parts), parts, strict=True):
        if not isinstance(part, FittedSFunction):
            own[name] = part.scores(candidates)
            continue
        scores, normalised = [np.empty(0)], [np.empty(0)]
        for query, items in candidates.each():
            image = part.image(query)
            scores.append(part.score_image(image, items))
            normalised.append(scores[-1] / part.normaliser(image))
        own[name], whole[f"{name} over the query"] = np.concatenate(scores), np.concatenate(normalised)
    return own, whole


def scores_alone(own: Columns) -> tuple[list[str], Array]:
    """Only the parts' scores; NaN where a part has none."""
    columns = np.stack([np.where(np.isfinite(column), column, np.nan) for column in own.values()], axis=1)
    return list(own), columns.astype(np.float32)


def part_names(parts: Sequence[Any]) -> list[str]:
    """The specs of the parts. If several parts have the same spec, the later ones get a number."""
    specs = [part.spec for part in parts]
    counts = [specs[:i].count(spec) for i, spec in enumerate(specs)]
    return [f"{spec} {n + 1}" if n else spec for spec, n in zip(specs, counts, strict=True)]


def batches(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Splits lists into batches of about ROWS_AT_ONCE rows at most."""
    start, rows = 0, 0
    for i, length in enumerate(lengths):
        if rows and rows + length > ROWS_AT_ONCE:
            yield start, i
            start, rows = i, 0
        rows += length
    if start < len(lengths):
        yield start, len(lengths)
