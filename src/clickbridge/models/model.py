"""The class that users see: settings and, once fitted, a value that answers.

scikit-learn's shape. The constructor only stores. `fit(graph)` chooses, learns, and puts the fitted value in place by
one assignment: a fit that is refused or fails leaves the model as it was. `update` and `load` go the same way.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from clickbridge.engines.base import Engine, default_engine
from clickbridge.errors import InputError, NotFitted, NotSupported, SettingError, shown
from clickbridge.frames import is_frame
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.io.checkpoint import Checkpoints
from clickbridge.models.asking import Asking
from clickbridge.models.change import Change
from clickbridge.models.display import Display
from clickbridge.models.fit_report import fit_report
from clickbridge.models.fitted import Choices, Fitted
from clickbridge.models.kept_log import KeptLog
from clickbridge.models.learning_again import learned_again
from clickbridge.models.parameters import Parameters
from clickbridge.models.study import Study
from clickbridge.progress import Progress, logged
from clickbridge.settings import AUTO_LANGUAGE
from clickbridge.types import Document, LogRecord
from clickbridge.wording import count_of

Array = np.ndarray[Any, Any]


class Model(Asking, Parameters):
    """The base class of all models: `PLS(dim=100).fit(graph).rank("ny pizza", k=10)`.

    The constructor takes settings as keyword arguments and only stores them. `fit` learns from a GRAPH and returns the
    model itself. What it learned is in `fitted`, an object that never changes. Its attributes can also be read from the
    model with an underscore at the end, as in scikit-learn: `model.weights_`. `BM25() + PLS()` is a model, too: the
    weighted sum of both.

    To write a model of your own, define `name`, `about`, `paper`, `Settings`, `fitted_type`, `choose` and `learn` in a
    subclass and pass the class to `register`.

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
    """The class of the fitted value. `load` creates an object of this class."""
    light: ClassVar[bool] = False
    """Whether learning it costs little more than reading the clicks or the texts once."""

    @property
    def spec(self) -> str:
        """The model as the command line writes it, such as `bm25+pls`."""
        return self.name

    def __add__(self, other: Model) -> Model:
        """`BM25() + PLS()`: the weighted sum of both models, not fitted yet. `fit` learns the weights from clicks."""
        if not isinstance(other, Model):
            return NotImplemented
        from clickbridge.models.specs import added

        return added(self, other)

    # --- learning --------------------------------------------------------------------------------

    def choose(self, study: Study) -> Choices:
        """Chooses on held-back clicks what the settings leave open."""
        self.settings  # noqa: B018 - refused here, before any work, where a setting is out of its range
        return Choices()

    def learn(self, study: Study, choices: Choices) -> Fitted:
        """Learns from a GRAPH what settings and choices say: a complete value, or an error."""
        kind = type(self).__name__
        raise NotImplementedError(f"{kind} has no learn(study, choices) that gives a Fitted: write one to fit it")

    def learned(self, study: Study, choices: Choices) -> Fitted:
        """Calls `learn`, and adds a report of time and memory to the result."""
        start = time.perf_counter()
        fitted = self.learn(study, choices)
        return fitted._with(report=fit_report(fitted, time.perf_counter() - start))

    def fit(
        self,
        graph: ClickGraph,
        *,
        engine: Engine | None = None,
        progress: Progress = logged,
        checkpoint: str | Path | Checkpoints | None = None,
    ) -> Self:
        """Learns from a GRAPH.

        If the fit fails, the model stays as it was.

        Parameters
        ----------
        graph : ClickGraph
            The clicks and documents to learn from.
        engine : Engine, optional
            Where to compute and with how many threads and how much memory, such as `Local(threads=2)`.
        progress : function of a str, optional
            Called with one line of text for each step, for example `print`. By default the lines go to the standard
            logger "clickbridge" at level INFO.
        checkpoint : str or Path, optional
            A folder for intermediate results: RMLS writes to it after each pass, a decomposition after each step. If
            the process is killed, run the same fit with the same folder: it continues from the last step and gives the
            same model. Once the model is saved, the folder can be deleted.

        Returns
        -------
        Model
            The model itself.
        """
        if not isinstance(graph, ClickGraph):
            raise InputError(f"fit needs a ClickGraph, such as ClickGraph.open('folder'); got {_named(graph)}")
        if isinstance(engine, str):
            raise SettingError(f"engine is an object, such as Local(threads=2) or Ray(); got the text {engine!r}")
        if not callable(progress):
            raise SettingError(f"progress is a function of one line of text, such as print; got {progress!r}")
        sizes = f"{count_of(graph.n_queries, 'query')} and {count_of(graph.n_docs, 'document')}"
        progress(f"fitting {self.spec} on {sizes}")
        return self.fit_on(Study(graph, engine, progress, checkpoints=_checkpoints(checkpoint)))

    def fit_on(self, study: Study, choices: Choices | None = None) -> Self:
        """Fits on a study, which several models can share. If `choices` are given, nothing is chosen again."""
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
        """A copy that uses the stemmer for the language of the documents, if the setting `language` is auto."""
        if getattr(self, "language", None) != AUTO_LANGUAGE:
            return self
        out = copy.copy(self)
        setattr(out, "language", study.language)  # noqa: B010 - declared by the settings, not by the class
        return out

    def keep_fields(self, graph: ClickGraph, names: Sequence[str]) -> Self:
        """Stores fields of the documents with the model, so that searches can be filtered by them.

        Parameters
        ----------
        graph : ClickGraph
            The GRAPH that the model was fitted on.
        names : sequence of str
            Names of fields, such as `["category", "stock"]`.

        Returns
        -------
        Model
            The model itself.
        """
        self.fitted_ = self.fitted._with(display=self.fitted.display.with_fields(graph, names))
        return self

    @property
    def least_users(self) -> int:
        """The setting `min_users`: queries and pairs of fewer users are not learned. For a model that consists of
        several parts, the largest value of any part."""
        return int(self.settings.min_users)

    def refit(self, graph: ClickGraph, *, engine: Engine | None = None) -> Self:
        """Learns from a GRAPH again with the choices of the last fit, without tuning again.

        Parameters
        ----------
        graph : ClickGraph
            The clicks and documents to learn from.
        engine : Engine, optional
            As in `fit`.

        Returns
        -------
        Model
            The model itself.
        """
        return self.fit_on(Study(graph, engine), self.fitted.choices)

    def plans(
        self, graph: ClickGraph, engine: Engine | None = None, checkpoint: str | Path | Checkpoints | None = None
    ) -> list[dict[str, object]]:
        """Estimates the time and memory of a fit, for each way to compute it. Nothing is learned.

        Parameters
        ----------
        graph : ClickGraph
            What would be learned from.
        engine : Engine, optional
            As in `fit`.
        checkpoint : str or Path, optional
            As in `fit`: a fit that keeps its steps may be computed in another way.

        Returns
        -------
        list of dict
            One for each way; the first is the one that `fit` would take.
        """
        study = Study(graph, engine, checkpoints=_checkpoints(checkpoint))
        return self.in_language_of(study).plans_on(study)

    def plans_on(self, study: Study) -> list[dict[str, object]]:
        """Like `plans`, for a study. Models without such an estimate raise `NotSupported`."""
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
        """Adds new clicks and documents to a fitted model.

        Vocabulary, weights and settings stay as they are. Models that cannot learn single clicks keep their log, and
        learn again from it and the new one. While an update runs, other threads may go on ranking: they get the answer
        of the model before the update, or after it.

        Parameters
        ----------
        log : iterable of Impression or PairCount
            New searches, as `read_log` gives them.
        docs : iterable of Document
            New or changed documents.
        remove : iterable of str
            Ids of documents to remove.
        engine : Engine, optional
            As in `fit`.
        applied : sequence of str
            Checksums of the logs. They are stored with the model, as a record of what it has learned.

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
        """What was learned, as an object that never changes.

        Keep a reference to it to go on using this state while the model is fitted or updated again."""
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
        """What fitted models of this kind can do, such as search or explain."""
        return cls.fitted_type.can

    @classmethod
    def from_fitted(cls, fitted: Fitted) -> Self:
        """Makes a model from a fitted value, with the settings of its fit."""
        model = cls(**asdict(fitted.settings))
        model.fitted_ = fitted
        return model


def _checkpoints(given: str | Path | Checkpoints | None) -> Checkpoints | None:
    return Checkpoints(Path(given)) if isinstance(given, str | Path) else given


def _named(given: object) -> str:
    """What was given in place of a GRAPH. A frame is named by its type: its text is a table."""
    if is_frame(given):
        return f"a {type(given).__name__}: ClickGraph.from_frame makes one of it"
    return shown(given)
