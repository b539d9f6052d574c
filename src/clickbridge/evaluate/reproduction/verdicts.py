"""Tells whether a claim holds on the data. A verdict is a word, its figures and the test.

`holds` and `fails` need a significant difference at .05. Otherwise the verdict is `not significant`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import kendalltau, ttest_ind

from clickbridge.evaluate.reproduction.bench import Data
from clickbridge.evaluate.reproduction.relevance_rows import (
    NONE,
    Line,
    OwnTest,
    PValue,
    direction,
    gains,
    without_scores,
)
from clickbridge.evaluate.significance import LEVELS, Array, p_in_words

HOLDS, FAILS, UNSURE, ABSENT = "holds", "fails", "not significant", "not tested"
LEAST_ORDERED = 3


class Verdict(NamedTuple):
    word: str
    figures: str


NOT_TESTED = Verdict(ABSENT, "")


def by_gains(found: Array, p: float, figures: str, p_of: PValue, sign: float = 1.0) -> Verdict:
    """The verdict for differences that should be above 0, or below with `sign=-1`. If the sign test was used, and the
    number of gains and their mean disagree, there is none, and the figures tell both."""
    way = direction(found, p_of)
    if p < LEVELS[0] and not way:
        better, worse = int((found > 0).sum()), int((found < 0).sum())
        return Verdict(UNSURE, f"{figures}, but {better:,} up, {worse:,} down and {found.mean():+.4f} on average")
    return by_mean(sign * way, p, figures)


def by_mean(mean: float, p: float, figures: str) -> Verdict:
    """The verdict for a mean that should be above 0."""
    if p >= LEVELS[0]:
        return Verdict(UNSURE, figures)
    return Verdict(HOLDS if mean > 0 else FAILS, figures)


def not_apart(mean: float, p: float, figures: str) -> Verdict:
    """The verdict for a mean that should not differ from 0."""
    return Verdict(HOLDS if p >= LEVELS[0] else FAILS, figures)


def beats(data: Data, one: Line, two: Line, test: OwnTest, only: set[str] | None = None) -> Verdict:
    """Whether one row is better than another."""
    found = gains(data, one, two, test.measure, only)
    if found is None or len(found) < 2:
        return NOT_TESTED
    p = test.p_of(found)
    a, b = (data.means(line.spec, (test.measure,), line.settings, only=only)[0] for line in (one, two))
    figures = f"{_short(a)} against {_short(b)}, {test.name} p {p_in_words(p)}"
    return by_gains(found, p, figures, test.p_of)


def beats_all(data: Data, one: Line, others: Sequence[Line], test: OwnTest, only: set[str] | None = None) -> Verdict:
    """Whether one row is better than all others. It holds if it is better than each, and fails if it is worse than
    one."""
    words: dict[str, list[str]] = {HOLDS: [], FAILS: [], UNSURE: [], ABSENT: []}
    silent = without_scores(data, others)
    for other in others:
        word = ABSENT if other.label in silent else beats(data, one, other, test, only).word
        words[word].append(other.label.partition(",")[0])
    if not any(words[word] for word in (HOLDS, FAILS, UNSURE)):
        return NOT_TESTED
    said = {HOLDS: "above", FAILS: "below", UNSURE: "level with", ABSENT: "no figures of"}
    parts = [f"{said[word]} {', '.join(names)}" for word, names in words.items() if names]
    word = FAILS if words[FAILS] else UNSURE if words[UNSURE] else HOLDS
    own = data.means(one.spec, (test.measure,), one.settings, only=only)[0]
    return Verdict(word, f"{_short(own)}: {'; '.join(parts)} ({test.name})")


def beats_all_by(
    data: Data, one: Line, others: Sequence[Line], tests: Sequence[OwnTest], but: Mapping[str, str] = NONE
) -> Verdict:
    """Whether one row is better than all others in every measure. `but` names, by measure, a row that the paper
    excepts."""
    parts = []
    for test in tests:
        rivals = [line for line in others if not line.label.startswith(but.get(test.measure, "\0"))]
        word, figures = beats_all(data, one, rivals, test)
        parts.append(Verdict(word, f"{test.measure.partition('(')[0].replace('AP', 'MAP')} {figures}"))
    return all_of(parts)


def level(data: Data, one: Line, two: Line, test: OwnTest) -> Verdict:
    """Whether two rows do not differ."""
    word, figures = beats(data, one, two, test)
    said = {HOLDS: f"better: {figures}", FAILS: f"worse: {figures}"}.get(word, figures)
    return Verdict({UNSURE: HOLDS, HOLDS: FAILS}.get(word, word), said)


def not_below(data: Data, one: Line, two: Line, test: OwnTest, only: set[str] | None = None) -> Verdict:
    word, figures = beats(data, one, two, test, only)
    return Verdict(HOLDS if word == UNSURE else word, figures)


def higher(these: Array, those: Array, words: str) -> Verdict:
    """Whether the mean over some queries is higher than over others, by Welch's test."""
    if min(len(these), len(those)) < 2:
        return NOT_TESTED
    p = float(ttest_ind(these, those, equal_var=False).pvalue)
    a, b = float(these.mean()), float(those.mean())
    figures = f"{_short(a)} {words} {_short(b)}, Welch's t-test p {p_in_words(p)}"
    return by_mean(a - b, p, figures)


def all_of(verdicts: Sequence[Verdict]) -> Verdict:
    """Combines several parts of one claim: it fails if one part fails."""
    known = [verdict for verdict in verdicts if verdict.word != ABSENT]
    words = [verdict.word for verdict in known]
    word = next((w for w in (FAILS, UNSURE, HOLDS) if w in words), ABSENT)
    return Verdict(word, "; ".join(verdict.figures for verdict in known))


def same_order(data: Data, lines: Sequence[Line], measure: str, at: int) -> Verdict:
    """Whether the order of the models by a measure is that of the paper. The paper's figures are at `at` of each
    row."""
    means = [data.means(line.spec, (measure,), line.settings)[0] for line in lines]
    silent = without_scores(data, lines)
    pairs = [
        (mean, line.paper[at])
        for mean, line in zip(means, lines, strict=True)
        if isinstance(mean, float) and line.label not in silent
    ]
    if len(pairs) < LEAST_ORDERED or len({mean for mean, _ in pairs}) == 1:
        return NOT_TESTED
    found = kendalltau(*zip(*pairs, strict=True))
    tau, p = float(found.statistic), float(found.pvalue)
    figures = f"Kendall's tau {tau:.2f} over {len(pairs)} models, p {p_in_words(p)}"
    return by_mean(tau, p, figures)


def within(value: float, low: float, high: float, figures: str) -> Verdict:
    """The verdict for a figure without a test."""
    if np.isnan(value):
        return NOT_TESTED
    return Verdict(HOLDS if low <= value <= high else FAILS, figures)


def _short(value: object) -> str:
    return f"{value:.3f}".replace("0.", ".", 1) if isinstance(value, float) else "-"
