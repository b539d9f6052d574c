"""Charts as SVG for an HTML page. Text stays text, and colours are CSS variables of the page, so that one chart works
in light and dark mode. Charts are narrow, so that labels can be read on a phone. `alone` makes a file of one chart."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from clickbridge.evaluate.similar import PairedPreference
from clickbridge.evaluate.slices import Cell

WIDTH = 4.3
ROW = 0.27
"""The width of a chart, and the height of one of its rows, in inches."""
TITLE = 18
"""Space for the title above a chart in a file of its own, in points."""
FEW = 5
"""Intervals are drawn only for at least this many queries. With fewer they are not reliable."""
INK, MUTED, LINE = "#101112", "#707172", "#d0d1d2"
SERIES = ("#0172b2", "#d55e01", "#019e73", "#cc79a8", "#e69f01", "#56b4ea")
"""Placeholders that are replaced by the page's variables. All colours of a chart differ."""
_VARIABLES = {INK: "ink", MUTED: "muted", LINE: "line", **{c: f"c{i}" for i, c in enumerate(SERIES)}}
MARKERS = ("o", "s", "^", "D", "v", "P")
MOST_SERIES = len(SERIES)
Span = tuple[str, float, float, float]
"""A label, a value, and the ends of its interval."""


def spans(rows: Sequence[Span], xlabel: str, alt: str, zero: bool = False, muted: str | None = None) -> str:
    """A dot with its interval for each row, the first row on top. With `zero`, a line marks no difference. The row
    named `muted` is grey."""
    figure, (axes,) = _figure(_height([label for label, *_ in rows]) + 0.75)
    for place, (label, value, low, high) in enumerate(rows):
        low, high = max(low, -1.0 if zero else 0.0), min(high, 1.0)  # the range of a measure
        colour = MUTED if label == muted else SERIES[0]
        axes.plot([low, high], [place, place], color=colour, linewidth=2, solid_capstyle="round")
        axes.plot([value], [place], "o", color=colour, markersize=6)
        _write(axes, f"{value:+.3f}" if zero else f"{value:.3f}", max(high, value), place)
    if zero:
        axes.axvline(0, color=MUTED, linewidth=1)
    axes.margins(x=0.16)
    _rows(axes, [label for label, *_ in rows])
    axes.set_xlabel(xlabel)
    axes.grid(axis="x")
    return _svg(figure, alt)


def groups(names: Sequence[str], counts: Sequence[int], series: Mapping[str, Sequence[Cell]], alt: str,
           muted: str | None = None) -> str:  # fmt: skip
    """A dot for each model in each group of queries, side by side, with its interval."""
    figure, (axes,) = _figure(2.9)
    step = 0.7 / max(len(series), 1)
    for number, (label, cells) in enumerate(series.items()):
        colour = MUTED if label == muted else SERIES[number % MOST_SERIES]
        shift = (number - (len(series) - 1) / 2) * step
        there = [(place + shift, own) for place, own in enumerate(cells) if own.mean is not None]
        for x, own in there:
            if own.n >= FEW:
                axes.plot([x, x], [max(own.low, 0.0), min(own.high, 1.0)], color=colour, linewidth=1.5, alpha=0.65)
        axes.plot(
            [x for x, _ in there], [own.mean for _, own in there],
            MARKERS[number % MOST_SERIES], color=colour, markersize=5.5, label=label,
        )  # fmt: skip
    axes.set_xticks(range(len(names)), [f"{name}\nn = {n:,}" for name, n in zip(names, counts, strict=True)])
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y")
    _legend(figure)
    return _svg(figure, alt)


def curves(series: Mapping[str, Mapping[int, Cell]], alt: str) -> str:
    """Quality by latent dimension, on a logarithmic axis."""
    figure, (axes,) = _figure(2.9)
    for number, (label, cells) in enumerate(series.items()):
        known = {dim: own.mean for dim, own in cells.items() if own.mean is not None}
        axes.plot(
            list(known), list(known.values()), MARKERS[number % MOST_SERIES] + "-",
            color=SERIES[number % MOST_SERIES], markersize=5.5, label=label,
        )  # fmt: skip
    dims = sorted({dim for cells in series.values() for dim in cells})
    axes.set_xscale("log")
    named = apart(dims)
    axes.set_xticks(dims, [f"{dim:,}" if dim in named else "" for dim in dims])
    axes.minorticks_off()
    axes.set_xlabel("dimensions of the latent space")
    axes.grid(axis="y")
    _legend(figure)
    return _svg(figure, alt)


def by_rank(series: Mapping[str, Sequence[float]], alt: str) -> str:
    """Shares by rank of the shown result, from rank 1 on."""
    figure, (axes,) = _figure(2.6)
    for number, (label, shares) in enumerate(series.items()):
        places = range(1, len(shares) + 1)
        axes.plot(places, shares, MARKERS[number] + "-", color=SERIES[number], markersize=5.5, label=label)
    axes.set_xticks(range(1, max(map(len, series.values())) + 1))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("rank on the page")
    axes.grid(axis="y")
    _legend(figure)
    return _svg(figure, alt)


def costs(labels: Sequence[str], panels: Mapping[str, Sequence[float]], alt: str) -> str:
    """Bars of several costs side by side, each on its own scale, with the number at the end of the bar."""
    figure, all_axes = _figure(_height(labels) + 0.55, len(panels))
    for number, (axes, (title, values)) in enumerate(zip(all_axes, panels.items(), strict=True)):
        axes.barh(range(len(values)), values, 0.62, color=SERIES[number])
        for place, value in enumerate(values):
            _write(axes, in_short(value), value, place)
        axes.set_title(title, fontsize=9, loc="left", color=INK)
        axes.set_xlim(0, (max(values) or 1) * 1.55)
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
        _rows(axes, labels if number == 0 else [""] * len(labels))
    return _svg(figure, alt)


def preferences(rows: Sequence[PairedPreference], alt: str) -> str:
    """For how many queries the model's similar queries were better, comparable or worse: one bar for each pair of
    models. If the model is always the same, a bar has only the name of the baseline."""
    models = {row.model for row in rows}
    labels = [row.baseline if len(models) == 1 else f"{row.model} / {row.baseline}" for row in rows]
    figure, (axes,) = _figure(_height(labels) * 1.3 + 0.75)
    parts = (("better", "pos", SERIES[2]), ("comparable", "com", LINE), ("worse", "neg", SERIES[1]))
    for place, row in enumerate(rows):
        total, start = max(row.pos + row.com + row.neg, 1), 0.0
        for label, name, colour in parts:
            share = getattr(row, name) / total
            axes.barh(place, share, 0.62, left=start, color=colour, alpha=0.6, label=label if place == 0 else None)
            if share > 0.06:
                axes.text(
                    start + share / 2, place, getattr(row, name), ha="center", va="center", fontsize=8.5, color=INK
                )
            start += share
    _rows(axes, labels)
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.5, 1], ["0", "50%", "100% of the queries"], ha="right")
    if len(models) == 1:
        axes.set_xlabel(f"{models.pop()} against each", loc="left")
    _legend(figure)
    return _svg(figure, alt)


def alone(picture: str, title: str) -> str:
    """A chart as a file of its own: with colours, a size, a white background, and its title on top."""
    tag, drawn = picture.split(">", 1)
    for colour, name in _VARIABLES.items():
        drawn = drawn.replace(f"var(--{name})", colour)
    width, height = (float(number) for number in tag.split('viewBox="0 0 ')[1].split('"')[0].split())
    tall = height + TITLE
    box = f'viewBox="0 {-TITLE} {width:g} {tall:g}" width="{width:g}pt" height="{tall:g}pt"'
    ground = f'<rect y="{-TITLE}" width="{width:g}" height="{tall:g}" fill="#ffffff"/>'
    # A title wider than the chart is squeezed: 5.3 is the mean width of a letter at this size.
    squeezed = f' textLength="{width - 8:g}" lengthAdjust="spacingAndGlyphs"' if 5.3 * len(title) > width - 8 else ""
    above = f'<text x="4" y="-6" font-family="DejaVu Sans, sans-serif" font-size="9" fill="{INK}"{squeezed}>'
    tag = re.sub(r'viewBox="[^"]*"', box, tag)
    return f"{tag}>\n{ground}\n{above}{escape(title)}</text>{drawn}"


def in_short(value: float) -> str:
    """A number with about three significant digits: 0.12, 4.56, 78.9, 1,234."""
    if 0 < value < 0.01:
        return "<0.01"
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


# --- drawing -------------------------------------------------------------------------------------


def _figure(height: float, columns: int = 1) -> tuple[Any, list[Any]]:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    style: dict[Any, Any] = {
        "font.size": 9, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": MUTED, "xtick.color": MUTED,
        "ytick.color": MUTED, "xtick.labelcolor": INK, "ytick.labelcolor": INK, "grid.color": LINE,
        "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    }  # fmt: skip
    with rc_context(style):
        figure = Figure(figsize=(WIDTH, max(height, 1.1)), layout="constrained")
        axes = figure.subplots(1, columns, squeeze=False)[0]
    return figure, list(axes)


def folded(label: str, width: int = 20) -> str:
    """A long spec broken into several lines after a + or a colon, so that enough space is left for the chart."""
    lines = [""]
    for part in re.findall(r"[^+: ]*[+: ]?", label):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def apart(dims: Sequence[int]) -> list[int]:
    """The numbers whose labels do not overlap on a logarithmic axis, starting from the largest."""
    kept = list(dims[-1:])
    for dim in reversed(dims[:-1]):
        if math.log(kept[-1] / dim) >= math.log(dims[-1] / dims[0]) / 10:
            kept.append(dim)
    return kept


def _height(labels: Sequence[str]) -> float:
    """The height of all rows, each as high as the row with the most lines."""
    return len(labels) * ROW * max(1.0, 0.65 * max(folded(label).count("\n") + 1 for label in labels))


def _write(axes: Any, text: str, x: float, y: float) -> None:
    """Writes a number to the right of a point."""
    axes.annotate(text, (x, y), xytext=(5, 0), textcoords="offset points", va="center", fontsize=8.5, color=INK)


def _rows(axes: Any, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), [folded(label) for label in labels])
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _legend(figure: Any) -> None:
    """Draws the legend above the chart, in as many columns as fit with the longest label."""
    longest = max(len(label) for label in figure.axes[0].get_legend_handles_labels()[1])
    figure.legend(
        loc="outside upper left", ncols=min(max(60 // (longest + 5), 1), 3), frameon=False, fontsize=8.5,
        handletextpad=0.3, columnspacing=1.2, labelcolor=INK,
    )  # fmt: skip


def _svg(figure: Any, alt: str) -> str:
    """The chart without what a page does not need: sizes, ids of groups, metadata."""
    from matplotlib import rc_context

    text = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": alt}):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)
    svg = re.sub(r"\n\s*", "\n", svg)
    tag, rest = svg.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', tag)
    assert box is not None
    for colour, name in _VARIABLES.items():
        rest = rest.replace(colour, f"var(--{name})")
    head = f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {box[0]}'
    return f'{head} role="img" aria-label="{escape(alt)}">{rest}'
