"""`online:SPEC`: re-ranks the lists of an engine or a model, and learns from every click (Kim and Choi 2009).

`fit` computes the projection and the clusters and learns the log's clicks. After that, an event costs O(R) for each
pair and cluster; events can come in any order and can be undone. What is learned is added to the score of the incoming
rank (`blend`), so without clicks the incoming order stays.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar, Self, overload

import numpy as np

from clickbridge.engines.base import Engine
from clickbridge.errors import ArtifactError
from clickbridge.io.secret import Secret
from clickbridge.models.composite import Wrapper, joined_notes
from clickbridge.models.fitted import Choices, Fitted
from clickbridge.models.study import Study
from clickbridge.online.blend import Blend
from clickbridge.online.choices import CAUTIOUS_PAIRS, HELD_BACK, Lessons, OnlineChoices, OnlineSettings, choose_blend
from clickbridge.online.fitted_online import FittedOnline
from clickbridge.online.learner import Learner
from clickbridge.online.takes_clicks import Page, TakesClicks
from clickbridge.types import Document, LogRecord, Ranking
from clickbridge.wording import count_of

_CREATING = threading.Lock()


class Online(Wrapper, TakesClicks):
    """Re-ranks the lists of a model, or of your own engine, and learns from every click at once: `Online([BM25()])`.

    `learn(page)` learns from a result page and its clicks, and returns a number; `undo(number)` undoes it. A click also
    changes the scores of documents that appear on the same result pages as the clicked one. After the first event,
    `fitted` is the current value of the model's `Learner`.

    Examples
    --------
    >>> from clickbridge import BM25, Online, example_graph
    >>> model = Online([BM25()]).fit(example_graph())
    >>> model.rerank("where to sleep", ["slice", "hotels", "rooms"]).doc_ids
    ['hotels', 'slice', 'rooms']
    """

    name = "online"
    about = "re-ranks the lists of SPEC, or given ones, and learns from every click"
    paper = "09"
    Settings = OnlineSettings
    fitted_type: ClassVar[type[Fitted]] = FittedOnline

    # --- fit -------------------------------------------------------------------------------------

    def choose(self, study: Study) -> OnlineChoices:
        s: OnlineSettings = self.settings
        if s.blend != "auto":
            blend = Blend.parse(s.blend)
            pairs = CAUTIOUS_PAIRS if s.pairs == "auto" else s.pairs
            return OnlineChoices(parts=self.choose_parts(study), blend=blend, pairs=pairs)
        held, rest = study.hold_back(HELD_BACK, seed=s.seed)
        parts = self.choose_parts(rest)
        study.progress("online: choosing pairs and blend on held-back clicks")
        return choose_blend(study, held, rest, self.learn_parts(rest, parts)[0], parts, s)

    def _learn_log(self, study: Study, choices: OnlineChoices) -> FittedOnline:
        s: OnlineSettings = self.settings
        parts = self.learn_parts(study, choices.parts)
        lessons = Lessons(study, parts[0], s)
        first = []
        if study.graph.impressions is None and "search" not in parts[0].abilities:
            first = ["online: the log has no result pages; a query's clicked documents are used as its list"]
        p = lessons.projection
        sizes = p.spaces["sizes"]
        last = (
            f"online: {count_of(int(sizes.sum()), 'page')} in {count_of(p.n_components, 'component')}, the largest of "
            f"{int(sizes.max(initial=0)):,}; residual {p.residual:.1e}"
        )
        known = parts[0].queries
        return FittedOnline(
            model=self.name,
            settings=s,
            catalogue=study.catalogue,
            choices=choices,
            queries=known if len(known) else study.clicked().queries,
            notes=(*first, *joined_notes(parts, *choices.notes, last)),
            parts=parts,
            projection=p,
            rates=lessons.rates,
            pages=np.arange(len(study.catalogue)),
            reach=len(study.catalogue),
            state=lessons.state(choices.pairs),
            secret=self._secret(study),
        )

    def _secret(self, study: Study) -> Secret:
        """The secret for hashing users. It is kept only if users have weights of their own."""
        if not self.settings.per_user:
            return Secret()
        if study.graph.secret is None:
            raise ArtifactError("per_user needs the secret of the GRAPH: ask its owner for permission to read its key")
        return study.graph.secret or Secret.new()

    # --- what is fitted --------------------------------------------------------------------------

    @property
    def fitted(self) -> FittedOnline:
        """The model with everything learned so far."""
        source: FittedOnline | Learner | None = self.__dict__.get("_source")
        if source is None:
            raise self._not_fitted()
        return source.fitted if isinstance(source, Learner) else source

    @property
    def fitted_(self) -> Fitted:
        """The fitted value as it is now, with all events."""
        return self.fitted

    @fitted_.setter
    def fitted_(self, value: Fitted) -> None:
        assert isinstance(value, FittedOnline)
        source = self.__dict__.get("_source")
        if isinstance(source, Learner):
            source.restart(value)
        else:
            self.__dict__["_source"] = value

    def fit_on(self, study: Study, choices: Choices | None = None) -> Self:
        self._refuse_with_journal()
        return super().fit_on(study, choices)

    def update(
        self,
        log: Iterable[LogRecord] = (),
        docs: Iterable[Document] = (),
        remove: Iterable[str] = (),
        *,
        engine: Engine | None = None,
        applied: Sequence[str] = (),
    ) -> Self:
        """Learns the log's pages and clicks, and adds documents to the inner model, which does not learn from these
        clicks. New events wait until the update is done. The parameters are those of `Model.update`."""
        self._refuse_with_journal()
        source = self.__dict__.get("_source")
        with source.paused() if isinstance(source, Learner) else nullcontext():
            return super().update(log, docs, remove, engine=engine, applied=applied)

    @property
    def journaled(self) -> bool:
        """Whether a journal is open that writes new events to disk."""
        source = self.__dict__.get("_source")
        return isinstance(source, Learner) and source.durable

    def _refuse_with_journal(self) -> None:
        if self.journaled:
            raise ArtifactError("the model's journal is open: close it before the model is fitted or updated")

    def __getstate__(self) -> dict[str, Any]:
        """A copy has what was learned, but not the learner and its journal."""
        state = dict(self.__dict__)
        if "_source" in state:
            state["_source"] = self.fitted
        return state

    # --- events ----------------------------------------------------------------------------------

    @property
    def learner(self) -> Learner:
        """The learner that takes events, created at first use."""
        with _CREATING:
            source = self.__dict__.get("_source")
            if not isinstance(source, Learner):
                source = self.__dict__["_source"] = Learner(self.fitted)
            return source

    def __getattr__(self, name: str) -> Any:
        if name == "learner":  # an error of the property, which is an AttributeError, brought us here
            raise self._not_fitted()
        return super().__getattr__(name)

    def adopt(self, learner: Learner | FittedOnline) -> None:
        """Uses the learner of a journal, or goes back to a fitted value without a learner.

        Parameters
        ----------
        learner : Learner or FittedOnline
            What the model uses from now on.
        """
        with _CREATING:
            self.__dict__["_source"] = learner

    @overload  # type: ignore[override]
    def learn(self, study: Study, choices: OnlineChoices, /) -> FittedOnline: ...
    @overload
    def learn(self, page: Page, amount: float = 1.0) -> int: ...
    def learn(self, page: Study | Page, amount: OnlineChoices | float = 1.0) -> FittedOnline | int:
        """Learns from one result page and its clicks. Returns the event's number, which `undo` takes.

        `fit` calls this method, too, with a study and choices.

        Parameters
        ----------
        page : Impression or dict
            The result page and its clicks. A dict has the same keys as an `Impression`.
        amount : float
            How often the page counts.

        Returns
        -------
        int
            The number of the event.
        """
        if isinstance(page, Study):
            assert isinstance(amount, OnlineChoices)
            return self._learn_log(page, amount)
        assert not isinstance(amount, OnlineChoices)
        return TakesClicks.learn(self, page, amount)

    def rerank_for(self, user: str, query: str, doc_ids: Sequence[str]) -> Ranking:
        """Like `rerank`, with the weights that this user's own clicks have taught (setting `per_user`).

        Parameters
        ----------
        user : str
            The id of the user, as in the log.
        query : str
            What was typed.
        doc_ids : sequence of str
            Ids of the documents, in the order of your search engine.

        Returns
        -------
        Ranking
            Every given id exactly once, highest score first.
        """
        return self.fitted.rerank_for(user, query, doc_ids)
