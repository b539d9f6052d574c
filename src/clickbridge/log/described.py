"""What a reader shows of itself in an interpreter: its files, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clickbridge.log.recognise import Layout
from clickbridge.log.rejects import file_name
from clickbridge.wording import count_of


def described(kind: str, paths: Sequence[str], layouts: Mapping[str, Layout], left_out: int) -> str:
    """One line, for which nothing is read.

    >>> described("LogReader", ["log.csv"], {"log.csv": Layout("log.csv", "triples", {"query": "q"})}, 0)
    'LogReader(log.csv: triples, query=q)'
    """
    files = [file_name(path) for path in paths or layouts]
    names = ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
    first = next(iter(layouts.values()), None)
    if first is None:
        return f"{kind}({names}: not read yet)"
    columns = [f"{ours}={theirs}" for ours, theirs in first.columns.items()]
    lost = [f"{count_of(left_out, 'record')} left out"] if left_out else []
    return f"{kind}({names}: {', '.join([first.format, *columns, *lost])})"
