"""Artifacts changed by one who knows how: every checksum is made anew."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from clickbridge.io.manifest import SEAL, SEALED_SINCE, packed, sealed


def manifest_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "manifest.json").read_text()))


def changed(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Edits the manifest in place. One of a format that had no checksum gets none."""
    manifest = manifest_of(folder)
    change(manifest)
    old = int(manifest["format"]) < SEALED_SINCE
    plain = {name: value for name, value in manifest.items() if name != SEAL}
    (folder / "manifest.json").write_bytes(packed(plain if old else sealed(manifest)))


def replaced(folder: Path, name: str, values: Any, part: str | None = None) -> None:
    """Another array in place of one."""
    home = folder if part is None else folder / "parts" / part

    def change(manifest: dict[str, Any]) -> None:
        entry = (manifest if part is None else manifest["parts"][part])["files"][name + ".npy"]
        np.save(home / entry["file"], values)
        data = (home / entry["file"]).read_bytes()
        entry |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}

    changed(folder, change)


def identity(place: Path) -> tuple[int, ...]:
    """What makes it the same entry; not the time it was last read, which a look at a link may move."""
    stat = place.lstat()
    return stat.st_mode, stat.st_ino, stat.st_nlink, stat.st_size, stat.st_mtime_ns
