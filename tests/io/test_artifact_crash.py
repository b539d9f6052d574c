"""Writers that die: SIGKILL in the middle of a write, and SIGKILL or Ctrl-C before every single system call."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from clickbridge.errors import ArtifactError
from clickbridge.io.artifact import ArtifactWriter, open_artifact

STALLS = """
import sys, time
import numpy as np
from clickbridge.io.artifact import ArtifactWriter
with ArtifactWriter(sys.argv[1], "graph") as writer:
    writer.array("values", np.arange(1000))
    writer.part("0").array("values", np.arange(10))
    (writer.scratch() / "spill").write_text("x")
    writer.path("half.npy").write_bytes(b"half a file")
    print("ready", flush=True)
    time.sleep(60)
"""

# Forks one child for each event that Python audits in a write (open, rename, remove, mkdir, rmtree); the child is
# killed, or interrupted, just before it. After each death the artifact must be the old or the new one, whole.
DIES_EVERYWHERE = """
import json, os, signal, shutil, sys
from pathlib import Path
import numpy as np
from clickbridge.io.artifact import ArtifactWriter, open_artifact

EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree", "tempfile.mkdtemp"}
home, replace, killed = Path(sys.argv[1]), sys.argv[2] == "replace", sys.argv[3] == "killed"

def write(path, generation):
    with ArtifactWriter(path, "model") as writer:
        writer.array("values", np.full(10, generation))
        for name in ("0", "1"):
            part = writer.part(name)
            part.header = {"kind": "model"}
            part.array("values", np.full(5, generation))
        (writer.scratch() / "spill").write_text("x")
        writer.commit()

def state(path):
    if not path.exists():
        return "none"
    top = open_artifact(path, "model")
    found = {int(top.array("values")[0])} | {int(top.part(p).array("values")[0]) for p in ("0", "1")}
    assert len(found) == 1, found
    for name in ("0", "1"):
        open_artifact(path / "parts" / name, "model")
    return "old" if found == {1} else "new"

seen = []
for moment in range(1000):
    folder = home / str(moment)
    folder.mkdir()
    path = folder / "a"
    if replace:
        write(path, 1)
    child = os.fork()
    if child == 0:
        left = moment
        def hook(event, arguments):
            global left
            if event in EVENTS:
                left -= 1
                if left == -1 and not killed:
                    raise KeyboardInterrupt
                if left == -1:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(hook)
        try:
            write(path, 2)
        except KeyboardInterrupt:
            os.kill(os.getpid(), signal.SIGTERM)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    seen.append(state(path))
    write(path, 3)
    assert int(open_artifact(path, "model").array("values")[0]) == 3
    assert [p.name for p in folder.iterdir()] == ["a"], list(folder.iterdir())
    files = [p for p in path.rglob("*") if p.is_file()]
    assert len(files) == 6, files
    shutil.rmtree(folder)
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0
        break
print(json.dumps(seen))
"""


def write(path: Path, values: list[int]) -> None:
    with ArtifactWriter(path, "graph") as writer:
        writer.array("values", np.array(values))
        writer.commit()


def everything_in(folder: Path) -> dict[Path, bytes]:
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("replace", [False, True], ids=["new", "replace"])
def test_killed_writer(tmp_path: Path, replace: bool) -> None:
    path = tmp_path / "a"
    if replace:
        write(path, [1, 2])
    before = everything_in(path) if replace else {}
    process = subprocess.Popen([sys.executable, "-c", STALLS, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert path.exists() == replace
    with pytest.raises(ArtifactError, match="another process is writing"):
        write(path, [3])
    if replace:
        assert open_artifact(path, "graph").array("values").tolist() == [1, 2]
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()

    assert path.exists() == replace
    if replace:
        assert open_artifact(path, "graph").array("values").tolist() == [1, 2]
        assert before.items() <= everything_in(path).items()
    else:
        assert list(tmp_path.glob(".a.new-*"))
    write(path, [4])
    assert open_artifact(path, "graph").array("values").tolist() == [4]
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert sorted(p.name for p in path.rglob("*") if p.is_file()) == [
        "manifest.json",
        f"values.{2 if replace else 1}.npy",
    ]


@pytest.mark.parametrize("death", ["killed", "interrupted"])
@pytest.mark.parametrize("how", ["new", "replace"])
def test_dies_before_every_system_call(tmp_path: Path, how: str, death: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DIES_EVERYWHERE, str(tmp_path), how, death], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert len(seen) > 20
    first = "old" if how == "replace" else "none"
    turn = seen.index("new")
    assert turn > 10
    assert seen == [first] * turn + ["new"] * (len(seen) - turn)


def test_readers_beside_a_busy_writer(tmp_path: Path) -> None:
    """Whatever the moment, an opened artifact is one generation, never a mixture."""
    path = tmp_path / "a"
    code = textwrap.dedent("""
        import sys
        import numpy as np
        from clickbridge.io.artifact import ArtifactWriter
        for n in range(80):
            with ArtifactWriter(sys.argv[1], "graph") as writer:
                writer.array("one", np.full(500, n))
                writer.array("two", np.full(500, n))
                writer.commit(number=n)
    """)
    process = subprocess.Popen([sys.executable, "-c", code, str(path)])
    opened, seen = 0, set()
    while process.poll() is None:
        if not path.exists():
            continue
        artifact = open_artifact(path, "graph")
        try:
            one, two = artifact.array("one"), artifact.array("two")
        except ArtifactError as error:
            assert "was replaced" in str(error)  # noqa: PT017
            continue
        assert set(one) == set(two) == {artifact.manifest["number"]}
        opened += 1
        seen.add(artifact.manifest["number"])
    assert process.returncode == 0
    assert opened > 5
    assert len(seen) > 3
