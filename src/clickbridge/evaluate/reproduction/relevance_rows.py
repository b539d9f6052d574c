"""What the relevance tables of 13, 12, 11M and 11R share: rows of models, columns of measures, the papers' own tests.

A system has two rows: as its paper prints it, and ours. The published figures are next to the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from clickbridge.evaluate.reproduction.bench import NDCG, OVER_LISTS, Data
from clickbridge.evaluate.reproduction.paper_table import Cell, Table, TableRow, missing
from clickbridge.evaluate.significance import Array, gains_over, holm, mark, p_in_words, sign_test, t_test

PRINTED, OURS = ", as printed", ", ours"
AS_PRINTED = {"as_printed": True, "bltm.fields": "equal"}
"""BLTM has no switch of its own, since all else is as in its paper; but no row as printed learns weights of fields."""
SUMMED = {**AS_PRINTED, **OVER_LISTS}
NINE_TO_ONE = {**SUMMED, "weights": "0.9,0.1"}
EIGHT_TO_TWO = {**SUMMED, "weights": "0.8,0.2"}
"""The weights that 11M found best for sums with BM25 on enterprise data; and, as 12, on web data."""
NONE: Mapping[str, Any] = {}


class Line(NamedTuple):
    """A row of a published table: its name in the paper, our spec, the settings of the paper, and its figures; also the
    settings of our own row, None if both are the same."""

    label: str
    spec: str
    paper: tuple[Cell, ...]
    settings: Mapping[str, Any] = {}
    ours: Mapping[str, Any] | None = None


def both_rows(lines: Iterable[Line]) -> list[Line]:
    """The row as printed and ours, for every system that we have changed."""
    return [row for line in lines for row in _rows(line)]


def _rows(line: Line) -> tuple[Line, ...]:
    if line.ours is None:
        return (line,)
    printed = line._replace(label=line.label + PRINTED, ours=None)
    return printed, Line(line.label + OURS, line.spec, (), line.ours)


def variant(lines: Sequence[Line], label: str, ours: bool) -> Line:
    """The row of a system, ours or as printed. Some systems have only one row."""
    found = _rows(next(line for line in lines if line.label == label))
    return found[-1] if ours else found[0]


def relevance_table(
    key: str, title: str, data: Data, lines: Sequence[Line], *, with_map: bool, compare: str = "nDCG@1"
) -> Table:
    """Means over the judged queries that are in the log, as in the papers. Additional columns: nDCG@5 of queries that
    are not in the log, and whether each model differs from BM25 (or from the first row, if there is no BM25)."""
    measures = ((data.map_name,) if with_map else ()) + NDCG
    columns = (*(("MAP",) if with_map else ()), *NDCG)
    apart = data.lists["unseen"] is not data.lists["seen"]
    base = next((line for line in lines if line.spec == "bm25"), lines[0])
    differs = p_values(data, lines, base)
    rows = []
    for line in lines:
        ours = data.means(line.spec, measures, line.settings)
        if apart:
            ours = (*ours, *data.means(line.spec, (NDCG[-1],), line.settings, "unseen"))
        trial = data.trial(line.spec, line.settings)
        ours = (*ours, differs.get(line.label), round(trial.seconds, 2) if trial.values else None)
        rows.append(TableRow(line.label, ours, line.paper))
    columns = (*columns, *((f"unseen {NDCG[-1]}",) if apart else ()), f"p vs {base.label}", "fit CPU s")
    table = Table(key, title, data.about, columns, rows)
    table.notes.append(table.agreement_note(columns.index(compare), without_scores(data, lines)))
    table.notes.append(
        f"p vs {base.label}: paired t-test of {NDCG[-1]}, Holm-corrected over the rows; ▲ better, ▼ worse at .05, "
        "doubled at .01"
    )
    return table


def without_scores(data: Data, lines: Sequence[Line]) -> set[str]:
    """The rows without figures of their own, by label: models that have no score here, and sums with such a model,
    which are copies of the rest of the sum."""
    silent = {line.spec for line in lines if isinstance(data.values(line.spec, line.settings), str)}
    return {line.label for line in lines if silent & {line.spec, *line.spec.split("+")}}


def p_values(data: Data, lines: Sequence[Line], base: Line) -> dict[str, str]:
    """The p-values of the differences in nDCG@5 from the base row, by label. Significant ones are marked."""
    found = {line.label: data.values(line.spec, line.settings) for line in lines}
    values = {label: own[NDCG[-1]] for label, own in found.items() if not isinstance(own, str)}
    if base.label not in values:
        return {}
    gains = {label: gains_over(own, values[base.label]) for label, own in values.items() if label != base.label}
    corrected = holm([t_test(own) for own in gains.values()])
    return {
        label: f"{p_in_words(p)} {mark(float(own.sum()), p)}".rstrip()
        for (label, own), p in zip(gains.items(), corrected, strict=True)
    }


# --- the papers' own tests -------------------------------------------------------------------------


def signs(gains: Array) -> float:
    """p of the sign test over queries."""
    return sign_test(int((gains > 0).sum()), int((gains < 0).sum()))


PValue = Callable[[Array], float]
"""A test of differences: `signs`, for instance."""


class OwnTest(NamedTuple):
    """How a paper tests its systems against every baseline, on which measure."""

    name: str
    p_of: PValue
    measure: str


def direction(found: Array, p_of: PValue) -> int:
    """Which way the differences point, 1 or -1: their mean and, in a sign test, their number. 0 if these two disagree:
    many small gains can go with fewer losses that are larger."""
    mean = int(np.sign(found.mean())) if len(found) else 0
    return mean if p_of is not signs or mean == np.sign(np.sign(found).sum()) else 0


def t_on(measure: str) -> OwnTest:
    return OwnTest("t-test", t_test, measure)


def sign_on(measure: str) -> OwnTest:
    return OwnTest("sign test", signs, measure)


def gains(data: Data, one: Line, two: Line, measure: str, only: set[str] | None = None) -> Array | None:
    """The differences between two rows for each query; None if one row has no figures."""
    found = [data.values(line.spec, line.settings) for line in (one, two)]
    if any(isinstance(own, str) for own in found):
        return None
    values = [own[measure] for own in found if not isinstance(own, str)]
    kept = [{q: v for q, v in own.items() if only is None or q in only} for own in values]
    return gains_over(*kept)


def own_tests(key: str, data: Data, lines: Sequence[Line], champions: Sequence[str], test: OwnTest) -> Table:
    """Each of the paper's own systems against every other row, by the paper's own test, uncorrected as there."""
    heads = [line for label in champions for line in _rows(next(own for own in lines if own.label == label))]
    rows = [
        TableRow(line.label, tuple(_against(data, head, line, test) for head in heads)) for line in both_rows(lines)
    ]
    measure = test.measure.partition("(")[0].replace("AP", "MAP")
    title = f"{' and '.join(champions)} against every row: difference in {measure}, {test.name}"
    note = (
        "each column less each row; p not corrected, as in the paper; ▲ the column is better, ▼ worse, at .05 and .01"
    )
    return Table(f"{key}-tests", title, data.about, tuple(head.label for head in heads), rows, [note])


def _against(data: Data, head: Line, line: Line, test: OwnTest) -> Cell:
    found = None if head == line else gains(data, head, line, test.measure)
    if found is None or not len(found):
        return None
    p, way = test.p_of(found), direction(found, test.p_of)
    shown = mark(way, p) if way else ""
    return f"{found.mean():+.3f}, p {p_in_words(p)} {shown}".rstrip()


# --- queries by their clicks -----------------------------------------------------------------------

BINS = ((0, 10, "<=10"), (10, 100, "<=100"), (100, 1000, "<=1000"), (1000, 10**12, ">1000"))


def click_groups(data: Data) -> Iterator[tuple[str, set[str]]]:
    """Judged queries by the number of clicks that they have in the log."""
    clicks = {r.query_id: data.clicks_of.get(r.query, 0) for r in data.lists["seen"]}
    for low, high, name in BINS:
        # A judged query without clicks belongs to the first group.
        yield name, {q for q, n in clicks.items() if low < n <= high or (n == 0 and low == 0)}


def bins_table(key: str, title: str, data: Data, lines: Sequence[Line]) -> Table:
    """nDCG by the number of clicks that a query has in the log (13, Tables 6 and 7)."""
    groups = dict(click_groups(data))
    columns = tuple(f"{name} @{k}" for name in groups for k in (1, 3, 5))
    rows = []
    for line in lines:
        found = data.values(line.spec, line.settings)
        means = [data.means(line.spec, NDCG, line.settings, only=group) for group in groups.values()]
        ours = missing(found, columns) if isinstance(found, str) else tuple(cell for group in means for cell in group)
        rows.append(TableRow(line.label, ours, line.paper))
    sizes = ", ".join(f"{name}: {len(group):,}" for name, group in groups.items())
    return Table(key, title, data.about, columns, rows, [f"queries by clicks: {sizes}"], stacked=True)
