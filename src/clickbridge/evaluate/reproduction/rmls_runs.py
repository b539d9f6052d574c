"""What 13 and 12 report besides the main tables: Table 1, and passes, threads, sensitivity and pairs of RMLS."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from clickbridge.engines.local import Local
from clickbridge.errors import ClickbridgeError
from clickbridge.evaluate import plots, slices
from clickbridge.evaluate.reproduction.bench import NDCG, Data
from clickbridge.evaluate.reproduction.lab import Lab
from clickbridge.evaluate.reproduction.paper_table import Cell, Table, TableRow
from clickbridge.evaluate.reproduction.relevance_rows import AS_PRINTED, BINS, click_groups
from clickbridge.graph.responses import responses
from clickbridge.graph.stats import table1
from clickbridge.log.preference import contradicted, preferences
from clickbridge.models.rmls import RMLS, RMLSChoices
from clickbridge.models.study import Study
from clickbridge.views.word import count_words
from clickbridge.wording import count_of

SIZES = ("d_x", "d_y", "c_x", "c_y", "documents_per_query", "queries_per_document", "N_x", "N_y", "W_x", "W_y")
PUBLISHED_SIZES: dict[str, tuple[Cell, ...]] = {
    "one-week": (210_000, 200_000, 4.0, 5.9, 1.74, 1.46, 1.7, 3.4, 24.82, 27.05),
    "half-year": (4_900_000, 6_600_000, 5.5, 8.6, 2.92, 4.04, 7.2, 5.9),
}
PASSES = 10
THREADS = (1, 2, 4, 8, 16)
SECONDS = {1: 1380, 20: 277}
REPEATS = 2
"""Of each number of threads the faster run counts: the first may compile."""
WAITED = 1.2
"""Seconds on the wall for each second of the processor, from which on one thread did not have a core of its own."""
DIMS = (100, 300, 1000)
MOST_IN_ROUNDS = {"ssi": 300, "svdfeature": 300, "bltm": 300}
"""The most dimensions of models that learn in many rounds, which take longest."""
BASELINES_BY_DIM = {"LSI_dt": "lsi-dt", "LSI_qd": "lsi-qd", "SVDFeature": "svdfeature", "BLTM": "bltm"}
STEPS = (1, 2, 3, 5, 7, 10)
BY_DIM = {"RMLS": "rmls", "PLS": "pls", "SSI": "ssi", **BASELINES_BY_DIM}


def table_1(lab: Lab) -> Iterator[Table]:
    """Sizes after the threshold on clicks, as 13 has them."""
    rows = []
    for scale, paper in PUBLISHED_SIZES.items():
        data = lab.simulated(scale)
        rows.append(TableRow(data.about, _sizes(data), paper))
    note = "documents per query and queries per document are 13's n~y and n~x"
    yield Table("13-1", "Statistics on query and document features", "named in each row", SIZES, rows, [note])


def _sizes(data: Data) -> tuple[Cell, ...]:
    graph = data.graph
    counted = responses(graph, min_clicks=int(data.settings.get("min_clicks", 1)))
    texts = {name: graph.field(name) for name in graph.field_names}
    found = table1(graph, counted, *count_words(graph.query_texts, texts, graph.n_docs))
    return tuple(found[name] if isinstance(found[name], int) else round(float(found[name]), 2) for name in SIZES)


# --- pass by pass ----------------------------------------------------------------------------------


def passes(lab: Lab) -> Iterator[Table]:
    """RMLS after each pass, as printed and ours; as printed with an early stop; and PLS, which has no passes."""
    for data in lab.relevance_sets("one-week"):
        found = {name: each_pass(data, settings) for name, settings in PASS_BY_PASS.items()}
        rows = [
            TableRow(f"{name}, pass {n}", values)
            for name, (by_pass, _) in found.items()
            for n, values in by_pass.items()
        ]
        by_pass, stop = found["as printed"]
        rows.append(TableRow(f"as printed, stopped early (pass {stop})", by_pass.get(stop, ())))
        rows.append(TableRow("PLS, as printed", (*data.means("pls", NDCG, AS_PRINTED), None, None)))
        note = "effective rank and the cosine of rows to one direction: 1 and 1 where all rows are the same vector"
        title = f"RMLS pass by pass, with and without decorrelation: {data.name}"
        columns = (*NDCG, "effective rank", "cosine to one direction")
        yield Table("13-passes", title, data.about, columns, rows, [note], svg=_pass_picture(found, title))


PASS_BY_PASS: dict[str, Mapping[str, Any]] = {"as printed": AS_PRINTED, "ours": {"iterations": PASSES}}


def each_pass(data: Data, settings: Mapping[str, Any]) -> tuple[dict[int, tuple[Cell, ...]], int]:
    """For each pass the measures, rank and cosine; and the pass after which held-back clicks would stop."""

    def run() -> tuple[dict[int, tuple[Cell, ...]], int]:
        with data.study.engine.at_work():
            return _run_passes(data, settings)

    return data.once(("passes", repr(settings)), run)


def _run_passes(data: Data, settings: Mapping[str, Any]) -> tuple[dict[int, tuple[Cell, ...]], int]:
    model, choices = _chosen(data, settings)
    out: dict[int, tuple[Cell, ...]] = {}
    for number, fitted in enumerate(model.each_pass(data.study, replace(choices, iterations=PASSES)), 1):
        values = data.measure(fitted, data.lists["seen"])
        means = ("no score",) if isinstance(values, str) else tuple(float(np.mean([*values[m].values()])) for m in NDCG)
        report = fitted.trace[-1]
        out[number] = (*means, report["effective_rank"], report["cosine_to_constant"])
    return out, choices.iterations


def _chosen(data: Data, settings: Mapping[str, Any]) -> tuple[RMLS, RMLSChoices]:
    """The model, and what it chooses on held-back clicks."""

    model, choices = data.chosen("rmls", settings)
    assert isinstance(model, RMLS)
    assert isinstance(choices, RMLSChoices)
    return model.in_language_of(data.study), choices


def _pass_picture(found: Mapping[str, tuple[dict[int, tuple[Cell, ...]], int]], title: str) -> str | None:
    series = {
        name: {n: slices.Cell(1, float(values[0])) for n, values in by_pass.items() if isinstance(values[0], float)}
        for name, (by_pass, _) in found.items()
    }
    return plots.alone(plots.curves(series, title), title) if all(series.values()) else None


# --- threads ---------------------------------------------------------------------------------------


def threads(lab: Lab) -> Iterator[Table]:
    """Figure 2 of 13 and Figure 1 of 12, with up to as many threads as this machine has cores."""
    data = lab.simulated("one-week")
    printed, ours = (by_threads(lab, settings) for settings in (AS_PRINTED, {}))
    rows = [TableRow(str(n), (printed[n].wall, ours[n].wall), (SECONDS.get(n),)) for n in printed]
    rows.append(TableRow("20", ("more than this machine has",) * 2, (SECONDS[20],)))
    notes = [
        f"as printed: {PASSES} passes; ours: as many as a fit makes",
        "seconds of wall-clock time from features to maps, the faster of two runs: what else the machine does counts",
        f"this machine has {count_of(len(os.sched_getaffinity(0)), 'core')}; 13 and 12 had 24",
    ]
    if disturbed(printed) or disturbed(ours):
        notes.append("the machine was busy: one thread did not have a core of its own, so threads are not compared")
    columns = ("as printed, seconds", "ours, seconds")
    yield Table("13-F2", "RMLS by threads (12, Figure 1)", data.about, columns, rows, notes)


class Timed(NamedTuple):
    """Seconds on the wall, and of processors."""

    wall: float
    cpu: float


def disturbed(timed: Mapping[int, Timed]) -> bool:
    """Whether one thread had to wait for other work on the machine."""
    return timed[1].wall > WAITED * timed[1].cpu


def by_threads(lab: Lab, settings: Mapping[str, Any]) -> dict[int, Timed]:
    """Time of learning by the number of threads."""
    data = lab.simulated("one-week")
    return data.once(("threads", repr(settings)), lambda: _timed(data, settings))


def _timed(data: Data, settings: Mapping[str, Any]) -> dict[int, Timed]:
    model, choices = _chosen(data, settings)
    out = {}
    for n in (count for count in THREADS if count <= len(os.sched_getaffinity(0))):
        with Local(threads=n) as engine:
            steps = replace(choices, iterations=PASSES if settings else choices.iterations)
            out[n] = min(_learned(model, Study(data.graph, engine), steps) for _ in range(REPEATS))
    return out


def _learned(model: RMLS, study: Study, choices: RMLSChoices) -> Timed:
    wall, cpu = time.perf_counter(), time.process_time()
    with study.engine.at_work():
        model.learn(study, choices)
    return Timed(round(time.perf_counter() - wall, 2), round(time.process_time() - cpu, 2))


# --- sensitivity -----------------------------------------------------------------------------------


def by_dimension(lab: Lab) -> Iterator[Table]:
    """13, Section 6.2: more dimensions help PLS, RMLS and the baselines, and hardly matter to SSI."""
    data = lab.simulated("one-week")
    rows = []
    for label, spec in BY_DIM.items():
        for dim in [d for d in DIMS if d < lab.dim] + [lab.dim]:
            settings = {**AS_PRINTED, "dim": dim}
            if dim <= MOST_IN_ROUNDS.get(spec, dim):
                rows.append(TableRow(f"{label}, as printed, {dim}", data.means(spec, NDCG, settings)))
    note = (
        "13 says so without figures: PLS and RMLS improve up to 1000, the baselines too, but not SSI; "
        "SSI, SVDFeature and BLTM are not run beyond 300 here"
    )
    yield Table("13-dims", "Sensitivity to the dimension", data.about, NDCG, rows, [note])


def by_steps(lab: Lab) -> Iterator[Table]:
    """13, Section 6.2 (12, 5.2; 11M, 5.3): a random walk is stable after five steps."""
    for data in lab.relevance_sets("one-week"):
        rows = [TableRow(f"RW, {n}", data.means("walk", NDCG, {"steps": n})) for n in STEPS]
        note = "13 says so without figures: from 1 to 10 steps, no improvement after five"
        yield Table("13-steps", "Steps of the random walk", data.about, NDCG, rows, [note])


def by_response(lab: Lab) -> Iterator[Table]:
    """13, Section 6.5.2: the logarithm of clicks does not help the tail and hurts the head."""
    data = lab.simulated("one-week")
    groups = dict(click_groups(data))
    rows = []
    for label in ("RMLS", "PLS"):
        for response in ("clicks", "log-t"):
            settings = {**AS_PRINTED, "response": response}
            means = [data.means(label.lower(), NDCG[-1:], settings, only=group)[0] for group in groups.values()]
            rows.append(TableRow(f"{label}, as printed, {response}", tuple(means)))
    columns = tuple(f"{name}: {NDCG[-1]}" for _, _, name in BINS)
    note = "13 says so without figures: simple transformations fail on tail queries and hurt head queries"
    yield Table("13-response", "Clicks or their logarithm, by the clicks of a query", data.about, columns, rows, [note])


# --- Joachims' pairs -------------------------------------------------------------------------------


def joachims_pairs(lab: Lab) -> Iterator[Table]:
    """13, Section 6.3: of the judged preference pairs by Joachims' rule, how many do judgments not confirm?"""
    rows = []
    for data in lab.relevance_sets("one-week"):
        found = judged_pairs(data)
        if found is None:
            rows.append(TableRow(data.about, ("no judged query has result pages in the log",)))
            continue
        against = found["tie"] + found["contradict"]
        shares = (100 * against / max(found["judged"], 1), 100 * found["share"])
        rows.append(TableRow(data.about, (*shares, int(found["judged"])), (49.1, None, 40_676)))
    columns = ("% not better", "% worse of the decided", "judged pairs")
    note = "13 counts a pair as violated where the upper document is as good as the clicked one, or better"
    yield Table("13-pairs", "Joachims' pairs against the judgments", "named in each row", columns, rows, [note])


def judged_pairs(data: Data) -> dict[str, float] | None:
    numbers = {key: i for i, key in enumerate(data.graph.query_keys)}
    docs = {doc_id: i for i, doc_id in enumerate(data.graph.doc_ids)}
    grades = {
        (numbers[r.query], docs[doc_id]): grade
        for r in data.lists["seen"] if r.query in numbers
        for doc_id, grade in zip(r.results, r.labels or (), strict=True) if doc_id in docs
    }  # fmt: skip
    try:
        found = contradicted(preferences(data.graph.impressions, rule="skip-above"), grades)
    except ClickbridgeError:
        return None
    return found if found["judged"] else None
