"""Logs that are indexes of a search engine: pulled to files first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from clickbridge.cli.console import say
from clickbridge.wording import count_of

Pulled = Annotated[
    Path | None, typer.Option(help="Folder for the records of logs given as https://HOST/INDEX; OUT.pulled by default.")
]


def local_logs(logs: Sequence[str], folder: Path) -> list[str]:
    """The logs as files: an index is pulled into the folder, on from where an earlier pull stopped."""
    from clickbridge.log.pull import hidden, pull

    out = []
    for log in logs:
        if not re.match(r"https?://", log):
            out.append(log)
            continue
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = re.sub(r"[^\w.-]+", "_", re.sub(r"^https?://(?:[^@/]*@)?", "", log)).strip("_")
        file = folder / f"{name}.ndjson"
        say(f"{count_of(pull(log, file), 'record')} pulled from {hidden(log)} to {file}")
        out.append(str(file))
    return out
