"""`mart:a+b`: gradient boosted trees over the scores of models and what text and clicks say (13, Section 6.5).

The trees must not learn from scores of queries that a component was fitted on: there it remembers the answer,
and the trees would trust it blindly. So the log is cut into folds; for each, all components are fitted on the
rest and score the fold's lists; the trees learn from those. Then the components are fitted on everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from clickbridge.errors import MissingPart
from clickbridge.fusion.crossfit import Block, crossfit, times_asked
from clickbridge.fusion.features import ListFeatures
from clickbridge.fusion.flat import FlatLists
from clickbridge.fusion.linear import standardised
from clickbridge.fusion.pool import Pooling
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.hold_back import MIN_USABLE, POOL, HoldBack, Ranker
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.io.letor import LetorRow, write_letor
from clickbridge.models.base import Array, Model
from clickbridge.models.tuning import at_most
from clickbridge.models.wrapper import Wrapper
from clickbridge.types import Ranking, ResultList

ROWS_AT_ONCE = 100_000
STRANGERS = 10
"""Documents drawn at random into each pooled list, so that trees have seen what matches nothing."""
GRADES = 4
"""Shares of clicks become whole grades up to this for lambdarank."""


class Mart(Pooling, Wrapper):
    """Each part is one feature, beside those of `fusion/features.py`."""

    name = "mart"
    about = "gradient boosted trees over models, text and clicks"
    paper = "13 6.5"
    settings = (
        "objective", "trees", "learning_rate", "leaves", "leaf_rows", "feature_share", "monotone", "folds",
        "max_lists", "language", "stop_words", "seed",
    )  # fmt: skip
    defaults: ClassVar[dict[str, object]] = {"learning_rate": 0.08}
    separate = True

    objective: str
    trees: int
    learning_rate: float
    leaves: int
    leaf_rows: int
    feature_share: float
    monotone: bool
    folds: int
    max_lists: int
    language: str
    stop_words: str
    seed: int

    features_: ListFeatures
    feature_names_: list[str]
    trees_: str
    """The trees in LightGBM's text format; empty where there were too few lists to learn from."""

    lesson: Sequence[Block] | None = None
    """What `together` has cross-fitted for several forests; they are then prepared, and their parts fitted, already."""

    def prepare(self, graph: ClickGraph) -> None:
        """All that `block` needs beside fitted parts."""
        _lightgbm()
        self._forget()
        self.doc_ids_ = graph.doc_ids
        self.features_ = ListFeatures.fit(graph, self.language, self.stop_words)

    def _fit(self, graph: ClickGraph) -> None:
        if self.lesson is None:
            self.prepare(graph)
        if "trees" not in self.tuned_:
            self.tuned_["trees"] = self._learn(self._blocks(graph) if self.lesson is None else self.lesson)
        self.trees_, self.feature_names_ = self.tuned_["trees"]
        for part in self.parts:
            if self.lesson is None:
                part.refit(graph)
            self._take_notes(part)

    def _take_notes(self, part: Model) -> None:
        self.notes_ += [note for note in part.notes_ if note not in self.notes_]

    def _blocks(self, graph: ClickGraph) -> list[Block]:
        out: list[Block] = []
        for number, held in enumerate(crossfit(self.parts, graph, self.folds, self.seed)):
            for part in self.parts if number == 0 else ():
                self._take_notes(part)  # what it tuned
            out += self.block(held)
        return out

    def block(self, held: HoldBack) -> list[Block]:
        """Features and labels of the fold's lists, the parts having seen only its rest; none without lists."""
        lists = at_most(max(self.max_lists // self.folds, 1), self._labelled(held), self.seed)
        if not lists:
            return []
        flat = FlatLists.of(lists, self._doc_numbers)
        columns = self.features_.with_clicks(held.graph).columns(flat, self.parts)
        labels = np.array([label for r in lists for label in r.labels or ()])
        names = list(columns)
        return [Block(names, as_matrix(columns, names), labels, flat.lengths, times_asked(held, lists))]

    def _learn(self, blocks: Sequence[Block]) -> tuple[str, list[str]]:
        """Trees from cross-fitted features, and the names of those."""
        n_lists = sum(len(block.lengths) for block in blocks)
        if n_lists < MIN_USABLE:
            self.notes_.append(
                f"{self.spec}: {n_lists} usable held-back lists are too few for trees; parts count equally"
            )
            return "", []
        names = blocks[0].names
        self.notes_.append(
            f"{self.spec}: {self.trees} trees from {n_lists:,} cross-fitted lists, {len(names)} features"
        )
        x, labels, lengths, asked = (
            np.concatenate(column) for column in zip(*(block[1:] for block in blocks), strict=True)
        )
        return self._grow(x, labels, lengths, asked, names), names

    def _labelled(self, held: HoldBack) -> list[ResultList]:
        """Held-back pages with a click; without pages, the parts' pooled best and what was clicked."""
        if held.shown is not None:
            return held.lists()
        if held.clicked is None or not len(held.clicked):
            return []
        keys = [held.graph.query_keys[int(i)] for i in np.unique(held.clicked.query)]
        rankers = [remembered(keys, part.rank_many(keys, POOL)) for part in self.searching]
        rng = np.random.default_rng(self.seed)
        drawn = [set(rng.choice(self.doc_ids_, STRANGERS)) for _ in keys]
        strangers = dict(zip(keys, drawn, strict=True))
        pooled = (
            found_only(r, rankers, strangers[r.query])
            for r in held.lists([*rankers, lambda key, _: sorted(strangers[key])])
        )
        return [r for r in pooled if r.labels and 0 < np.count_nonzero(r.labels) < len(r.labels)]

    def _grow(self, x: Array, labels: Array, lengths: Array, asked: Array, names: Sequence[str]) -> str:
        lightgbm = _lightgbm()
        ranking = self.objective == "lambdarank"
        parameters = {
            "objective": self.objective,
            "learning_rate": self.learning_rate,
            "num_leaves": self.leaves,
            "min_data_in_leaf": self.leaf_rows,
            "feature_fraction": self.feature_share,
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
            "verbose": -1,
        }
        if self.monotone:
            own = {part.spec for part in self.parts}
            parameters["monotone_constraints"] = [int(name in own) for name in names]
        grades = np.ceil(GRADES * labels) if ranking and (labels % 1).any() else labels
        weights = np.repeat(asked / asked.mean(), lengths)
        data = lightgbm.Dataset(x, grades, weight=weights, group=lengths if ranking else None)
        return str(lightgbm.train(parameters, data, self.trees).model_to_string())

    @cached_property
    def _booster(self) -> Any:
        return _lightgbm().Booster(model_str=self.trees_)

    # --- using -----------------------------------------------------------------------------------

    def columns(self, lists: Sequence[ResultList]) -> tuple[list[str], Array]:
        """Names of the features and their values, one row for each document of each list."""
        columns = self.features_.columns(FlatLists.of(lists, self._doc_numbers), self.parts)
        names = self.feature_names_ or list(columns)
        return names, as_matrix(columns, names)

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

    def score_lists(self, lists: Sequence[ResultList]) -> list[Array]:
        out: list[Array] = []
        for start, stop in batches([len(result.results) for result in lists]):
            out += self._score(lists[start:stop])
        return out

    def _score(self, lists: Sequence[ResultList]) -> list[Array]:
        per_part = [part.score_lists(lists) for part in self.parts]
        known = [np.logical_or.reduce([np.isfinite(s) for s in scores]) for scores in zip(*per_part, strict=True)]
        if self.trees_:
            _, x = self.columns(lists)
            flat = self._booster.predict(x) if len(x) else np.empty(0)
            ends = np.cumsum([len(result.results) for result in lists])
            found = np.split(flat, ends[:-1])
        else:
            found = [
                np.sum([standardised(scores) for scores in of_parts], axis=0)
                for of_parts in zip(*per_part, strict=True)
            ]
        return [np.where(there, scores, -np.inf) for there, scores in zip(known, found, strict=True)]

    def importance(self) -> dict[str, float]:
        """Each feature's share of what the trees' splits gained, largest first."""
        if not self.trees_:
            return {}
        gains = self._booster.feature_importance("gain")
        shares = gains / max(gains.sum(), 1e-300)
        ordered = np.argsort(-gains, kind="stable")
        return {self.feature_names_[i]: round(float(shares[i]), 5) for i in ordered if shares[i] >= 1e-5}

    # --- files -----------------------------------------------------------------------------------

    def _report(self) -> dict[str, Any]:
        return {"importance": self.importance(), **super()._report()}

    def _write(self, writer: PartWriter) -> None:
        super()._write(writer)
        self.features_.write(writer)
        writer.strings("feature_names", self.feature_names_)
        writer.strings("trees", [self.trees_])

    def _read(self, artifact: Artifact) -> None:
        self.features_ = ListFeatures.read(artifact, self.language, self.stop_words)
        self.feature_names_ = artifact.strings("feature_names")
        self.trees_ = artifact.strings("trees")[0]


def as_matrix(columns: dict[str, Array], names: Sequence[str]) -> Array:
    return np.stack([columns[name] for name in names], axis=1, dtype=np.float32, casting="same_kind")


def remembered(keys: Sequence[str], rankings: Sequence[Ranking]) -> Ranker:
    """A ranker that looks up what was found for all queries at once."""
    found = dict(zip(keys, rankings, strict=True))
    return lambda key, k: found[key].doc_ids[:k]


def found_only(result: ResultList, rankers: Sequence[Ranker], strangers: set[str]) -> ResultList:
    """The list without clicked documents that nobody found. They would stand there only because they were
    clicked, and trees would learn that what matches nothing is what people want."""
    found = strangers.union(*(rank(result.query, POOL) for rank in rankers))
    kept = [(d, label) for d, label in zip(result.results, result.labels or [], strict=True) if d in found]
    return ResultList(result.query_id, result.query, [d for d, _ in kept], [label for _, label in kept])


def batches(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Cuts lists so that no batch has many more rows than ROWS_AT_ONCE."""
    start, rows = 0, 0
    for i, length in enumerate(lengths):
        if rows and rows + length > ROWS_AT_ONCE:
            yield start, i
            start, rows = i, 0
        rows += length
    if start < len(lengths):
        yield start, len(lengths)


def _lightgbm() -> Any:
    try:
        import lightgbm
    except ImportError:
        raise MissingPart("mart needs LightGBM: pip install 'clickbridge[mart]'") from None
    return lightgbm
