"""The class that users see: settings and, once fitted, a value that answers.

scikit-learn's shape. The constructor only stores. `fit(graph)` chooses, learns, and puts the fitted value in place by
one assignment: a fit that is refused or fails leaves the model as it was. `update` and `load` go the same way.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from clickbridge.engines.base import Engine, default_engine
from clickbridge.errors import NotFitted, NotSupported
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.io.checkpoint import Checkpoints
from clickbridge.models.change import Change
from clickbridge.models.display import Display
from clickbridge.models.fit_report import fit_report
from clickbridge.models.fitted import Choices, Fitted, Mapped
from clickbridge.models.kept_log import KeptLog
from clickbridge.models.learning_again import learned_again
from clickbridge.models.parameters import Parameters
from clickbridge.models.study import Study, logged
from clickbridge.settings import AUTO_LANGUAGE
from clickbridge.types import Document, Explanation, LogRecord, Ranking, ResultList, as_id

Array = np.ndarray[Any, Any]


class Model(Parameters):
    """What every model can do: `PLS(dim=100).fit(graph).rank("ny pizza", k=10)`.

    The constructor takes settings by keyword and only stores them. `fit` learns and returns the model. What was learned
    is `fitted`, a value that never changes; its parts are also `model.NAME_`. Models add up: `BM25() + PLS()`.

    To write one of your own, give `name`, `about`, `paper`, `Settings`, `fitted_type`, `choose` and `learn`, and
    `register` it.

    Examples
    --------
    >>> from clickbridge import BM25, PLS, example_graph
    >>> model = (BM25() + PLS(dim=10)).fit(example_graph())
    >>> model.rerank("where to sleep", ["slice", "hotels", "rooms"]).doc_ids
    ['rooms', 'hotels', 'slice']
    """

    name: ClassVar[str]
    about: ClassVar[str]
    paper: ClassVar[str]
    fitted_type: ClassVar[type[Fitted]]
    """The class of what it learns; `load` makes one."""
    light: ClassVar[bool] = False
    """Whether learning it costs little more than to go through the clicks or the texts once."""

    @property
    def spec(self) -> str:
        """How the command line names it."""
        return self.name

    def __add__(self, other: Model) -> Model:
        """`BM25() + PLS()`: a weighted sum of both, not fitted yet; its weights are learned from clicks."""
        if not isinstance(other, Model):
            return NotImplemented
        from clickbridge.models.specs import added

        return added(self, other)

    # --- learning --------------------------------------------------------------------------------

    def choose(self, study: Study) -> Choices:
        """Decides, through hold_back, what the settings leave open."""
        self.settings  # noqa: B018 - refused here, before any work, where a setting is out of its range
        return Choices()

    def learn(self, study: Study, choices: Choices) -> Fitted:
        """Learns from a GRAPH what settings and choices say: a complete value, or an error."""
        raise NotImplementedError

    def learned(self, study: Study, choices: Choices) -> Fitted:
        """What `learn` gives, with a report of it."""
        start = time.perf_counter()
        fitted = self.learn(study, choices)
        return fitted._with(report=fit_report(fitted, time.perf_counter() - start))

    def fit(
        self,
        graph: ClickGraph,
        *,
        engine: Engine | None = None,
        watch: Callable[[str], None] = logged,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Learns from a GRAPH.

        A fit that is refused or fails leaves the model as it was.

        Parameters
        ----------
        graph : ClickGraph
            What to learn from.
        engine : Engine, optional
            Where, and with how much of the machine, as `Local(threads=2)`.
        watch : function of a str, optional
            Told what is being done, as `print`. Without one, the lines go to the standard logger "clickbridge" as
            INFO.
        checkpoint : str or Path, optional
            A folder for what long work has learned so far: RMLS after each pass, a decomposition after each step. The
            same fit, started again after a kill, goes on from there and gives the same model. It may be removed once
            the model is saved.

        Returns
        -------
        Model
            The model itself.
        """
        checkpoints = None if checkpoint is None else Checkpoints(Path(checkpoint))
        return self.fit_on(Study(graph, engine, watch, checkpoints=checkpoints))

    def fit_on(self, study: Study, choices: Choices | None = None) -> Self:
        """Fits on a study, which other models may share; with `choices`, without choosing again."""
        start = time.perf_counter()
        study = study.of_several(self.least_users)
        model = self.in_language_of(study)
        with study.engine.at_work():
            fitted = model.learned(study, model.choose(study) if choices is None else choices)
            fitted.warm()
        if model is not self:
            fitted = fitted.with_notes(*study.language_notes)
        seconds = round(time.perf_counter() - start, 3)
        display = Display.of(study.graph)
        log = None if "update" in fitted.abilities else KeptLog.of(study.graph)
        self.fitted_ = fitted._with(report={**fitted.report, "seconds": seconds}, display=display, log=log)
        return self

    def in_language_of(self, study: Study) -> Self:
        """A copy with the stemmer for the language of the documents, where `language` is auto."""
        if getattr(self, "language", None) != AUTO_LANGUAGE:
            return self
        out = copy.copy(self)
        setattr(out, "language", study.language)  # noqa: B010 - declared by the settings, not by the class
        return out

    def keep_fields(self, graph: ClickGraph, names: Sequence[str]) -> Self:
        """Keeps fields of the documents with the model, so that searches can be filtered by them."""
        self.fitted_ = self.fitted._with(display=self.fitted.display.with_fields(graph, names))
        return self

    @property
    def least_users(self) -> int:
        """Queries and pairs of fewer users are not learned. For a model made of others, the largest of its parts."""
        return int(self.settings.min_users)

    def refit(self, graph: ClickGraph, *, engine: Engine | None = None) -> Self:
        """Learns from a GRAPH with what was chosen before."""
        return self.fit_on(Study(graph, engine), self.fitted.choices)

    def plans(self, graph: ClickGraph, engine: Engine | None = None) -> list[dict[str, object]]:
        """What learning would cost, for each way to do it. Nothing is learned."""
        study = Study(graph, engine)
        return self.in_language_of(study).plans_on(study)

    def plans_on(self, study: Study) -> list[dict[str, object]]:
        """The plans of a kind of model that has some."""
        cost = f"{self.spec} costs little: it has no plan" if self.light else f"{self.spec} has no plan of its cost"
        raise NotSupported(f"{cost}; rmls, pls, mpls, lsi-dt and lsi-qd, and what is made of them, have one")

    @property
    def has_plan(self) -> bool:
        """Whether `plans` can say what learning would cost."""
        return type(self).plans_on is not Model.plans_on

    def update(
        self,
        log: Iterable[LogRecord] = (),
        docs: Iterable[Document] = (),
        remove: Iterable[str] = (),
        *,
        engine: Engine | None = None,
        applied: Sequence[str] = (),
    ) -> Self:
        """Takes in new clicks and documents.

        Words, weights and settings stay; a model without a step for one more click learns again from the log it keeps
        and the new one. Threads that rank meanwhile get the answer of the old model or of the new one.

        Parameters
        ----------
        log : iterable of Impression or PairCount
            New searches, as `read_log` gives them.
        docs : iterable of Document
            New or changed documents.
        remove : iterable of str
            Ids of documents that are gone.
        engine : Engine, optional
            As in `fit`.
        applied : sequence of str
            Checksums of the logs, which the model keeps.

        Returns
        -------
        Model
            The model itself.
        """
        fitted = self.fitted
        change = Change.of(fitted.catalogue, fitted.queries, log, docs, remove)
        if change.clicks and self.least_users > 1:
            fitted_so = f"{self.spec} fitted with min_users={self.least_users}"
            raise NotSupported(f"{fitted_so} cannot be updated click by click: fit it again")
        engine = engine or default_engine()
        with engine.at_work():
            if fitted.log is not None:
                after = learned_again(fitted, fitted.log, change, engine)
            else:
                after = fitted.updated(change, engine)._with(display=fitted.display.changed(change))
        after = after._with(applied=(*fitted.applied, *applied), report=fitted.report)
        after.warm()
        self.fitted_ = after
        return self

    # --- what was learned ------------------------------------------------------------------------

    fitted_: Fitted

    @property
    def fitted(self) -> Fitted:
        """The fitted value. Keep it to use this state further while the model is fitted or updated again."""
        found = self.__dict__.get("fitted_")
        if found is None:
            raise self._not_fitted()
        return found

    def _not_fitted(self) -> NotFitted:
        return NotFitted(f"{self.spec} has learned nothing yet: fit it first")

    def __getattr__(self, name: str) -> Any:
        """`model.weights_` is `model.fitted.weights`, as scikit-learn's users expect."""
        if name.endswith("_") and not name.startswith("_") and name != "fitted_":
            return getattr(self.fitted, name[:-1])
        if name == "fitted":  # an error of the property, which is an AttributeError, brought us here
            raise self._not_fitted()
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @classmethod
    def abilities(cls) -> frozenset[str]:
        """What fitted models of this kind can do."""
        return cls.fitted_type.can

    @classmethod
    def from_fitted(cls, fitted: Fitted) -> Self:
        """A model around a fitted value, with the settings that it was fitted under."""
        model = cls(**asdict(fitted.settings))
        model.fitted_ = fitted
        return model

    # --- using -----------------------------------------------------------------------------------

    def score(self, query: str, doc_ids: Sequence[str]) -> Array:
        """Scores of some documents for a query.

        Parameters
        ----------
        query : str
            What was typed.
        doc_ids : sequence of str
            Ids of documents; whole numbers are taken as digits.

        Returns
        -------
        array of float
            In the same order; -inf for a document, or for all, that the model cannot score.
        """
        return self.fitted.score(query, doc_ids)

    def score_lists(self, lists: Sequence[ResultList]) -> list[Array]:
        """Scores of many lists at once."""
        return self.fitted.score_lists(lists)

    def rerank(self, query: str, doc_ids: Sequence[str], scores: Sequence[float] | None = None) -> Ranking:
        """Puts given documents into a better order.

        Parameters
        ----------
        query : str
            What was typed.
        doc_ids : sequence of str
            The documents, as your engine ordered them.
        scores : sequence of float, optional
            Your engine's scores, for models that use them.

        Returns
        -------
        Ranking
            Every given id exactly once: by falling score; ties, and the unscored at the end, as they came.
        """
        return self.fitted.rerank(query, doc_ids, scores)

    def rerank_lists(self, lists: Sequence[ResultList], *, engine: Engine | None = None) -> list[Ranking]:
        """As `rerank`, for many lists at once, on an engine if one is given."""
        return self.fitted.rerank_lists(lists, engine=engine)

    def rank(self, query: str, k: int = 10) -> Ranking:
        """Searches the whole collection.

        Parameters
        ----------
        query : str
            What was typed. It need not be in the log.
        k : int
            How many documents at most.

        Returns
        -------
        Ranking
            The best documents; empty where the model has nothing to say.
        """
        return self.fitted.rank(query, k)

    def rank_many(self, queries: Sequence[str], k: int = 10, *, engine: Engine | None = None) -> list[Ranking]:
        """As `rank`, for many queries at once, on an engine if one is given."""
        return self.fitted.rank_many(queries, k, engine=engine)

    def falls_back(self, query: str) -> bool:
        """Whether the model knows nothing about this query and gives the answer of a simpler model."""
        return self.fitted.falls_back(query)

    def similar_queries(self, query: str, k: int = 3, min_clicks: int = 1) -> list[tuple[str, float]]:
        """Queries of the log that are most similar to this one, without itself.

        Parameters
        ----------
        query : str
            What was typed. It need not be in the log.
        k : int
            How many.
        min_clicks : int
            Queries with fewer clicks are never shown.

        Returns
        -------
        list of (str, float)
            Queries and their similarity, most similar first.
        """
        return self.fitted.similar_queries(query, k, min_clicks)

    def similar_documents(self, doc_id: str, k: int = 3) -> Ranking:
        """The k documents that are most similar to this one, without itself."""
        return self.fitted.similar_documents(as_id(doc_id), k)

    def explain(self, query: str, doc_id: str, k: int = 10) -> Explanation:
        """Why a document has its score: which features carried it, and which clicks taught them.

        `k` is the number of feature pairs. Only S-functions can explain; others raise NotSupported.
        """
        return self.fitted.explain(query, as_id(doc_id), k)

    def map_queries(self, queries: Sequence[str]) -> Mapped:
        """The S-function's query map: one row per query, dense or sparse."""
        return self.fitted.map_queries(queries)

    def map_documents(self, documents: Sequence[Document | str]) -> Mapped:
        """The S-function's document map: one row per document, which is a known id or a new `Document` with text."""
        return self.fitted.map_documents(documents)

    def title(self, doc_id: str) -> str:
        """What to show of a document next to its id; empty where nothing is known."""
        return self.fitted.title(doc_id)

    def save(self, path: str | Path) -> None:
        """Writes the fitted model as a folder, which `load` opens. A MODEL that is there is replaced, whole or not
        at all; anything else is refused."""
        from clickbridge.models.model_folder import save

        save(self.fitted, path)
