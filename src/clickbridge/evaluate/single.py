"""Measures one fitted model on judged lists, in this process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from clickbridge.errors import InputError, shown
from clickbridge.evaluate.judged import Judged, Qrels, judged_lists
from clickbridge.evaluate.own import OwnModel, Score, Scorer, is_own, not_a_model
from clickbridge.evaluate.slices import Cell, cell
from clickbridge.evaluate.tables import html_of, text_table
from clickbridge.frames import Frame, Table, Value, frame_of_rows, is_frame
from clickbridge.io.lists import read_lists
from clickbridge.measures import Measure, evaluate_run, parse_measures
from clickbridge.models.fitted import Array, Fitted
from clickbridge.models.model import Model
from clickbridge.types import ResultList
from clickbridge.wording import count_of

MEASURES = "nDCG@1,nDCG@3,nDCG@5,AP"
CHUNK = 4096


@dataclass(frozen=True)
class Evaluation:
    """The result of `evaluate`: how well one model ranks judged lists.

    It prints as a table of means, also in a notebook. `to_frame` gives the values of every query, and
    `found["nDCG@5"]` the mean of one measure. See `evaluate` for an example.

    Parameters
    ----------
    model : str
        The model as the command line writes it.
    values : dict of str to dict
        The values by measure and query id. Queries without a relevant document have no value. A list for which the
        model has no score is measured in its incoming order.
    no_score : frozenset of str
        Ids of the queries for which the model has no score.
    queries : mapping of str to str
        The text of each query by its id.
    notes : tuple of str
        Lines for the user, such as what was left out.
    """

    model: str
    values: dict[str, dict[str, float]]
    no_score: frozenset[str]
    queries: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def measures(self) -> list[str]:
        """The names of the measures, in a uniform spelling."""
        return list(self.values)

    @property
    def means(self) -> dict[str, float]:
        """The mean over all queries, by measure."""
        return {name: float(np.mean(list(own.values()))) for name, own in self.values.items()}

    def __getitem__(self, measure: str) -> float:
        """The mean of a measure, in any of its spellings."""
        return self.means[parse_measures(measure)[0].name]

    @property
    def counted(self) -> int:
        """The number of judged queries with a relevant document. Only these have a value."""
        return len({query_id for own in self.values.values() for query_id in own})

    @property
    def answered(self) -> int:
        """The number of counted queries for which the model has a score."""
        return self.counted - len(self.no_score)

    @property
    def coverage(self) -> str:
        """The number of counted queries for which the model has a score, as text: "answers 120 of 325"."""
        return f"answers {self.answered:,} of {self.counted:,}"

    @property
    def _title(self) -> str:
        return f"{self.model}: answers {count_of(self.answered, 'judged query', of=self.counted)}"

    def over(self, measure: str) -> Cell:
        """The mean of a measure and its 95% interval.

        Parameters
        ----------
        measure : str
            One of `measures`.

        Returns
        -------
        Cell
            With `mean`, `low`, `high` and `n`, the number of queries.
        """
        return cell(self.values[measure], list(self.values[measure]), frozenset())

    def rows(self) -> list[dict[str, Value]]:
        """The means as rows of a table, one per measure.

        Returns
        -------
        list of dict
            One per measure, with `measure`, `mean`, the 95% interval from `low` to `high`, and the number of
            `queries`.
        """
        found = {name: self.over(name) for name in self.measures}
        return [
            {"measure": name, "mean": own.mean, "low": own.low, "high": own.high, "queries": own.n}
            for name, own in found.items()
        ]

    def to_frame(self, kind: str | None = None) -> Table:
        """A data frame with one row per query and one column per measure.

        Parameters
        ----------
        kind : str, optional
            "pandas", "polars" or "arrow". By default pandas if it is installed, else Polars, else Arrow.

        Returns
        -------
        data frame
            With columns `query_id`, `query`, `answered` (whether the model has a score) and one for each measure.
        """
        ids = list(dict.fromkeys(query_id for own in self.values.values() for query_id in own))
        return frame_of_rows(
            [
                {
                    "query_id": query_id,
                    "query": self.queries.get(query_id, ""),
                    "answered": query_id not in self.no_score,
                    **{name: own.get(query_id) for name, own in self.values.items()},
                }
                for query_id in ids
            ],
            kind,
        )

    def __str__(self) -> str:
        return "\n".join([self._title, text_table(self.rows()), *self.notes])

    __repr__ = __str__  # an interpreter shows what a notebook does

    def _repr_html_(self) -> str:
        return html_of(self._title, self.rows(), self.notes)


def evaluate(
    model: Model | Fitted | Scorer | Score,
    lists: Sequence[ResultList] | str | Path | Frame,
    measures: str | Sequence[str] = MEASURES,
    *,
    qrels: Qrels | None = None,
) -> Evaluation:
    """The function behind `clickbridge.evaluate`, where it is documented."""
    fitted = fitted_of(model)
    judged = judged_lists(as_lists(lists), "evaluate", qrels)
    ranked, scores = reranked(fitted, judged.lists)
    values, no_score = measured(ranked, scores, judged, parse_measures(measures))
    for name, own in values.items():
        if not own:
            raise InputError(f"no list has a relevant document for {name}: nothing to measure")
    return Evaluation(fitted.spec, values, no_score, {r.query_id: r.query for r in judged.lists}, tuple(judged.notes))


def fitted_of(model: Any) -> Fitted | OwnModel:
    """The fitted value of a model; a fitted value is returned as it is."""
    if isinstance(model, Fitted):
        return model
    if is_own(model):
        return OwnModel(model)
    if not isinstance(model, Model):
        raise not_a_model(model, "evaluate takes a fitted model, or an object or function that scores documents")
    return model.fitted


def as_lists(lists: Any) -> list[ResultList]:
    """Lists from a file, a frame or objects."""
    if isinstance(lists, str | Path) or is_frame(lists):
        return read_lists(lists)
    if not isinstance(lists, Iterable) or isinstance(lists, Mapping):
        raise InputError(f"lists are ResultList objects, a LISTS file or a frame; got {shown(lists)}")
    found = list(lists)
    wrong = next((result for result in found if not isinstance(result, ResultList)), None)
    if wrong is not None:
        raise InputError(f"lists are ResultList objects, a LISTS file or a frame; one is a {type(wrong).__name__}")
    return found


def reranked(model: Fitted | Model | OwnModel, lists: Sequence[ResultList]) -> tuple[list[Array], list[Array]]:
    """Positions in each list, best first, and their scores. Labels are taken off first."""
    ranked: list[Array] = []
    scores: list[Array] = []
    for first in range(0, len(lists), CHUNK):
        chunk = [replace(result, labels=None) for result in lists[first : first + CHUNK]]
        for result, ranking in zip(chunk, model.rerank_lists(chunk), strict=True):
            place = {doc_id: i for i, doc_id in enumerate(result.results)}
            ranked.append(np.array([place[hit.doc_id] for hit in ranking], dtype=np.int32))
            scores.append(np.array([hit.score for hit in ranking], dtype=np.float32))
    return ranked, scores


def measured(
    ranked: Sequence[Array], scores: Sequence[Array], judged: Judged, measures: Sequence[Measure]
) -> tuple[dict[str, dict[str, float]], frozenset[str]]:
    """The values by measure and query, and the counted queries without any score."""
    lists = judged.lists
    run = {r.query_id: [r.results[i] for i in places] for r, places in zip(lists, ranked, strict=True)}
    values = evaluate_run(run, judged.grades, measures)
    counted = {query_id for own in values.values() for query_id in own}
    silent = {r.query_id for r, own in zip(lists, scores, strict=True) if not np.isfinite(own).any()}
    return values, frozenset(silent & counted)
