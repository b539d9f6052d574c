"""Puts the papers' claims at the head of docs/reproduction.md, from the claims.csv of each run under docs/reproduction.

    python docs/make_reproduction.py

No figure of that table is written by hand: a test compares the page with what this makes.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "reproduction.md"
BEGIN, END = "<!-- claims: made by docs/make_reproduction.py -->", "<!-- end of claims -->"
PAPERS = {
    "13": "13, bilinear matching (PLS, RMLS)",
    "12": "12, RMLS",
    "11M": "11M, several views (M-PLS)",
    "11R": "11R, Robust BM25",
    "09": "09, re-ranking by clicks",
}
WORDS = ("holds", "fails", "not significant")
RUNS = ("week", "tenth", "real", "small-11", "small-13", "small-rest")
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


def table() -> str:
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


def page(text: str) -> str:
    """The page with the claims between its two marks."""
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{table()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf8")), encoding="utf8")
