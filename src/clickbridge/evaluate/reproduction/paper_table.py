"""A table in a paper's layout: our figures next to the published ones, and how well the two orders agree."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from scipy.stats import kendalltau

Cell = float | int | str | None


@dataclass(frozen=True)
class TableRow:
    """`ours` and `paper` have a cell for each column. A text in `ours` is the reason why there is no figure."""

    label: str
    ours: tuple[Cell, ...]
    paper: tuple[Cell, ...] = ()


@dataclass(frozen=True)
class Table:
    """`key` is paper and number, such as 13-2. `stacked` puts the published figures below ours instead of beside."""

    key: str
    title: str
    data: str
    columns: tuple[str, ...]
    rows: list[TableRow]
    notes: list[str] = field(default_factory=list)
    stacked: bool = False
    svg: str | None = None
    """A chart, if the paper has a figure."""

    @property
    def paper(self) -> str:
        return self.key.split("-")[0]

    @property
    def n_paper(self) -> int:
        """The number of columns that the paper has, too. They come first."""
        return max((len(row.paper) for row in self.rows), default=0)

    def header(self) -> list[str]:
        beside = [] if self.stacked else [f"{self.paper}: {name}" for name in self.columns[: self.n_paper]]
        return ["", *self.columns, *beside]

    def cells(self) -> list[list[Cell]]:
        """The cells in the order in which they are printed."""
        out: list[list[Cell]] = []
        for row in self.rows:
            ours, paper = (list(side) + [None] * (len(self.columns) - len(side)) for side in (row.ours, row.paper))
            if self.stacked:
                out.append([row.label, *ours])
                if row.paper:
                    out.append([f"  {self.paper}: {row.label}", *paper])
            else:
                out.append([row.label, *ours, *paper[: self.n_paper]])
        return out

    def agreement(self, column: int, leave_out: Collection[str] = ()) -> tuple[float, int] | None:
        """Kendall's tau between our order of the rows and the paper's in one column, and the number of rows; None if
        there are too few rows, or if all values are equal here."""
        pairs = [(row.ours[column], row.paper[column]) for row in self.rows
                 if len(row.ours) > column and len(row.paper) > column and row.label not in leave_out]  # fmt: skip
        numbers = [(float(a), float(b)) for a, b in pairs if isinstance(a, int | float) and isinstance(b, int | float)]
        if len(numbers) < 3 or len({a for a, _ in numbers}) == 1:
            return None
        return float(kendalltau(*zip(*numbers, strict=True)).statistic), len(numbers)

    def agreement_note(self, column: int, leave_out: Collection[str] = ()) -> str:
        found = self.agreement(column, leave_out)
        if found is None:
            return f"too few models that differ here to compare the order with {self.paper}"
        tau, n = found
        same = round((tau + 1) / 2 * n * (n - 1) / 2)
        return (
            f"order by {self.columns[column]} against {self.paper}: Kendall tau {tau:.2f} over {n} models "
            f"(about {same} of {n * (n - 1) // 2} pairs agree)"
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "table": self.key, "title": self.title, "data": self.data, "columns": list(self.columns),
            "rows": [{"model": r.label, "ours": list(r.ours), "paper": list(r.paper) or None} for r in self.rows],
            "notes": self.notes,
        }  # fmt: skip


def missing(reason: str, columns: Sequence[str]) -> tuple[Cell, ...]:
    return (reason, *([None] * (len(columns) - 1)))
