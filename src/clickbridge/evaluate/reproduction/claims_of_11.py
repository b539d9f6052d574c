"""Claims of 11M, 11R and 09: several views and similar queries, robust BM25, re-ranking by clicks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from clickbridge.evaluate.reproduction import paper09, paper11m, paper11r
from clickbridge.evaluate.reproduction.bench import NDCG, Data
from clickbridge.evaluate.reproduction.claims_of_13 import (
    Judged,
    against_baselines,
    by_map,
    in_the_papers_order,
    on_simulated,
    on_week,
    two,
)
from clickbridge.evaluate.reproduction.lab import Lab
from clickbridge.evaluate.reproduction.relevance_rows import (
    AS_PRINTED,
    NONE,
    SUMMED,
    Line,
    OwnTest,
    sign_on,
    signs,
    t_on,
    variant,
)
from clickbridge.evaluate.reproduction.verdicts import (
    FAILS,
    HOLDS,
    NOT_TESTED,
    UNSURE,
    Verdict,
    all_of,
    beats,
    beats_all,
    beats_all_by,
    by_gains,
    by_mean,
    not_apart,
    within,
)
from clickbridge.evaluate.significance import LEVELS, Array, p_in_words, t_test
from clickbridge.online.groups import Move

FAMILY = ("M-PLS_Com", "M-PLS_Conca", "M-PLS_Word", "M-PLS_Bipar")
SINGLE = ("Cos_B", "Cos_W", "LSI", "RW")
SUMS = tuple(label for label in paper11m.RIVALS if "+" in label)
SMALL = 0.01
"""The largest spread in MAP that counts as hardly any."""


def _sign(data: Data) -> OwnTest:
    return sign_on(data.map_name)


def _t(data: Data) -> OwnTest:
    return t_on(data.map_name)


def _family(lines: Sequence[Line], one: str, others: Sequence[str]) -> Callable[[Data, bool], Verdict]:
    """One variant of M-PLS is better than the others. Ours has only one variant, so only the printed ones are
    tested."""

    def rule(data: Data, ours: bool) -> Verdict:
        if ours:
            return NOT_TESTED
        return beats_all(data, variant(lines, one, ours), [variant(lines, o, ours) for o in others], _sign(data))

    return rule


def _worst(lines: Sequence[Line]) -> Callable[[Data, bool], Verdict]:
    """The variant with clicks only is worse than every other variant."""

    def rule(data: Data, ours: bool) -> Verdict:
        if ours:
            return NOT_TESTED
        last = variant(lines, FAMILY[-1], ours)
        return all_of([beats(data, variant(lines, label, ours), last, _sign(data)) for label in FAMILY[:-1]])

    return rule


def in_every_measure(
    lines: Sequence[Line], label: str, own: Sequence[str], by: Callable[[str], OwnTest], but: Mapping[str, str] = NONE
) -> Callable[[Data, bool], Verdict]:
    """A system is better than every baseline in MAP and in nDCG@1, 3 and 5."""

    def rule(data: Data, ours: bool) -> Verdict:
        others = [variant(lines, line.label, ours) for line in lines if line.label not in own]
        tests = [by(measure) for measure in (data.map_name, *NDCG)]
        return beats_all_by(data, variant(lines, label, ours), others, tests, but)

    return rule


def with_bm25(lab: Lab) -> Judged:
    """Table 5: M-PLS_Com becomes better with BM25."""
    for scale in ("enterprise", "one-week"):
        data = lab.simulated(scale)
        found = []
        for settings in (SUMMED, {}):
            lines = [Line(spec, spec, (), settings) for spec in ("mpls+bm25", "mpls")]
            found.append(beats(data, lines[0], lines[1], _sign(data)))
        yield data.name, found[0], found[1]


def more_dimensions(scale: str) -> Callable[[Lab], Judged]:
    def judge(lab: Lab) -> Judged:
        data = lab.simulated(scale)
        dims = paper11m.dimensions(lab, data)
        lines = [Line("mpls", "mpls", (), {**AS_PRINTED, "dim": dim}) for dim in (dims[-1], dims[0])]
        yield f"{data.name}, {dims[-1]} against {dims[0]}", beats(data, lines[0], lines[1], _sign(data)), NOT_TESTED

    return judge


def others_with_dimensions(scale: str, lines: Sequence[Line]) -> Callable[[Lab], Judged]:
    """LSI and the other variants of M-PLS improve with the dimension, up to the page's."""

    def judge(lab: Lab) -> Judged:
        data = lab.simulated(scale)
        dims = paper11m.dimensions(lab, data)
        low, high = dims[0], min(lab.dim, dims[-1])
        if low >= high:
            yield data.name, NOT_TESTED, NOT_TESTED
            return
        found = []
        for line in (line for line in lines if line.label in ("LSI", *FAMILY[1:])):
            most, least = (line._replace(settings={**line.settings, "dim": dim}) for dim in (high, low))
            word, figures = beats(data, most, least, _sign(data))
            found.append(Verdict(word, f"{line.label} {figures}"))
        yield f"{data.name}, {high} against {low}", all_of(found), NOT_TESTED

    return judge


def on_similar(scale: str, rule: Callable[[Data, int, bool], Verdict]) -> Callable[[Lab], Judged]:
    """Applies a rule to similar queries of every data set; with our version too where it is compared."""

    def judge(lab: Lab) -> Judged:
        found: dict[str, list[Verdict]] = {}
        for data, ours in paper11m.variants(lab, scale):
            found.setdefault(data.name, [NOT_TESTED, NOT_TESTED])[ours] = rule(data, lab.seed, ours)
        for name, (printed, ours_too) in found.items():
            yield name, printed, ours_too

    return judge


def similar_queries(scale: str, rivals: Sequence[str], *, level: bool = False) -> Callable[[Lab], Judged]:
    """M-PLS_Com finds better similar queries than each of the rivals. With `level`, as good is enough."""
    return on_similar(scale, lambda data, seed, ours: _preferred(data, rivals, seed, ours, level))


def _preferred(data: Data, rivals: Sequence[str], seed: int, ours: bool, level: bool) -> Verdict:
    found, queries, _ = paper11m.compare_similar(data, seed=seed, ours=ours)
    some = [p for p in found if p.baseline in rivals]
    if not some or not queries:
        return NOT_TESTED
    undecided = HOLDS if level else UNSURE
    words = [undecided if p.p_value >= LEVELS[0] else HOLDS if p.pos > p.neg else FAILS for p in some]
    said = ", ".join(
        f"{p.baseline} {100 * p.pos / queries:.0f}/{100 * p.neg / queries:.0f}% (p {p_in_words(p.p_value)})"
        for p in some
    )
    word = next(w for w in (FAILS, UNSURE, HOLDS) if w in words)
    return Verdict(word, f"better/worse on {queries} queries than {said}; sign test")


def shares_won(scale: str, better: float, worse: float) -> Callable[[Lab], Judged]:
    """M-PLS_Com is better than each single baseline on more than one share of the queries, and worse on less than
    another."""
    return on_similar(scale, lambda data, seed, ours: _shares(data, seed, ours, better, worse))


def _shares(data: Data, seed: int, ours: bool, better: float, worse: float) -> Verdict:
    found, queries, _ = paper11m.compare_similar(data, seed=seed, ours=ours)
    some = [(p.pos / queries, p.neg / queries) for p in found if p.baseline in SINGLE] if queries else []
    if len(some) < len(SINGLE):
        return NOT_TESTED
    least, most = min(pos for pos, _ in some), max(neg for _, neg in some)
    figures = f"better on {100 * least:.0f}% or more, worse on up to {100 * most:.0f}% of {queries} queries"
    return Verdict(HOLDS if least > better and most < worse else FAILS, figures)


def rivals_compared(
    scale: str, one: str, other: str, rule: Callable[[float, float, str], Verdict]
) -> Callable[[Lab], Judged]:
    """One baseline of similar queries against another."""
    return on_similar(scale, lambda data, seed, ours: _between(data, one, other, seed, ours, rule))


def _between(
    data: Data, one: str, other: str, seed: int, ours: bool, rule: Callable[[float, float, str], Verdict]
) -> Verdict:
    two = paper11m.between(data, one, other, seed=seed, ours=ours)
    if two is None:
        return NOT_TESTED
    figures = f"better on {two.pos}, worse on {two.neg} queries, sign test p {p_in_words(two.p_value)}"
    return rule(two.pos - two.neg, two.p_value, figures)


def tail_is_better(data: Data, seed: int, ours: bool) -> Verdict:
    """The share of queries won is larger on tail queries than on all queries."""
    shares = []
    for tail in (False, True):
        compared, queries, _ = paper11m.compare_similar(data, tail=tail, seed=seed, ours=ours)
        shares.append({p.baseline: (p.pos - p.neg) / queries for p in compared} if queries else {})
    if any(label not in own for own in shares for label in SINGLE):
        return NOT_TESTED
    rises = sum(shares[1][label] > shares[0][label] for label in SINGLE)
    return within(rises, len(SINGLE), np.inf, f"net share won rises against {rises} of {len(SINGLE)} single baselines")


def lambda_hardly_matters(lab: Lab) -> Judged:
    for data in lab.relevance_sets("one-week"):
        some = paper11r.some_judged(data)
        found = [some.values("robust-bm25", paper11r.lambda_of(lam)) for lam in paper11r.LAMBDAS]
        values = [own[some.map_name] for own in found if not isinstance(own, str)]
        known = [float(np.mean([*own.values()])) for own in values]
        # Without a similar query there is nothing to learn: Robust BM25 is BM25, and lambda is nowhere in the score.
        base = some.values("bm25", AS_PRINTED)
        learned = not isinstance(base, str) and any(own != base[some.map_name] for own in values)
        spread = max(known) - min(known) if learned else np.nan
        yield data.name, within(spread, 0.0, SMALL, f"MAP within {spread:.3f} for lambda .01 to 100"), NOT_TESTED


def pearson_is_best(lab: Lab) -> Judged:
    """Footnote 2: Pearson and Jensen-Shannon first, then Jaccard. As printed Pearson is (9), ours is over all URLs."""
    for data in lab.similarity_sets("one-week"):
        found = paper11r.each_precision(data, lab.seed)
        yield data.name, _above_jaccard(found, "Pearson (9)"), _above_jaccard(found, "Pearson")


def _above_jaccard(found: Mapping[str, Array], pearson: str) -> Verdict:
    """P@3 of each measure by query."""
    if not found or len(found["Jaccard"]) < 2:
        return NOT_TESTED
    parts = []
    for name in (pearson, "Jensen-Shannon"):
        apart = found[name] - found["Jaccard"]
        p = t_test(apart)
        figures = f"P@3 of {name} {found[name].mean():.3f}, of Jaccard {found['Jaccard'].mean():.3f}, t-test p"
        parts.append(by_mean(float(apart.mean()), p, f"{figures} {p_in_words(p)}"))
    return all_of(parts)


def moves_of(low: int, high: int, sign: float) -> Callable[[Lab], Judged]:
    """Clicked results of these ranks rise (sign 1) or fall (-1)."""

    def judge(lab: Lab) -> Judged:
        for condition in paper09.settings(lab):
            orders = (paper09.PRINTED, paper09.ONLINE)
            printed, ours = (_moved(condition, order, low, high, sign) for order in orders)
            yield condition.data.name, printed, ours

    return judge


def _found_moves(condition: paper09.Condition, order: str, low: int, high: int) -> list[Move]:
    """Moves of the clicked results of these ranks. None where nothing moves at all: no page is on enough lists, so
    there is no f to test."""
    found = paper09.order_moves(condition, order)
    if isinstance(found, str) or all(m.before == m.after for m in found):
        return []
    return [m for m in found if low <= m.before <= high]


def _moved(condition: paper09.Condition, order: str, low: int, high: int, sign: float) -> Verdict:
    found = _found_moves(condition, order, low, high)
    rises = np.array([m.before - m.after for m in found], dtype=np.float64)
    if len(rises) < 2:
        return NOT_TESTED
    p = signs(rises)
    figures = f"{rises.mean():+.2f} places over {len(rises):,} clicks, sign test p {p_in_words(p)}"
    return by_gains(rises, p, figures, signs, sign)


def above_random(low: int, high: int) -> Callable[[Lab], Judged]:
    """Clicked results of these ranks rise further than in a random order, where they are in the middle on average."""

    def judge(lab: Lab) -> Judged:
        for condition in paper09.settings(lab):
            printed, ours = (_above_middle(condition, order, low, high) for order in (paper09.PRINTED, paper09.ONLINE))
            yield condition.data.name, printed, ours

    return judge


def _above_middle(condition: paper09.Condition, order: str, low: int, high: int) -> Verdict:
    some = _found_moves(condition, order, low, high)
    if len(some) < 2:
        return NOT_TESTED
    before, after, length = np.array(some, dtype=np.float64).T
    middle = (length + 1) / 2
    p = t_test(middle - after)
    figures = f"{(before - after).mean():+.2f} places, at random {(before - middle).mean():+.2f}, t-test p"
    return by_mean(float((middle - after).mean()), p, f"{figures} {p_in_words(p)}")


WEB, ENTERPRISE = paper11m.WEB, paper11m.ENTERPRISE
ROBUST = paper11r.lines_of(2)
BASELINES = [line.label for line in ROBUST if line.label in ("Query Expansion", "BM25")]


def pairwise_above(data: Data, ours: bool) -> Verdict:
    one = variant(ROBUST, "Pairwise Kernel", ours)
    return beats_all(data, one, [variant(ROBUST, label, ours) for label in BASELINES], _t(data))


CLAIMS: tuple[tuple[str, str, str, Callable[[Lab], Iterator[tuple[str, Verdict, Verdict]]]], ...] = (
    ("11M-3", "11M Table 3", "M-PLS is better than BM25, LSI, RW and their sums, enterprise search",
     on_simulated("enterprise", against_baselines(ENTERPRISE, "M-PLS_Com", FAMILY, _sign))),
    ("11M-4", "11M Table 4", "M-PLS is better than BM25, LSI, RW and their sums, web search",
     on_week(against_baselines(WEB, "M-PLS_Com", FAMILY, _sign))),
    ("11M-3", "11M 5.4.1", "M-PLS is better than those in every measure, enterprise search",
     on_simulated("enterprise", in_every_measure(ENTERPRISE, "M-PLS_Com", FAMILY, sign_on))),
    ("11M-4", "11M 5.4.1", "M-PLS is better than those in every measure, but at nDCG@1 than RW+BM25, web search",
     on_week(in_every_measure(WEB, "M-PLS_Com", FAMILY, sign_on, {NDCG[0]: "RW+BM25"}))),
    ("11M-3", "11M Table 3", "the order of the models by MAP",
     on_simulated("enterprise", in_the_papers_order(ENTERPRISE, by_map))),
    ("11M-4", "11M Table 4", "the order of the models by MAP", on_week(in_the_papers_order(WEB, by_map))),
    ("11M-3", "11M Table 3", "combined views are better than concatenated ones, words or clicks alone",
     on_simulated("enterprise", _family(ENTERPRISE, "M-PLS_Com", FAMILY[1:]))),
    ("11M-4", "11M Table 4", "combined views are better than concatenated ones, words or clicks alone",
     on_week(_family(WEB, "M-PLS_Com", FAMILY[1:]))),
    ("11M-3", "11M Table 3", "clicks alone are the worst view", on_simulated("enterprise", _worst(ENTERPRISE))),
    ("11M-4", "11M Table 4", "clicks alone are the worst view", on_week(_worst(WEB))),
    ("11M-5", "11M Table 5", "BM25 beside it improves M-PLS", with_bm25),
    ("11M-F3", "11M Figure 3", "M-PLS improves with the dimension, enterprise search", more_dimensions("enterprise")),
    ("11M-F4", "11M Figure 4", "M-PLS improves with the dimension, web search", more_dimensions("one-week")),
    ("11M-F3", "11M 5.3", "so do LSI, concatenated views, words and clicks alone, enterprise search",
     others_with_dimensions("enterprise", ENTERPRISE)),
    ("11M-F4", "11M 5.3", "so do LSI, concatenated views, words and clicks alone, web search",
     others_with_dimensions("one-week", WEB)),
    ("11M-F5", "11M Figure 5", "similar queries by M-PLS beat those by Cos_B, Cos_W, LSI and RW, enterprise search",
     similar_queries("enterprise", SINGLE)),
    ("11M-F5", "11M Figure 5", "and are not worse than those by Cos_B+Cos_W, LSI+Cos_W and RW+Cos_W",
     similar_queries("enterprise", SUMS, level=True)),
    ("11M-F6", "11M Figure 6", "similar queries by M-PLS beat those by Cos_B, Cos_W, LSI and RW, web search",
     similar_queries("one-week", SINGLE)),
    ("11M-F6", "11M Figure 6", "and are not worse than those by Cos_B+Cos_W, LSI+Cos_W and RW+Cos_W",
     similar_queries("one-week", SUMS, level=True)),
    ("11M-F5", "11M 5.4.2", "RW finds better similar queries than Cos_B, enterprise search",
     rivals_compared("enterprise", "RW", "Cos_B", by_mean)),
    ("11M-F6", "11M 5.4.2", "RW finds better similar queries than Cos_B, web search",
     rivals_compared("one-week", "RW", "Cos_B", by_mean)),
    ("11M-F5", "11M 5.4.2", "those by M-PLS are better on over 15%, worse on under 7% of queries, enterprise search",
     shares_won("enterprise", 0.15, 0.07)),
    ("11M-F6", "11M 5.4.2", "those by M-PLS are better on over 25%, worse on under 3% of queries, web search",
     shares_won("one-week", 0.25, 0.03)),
    ("11M-F5", "11M 5.4.2", "Cos_B+Cos_W and RW+Cos_W are as good as each other, enterprise search",
     rivals_compared("enterprise", "Cos_B+Cos_W", "RW+Cos_W", not_apart)),
    ("11M-F6", "11M 5.4.2", "Cos_B+Cos_W and RW+Cos_W are as good as each other, web search",
     rivals_compared("one-week", "Cos_B+Cos_W", "RW+Cos_W", not_apart)),
    ("11M-F7", "11M Figure 7", "for tail queries M-PLS gains even more", on_similar("one-week", tail_is_better)),
    ("11R-5", "11R Table 5", "Robust BM25 is better than the pairwise kernel, query expansion and BM25",
     on_week(against_baselines(ROBUST, "Robust BM25", ("Robust BM25",), _t))),
    ("11R-5", "11R Table 5", "the same on enterprise search",
     on_simulated("enterprise", against_baselines(ROBUST, "Robust BM25", ("Robust BM25",), _t))),
    ("11R-5", "11R 7.4", "Robust BM25 is better than those in every measure, web search",
     on_week(in_every_measure(ROBUST, "Robust BM25", ("Robust BM25",), t_on))),
    ("11R-5", "11R 7.4", "Robust BM25 is better than those in every measure, enterprise search",
     on_simulated("enterprise", in_every_measure(ROBUST, "Robust BM25", ("Robust BM25",), t_on))),
    ("11R-5", "11R Table 5", "the pairwise kernel is better than query expansion and BM25", on_week(pairwise_above)),
    ("11R-5", "11R Table 5", "query expansion is better than BM25",
     on_week(two(ROBUST, "Query Expansion", "BM25", beats, _t))),
    ("11R-5", "11R Table 5", "the pairwise kernel is better than both on enterprise search",
     on_simulated("enterprise", pairwise_above)),
    ("11R-5", "11R Table 5", "query expansion is better than BM25 on enterprise search",
     on_simulated("enterprise", two(ROBUST, "Query Expansion", "BM25", beats, _t))),
    ("11R-5", "11R Table 5", "the order of the models by MAP", on_week(in_the_papers_order(ROBUST, by_map))),
    ("11R-5", "11R Table 5", "the order of the models by MAP, enterprise search",
     on_simulated("enterprise", in_the_papers_order(paper11r.lines_of(3), by_map))),
    ("11R-lambda", "11R 7.4", "lambda hardly matters", lambda_hardly_matters),
    ("11R-n2", "11R footnote 2", "Pearson and Jensen-Shannon find better queries than Jaccard", pearson_is_best),
    ("09-ranks", "09 4.1", "clicked results of ranks 1 to 5, which teach, fall", moves_of(1, 5, -1.0)),
    ("09-ranks", "09 4.1", "clicked results of ranks 6 to 20 rise", moves_of(6, 20, 1.0)),
    ("09-ranks", "09 4.1", "those of ranks 6 to 10 rise", moves_of(6, 10, 1.0)),
    ("09-ranks", "09 4.1", "those of ranks 11 to 20 rise", moves_of(11, 20, 1.0)),
    ("09-ranks", "09 5", "over all clicks, f ranks worse than the engine", moves_of(1, 20, -1.0)),
    ("09-ranks", "09 4.1", "6 to 20 rise further than in a random order (not claimed there)", above_random(6, 20)),
    ("09-ranks", "09 4.1", "11 to 20 rise further than in a random order (not claimed there)", above_random(11, 20)),
)  # fmt: skip
