"""`try`: makes a model, a comparison on later searches, and insights from any log, in one step.

The log is checked, then split. Models are chosen and fitted on the earlier part, and compared on the later part with
the order that people were shown, or with bm25 if the log does not have it. The model that is saved is fitted on the
whole log.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from clickbridge.engines.base import Engine
from clickbridge.errors import InputError
from clickbridge.evaluate.compare import compare
from clickbridge.evaluate.results import Comparison, ModelResult
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.insight.insights import Insights, find_insights, write_insights
from clickbridge.insight.log_counts import LogCounts, count_log
from clickbridge.insight.validation import FEW_CLICKS, Check, checks_of
from clickbridge.io.lists import read_lists, write_lists
from clickbridge.log.documents import DocumentReader
from clickbridge.log.readers import LogReader, read_log
from clickbridge.log.rejects import RejectLog
from clickbridge.log.split import split_log
from clickbridge.models.auto import Auto, budget_seconds
from clickbridge.models.fitted import Fitted
from clickbridge.models.model import Model
from clickbridge.progress import Progress, logged
from clickbridge.wording import count_of

REPORT = "report.html"
TRAINING_SHARE = "80%"
MOSTLY_TIMED = 0.95
"""Share of records with a time from which on the later part is held back; else whole queries are."""
CHOOSING = 0.6
"""Share of the budget for choosing; the rest is for learning the choice from everything."""
FEW_LISTS = 20
"""Judged queries below which a comparison says nothing."""


@dataclass(frozen=True)
class Tried:
    """The results. `compared` is None if too few searches could be held back to compare models."""

    out: Path
    counts: LogCounts
    checks: list[Check]
    graph: ClickGraph
    model: Auto
    by: str
    compared: Comparison | None
    insights: Insights
    shown: bool
    """Whether the log says in which order results were shown."""

    @property
    def best(self) -> ModelResult | None:
        """The chosen model, as measured on the later searches."""
        return None if self.compared is None else self.compared[self.model.fitted.spec]


def check_target(out: Path) -> None:
    """Refuses a folder that contains something else."""
    if os.path.lexists(out) and (out.is_symlink() or not out.is_dir()):
        raise InputError(f"{out} is not a folder: choose another --out")
    if out.is_dir() and any(out.iterdir()) and not (out / "graph" / "manifest.json").is_file():
        raise InputError(f"{out} holds something else: choose another --out, or remove it")
    if not out.parent.is_dir():
        raise InputError(f"cannot write {out}: its folder does not exist")


def check_size(counts: LogCounts) -> None:
    """Refuses a log that is too small to learn from, and says what can be done."""
    if counts.clicks < FEW_CLICKS:
        raise InputError(
            f"the log has {count_of(counts.clicks, 'click')}; learning needs {FEW_CLICKS}, and measuring what it gains "
            "some thousands: collect more. Until then, search the documents by their words (clickbridge ingest LOG "
            "--docs DOCS --out graph, fit graph --model bm25 --out model, serve model); the service logs clicks too"
        )


def try_log(
    log: LogReader,
    documents: DocumentReader,
    out: Path,
    *,
    budget: str = "10m",
    min_users: int = 2,
    max_rejects: str = "1%",
    engine: Engine | None = None,
    progress: Progress = logged,
    command: str = "clickbridge try",
) -> Tried:
    """Runs `try`. `log` and `documents` read everything; `max_rejects` is the share of lines that may be unusable."""
    seconds = budget_seconds(budget)
    check_target(out)
    progress("checking the log")
    counts = count_log(log, progress)
    checks = checks_of(log, counts, documents if documents.paths else None)
    _check_lost(log, max_rejects)
    check_size(counts)
    out.mkdir(exist_ok=True)
    by = "time" if counts.timed >= MOSTLY_TIMED * counts.records else "query"
    with tempfile.TemporaryDirectory(prefix="clickbridge-") as scratch:
        log.rejects.reset()
        documents.rejects.reset()
        held = _held_back(log, by, Path(scratch), progress)
        log.rejects.reset()
        graph = ClickGraph.build(log, documents, out / "graph", progress=progress)
        shown = graph.impressions is not None
        model = Auto(budget=f"{max(CHOOSING * seconds, 1):.0f}s")
        compared = None
        if held is not None:
            documents.rejects.reset()
            earlier = ClickGraph.build(read_log(held[0]), documents, Path(scratch) / "graph", progress=progress)
            model.fit(earlier, engine=engine, progress=progress)
            compared = _compared(earlier, Path(scratch) / "graph", held[1], model, shown, command, engine, progress)
            compared.write_report(out / REPORT)
            progress(f"learning {model.fitted.spec} from everything")
            model.refit(graph, engine=engine)
        else:
            model.fit(graph, engine=engine, progress=progress)
    model.save(out / "model")
    progress("looking for synonyms and searches that fail")
    insights = find_insights(graph, min_users=min_users)
    write_insights(insights, out / "insights", "What the log tells")
    return Tried(out, counts, checks, graph, model, by, compared, insights, shown)


def _check_lost(log: LogReader, max_rejects: str) -> None:
    """Checks the share of unusable lines. The reader itself does not stop, so that all lines are counted."""
    limit = RejectLog(max_rejects)
    limit.count, limit.lines, limit.first = log.rejects.count, log.rejects.lines, log.rejects.first
    limit.close()


def _held_back(log: LogReader, by: str, scratch: Path, progress: Progress) -> tuple[str, str] | None:
    """A training log, and lists from the rest; None if too little can be held back."""
    train, lists = str(scratch / "train.jsonl"), str(scratch / "lists.jsonl")
    progress("holding back the last fifth" if by == "time" else "holding back a fifth of the queries")
    try:
        report = split_log(log, at=TRAINING_SHARE, by=by, train=train, lists=lists)
    except InputError:  # nothing on one side of the cut, or no list with both clicked and unclicked results
        return None
    return (train, lists) if report.lists >= FEW_LISTS else None


def _compared(
    graph: ClickGraph,
    place: Path,
    lists: str,
    model: Auto,
    shown: bool,
    command: str,
    engine: Engine | None,
    progress: Progress,
) -> Comparison:
    """Compares the chosen model with the shown order and with bm25, if the log has them."""
    text = bool(graph.field_names) and any(graph.query_texts)
    if not shown and not text:
        _most_clicked_first(lists, graph)
    chosen = model.fitted.spec
    baseline = "given" if shown or not text else "bm25"
    rivals = [spec for spec in (baseline, "bm25" if text else baseline) if spec != chosen]
    names = dict.fromkeys(rivals or ["given"])
    models: dict[str, str | Model | Fitted] = {**{name: name for name in names}, chosen: model.fitted}
    return compare(place, lists, models, baseline=next(iter(names)), engine=engine, progress=progress, command=command)


def _most_clicked_first(path: str, graph: ClickGraph) -> None:
    """Without pages and text, the baseline is the order by earlier clicks."""
    clicks = np.bincount(graph.pairs.doc, graph.pairs.clicks, minlength=graph.n_docs)
    popular = dict(zip(graph.doc_ids, clicks.tolist(), strict=True))

    def by_clicks(results: Sequence[str]) -> list[int]:
        return sorted(range(len(results)), key=lambda i: -popular.get(results[i], 0.0))

    ordered = []
    for one in read_lists(path):
        places = by_clicks(one.results)
        labels = one.labels or [0.0] * len(places)
        ordered.append(replace(one, results=[one.results[i] for i in places], labels=[labels[i] for i in places]))
    write_lists(path, ordered)
