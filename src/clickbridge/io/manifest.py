"""`manifest.json`: what an artifact is and which files it is made of, with a checksum of its own.

A manifest comes from outside and is believed only as far as it can be checked: a changed bit anywhere in it is refused,
and so is a file it names that is not a plain name inside of the folder.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import orjson

from clickbridge.errors import ArtifactError

FORMAT_VERSION = 3
"""1: hand-written arrays. 2: models are trees of values. 3: the manifest has a checksum."""
OLDEST = {"graph": 1}
"""The oldest format that is still read, by kind of artifact; of the others only the newest."""
SEALED_SINCE = 3
MANIFEST = "manifest.json"
SEAL = "sha256"


def packed(manifest: dict[str, Any]) -> bytes:
    return orjson.dumps(manifest, option=orjson.OPT_INDENT_2)


def sealed(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest, as it will be read back, with a checksum over all of it."""
    plain = {name: value for name, value in orjson.loads(orjson.dumps(manifest)).items() if name != SEAL}
    return {**plain, SEAL: _digest(plain)}


def _digest(plain: dict[str, Any]) -> str:
    return hashlib.sha256(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)).hexdigest()


def read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = orjson.loads((folder / MANIFEST).read_bytes())
        version = int(manifest["format"])
        # The version first: what else a newer manifest holds is not known here.
        if version <= FORMAT_VERSION:
            str(manifest["kind"]), int(manifest["generation"])
            _check_seal(manifest, version)
            _check_files(manifest)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ArtifactError(f"{folder / MANIFEST} is damaged: remove {folder} and build it again") from None
    if version > FORMAT_VERSION:
        raise ArtifactError(
            f"{folder} has format {version}, this clickbridge reads up to {FORMAT_VERSION}: update clickbridge"
        )
    return dict(manifest)


def _check_seal(manifest: dict[str, Any], version: int) -> None:
    plain = {name: value for name, value in manifest.items() if name != SEAL}
    if version >= SEALED_SINCE and SEAL not in manifest:
        raise ValueError("no checksum")
    if SEAL in manifest and manifest[SEAL] != _digest(plain):
        raise ValueError("another checksum")


def _check_files(manifest: dict[str, Any]) -> None:
    for entry in manifest["files"].values():
        if type(entry["bytes"]) is not int or type(entry["sha256"]) is not str:
            raise ValueError("not the size and checksum of a file")
        _check_name(entry["file"])
    for name in manifest.get("beside", ()):
        _check_name(name)
    for name, part in manifest.get("parts", {}).items():
        _check_name(name)
        _check_files(part)


def _check_name(name: Any) -> None:
    """A plain name: nothing that leads out of the folder."""
    if type(name) is not str or name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError("not the name of a file in the folder")
