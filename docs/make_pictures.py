"""Draws the pictures of the explanations: `python docs/make_pictures.py`. Figures come from our own models and tables.

A test draws them again and compares the words and numbers in them with the files.
"""

from __future__ import annotations

import io
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from clickbridge import BM25, PLS, ClickGraph, Document, Impression
from clickbridge.evaluate.plots import INK, LINE, MUTED, SERIES
from clickbridge.views.text import Analyzer

DOCS = Path(__file__).parent
FOLDER = DOCS / "pictures"
BLUE, ORANGE, GREEN = SERIES[:3]
PAGES = {
    "slice": "Pizza by the slice",
    "oven": "Wood-fired pizza in Brooklyn",
    "hotels": "Hotels in New York City",
    "rooms": "Rooms in Manhattan",
}
CLICKS = [
    ("ny pizza", "slice", 6), ("ny pizza", "oven", 3), ("slice joint", "slice", 4), ("margherita", "oven", 4),
    ("margherita", "slice", 2), ("big apple stay", "hotels", 5), ("big apple stay", "rooms", 3),
    ("nyc hotel", "hotels", 4), ("manhattan rooms", "rooms", 4), ("where to sleep", "hotels", 3),
    ("where to sleep", "rooms", 4),
]  # fmt: skip
NEW = ("joint in the big apple", "sleep in manhattan")
"""Two queries that nobody typed."""


def small_graph() -> ClickGraph:
    log = [Impression(query, [page], [page]) for query, page, clicks in CLICKS for _ in range(clicks)]
    return ClickGraph.build(log, [Document(page, {"title": title}) for page, title in PAGES.items()])


def term_mismatch(axes: Axes) -> None:
    """Queries and documents: which share a word, and which were clicked."""
    words = Analyzer(stop_words="drop").terms
    queries = list(dict.fromkeys(query for query, _, _ in CLICKS))
    left = {query: 1 - i / (len(queries) - 1) for i, query in enumerate(queries)}
    right = {page: 0.9 - 0.8 * i / (len(PAGES) - 1) for i, page in enumerate(PAGES)}
    for query, page, clicks in CLICKS:
        axes.plot([0, 1], [left[query], right[page]], color=BLUE, linewidth=0.6 + 0.45 * clicks, alpha=0.55)
    for query in queries:
        for page, title in PAGES.items():
            if set(words(query)) & set(words(title)):
                axes.plot([0, 1], [left[query], right[page]], "--", color=INK, linewidth=1.4)
    for query, y in left.items():
        axes.text(-0.03, y, query, ha="right", va="center", fontsize=10)
    for page, y in right.items():
        axes.text(1.03, y, PAGES[page], ha="left", va="center", fontsize=10)
    axes.text(-0.03, 1.14, "typed", ha="right", color=MUTED)
    axes.text(1.03, 1.14, "pages", ha="left", color=MUTED)
    axes.plot([], [], color=BLUE, linewidth=3, alpha=0.55, label="clicked")
    axes.plot([], [], "--", color=INK, label="a word in common")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, -0.22), ncols=2, frameon=False)
    axes.set(xlim=(-0.75, 1.95), ylim=(-0.08, 1.2))
    axes.axis("off")


def words_and_meaning(axes: Axes) -> None:
    """How well each query fits each page: by words, and by what the clicks taught."""
    queries = [*dict.fromkeys(query for query, _, _ in CLICKS), *NEW]
    graph = small_graph()
    models = {
        "bm25: words in common": BM25(fields="title:1", stop_words="drop"),
        "pls: learned from the clicks": PLS(dim=4, fields="title:1", views="word", stop_words="drop"),
    }
    for number, (title, model) in enumerate(models.items()):
        model.fit(graph)
        scores = np.array([model.score(query, list(PAGES)) for query in queries])
        shades = np.clip(np.where(np.isfinite(scores), scores, 0) / np.nanmax(scores[np.isfinite(scores)]), 0, 1)
        left = number * (len(PAGES) + 0.6)
        axes.text(left + len(PAGES) / 2, -0.55, title, ha="center", fontsize=10)
        for i in range(len(queries)):
            for j in range(len(PAGES)):
                axes.add_patch(
                    Rectangle((left + j, i), 0.94, 0.9, facecolor=BLUE, alpha=0.06 + 0.94 * float(shades[i, j]))
                )
        for j, page in enumerate(PAGES.values()):
            axes.text(left + j + 0.45, len(queries) + 0.15, textwrap.fill(page, 11),
                      ha="center", va="top", fontsize=7.5, color=INK)  # fmt: skip
    for i, query in enumerate(queries):
        axes.text(-0.15, i + 0.45, query, ha="right", va="center", color=ORANGE if query in NEW else INK)
    axes.set(xlim=(-3.1, 2 * len(PAGES) + 0.7), ylim=(len(queries) + 1.7, -1))
    axes.axis("off")


def box(axes: Axes, x: float, y: float, width: float, text: str, colour: str = INK, height: float = 0.2) -> None:
    patch = FancyBboxPatch((x, y - height / 2), width, height, boxstyle="round,pad=0.01", facecolor="#ffffff",
                           edgecolor=colour, linewidth=1.4)  # fmt: skip
    axes.add_patch(patch)
    axes.text(x + width / 2, y, text, ha="center", va="center", fontsize=10, color=INK)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": MUTED, "shrinkA": 3, "shrinkB": 3})


def s_function(axes: Axes) -> None:
    """Two maps and a dot product."""
    for y, colour, side, mapped in ((0.78, BLUE, "query", "φ(q)"), (0.22, GREEN, "document", "ψ(d)")):
        box(axes, 0.0, y, 0.16, side, colour)
        box(axes, 0.26, y, 0.2, f"features of\nthe {side}", colour)
        box(axes, 0.56, y, 0.12, mapped, colour)
        arrow(axes, (0.16, y), (0.26, y))
        arrow(axes, (0.46, y), (0.56, y))
        arrow(axes, (0.68, y), (0.8, 0.5 + (0.05 if y > 0.5 else -0.05)))
    box(axes, 0.8, 0.5, 0.2, "score\nφ(q) · ψ(d)", ORANGE)
    axes.text(0.62, 0.035, "kept in the index", ha="center", fontsize=9, color=MUTED)
    axes.text(0.62, 0.965, "made when asked", ha="center", va="center", fontsize=9, color=MUTED)
    axes.set(xlim=(-0.02, 1.03), ylim=(-0.02, 1.02))
    axes.axis("off")


def hold_back(axes: Axes) -> None:
    """Fit on the rest, choose on what was held back, fit again on everything."""
    rows = (
        (0.78, "1  choose", ((0, 0.9, BLUE, "fit on these"), (0.9, 0.1, ORANGE, "judge"))),
        (0.36, "2  learn", ((0, 1.0, BLUE, "fit on everything, with what was chosen"),)),
    )
    for y, name, parts in rows:
        axes.text(-0.02, y, name, ha="right", va="center", fontsize=10)
        for start, width, colour, text in parts:
            axes.barh(y, width, 0.24, left=start, color=colour, alpha=0.8, edgecolor="#ffffff")
            axes.text(start + width / 2, y, text, ha="center", va="center", fontsize=9, color="#ffffff")
    axes.annotate("", (1, 0.08), (0, 0.08), arrowprops={"arrowstyle": "-|>", "color": MUTED})
    axes.text(0, 0.0, "first click of the log", fontsize=8.5, color=MUTED, va="top")
    axes.text(1, 0.0, "last", fontsize=8.5, color=MUTED, va="top", ha="right")
    axes.set(xlim=(-0.16, 1.02), ylim=(-0.1, 1))
    axes.axis("off")


def table_below(text: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading of the page of benchmarks."""
    page = text[text.index(heading) :]
    rows = page[page.index("\n|") :].strip().split("\n\n")[0].splitlines()
    return [[cell.strip(" *") for cell in row.strip("|").split("|")] for row in rows[2:]]


SHOWN = {
    "bm25": "bm25: words", "cos-click": "cos-click: memory", "pls": "pls: learned meaning", "bm25+pls": "bm25+pls",
    "bm25+pls+cos-click": "bm25+pls+cos-click",
}  # fmt: skip


def shop(axes: Axes) -> None:
    """Words, memory, learned meaning and their sum on a shop's later clicks; from the table of benchmarks.md."""
    rows = {row[0]: row[1:3] for row in table_below((DOCS / "benchmarks.md").read_text("utf8"), "### A shop")}
    for place, name in enumerate(SHOWN):
        for shift, cell, colour in zip((-0.19, 0.19), rows[name], (BLUE, ORANGE), strict=True):
            value = 0.0 if cell == "no score" else float(cell)
            axes.barh(place + shift, value, 0.36, color=colour, alpha=0.85)
            axes.text(value + 0.008, place + shift, cell, va="center", fontsize=9, color=INK)
    for colour, label in ((BLUE, "all later clicks"), (ORANGE, "queries never seen before")):
        axes.barh(0, 0, color=colour, label=label)
    axes.set_yticks(range(len(SHOWN)), list(SHOWN.values()))
    axes.invert_yaxis()
    axes.set(xlim=(0, 0.8), xlabel="MAP@5 of the clicked product, Best Buy search log")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.4, 1.15), ncols=2, frameon=False)


def drawn(draw: Callable[[Axes], None], width: float, height: float) -> str:
    """One picture as SVG: text as text, on white, the same each time."""
    style = {
        "svg.fonttype": "none", "svg.hashsalt": draw.__name__, "font.size": 9.5, "text.color": INK,
        "axes.labelcolor": INK, "axes.edgecolor": MUTED, "xtick.color": MUTED, "ytick.labelcolor": INK,
        "axes.spines.top": False, "axes.spines.right": False, "grid.color": LINE,
    }  # fmt: skip
    with rc_context(style):
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure.subplots())
        text = io.StringIO()
        figure.savefig(text, format="svg", facecolor="#ffffff", metadata={"Date": None})
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text.getvalue(), flags=re.DOTALL)
    return re.sub(r"\n\s*", "\n", svg[svg.index("<svg") :])


PICTURES: dict[str, tuple[Callable[[Axes], None], float, float]] = {
    "term-mismatch": (term_mismatch, 7.2, 3.3),
    "words-and-meaning": (words_and_meaning, 7.2, 3.6),
    "s-function": (s_function, 7.2, 2.4),
    "hold-back": (hold_back, 7.2, 1.8),
    "shop": (shop, 7.2, 3.2),
}


def main(folder: Path = FOLDER) -> None:
    folder.mkdir(exist_ok=True)
    for name, (draw, width, height) in PICTURES.items():
        (folder / f"{name}.svg").write_text(drawn(draw, width, height), encoding="utf8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
