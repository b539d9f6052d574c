"""Latent semantic indexing, on the document-term matrix and on the query-document click matrix (13, 6.1.1).

A = U S V'. On documents and words: the query is folded in by its words, score q' U S^p V'_d. On queries and
documents: score U_q S^p V'_d, for known queries only. p = `sv_power`: 0 in the papers, 1 in textbooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from clickbridge.engines.base import Engine
from clickbridge.errors import MissingPart
from clickbridge.io.values import stored
from clickbridge.models.ascent import document_field_weights
from clickbridge.models.change import Change
from clickbridge.models.fitted import Array, Choices, Fitted
from clickbridge.models.latent import Features, FittedLatent, LatentChoices, Space
from clickbridge.models.latent_features import check_updatable, texts_of, updated_features, updated_responses
from clickbridge.models.pls import LatentModel, dim_note, fitting_plan, kept_steps, starts_cold, with_spaces, worked_by
from clickbridge.models.sfunction import S_FUNCTION
from clickbridge.models.study import Study
from clickbridge.models.svd_plan import Factors
from clickbridge.numerics.svd import SVD, MatrixOperator, randomised_svd
from clickbridge.settings import ADVANCED, Comparing, Counting, Fields, Printed, Searching, Seeded, setting, settings
from clickbridge.views.stack import ViewStack
from clickbridge.views.view import Source


@settings
class LSISettings(Printed, Searching, Comparing, Seeded):
    printed: ClassVar[Mapping[str, Any]] = {"similarity": "dot"}

    dim: int = setting(600, "dimensions of the latent space; at most the rank of the data is used", 1, 100_000)
    sv_power: float = setting(
        0.0, "power of the singular values in the score; the papers have 0, textbook LSI 1", -1, 2
    )
    precision: str = setting(
        "float32", "precision of the decomposition", choices=("float32", "float64"), group=ADVANCED
    )


@settings
class LSIDocTermSettings(LSISettings, Fields):
    printed: ClassVar[Mapping[str, Any]] = {**LSISettings.printed, "fields": "equal", "stop_words": "drop"}


@settings
class LSIQueryDocSettings(LSISettings, Counting):
    pass


def decompose(
    matrix: sparse.csr_array, s: LSISettings, engine: Engine, start: Array | None = None, within: Study | None = None
) -> SVD:
    """Decomposes a matrix. `start` are right singular vectors of an earlier decomposition to start from. A study
    reports the steps, and can keep them as checkpoints."""
    fitting_plan(
        [Factors.of_matrix(matrix, s.dim)], s.precision, engine, "the decomposition", starts_cold(within, start)
    )
    dtype = np.dtype(s.precision)
    keeper = kept_steps(within, "svd", matrix, s.dim, s.precision, s.seed, *worked_by(engine))
    progress = None if within is None else within.progress
    operator = MatrixOperator(matrix, dtype, engine)
    return randomised_svd(operator, s.dim, seed=s.seed, dtype=dtype, start=start, keeper=keeper, progress=progress)


class LSI(LatentModel):
    """Base of both kinds of LSI: one matrix is decomposed."""

    def matrix(self, study: Study) -> sparse.csr_array:
        """The matrix to decompose."""
        raise NotImplementedError

    def plans_on(self, study: Study) -> list[dict[str, object]]:
        """Estimates the time and memory of a fit. Refused if it does not fit in memory."""
        s: LSISettings = self.settings
        sizes = [Factors.of_matrix(self.matrix(study), s.dim)]
        return [asdict(fitting_plan(sizes, s.precision, study.engine, self.name, starts_cold(study)))]


def space_of(l_x: Array, l_y: Array, svd: SVD) -> Space:
    """One space over all columns of both sides."""
    maps = [np.ascontiguousarray(m, dtype=np.float32) for m in (l_x, l_y)]
    columns = [np.arange(len(m), dtype=np.int32) for m in maps]
    return Space(columns[0], columns[1], maps[0], maps[1], svd.s, svd.residual)


# --- documents by words ----------------------------------------------------------------------------


@stored
@dataclass(frozen=True, kw_only=True, eq=False)
class FittedLSIDocTerm(FittedLatent):
    settings: LSIDocTermSettings

    def updated(self, change: Change, engine: Engine) -> Self:
        """Decomposes again, with the vocabulary of `fit`; clicks only add known queries. The decomposition starts from
        V = A' U / S, the old V where nothing has changed."""
        features, queries = updated_features(self.features, self.queries, change, None, self.field_weights, self.encode)
        start = engine.times(features.doc_features, self.spaces[0].l_x)
        return with_spaces(self, change, queries, features, [doc_term_space(features, self.settings, engine, start)])


class LSIDocTerm(LSI):
    """Latent semantic indexing of documents by their words: `LSIDocTerm(dim=300).fit(graph)`.

    It uses the singular vectors of the document-word matrix, and no clicks. A query is mapped by its words, so new
    queries can be ranked, too.

    Examples
    --------
    >>> from clickbridge import LSIDocTerm, example_graph
    >>> model = LSIDocTerm(dim=4).fit(example_graph())
    >>> model.rerank("where to sleep", ["slice", "hotels", "rooms"]).doc_ids
    ['hotels', 'slice', 'rooms']
    """

    name = "lsi-dt"
    about = "latent semantic indexing of documents by their words"
    paper = "13 6.1.1"
    Settings = LSIDocTermSettings
    fitted_type: ClassVar[type[Fitted]] = FittedLSIDocTerm

    def choose(self, study: Study) -> LatentChoices:
        s: LSIDocTermSettings = self.settings
        if not study.graph.field_names:
            raise MissingPart(f"{self.name} needs document text: ingest documents with --docs")
        weights, notes = document_field_weights(s.fields, s.language, s.stop_words, s.seed, study)
        return LatentChoices(field_weights=weights, groups=(), notes=tuple(f"{self.name}: {note}" for note in notes))

    def learn(self, study: Study, choices: Choices) -> FittedLatent:
        assert isinstance(choices, LatentChoices)
        s: LSIDocTermSettings = self.settings
        known, source = study.clicked(), study.documents(field_weights=choices.field_weights)
        # The query is treated as a short document, with the same words and the same idf.
        views, documents = self._words(source)
        queries = views.transform(Source({"query": texts_of(known.queries.keys)}, len(known.queries)))
        slots = [np.arange(n) for n in known.clicked.matrix.shape]
        features = Features(views, views, queries, documents, known.clicked.matrix, *slots)
        if not documents.nnz:
            raise MissingPart(f"{self.name} needs document text, and no document has a word: check --docs")
        space = doc_term_space(features, s, study.engine, within=study)
        note = f"{self.name}: {dim_note(space, s.dim)}"
        return self.finish(study, choices, known, features, [space], [note])

    def _words(self, source: Source) -> tuple[ViewStack, sparse.csr_array]:
        s: LSIDocTermSettings = self.settings
        return ViewStack.fit(["word"], source, s.language, s.stop_words)

    def matrix(self, study: Study) -> sparse.csr_array:
        source = study.documents(field_weights=self.choose(study).field_weights)
        return sparse.csr_array(self._words(source)[1].T)


def doc_term_space(
    features: Features, s: LSIDocTermSettings, engine: Engine, start: Array | None = None, within: Study | None = None
) -> Space:
    svd = decompose(sparse.csr_array(features.doc_features.T), s, engine, start, within)
    first = float(svd.s[0]) if len(svd.s) else 1.0
    # d' U = V_d S for a document d of the collection: the document map is U S^(p-1).
    return space_of(svd.u, svd.u * (svd.s / first) ** (s.sv_power - 1) / first, svd)


# --- queries by documents --------------------------------------------------------------------------


@stored
@dataclass(frozen=True, kw_only=True, eq=False)
class FittedLSIQueryDoc(FittedLatent):
    can: ClassVar[frozenset[str]] = S_FUNCTION - {"new queries"}

    settings: LSIQueryDocSettings

    def updated(self, change: Change, engine: Engine) -> Self:
        """Decomposes again; new items add rows and columns, since each item is its own only feature. The decomposition
        starts from V = R' U / S, the old V where nothing has changed."""
        check_updatable(self.model, self.settings, change)
        responses, queries, stay = updated_responses(self.responses, self.queries, change, self.settings)
        left = np.ascontiguousarray(self.spaces[0].l_x[stay])
        start = engine.times(sparse.csr_array(responses[: len(left)].T), left)
        features = indicators(responses)
        space = query_doc_space(responses, self.settings, engine, start)
        return with_spaces(self, change, queries, features, [space])


class LSIQueryDoc(LSI):
    """Latent semantic indexing of the click graph: `LSIQueryDoc(dim=300).fit(graph)`.

    It uses the singular vectors of the query-document matrix of clicks, and no words. So only queries of the log have a
    score.

    Examples
    --------
    >>> from clickbridge import LSIQueryDoc, example_graph
    >>> model = LSIQueryDoc(dim=4).fit(example_graph())
    >>> model.rerank("where to sleep", ["slice", "hotels", "rooms"]).doc_ids
    ['hotels', 'rooms', 'slice']
    """

    name = "lsi-qd"
    about = "latent semantic indexing of the click graph"
    paper = "13 6.1.1, 11M"
    Settings = LSIQueryDocSettings
    fitted_type: ClassVar[type[Fitted]] = FittedLSIQueryDoc

    def choose(self, study: Study) -> LatentChoices:
        self.settings  # noqa: B018 - refused here where a setting is out of its range
        return LatentChoices(field_weights={}, groups=())

    def learn(self, study: Study, choices: Choices) -> FittedLatent:
        assert isinstance(choices, LatentChoices)
        s: LSIQueryDocSettings = self.settings
        known = study.clicked(s)
        space = query_doc_space(known.clicked.matrix, s, study.engine, within=study)
        features = indicators(known.clicked.matrix)
        note = f"{self.name}: {dim_note(space, s.dim)}"
        return self.finish(study, choices, known, features, [space], [note])

    def matrix(self, study: Study) -> sparse.csr_array:
        return study.clicked(self.settings).clicked.matrix


def indicators(responses: sparse.csr_array) -> Features:
    """Indicator features: every item is its own only feature, which 11M, 4.2, calls no features. A document without
    clicks has no feature at all."""
    n_queries, n_docs = responses.shape
    q_views, queries = ViewStack.fit(["id"], Source({}, n_queries), "none")
    d_views, documents = ViewStack.fit(["id"], Source({}, n_docs), "none")
    clicked = np.bincount(responses.indices, minlength=n_docs) > 0
    documents = sparse.csr_array(sparse.diags_array(clicked.astype(np.float32)) @ documents)
    documents.eliminate_zeros()
    return Features(q_views, d_views, queries, documents, responses, np.arange(n_queries), np.arange(n_docs))


def query_doc_space(
    responses: sparse.csr_array, s: LSIQueryDocSettings, engine: Engine, start: Array | None = None,
    within: Study | None = None,
) -> Space:  # fmt: skip
    svd = decompose(responses, s, engine, start, within)
    scale: Any = (svd.s / (float(svd.s[0]) if len(svd.s) else 1.0)) ** (s.sv_power / 2)
    return space_of(svd.u * scale, svd.v * scale, svd)
