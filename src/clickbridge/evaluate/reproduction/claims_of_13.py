"""Claims of 13 and 12: PLS and RMLS against baselines, in boosted trees, by clicks, dimension, passes and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from clickbridge.evaluate.reproduction import paper13, rmls_runs
from clickbridge.evaluate.reproduction.bench import NDCG, Data
from clickbridge.evaluate.reproduction.lab import Lab
from clickbridge.evaluate.reproduction.relevance_rows import (
    AS_PRINTED,
    Line,
    OwnTest,
    click_groups,
    gains,
    sign_on,
    t_on,
    variant,
)
from clickbridge.evaluate.reproduction.verdicts import (
    NOT_TESTED,
    Verdict,
    all_of,
    beats,
    beats_all,
    higher,
    level,
    not_below,
    same_order,
    within,
)

Judged = Iterator[tuple[str, Verdict, Verdict]]
Rule = Callable[[Data, bool], Verdict]
TestOf = Callable[[Data], OwnTest]
T_TEST = t_on(NDCG[-1])
AT_1 = t_on(NDCG[0])
WINDOW = (40.0, 60.0)
"""Percentages that count as about half."""
WORTH_A_THREAD = 1.2
"""More threads help if they are at least this many times as fast as one."""
FAR_LESS = 10.0
"""One time is far less than another if the other is at least so many times as long."""
HALF_YEAR_SECONDS = "20,523 s with 20 threads against 1,121,440 s"
TAIL, HEAD = ("<=10", "<=100"), ("<=1000", ">1000")


def on_week(rule: Rule) -> Callable[[Lab], Judged]:
    """Applies a rule to every data set that stands for one week of web search."""
    return lambda lab: ((d.name, rule(d, False), rule(d, True)) for d in lab.relevance_sets("one-week"))


def on_simulated(scale: str, rule: Rule) -> Callable[[Lab], Judged]:
    def judge(lab: Lab) -> Judged:
        data = lab.simulated(scale)
        yield data.name, rule(data, False), rule(data, True)

    return judge


def against_baselines(lines: Sequence[Line], label: str, champions: Sequence[str], by: TestOf) -> Rule:
    """A system of the paper is better than every baseline."""
    others = [line.label for line in lines if line.label not in champions]

    def rule(data: Data, ours: bool) -> Verdict:
        return beats_all(data, variant(lines, label, ours), [variant(lines, o, ours) for o in others], by(data))

    return rule


def two(lines: Sequence[Line], one: str, other: str, how: Callable[..., Verdict], by: TestOf) -> Rule:
    return lambda data, ours: how(data, variant(lines, one, ours), variant(lines, other, ours), by(data))


def in_the_papers_order(lines: Sequence[Line], measure: Callable[[Data], str], at: int = 0) -> Rule:
    """The models as printed are in the paper's order."""

    def rule(data: Data, ours: bool) -> Verdict:
        return NOT_TESTED if ours else same_order(data, lines, measure(data), at)

    return rule


def by_map(data: Data) -> str:
    return data.map_name


def by_first(data: Data) -> str:
    return NDCG[0]


def _t(data: Data) -> OwnTest:
    return T_TEST


def _sign(data: Data) -> OwnTest:
    return sign_on(data.map_name)


WEEK, OWN = paper13.ONE_WEEK, ("RMLS", "PLS")


def seconds(lines: Sequence[Line], labels: Sequence[str], published: str) -> Rule:
    """RMLS takes less processor time to learn than PLS. 13 leaves tuning out."""

    def rule(data: Data, ours: bool) -> Verdict:
        trials = [data.trial(line.spec, line.settings) for line in (variant(lines, label, ours) for label in labels)]
        if not all(trial.values for trial in trials):
            return NOT_TESTED
        rmls, pls = (trial.learning for trial in trials)
        words = f"{rmls:.1f} s and {pls:.1f} s of processor time, with tuning "
        words += f"{trials[0].seconds:.1f} s and {trials[1].seconds:.1f} s (13, without: {published})"
        return within(pls / max(rmls, 1e-9), FAR_LESS, np.inf, words)

    return rule


def tail_and_head(labels: Sequence[str], rivals: Sequence[str], bins: Sequence[str]) -> Rule:
    """`labels` above `rivals` on the judged queries of some bins together."""

    def rule(data: Data, ours: bool) -> Verdict:
        only = {q for name, group in click_groups(data) if name in bins for q in group}
        parts = [
            beats_all(data, variant(WEEK, label, ours), [variant(WEEK, r, ours) for r in rivals], T_TEST, only)
            for label in labels
        ]
        return all_of(parts)

    return rule


def better_on_the_tail(label: str) -> Rule:
    """The nDCG@5 of a system is higher on queries with few clicks than on the others."""

    def rule(data: Data, ours: bool) -> Verdict:
        line = variant(WEEK, label, ours)
        found = data.values(line.spec, line.settings)
        if isinstance(found, str):
            return NOT_TESTED
        values = found[NDCG[-1]]
        tail, head = (np.array([values[q] for q in only if q in values]) for only in _tail_and_head(data))
        return higher(tail, head, "on queries of up to 100 clicks, on the others")

    return rule


def suffers_on_the_tail(data: Data, ours: bool) -> Verdict:
    """SVDFeature is further behind RMLS and PLS on queries with few clicks than on the others."""
    own = variant(WEEK, "SVDFeature", ours)
    parts = []
    for label in OWN:
        apart = [gains(data, own, variant(WEEK, label, ours), NDCG[-1], only) for only in _tail_and_head(data)]
        if apart[0] is not None and apart[1] is not None:
            words = f"from {label} beyond 100 clicks, up to 100"
            parts.append(higher(apart[1], apart[0], words))
    return all_of(parts)


def _tail_and_head(data: Data) -> tuple[set[str], set[str]]:
    groups = dict(click_groups(data))
    tail, head = ({q for name in names for q in groups[name]} for names in (TAIL, HEAD))
    return tail, head


def threads_help(lab: Lab) -> Judged:
    """13, Figure 2: 20 threads take a fifth of the time of one."""
    printed, ours = (_speed_up(rmls_runs.by_threads(lab, settings)) for settings in (AS_PRINTED, {}))
    yield lab.simulated("one-week").name, printed, ours


def _speed_up(timed: dict[int, rmls_runs.Timed]) -> Verdict:
    most = max(timed)
    if most == 1 or rmls_runs.disturbed(timed):
        return NOT_TESTED
    times = timed[1].wall / timed[most].wall
    words = f"{most} threads are {times:.2f} times as fast as one (13: 20 threads, {1380 / 277:.1f} times)"
    return within(times, WORTH_A_THREAD, np.inf, words)


def half_of_pairs(data: Data, ours: bool) -> Verdict:
    found = None if ours else rmls_runs.judged_pairs(data)
    if found is None:
        return NOT_TESTED
    share = 100 * (found["tie"] + found["contradict"]) / found["judged"]
    return within(share, *WINDOW, f"{share:.1f}% of {int(found['judged']):,} judged pairs (13: 49.1% of 40,676)")


def more_dimensions(lab: Lab) -> Judged:
    data = lab.simulated("one-week")
    least = min(rmls_runs.DIMS[0], max(lab.dim // 3, 1))
    parts = [beats(data, _with(spec, dim=lab.dim), _with(spec, dim=least), T_TEST) for spec in ("rmls", "pls")]
    yield f"{data.name}, {lab.dim} against {least}", all_of(parts), NOT_TESTED


def more_dimensions_of_baselines(lab: Lab) -> Judged:
    data = lab.simulated("one-week")
    least, parts = min(rmls_runs.DIMS[0], max(lab.dim // 3, 1)), []
    for name, spec in rmls_runs.BASELINES_BY_DIM.items():
        most = min(lab.dim, rmls_runs.MOST_IN_ROUNDS.get(spec, lab.dim))
        found = beats(data, _with(spec, dim=most), _with(spec, dim=least), T_TEST)
        parts.append(found._replace(figures=f"{name} {found.figures}"))
    yield f"{data.name}, up to {lab.dim} against {least}", all_of(parts), NOT_TESTED


def five_steps_are_enough(lab: Lab) -> Judged:
    for data in lab.relevance_sets("one-week"):
        five, most = (Line("walk", "walk", (), {"steps": n}) for n in (5, rmls_runs.STEPS[-1]))
        yield f"{data.name}, 5 against {rmls_runs.STEPS[-1]}", not_below(data, five, most, T_TEST), NOT_TESTED


def ssi_is_insensitive(lab: Lab) -> Judged:
    data = lab.simulated("one-week")
    most, least = min(lab.dim, rmls_runs.MOST_IN_ROUNDS["ssi"]), min(rmls_runs.DIMS[0], max(lab.dim // 3, 1))
    found = level(data, _with("ssi", dim=most), _with("ssi", dim=least), T_TEST)
    yield f"{data.name}, {most} against {least}", found, NOT_TESTED


def _with(spec: str, **settings: Any) -> Line:
    return Line(spec, spec, (), {**AS_PRINTED, **settings})


def clicks_or_logs(bins: Sequence[str], how: Callable[..., Verdict]) -> Callable[[Lab], Judged]:
    """Clicks against log clicks on the judged queries of some bins."""

    def judge(lab: Lab) -> Judged:
        data = lab.simulated("one-week")
        only = {query for name, group in click_groups(data) if name in bins for query in group}
        pairs = [[_with(spec, response=response) for response in ("clicks", "log-t")] for spec in ("rmls", "pls")]
        yield data.name, all_of([how(data, *pair, T_TEST, only) for pair in pairs]), NOT_TESTED

    return judge


def theta_does_not_matter(lab: Lab) -> Judged:
    data = lab.simulated("one-week")
    yield data.name, level(data, _with("rmls", theta_x=2.0), _with("rmls"), T_TEST), NOT_TESTED


def early_stop_is_enough(data: Data, ours: bool) -> Verdict:
    """Stopped within ten passes, RMLS is not below PLS."""
    lines = [variant(WEEK, label, ours) for label in OWN]
    return not_below(data, lines[0], lines[1], AT_1)


def no_degenerate_solution(lab: Lab) -> Judged:
    """After ten passes rows still have many directions. 13 says that the l2 bound prevents a degenerate optimum."""
    for data in lab.relevance_sets("one-week"):
        verdicts = []
        for settings in rmls_runs.PASS_BY_PASS.values():
            by_pass, _ = rmls_runs.each_pass(data, settings)
            last = by_pass[max(by_pass)]
            rank, cosine = (float(str(cell)) for cell in last[-2:])
            words = f"pass {max(by_pass)}: cosine to one direction {cosine:.2f}, effective rank {rank:.0f}"
            verdicts.append(within(cosine, 0.0, 0.5, words))
        yield data.name, verdicts[0], verdicts[1]


def trees_gain(key: str, label: str, other: str, how: Callable[..., Verdict]) -> Callable[[Lab], Judged]:
    def judge(lab: Lab) -> Judged:
        lines = paper13.mart_lines(lab, key)
        sets = lab.relevance_sets("one-week") if key == "13-4" else iter([lab.simulated("half-year")])
        for data in sets:
            rule = two(lines, label, other, how, _t)
            yield data.name, rule(data, False), rule(data, True)

    return judge


CLAIMS = (
    ("13-2", "13 Table 2", "RMLS is as good as PLS", on_week(two(WEEK, "RMLS", "PLS", level, _t))),
    ("13-2", "13 Table 2", "RMLS is better than every baseline", on_week(against_baselines(WEEK, "RMLS", OWN, _t))),
    ("13-2", "13 Table 2", "PLS is better than every baseline", on_week(against_baselines(WEEK, "PLS", OWN, _t))),
    ("13-2", "13 Table 2", "the order of the models by nDCG@1", on_week(in_the_papers_order(WEEK, by_first))),
    ("13-2", "13 6.3", "SSI is poor: BM25 is better", on_week(two(WEEK, "BM25", "SSI", beats, _t))),
    ("13-pairs", "13 6.3", "about half of Joachims' pairs are not borne out by judgments", on_week(half_of_pairs)),
    ("13-2", "13 6.3", "RMLS takes far less processor time than PLS", on_week(seconds(WEEK, OWN, "685 times"))),
    ("13-passes", "13 6.2", "RMLS needs few passes: stopped early it is not below PLS at nDCG@1",
     on_week(early_stop_is_enough)),
    ("13-passes", "13 4", "the l2 bound keeps RMLS from a degenerate solution", no_degenerate_solution),
    ("13-dims", "13 6.2", "RMLS and PLS improve with the dimension", more_dimensions),
    ("13-dims", "13 6.2", "so do LSI, SVDFeature and BLTM", more_dimensions_of_baselines),
    ("13-dims", "13 6.2", "SSI does not depend on the dimension", ssi_is_insensitive),
    ("13-dims", "13 6.2", "theta hardly matters to RMLS", theta_does_not_matter),
    ("13-steps", "13 6.2", "RW gains nothing from more than five steps", five_steps_are_enough),
    ("13-response", "13 6.5.2", "log clicks hurt RMLS and PLS on queries of over 100 clicks",
     clicks_or_logs(HEAD, beats)),
    ("13-response", "13 6.5.2", "nor do they help on queries of up to 100 clicks", clicks_or_logs(TAIL, not_below)),
    ("13-3", "13 Table 3", "on half a year RMLS is better than every baseline",
     on_simulated("half-year", against_baselines(paper13.HALF_YEAR, "RMLS", ("RMLS",), _t))),
    ("13-3", "13 6.4", "on half a year RMLS takes far less processor time than PLS on words",
     on_simulated("half-year", seconds(paper13.HALF_YEAR, ("RMLS", "PLS (word)"), HALF_YEAR_SECONDS))),
    ("13-3", "13 Table 3", "the order of the models by nDCG@1",
     on_simulated("half-year", in_the_papers_order(paper13.HALF_YEAR, by_first))),
    ("13-4", "13 Table 4", "PLS improves boosted trees", trees_gain("13-4", "MART-PLS", "MART-Baseline", beats)),
    ("13-4", "13 Table 4", "RMLS improves boosted trees", trees_gain("13-4", "MART-RMLS", "MART-Baseline", beats)),
    ("13-4", "13 Table 4", "with RMLS they are as good as with PLS",
     trees_gain("13-4", "MART-RMLS", "MART-PLS", level)),
    ("13-4", "13 Table 4", "with PLS there, RMLS adds little", trees_gain("13-4", "MART-All", "MART-PLS", level)),
    ("13-5", "13 Table 5", "on half a year RMLS improves boosted trees",
     trees_gain("13-5", "MART-RMLS", "MART-Baseline", beats)),
    ("13-5", "13 Table 5", "PLS on words does not improve boosted trees",
     trees_gain("13-5", "MART-PLS", "MART-Baseline", level)),
    ("13-6", "13 Table 6", "up to 100 clicks, RW and RW+BM25 are better than RMLS and PLS",
     on_simulated("one-week", tail_and_head(("RW", "RW+BM25"), OWN, TAIL))),
    ("13-6", "13 Table 6", "beyond 100 clicks, RMLS and PLS are better than every baseline",
     on_simulated("one-week", tail_and_head(OWN, [own.label for own in WEEK if own.label not in OWN], HEAD))),
    ("13-6", "13 6.5.2", "BLTM is better on queries of up to 100 clicks than beyond",
     on_simulated("one-week", better_on_the_tail("BLTM"))),
    ("13-6", "13 6.5.2", "SSI is better on queries of up to 100 clicks than beyond",
     on_simulated("one-week", better_on_the_tail("SSI"))),
    ("13-6", "13 6.5.2", "few clicks cost SVDFeature more than RMLS and PLS",
     on_simulated("one-week", suffers_on_the_tail)),
    ("13-F2", "13 Figure 2", "RMLS gains from more threads", threads_help),
    ("12-2", "12 Table 2", "RMLS is as good as PLS", on_week(two(paper13.ONE_WEEK_OF_12, "RMLS", "PLS", level, _sign))),
    ("12-2", "12 Table 2", "RMLS is better than every baseline",
     on_week(against_baselines(paper13.ONE_WEEK_OF_12, "RMLS", OWN, _sign))),
    ("12-2", "12 Table 2", "PLS is better than every baseline",
     on_week(against_baselines(paper13.ONE_WEEK_OF_12, "PLS", OWN, _sign))),
    ("12-2", "12 Table 2", "the order of the models by MAP",
     on_week(in_the_papers_order(paper13.ONE_WEEK_OF_12, by_map))),
    ("12-3", "12 Table 3", "on half a year RMLS is better than PLS on words and than BM25",
     on_simulated("half-year", against_baselines(paper13.HALF_YEAR_OF_12, "RMLS", ("RMLS",), _sign))),
)  # fmt: skip
