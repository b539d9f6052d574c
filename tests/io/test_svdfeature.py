"""The SVDFeature toolkit's files, out and in."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickbridge.errors import InputError
from clickbridge.io.svdfeature import Observation, read_observations, write_observations

numbers = st.floats(-1000, 1000, width=16)
features = st.dictionaries(st.integers(0, 50), numbers, max_size=4)


@given(st.lists(st.builds(Observation, numbers, features, features, features), max_size=4))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, written: list[Observation]) -> None:
    path = tmp_path_factory.mktemp("svdfeature") / "x"
    write_observations(path, written)
    assert read_observations(str(path)) == written


def test_the_format(tmp_path: Path) -> None:
    write_observations(tmp_path / "x", [Observation(1, {0: 0.5}, {7: 1, 3: 0.25}, {})])
    assert (tmp_path / "x").read_text() == "1 1 2 0 0:0.5 7:1 3:0.25\n"


@pytest.mark.parametrize(
    "line", ["1 1 1 1 0:1 0:1", "1 1 0 0 0", "x 0 0 0", "1 0 0", "1 -1 1 0", "1 2 0 0 3:1 3:2", "1 1 0 0 -1:2"]
)
def test_other_lines_are_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "x").write_text(line + "\n")
    with pytest.raises(InputError, match="line 1: expected TARGET N_GLOBAL N_QUERY N_DOCUMENT"):
        read_observations(str(tmp_path / "x"))
