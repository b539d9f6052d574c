"""Partial least squares on a click graph (Wu et al. 2013, Section 3; Wu et al. 2011 M-PLS with one view).

W = (1/n^x) sum_i (1/n_i^y) sum_j r_ij x_i y_ij' = X' R Y. It is only formed if that is cheaper. Its first singular
vectors are the maps: score = x' U S^p V' y, p = `sv_power` (the papers: 0).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from scipy import sparse

from clickbridge.engines.base import Engine
from clickbridge.engines.local import machine_memory
from clickbridge.errors import SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.dense import Encoder
from clickbridge.graph.notes import said_by
from clickbridge.graph.products import products_of
from clickbridge.io.checkpoint import Checkpoint
from clickbridge.io.values import stored
from clickbridge.models.ascent import document_field_weights
from clickbridge.models.catalogue import KnownQueries
from clickbridge.models.change import Change
from clickbridge.models.fitted import Array, Choices, Fitted
from clickbridge.models.latent import (
    Features,
    FittedLatent,
    LatentChoices,
    SearchCells,
    Space,
    document_images,
    mapped,
    of_columns,
)
from clickbridge.models.latent_features import check_updatable, learn_features, reads_text, updated_features
from clickbridge.models.model import Model
from clickbridge.models.rmls_plan import CARD, NOMINAL, Plan
from clickbridge.models.study import Known, Study
from clickbridge.models.svd_plan import TAKE_RMLS, Factors, checked, checked_for_workers, svd_plan
from clickbridge.numerics.svd import MatrixOperator, Operator, ProductOperator, randomised_svd
from clickbridge.search import ann
from clickbridge.settings import (
    ADVANCED,
    Comparing,
    Counting,
    Fields,
    Printed,
    Searching,
    Seeded,
    declared_in,
    setting,
    settings,
)
from clickbridge.views.fields import HEADINGS
from clickbridge.wording import count_of

CHEAP_PRODUCTS = 2e7
"""Multiplications up to which W is formed to see whether it is smaller than its factors."""
Latent = TypeVar("Latent", bound=FittedLatent)
REPEATED = 0.5
"""Share of searches whose query occurs again, from which on clicks are features of a query by default."""


@settings
class LatentSettings(Counting, Fields, Searching, Comparing, Seeded):
    dim: int = setting(600, "dimensions of the latent space; at most the rank of the data is used", 1, 100_000)
    views: str = setting("auto", "kinds of features, e.g. word,char:title,click; auto takes what suits the GRAPH")
    mean: bool = setting(
        True,
        "average over a query's clicked documents (13), so that every query counts the same; false adds them up (11M)",
        group="11M, 13",
    )


@settings
class PLSSettings(Printed, LatentSettings):
    printed: ClassVar[Mapping[str, Any]] = {
        "views": "word,response", "sv_power": 0.0, "fields": "equal", "stop_words": "drop",
    }  # fmt: skip

    sv_power: float = setting(
        0.25, "power of the singular values in the score; the papers have 0, textbook LSI 1", -1, 2
    )
    centre: str = setting(
        "none",
        "subtract the mean of the features: over clicked pairs, or of each side over its own items (sides)",
        choices=("none", "pairs", "sides"),
        group="12, 13",
    )
    precision: str = setting(
        "float32", "precision of the decomposition", choices=("float32", "float64"), group=ADVANCED
    )


@stored
@dataclass(frozen=True, kw_only=True, eq=False)
class FittedPLS(FittedLatent):
    settings: PLSSettings

    @property
    def space_weights(self) -> Array:
        """The weight of each space in the score."""
        return np.ones(len(self.spaces))

    @property
    def space_dims(self) -> list[int]:
        return [self.settings.dim] * len(self.spaces)

    def relearned(self, features: Features, space: Space, dim: int, engine: Engine, start: Any = None) -> Space:
        """Learns a space from other rows of the same features, before scaling. `start` is an L_y to start from."""
        return learn_space(features, space.q_columns, space.d_columns, dim, self.settings, engine, start)

    def updated(self, change: Change, engine: Engine) -> Self:
        """Computes click features again, then every space, starting from its old one. The weights of the views stay."""
        s = self.settings
        check_updatable(self.model, s, change)
        features, queries = updated_features(self.features, self.queries, change, s, self.field_weights, self.encode)
        spaces = [
            scaled_space(self.relearned(features, old, dim, engine, old.l_y), s.sv_power, weight)
            for old, weight, dim in zip(self.spaces, self.space_weights.tolist(), self.space_dims, strict=True)
        ]
        return with_spaces(self, change, queries, features, spaces)


class LatentModel(Model):
    """Base of models with views on both sides. `encode` has functions from texts to vectors, for `dense:NAME` views."""

    _more_help = (
        "Parameters\n----------\nencode : mapping of str to function, optional\n"
        "    Functions from a list of texts to vectors, by the NAME of their `dense:NAME` view. They are not saved\n"
        "    with the model, so give them to `load` again."
    )

    def __init__(self, *, encode: Mapping[str, Encoder] | None = None, **params: object) -> None:
        super().__init__(**params)
        self.encode = encode

    @classmethod
    def _more_parameters(cls) -> list[inspect.Parameter]:
        return [inspect.Parameter("encode", inspect.Parameter.KEYWORD_ONLY, default=None)]

    def get_params(self, deep: bool = True) -> dict[str, object]:
        return super().get_params(deep) | ({"encode": self.encode} if self.encode else {})

    def set_params(self, **params: object) -> Self:
        if "encode" in params:
            self.encode = cast(Mapping[str, Encoder] | None, params.pop("encode"))
        return super().set_params(**params)

    @classmethod
    def from_fitted(cls, fitted: Fitted) -> Self:
        model = super().from_fitted(fitted)
        model.encode = getattr(fitted, "encode", None) or None
        return model

    @property
    def settings(self) -> Any:
        s = super().settings
        if getattr(s, "search", "exact") == "ann":
            ann.faiss()  # said before the work, not after it
        terms = re.split("[,&]", getattr(s, "views", ""))
        idle = set(self.encode or {}) - {term.strip().partition("dense:")[2] for term in terms}
        if idle:
            name = min(idle)
            raise SettingError(
                f"encode has {name!r}, but views have no dense:{name}: add it, with views=word,dense:{name}"
            )
        return s

    def groups(self, graph: ClickGraph) -> list[str]:
        """The groups of views, one for each space. Views joined by & share a space."""
        views = self.settings.views
        return default_views(graph) if views == "auto" else [v.strip() for v in views.split(",")]

    def on(self, study: Study) -> Study:
        """The study with the vectors that `encode` computes."""
        return study.encoded(self.encode or {})

    def choose_fields(self, study: Study) -> tuple[dict[str, float], tuple[str, ...]]:
        """Chooses field weights, if a view uses the text of documents."""
        s = self.settings
        if not study.graph.field_names or not reads_text(self.groups(study.whole)):
            return {}, ()
        weights, notes = document_field_weights(s.fields, s.language, s.stop_words, s.seed, study)
        return weights, tuple(said_by(self.name, note) for note in notes)

    def choose(self, study: Study) -> LatentChoices:
        weights, notes = self.choose_fields(self.on(study))
        return LatentChoices(field_weights=weights, groups=tuple(self.groups(study.whole)), notes=notes)

    def learn_features(
        self, study: Study, groups: Sequence[str], choices: LatentChoices
    ) -> tuple[Known, Features, list[tuple[Array, Array]]]:
        """The known queries, how texts and clicks become features, and these features of both sides."""
        s = self.settings
        known = study.clicked(s)
        features, columns = learn_features(
            self.name, study, known, groups, choices.field_weights, s.language, s.stop_words
        )
        return known, features, columns

    def finish(
        self, study: Study, choices: LatentChoices, known: Known, features: Features, spaces: Sequence[Space],
        notes: Sequence[str], exact: bool = False, **more: Any,
    ) -> FittedLatent:  # fmt: skip
        """The fitted model from its maps. `exact` is for a model that is only used for tuning: cells for approximate
        search would not be worth their cost."""
        images, scorable = document_images(features.doc_features, spaces)
        nothing: tuple[SearchCells, tuple[str, ...]] = SearchCells(), ()
        cells, said = nothing if exact else learn_cells(self.settings, images, scorable, features, spaces)
        lines = (*known.notes, *choices.notes, *notes, *(f"{self.name}: {line}" for line in said))
        kind: Any = self.fitted_type
        fitted: FittedLatent = kind(
            model=self.name, settings=self.settings, catalogue=study.catalogue, choices=choices, queries=known.queries,
            notes=lines, features=features, spaces=tuple(spaces), images=images, scorable=scorable, cells=cells,
            encode=self.encode or {}, **more,
        )  # fmt: skip
        return fitted


class PLS(LatentModel):
    """Maps queries and documents into one latent space, where a query is near what was clicked for it.

    Partial least squares: the maps are the singular vectors of the matrix of clicks between features of queries and
    features of documents. All views share one space (the paper's concatenated setting). New queries are mapped by their
    words, so PLS can rank queries that nobody typed before. It supports `similar_queries`, `explain` and `update`.

    Examples
    --------
    >>> from clickbridge import PLS, example_graph
    >>> model = PLS(dim=10).fit(example_graph())
    >>> model.rank("sleep near the statue", k=2).doc_ids
    ['ferry', 'rooms']
    """

    name = "pls"
    about = "partial least squares: one latent space for queries and documents"
    paper = "13 3, 11M"
    Settings: ClassVar[type[LatentSettings]] = PLSSettings
    fitted_type: ClassVar[type[Fitted]] = FittedPLS

    def learn(self, study: Study, choices: Choices) -> FittedLatent:
        assert isinstance(choices, LatentChoices)
        s: PLSSettings = self.settings
        study = self.on(study)
        group = "&".join(choices.groups)
        known, features, (columns,) = self.learn_features(study, [group], choices)
        space = learn_space(features, *columns, s.dim, s, study.engine, within=study)
        note = f"{self.name}: views {group.replace('&', ', ')}; {dim_note(space, s.dim)}"
        space = scaled_space(space, s.sv_power, in_place=True)
        return self.finish(study, choices, known, features, [space], (note,))

    def spaces_to_learn(self, graph: ClickGraph) -> tuple[list[str], list[int]]:
        """The views of each space, and its number of dimensions."""
        return ["&".join(self.groups(graph))], [self.settings.dim]

    def plans_on(self, study: Study) -> list[dict[str, object]]:
        """Estimates the time and memory of a fit. Refused if it does not fit in memory."""
        s: PLSSettings = self.settings
        study = self.on(study)
        groups, dims = self.spaces_to_learn(study.whole)
        _, features, columns = self.learn_features(study, groups, LatentModel.choose(self, study))
        x, r, y = features.query_features, features.responses, features.doc_features
        sizes = [
            Factors.of(of_columns(x, q), r, of_columns(y, d), dim) for (q, d), dim in zip(columns, dims, strict=True)
        ]
        return [asdict(fitting_plan(sizes, s.precision, study.engine, self.name, starts_cold(study)))]


# --- learning --------------------------------------------------------------------------------------


def learn_space(
    features: Features, q_columns: Array, d_columns: Array, dim: int, s: PLSSettings, engine: Engine, start: Any = None,
    within: Study | None = None,
) -> Space:  # fmt: skip
    """The maps before scaling: the singular vectors themselves. A study reports the steps, and can keep them."""
    x, y = of_columns(features.query_features, q_columns), of_columns(features.doc_features, d_columns)
    r = weighted_responses(features.responses, s.mean)
    fitting_plan([Factors.of(x, r, y, dim)], s.precision, engine, "the decomposition", starts_cold(within, start))
    dtype = np.dtype(s.precision)
    keeper = kept_steps(within, "svd", x, r, y, dim, s.centre, s.precision, s.seed, *worked_by(engine))
    operator = _operator(x, r, y, s.centre, dtype, engine)
    del x, r, y
    progress = None if within is None else within.progress
    svd = randomised_svd(operator, dim, seed=s.seed, dtype=dtype, start=start, keeper=keeper, progress=progress)
    return Space(q_columns, d_columns, svd.u, svd.v, svd.s, svd.residual)


def kept_steps(study: Study | None, *work: Any) -> Checkpoint | None:
    """Where a decomposition keeps its steps, if there is a checkpoint folder. `work` is all that it depends on."""
    return None if study is None or study.checkpoints is None else study.checkpoints.of(*work)


def worked_by(engine: Engine) -> tuple[str, str]:
    """What the last bits depend on: the engine, and how it stores numbers."""
    return engine.name, str(getattr(engine, "store", ""))


def starts_cold(within: Study | None, start: Any = None) -> bool:
    """Whether a decomposition may be that of a basis: with nothing to start from, and no steps to be kept."""
    return start is None and (within is None or within.checkpoints is None)


def fitting_plan(
    sizes: Sequence[Factors], precision: str, engine: Engine, name: str, cold: bool = True, instead: str = TAKE_RMLS
) -> Plan:
    """Estimates the cost of decompositions. Refused if they do not fit in this machine's memory, that of workers of Ray
    on this machine included; a cluster has memory of its own, and a GPU of any size takes them by tiles. `instead` is
    what to do then."""
    workers = getattr(engine, "workers_here", 0)
    room = engine.memory if engine.name == "local" or workers else getattr(engine, "card_size", inf)
    rates = CARD if engine.name == "gpu" else NOMINAL
    plan = svd_plan(sizes, np.dtype(precision).itemsize, room, rates, basis=cold and engine.narrow, workers=workers)
    if workers:
        return checked_for_workers(plan, workers, engine.memory, machine_memory(), name, instead)
    return checked(plan, room, name, instead) if engine.name == "local" else plan


def weighted_responses(responses: sparse.csr_array, mean: bool) -> sparse.csr_array:
    """r_ij / (n^x n_i^y), or r_ij / n^x without the mean over a query's documents."""
    counts = np.maximum(np.diff(responses.indptr), 1) if mean else np.ones(responses.shape[0])
    return sparse.csr_array(sparse.diags_array(1 / (counts * responses.shape[0])) @ responses)


def _operator(
    x: sparse.csr_array, r: sparse.csr_array, y: sparse.csr_array, centre: str, dtype: Any, engine: Engine
) -> Operator:
    if centre != "none":
        # X'RY - left right' is again a product, of factors with a few more rows.
        left, right = (sparse.csr_array(side.T) for side in centring(x, r, y, centre))
        middle = sparse.block_diag((r, -sparse.eye_array(left.shape[0])), format="csr")
        return ProductOperator(sparse.vstack([x, left]), middle, sparse.vstack([y, right]), dtype, engine)
    product = ProductOperator(x, r, y, dtype, engine)
    if products_of(x, r, y) <= CHEAP_PRODUCTS:
        formed = sparse.csr_array(x.T @ r @ y)
        if formed.nnz < product.nnz:
            return MatrixOperator(formed, dtype, engine)
    return product


def scaled_space(space: Space, sv_power: float, weight: float = 1.0, in_place: bool = False) -> Space:
    """Multiplies both maps by S^(p/2) and the square root of the weight; `in_place` if the old maps are not needed."""
    relative = space.singular_values / max(float(space.singular_values[0]) if space.dim else 1.0, 1e-30)
    scale = (np.sqrt(weight) * relative ** (sv_power / 2)).astype(np.float32)
    maps = (space.l_x, space.l_y)
    if in_place and all(m.dtype == np.float32 for m in maps):
        l_x, l_y = (np.multiply(m, scale, out=m) for m in maps)
    else:
        l_x, l_y = (np.ascontiguousarray(m * scale, dtype=np.float32) for m in maps)
    return replace(space, l_x=l_x, l_y=l_y)


def dim_note(space: Space, asked: int) -> str:
    said = f"default {asked}" if asked == declared_in(PLSSettings)["dim"].default else f"{asked} was the setting"
    clipped = f", the most this data allows ({said})" if space.dim < asked else ""
    return f"dim {space.dim}{clipped}, residual {space.residual:.1e}"


def with_spaces(
    fitted: Latent, change: Change, queries: KnownQueries, features: Features, spaces: Sequence[Space], **more: Any
) -> Latent:
    """The fitted model after a change, from its new features and maps."""
    images, scorable = document_images(features.doc_features, spaces)
    cells, _ = learn_cells(fitted.settings, images, scorable, features, spaces)
    return replace(
        fitted, catalogue=change.after, queries=queries, features=features, spaces=tuple(spaces), images=images,
        scorable=scorable, cells=cells, **more,
    )  # fmt: skip


def learn_cells(
    s: Any, images: Any, scorable: Array, features: Features, spaces: Sequence[Space]
) -> tuple[SearchCells, tuple[str, ...]]:
    """With `search=ann`, the cells of the documents and of the known queries, if there are enough of them."""
    if s.search == "exact" or sparse.issparse(images):
        return SearchCells(), ()
    n_docs, n_queries = int(scorable.sum()), features.query_features.shape[0]
    documents = queries = None
    if n_docs < ann.LEAST_ITEMS:
        said = f"search is exact, since {count_of(n_docs, 'document', 'are')} few (under {ann.LEAST_ITEMS:,})"
    else:
        documents = ann.learn_cells(lambda rows: images[rows], scorable, s.seed)
        said = f"{len(documents.centres):,} cells for approximate search"
    if n_queries >= ann.LEAST_ITEMS:
        there = np.ones(n_queries, dtype=bool)
        queries = ann.learn_cells(
            lambda rows: mapped(sparse.csr_array(features.query_features[rows]), spaces, "q_columns", "l_x"),
            there,
            s.seed,
        )
    return SearchCells(documents, queries), (said,)


def default_views(graph: ClickGraph) -> list[str]:
    """All views that the GRAPH supports: words and character n-grams if there is text, clicks if queries repeat."""
    views = []
    has_text = any(graph.query_texts)
    if graph.field_names and has_text:
        heading = next((name for name in HEADINGS if name in graph.field_names), "")
        views += ["word", f"char:{heading}" if heading else "char"]
    elif has_text:
        views += ["q.word", "q.char", "d.click"]
    if not views or repeated_share(graph) >= REPEATED:
        views.append("click")
    return views


def repeated_share(graph: ClickGraph) -> float:
    """The share of searches (or of clicks, if the log has no pages) whose query occurs more than once."""
    if graph.impressions is not None:
        times = np.bincount(graph.impressions.query, minlength=graph.n_queries)
    else:
        times = np.bincount(graph.pairs.query, graph.pairs.clicks, minlength=graph.n_queries)
    return float(times[times > 1].sum() / max(times.sum(), 1))


def centring(x: sparse.csr_array, r: sparse.csr_array, y: sparse.csr_array, how: str) -> tuple[Array, Array]:
    """The left and right factors of what centring subtracts from X' R Y.

    `pairs`: x and y'_i = sum_j r_ij y_ij are centred over queries: X'(I - 11'/n)(R Y), rank one.
    `sides`: X over queries and Y over documents, each by its own mean: (X - 1 m_x')' R (Y - 1 m_y'), rank two.
    """
    ones = np.ones(x.shape[0])
    mean_x = np.asarray(x.T @ ones) / x.shape[0]
    if how == "pairs":
        return mean_x[:, None], np.asarray(y.T @ (r.T @ ones))[:, None]
    mean_y = np.asarray(y.T @ np.ones(y.shape[0])) / y.shape[0]
    out_x = np.asarray(x.T @ (r @ np.ones(y.shape[0])))
    out_y = np.asarray(y.T @ (r.T @ ones))
    total = float(r.sum())
    # X'RY - m_x out_y' - out_x m_y' + total m_x m_y'
    left = np.stack([mean_x, out_x - total * mean_x], axis=1)
    return left, np.stack([out_y, mean_y], axis=1)
