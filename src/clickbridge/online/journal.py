"""Durable learning: a snapshot of the state and a journal of the events since.

    STATE/snapshot/     an artifact: the state after event n, and which projection it belongs to
    STATE/events.jsonl  one event a line, with its number and checksum, on disk before it is applied
    STATE/lock          held by the one process that writes

Opening reads the snapshot and applies the events after it, which gives the state bit for bit. `compact` writes a
new snapshot, then empties the journal; killed in between, the events that the snapshot holds are passed over.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import orjson

from clickbridge.errors import ArtifactError, InputError
from clickbridge.io.artifact import ArtifactWriter, open_artifact
from clickbridge.io.files import written_aside
from clickbridge.online.reranker import Online
from clickbridge.types import Impression

KIND = "online-state"
FIELDS = ("query", "query_id", "results", "clicks", "user", "time")


class Journal:
    """`with Journal("state/", model) as journal: journal.learn(page)`. The model's own state is replaced by the
    journal's; a new journal starts from the model's."""

    def __init__(self, folder: str | Path, model: Online) -> None:
        self.folder, self.model = Path(folder), model
        self._file: BinaryIO | None = None
        self._lock = -1

    # --- opening ---------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.folder.mkdir(exist_ok=True)
        self._acquire()
        try:
            if (self.folder / "snapshot").exists():
                self._restore()
            else:
                self._snapshot()
            self._replay()
            self._file = (self.folder / "events.jsonl").open("ab")
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._release()

    def _acquire(self) -> None:
        self._lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise ArtifactError(f"another process learns into {self.folder}: stop it, or use another folder") from None

    def _release(self) -> None:
        os.close(self._lock)

    def _restore(self) -> None:
        artifact = open_artifact(self.folder / "snapshot", KIND)
        mine = self.model.projection_.id
        theirs = str(artifact.manifest["projection"])
        if theirs != mine:
            raise ArtifactError(
                f"{self.folder} was learned on projection {theirs[:12]}, the model has {mine[:12]}: "
                "open it with the model it came from, or start a new folder"
            )
        self.model.restore_state(artifact)

    def _replay(self) -> None:
        path = self.folder / "events.jsonl"
        sound = 0
        for number, event, end in self._events():
            if number == self.model.state_.events + 1:
                self._apply(event)
            elif number > self.model.state_.events:
                raise ArtifactError(f"{path}: event {self.model.state_.events + 1} is missing: restore the file")
            sound = end
        if path.exists() and path.stat().st_size > sound:
            # The last line was being written when the process died: it was never acknowledged.
            os.truncate(path, sound)

    def _events(self) -> Iterator[tuple[int, dict[str, Any], int]]:
        """(number, event, where its line ends). A bad last line ends the journal; a bad line before is damage."""
        path = self.folder / "events.jsonl"
        if not path.exists():
            return
        end = 0
        with path.open("rb") as stream:
            lines = iter(stream)
            for line in lines:
                event = _read(line)
                if event is None:
                    if next(lines, None) is not None:
                        raise ArtifactError(f"{path} is damaged at byte {end}: restore it, or start a new folder")
                    return
                end += len(line)
                yield int(event["n"]), event, end

    # --- events ----------------------------------------------------------------------------------

    def learn(self, page: Impression, amount: float = 1.0) -> int:
        """Durable, then applied; returns the event's number, by which it can be undone."""
        event = {name: getattr(page, name) for name in FIELDS}
        return self._write({"event": "page", **event, "amount": amount})

    def undo(self, number: int) -> int:
        """Takes an event out again, as an event of its own."""
        undone = {event["of"] for _, event, _ in self._events() if event["event"] == "undo"}
        found = next((event for n, event, _ in self._events() if n == number and event["event"] == "page"), None)
        if found is None or number in undone:
            raise InputError(f"event {number} cannot be undone: it was undone, is no click, or was compacted")
        return self._write({**found, "event": "undo", "of": number})

    def _write(self, event: dict[str, Any]) -> int:
        if self._file is None:
            raise ArtifactError(f"the journal of {self.folder} is closed: open it with `with`")
        event["n"] = self.model.state_.events + 1
        self._file.write(_line(event))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._apply(event)
        return int(event["n"])

    def _apply(self, event: dict[str, Any]) -> None:
        page = Impression(**{name: event[name] for name in FIELDS})
        if event["event"] == "undo":
            self.model.unlearn(page, event["of"], event["amount"])
        else:
            self.model.learn(page, event["amount"])

    # --- compaction ------------------------------------------------------------------------------

    def compact(self) -> None:
        """All events into the snapshot; the journal starts empty. What is compacted can no longer be undone."""
        if self._file is None:
            raise ArtifactError(f"the journal of {self.folder} is closed: open it with `with`")
        self._snapshot()
        self._file.close()
        with written_aside(self.folder / "events.jsonl"):
            pass
        self._file = (self.folder / "events.jsonl").open("ab")

    def _snapshot(self) -> None:
        with ArtifactWriter(self.folder / "snapshot", KIND) as writer:
            self.model.write_state(writer)
            writer.commit(projection=self.model.projection_.id, events=self.model.state_.events)


def _line(event: dict[str, Any]) -> bytes:
    body = orjson.dumps(event)
    return b"%08x " % zlib.crc32(body) + body + b"\n"


def _read(line: bytes) -> dict[str, Any] | None:
    """The event of a line; None where the line is cut or its checksum is not its own."""
    mark, _, body = line.rstrip(b"\n").partition(b" ")
    if not line.endswith(b"\n") or mark != b"%08x" % zlib.crc32(body):
        return None
    event: dict[str, Any] = orjson.loads(body)
    return event
