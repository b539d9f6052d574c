"""Converts text in any encoding to UTF-8 bytes, so that all later code needs only one encoding."""

from __future__ import annotations

import codecs
import io
from typing import Any, BinaryIO, cast

from clickbridge.errors import InputError, SettingError

CHUNK = 1 << 18
WESTERN = "cp1252"
"""Latin-1 as Windows writes it. Other encodings of one byte a character look the same: they must be named."""
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def check_encoding(name: str) -> str:
    """The encoding by its Python name."""
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise SettingError(f"--encoding names an encoding, such as utf-8, latin-1 or utf-16; got {name!r}") from None


def guess_encoding(head: bytes) -> str:
    """The encoding of a text by its first bytes: UTF-8, UTF-16 or cp1252.

    If most non-ASCII characters are valid UTF-8, the text is UTF-8, and its invalid lines become rejects later. A text
    in none of these encodings also counts as UTF-8: its lines are then refused, with the advice to name the encoding.
    """
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    if head.count(0) * 3 > len(head) > 3:
        return "utf-16-le" if head[1::2].count(0) > head[::2].count(0) else "utf-16-be"
    text = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(head)
    high = [char for char in text if char > "\x7f"]
    bad = sum("\udc80" <= char <= "\udcff" for char in high)
    return WESTERN if bad * 2 > len(high) and _is_western(head) else "utf-8"


def _is_western(head: bytes) -> bool:
    """Whether cp1252 gives readable text: letters, few of them non-ASCII, and no control characters."""
    try:
        text = head.decode(WESTERN)
    except UnicodeDecodeError:
        return False
    high = [char for char in text if char > "\x7f"]
    steering = any(char < " " and char not in "\t\r\n\f\v" for char in text)
    return not steering and len(high) * 3 <= len(text) and 2 * sum(char.isalpha() for char in high) >= len(high)


def recoded(stream: BinaryIO, encoding: str, path: str) -> BinaryIO:
    """The stream as UTF-8; the same object if it is UTF-8 already."""
    if encoding in ("utf-8", "utf-8-sig", "ascii"):
        return stream
    return cast(BinaryIO, io.BufferedReader(cast(Any, _Recoded(stream, encoding, path)), CHUNK))


class _Recoded(io.RawIOBase):
    """Decodes and encodes again as it is read."""

    def __init__(self, stream: BinaryIO, encoding: str, path: str) -> None:
        self._stream, self._encoding, self._path = stream, encoding, path
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._ready = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._ended:
            data = self._stream.read(CHUNK)
            self._ended = not data
            try:
                self._ready = self._decoder.decode(data, final=self._ended).encode("utf-8")
            except UnicodeError as error:
                raise InputError(f"{self._path} is not {self._encoding} ({error}): give another --encoding") from None
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size


class _Rewound(io.RawIOBase):
    """Bytes that were read already, then the rest of the stream."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._head:
            return cast(Any, self._rest).readinto(buffer) or 0
        data, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


def rewound(head: bytes, rest: BinaryIO) -> BinaryIO:
    """A stream that starts with `head` again."""
    return cast(BinaryIO, io.BufferedReader(cast(Any, _Rewound(head, rest)), CHUNK))
