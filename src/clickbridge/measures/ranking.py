"""nDCG, AP, P, recall and reciprocal rank of one ranked list.

A handful of lines each, for grades that may be any non-negative number; the tests check every one of them
against ir-measures. Queries without a relevant document have no value.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from clickbridge.errors import SettingError

Grades = Sequence[float]


@dataclass(frozen=True)
class Measure:
    """`compute(ranked grades, all grades of the query)`; `name` is how it is written."""

    name: str
    compute: Callable[[Grades, Grades], float]

    def __call__(self, ranked: Grades, judged: Grades) -> float:
        return self.compute(ranked, judged)


def _dcg(grades: Grades, shift: float) -> float:
    """Divided by 2^shift, which leaves a ratio as it is and keeps large grades (click counts) finite."""
    unit = 2.0**-shift
    return math.fsum((2.0 ** (grade - shift) - unit) / math.log2(rank + 2) for rank, grade in enumerate(grades))


def _ndcg(ranked: Grades, judged: Grades, k: int, _: float) -> float:
    shift = max(0.0, max(judged) - 500.0)
    return _dcg(ranked[:k], shift) / _dcg(sorted(judged, reverse=True)[:k], shift)


def _linear_ndcg(ranked: Grades, judged: Grades, k: int, _: float) -> float:
    def dcg(grades: Grades) -> float:
        return math.fsum(grade / math.log2(rank + 2) for rank, grade in enumerate(grades[:k]))

    return dcg(ranked) / dcg(sorted(judged, reverse=True))


def _ap(ranked: Grades, judged: Grades, k: int, level: float) -> float:
    found, total = 0, 0.0
    for rank, grade in enumerate(ranked[:k], 1):
        if grade >= level:
            found += 1
            total += found / rank
    return total / sum(grade >= level for grade in judged)


def _rr(ranked: Grades, _: Grades, k: int, level: float) -> float:
    return next((1 / rank for rank, grade in enumerate(ranked[:k], 1) if grade >= level), 0.0)


def _precision(ranked: Grades, _: Grades, k: int, level: float) -> float:
    return sum(grade >= level for grade in ranked[:k]) / k


def _recall(ranked: Grades, judged: Grades, k: int, level: float) -> float:
    return sum(grade >= level for grade in ranked[:k]) / sum(grade >= level for grade in judged)


_FAMILIES: dict[str, tuple[Callable[[Grades, Grades, int, float], float], bool, str]] = {
    "nDCG": (
        _ndcg,
        False,
        "normalised discounted cumulative gain, gain 2^grade - 1, discount log2(rank + 1)",
    ),
    "AP": (_ap, False, "average precision; its mean over queries is MAP"),
    "RR": (_rr, False, "one over the rank of the first relevant document"),
    "P": (_precision, True, "share of relevant documents among the first k"),
    "R": (_recall, True, "share of the relevant documents found among the first k"),
}
MEASURES = {name: about for name, (_, _, about) in _FAMILIES.items()}
_NAME = re.compile(
    r"(?P<family>[A-Za-z]+)(?:\((?:rel=(?P<level>[0-9]+(?:\.[0-9]+)?)|gain=(?P<gain>[a-z]+))\))?(?:@(?P<k>[0-9]+))?"
)
GAINS = {"exponential": _ndcg, "linear": _linear_ndcg}
ALSO = {
    r"map(?:_cut_|@)(\d+)": r"AP@\1",
    r"map": "AP",
    r"m?rr@(\d+)": r"RR@\1",
    r"mrr|recip_rank": "RR",
    r"ndcg_cut_(\d+)": r"nDCG(gain=linear)@\1",
    r"p_(\d+)|precision@(\d+)": r"P@\1\2",
    r"recall_(\d+)|recall@(\d+)": r"R@\1\2",
}
"""Other spellings: trec_eval's, and common names of means. trec_eval's `ndcg_cut_10` has linear gain."""


def _our_name(text: str) -> str:
    for pattern, ours in ALSO.items():
        match = re.fullmatch(pattern, text.strip(), re.IGNORECASE)
        if match:
            return match.expand(ours)
    return text.strip()


def parse_measure(text: str) -> Measure:
    """`nDCG@5`, `nDCG(gain=linear)@5`, `AP`, `AP(rel=2)`, `P(rel=2)@5`, `RR@10`: a document is relevant from grade
    `rel` on. Other spellings (`MAP`, `MRR`, `ndcg_cut_10`, `P_5`, `recall_10`) are taken too.

    >>> [parse_measure(name).name for name in ("ndcg@5", "MAP", "MRR@10", "P_5", "recall_10", "ndcg_cut_10")]
    ['nDCG@5', 'AP', 'RR@10', 'P@5', 'R@10', 'nDCG(gain=linear)@10']
    """
    match = _NAME.fullmatch(_our_name(text))
    family = next((f for f in _FAMILIES if match and f.lower() == match["family"].lower()), None)
    if match is None or family is None:
        known = "nDCG, AP (or MAP), RR (or MRR), P and R, such as nDCG@5, nDCG(gain=linear)@10 or AP(rel=2)"
        raise SettingError(f"no measure {text!r}; there are {known}")
    compute, needs_k, _ = _FAMILIES[family]
    if needs_k and not match["k"]:
        raise SettingError(f"{family} needs a cut-off, such as {family}@5")
    if family == "nDCG" and match["level"]:
        raise SettingError(f"{text!r}: nDCG counts every grade and takes no rel; write nDCG@5")
    if match["gain"] and (family != "nDCG" or match["gain"] not in GAINS):
        raise SettingError(f"{text!r}: nDCG alone takes a gain, {' or '.join(GAINS)}, such as nDCG(gain=linear)@5")
    linear = match["gain"] == "linear"
    compute = GAINS[match["gain"]] if match["gain"] else compute
    k = int(match["k"]) if match["k"] else sys.maxsize
    # Any positive grade is relevant where no level is named: click-labelled lists may hold fractions.
    level = float(match["level"]) if match["level"] else math.ulp(0.0)
    if k < 1 or level <= 0:
        raise SettingError(f"{text!r}: the cut-off must be at least 1 and rel above 0")
    chosen = "(gain=linear)" if linear else f"(rel={match['level']})" if match["level"] else ""
    name = family + chosen + (f"@{k}" if match["k"] else "")

    def measure(ranked: Grades, judged: Grades) -> float:
        if not any(grade >= level for grade in judged):
            return math.nan
        return compute(ranked, judged, k, level)

    return Measure(name, measure)


def parse_measures(names: str | Sequence[str]) -> list[Measure]:
    """Measures by name: one text with commas in between, or a list of names."""
    return [parse_measure(name) for name in (names.split(",") if isinstance(names, str) else names)]


def main_measure(measures: Sequence[Measure]) -> Measure:
    """The one that comparisons go by: nDCG@5, which tuning maximises, where it is among them; else the last."""
    return next((measure for measure in measures if measure.name == "nDCG@5"), measures[-1])


def evaluate_run(
    run: Mapping[str, Sequence[str]], grades: Mapping[str, Mapping[str, float]], measures: Sequence[Measure]
) -> dict[str, dict[str, float]]:
    """Per measure, the value of each judged query that has a relevant document; a query that the run does
    not answer counts 0, an unjudged document has grade 0."""
    out: dict[str, dict[str, float]] = {measure.name: {} for measure in measures}
    for query_id, judged in grades.items():
        ranked = [judged.get(doc_id, 0.0) for doc_id in run.get(query_id, ())]
        for measure in measures:
            value = measure(ranked, list(judged.values()))
            if not math.isnan(value):
                out[measure.name][query_id] = value
    return out
