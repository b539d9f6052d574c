"""The demo, whole: what `make demo` runs where there is no terminal."""

from __future__ import annotations

from pathlib import Path

import clickbridge
from cli.conftest import Run


def test_the_demo_ends_by_itself_with_a_table_and_models_that_search(call: Run, tmp_path: Path) -> None:
    done = call("demo", "--folder", tmp_path / "demo")
    assert done.code == 0, done.err
    for words in ("Searching all documents", "Before and after", "Similar queries", "learns from simulated clicks"):
        assert words in done.out
    assert "the search page: clickbridge serve" in done.err
    assert (tmp_path / "demo" / "quality.svg").read_text().startswith("<?xml")
    auto = clickbridge.load(tmp_path / "demo" / "models" / "auto")
    assert "json.loads" in auto.rank("parse json string", k=10).doc_ids
