"""`export` from the command line: what it writes, says and refuses."""

from __future__ import annotations

from pathlib import Path

from clickbridge.export.targets import TARGETS


def test_every_target(call, tiny: Path) -> None:  # type: ignore[no-untyped-def]
    for target in TARGETS:
        result = call(
            "export", tiny / "model", "--to", target, "--out", tiny / target, "--graph", tiny / "graph", "--json"
        )
        assert result.code == 0, result.err
        written = {file["file"] for file in result.json["files"]}
        assert {"README.md", "export.json"} < written
        assert written == {p.relative_to(tiny / target).as_posix() for p in (tiny / target).rglob("*") if p.is_file()}


def test_refusals_are_one_line(call, tiny: Path) -> None:  # type: ignore[no-untyped-def]
    (tiny / "mine").mkdir()
    for words, code, line in (
        (["--to", "parquet", "--out", tiny / "mine"], 1, "exists and is not an export"),
        (["--to", "judgments", "--out", tiny / "new"], 1, "give the GRAPH"),
        (["--to", "solr", "--out", tiny / "new"], 2, "--to must be one of"),
    ):
        result = call("export", tiny / "model", *words)
        assert (result.code, result.err.count("\n")) == (code, 1)
        assert line in result.err
    assert not (tiny / "new").exists()
