"""Checkpoints: the intermediate results of a long fit, so that a fit that was killed can continue.

A checkpoint is an artifact: it is written to a temporary folder and put in place in one step, so if the process is
killed, the checkpoint before it is still complete. Its name is a digest of everything that the work depends on. The
same work, started again, finds it. Other work, with a changed log or another setting, starts from the beginning and
does not touch it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import orjson
from scipy import sparse

from clickbridge.errors import ArtifactError, SettingError
from clickbridge.io.artifact import ArtifactWriter, open_artifact
from clickbridge.io.manifest import MANIFEST
from clickbridge.io.values import read_value, write_value

KIND = "checkpoint"
OWN_NAME = re.compile(r"\.?([0-9a-f]{32})(\.lock|\.new-[0-9a-f]{16})?")
ALGORITHMS = 2
"""Part of every digest: raised when a step of the same work gives other numbers than before."""


@dataclass(frozen=True)
class Checkpoints:
    """A folder of checkpoints. A model with several parts has one for each of its computations. A folder that cannot be
    written is refused at once, not after the first step."""

    folder: Path
    _own: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    """Names of those that were asked for. Others in the folder are those of other fits, which may be running."""

    def __post_init__(self) -> None:
        _check_writable(self.folder)

    def of(self, *work: Any) -> Checkpoint:
        """The checkpoint of a computation, given everything that it depends on: arrays, sparse matrices and plain
        values."""
        name = _digest((ALGORITHMS, *work))
        self._own.add(name)
        return Checkpoint(self.folder / name)

    def clear(self) -> None:
        """Removes all checkpoints that were asked for, including incomplete ones of a killed writer, and the folder if
        nothing else is in it."""
        if not self.folder.is_dir():
            return
        for path in list(self.folder.iterdir()):
            found = OWN_NAME.fullmatch(path.name)
            if found is None or found[1] not in self._own:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        with suppress(OSError):  # it is not empty
            self.folder.rmdir()


@dataclass(frozen=True)
class Checkpoint:
    path: Path

    def read(self) -> Any:
        """The last complete state; None if there is none. Arrays are memory-mapped, and stay valid when the files are
        replaced or removed."""
        if not (self.path / MANIFEST).is_file():
            return None
        try:
            artifact = open_artifact(self.path, KIND)
            return read_value(artifact, artifact.manifest["state"])
        except ArtifactError as error:
            again = f"the checkpoint {self.path} cannot be read: remove it, and learning starts from the beginning"
            raise ArtifactError(again) from error

    def write(self, state: Any) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)  # another fit that is done may have removed it, empty
        with ArtifactWriter(self.path, KIND) as writer:
            writer.commit(state=write_value(writer, "state", state))


def _check_writable(folder: Path) -> None:
    """Leaves nothing behind: the folder itself, and those above it, are made when there is something to keep."""
    there = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
    if there == folder and not os.path.isdir(there):
        raise SettingError(f"--checkpoint is a folder; {folder} is not one: choose another folder")
    try:
        with TemporaryFile(dir=there):
            pass
    except OSError as error:
        why = "is a file" if os.path.isfile(there) else f"cannot be written ({error.strerror or error})"
        raise SettingError(
            f"--checkpoint needs a folder that can be written; got {folder}, and {there} {why}: choose another folder"
        ) from None


def _digest(work: tuple[Any, ...]) -> str:
    total = hashlib.sha256()
    for value in work:
        parts: tuple[Any, ...]
        if sparse.issparse(value):
            parts = (np.array(value.shape), value.indptr, value.indices, value.data)
        elif isinstance(value, np.ndarray):
            parts = (value,)
        else:
            total.update(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
            continue
        for part in parts:
            total.update(str((part.dtype, part.shape)).encode())
            total.update(np.ascontiguousarray(part).data)
    return total.hexdigest()[:32]
