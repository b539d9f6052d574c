"""The file of events: what was acknowledged is there, what was not is not, and damage is never passed over."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clickbridge.errors import ArtifactError
from clickbridge.online.entry import Entry
from clickbridge.online.entry_file import EntryFile

ENTRIES = [(n, Entry(kind="page", query=f"J*j{n}", results=("a", "b" * n), clicks=("a",))) for n in range(41, 45)]


OPEN: list[EntryFile] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def opened(path: Path) -> tuple[EntryFile, list[tuple[int, Entry]]]:
    OPEN.append(EntryFile(path))
    return OPEN[-1], list(OPEN[-1].entries())


def written(path: Path, entries: list[tuple[int, Entry]] = ENTRIES) -> EntryFile:
    file, _ = opened(path)
    for pair in entries:
        file.write([pair])
    return file


def test_written_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "events"
    file = written(path, ENTRIES[:2])
    file.write(ENTRIES[2:])
    assert len(file) == 4
    again, found = opened(path)
    assert found == ENTRIES
    for f in (file, again):
        assert [f.entry(n) for n in (40, 41, 44, 45)] == [None, ENTRIES[0][1], ENTRIES[3][1], None]
        f.close()
    with pytest.raises(ArtifactError, match="is closed: open it with"):
        file.write(ENTRIES[:1])


def test_emptied_it_starts_anew(tmp_path: Path) -> None:
    file = written(tmp_path / "events", ENTRIES[:2])
    file.empty()
    assert file.entry(41) is None
    file.write(ENTRIES[2:])
    assert file.entry(43) == ENTRIES[2][1]
    assert opened(tmp_path / "events")[1] == ENTRIES[2:]


def test_cut_anywhere_in_the_last_line_the_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "events"
    written(path).close()
    whole = path.read_bytes()
    last = len(whole.splitlines(keepends=True)[-1])
    for cut in range(1, last + 1):
        path.write_bytes(whole[:-cut])
        file, found = opened(path)
        assert found == ENTRIES[:-1]
        assert path.stat().st_size == len(whole) - last
        file.write(ENTRIES[-1:])
        file.close()
        assert path.read_bytes() == whole


def test_any_flipped_bit_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "events"
    written(path).close()
    whole = path.read_bytes()
    first_of_last = len(whole) - len(whole.splitlines(keepends=True)[-1])
    for place in [*range(first_of_last - 2, len(whole)), 0, 40]:
        for bit in range(8):
            changed = bytearray(whole)
            changed[place] ^= 1 << bit
            path.write_bytes(changed)
            with pytest.raises(ArtifactError, match="is damaged at byte"):
                opened(path)
            assert path.read_bytes() == bytes(changed), "damage is left for someone to look at"


def test_a_line_that_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "events"
    written(path).close()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[2])
    with pytest.raises(ArtifactError, match="event 42 is missing: restore the file"):
        opened(path)


class Failing:
    """Stands before a call and fails some of the times."""

    def __init__(self, inner: Any, times: set[int], leave: int = -1) -> None:
        self.inner, self.times, self.leave, self.calls = inner, times, leave, 0

    def __call__(self, *arguments: Any) -> Any:
        self.calls += 1
        if self.calls in self.times:
            if self.leave >= 0:
                self.inner(arguments[0][: self.leave])
            raise OSError(28, "No space left on device")
        return self.inner(*arguments)


class Wrapped:
    """A file whose `write` is another one's."""

    def __init__(self, file: Any, write: Any) -> None:
        self._file, self.write = file, write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@pytest.mark.parametrize("what", ["fsync", "write", "short write"])
@pytest.mark.parametrize("uncut", [False, True], ids=["cut", "cut later"])
def test_a_failed_write_leaves_nothing(what: str, uncut: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events"
    file = written(path, ENTRIES[:1])
    good = path.read_bytes()
    with monkeypatch.context() as patch:
        if what == "fsync":
            patch.setattr(os, "fsync", Failing(os.fsync, {1}))
        else:
            broken: Any = Wrapped(file._file, Failing(file._file.write, {1}, 0 if what == "write" else 30))
            patch.setattr(file, "_file", broken)
        if uncut:
            patch.setattr(os, "ftruncate", Failing(os.ftruncate, {1}))
        with pytest.raises(OSError, match="No space left"):
            file.write(ENTRIES[1:3])
        if not uncut:
            assert path.read_bytes() == good
    assert file.entry(42) is None
    other = (42, Entry(kind="forget"))
    file.write([other])
    assert opened(path)[1] == [ENTRIES[0], other]


def test_while_it_cannot_be_cut_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events"
    file = written(path, ENTRIES[:1])
    monkeypatch.setattr(os, "fsync", Failing(os.fsync, {1}))
    monkeypatch.setattr(os, "ftruncate", Failing(os.ftruncate, {1, 2}))
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            file.write(ENTRIES[1:2])
    file.write(ENTRIES[1:2])
    assert opened(path)[1] == ENTRIES[:2]


def test_a_write_in_several_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path / "events", [])
    inner: Any = file._file
    pieces: Any = Wrapped(inner, lambda data: inner.write(data[:7]))
    monkeypatch.setattr(file, "_file", pieces)
    file.write(ENTRIES)
    assert opened(tmp_path / "events")[1] == ENTRIES
