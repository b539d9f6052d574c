"""Puts the papers' claims at the head of docs/reproduction.md, and its runs with their times at the end, from what
each run wrote under docs/reproduction.

    python docs/make_reproduction.py

No figure of those tables is written by hand: a test compares the page with what this makes.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "reproduction.md"
MARKS = {
    "claims": ("<!-- claims: made by docs/make_reproduction.py -->", "<!-- end of claims -->"),
    "runs": ("<!-- runs: made by docs/make_reproduction.py -->", "<!-- end of runs -->"),
}
MADE, TIME = re.compile(r"Made by `(.+?)`"), re.compile(r"(\d+) tables in (\d+) s of processor time, on (.+)\.")
PAPERS = {
    "13": "13, bilinear matching (PLS, RMLS)",
    "12": "12, RMLS",
    "11M": "11M, several views (M-PLS)",
    "11R": "11R, Robust BM25",
    "09": "09, re-ranking by clicks",
}
WORDS = ("holds", "fails", "not significant")
RUNS = ("week", "week-11", "msrd", "tenth", "tenth-11", "small", "quick")
"""Folders of docs/reproduction, the largest data first: the first that has a claim on a kind of data counts."""


class Row(NamedTuple):
    claim: str
    run: str
    data: str
    printed: str
    figures: str
    ours: str
    ours_figures: str

    @property
    def kind(self) -> str:
        """The data without what a run did with it, as `one-week, 300 against 100`."""
        return self.data.partition(",")[0]

    @property
    def paper(self) -> str:
        return self.claim.split()[0]


def rows() -> Iterator[Row]:
    """Every claim on every kind of data, by the largest run that has it; those of one claim together."""
    found: dict[str, dict[str, Row]] = {}
    for run in RUNS:
        path = DOCS / "reproduction" / run / "claims.csv"
        if not path.is_file():
            continue
        with path.open(newline="", encoding="utf8") as file:
            _, *lines = csv.reader(file)
        for claim, *cells in lines:
            row = Row(claim, run, *cells)
            found.setdefault(claim, {}).setdefault(row.kind, row)
    for own in found.values():
        yield from own.values()


def claims() -> str:
    """Counts, then the claims of each paper."""
    every = list(rows())
    lines = ["| verdicts | " + " | ".join(WORDS) + " |", "|---|" + "---:|" * len(WORDS)]
    for name, column in (("as printed", "printed"), ("ours", "ours")):
        counts = Counter(getattr(row, column) for row in every)
        lines.append(f"| {name} | " + " | ".join(str(counts[word]) for word in WORDS) + " |")
    for paper, title in PAPERS.items():
        own = [row for row in every if row.paper == paper]
        if own:
            lines += ["", f"### {title}", "", "| claim | data | as printed | ours |", "|---|---|---|---|"]
            lines += [_line(row) for row in own]
    return "\n".join(lines)


def _line(row: Row) -> str:
    data = f"{row.data} ([{row.run}](reproduction/{row.run}/tables.md))"
    cells = (row.claim.split(" ", 1)[1], data, _verdict(row.printed, row.figures), _verdict(row.ours, row.ours_figures))
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


def _verdict(word: str, figures: str) -> str:
    return f"**{word}**: {figures}" if word in WORDS else word


def runs() -> str:
    """Each run with its command, how many tables it made and how long that took."""
    lines = ["| run | command | tables | processor time, s | on |", "|---|---|---:|---:|---|"]
    for run in RUNS:
        path = DOCS / "reproduction" / run / "tables.md"
        if path.is_file():
            text = path.read_text(encoding="utf8")
            made, took = MADE.search(text), TIME.search(text)
            if made is None or took is None:
                raise SystemExit(f"{path} does not say how it was made, or how long it took: run reproduce again")
            n, seconds, where = took.groups()
            lines.append(f"| [{run}](reproduction/{run}/tables.md) | `{made[1]}` | {n} | {int(seconds):,} | {where} |")
    return "\n".join(lines)


def page(text: str) -> str:
    """The page with claims and runs, each between its two marks."""
    for name, make in (("claims", claims), ("runs", runs)):
        begin, end = MARKS[name]
        head, _, rest = text.partition(begin)
        text = f"{head}{begin}\n\n{make()}\n\n{end}{rest.partition(end)[2]}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf8")), encoding="utf8")
