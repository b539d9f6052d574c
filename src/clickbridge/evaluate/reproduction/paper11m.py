"""Tables 1-7 and Figures 3-7 of Wu, Li, Xu (2011), "... Click-through Bipartite Graph with Metadata" (M-PLS)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.evaluate import plots, slices
from clickbridge.evaluate.reproduction.bench import NDCG, Data
from clickbridge.evaluate.reproduction.lab import Lab
from clickbridge.evaluate.reproduction.paper_table import Cell, Table, TableRow, missing
from clickbridge.evaluate.reproduction.relevance_rows import (
    AS_PRINTED,
    EIGHT_TO_TWO,
    NINE_TO_ONE,
    SUMMED,
    Line,
    both_rows,
    own_tests,
    relevance_table,
    sign_on,
)
from clickbridge.evaluate.similar import PairedPreference, prefer, sample_queries, tail_of
from clickbridge.models.latent import FittedLatent

PAPER: dict[str, Any] = {**AS_PRINTED, "response": "log-t", "mean": False}
"""PLS as 13 prints it, with 11M's response: log clicks, summed over a query's documents."""
COM: dict[str, Any] = dict(AS_PRINTED)
CONCA = {**PAPER, "views": "word,response"}
WORD = {**PAPER, "views": "word"}
BIPAR = {**PAPER, "views": "response"}
OF_QUERIES = {**AS_PRINTED, "weights": "0.9,0.1"}
"""The weights that 11M found best for sums of similarities of queries. There are no lists there."""

RELEVANCE: tuple[tuple[str, str, Mapping[str, Any], tuple[Cell, ...], tuple[Cell, ...]], ...] = (
    ("M-PLS_Com", "mpls", COM, (0.644, 0.730, 0.742, 0.754), (0.533, 0.667, 0.724, 0.730)),
    ("M-PLS_Conca", "pls", CONCA, (0.624, 0.717, 0.734, 0.748), (0.521, 0.658, 0.718, 0.725)),
    ("M-PLS_Word", "pls", WORD, (0.628, 0.711, 0.725, 0.742), (0.519, 0.654, 0.712, 0.719)),
    ("M-PLS_Bipar", "pls", BIPAR, (0.589, 0.673, 0.689, 0.707), (0.461, 0.593, 0.669, 0.683)),
    ("BM25", "bm25", AS_PRINTED, (0.543, 0.646, 0.650, 0.655), (0.461, 0.626, 0.682, 0.684)),
    ("RW", "walk", {}, (0.603, 0.657, 0.684, 0.702), (0.491, 0.656, 0.705, 0.706)),
    ("RW+BM25", "walk+bm25", NINE_TO_ONE, (0.608, 0.666, 0.686, 0.702), (0.498, 0.661, 0.712, 0.711)),
    ("LSI", "lsi-qd", {}, (0.577, 0.666, 0.681, 0.699), (0.448, 0.584, 0.663, 0.675)),
    ("LSI+BM25", "lsi-qd+bm25", NINE_TO_ONE, (0.605, 0.688, 0.702, 0.712), (0.484, 0.644, 0.699, 0.702)),
)
CHANGED = ("M-PLS_Com", "BM25", "RW+BM25", "LSI+BM25")
"""The systems that have a row of ours as well. The others are variants of M-PLS, or the same in both."""
ENTERPRISE, WEB = (
    [
        Line(label, spec, figures[at], sums if settings is NINE_TO_ONE else settings, {} if label in CHANGED else None)
        for label, spec, settings, *figures in RELEVANCE
    ]
    for at, sums in ((0, NINE_TO_ONE), (1, EIGHT_TO_TWO))
)
RIVALS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "Cos_B": ("cos-click", AS_PRINTED),
    "Cos_W": ("cos-word", AS_PRINTED),
    "LSI": ("lsi-qd", AS_PRINTED),
    "RW": ("walk", {}),
    "Cos_B+Cos_W": ("cos-click+cos-word", OF_QUERIES),
    "LSI+Cos_W": ("lsi-qd+cos-word", OF_QUERIES),
    "RW+Cos_W": ("walk+cos-word", OF_QUERIES),
}
"""Baselines of similar queries, as printed; combined with the weights that the paper found best."""
COSINE: dict[str, Any] = {"weights": "0.9,0.1"}
"""Ours: cosines of images, log(1 + clicks)."""
EXAMPLES = {
    "spelling errors": ("asbtract base", "arguement parser", "bianry of a number"),
    "abbreviations": ("cli options", "abs value", "regex"),
    "concatenations": ("abstractclass", "base64decode", "asyncgather"),
    "tail queries": ("how to accept args in script", "visit nodes of syntax tree", "undo url encoding of text"),
}
DIFFICULT = "asyncgather"
DIMS = (50, 100, 300, 600, 1000, 2000, 3000)
"""The paper goes up to 3000 on web data. Dimensions above the rank of a log are left out."""


def table_1(lab: Lab) -> Iterator[Table]:
    """Weights that hold_back finds, as shares; those of similar queries are the paper's."""
    published = {"LSI+BM25": ((0.9, 0.1), (0.8, 0.2)), "RW+BM25": ((0.9, 0.1), (0.8, 0.2))}
    specs = {"LSI+BM25": "lsi-qd+bm25", "RW+BM25": "walk+bm25"}
    rows = []
    for label, spec in specs.items():
        ours = tuple(_shares(lab.simulated(scale), spec) for scale in ("enterprise", "one-week"))
        rows.append(TableRow(label, ours, tuple(str(pair) for pair in published[label])))
    for label in ("Cos_B+Cos_W", "LSI+Cos_W", "RW+Cos_W"):
        rows.append(TableRow(label, ("(0.9, 0.1) taken over",) * 2, ("(0.9, 0.1)",) * 2))
    data = f"{lab.simulated('enterprise').about} | {lab.simulated('one-week').about}"
    note = "ours weigh scores that are normalised first, so they are not on the scale of the paper's"
    yield Table("11M-1", "Weights in combination methods", data, ("enterprise", "web"), rows, [note])


def _shares(data: Data, spec: str) -> Cell:
    fitted = data.tried_fit(spec)
    if fitted.model is None:
        return fitted.why
    weights = np.asarray(getattr(fitted.model, "weights_", ()), dtype=float)
    return f"({', '.join(f'{w:.2g}' for w in weights / max(weights.sum(), 1e-12))})"


def table_2(lab: Lab) -> Iterator[Table]:
    """Sizes and densities of the matrices that are decomposed."""
    published = {
        "enterprise": {
            "M-PLS_Word": ("9958 x 9958", "0.4%"), "M-PLS_Bipar": ("81186 x 51699", "0.08%"),
            "M-PLS_Conca": ("91144 x 61657", "0.5%"), "LSI": ("81186 x 51699", "0.003%"),
        },
        "one-week": {
            "M-PLS_Word": ("10791 x 10791", "0.3%"), "M-PLS_Bipar": ("111631 x 94022", "0.01%"),
            "M-PLS_Conca": ("122422 x 104813", "0.03%"), "LSI": ("111631 x 94022", "0.002%"),
        },
    }  # fmt: skip
    settings: dict[str, Mapping[str, Any]] = {"M-PLS_Word": WORD, "M-PLS_Bipar": BIPAR, "M-PLS_Conca": CONCA}
    for scale, paper in published.items():
        data = lab.simulated(scale)
        rows = [TableRow(label, _matrix(data, settings.get(label)), paper[label]) for label in paper]
        yield Table("11M-2", f"Matrices for SVD, {scale}", data.about, ("dimension", "density"), rows)


def _matrix(data: Data, settings: Mapping[str, Any] | None) -> tuple[Cell, ...]:
    """The size of the matrix of query features by document features, as the paper prints it. Without settings, the
    transposed click matrix of LSI."""
    fitted = data.tried_fit("pls", settings or WORD)
    model = None if fitted.model is None else fitted.model.fitted
    if not isinstance(model, FittedLatent):
        return missing(fitted.why, ("dimension", "density"))
    r = model.responses
    if settings is None:
        n_rows, n_columns, nnz = r.shape[1], r.shape[0], r.nnz
    else:
        y, clicks, x = (sparse.csr_array(abs(m)) for m in (model.doc_features, r, model.query_features))
        nnz = (x.T @ (clicks @ y)).nnz
        n_rows, n_columns = model.query_features.shape[1], model.doc_features.shape[1]
    return f"{n_rows} x {n_columns}", f"{100 * nnz / max(n_rows * n_columns, 1):.2g}%"


def table_3(lab: Lab) -> Iterator[Table]:
    yield from _relevance(
        "11M-3", "Relevance ranking on enterprise search data", lab.simulated("enterprise"), ENTERPRISE
    )


def table_4(lab: Lab) -> Iterator[Table]:
    for data in lab.relevance_sets("one-week"):
        yield from _relevance("11M-4", "Relevance ranking on web search data", data, WEB)


def _relevance(key: str, title: str, data: Data, lines: list[Line]) -> Iterator[Table]:
    yield relevance_table(key, title, data, both_rows(lines), with_map=True, compare="MAP")
    yield own_tests(key, data, lines, ("M-PLS_Com",), sign_on(data.map_name))


def table_5(lab: Lab) -> Iterator[Table]:
    published = {"enterprise": (0.651, 0.732, 0.741, 0.753), "one-week": (0.537, 0.678, 0.729, 0.732)}
    rows = []
    for scale, paper in published.items():
        data = lab.simulated(scale)
        measures = (data.map_name, *NDCG)
        for label, settings, figures in (("as printed", SUMMED, paper), ("ours", {}, ())):
            rows.append(TableRow(f"{data.name}, {label}", data.means("mpls+bm25", measures, settings), figures))
            rows.append(TableRow(f"{data.name}, without BM25, {label}", data.means("mpls", measures, settings)))
    yield Table("11M-5", "M-PLS_Com with BM25", "simulated logs, named in each row", ("MAP", *NDCG), rows)


def table_6(lab: Lab) -> Iterator[Table]:
    rows = []
    fitted = lab.demo.fit("mpls", COM)
    for kind, queries in EXAMPLES.items():
        for query in queries:
            found = (lab.demo.answers("mpls", COM, [query]) or {query: [fitted.why]})[query]
            rows.append(TableRow(f"{kind}: {query}", tuple([*found, None, None, None][:3])))
    note = "some of these phrasings never occur in the log: they are mapped by their words alone"
    yield Table("11M-6", "Similar queries found by M-PLS_Com", lab.demo.about, ("1", "2", "3"), rows, [note])


def table_7(lab: Lab) -> Iterator[Table]:
    rows = []
    for label, (spec, settings) in {"M-PLS_Com": ("mpls", COM), **RIVALS}.items():
        fitted = lab.demo.fit(spec, settings)
        found = (lab.demo.answers(spec, settings, [DIFFICULT]) or {DIFFICULT: [fitted.why]})[DIFFICULT]
        rows.append(TableRow(label, tuple([*(found or ["N / A"]), None, None, None][:3])))
    yield Table("11M-7", f"A difficult query: {DIFFICULT}", lab.demo.about, ("1", "2", "3"), rows)


def figure_3(lab: Lab) -> Iterator[Table]:
    yield _dimensions(lab, "11M-F3", "enterprise")


def figure_4(lab: Lab) -> Iterator[Table]:
    yield _dimensions(lab, "11M-F4", "one-week")


def dimensions(lab: Lab, data: Data) -> list[int]:
    """The dimensions to try: up to three times the usual one, and at most the number of queries."""
    most = min(max(DIMS), 3 * lab.dim, data.once("known queries", lambda: _known_queries(data)))
    return [*(d for d in DIMS if d < most), most]


def _known_queries(data: Data) -> int:
    known = data.fit("mpls", COM).model
    return 1 if known is None else len(known.fitted.queries)


def _dimensions(lab: Lab, key: str, scale: str) -> Table:
    data = lab.simulated(scale)
    dims = dimensions(lab, data)
    measures = (data.map_name, *NDCG)
    means = {d: data.means("mpls", measures, {**COM, "dim": d}) for d in dims}
    n = len(data.lists["seen"])
    series = {
        name: {d: slices.Cell(n, value) for d, values in means.items() if isinstance(value := values[i], float)}
        for i, name in enumerate(("MAP", *NDCG))
    }
    title = f"M-PLS_Com by dimension, simulated {scale}"
    rows = [TableRow(str(d), values) for d, values in means.items()]
    note = "11M shows this as a figure without numbers: all measures rise with the dimension, slower after 1000 or 3000"
    picture = plots.alone(plots.curves(series, title), title) if all(series.values()) else None
    return Table(key, title, data.about, ("MAP", *NDCG), rows, [note], svg=picture)


def figure_5(lab: Lab) -> Iterator[Table]:
    note = "11M: better on more than 15% of the queries, worse on less than 7%"
    yield from _preferences(lab, "11M-F5", "enterprise", note)


def figure_6(lab: Lab) -> Iterator[Table]:
    note = "11M: better on more than 25% of the queries, worse on less than 3%"
    yield from _preferences(lab, "11M-F6", "one-week", note)


def figure_7(lab: Lab) -> Iterator[Table]:
    note = "11M: on its 212 tail queries (under 10 clicks) M-PLS_Com does even better than on all"
    yield from _preferences(lab, "11M-F7", "one-week", note, tail=True)


def variants(lab: Lab, scale: str) -> Iterator[tuple[Data, bool]]:
    """Each data set, as printed and ours. A quick run leaves out ours on the demo, where tuning takes longest."""
    for data in lab.similarity_sets(scale):
        yield data, False
        if not (lab.quick and data.name == "demo"):
            yield data, True


def _preferences(lab: Lab, key: str, scale: str, note: str, tail: bool = False) -> Iterator[Table]:
    for data, ours in variants(lab, scale):
        found, queries, failed = compare_similar(data, tail=tail, seed=lab.seed, ours=ours)
        columns = ("pos", "com", "neg", "sign test p")
        shares = [
            TableRow(p.baseline, (*(round(n / max(queries, 1), 4) for n in (p.pos, p.com, p.neg)), p.p_value))
            for p in found
        ]
        rows = [*shares, *(TableRow(label, missing(why, columns)) for label, why in failed.items())]
        what = f"{queries} {'tail ' if tail else ''}queries, top 3"
        how = "ours (cosines)" if ours else "as printed (dot products, log t)"
        title = f"Similar queries{' (tail)' if tail else ''}, M-PLS_Com against each, {how}: {data.name}"
        picture = plots.alone(plots.preferences(found, title), title) if found else None
        yield Table(key, title, f"{data.about}; {what}", columns, rows, [note], svg=picture)


def compare_similar(
    data: Data, *, tail: bool = False, seed: int = 0, ours: bool = False
) -> tuple[list[PairedPreference], int, dict[str, str]]:
    """M-PLS_Com against every baseline and combination, all as printed or all ours: preferences, how many queries, and
    what failed. All answer with queries that M-PLS_Com knows, as in 11M, where there is one graph for all."""
    own = {} if ours else COM
    sampled = _sample_of(data, seed, ours)
    if isinstance(sampled, str) or data.alike is None:
        return [], 0, {"M-PLS_Com": str(sampled)}
    every, seldom, known = sampled
    queries = seldom if tail else every
    answers = data.answers("mpls", own, queries, known) or {}
    out, failed = [], {}
    for label in RIVALS:
        spec, settings = _rival(label, ours)
        theirs = data.answers(spec, settings, queries, known)
        if theirs is None:
            failed[label] = data.fit(spec, settings).why
        else:
            out.append(prefer(("M-PLS_Com", label), answers, theirs, data.alike))
    return out, len(queries), failed


def between(data: Data, one: str, other: str, *, seed: int = 0, ours: bool = False) -> PairedPreference | None:
    """One baseline against another, on the same queries; None if one of them is not there."""
    sampled = _sample_of(data, seed, ours)
    if isinstance(sampled, str) or data.alike is None:
        return None
    queries, _, known = sampled
    found = [data.answers(*_rival(label, ours), queries, known) for label in (one, other)]
    return None if found[0] is None or found[1] is None else prefer((one, other), found[0], found[1], data.alike)


def _rival(label: str, ours: bool) -> tuple[str, Mapping[str, Any]]:
    spec, settings = RIVALS[label]
    return spec, (COSINE if "+" in spec else {}) if ours else settings


Sampled = tuple[list[str], list[str], frozenset[str]] | str


def _sample_of(data: Data, seed: int, ours: bool) -> Sampled:
    return data.once(("sampled", ours, seed), lambda: _sampled(data, {} if ours else COM, seed))


def _sampled(data: Data, own: Mapping[str, Any], seed: int) -> Sampled:
    """A sample of the queries that M-PLS_Com knows, those of them with few clicks, and all that it knows; or why there
    is no such model."""
    fitted = data.fit("mpls", own)
    if fitted.model is None or data.alike is None:
        return fitted.why
    known = frozenset(fitted.model.fitted.queries.keys)
    queries = sample_queries([q for q in data.alike.queries if q in known], seed=seed)
    return queries, tail_of(fitted.model, queries), known
