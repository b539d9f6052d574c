"""What the relevance tables of 13, 12, 11M and 11R share: rows of models, columns of measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from clickbridge.evaluate.reproduction.bench import NDCG, Data
from clickbridge.evaluate.reproduction.paper_table import Cell, Table, TableRow, missing
from clickbridge.evaluate.significance import gains_over, holm, mark, p_in_words, t_test


class Line(NamedTuple):
    """A row of a published table: how the paper calls it, our spec, the settings the paper had, its figures."""

    label: str
    spec: str
    paper: tuple[Cell, ...]
    settings: Mapping[str, Any] = {}


def relevance_table(
    key: str, title: str, data: Data, lines: Sequence[Line], *, with_map: bool, compare: str = "nDCG@1"
) -> Table:
    """Means over the judged queries of the log, as in the papers; nDCG@5 of queries that are not in it beside, and
    whether each model's differs from BM25's, or from the first row's where the table has no BM25."""
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
        fitted = data.fit(line.spec, line.settings)
        ours = (*ours, differs.get(line.label), round(fitted.seconds, 2) if fitted.model is not None else None)
        rows.append(TableRow(line.label, ours, line.paper))
    columns = (*columns, *((f"unseen {NDCG[-1]}",) if apart else ()), f"p vs {base.label}", "fit s")
    table = Table(key, title, data.about, columns, rows)
    table.notes.append(table.agreement_note(columns.index(compare)))
    table.notes.append(
        f"p vs {base.label}: paired t-test of {NDCG[-1]}, Holm-corrected over the rows; ▲ better, ▼ worse at .05, "
        "doubled at .01"
    )
    return table


def p_values(data: Data, lines: Sequence[Line], base: Line) -> dict[str, str]:
    """By label, p of the difference in nDCG@5 from the base row, marked where it is significant."""
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


BINS = ((0, 10, "<=10"), (10, 100, "<=100"), (100, 1000, "<=1000"), (1000, 10**12, ">1000"))


def bins_table(key: str, title: str, data: Data, lines: Sequence[Line]) -> Table:
    """nDCG by the number of clicks that a query has in the log (13, Tables 6 and 7)."""
    clicks = {r.query_id: data.clicks_of.get(r.query, 0) for r in data.lists["seen"]}
    groups = [{q for q, n in clicks.items() if low < n <= high} for low, high, _ in BINS]
    # A judged query nobody has clicked for belongs to the first.
    groups[0] |= {q for q, n in clicks.items() if n == 0}
    columns = tuple(f"{name} @{k}" for _, _, name in BINS for k in (1, 3, 5))
    rows = []
    for line in lines:
        found = data.values(line.spec, line.settings)
        means = [data.means(line.spec, NDCG, line.settings, only=group) for group in groups]
        ours = missing(found, columns) if isinstance(found, str) else tuple(cell for group in means for cell in group)
        rows.append(TableRow(line.label, ours, line.paper))
    sizes = ", ".join(f"{name}: {len(group):,}" for (_, _, name), group in zip(BINS, groups, strict=True))
    return Table(key, title, data.about, columns, rows, [f"queries by clicks: {sizes}"], stacked=True)
