"""LETOR files out and in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickbridge.errors import InputError
from clickbridge.io.letor import LetorRow, read_letor, write_letor

numbers = st.floats(width=32, allow_infinity=False)


@given(st.lists(st.tuples(st.integers(0, 4), st.lists(numbers, min_size=3, max_size=3)), min_size=1, max_size=5))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, list[float]]]) -> None:
    path = tmp_path_factory.mktemp("letor") / "x.letor"
    written = [LetorRow(grade, "q1", f"d{i}", np.array(values)) for i, (grade, values) in enumerate(rows)]
    write_letor(path, ["one", "two parts", "three"], written)
    names, read = read_letor(str(path))
    assert names == ["one", "two_parts", "three"]
    assert [(r.grade, r.query_id, r.doc_id) for r in read] == [(r.grade, r.query_id, r.doc_id) for r in written]
    for one, two in zip(written, read, strict=True):
        np.testing.assert_array_equal(one.features.astype(np.float32), two.features.astype(np.float32))


def test_files_of_others(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("2 qid:7 1:0.5 3:1\n\n0 qid:7 2:-1e-3 # docid = GX01\n")
    names, rows = read_letor(str(tmp_path / "x"))
    assert names == []
    np.testing.assert_array_equal(rows[0].features, [0.5, np.nan, 1])
    assert rows[1].doc_id == ""


@pytest.mark.parametrize("line", ["2 1:0.5", "x qid:7 1:0.5", "2 qid:7 a:1", "2 qid:7 0:1", "2", "2 qid:7 1:"])
def test_other_lines_are_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "x").write_text(line + "\n")
    with pytest.raises(InputError, match="line 1: a LETOR line is GRADE qid:ID NUMBER:VALUE"):
        read_letor(str(tmp_path / "x"))
