"""The results of a comparison: means, tests, groups of queries, cost; as rows, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

from clickbridge.evaluate.significance import Paired, gains_over, holm, t_test
from clickbridge.evaluate.similar import PairedPreference
from clickbridge.evaluate.slices import GROUPINGS, Cell, QueryFacts, cell, group
from clickbridge.evaluate.tables import html_of, text_table
from clickbridge.evaluate.trial import Trial
from clickbridge.frames import Table, Value, frame_of_rows
from clickbridge.graph.parts import Impressions
from clickbridge.graph.rank_effect import RankEffect, rank_effect
from clickbridge.io.files import plain_cell, written_aside
from clickbridge.types import ResultList
from clickbridge.wording import count_of


@dataclass(frozen=True)
class ModelResult:
    """The results of one model: its value for every query by measure, and its comparison with the baseline (empty for
    the baseline itself). A list for which the model has no score is measured in its incoming order."""

    spec: str
    values: dict[str, dict[str, float]]
    no_score: frozenset[str]
    trial: Trial
    paired: dict[str, Paired]

    def over(self, measure: str, ids: list[str]) -> Cell:
        return cell(self.values[measure], ids, self.no_score)

    def mean(self, measure: str) -> float | None:
        """The mean of a measure; None if the model has no score for any query."""
        return self.over(measure, list(self.values[measure])).mean


@dataclass(frozen=True)
class Pair:
    """Two models compared by the main measure: the mean difference and the p-value of the t-test, corrected over all
    pairs."""

    one: str
    two: str
    difference: float
    p_value: float


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`: the models in the order given, with their means, tests and costs.

    It prints as a table, also in a notebook. `to_frame`, `write_csv` and `write_report` give more. `found["bm25"]` is
    the result of one model. See `compare` for an example.

    Parameters
    ----------
    models : list of ModelResult
        The result of each model: its `spec`, and its `values` by measure and query id.
    baseline : str
        The model that the others are compared with.
    measures : list of str
        The names of the measures.
    main : str
        The measure used for tests, groups and examples.
    refused : dict of str to str
        Models that could not be measured, each with the reason.
    by_dim : dict of str to dict
        For models that were also learned with other numbers of dimensions: the mean of `main` for each number.
    queries : dict of str to QueryFacts
        What is known about each judged query, by its id: its text, clicks and number of words.
    lists : list of ResultList
        The judged lists.
    titles : mapping of str to str
        The titles of documents by id.
    notes : list of str
        Lines for the user, such as what was left out.
    made : dict of str to str
        What is needed to repeat the comparison: the command, the data, the versions, the machine, the date.
    pages : Impressions, optional
        The result pages that the models learned from.
    """

    models: list[ModelResult]
    baseline: str
    measures: list[str]
    main: str
    refused: dict[str, str]
    by_dim: dict[str, dict[int, Cell]]
    queries: dict[str, QueryFacts]
    lists: list[ResultList]
    titles: Mapping[str, str]
    notes: list[str]
    made: dict[str, str]
    pages: Impressions | None = None
    """The result pages that the models learned from."""

    @cached_property
    def by_rank(self) -> RankEffect | None:
        """The share of clicks by rank, and how likely each rank is looked at. Computed at first use."""
        return rank_effect(self.pages)

    def __getitem__(self, spec: str) -> ModelResult:
        return next(model for model in self.models if model.spec == spec)

    @property
    def counted(self) -> list[str]:
        """The ids of the queries for which the main measure has a value."""
        return list(self.models[0].values[self.main])

    @cached_property
    def ordered(self) -> list[ModelResult]:
        """The models sorted by the main measure, best first. Models without any score come last."""
        return sorted(self.models, key=lambda m: -1.0 if (mean := m.mean(self.main)) is None else mean, reverse=True)

    @cached_property
    def pairs(self) -> list[Pair]:
        """All pairs of models, the better one of each first."""
        scored = [m for m in self.ordered if m.mean(self.main) is not None]
        gains = {
            (a.spec, b.spec): gains_over(a.values[self.main], b.values[self.main]) for a, b in combinations(scored, 2)
        }
        corrected = holm([t_test(g) for g in gains.values()])
        return [Pair(*names, float(g.mean()), p) for (names, g), p in zip(gains.items(), corrected, strict=True)]

    @cached_property
    def slices(self) -> dict[str, dict[str, dict[str, Cell]]]:
        """The results for groups of queries: by grouping, group and model."""
        queries = [self.queries[query_id] for query_id in self.counted]
        return {
            grouping.name: {
                name: {m.spec: m.over(self.main, ids) for m in self.models}
                for name, ids in group(grouping, queries).items()
            }
            for grouping in GROUPINGS
        }

    # --- out -------------------------------------------------------------------------------------

    def rows(self) -> list[dict[str, Value]]:
        """The results as rows of a table, one per model, with unrounded numbers.

        Returns
        -------
        list of dict
            One per model: its means, its comparison with the baseline, its time and its memory.
        """
        return [
            {
                "model": m.spec,
                "queries": len(self.counted),
                **{name: m.mean(name) for name in self.measures},
                **(m.paired[self.main].as_dict() if m.paired else {}),
                "no_score": len(m.no_score),
                "fit_s": m.trial.seconds,
                "query_ms": m.trial.query_ms,
                "peak_mb": m.trial.peak_mb,
            }
            for m in self.models
        ]

    def to_frame(self, kind: str | None = None) -> Table:
        """A data frame with one row per model.

        Parameters
        ----------
        kind : str, optional
            "pandas", "polars" or "arrow". By default pandas if it is installed, else Polars, else Arrow.

        Returns
        -------
        data frame
            With the columns of `rows`.
        """
        return frame_of_rows(self.rows(), kind)

    def _shown(self) -> list[dict[str, Any]]:
        """The rows as printed, with marks for significant differences."""
        out = []
        for row, m in zip(self.rows(), self.models, strict=True):
            tested = m.paired.get(self.main)
            marks = {name: m.paired[name].mark if m.paired else "" for name in self.measures}
            means = {n: "no score" if row[n] is None else f"{row[n]:.4f}{marks[n]}" for n in self.measures}
            gain = {f"{self.main} gain": tested.difference if tested else None, "p": tested.p_value if tested else None}
            out.append({"model": m.spec, **means, **gain, "no score": row["no_score"], "fit s": row["fit_s"]})
        return out

    @property
    def _title(self) -> str:
        return f"{count_of(len(self.counted), 'judged query')}; ▲ better, ▼ worse than {self.baseline} (t-test, .05)"

    def __str__(self) -> str:
        left_out = [f"{name} is left out: {reason}" for name, reason in self.refused.items()]
        return "\n".join([self._title, text_table(self._shown()), *left_out, *self.notes])

    __repr__ = __str__  # an interpreter shows what a notebook does

    def _repr_html_(self) -> str:
        return html_of(self._title, self._shown(), self.notes)

    def as_dict(self) -> dict[str, object]:
        """All results as a dict that can be written as JSON.

        Returns
        -------
        dict
            The rows, and the tests, groups, settings and notes.
        """
        marks = {m.spec: {name: p.mark for name, p in m.paired.items()} for m in self.models}
        return {
            "main": self.main,
            "baseline": self.baseline,
            "models": [row | {"marks": own} for row, own in zip(self.rows(), marks.values(), strict=True)],
            "refused": self.refused,
            "pairs": [vars(pair) for pair in self.pairs],
            "slices": self.slices,
            "dims": {spec: {str(dim): own for dim, own in cells.items()} for spec, cells in self.by_dim.items()},
            "settings": {m.spec: m.trial.settings for m in self.models},
            "reused": [m.spec for m in self.models if m.trial.reused],
            "notes": self.notes,
            "made": self.made,
        }

    def write_csv(self, path: str | Path) -> None:
        """Writes a CSV file with one row for each query and model, with every measure.

        Parameters
        ----------
        path : str or Path
            The file to write.
        """
        text = io.StringIO(newline="")
        out = csv.writer(text)
        out.writerow(["query_id", "query", "clicks", "words", "model", "no_score", *self.measures])
        for number, (query_id, query) in enumerate(self.queries.items(), 1):
            # An id may contain the query's words. If these are hidden, the number of the list is used instead.
            named = query_id if query.shown in (query.text, query_id) else f"list {number}"
            for m in self.models:
                values = [m.values[name].get(query_id, "") for name in self.measures]
                known = [plain_cell(named), plain_cell(query.shown if query.text else ""), query.clicks, query.words]
                out.writerow([*known, m.spec, int(query_id in m.no_score), *values])
        with written_aside(path) as file:
            file.write(text.getvalue().encode())

    def write_report(self, path: str | Path, similar: Sequence[PairedPreference] = ()) -> None:
        """Writes one self-contained HTML file.

        Parameters
        ----------
        path : str or Path
            The file to write.
        similar : sequence of PairedPreference
            Comparisons of similar queries, to show as bars.
        """
        from clickbridge.evaluate.report import render

        with written_aside(path) as file:
            file.write(render(self, similar).encode())
