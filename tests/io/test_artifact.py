"""Artifact folders: what goes in comes back, and a folder is at every moment either the old one or the new one."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy import sparse

from clickbridge.errors import ArtifactError
from clickbridge.io.artifact import FORMAT_VERSION, Artifact, ArtifactWriter, check_target, open_artifact
from clickbridge.io.manifest import packed, sealed

ARRAYS = npst.arrays(
    dtype=st.one_of(
        npst.boolean_dtypes(),
        npst.integer_dtypes(endianness="="),
        npst.unsigned_integer_dtypes(endianness="="),
        npst.floating_dtypes(endianness="=", sizes=(16, 32, 64)),
        npst.complex_number_dtypes(endianness="=", sizes=(64, 128)),
        npst.unicode_string_dtypes(endianness="=", max_len=5),
        npst.datetime64_dtypes(endianness="=", max_period="s", min_period="ns"),
    ),
    shape=npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def write(path: Path, values: Any, kind: str = "graph", **header: Any) -> None:
    with ArtifactWriter(path, kind) as writer:
        writer.array("values", np.asarray(values))
        writer.commit(**header)


def values_of(path: Path, kind: str = "graph") -> list[Any]:
    return open_artifact(path, kind).array("values").tolist()


def names(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def tampered(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    file = path / "manifest.json"
    manifest = json.loads(file.read_text())
    change(manifest)
    file.write_bytes(packed(sealed(manifest)))


# --- round trips -----------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(arrays=st.lists(ARRAYS, max_size=4), texts=st.lists(TEXTS, max_size=10))
def test_arrays_and_strings_come_back(arrays: list[np.ndarray[Any, Any]], texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with ArtifactWriter(Path(folder) / "a", "graph") as writer:
            for i, values in enumerate(arrays):
                writer.array(f"array{i}", values)
            writer.strings("texts", texts)
            writer.table("table", pa.table({"text": texts, "length": [len(t) for t in texts]}))
            writer.commit()
        artifact = open_artifact(Path(folder) / "a", "graph")
        for i, values in enumerate(arrays):
            back = artifact.array(f"array{i}")
            assert back.dtype == values.dtype
            assert back.shape == values.shape
            assert back.tobytes() == values.tobytes()
        assert artifact.strings("texts") == texts
        assert artifact.table("table", columns=["text"])["text"].to_pylist() == texts


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (4, 5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_comes_back(tmp_path: Path, shape: tuple[int, int], dtype: Any) -> None:
    dense = np.random.default_rng(0).integers(-2, 3, shape).astype(dtype)
    with ArtifactWriter(tmp_path / "a", "graph") as writer:
        writer.sparse("matrix", sparse.csr_array(dense))
        writer.commit()
    back = open_artifact(tmp_path / "a", "graph").sparse("matrix")
    assert back.dtype == dtype
    assert back.shape == shape
    np.testing.assert_array_equal(back.toarray(), dense)


def test_fortran_order_and_slices_come_back(tmp_path: Path) -> None:
    values = np.arange(24).reshape(4, 6)
    with ArtifactWriter(tmp_path / "a", "graph") as writer:
        writer.array("columns", np.asfortranarray(values))
        writer.array("slice", values[::2, ::-3])
        writer.commit()
    artifact = open_artifact(tmp_path / "a", "graph")
    np.testing.assert_array_equal(artifact.array("columns"), values)
    np.testing.assert_array_equal(artifact.array("slice"), values[::2, ::-3])


def test_arrays_are_memory_mapped_and_read_only(tmp_path: Path) -> None:
    write(tmp_path / "a", [1, 2, 3])
    values = open_artifact(tmp_path / "a", "graph").array("values")
    assert isinstance(values, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 5


def test_objects_are_never_pickled(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        write(tmp_path / "a", np.array([{}], dtype=object))
    assert list(tmp_path.iterdir()) == []


def test_header_and_contents_are_named_in_the_manifest(tmp_path: Path) -> None:
    write(tmp_path / "a", [1], settings={"dim": 5})
    artifact = open_artifact(tmp_path / "a", "graph")
    assert artifact.manifest["kind"] == "graph"
    assert artifact.manifest["format"] == FORMAT_VERSION
    assert artifact.manifest["settings"] == {"dim": 5}
    assert "values" in artifact
    assert "other" not in artifact
    with pytest.raises(ArtifactError, match=r"has no other\.npy: build it again"):
        artifact.array("other")


# --- new and replaced ------------------------------------------------------------------------------------


def test_new_artifact_appears_by_a_rename(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with ArtifactWriter(path, "graph") as writer:
        writer.array("values", np.arange(3))
        (writer.scratch() / "spill").write_text("x")
        assert not path.exists()
        writer.commit()
        assert values_of(path) == [0, 1, 2]
    assert names(path) == ["manifest.json", "values.1.npy"]
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert path.stat().st_mode & 0o777 == 0o755


def test_replacing_keeps_one_fixed_name_and_removes_what_is_unreferenced(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with ArtifactWriter(path, "graph") as writer:
        writer.array("values", np.arange(3))
        writer.array("more", np.arange(9))
        writer.commit()
    (path / "stray.2.npy").write_text("left by a killed writer")
    before = path.stat().st_ino
    with ArtifactWriter(path, "graph") as writer:
        writer.array("values", np.arange(4))
        assert values_of(path) == [0, 1, 2]
        writer.commit()
    assert values_of(path) == [0, 1, 2, 3]
    assert names(path) == ["manifest.json", "values.2.npy"]
    assert path.stat().st_ino == before
    write(path, [7])
    assert names(path) == ["manifest.json", "values.3.npy"]
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_open_reader_keeps_working_while_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with ArtifactWriter(path, "graph") as writer:
        writer.array("values", np.arange(100_000))
        writer.table("texts", pa.table({"value": ["ä", "b"]}))
        writer.commit()
    old = open_artifact(path, "graph")
    values, table = old.array("values"), old.table("texts")
    write(path, [5])
    assert not list(path.glob("values.1.npy"))
    assert int(values.sum()) == 99_999 * 50_000
    assert table["value"].to_pylist() == ["ä", "b"]
    with pytest.raises(ArtifactError, match="was replaced or removed while it was read: open it again"):
        old.array("values")
    assert values_of(path) == [5]


def test_opening_looks_again_when_a_writer_was_faster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real, calls = tmp_path / "a", Artifact.verify, []
    write(path, [1])

    def verify(artifact: Artifact) -> None:
        if not calls:
            calls.append(1)
            write(path, [2])
        real(artifact)

    monkeypatch.setattr(Artifact, "verify", verify)
    assert values_of(path) == [2]


@pytest.mark.parametrize("replace", [False, True])
def test_exception_inside_with_leaves_nothing(tmp_path: Path, replace: bool) -> None:
    path = tmp_path / "a"
    if replace:
        write(path, [1])
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}

    def fail() -> None:
        with ArtifactWriter(path, "graph") as writer:
            writer.array("values", np.arange(3))
            writer.part("0").array("values", np.arange(3))
            (writer.scratch() / "spill").write_text("x")
            raise KeyError("fault")

    with pytest.raises(KeyError, match="fault"):
        fail()
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
    assert path.exists() == replace
    write(path, [2])
    assert values_of(path) == [2]


def test_no_commit_writes_nothing(tmp_path: Path) -> None:
    with ArtifactWriter(tmp_path / "a", "graph") as writer:
        writer.array("values", np.arange(3))
    assert list(tmp_path.iterdir()) == []


def test_scratch_is_always_empty_at_first(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write(path, [1])
    (path / ".scratch").mkdir()
    (path / ".scratch" / "aggregate.duckdb").write_text("left by a killed writer")
    with ArtifactWriter(path, "graph") as writer:
        assert list(writer.scratch().iterdir()) == []
        writer.array("values", np.arange(1))
        writer.commit()
    assert names(path) == ["manifest.json", "values.2.npy"]


# --- composites ------------------------------------------------------------------------------------------


def write_composite(path: Path, *parts: int) -> None:
    with ArtifactWriter(path, "model") as writer:
        writer.array("values", np.array(parts))
        for i, value in enumerate(parts):
            part = writer.part(str(i))
            part.header = {"kind": "model", "model": f"m{value}"}
            part.array("values", np.array([value]))
        writer.commit(model="sum")


def test_each_part_of_a_composite_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_composite(path, 5, 6)
    artifact = open_artifact(path, "model")
    assert [artifact.part(p).array("values").tolist() for p in ("0", "1")] == [[5], [6]]
    for number, value in (("0", 5), ("1", 6)):
        assert values_of(path / "parts" / number, "model") == [value]
        shutil.copytree(path / "parts" / number, tmp_path / f"alone{number}")
        assert open_artifact(tmp_path / f"alone{number}", "model").manifest["model"] == f"m{value}"


def test_composite_is_replaced_as_one(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_composite(path, 5, 6, 7)
    write_composite(path, 8, 9)
    assert names(path) == [
        "manifest.json",
        "parts/0/manifest.json",
        "parts/0/values.2.npy",
        "parts/1/manifest.json",
        "parts/1/values.2.npy",
        "values.2.npy",
    ]
    assert [values_of(path / "parts" / p, "model") for p in ("0", "1")] == [[8], [9]]
    write(path, [1], kind="model")
    assert names(path) == ["manifest.json", "values.3.npy"]


def test_damage_inside_a_part_is_found(tmp_path: Path) -> None:
    write_composite(tmp_path / "a", 5, 6)
    (tmp_path / "a/parts/1/values.1.npy").unlink()
    with pytest.raises(ArtifactError, match=r"parts/1: values\.1\.npy is missing or cut short: build it again"):
        open_artifact(tmp_path / "a", "model")


# --- refusals --------------------------------------------------------------------------------------------


def refused(message: str, action: Callable[[], Any]) -> None:
    with pytest.raises(ArtifactError, match=message) as caught:
        action()
    assert "\n" not in str(caught.value)


def test_only_an_artifact_of_the_same_kind_is_replaced(tmp_path: Path) -> None:
    write(tmp_path / "graph", [1])
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.txt").write_text("years of work")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "manifest.json").write_text('{"name": "a web app"}')
    for name in ("graph", "folder", "empty", "file", "link"):
        refused(
            "exists and is not a model: choose another out, or remove it" if name != "link" else "is a link",
            lambda n=name: write(tmp_path / n, [2], "model"),
        )
        with pytest.raises(ArtifactError):
            check_target(tmp_path / name, "model")
    refused("is damaged", lambda: write(tmp_path / "json", [2], "model"))
    assert (tmp_path / "folder" / "thesis.txt").read_text() == "years of work"
    assert (tmp_path / "file").read_text() == "text"
    assert values_of(tmp_path / "graph") == [1]
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_parent_must_exist(tmp_path: Path) -> None:
    refused("no is not a folder: create it first, or write elsewhere", lambda: write(tmp_path / "no" / "a", [1]))


def test_opening_what_is_not_there(tmp_path: Path) -> None:
    write(tmp_path / "graph", [1])
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("text")
    refused("no model at .*: give the folder that it was saved to", lambda: open_artifact(tmp_path / "x", "model"))
    refused(r"is not a model: it has no manifest\.json", lambda: open_artifact(tmp_path / "folder", "model"))
    refused(r"is not a model: it has no manifest\.json", lambda: open_artifact(tmp_path / "file", "model"))
    refused("is a graph; a model is needed here", lambda: open_artifact(tmp_path / "graph", "model"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"format": "x", "generation": 1, "files": {}, "kind": "graph"}',
        '{"format": 1, "generation": 1, "kind": "graph"}',
        '{"format": 1, "files": {}, "kind": "graph"}',
        '{"format": 1, "generation": 1, "files": {}}',
        '{"format": 1, "generation": 1, "files": [], "kind": "graph"}',
        '{"format": 1, "generation": 1, "files": {"a.npy": {"file": "a.1.npy"}}, "kind": "graph"}',
        '{"format": 1, "generation": "new", "files": {}, "kind": "graph"}',
    ],
)
def test_damaged_manifest(tmp_path: Path, text: str) -> None:
    write(tmp_path / "a", [1])
    (tmp_path / "a" / "manifest.json").write_text(text)
    refused(r"manifest\.json is damaged: remove .* and build it again", lambda: open_artifact(tmp_path / "a", "graph"))
    refused(r"manifest\.json is damaged: remove .* and build it again", lambda: write(tmp_path / "a", [2]))


def test_cut_manifest(tmp_path: Path) -> None:
    write(tmp_path / "a", [1])
    file = tmp_path / "a" / "manifest.json"
    file.write_bytes(file.read_bytes()[:-20])
    refused("is damaged", lambda: open_artifact(tmp_path / "a", "graph"))


@pytest.mark.parametrize("where", [0, 6, -1])
def test_changed_byte(tmp_path: Path, where: int) -> None:
    write(tmp_path / "a", np.arange(100))
    file = tmp_path / "a" / "values.1.npy"
    data = bytearray(file.read_bytes())
    data[where] ^= 1
    file.write_bytes(data)
    refused(
        r"values\.1\.npy does not match its checksum: build it again", lambda: open_artifact(tmp_path / "a", "graph")
    )
    write(tmp_path / "a", [2])
    assert values_of(tmp_path / "a") == [2]


@pytest.mark.parametrize("damage", ["missing", "cut", "longer"])
def test_missing_or_cut_file(tmp_path: Path, damage: str) -> None:
    write(tmp_path / "a", np.arange(100))
    file = tmp_path / "a" / "values.1.npy"
    data = file.read_bytes()
    file.unlink()
    if damage != "missing":
        file.write_bytes(data[:-8] if damage == "cut" else data + b"x")
    refused(r"values\.1\.npy is missing or cut short: build it again", lambda: open_artifact(tmp_path / "a", "graph"))


@pytest.mark.parametrize("lacking", [(), ("generation", "files", "kind")])
def test_newer_format(tmp_path: Path, lacking: tuple[str, ...]) -> None:
    write(tmp_path / "a", [1])
    tampered(tmp_path / "a", lambda m: m.update(format=FORMAT_VERSION + 1))
    tampered(tmp_path / "a", lambda m: [m.pop(name) for name in lacking])
    message = f"a has format {FORMAT_VERSION + 1}, this clickbridge reads up to {FORMAT_VERSION}: update clickbridge"
    refused(message, lambda: open_artifact(tmp_path / "a", "graph"))
    refused(message, lambda: write(tmp_path / "a", [2]))


def test_second_writer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with ArtifactWriter(path, "graph") as writer:
        refused("another process is writing .*a: wait for it, or write elsewhere", lambda: write(path, [2]))
        write(tmp_path / "b", [3])
        writer.array("values", np.arange(1))
        writer.commit()
    write(path, [4])
    assert values_of(path) == [4]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]
