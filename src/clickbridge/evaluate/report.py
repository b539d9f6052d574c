"""A comparison as one self-contained HTML page: no script, no other file, light and dark mode.

The most important results come first: which model is best, by how much, and whether that is significant. Queries are
personal data, so only a few of the judged lists are shown: those where two models differ most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined

from clickbridge.evaluate import plots
from clickbridge.evaluate.results import Comparison, ModelResult
from clickbridge.evaluate.significance import LEVELS, p_in_words
from clickbridge.evaluate.similar import PairedPreference
from clickbridge.evaluate.slices import GROUPINGS, Cell
from clickbridge.types import ResultList
from clickbridge.wording import count_of

EXAMPLES, SHOWN_MODELS, DEPTH = 4, 3, 5
"""The number of example queries for better and for worse, of models side by side, and of results of each."""
MEASURE_WORDS = {
    "nDCG": "how good the order of the first results is; 1 is the best possible order. A result of grade g counts "
    "2^g - 1 at rank 1, and less at lower ranks",
    "AP": "average precision: high if relevant results rank above the others",
    "RR": "reciprocal rank: 1 divided by the rank of the first relevant result",
    "P": "precision: the share of relevant results among the first results",
    "R": "recall: the share of all relevant results that are among the first results",
}


@dataclass(frozen=True)
class Shown:
    """One result of an example."""

    name: str
    grade: str
    relevant: bool


@dataclass(frozen=True)
class Side:
    """One model's ranking in an example."""

    spec: str
    value: float
    no_score: bool
    hits: list[Shown]


@dataclass(frozen=True)
class Example:
    query: str
    clicks: int
    n_relevant: int
    sides: list[Side]


def render(found: Comparison, similar: Sequence[PairedPreference] = ()) -> str:
    pages = Environment(
        loader=PackageLoader("clickbridge.evaluate"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    pages.filters |= {"p": p_in_words, "signed": signed, "short": plots.in_short, "pair": frozenset}
    best, reference = leaders(found)
    return pages.get_template("report.html").render(
        found=found,
        best=best,
        reference=reference,
        verdict=verdict(found),
        pictures=pictures(found, similar),
        groupings=[g for g in GROUPINGS if found.slices[g.name]],
        examples=examples(found, best, reference),
        matrix={frozenset((pair.one, pair.two)): pair for pair in found.pairs},
        levels=LEVELS,
        measure_words=_measure_words(found.measures),
        reused=[m.spec for m in found.models if m.trial.reused],
        depth=DEPTH,
        similar=similar,
    )


# --- text ----------------------------------------------------------------------------------------


def verdict(found: Comparison) -> list[str]:
    """The main results in a few sentences."""
    best = found.ordered[0]
    mean = best.mean(found.main)
    counted = count_of(len(found.counted), "judged query")
    lines = [f"{best.spec} ranks best: {found.main} {mean:.3f} over {counted}."]
    if best.paired:
        own = best.paired[found.main]
        word = "a significant difference" if own.p_value < LEVELS[0] else "a difference that may be chance"
        lines.append(
            f"That is {signed(own.difference)} against {found.baseline} "
            f"(95% interval {signed(own.low)} to {signed(own.high)}): {word}."
        )
    pairs = [pair for pair in found.pairs if pair.one == best.spec and pair.two != found.baseline]
    beaten = [pair.two for pair in pairs if pair.p_value < LEVELS[0]]
    close = [pair.two for pair in pairs if pair.p_value >= LEVELS[0]]
    if beaten:
        lines.append(f"It is {'also ' if best.paired else ''}significantly better than {_and(beaten)}.")
    if close:
        lines.append(f"Its difference from {_and(close)} may be chance.")
    silent = {m.spec: len(m.no_score) for m in found.models if m.no_score}
    if silent:
        every = len(found.counted)
        counts = ", ".join(f"{spec} for {'all' if n == every else f'{n:,}'}" for spec, n in silent.items())
        lines.append(f"No score for some queries, which keep their incoming order: {counts}.")
    return lines


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def signed(value: float) -> str:
    """A number with its sign, unless it rounds to 0."""
    return f"{value:+.3f}" if abs(value) >= 0.0005 else "0.000"


def _grade(grade: float) -> str:
    return f"{grade:g}" if grade == int(grade) else f"{grade:.2f}"


def _measure_words(measures: Sequence[str]) -> dict[str, str]:
    """The meaning of each measure. Measures of one family share a line."""
    families: dict[str, list[str]] = {}
    for name in measures:
        families.setdefault(name.partition("@")[0].partition("(")[0], []).append(name)
    return {", ".join(names): MEASURE_WORDS[family] for family, names in families.items()}


# --- contents ------------------------------------------------------------------------------------


def leaders(found: Comparison) -> tuple[ModelResult, ModelResult]:
    """The best model, and the model to compare it with: the baseline, or the first model named if the baseline is only
    the given order."""
    best = found.ordered[0]
    rivals = [m for m in found.models if m.spec not in ("given", best.spec) and m.mean(found.main) is not None]
    preferred = [m for m in rivals if m.spec == found.baseline] or rivals
    return best, (preferred or [m for m in found.models if m is not best])[0]


def examples(found: Comparison, best: ModelResult, reference: ModelResult) -> dict[str, list[Example]]:
    """Queries where the two differ most, in either direction."""
    ours, theirs = best.values[found.main], reference.values[found.main]
    by_id = {r.query_id: r for r in found.lists}
    gains = {q: ours[q] - theirs[q] for q in found.counted if q not in best.no_score | reference.no_score}
    third = [m for m in found.ordered if m not in (best, reference) and m.spec != "given"]
    sides = [best, reference, *third][:SHOWN_MODELS]
    number = {r.query_id: i for i, r in enumerate(found.lists)}
    out = {}
    for title, sign in (("better", 1), ("worse", -1)):
        chosen = sorted((q for q in gains if gains[q] * sign > 0), key=lambda q: (-gains[q] * sign, number[q]))
        out[title] = [_example(found, by_id[q], number[q], sides) for q in chosen[:EXAMPLES]]
    return out


def _example(found: Comparison, result: ResultList, number: int, models: Sequence[ModelResult]) -> Example:
    labels = result.labels or []
    query = found.queries[result.query_id]
    sides = []
    for m in models:
        hits = [
            Shown(found.titles.get(result.results[i], result.results[i]), _grade(labels[i]), labels[i] > 0)
            for i in m.trial.ranked[number][:DEPTH]
        ]
        sides.append(Side(m.spec, m.values[found.main][result.query_id], result.query_id in m.no_score, hits))
    return Example(query.shown, query.clicks, sum(label > 0 for label in labels), sides)


def pictures(found: Comparison, similar: Sequence[PairedPreference]) -> dict[str, str]:
    scored = [m for m in found.ordered if m.mean(found.main) is not None]
    out = {"means": plots.spans([_span(m, found) for m in scored], found.main, f"{found.main} of every model",
                                muted=found.baseline)}  # fmt: skip
    tested = [m for m in scored if m.paired]
    if tested:
        rows = [(m.spec, p.difference, p.low, p.high) for m in tested for p in [m.paired[found.main]]]
        out["gains"] = plots.spans(
            rows, f"{found.main} gain over {found.baseline}", f"gain of every model over {found.baseline}", zero=True
        )
    for grouping in GROUPINGS[:2]:
        cells = found.slices[grouping.name]
        if len(cells) > 1:
            out[grouping.name] = _group_plot(found, scored, cells, f"{found.main} by {grouping.name}")
    if found.by_dim:
        out["dims"] = plots.curves(found.by_dim, f"{found.main} by latent dimension")
    fitted = [m for m in found.ordered if m.spec != "given"]
    panels = {
        "fit, s": [m.trial.seconds for m in fitted],
        "list, ms": [m.trial.query_ms for m in fitted],
        "peak, MB": [m.trial.peak_mb for m in fitted],
    }
    out["costs"] = plots.costs([m.spec for m in fitted], panels, "seconds to fit, milliseconds per list, memory")
    if found.by_rank is not None:
        series = {"clicked": found.by_rank.clicked, "looked at, relative to rank 1": found.by_rank.examined}
        out["by_rank"] = plots.by_rank(series, "share of clicks, and chance of being looked at, by rank")
    if similar:
        out["similar"] = plots.preferences(similar, "similar queries: better, comparable, worse")
    return out


def _span(m: ModelResult, found: Comparison) -> plots.Span:
    own = m.over(found.main, found.counted)
    assert own.mean is not None
    return m.spec, own.mean, own.low, own.high


def _group_plot(found: Comparison, scored: Sequence[ModelResult], cells: dict[str, dict[str, Cell]], alt: str) -> str:
    """Only the best models and the baseline; more would not be readable."""
    others = [m for m in scored if m.spec != found.baseline]
    shown = [*others[: plots.MOST_SERIES - 1], found[found.baseline]]
    series = {m.spec: [own[m.spec] for own in cells.values()] for m in shown}
    counts = [next(iter(own.values())).n for own in cells.values()]
    return plots.groups(list(cells), counts, series, alt, muted=found.baseline)
