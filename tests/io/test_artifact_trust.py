"""Artifacts that someone has changed, rights of what is written, and one writer at a time."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from clickbridge.errors import ArtifactError, InputError
from clickbridge.io.artifact import ArtifactWriter, kept_for_writing, open_artifact
from clickbridge.io.files import written_aside
from clickbridge.io.secret import Secret
from forgery import changed, identity, replaced


def write(path: Path, values: Any = (1, 2), **header: Any) -> None:
    with ArtifactWriter(path, "graph") as writer:
        writer.array("values", np.asarray(values))
        writer.commit(**header)


# --- the manifest ----------------------------------------------------------------------------------------


def test_every_flipped_bit_of_a_manifest_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a", settings={"dim": 100, "name": "pls", "share": 0.25, "on": True})
    file = tmp_path / "a" / "manifest.json"
    sound = file.read_bytes()
    for place in range(len(sound)):
        for bit in range(8):
            data = bytearray(sound)
            data[place] ^= 1 << bit
            file.write_bytes(data)
            with pytest.raises(ArtifactError):
                open_artifact(tmp_path / "a", "graph")
    file.write_bytes(sound)
    open_artifact(tmp_path / "a", "graph")


def test_a_graph_from_before_the_checksum_opens(tmp_path: Path) -> None:
    write(tmp_path / "a")
    file = tmp_path / "a" / "manifest.json"
    manifest = json.loads(file.read_text())
    del manifest["sha256"]
    file.write_text(json.dumps(manifest))
    with pytest.raises(ArtifactError, match="is damaged"):
        open_artifact(tmp_path / "a", "graph")
    file.write_text(json.dumps(manifest | {"format": 2}))
    assert open_artifact(tmp_path / "a", "graph").array("values").tolist() == [1, 2]


@pytest.mark.parametrize("name", ["/dev/zero", "../b/values.1.npy", "..", ".", "", "parts/x.npy", "a\0b", 7, None])
def test_a_file_outside_of_the_folder_is_not_opened(tmp_path: Path, name: Any) -> None:
    write(tmp_path / "a")
    write(tmp_path / "b")
    changed(tmp_path / "a", lambda m: m["files"]["values.npy"].update(file=name))
    with pytest.raises(ArtifactError, match="is damaged"):
        open_artifact(tmp_path / "a", "graph")


@pytest.mark.parametrize("kind", ["link", "device", "pipe"])
def test_what_is_not_a_plain_file_is_not_opened(tmp_path: Path, kind: str) -> None:
    write(tmp_path / "a")
    file = tmp_path / "a" / "values.1.npy"
    file.rename(tmp_path / "values.npy")
    if kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("/dev/zero" if kind == "device" else tmp_path / "values.npy")
    with pytest.raises(ArtifactError, match=r"values\.1\.npy is not a plain file"):
        open_artifact(tmp_path / "a", "graph")


# --- arrays ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("indices", [2**30, 1, 0, 2]),
        ("indices", [-5, 1, 0, 2]),
        ("indices", [1, 0, 0, 2]),
        ("indices", [0.0, 1, 0, 2]),
        ("indices", [0, 1, 0]),
        ("indptr", [0, 2, 2**40, 4]),
        ("indptr", [0, 3, 2, 4]),
        ("indptr", [1, 2, 3, 4]),
        ("indptr", [0, 2, 3]),
        ("indptr", []),
        ("data", [1.0, 2.0]),
        ("data", ["a", "b", "c", "d"]),
        ("shape", [2**40, 3]),
        ("shape", [3, 2]),
        ("shape", [3, -3]),
        ("shape", [3]),
    ],
)
def test_a_sparse_matrix_with_wrong_places_is_refused(tmp_path: Path, name: str, values: list[Any]) -> None:
    with ArtifactWriter(tmp_path / "a", "model") as writer:
        writer.sparse("m", sparse.csr_array(np.array([[1.0, 2, 0], [3, 0, 0], [0, 0, 4]])))
        writer.commit()
    open_artifact(tmp_path / "a", "model").sparse("m")
    replaced(tmp_path / "a", f"m.{name}", np.array(values))
    artifact = open_artifact(tmp_path / "a", "model")
    with pytest.raises(ArtifactError, match=r"m has|m does not|m is not"):
        artifact.sparse("m")


@pytest.mark.parametrize("ends", [[1, 9], [-1, 3], [2, 1], [1.0, 3.0], [[1, 3]], [1, 2]])
def test_texts_that_end_elsewhere_are_refused(tmp_path: Path, ends: list[Any]) -> None:
    with ArtifactWriter(tmp_path / "a", "model") as writer:
        writer.strings("t", ["a", "bc"])
        writer.commit()
    replaced(tmp_path / "a", "t.ends", np.array(ends))
    with pytest.raises(ArtifactError, match="t does not end where it says"):
        open_artifact(tmp_path / "a", "model").strings("t")


def test_a_header_that_says_more_than_there_is_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a", np.arange(4))
    file = tmp_path / "a" / "values.1.npy"
    data = file.read_bytes().replace(b"(4,)", b"(9,)")
    file.write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    changed(tmp_path / "a", lambda m: m["files"]["values.npy"].update(sha256=digest))
    with pytest.raises(ArtifactError, match="values is not an array"):
        open_artifact(tmp_path / "a", "graph").array("values")


# --- names, rights and kinds of what is written ----------------------------------------------------------


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o007])
def test_the_umask_is_honoured(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        write(tmp_path / "a")
        with written_aside(tmp_path / "b") as out:
            out.write(b"x")
    finally:
        os.umask(before)
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/manifest.json", "a/values.1.npy", "b")}
    assert modes == {name: (0o777 if name == "a" else 0o666) & ~mask for name in modes}


def test_what_a_killed_writer_left_is_replaced(tmp_path: Path) -> None:
    """Also a secret, which is never written into a file that is there; and nothing is written through a link."""
    write(tmp_path / "a")
    (tmp_path / "a" / "users.2.key").write_bytes(b"half of a sec")
    (tmp_path / "precious").write_bytes(b"mine")
    (tmp_path / "a" / "values.2.npy").symlink_to(tmp_path / "precious")
    secret = Secret.new()
    with ArtifactWriter(tmp_path / "a", "graph") as writer:
        writer.array("values", np.arange(3))
        writer.secret("users", secret)
        writer.commit()
    assert (tmp_path / "precious").read_bytes() == b"mine"
    assert (tmp_path / "a" / "users.2.key").read_bytes() == secret.key
    assert (tmp_path / "a" / "users.2.key").stat().st_mode & 0o777 == 0o600
    assert open_artifact(tmp_path / "a", "graph").array("values").tolist() == [0, 1, 2]


def test_names_are_no_patterns(tmp_path: Path) -> None:
    others = [".a.new-0123456789abcdef", ".ab.new-0123456789abcdef", ".*.new-mine"]
    for name in others:
        (tmp_path / name).mkdir()
    for name in ("*", "?", "[ab]"):
        write(tmp_path / name)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["*", "?", "[ab]", *others])
    write(tmp_path / "a")
    assert not (tmp_path / others[0]).exists()


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_only_plain_files_are_replaced(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "out"
    {"folder": target.mkdir, "link": lambda: target.symlink_to("/dev/null"), "pipe": lambda: os.mkfifo(target)}[kind]()
    before = identity(target)
    with pytest.raises(InputError, match=r"cannot write .*out: it is a "), written_aside(target):
        pass
    assert identity(target) == before
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_an_artifact_is_not_written_through_a_link(tmp_path: Path) -> None:
    write(tmp_path / "a")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(ArtifactError, match="link is a link"):
        write(tmp_path / "link", [3])
    assert open_artifact(tmp_path / "link", "graph").array("values").tolist() == [1, 2]


# --- one at a time ---------------------------------------------------------------------------------------


def test_from_reading_to_writing_there_is_one(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write(path, [0])
    refused: list[str] = []

    def second() -> None:
        with kept_for_writing(path, "graph"):
            raise AssertionError("two at once")

    with kept_for_writing(path, "graph"):
        write(path, [1])
        for act in (second, lambda: write(path, [7])):
            thread = threading.Thread(target=_caught(act, refused))
            thread.start()
            thread.join()
        write(path, open_artifact(path, "graph").array("values") + 1)
    assert len(refused) == 2
    assert all("another process is writing" in line for line in refused)
    assert open_artifact(path, "graph").array("values").tolist() == [2]
    write(path, [9])
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def _caught(act: Callable[[], Any], into: list[str]) -> Callable[[], None]:
    def run() -> None:
        try:
            act()
        except ArtifactError as error:
            into.append(str(error))

    return run
