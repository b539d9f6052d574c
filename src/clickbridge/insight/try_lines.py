"""The results of `try` in ten lines."""

from __future__ import annotations

import shlex
from collections import Counter
from datetime import UTC, datetime

import numpy as np

from clickbridge.evaluate.results import Comparison, ModelResult
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.people import people_by_query
from clickbridge.insight.try_log import REPORT, Tried
from clickbridge.insight.validation import PASS
from clickbridge.log.personal import redacted
from clickbridge.wording import count_of

EXAMPLES = 3


def lines_of(tried: Tried, *, min_users: int = 2) -> list[str]:
    """The lines: the log, the quality of the shown order, the gain of the model, three searches, what to do next."""
    return [
        _log_line(tried),
        _checks_line(tried),
        *_quality_lines(tried),
        *_example_lines(tried, min_users),
        _insight_line(tried),
        *_next_lines(tried),
    ]


def _log_line(tried: Tried) -> str:
    c, graph = tried.counts, tried.graph
    days = "" if c.first is None or c.last is None else f", {_day(c.first)} to {_day(c.last)}"
    has = [word for word, there in (("users", bool(c.users)), ("result pages", tried.shown)) if there]
    text = "" if graph.field_names else ", documents without text"
    return (
        f"the log: {count_of(c.clicks, 'click')}, {count_of(graph.n_queries, 'query')}, "
        f"{count_of(graph.n_docs, 'document')}{days}"
        f"; with {' and '.join(has) or 'neither users nor result pages'}{text}"
    )


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")


def _checks_line(tried: Tried) -> str:
    verdicts = Counter(check.verdict for check in tried.checks)
    bad = [f"{check.name} ({check.found})" for check in tried.checks if check.verdict != PASS]
    passed = f"checks: {verdicts[PASS]} of {len(tried.checks)} pass"
    if not bad:
        return passed
    more = f" and {len(bad) - 2} more" if len(bad) > 2 else ""
    return f"{passed}; look at {'; '.join(bad[:2])}{more}"


def _quality_lines(tried: Tried) -> list[str]:
    found, best = tried.compared, tried.best
    if found is None or best is None:
        return [
            "too few searches can be held back to compare models: what the model gains is not known",
            f"the model: {tried.model.fitted.spec}, the usual one for such a log",
        ]
    held = "the last fifth by time" if tried.by == "time" else "a fifth of the queries"
    base = found[found.baseline]
    name = {"given": "the order that people were shown" if tried.shown else "the most clicked first"}
    current = f"{name.get(base.spec, base.spec)} reaches {found.main} {_mean(base, found)}"
    no_order = "" if tried.shown or base.spec == "given" else "; the log does not say what was shown"
    out = [f"measured on {held}, {count_of(len(found.counted), 'query')}: {current}{no_order}"]
    own = best.paired.get(found.main)
    gain = "" if own is None else f", {own.difference:+.3f} (95% interval {own.low:+.3f} to {own.high:+.3f})"
    if own is not None and own.low <= 0 <= own.high:
        gain += ", which may be chance"
    others = [m for m in found.models if m not in (base, best)]
    rest = "".join(f"; {m.spec} {_mean(m, found)}" for m in others)
    head = "no model gains on it; the one learned" if own is not None and own.difference <= 0 else "the best model"
    return [*out, f"{head}: {best.spec} reaches {_mean(best, found)}{gain}{rest}"]


def _mean(model: ModelResult, found: Comparison) -> str:
    mean = model.mean(found.main)
    return "no score" if mean is None else f"{mean:.3f}"


def _example_lines(tried: Tried, min_users: int) -> list[str]:
    """The searches whose first clicked document moves up most."""
    found, best = tried.compared, tried.best
    if found is None or best is None or best.spec == found.baseline:
        return []
    base = found[found.baseline]
    allowed = _shown_queries(tried.graph, min_users)
    gains = {q: best.values[found.main][q] - base.values[found.main][q] for q in found.counted}
    number = {r.query_id: i for i, r in enumerate(found.lists)}
    out: list[str] = []
    for query_id in sorted(gains, key=lambda q: -gains[q]):
        result = found.lists[number[query_id]]
        if len(out) == EXAMPLES or gains[query_id] <= 0:
            break
        if (result.query or result.query_id) not in allowed:
            continue
        after, i = _first_wanted(best, number[query_id], result.labels or [])
        title = found.titles.get(result.results[i], result.results[i])
        name = redacted(result.query or result.query_id)
        out.append(f"  {name}: {title}, from rank {_place(base, number[query_id], i)} to {after}")
    return out


def _shown_queries(graph: ClickGraph, min_users: int) -> set[str]:
    enough = np.flatnonzero(people_by_query(graph) >= min_users)
    return {graph.query_names[int(i)] for i in enough}


def _first_wanted(model: ModelResult, number: int, labels: list[float]) -> tuple[int, int]:
    """The best rank of a clicked document, and which document it is."""
    ranked = model.trial.ranked[number].tolist()
    return next((place, i) for place, i in enumerate(ranked, 1) if labels[i] > 0)


def _place(model: ModelResult, number: int, wanted: int) -> int:
    return model.trial.ranked[number].tolist().index(wanted) + 1


def _insight_line(tried: Tried) -> str:
    found = tried.insights
    few = ", ".join(f"{s.typed} -> {s.means}" for s in found.synonyms[:3])
    counts = [
        f"{len(found.synonyms):,} synonyms{f' ({few})' if few else ''}",
        f"{len(found.dead):,} dead searches",
        f"{len(found.buried):,} buried documents",
        f"{len(found.needs):,} needs typed in several ways",
    ]
    return f"insights: {', '.join(counts)}: {tried.out}/insights/insights.html"


def _next_lines(tried: Tried) -> list[str]:
    out = shlex.quote(str(tried.out))
    report = f"the report: {tried.out}/{REPORT}; " if tried.compared is not None else ""
    if "search" not in tried.model.fitted.abilities:
        rank = f"clickbridge rank {out}/model --lists LISTS --out RUN"
        return [f"{report}next: {rank}, clickbridge serve {out}/model (POST /rank)"]
    search = f'clickbridge search {out}/model "…" --explain'
    return [f"{report}next: clickbridge serve {out}/model (the search page), {search}"]
