"""The options of reading logs and documents, which verbs share, and what they say about what was read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clickbridge.cli.console import out, pairs_of, say, visible
from clickbridge.errors import shown_names
from clickbridge.wording import agree, count_of

if TYPE_CHECKING:
    from clickbridge.graph.clickgraph import ClickGraph
    from clickbridge.log.documents import DocumentReader
    from clickbridge.log.readers import LogReader
    from clickbridge.log.rejects import RejectLog

Logs = Annotated[list[str], typer.Argument(help="Log files; - is standard input.", show_default=False)]
Docs = Annotated[list[str], typer.Option(help="Documents: JSON, CSV, TSV or Parquet with an id.")]
Format = Annotated[str, typer.Option(help="auto, sessions, triples, shown, events, trec-session, ubi, metarank, …")]
Columns = Annotated[list[str], typer.Option(help="The log's columns: ours=theirs, e.g. time=click_time.")]
DocColumns = Annotated[list[str], typer.Option(help="The documents' columns: doc_id=SKU,title=Product Name.")]
TimeUnit = Annotated[str | None, typer.Option(help="Unit of numeric times: s, ms, us, ns.")]
TimeFormat = Annotated[str | None, typer.Option(help="How times are written, e.g. %d.%m.%Y %H:%M.")]
Encoding = Annotated[str | None, typer.Option(help="Encoding of text files, e.g. latin-1 or utf-16.")]
Delimiter = Annotated[
    str | None, typer.Option(help="Character between columns: comma, semicolon, pipe, tab or another.")
]
Dedupe = Annotated[bool, typer.Option("--dedupe", help="Leave out records that repeat an earlier one.")]
MaxRejects = Annotated[str, typer.Option(help="Share of unusable lines above which nothing is written.")]
Rejects = Annotated[Path | None, typer.Option(help="Also keep the unusable lines here.")]
_PAIR = re.compile(r'((?:[^,"]|"(?:[^"]|"")*")+)(?:,|$)')


@dataclass(frozen=True, kw_only=True)
class LogReading:
    """The options of a verb that reads logs."""

    format: Format = "auto"
    columns: Columns = field(default_factory=list)
    time_unit: TimeUnit = None
    time_format: TimeFormat = None
    encoding: Encoding = None
    delimiter: Delimiter = None
    dedupe: Dedupe = False

    def log(self, paths: Sequence[str], rejects: RejectLog) -> LogReader:
        from clickbridge.log.readers import read_log

        return read_log(
            *paths, format=self.format, columns=renames(self.columns), time_unit=self.time_unit,
            time_format=self.time_format, encoding=self.encoding, delimiter=self.delimiter, dedupe=self.dedupe,
            rejects=rejects,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Reading(LogReading):
    """The options of a verb that reads logs and documents."""

    doc_columns: DocColumns = field(default_factory=list)

    def log_and_docs(
        self, logs: Sequence[str], docs: Sequence[str], rejects: RejectLog, rejected_docs: RejectLog
    ) -> tuple[LogReader, DocumentReader]:
        """Documents may go by the name that the log has for ids."""
        from clickbridge.log.documents import read_docs

        log = self.log(logs, rejects)
        return log, read_docs(
            *docs, columns=renames(self.doc_columns, "--doc-columns"), encoding=self.encoding,
            delimiter=self.delimiter, rejects=rejected_docs, id_name=lambda: log.id_name,
        )  # fmt: skip


def renames(columns: Sequence[str], option: str = "--columns") -> dict[str, str]:
    """`time=click_time,title="Name, long"`, repeatable."""
    words = [pair for text in columns for pair in _PAIR.findall(text)]
    found = pairs_of(words, f"{option} takes ours=theirs, such as time=click_time")
    return {ours: _unquoted(theirs) for ours, theirs in found.items()}


def _unquoted(name: str) -> str:
    if len(name) > 1 and name[0] == name[-1] == '"':
        return name[1:-1].replace('""', '"')
    return name[1:-1] if len(name) > 1 and name[0] == name[-1] == "'" else name


@contextmanager
def guesses_told(json: bool, *readers: LogReader | DocumentReader) -> Iterator[None]:
    """Says in one line what was guessed about the files and the options that say the same, once they are read or
    refused. The line is on standard output or, where that is JSON, on standard error. Another names the log's columns
    that are not used."""
    try:
        yield
    finally:
        if line := guessed_line(*readers):
            say(line) if json else out.print(visible(line))
        unused = dict.fromkeys(name for reader in readers for kept in reader.layouts.values() for name in kept.unused)
        if unused:
            say(f"not used: {shown_names([*unused])}")


def guessed_line(*readers: LogReader | DocumentReader) -> str:
    """What was guessed, as options; empty where nothing was."""
    from clickbridge.log.guesses import guessed_line as line_of

    return line_of(*(reader.layouts.values() for reader in readers))


def tell_about(graph: ClickGraph | None, log: LogReader, documents: DocumentReader, rejects: Path | str | None) -> None:
    """Lines about what is odd in what was read, with counts."""
    from clickbridge.graph.oddities import html_removed, oddities

    for note in log.notes:
        say(note)
    if log.repeated:
        left_out = f"an earlier one and {agree(log.repeated, 'were')} left out"
        counted = (
            f"the one before, with the same time, and {agree(log.repeated, 'count')} again: --dedupe leaves out repeats"
        )
        say(f"{count_of(log.repeated, 'record', 'repeat')} {left_out if log.reading.dedupe else counted}")
    if documents.ignored:
        say(f"fields that are not text were left out: {', '.join(sorted(documents.ignored))}")
    if documents.with_html:
        say(html_removed(documents.with_html))
    for lost, what in ((documents.rejects, "document"), (log.rejects, "line")):
        if lost.count:
            where = f": see {rejects}" if rejects else ""
            say(f"{count_of(lost.count, what, of=lost.lines)} left out ({lost.first[0].reason}, …){where}")
    if graph is not None:
        for line in oddities(graph):
            say(line)
