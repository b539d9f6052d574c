"""Durable learning: a snapshot of the state and a journal of the events since.

    STATE/snapshot/     an artifact: the state after event n, and which projection it belongs to
    STATE/events.jsonl  one event per line, with its number and checksum, on disk before it is learned
    STATE/lock          held by the one process that writes

Opening reads the snapshot and learns the later events, which gives exactly the same state, to the last bit. `compact`
writes a new snapshot, then empties the journal. If the process is killed in between, the events that are already in
the snapshot are skipped.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from clickbridge.errors import ArtifactError
from clickbridge.io.artifact import ArtifactWriter, open_artifact
from clickbridge.io.values import read_value, write_value
from clickbridge.online.entry import Entry
from clickbridge.online.entry_file import EntryFile
from clickbridge.online.fitted_online import FittedOnline
from clickbridge.online.learner import Learner
from clickbridge.online.online import Online
from clickbridge.online.state import State
from clickbridge.online.takes_clicks import TakesClicks

KIND = "online-state"


class Journal(TakesClicks):
    """Keeps what an online model learns on disk: `with Journal("state/", model) as journal: journal.learn(page)`.

    A new journal starts from the state of the model. When an existing journal is opened, its state replaces that of the
    model, and every acknowledged event is learned again. While the journal is open, `model.learn` and the like write to
    it, too.

    Parameters
    ----------
    folder : str or Path
        The folder of the journal. It is created if it does not exist. Only one process may have it open.
    model : Online
        The fitted online model.

    Examples
    --------
    >>> from clickbridge import Journal
    >>> import tempfile
    >>> from clickbridge import Impression, build_model, example_graph
    >>> model = build_model("online:given").fit(example_graph())
    >>> with tempfile.TemporaryDirectory() as folder, Journal(f"{folder}/state", model) as journal:
    ...     _ = journal.learn(Impression("ny pizza", ["slice", "oven"], ["oven"]))
    """

    def __init__(self, folder: str | Path, model: Online) -> None:
        self.folder, self.model = Path(folder), model
        self._learner: Learner | None = None
        self._file: EntryFile | None = None
        self._lock = -1

    # --- opening ---------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if self.model.journaled:
            raise ArtifactError(f"the model learns into another journal: close that one before {self.folder} is opened")
        self.folder.mkdir(exist_ok=True)
        self._acquire()
        try:
            self._open()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        learner = self.learner
        with learner.paused() as fitted:
            self._close()
        self.model.adopt(fitted)

    def _open(self) -> None:
        snapshot = (self.folder / "snapshot").exists()
        fitted = self._restored(self.model.fitted) if snapshot else self.model.fitted
        self._file = EntryFile(self.folder / "events.jsonl")
        self._learner = learner = Learner(fitted, self._file)
        before = learner.events
        for number, entry in self._file.entries():
            if not snapshot:
                raise ArtifactError(f"{self.folder} has events and no snapshot: restore it, or start a new folder")
            if number > learner.events + 1:
                raise ArtifactError(f"{self._file.path}: event {learner.events + 1} is missing: restore the file")
            learner.replay(number, entry)
        if not snapshot:
            self._snapshot()
        elif len(self._file) and learner.events == before:
            # All of them are in the snapshot: a compaction was interrupted.
            self._file.empty()
        self.model.adopt(learner)

    def _acquire(self) -> None:
        self._lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise ArtifactError(f"another process learns into {self.folder}: stop it, or use another folder") from None

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = self._learner = None
        os.close(self._lock)

    def _restored(self, fitted: FittedOnline) -> FittedOnline:
        artifact = open_artifact(self.folder / "snapshot", KIND)
        mine, theirs = fitted.projection.id, str(artifact.manifest.get("projection"))
        if theirs != mine:
            raise ArtifactError(
                f"{self.folder} was learned on projection {theirs[:12]}, the model has {mine[:12]}: "
                "open it with the model it came from, or start a new folder"
            )
        for name, value in _rules(fitted).items():
            found = artifact.manifest.get("rules", {}).get(name)
            if found != value:
                raise ArtifactError(
                    f"{self.folder} was learned with {name} {found}, the model has {value}: "
                    "open it with the model it came from, or start a new folder"
                )
        state: State = read_value(artifact, artifact.manifest.get("state"))
        try:
            state.check(fitted.projection)
        except ValueError as error:
            raise ArtifactError(f"{self.folder} holds {error}: restore it, or start a new folder") from None
        return fitted.with_state(state)

    # --- events ----------------------------------------------------------------------------------

    @property
    def learner(self) -> Learner:
        """The learner of the open journal."""
        if self._learner is None:
            raise ArtifactError(f"the journal of {self.folder} is closed: open it with `with`")
        return self._learner

    def kept(self) -> Iterator[tuple[int, Entry]]:
        """The events since the last compaction, with their numbers.

        Returns
        -------
        iterator of (int, Entry)
            Each event with its number, oldest first.
        """
        return iter(()) if self._file is None else self._file.kept()

    # --- compaction ------------------------------------------------------------------------------

    def compact(self) -> None:
        """Moves all events into the snapshot and empties the journal. Compacted events can no longer be undone."""
        with self.learner.paused():
            self._snapshot()
            assert self._file is not None
            self._file.empty()

    def _snapshot(self) -> None:
        fitted = self.learner.fitted
        with ArtifactWriter(self.folder / "snapshot", KIND) as writer:
            tree = write_value(writer, "state", fitted.state)
            writer.commit(projection=fitted.projection.id, rules=_rules(fitted), events=fitted.state.events, state=tree)


def _rules(fitted: FittedOnline) -> dict[str, Any]:
    """The settings that must be the same for the same events to give the same state."""
    rules = fitted.rules
    return {
        "kappa": rules.kappa,
        "list_length": rules.list_length,
        "pairs": rules.pairs,
        "users": fitted.secret.id if fitted.settings.per_user else False,
        "rates": hashlib.sha256(np.ascontiguousarray(rules.rates).tobytes()).hexdigest()[:12],
    }
