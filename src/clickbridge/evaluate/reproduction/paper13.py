"""Tables 2-7 of Wu, Lu, Li (2013), and Tables 2-3 of its precursor (12), which add MAP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from clickbridge.evaluate.reproduction.bench import NDCG, Data, exists
from clickbridge.evaluate.reproduction.lab import Lab
from clickbridge.evaluate.reproduction.paper_table import Cell, Table
from clickbridge.evaluate.reproduction.relevance_rows import (
    AS_PRINTED,
    EIGHT_TO_TWO,
    NONE,
    Line,
    bins_table,
    both_rows,
    own_tests,
    relevance_table,
    sign_on,
    t_on,
)

ON_WORDS: dict[str, Any] = {"pls.views": "word"}
"""PLS on half a year had words alone: with clicks it did not fit in memory."""


def line(
    label: str, spec: str, *paper: Cell, printed: Mapping[str, Any] | None = AS_PRINTED, ours: Mapping[str, Any] = NONE
) -> Line:
    """A system with two rows, as printed and ours. With `printed=None` both are the same."""
    return Line(label, spec, paper) if printed is None else Line(label, spec, paper, printed, ours)


ONE_WEEK = (
    line("RMLS", "rmls", 0.686, 0.732, 0.729),
    line("PLS", "pls", 0.676, 0.728, 0.736),
    line("SVDFeature", "svdfeature", 0.663, 0.720, 0.727),
    line("BLTM", "bltm", 0.657, 0.702, 0.701),
    line("SSI", "ssi", 0.538, 0.621, 0.629),
    line("RW", "walk", 0.655, 0.704, 0.704, printed=None),
    line("RW+BM25", "walk+bm25", 0.671, 0.718, 0.716, printed=EIGHT_TO_TWO),
    line("LSI_qd", "lsi-qd", 0.588, 0.665, 0.676, printed=None),
    line("LSI_qd+BM25", "lsi-qd+bm25", 0.649, 0.705, 0.706, printed=EIGHT_TO_TWO),
    line("LSI_dt", "lsi-dt", 0.616, 0.675, 0.680),
    line("BM25", "bm25", 0.637, 0.690, 0.690),
)
HALF_YEAR = (
    line("RMLS", "rmls", 0.742, 0.767, 0.776),
    line("PLS (word)", "pls", 0.638, 0.666, 0.677, printed={**AS_PRINTED, **ON_WORDS}, ours=ON_WORDS),
    line("SVDFeature", "svdfeature", 0.742, 0.746, 0.749),
    line("BLTM", "bltm", 0.684, 0.708, 0.717),
    line("BM25", "bm25", 0.643, 0.663, 0.670),
)
BASELINES = ("svdfeature", "bltm", "ssi", "walk", "lsi-qd", "lsi-dt", "bm25")
SLOW = ("svdfeature", "bltm", "ssi")
MART = {
    "13-4": ((0.661, 0.737, 0.779), (0.683, 0.751, 0.792), (0.681, 0.750, 0.789), (0.689, 0.757, 0.797)),
    "13-5": ((0.708, 0.760, 0.791), (0.706, 0.760, 0.792), (0.757, 0.799, 0.827), (0.756, 0.798, 0.826)),
}
BINS_ONE_WEEK = {
    "RMLS": (0.754, 0.795, 0.767, 0.749, 0.791, 0.766, 0.679, 0.744, 0.755, 0.557, 0.612, 0.655),
    "PLS": (0.704, 0.776, 0.764, 0.706, 0.769, 0.748, 0.650, 0.727, 0.754, 0.655, 0.661, 0.695),
    "SVDFeature": (0.648, 0.732, 0.707, 0.684, 0.742, 0.727, 0.647, 0.723, 0.750, 0.576, 0.632, 0.669),
    "BLTM": (0.758, 0.787, 0.755, 0.750, 0.795, 0.766, 0.636, 0.700, 0.726, 0.485, 0.557, 0.603),
    "SSI": (0.633, 0.730, 0.700, 0.607, 0.696, 0.673, 0.523, 0.616, 0.657, 0.403, 0.491, 0.540),
    "RW": (0.769, 0.793, 0.760, 0.773, 0.809, 0.780, 0.622, 0.709, 0.740, 0.458, 0.527, 0.582),
    "RW+BM25": (0.773, 0.786, 0.758, 0.770, 0.815, 0.787, 0.654, 0.726, 0.750, 0.485, 0.554, 0.601),
    "LSI_qd": (0.631, 0.717, 0.687, 0.634, 0.709, 0.696, 0.584, 0.676, 0.703, 0.496, 0.573, 0.621),
    "LSI_qd+BM25": (0.696, 0.745, 0.719, 0.726, 0.777, 0.759, 0.646, 0.716, 0.736, 0.500, 0.576, 0.619),
    "LSI_dt": (0.685, 0.745, 0.730, 0.688, 0.752, 0.727, 0.608, 0.676, 0.705, 0.473, 0.549, 0.596),
    "BM25": (0.698, 0.746, 0.724, 0.719, 0.772, 0.748, 0.641, 0.701, 0.722, 0.463, 0.544, 0.592),
}
BINS_HALF_YEAR = {
    "RMLS": (0.804, 0.801, 0.792, 0.785, 0.794, 0.796, 0.780, 0.795, 0.797, 0.698, 0.742, 0.760),
    "PLS (word)": (0.723, 0.720, 0.708, 0.681, 0.697, 0.703, 0.668, 0.691, 0.697, 0.599, 0.642, 0.660),
    "SVDFeature": (0.728, 0.730, 0.721, 0.738, 0.734, 0.734, 0.766, 0.765, 0.761, 0.728, 0.740, 0.748),
    "BLTM": (0.783, 0.775, 0.763, 0.750, 0.757, 0.760, 0.725, 0.745, 0.749, 0.626, 0.669, 0.688),
    "BM25": (0.747, 0.739, 0.717, 0.710, 0.713, 0.712, 0.690, 0.703, 0.704, 0.582, 0.622, 0.641),
}
ONE_WEEK_12 = {
    "RMLS": (0.554, 0.686, 0.732, 0.729),
    "PLS": (0.552, 0.676, 0.728, 0.736),
    "RW": (0.484, 0.655, 0.704, 0.704),
    "RW+BM25": (0.497, 0.671, 0.718, 0.716),
    "LSI_qd": (0.449, 0.588, 0.665, 0.676),
    "LSI_qd+BM25": (0.481, 0.649, 0.705, 0.706),
    "LSI_dt": (0.460, 0.616, 0.675, 0.680),
    "BM25": (0.462, 0.637, 0.690, 0.690),
}
HALF_YEAR_12 = {
    "RMLS": (0.578, 0.717, 0.743, 0.753),
    "PLS (word)": (0.474, 0.638, 0.666, 0.677),
    "BM25": (0.441, 0.643, 0.663, 0.670),
}
ONE_WEEK_OF_12 = tuple(own._replace(paper=ONE_WEEK_12[own.label]) for own in ONE_WEEK if own.label in ONE_WEEK_12)
HALF_YEAR_OF_12 = tuple(own._replace(paper=HALF_YEAR_12[own.label]) for own in HALF_YEAR if own.label in HALF_YEAR_12)
T_TEST = t_on(NDCG[-1])


def table_2(lab: Lab) -> Iterator[Table]:
    for data in lab.relevance_sets("one-week"):
        title = "Relevance ranking on one week data"
        table = relevance_table("13-2", title, data, both_rows(ONE_WEEK), with_map=False)
        table.notes.append("13 learned its 945,382 s PLS and 1,380 s RMLS at d = 1000 on 94,022 queries, one core")
        yield table
        yield own_tests("13-2", data, ONE_WEEK, ("RMLS", "PLS"), T_TEST)


def table_3(lab: Lab) -> Iterator[Table]:
    data, title = lab.simulated("half-year"), "Relevance ranking on half year data"
    yield relevance_table("13-3", title, data, both_rows(HALF_YEAR), with_map=False)
    yield own_tests("13-3", data, HALF_YEAR, ("RMLS",), T_TEST)


def mart_lines(lab: Lab, key: str) -> tuple[Line, ...]:
    """Rows of boosted trees over the baselines that this version has. They learn from clicks, in the paper from
    judgments."""
    base = "+".join(name for name in BASELINES if exists(name) and not (lab.quick and name in SLOW))
    added = {"MART-Baseline": "", "MART-PLS": "+pls", "MART-RMLS": "+rmls", "MART-All": "+pls+rmls"}
    ours: Mapping[str, Any] = NONE if key == "13-4" else ON_WORDS
    return tuple(
        Line(label, f"mart:{base}{more}", paper, {**AS_PRINTED, **ours}, ours)
        for (label, more), paper in zip(added.items(), MART[key], strict=True)
    )


def table_4(lab: Lab) -> Iterator[Table]:
    for data in lab.relevance_sets("one-week"):
        yield from _mart(lab, "13-4", "Boosted trees over the models, one week data", data)


def table_5(lab: Lab) -> Iterator[Table]:
    yield from _mart(lab, "13-5", "Boosted trees over the models, half year data", lab.simulated("half-year"))


def _mart(lab: Lab, key: str, title: str, data: Data) -> Iterator[Table]:
    lines = mart_lines(lab, key)
    for settings in (lines[0].settings, lines[0].ours):
        data.try_forests([own.spec for own in lines], settings or {})
    table = relevance_table(key, title, data, both_rows(lines), with_map=False)
    base = lines[0].spec.partition(":")[2]
    table.notes.append(f"baselines: {base}; learned from held-back clicks, where 13 had judgments")
    table.notes.append("fit CPU s is a quarter of the time of all four, which share the fits of their models")
    yield table
    yield own_tests(key, data, lines, ("MART-PLS", "MART-RMLS", "MART-All"), T_TEST)


def table_6(lab: Lab) -> Iterator[Table]:
    lines = [own._replace(paper=BINS_ONE_WEEK[own.label]) for own in ONE_WEEK]
    yield bins_table("13-6", "Queries by their clicks, one week data", lab.simulated("one-week"), both_rows(lines))


def table_7(lab: Lab) -> Iterator[Table]:
    lines = [own._replace(paper=BINS_HALF_YEAR[own.label]) for own in HALF_YEAR]
    yield bins_table("13-7", "Queries by their clicks, half year data", lab.simulated("half-year"), both_rows(lines))


def table_2_of_12(lab: Lab) -> Iterator[Table]:
    for data in lab.relevance_sets("one-week"):
        title, lines = "Relevance ranking on one week data", both_rows(ONE_WEEK_OF_12)
        yield relevance_table("12-2", title, data, lines, with_map=True, compare="MAP")
        yield own_tests("12-2", data, ONE_WEEK_OF_12, ("RMLS", "PLS"), sign_on(data.map_name))


def table_3_of_12(lab: Lab) -> Iterator[Table]:
    data, title = lab.simulated("half-year"), "Relevance ranking on half year data"
    yield relevance_table("12-3", title, data, both_rows(HALF_YEAR_OF_12), with_map=True, compare="MAP")
    yield own_tests("12-3", data, HALF_YEAR_OF_12, ("RMLS",), sign_on(data.map_name))
