"""Wrappers: how a spec with a colon is built, set and saved, whatever the wrapper does."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.base import clone

import clickbridge
from clickbridge import BM25, LMIR, PLS, VSM, ClickGraph, Mart, Online, Robust, build_model, load
from clickbridge.errors import SettingError
from clickbridge.graph.hold_back import FEW_HELD, few_held
from clickbridge.graph.notes import Note, said_by
from clickbridge.io.values import STORED, stored
from clickbridge.models.algebra import Sum
from clickbridge.models.candidates import Query
from clickbridge.models.composite import FittedWrapper, PartsChoices, Wrapper, joined_notes
from clickbridge.models.fitted import Choices, Fitted
from clickbridge.models.registry import WRAPPERS
from clickbridge.models.study import Study
from clickbridge.settings import Seeded

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedBackwards(FittedWrapper):
    def score_items(self, query: Query, items: Array, incoming: Sequence[float] | None = None) -> Array:
        scores: Array = self.parts[0].score_items(query, items)
        return -scores


class Backwards(Wrapper):
    """The first part's scores, turned around."""

    name = "rrf"
    about = "the worst first"
    paper = "none"
    Settings = Seeded
    fitted_type: ClassVar[type[Fitted]] = FittedBackwards

    def choose(self, study: Study) -> PartsChoices:
        return PartsChoices(parts=self.choose_parts(study))

    def learn(self, study: Study, choices: Choices) -> FittedBackwards:
        assert isinstance(choices, PartsChoices)
        parts = self.learn_parts(study, choices.parts)
        return FittedBackwards(
            model=self.name, settings=self.settings, catalogue=study.catalogue, choices=choices, parts=parts,
            queries=parts[0].queries, notes=joined_notes(parts),
        )  # fmt: skip


class Apart(Backwards):
    separate = True


@pytest.fixture
def wrapped(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(WRAPPERS, "rrf", Backwards)
    monkeypatch.setitem(WRAPPERS, "mart", Apart)
    monkeypatch.setitem(STORED, "FittedBackwards", stored(FittedBackwards))
    yield
    STORED.pop("FittedBackwards", None)


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
    assert {**again.get_params(deep=False), "parts": None} == {"parts": None, "seed": 3, "min_users": 1}
    assert again.report_["parts"][0]["spec"] == "bm25+lmir"
    assert (
        again.score("ny pizza", small_graph.doc_ids).tolist() == model.score("ny pizza", small_graph.doc_ids).tolist()
    )
    # One catalogue for all parts, however deep.
    catalogues = {id(part.catalogue) for part in (again.fitted, again.parts_[0], *again.parts_[0].parts)}
    assert len(catalogues) == 1


@pytest.mark.usefixtures("wrapped")
def test_scikit_learn_can_clone_it() -> None:
    model = build_model("rrf:bm25+lmir", {"bm25.k1": 2.0, "weights": "1,2"})
    copy = clone(model)
    assert copy is not model
    assert repr(copy) == repr(model)
    assert copy.parts[0] is not model.parts[0]  # type: ignore[attr-defined]
    again = clone(Backwards(build_model("bm25")))
    assert [part.spec for part in again.parts] == ["bm25"]


@pytest.mark.usefixtures("wrapped")
def test_a_model_stands_for_a_list_of_one(small_graph: ClickGraph) -> None:
    for kind in (Robust, Online, Backwards):
        assert [part.spec for part in kind(BM25()).parts] == ["bm25"]
    assert [part.spec for part in Apart(BM25() + LMIR()).parts] == ["bm25", "lmir"]
    assert [part.spec for part in Apart(Sum([BM25(), LMIR()], weights="1,2")).parts] == ["bm25+lmir"]
    assert [type(part) for part in Backwards(BM25() + LMIR()).parts] == [Sum]
    assert [part.spec for part in Apart(Backwards(BM25() + LMIR())).parts] == ["rrf:bm25+lmir"]
    assert Online(BM25()).fit(small_graph).spec == "online:bm25"


def test_a_setting_without_its_name_is_refused_with_the_name() -> None:
    cases: list[tuple[Any, tuple[object, ...], str]] = [
        (PLS, (600,), "PLS takes settings by name: PLS(dim=600)"),
        (BM25, (0.9,), "BM25 takes settings by name: BM25(k1=0.9)"),
        (Robust, (BM25(), 3), "Robust takes settings by name: Robust("),
        (Mart, (BM25(), PLS()), "Mart takes its models as one list: Mart([…, PLS()])"),
    ]
    for kind, given, message in cases:
        with pytest.raises(TypeError, match=re.escape(message)):
            kind(*given)


def test_that_too_little_is_held_back_is_said_once(small_graph: ClickGraph) -> None:
    one = VSM().fit(small_graph).fitted._with(notes=())
    fields = said_by("bm25", few_held(2, "query", "to learn field weights", "title counts 3"))
    weights = said_by("bm25+pls", few_held(1, follows="weights are equal"))
    parts = [one.with_notes(fields), one.with_notes("pls: dim 3")]
    assert joined_notes(parts, weights) == (
        "bm25: 2 queries can be held back, 50 are needed to learn field weights; title counts 3",
        "pls: dim 3",
        "bm25+pls: weights are equal",
    )
    whole = "bm25+pls: 1 query can be held back, 50 are needed; weights are equal"
    assert joined_notes(parts[1:], weights) == ("pls: dim 3", whole)
    assert joined_notes(parts, fields, weights) == joined_notes(parts, weights)


def test_a_note_keeps_its_reason_in_files_and_copies(small_graph: ClickGraph, tmp_path: Path) -> None:
    few = said_by("vsm", few_held(2, follows="weights are equal"))
    model = VSM().fit(small_graph)
    model.fitted_ = model.fitted._with(notes=(few,))
    model.save(tmp_path / "model")
    for note in (load(tmp_path / "model").fitted.notes[0], pickle.loads(pickle.dumps(few)), copy.deepcopy(few)):  # noqa: S301
        assert isinstance(note, Note)
        assert (note, note.reason, note.follows) == (few, FEW_HELD, "vsm: weights are equal")
