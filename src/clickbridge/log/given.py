"""Checks what users pass as a log and as documents: records, not the path of a file, a frame or rows of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike

from clickbridge.errors import InputError, shown
from clickbridge.frames import is_frame
from clickbridge.types import Document, LogRecord


def paths_given(paths: Sequence[object]) -> tuple[str, ...]:
    """The paths of files as text; refuses what is none, such as a list of them."""
    for path in paths:
        if not isinstance(path, str | PathLike):
            remedy = ": write (*files)" if isinstance(path, list | tuple) else ""
            raise InputError(
                f"files are given by their paths, one by one, or as one data frame; got {shown(path)}{remedy}"
            )
    return tuple(map(str, paths))


def check_records(log: object, docs: object) -> None:
    """Refuses what is no list of records."""
    for name, given in (("log", log), ("docs", docs)):
        if isinstance(given, str | PathLike):
            raise InputError(f"{name} must be records, not a path: give read_{name}({str(given)!r})")
        if is_frame(given):
            build = "; ClickGraph.from_frame builds a GRAPH from frames"
            raise InputError(f"{name} must be records, not a {type(given).__name__}: give read_{name}(frame){build}")
        if not isinstance(given, Iterable) or isinstance(given, Mapping):
            raise InputError(f"{name} must be a list of records; got {shown(given)}")


def check_record(record: object) -> None:
    """Refuses what is not a record of a log."""
    if not isinstance(record, LogRecord):
        remedy = ": make one of each, as PairCount(**row)" if isinstance(record, Mapping) else ""
        raise InputError(f"a log holds Impression, PairCount and Document objects; got {shown(record)}{remedy}")


def checked_document(given: object) -> Document:
    """The same document; refuses what is none."""
    if isinstance(given, Document):
        return given
    remedy = ": make one of each, as Document(doc_id, fields)" if isinstance(given, Mapping) else ""
    raise InputError(f"docs are Document objects; got {shown(given)}{remedy}")
