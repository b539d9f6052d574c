"""Reads documents from JSON, CSV, TSV or Parquet files with an id and any text fields."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from clickbridge.frames import Frame, is_frame
from clickbridge.io.streams import open_stream
from clickbridge.log.clean import RecordError, clean_id
from clickbridge.log.column_names import nested_value
from clickbridge.log.described import described
from clickbridge.log.given import paths_given
from clickbridge.log.guesses import guessed_arguments
from clickbridge.log.plain_text import BREAK, field_text, without_html
from clickbridge.log.recognise import Layout, Reading, recognise_documents
from clickbridge.log.rejects import RejectLog
from clickbridge.log.source import open_source
from clickbridge.types import Document

LOGGER = logging.getLogger("clickbridge.log")


class DocumentReader:
    """Iterates over documents. `ignored` collects the fields whose values are not text, `with_html` counts documents
    from which HTML tags were removed, and `layouts` tells how each file was read."""

    def __init__(
        self,
        paths: tuple[str, ...],
        reading: Reading | None = None,
        rejects: RejectLog | None = None,
        id_name: Callable[[], str | None] | None = None,
    ) -> None:
        self.paths = paths
        self.reading = reading or Reading()
        self.rejects = rejects if rejects is not None else RejectLog()
        self.ignored: set[str] = set()
        self.with_html = 0
        self.layouts: dict[str, Layout] = {}
        self._id_name = id_name

    def __repr__(self) -> str:
        return described(type(self).__name__, self.paths, self.layouts, self.rejects.count)

    def __iter__(self) -> Iterator[Document]:
        self.with_html = 0
        try:
            for path in self.paths:
                with open_stream(path) as stream:
                    known = list(self.reading.columns.values())
                    source = open_source(path, stream, self.reading.encoding, self.reading.delimiter, known)
                    layout = recognise_documents(source, self.reading, self._id_name() if self._id_name else None)
                    self.know(path, layout)
                    for number, record in source.records(self.rejects):
                        try:
                            yield self._clean(record, layout.renamed)
                        except RecordError as error:
                            self.rejects.add(path, number, str(error))
        finally:
            self.rejects.end_file()
        self.rejects.close()

    def know(self, path: str, layout: Layout) -> None:
        """Stores how a file is read, and reports what was guessed."""
        if path not in self.layouts:
            self.layouts[path] = layout
            if line := guessed_arguments(layout):
                LOGGER.info(line)

    def _clean(self, record: Any, columns: Mapping[str, str]) -> Document:
        if type(record) is not dict:
            raise RecordError("a line must be a JSON object")
        if columns:
            theirs = set(columns.values())
            kept = {name: value for name, value in record.items() if name not in theirs and name not in columns}
            record = {ours: nested_value(record, name) for ours, name in columns.items()} | kept
        fields: dict[str, str] = {}
        had_html = False
        for name, value in record.items():
            if name == "doc_id" or value is None:
                continue
            text, field = field_text(name, value), name.lower()
            # A name that folds to nothing, or to the id's, cannot be a column of its own.
            if text is None or field in ("", "doc_id"):
                self.ignored.add(name or "(a field without a name)")
                continue
            plain = without_html(text)
            had_html |= plain != text
            if plain:
                fields[field] = fields[field] + BREAK + plain if field in fields else plain
        self.with_html += had_html
        return Document(clean_id(record.get("doc_id"), "doc_id"), fields)


def read_docs(
    *paths: str | Path | Frame,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    rejects: RejectLog | None = None,
    id_name: Callable[[], str | None] | None = None,
) -> DocumentReader:
    """Reads documents from one or more files, as a stream, or from one data frame.

    A document has a `doc_id` and any number of text fields. HTML tags are removed.

    Parameters
    ----------
    *paths : str, Path or data frame
        JSON, CSV, TSV or Parquet files, plain or compressed, or one data frame.
    columns : mapping of str to str, optional
        The file's column for each of our names, such as `{"doc_id": "SKU", "title": "Product Name"}`. Common names for
        an id and a title are recognised.
    encoding, delimiter : str, optional
        The encoding and the delimiter of text files. Guessed by default.
    rejects : RejectLog, optional
        Counts lines that cannot be used, and refuses the file if there are too many.
    id_name : function, optional
        Returns the name of the id column in the log, which documents may use, too.

    Returns
    -------
    DocumentReader
        It can be iterated over any number of times. Pass it to `ClickGraph.build`.

    Examples
    --------
    >>> from clickbridge import read_docs
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     print("SKU,Product Name", "d2,<b>Pizza</b> by the slice", sep="\\n", file=file, flush=True)
    ...     [document.fields["title"] for document in read_docs(file.name)]
    ['Pizza by the slice']
    """
    reading = Reading(columns=dict(columns or {}), encoding=encoding, delimiter=delimiter)
    if len(paths) == 1 and is_frame(paths[0]):
        from clickbridge.log.frames import DocumentFrame

        return DocumentFrame(paths[0], reading, rejects, id_name)
    return DocumentReader(paths_given(paths), reading, rejects, id_name)
