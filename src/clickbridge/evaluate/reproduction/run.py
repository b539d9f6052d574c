"""All tables that can be reproduced, by their keys. `reproduce` makes the ones asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence

from clickbridge.errors import SettingError
from clickbridge.evaluate.reproduction import claims, examples11r, paper09, paper11m, paper11r, paper13, rmls_runs
from clickbridge.evaluate.reproduction.lab import Lab
from clickbridge.evaluate.reproduction.paper_table import Table
from clickbridge.evaluate.reproduction.parts import Part, Parts

TABLES: dict[str, Callable[[Lab], Iterator[Table]]] = {
    "13-1": rmls_runs.table_1,
    "13-2": paper13.table_2,
    "13-3": paper13.table_3,
    "13-4": paper13.table_4,
    "13-5": paper13.table_5,
    "13-6": paper13.table_6,
    "13-7": paper13.table_7,
    "13-F2": rmls_runs.threads,
    "13-passes": rmls_runs.passes,
    "13-dims": rmls_runs.by_dimension,
    "13-steps": rmls_runs.by_steps,
    "13-response": rmls_runs.by_response,
    "13-pairs": rmls_runs.joachims_pairs,
    "12-2": paper13.table_2_of_12,
    "12-3": paper13.table_3_of_12,
    "11M-1": paper11m.table_1,
    "11M-2": paper11m.table_2,
    "11M-3": paper11m.table_3,
    "11M-4": paper11m.table_4,
    "11M-5": paper11m.table_5,
    "11M-6": paper11m.table_6,
    "11M-7": paper11m.table_7,
    "11M-F3": paper11m.figure_3,
    "11M-F4": paper11m.figure_4,
    "11M-F5": paper11m.figure_5,
    "11M-F6": paper11m.figure_6,
    "11M-F7": paper11m.figure_7,
    "11R-1": examples11r.table_1,
    "11R-2": examples11r.table_2,
    "11R-3": paper11r.table_3,
    "11R-n2": paper11r.footnote_2,
    "11R-4": examples11r.table_4,
    "11R-5": paper11r.table_5,
    "11R-lambda": paper11r.by_lambda,
    "11R-6": examples11r.tables_6_to_8,
    "09-ranks": paper09.ranks,
    "09-time": paper09.times,
}
FULL = {"fraction": 0.1, "dim": 1000}
QUICK = {"fraction": 0.01, "dim": 100}
"""The fraction of one week of web search, and the dimension of the latent spaces."""


def chosen(keys: Sequence[str]) -> list[str]:
    """The tables with these names. A paper such as 13 or 11M stands for all its tables; no name means all tables."""
    out: list[str] = []
    for key in keys or TABLES:
        found = [k for k in TABLES if k == key or k.split("-")[0] == key]
        if not found:
            raise SettingError(f"no table {key!r}; there are {', '.join(TABLES)}; 13 or 11M is all of a paper")
        out += [k for k in found if k not in out]
    return out


def reproduce(keys: Sequence[str], lab: Lab, parts: Parts | None = None) -> Iterator[Table]:
    """Makes the tables, then tests the papers' claims on them. Finished parts in `parts` are not made again."""
    parts = Parts() if parts is None else parts
    verdicts = []
    for key in chosen(keys):
        part = parts.read(key)
        if part is None:
            part = yield from _made(key, lab)
            parts.add(key, part)
        else:
            yield from part.tables
        verdicts += part.claims
    if verdicts:
        yield claims.table(verdicts)


def _made(key: str, lab: Lab) -> Generator[Table, None, Part]:
    """Yields each table as soon as it is finished; all of them with their claims at the end."""
    lab.progress(f"table {key}")
    start, tables = time.process_time(), []
    for table in TABLES[key](lab):
        tables.append(table)
        yield table
    return Part(tables, claims.judged(lab, key), time.process_time() - start)
