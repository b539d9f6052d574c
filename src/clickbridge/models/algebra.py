"""The algebra of S-functions (Wu et al. 2011, Lemma 2): scaling, sum and product of fitted models, and
`Sum`, the model behind a spec like `bm25+pls`, whose weights are learned through `hold_back`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from clickbridge.errors import NotSupported, SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.hold_back import MIN_USABLE
from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.log.readers import LogRecord
from clickbridge.models.base import Array, Model, check_k, order
from clickbridge.models.explain import merge
from clickbridge.models.sfunction import Images, SFunction, make_index, row_norms, unit_images
from clickbridge.models.tuning import LabelledLists, coordinate_ascent
from clickbridge.models.wrapper import Parted
from clickbridge.search.index import StackedIndex
from clickbridge.types import Document, Explanation, Impression, PairCount, Ranking, ResultList

WEIGHT_GRID = (0.0, 0.03, 0.06, 0.12, 0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0, 8.0, 16.0, 32.0)


class Scaled(SFunction):
    """factor * model: the factor goes into the query map (Lemma 2, (1))."""

    name = "scaled"
    about = "a model's scores times a number"
    paper = "11R Lemma 2"

    def __init__(self, model: SFunction, factor: float) -> None:
        self.model = model
        self.factor = factor
        _take_documents(self, model)

    def map_queries(self, queries: Sequence[str]) -> Images:
        images = self.model.map_queries(queries)
        return scaled_rows(images, np.full(images.shape[0], self.factor))

    def map_documents(self, documents: Sequence[Document | str]) -> Images:
        return self.model.map_documents(documents)


class Product(Model):
    """a * b: an S-function in the product of the two spaces (Lemma 2, (3)), too large to write its maps
    down; scores are exact."""

    name = "product"
    about = "the product of two models' scores"
    paper = "11R Lemma 2"

    def __init__(self, one: SFunction, two: SFunction) -> None:
        self.one = one
        self.two = two
        self.doc_ids_, self.titles_ = one.doc_ids_, one.titles_

    def score_lists(self, lists: Sequence[ResultList]) -> list[Array]:
        pairs = zip(self.one.score_lists(lists), self.two.score_lists(lists), strict=True)
        return [_times(a, b) for a, b in pairs]

    def rank(self, query: str, k: int = 10) -> Ranking:
        check_k(k)
        scores = self.score(query, self.doc_ids_)
        best = order(self.doc_ids_, scores)
        return Ranking(tuple(hit for hit in best[:k] if np.isfinite(hit.score)))


class Composite(Parted):
    """A weighted sum of models: parts, their weights through `hold_back`, and one folder for all."""

    settings = ("weights", "seed")
    weights: str
    seed: int

    weights_: Array

    @property
    def spec(self) -> str:
        return "+".join(part.spec for part in self.parts)

    def _fit(self, graph: ClickGraph) -> None:
        for part in self.parts:
            part.watch = self.watch
        refitting = "weights" in self.tuned_
        if not refitting:
            self.tuned_["weights"] = self._learn(graph) if self.weights == "auto" else self._parse()
            self.tuned_["notes"] = self.notes_
        self.notes_ = []
        parts_are_tuned = refitting or self.weights == "auto"
        for part in self.parts:
            (part.refit if parts_are_tuned else part.fit)(graph)
            self.notes_ += [note for note in part.notes_ if note not in self.notes_]
        self.notes_ += self.tuned_["notes"]
        self.weights_ = self.tuned_["weights"]
        self._stack()

    def _stack(self) -> None:
        """What follows from the fitted parts."""

    def _parse(self) -> Array:
        try:
            weights = np.array([float(w) for w in self.weights.split(",")])
        except ValueError:
            weights = np.empty(0)
        if len(weights) != len(self.parts) or not np.isfinite(weights).all() or not weights.any():
            wanted = f"{len(self.parts)} numbers, not all 0, as 1,0.5"
            raise SettingError(f"weights of {self.spec} are {wanted}; got {self.weights!r}")
        return weights

    def _learn(self, graph: ClickGraph) -> Array:
        """Weights by nDCG@5 on held-back lists, the parts fitted on the rest."""
        held = graph.hold_back(seed=self.seed)
        for part in self.parts:
            part.fit(held.graph)
        rankers = [lambda query, k, part=part: part.rank(query, k).doc_ids for part in self.searching]
        lists = LabelledLists(held.lists(rankers))
        start = np.ones(len(self.parts))
        if len(lists) < MIN_USABLE:
            self.notes_.append(f"{self.spec}: {len(lists)} usable held-back queries are too few; weights are equal")
            return start
        columns = self.part_scores(lists.lists)
        weights, found = coordinate_ascent(start, WEIGHT_GRID, lambda w: lists.ndcg(columns @ w), scales=())
        weights = weights / weights.max()
        words = ", ".join(f"{p.spec}:{w:.3g}" for p, w in zip(self.parts, weights, strict=True))
        self.notes_.append(f"weights {words} (nDCG@5 {found:.3f} on {len(lists)} held-back lists)")
        return weights

    def update(self, log: Iterable[LogRecord] = (), docs: Iterable[Document] = (), remove: Iterable[str] = ()) -> Self:
        """Every part takes in the same; weights stay."""
        records, documents, gone = list(log), list(docs), list(remove)
        # Documents that a log brings along, or only names, must have the same number in every part.
        named = {d for r in records if not isinstance(r, Document) for d in clicked_ids(r)} - set(self.doc_ids_)
        documents = [*(r for r in records if isinstance(r, Document)), *documents]
        documents += [Document(d) for d in sorted(named - {d.doc_id for d in documents})]
        for part in self.parts:
            part.update(records, documents, gone)
        orders = [part.doc_ids_ for part in self.parts]
        if any(ids != orders[0] for ids in orders):
            raise NotSupported(f"{self.spec}: its parts keep documents in different orders; fit it again")
        self.doc_ids_, self.titles_ = self.parts[0].doc_ids_, self.parts[0].titles_
        self._forget()
        self._stack()
        return self

    def part_scores(self, lists: Sequence[ResultList]) -> Array:
        """A column of comparable scores for each part, lists end to end; 0 for what a part cannot score."""
        raise NotImplementedError

    def _report(self) -> dict[str, Any]:
        weights = {part.spec: float(w) for part, w in zip(self.parts, self.weights_, strict=True)}
        by_part = {name: {part.spec: part.report_[name] for part in self.parts} for name in ("dim", "views")}
        return {**by_part, "weights": weights, **super()._report()}

    def _write(self, writer: PartWriter) -> None:
        writer.array("weights", self.weights_)
        super()._write(writer)

    def _read(self, artifact: Artifact) -> None:
        self.weights_ = artifact.array("weights")
        self._stack()


class Sum(Composite, SFunction):
    """a + b + …: maps side by side (Lemma 2, (2)). Each part's query map is divided by a query-only
    normaliser and multiplied by its weight."""

    name = "sum"
    about = "a weighted sum of S-functions"
    paper = "11R Lemma 2"

    parts: list[SFunction]  # type: ignore[assignment]

    def __init__(self, parts: Sequence[Model], **params: Any) -> None:
        super().__init__(parts, **params)
        for part in self.parts:
            part.alone = False

    def _stack(self) -> None:
        self.scorable_ = np.logical_or.reduce([part.scorable_ for part in self.parts])
        keys: dict[str, float] = {}
        for part in self.parts:
            keys.update(zip(part.query_keys_, part.query_clicks_, strict=True))
        self.query_keys_, self.query_clicks_ = list(keys), np.array(list(keys.values()))

    @cached_property
    def images_(self) -> Images:
        return beside([part.images_ for part in self.parts])

    @cached_property
    def index(self) -> StackedIndex:
        return StackedIndex([part.index for part in self.parts], self.scorable_)

    def part_scores(self, lists: Sequence[ResultList]) -> Array:
        columns = []
        for part in self.parts:
            norms = part.normaliser(part.map_lists(lists))
            flat = np.concatenate([s / n for s, n in zip(part.score_lists(lists), norms, strict=True)])
            columns.append(np.where(np.isfinite(flat), flat, 0.0))
        return np.stack(columns, axis=1)

    def _weighted(self, maps: Sequence[Images]) -> list[Images]:
        scales = (w / part.normaliser(m) for w, part, m in zip(self.weights_, self.parts, maps, strict=True))
        return [scaled_rows(m, scale) for m, scale in zip(maps, scales, strict=True)]

    def map_lists(self, lists: Sequence[ResultList]) -> list[Images]:
        return self._weighted([part.map_lists(lists) for part in self.parts])

    def map_queries(self, queries: Sequence[str]) -> Images:
        return beside(self._weighted([part.map_queries(queries) for part in self.parts]))

    def map_documents(self, documents: Sequence[Document | str]) -> Images:
        return beside([part.map_documents(documents) for part in self.parts])

    # Similarities of two queries, or of two documents: the weighted mean of the parts' cosines.

    @cached_property
    def query_index(self) -> StackedIndex:
        return _unit_stack([part.map_queries(self.query_keys_) for part in self.parts])

    @cached_property
    def _doc_index(self) -> StackedIndex:
        return _unit_stack([part.images_ for part in self.parts])

    def unit_query(self, query: str) -> list[Images]:
        return self._weighted_units([part.map_queries([query]) for part in self.parts])

    def unit_document(self, number: int) -> list[Images]:
        return self._weighted_units([part.images_[[number]] for part in self.parts])

    def _weighted_units(self, blocks: Sequence[Images]) -> list[Images]:
        shares = self.weights_ / np.abs(self.weights_).sum()
        return [scaled_rows(unit_images(b), np.array([share])) for b, share in zip(blocks, shares, strict=True)]

    def explain(self, query: str, doc_id: str, k: int = 10) -> Explanation:
        parts = []
        for part, weight in zip(self.parts, self.weights_, strict=True):
            scale = float(weight / part.normaliser(part.map_queries([query]))[0])
            if weight and np.isfinite(part.score(query, [doc_id])[0]):
                parts.append((part.spec, scale, part.explain(query, doc_id, k)))
        return merge(query, doc_id, parts, k)


def _unit_stack(blocks: Sequence[Images]) -> StackedIndex:
    units = [unit_images(block) for block in blocks]
    present = [row_norms(block) > 0 for block in units]
    indexes = [make_index(block, there) for block, there in zip(units, present, strict=True)]
    return StackedIndex(indexes, np.logical_or.reduce(present))


def beside(blocks: Sequence[Images]) -> Images:
    """Maps side by side: dense where all are, else sparse."""
    if any(sparse.issparse(block) for block in blocks):
        return sparse.csr_array(sparse.hstack([sparse.csr_array(block) for block in blocks], format="csr"))
    return np.concatenate(blocks, axis=1)


def scaled_rows(images: Images, scale: Array) -> Images:
    if sparse.issparse(images):
        # Entry by entry: a product of matrices would drop rows times 0, and a mapped query would count as unmapped.
        out = images.copy()
        out.data = out.data * np.repeat(scale, np.diff(out.indptr))
        return out
    return images * scale[:, None].astype(images.dtype)


def clicked_ids(record: Impression | PairCount) -> list[str]:
    return record.clicks if isinstance(record, Impression) else [record.doc_id]


def _take_documents(target: SFunction, source: SFunction) -> None:
    target.doc_ids_, target.titles_ = source.doc_ids_, source.titles_
    target.images_, target.scorable_ = source.images_, source.scorable_


def _times(one: Array, two: Array) -> Array:
    both = np.isfinite(one) & np.isfinite(two)
    return np.where(both, np.where(both, one, 0.0) * np.where(both, two, 0.0), -np.inf)
