"""An exception at any line of a commit, and before and after any call that it makes to the system: what is there
afterwards is the old artifact or the new one, whole."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from clickbridge.io.artifact import ArtifactWriter, open_artifact

# An exception between the opening of a file and its `with` leaves it to the collector to close.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
CALLS = [
    (os, "replace"), (os, "rename"), (os, "fsync"), (os, "open"), (os, "rmdir"),
    (shutil, "copyfile"), (shutil, "rmtree"), (Path, "unlink"), (Path, "write_bytes"), (Path, "iterdir"),
]  # fmt: skip


class Fault(BaseException):
    """Neither expected nor caught: like Ctrl-C."""


def write(path: Path, value: int, note: Path, during: Callable[[Callable[[], None]], None] = lambda act: act()) -> None:
    with ArtifactWriter(path, "model") as writer:
        writer.array("values", np.full(3, value))
        for name in ("0", "1"):
            part = writer.part(name)
            part.header = {"kind": "model"}
            part.array("values", np.full(2, value))
        (writer.scratch() / "spill").write_text("x")
        writer.beside("note.txt", note)
        during(writer.commit)


def state(path: Path) -> int:
    """Which one is there: 0 for none."""
    if not path.exists():
        return 0
    top = open_artifact(path, "model")
    found = {int(a.array("values")[0]) for a in (top, top.part("0"), top.part("1"))}
    assert len(found) == 1, found
    return found.pop()


def try_all(home: Path, replace: bool, during: Callable[[int, Callable[[], None]], bool]) -> list[int]:
    """Writes once for every moment a fault can come; `during` says whether there was one."""
    note, seen = home / "note.txt", []
    note.write_text("for people")
    for moment in range(5000):
        path, hit = home / str(moment) / "a", [False]
        path.parent.mkdir()
        if replace:
            write(path, 1, note)

        def commit(act: Callable[[], None], moment: int = moment, hit: list[bool] = hit) -> None:
            hit[0] = during(moment, act)
            if hit[0]:
                raise Fault

        with suppress(Fault):
            write(path, 2, note, commit)
        seen.append(state(path))
        # What the fault left behind does not hinder the next writer, who clears it away.
        write(path, 3, note)
        assert state(path) == 3
        assert [p.name for p in path.parent.iterdir()] == ["a"]
        assert len([p for p in path.rglob("*") if p.is_file()]) == 7
        shutil.rmtree(path.parent)
        if not hit[0]:
            return seen
    raise AssertionError("there is no end of it")


def check_order(seen: list[int], replace: bool) -> None:
    turn = seen.index(2)
    assert turn > 10
    assert seen == [int(replace)] * turn + [2] * (len(seen) - turn)


@pytest.mark.parametrize("replace", [False, True], ids=["new", "replaced"])
def test_fault_at_every_line(tmp_path: Path, replace: bool) -> None:
    def during(moment: int, act: Callable[[], None]) -> bool:
        left = [moment]

        def trace(frame: FrameType, event: str, argument: Any) -> Any:
            if "clickbridge/io/" not in frame.f_code.co_filename:
                return None
            if event == "line":
                if left[0] == 0:
                    raise Fault
                left[0] -= 1
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            act()
        except Fault:
            return True
        finally:
            sys.settrace(before)
        return False

    check_order(try_all(tmp_path, replace, during), replace)


@pytest.mark.parametrize("kind", [Fault, OSError])
@pytest.mark.parametrize("moment_of", ["before", "after"])
@pytest.mark.parametrize("replace", [False, True], ids=["new", "replaced"])
def test_fault_at_every_system_call(tmp_path: Path, replace: bool, moment_of: str, kind: type[BaseException]) -> None:
    def during(moment: int, act: Callable[[], None]) -> bool:
        left, hit = [moment], [False]

        def failing(real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **more: Any) -> Any:
                left[0] -= 1
                mine = left[0] == -1
                hit[0] |= mine
                if mine and moment_of == "before":
                    raise kind("fault")
                result = real(*arguments, **more)
                if mine:
                    raise kind("fault")
                return result

            return call

        with pytest.MonkeyPatch.context() as patch:
            for owner, name in CALLS:
                patch.setattr(owner, name, failing(getattr(owner, name)))
            with suppress(kind):
                act()
        return hit[0]

    seen = try_all(tmp_path, replace, during)
    assert len(seen) > 20
    assert set(seen) == {int(replace), 2}
    if kind is Fault:  # an OSError may be no reason to give up
        check_order(seen, replace)


def test_what_others_put_into_the_folder_stays(tmp_path: Path) -> None:
    """Only what an earlier manifest names, and data files of earlier generations, are removed."""
    path, note = tmp_path / "a", tmp_path / "note.txt"
    note.write_text("first")
    write(path, 1, note)
    mine = ["log.jsonl", "vectors.2024.parquet", "parts/0/thesis.txt", "parts/7/thesis.txt", "parts/old/data.1.npy"]
    for name in mine:
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text("mine")
    (path / "values.2.npy").write_text("left by a killed writer")
    note.write_text("second")
    write(path, 2, note)
    assert (path / "note.txt").read_text() == "second"
    with ArtifactWriter(path, "model") as writer:
        writer.array("other", np.arange(3))
        writer.commit()
    left = {str(p.relative_to(path)) for p in path.rglob("*") if p.is_file()}
    assert left == {*mine, "manifest.json", "other.3.npy"}
    assert all((path / name).read_text() == "mine" for name in mine)


def test_a_file_beside_that_is_there_already(tmp_path: Path) -> None:
    path, note = tmp_path / "a", tmp_path / "note.txt"
    note.write_text("first")
    write(path, 1, note)
    (path / "note.txt").write_text("written in place")
    write(path, 2, path / "note.txt")
    assert state(path) == 2
    assert (path / "note.txt").read_text() == "written in place"
    (path / "note.txt").unlink()
    with pytest.raises(FileNotFoundError):
        write(path, 3, path / "note.txt")
    assert state(path) == 2
