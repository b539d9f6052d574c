"""All claims of the five papers that can be tested, in our words. For each: does it hold here, as printed and with our
changes, on which data, and by which figure and test?

A claim belongs to the table whose models it needs, and is tested together with that table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from clickbridge.evaluate.reproduction import claims_of_11, claims_of_13
from clickbridge.evaluate.reproduction.lab import Lab
from clickbridge.evaluate.reproduction.paper_table import Table, TableRow
from clickbridge.evaluate.reproduction.verdicts import ABSENT, NOT_TESTED, Verdict

Judged = Iterator[tuple[str, Verdict, Verdict]]
"""The data, the verdict for the model as printed, and the verdict for ours."""
COLUMNS = ("data", "as printed", "figures", "ours", "figures of ours")


class Claim(NamedTuple):
    table: str
    where: str
    words: str
    judge: Callable[[Lab], Judged]


CLAIMS: tuple[Claim, ...] = tuple(Claim(*found) for found in (*claims_of_13.CLAIMS, *claims_of_11.CLAIMS))


def judged(lab: Lab, key: str) -> list[TableRow]:
    """The claims that belong to a table, with their results on each data set."""
    rows = []
    for claim in (own for own in CLAIMS if own.table == key):
        lab.progress(f"claim: {claim.where}")
        for data, printed, ours in claim.judge(lab):
            if printed.word == ours.word == ABSENT:
                continue
            cells = (data, printed.word, printed.figures, *(ours if ours != NOT_TESTED else ("", "")))
            rows.append(TableRow(f"{claim.where}: {claim.words}", cells))
    return rows


def table(rows: list[TableRow]) -> Table:
    """Claims of all tables of a run, as one table."""
    notes = [
        "holds and fails need a difference at .05 by the test named; what has no test is a plain figure",
        "as printed: the paper's algorithm and features (as_printed), against baselines as printed; ours: defaults",
    ]
    about = "each row names its data; claims are in our words"
    return Table("claims", "Claims of the papers", about, COLUMNS, rows, notes)
