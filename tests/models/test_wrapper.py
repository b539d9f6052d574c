"""Wrappers: how a spec with a colon is built, set and saved, whatever the wrapper does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clickbridge
from clickbridge import ClickGraph, build_model
from clickbridge.errors import SettingError
from clickbridge.models import base
from clickbridge.models.algebra import Sum
from clickbridge.models.specs import WRAPPERS
from clickbridge.models.wrapper import Wrapper
from clickbridge.types import ResultList

Array = np.ndarray[Any, Any]


class Backwards(Wrapper):
    """The first part's scores, turned around."""

    name = "rrf"
    about = "the worst first"
    paper = "none"
    settings = ("seed",)

    def _fit(self, graph: ClickGraph) -> None:
        for part in self.parts:
            part.fit(graph)

    def score_lists(self, lists: Sequence[ResultList]) -> list[Array]:
        return [-scores for scores in self.parts[0].score_lists(lists)]


class Apart(Backwards):
    separate = True


@pytest.fixture
def wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WRAPPERS, "rrf", f"{__name__}:Backwards")
    monkeypatch.setitem(WRAPPERS, "mart", f"{__name__}:Apart")


def test_specs_and_the_registry_share_one_table() -> None:
    assert WRAPPERS is base.WRAPPERS


@pytest.mark.usefixtures("wrapped")
def test_a_sum_inside_is_one_part_or_many() -> None:
    whole: Any = build_model("rrf:bm25+lmir")
    assert [type(part) for part in whole.parts] == [Sum]
    apart: Any = build_model("mart:bm25+lmir")
    assert [part.spec for part in apart.parts] == ["bm25", "lmir"]
    nested: Any = build_model("mart:rrf:bm25+lmir")
    assert [part.spec for part in nested.parts] == ["rrf:bm25+lmir"]


@pytest.mark.usefixtures("wrapped")
def test_settings_reach_the_wrapper_and_what_is_inside() -> None:
    model: Any = build_model("rrf:bm25+lmir", {"seed": 7, "bm25.k1": 2, "weights": "1,2", "rrf.seed": 9})
    bm25, lmir = model.parts[0].parts
    assert (model.seed, model.parts[0].seed, bm25.seed, lmir.seed) == (9, 7, 7, 7)
    assert (bm25.k1, model.parts[0].weights) == (2.0, "1,2")
    with pytest.raises(SettingError, match="no part of rrf:bm25 has the setting 'mu'"):
        build_model("rrf:bm25", {"mu": 1})


@pytest.mark.usefixtures("wrapped")
def test_saved_with_its_parts(small_graph: ClickGraph, tmp_path: Path) -> None:
    model = build_model("rrf:bm25+lmir", {"seed": 3}).fit(small_graph)
    model.save(tmp_path / "model")
    assert (tmp_path / "model" / "parts" / "0" / "parts" / "1").is_dir()
    again = clickbridge.load(tmp_path / "model")
    assert again.spec == model.spec == "rrf:bm25+lmir"
    assert again.get_params() == {"seed": 3}
    assert again.report_["parts"][0]["spec"] == "bm25+lmir"
    assert (
        again.score("ny pizza", small_graph.doc_ids).tolist() == model.score("ny pizza", small_graph.doc_ids).tolist()
    )
