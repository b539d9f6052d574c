"""What the robust and the pairwise model share: kernels and preferences from a GRAPH, and one small model that is
trained for each query (Wu et al. 2011, Section 6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from clickbridge.errors import InputError
from clickbridge.io.values import expect
from clickbridge.models.candidates import Query
from clickbridge.models.explain import Contributions, Feature, Part, contributions
from clickbridge.models.fitted import Array, Choices, Fitted
from clickbridge.models.model import Model
from clickbridge.models.sfunction import row_image
from clickbridge.models.study import Study
from clickbridge.search.index import Found, Index, best, make_index
from clickbridge.settings import ADVANCED, Printed, Seeded, language_setting, setting, settings
from clickbridge.skernel.click_kernel import CLICK_KERNELS
from clickbridge.skernel.document_kernel import DocumentKernel, document_rows
from clickbridge.skernel.families import Family, family
from clickbridge.skernel.kernel_choices import Choice, KernelChoices, chosen
from clickbridge.skernel.learn import LOSSES
from clickbridge.skernel.neighbourhood import Neighbourhood, QueryModel, Size
from clickbridge.skernel.query_kernel import Asked, QueryKernel
from clickbridge.skernel.training_data import TAUGHT_BY_CLICKS, KernelData, KernelTraining, check_clicks, gather
from clickbridge.types import Ranking


@settings
class KernelSettings(Printed, Seeded):
    printed: ClassVar[Mapping[str, Any]] = {
        "preference": "skip-above", "query_kernel": "click", "click_kernel": "pearson-union", "doc_kernel": "titles",
        # Not in the paper: enough neighbours for its 200 preferences.
        "n_neighbours": "50",
        "ridge": "1", "gap": 1e-6,
    }  # fmt: skip

    preference: str = setting(
        "auto",
        "which document of a page was preferred to which; auto looks at whether the order of pages matters",
        choices=("auto", "skip-above", "skip-next", "last-click", "clicked", "counts"),
    )
    query_kernel: str = setting(
        "auto",
        "similarity of queries: weights of click, word, char, latent, e.g. click:1,word:1; auto chooses on held-back "
        "clicks",
    )
    click_kernel: str = setting(
        "pearson", "how the clicks of two queries are compared", choices=CLICK_KERNELS, group=ADVANCED
    )
    doc_kernel: str = setting(
        "auto",
        "similarity of documents: titles, words, base (the base model's vectors) or views, e.g. word:title,char; auto "
        "chooses on held-back clicks",
        group=ADVANCED,
    )
    n_neighbours: str = setting("auto", "how many similar queries are used; auto chooses on held-back clicks")
    n_pairs: int = setting(200, "the most preferences taken from similar queries", 1, 10_000, group=ADVANCED)
    ridge: str = setting(
        "auto", "lambda, the weight of the regulariser; auto chooses on held-back clicks", group=ADVANCED
    )
    loss: str = setting("hinge", "loss of a preference", choices=tuple(LOSSES), group=ADVANCED)
    gap: float = setting(
        0.01, "a query's model is trained until the duality gap is this share of the objective", 1e-9, 1, group=ADVANCED
    )
    min_clicks: int = setting(1, "minimum clicks of a query-document pair; pairs with fewer are left out", 1, 1e9)
    language: str = language_setting()


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedKernel(Fitted):
    """The known queries with their kernel and their preferences. For each search, a small model is trained in about a
    millisecond, and not kept. Subclasses define what multiplies the kernel: g of points and of documents."""

    can: ClassVar[frozenset[str]] = frozenset(
        {"search", "new queries", "explain", "similar queries", "similar documents"}
    )

    settings: KernelSettings
    choices: Any  # KernelChoices of the model's own kind
    kernel: QueryKernel
    training: KernelTraining
    doc_rows: sparse.csr_array | None
    """Unit rows that documents are compared by; None where those of a part serve."""
    documents: DocumentKernel = field(init=False, repr=False)

    def check_stored(self) -> None:
        super().check_stored()
        n, training = len(self.queries), self.training
        if len(self.kernel.features) != n or len(training.has_pairs) != n:
            raise ValueError("preferences of other queries")
        n_docs = self.kernel.features.clicks.shape[1]
        if n_docs > len(self.catalogue) or (self.doc_rows is not None and self.doc_rows.shape[0] != n_docs):
            raise ValueError("clicks on other documents")
        expect("documents of points", training.point_doc, (None,), "iu", n_docs)
        base: Any = getattr(self, "base_scores", None)
        if base is not None and len(base.points) != len(training.point_doc):
            raise ValueError("scores of other points")

    family: Family = field(init=False, repr=False)

    def __post_init__(self) -> None:
        choice = self.choice
        self._derive(documents=self._document_kernel(), family=family(choice.family, choice.rho))

    @property
    def choice(self) -> Choice:
        choice: Choice = self.choices.choice
        return choice

    @property
    def responses(self) -> sparse.csr_array:
        """The clicks of the known queries that the kernel uses, one row for each query."""
        return self.kernel.features.clicks

    def _document_kernel(self) -> DocumentKernel:
        assert self.doc_rows is not None, "only a model with a base may have documents compared by it"
        return DocumentKernel.of(self.doc_rows)

    def warm(self) -> None:
        """Answers a query with preferences, which trains a model, and a new one, which is read from its words."""
        super().warm()
        self.kernel.asked("a", -1)
        key = self.queries.keys[int(np.argmax(self.training.has_pairs))] if len(self.queries) else ""
        self.score_items(Query(key), np.zeros(min(len(self.catalogue), 1), dtype=np.int64))

    # --- one model a query -----------------------------------------------------------------------

    def point_factors(self, points: Array) -> Array:
        """g of training points."""
        raise NotImplementedError

    def factors(self, query: Query, items: Array) -> Array:
        """g of the documents of a list; -inf for a document without one."""
        raise NotImplementedError

    def without_neighbours(self, query: Query, items: Array) -> Array:
        """Scores for a query without a similar known query that has preferences."""
        return np.full(len(items), -np.inf)

    def asked(self, query: Query) -> Asked:
        return self.kernel.asked(query.key, self.queries.number(query.key))

    def neighbourhood(self, query: Query, items: Array) -> Neighbourhood | None:
        """The preferences of similar queries, and the similarity of `items` to their documents; None if there is no
        similar query with preferences."""
        size = Size(int(self.choice.n_neighbours), self.settings.n_pairs)
        # An unknown document takes the row of the first one here; it has no g, so it gets no score.
        known = np.maximum(items, 0)
        return Neighbourhood.of(self.asked(query), self.kernel, self.documents, self.training, size, known)

    def trained(self, found: Neighbourhood) -> QueryModel:
        """The small model trained on a query's neighbourhood."""
        factor, choice = self.point_factors(found.points), self.choice
        s = self.settings
        return found.trained(self.family, factor, choice.ridge, s.loss, choice.prior, s.gap)

    def falls_back(self, query: str) -> bool:
        """Whether there is no similar known query with preferences."""
        near, _ = self.kernel.neighbours(self.asked(self.query(query)), 1, self.training.has_pairs)
        return not len(near)

    # --- scores and search -----------------------------------------------------------------------

    def score_items(self, query: Query, items: Array, incoming: Sequence[float] | None = None) -> Array:
        return self.score_within(self.neighbourhood(query, items), query, items)

    def score_within(self, found: Neighbourhood | None, query: Query, items: Array) -> Array:
        """The scores of a list for a query whose neighbourhood is given."""
        if found is None:
            return self.without_neighbours(query, items)
        factors, scores = self.factors(query, items), np.full(len(items), -np.inf)
        values = self.trained(found).values(found.k_items)
        return np.multiply(factors, values, out=scores, where=np.isfinite(factors))

    def worth_scoring(self, query: Query, found: Neighbourhood, k: int) -> Array:
        """The documents that a search scores: those in the neighbours' preferences."""
        return found.docs

    def search(self, query: Query, k: int) -> Found:
        found = self.neighbourhood(query, np.empty(0, dtype=np.int64))
        if found is None:
            return self.search_without_neighbours(query, k)
        items = np.unique(self.worth_scoring(query, found, k))
        scores = self.score_within(found.scoring(self.documents, items), query, items)
        numbers, values = best(scores, np.isfinite(scores), k)
        return items[numbers], values

    def search_without_neighbours(self, query: Query, k: int) -> Found:
        return np.empty(0, dtype=np.int64), np.empty(0)

    # --- similarities ----------------------------------------------------------------------------

    def similar_queries(self, query: str, k: int = 3, min_clicks: int = 1) -> list[tuple[str, float]]:
        """Compares queries by k_Q, which combines clicks and text."""
        asked = self.asked(self.query(query))
        near, values = self.kernel.neighbours(asked, k + 1, self.queries.may_be_shown(min_clicks))
        found = ((i, v) for i, v in zip(near.tolist(), values.tolist(), strict=True) if i != asked.number)
        return self.queries.nearest(found, k, min_clicks)

    @cached_property
    def _doc_indexes(self) -> list[Index]:
        """An index for each block of the rows by which documents are compared."""
        return [make_index(rows, self.documents.present) for rows in self.documents.blocks]

    def similar_documents(self, doc_id: str, k: int = 3) -> Ranking:
        """Compares documents by k_D."""
        number, kernel = self.catalogue.number(doc_id), self.documents
        total, found = np.zeros(len(self.catalogue)), np.zeros(len(self.catalogue), dtype=bool)
        for rows, index in zip(kernel.blocks, self._doc_indexes, strict=True):
            index.add_all(row_image(rows, number), 1.0, total, found)
        found[number] = False
        values = total * kernel.scale * kernel.scale[number]
        return self.ranking(best(values, found & (values > 0), k))

    def contributions(self, query: str, doc_id: str, k: int) -> Contributions:
        """Which documents of which similar queries contribute to the score."""
        asked, number = self.query(query), self.catalogue.number(doc_id)
        factor = float(self.factors(asked, np.array([number]))[0])
        if not np.isfinite(factor):
            raise InputError(f"{self.spec} has no score for {doc_id!r}: there is nothing to explain")
        found = self.neighbourhood(asked, np.array([number]))
        if found is None:
            return self.contributions_without_neighbours(query, doc_id, k)
        model = self.trained(found)
        values = factor * model.parts(found.k_items[0])
        parts = [
            Part(_alike(likeness), Feature("preferred", self.catalogue.named(int(model.docs[doc]))), float(value))
            for likeness, doc, value in zip(model.likeness, model.doc_of, values, strict=True)
        ]
        if model.prior:
            parts.insert(0, Part(Feature("query", query), Feature("base", ""), factor * model.prior))
        return contributions(parts, k)

    def contributions_without_neighbours(self, query: str, doc_id: str, k: int) -> Contributions:
        raise InputError(f"{self.spec}: {query!r} resembles no known query; there is nothing to explain")

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "views": list(self.choice.query_weights), "weights": self.choice.as_dict()}


def _alike(likeness: float) -> Feature:
    """Names a known query by its similarity only: its text is not shown to others."""
    return Feature("alike", f"{likeness:.2f}")


class KernelModel(Model):
    """Base of kernel models. Subclasses define which rows of documents can be chosen, and further fitted fields."""

    Settings: ClassVar[type[KernelSettings]] = KernelSettings

    def doc_kernels(self, study: Study) -> tuple[str, ...]:
        """The document kernels that `doc_kernel=auto` chooses from; the first is the default."""
        return ("words", "titles") if study.graph.field_names else ("click",)

    def document_rows(self, study: Study, name: str) -> sparse.csr_array | None:
        """The features that this kernel compares documents by, one row each."""
        return document_rows(study, name, self.settings.language)

    # --- choosing --------------------------------------------------------------------------------

    def choose(self, study: Study) -> KernelChoices:
        self.settings  # noqa: B018 - refused here, before any work, where a setting is out of its range
        check_clicks(study.graph)
        return chosen(self, study)

    def choices(self, study: Study, choice: Choice, *notes: str) -> KernelChoices:
        """A choice as a record to store, with the choices of the parts on this study."""
        return KernelChoices(choice=choice, notes=notes)

    def taught_parts(self, choice: Choice) -> frozenset[str]:
        """The parts of k_Q that learn from clicks and have a weight above 0."""
        weights = choice.query_weights
        return frozenset(name for name in TAUGHT_BY_CLICKS if weights.get(name, 0.0) > 0)

    # --- learning --------------------------------------------------------------------------------

    def learn(self, study: Study, choices: Choices) -> FittedKernel:
        assert isinstance(choices, KernelChoices)
        check_clicks(study.graph)
        return self.assembled(study, choices, self.learned_parts(study, choices))

    def learned_parts(self, study: Study, choices: KernelChoices) -> tuple[Fitted, ...]:
        """The fitted models inside this one, if it has any."""
        return ()

    def material(self, study: Study, choice: Choice, parts: tuple[Fitted, ...]) -> KernelData:
        """The preferences and features that the choice learns from."""
        s: KernelSettings = self.settings
        base = parts[0] if parts else None
        return gather(study, self.taught_parts(choice), s.preference, s.language, s.seed, base, s.min_clicks)

    def query_kernel_of(self, study: Study, choice: Choice, parts: tuple[Fitted, ...]) -> QueryKernel:
        """How similar two queries are, as chosen."""
        features = self.material(study, choice, parts).features
        return QueryKernel(features, choice.query_weights, self.settings.click_kernel)

    def assembled(self, study: Study, choices: KernelChoices, parts: tuple[Fitted, ...]) -> FittedKernel:
        """The fitted value, from the study's data and the fitted parts."""
        choice = choices.choice
        material = self.material(study, choice, parts)
        said = [note for part in parts for note in part.notes]
        kind: Any = self.fitted_type
        fitted: FittedKernel = kind(
            model=self.name, settings=self.settings, catalogue=study.catalogue, choices=choices,
            queries=material.queries, notes=(*said, *choices.notes, f"{self.spec}: {material.note}"),
            kernel=self.query_kernel_of(study, choice, parts), training=material.training,
            doc_rows=self.document_rows(study, choice.doc_kernel), **self.more_fields(parts, material),
        )  # fmt: skip
        return fitted

    def more_fields(self, parts: tuple[Fitted, ...], material: KernelData) -> dict[str, object]:
        """Fields of the fitted value that only this kind of kernel model has."""
        return {}
