"""Reads TREC session track XML: queries, shown results with title, url and snippet, clicks by rank.

The file also contains the documents. Its times have no date and are not used; a session is used as the user.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO
from xml.etree import ElementTree

from clickbridge.errors import InputError
from clickbridge.io.streams import MAX_LINE
from clickbridge.log.clean import RecordError, clean_id, normalise_query
from clickbridge.types import Document, Impression

MOST_ELEMENTS = 1_000_000


def read_trec_session(path: str, stream: BinaryIO) -> Iterator[Impression | Document]:
    try:
        source = _Counted(path, stream)
        events = ElementTree.iterparse(source, events=("start", "end"))
        _, root = next(events)
        for event, element in events:
            source.elements += event == "start"
            if event == "end" and element.tag == "session":
                yield from _session(path, element)
                root.clear()
                source.bytes = source.elements = 0
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # the last two: an unknown encoding
        raise InputError(f"{path} is not valid XML ({error}): fetch or write it again") from None


class _Counted:
    """The input of the parser, with a limit: the parser keeps everything until a session ends."""

    def __init__(self, path: str, stream: BinaryIO) -> None:
        self._path, self._stream = path, stream
        self.bytes = self.elements = 0
        """Since the last session."""

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self.bytes += len(data)
        if self.bytes > MAX_LINE or self.elements > MOST_ELEMENTS:
            raise InputError(
                f"{self._path} has a session over {MAX_LINE >> 20} MiB or {MOST_ELEMENTS:,} elements: "
                "is it a TREC session file?"
            )
        return data


def _session(path: str, session: ElementTree.Element) -> Iterator[Impression | Document]:
    for interaction in session.iter("interaction"):
        query = normalise_query(interaction.findtext("query") or "")
        if not query:
            continue
        by_rank: dict[str, str] = {}
        for result in interaction.iter("result"):
            try:
                document = _document(result)
            except RecordError as error:
                number = session.get("num")
                raise InputError(f"{path}, session {number}: {error}: is it a TREC session file?") from None
            by_rank[result.get("rank") or ""] = document.doc_id
            yield document
        clicked = (by_rank.get((click.findtext("rank") or "").strip()) for click in interaction.iter("click"))
        yield Impression(
            query,
            list(dict.fromkeys(by_rank.values())),
            list(dict.fromkeys(doc_id for doc_id in clicked if doc_id)),
            user="session " + (session.get("num") or ""),
        )


def _document(result: ElementTree.Element) -> Document:
    """A document. Its id is that of the collection (`clueweb09id`, `clueweb12id`), or else the URL."""
    own = next((e.text for e in result if e.tag.startswith("clueweb") and e.text), None)
    doc_id = clean_id(own or result.findtext("url"), "the id of a result")
    texts = ((name, result.findtext(name)) for name in ("title", "url", "snippet"))
    return Document(doc_id, {name: text for name, text in texts if text})
