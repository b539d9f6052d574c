"""A model of a user's own: named by specs, fitted, saved, loaded, compared and cloned as any other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import clickbridge
from clickbridge import ClickGraph, Given, build_model, register
from clickbridge.errors import ArtifactError, SettingError
from clickbridge.io.values import stored
from clickbridge.models.candidates import Query
from clickbridge.models.fitted import Array, Choices, Fitted
from clickbridge.models.model import Model
from clickbridge.models.registry import MODELS, TABLES, WRAPPERS, model_class, provide
from clickbridge.models.specs import parse_spec
from clickbridge.models.study import Study
from clickbridge.settings import Settings, setting, settings
from clickbridge.types import ResultList

LISTS = [
    ResultList("1", "ny pizza", ["rome", "ny", "pizza"], [0.0, 1.0, 2.0]),
    ResultList("2", "eternal city", ["bagel", "rome"], [0.0, 1.0]),
]


@settings
class PopularSettings(Settings):
    power: float = setting(1.0, "power of the clicks in the score", 0, 10)


@stored
@dataclass(frozen=True, kw_only=True)
class PopularChoices(Choices):
    least: int


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedPopular(Fitted):
    can: ClassVar[frozenset[str]] = frozenset({"new queries"})

    settings: PopularSettings
    choices: PopularChoices
    clicks: Array

    def score_items(self, query: Query, items: Array, incoming: Sequence[float] | None = None) -> Array:
        scores = self.clicks[items] ** self.settings.power
        return np.where((items >= 0) & (self.clicks[items] >= self.choices.least), scores, -np.inf)


class Popular(Model):
    """What is clicked most, whatever the query."""

    name = "popular"
    about = "what is clicked most"
    paper = "-"
    Settings = PopularSettings
    fitted_type: ClassVar[type[Fitted]] = FittedPopular

    def choose(self, study: Study) -> PopularChoices:
        return PopularChoices(least=1, notes=("popular: from one click on",))

    def learn(self, study: Study, choices: Choices) -> FittedPopular:
        assert isinstance(choices, PopularChoices)
        pairs, n = study.graph.pairs, study.graph.n_docs
        return FittedPopular(
            model=self.name, settings=self.settings, catalogue=study.catalogue, choices=choices, notes=choices.notes,
            clicks=np.bincount(pairs.doc, pairs.clicks, minlength=n).astype(np.float64),
        )  # fmt: skip


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Whatever a test registers is gone after it."""
    before = {kind: dict(table) for kind, table in TABLES.items()}
    yield
    for kind, table in TABLES.items():
        table.clear()
        table.update(before[kind])


def named(name: Any) -> Any:
    return type("Mine", (Popular,), {"name": name, "__module__": __name__, "__qualname__": f"Mine {name}"})


def test_a_spec_names_it(small_graph: ClickGraph) -> None:
    with pytest.raises(SettingError, match="no model 'popular'"):
        parse_spec("popular")
    assert register(Popular) is Popular, "usable as a decorator"
    assert model_class("popular") is Popular
    model: Any = build_model("popular", {"power": "0.5"})
    assert repr(model) == "Popular(power=0.5)"
    model.fit(small_graph)
    assert model.rerank("whatever", ["bagel", "rome", "pizza"]).doc_ids == ["pizza", "rome", "bagel"]
    assert model.score("whatever", ["pizza", "blank"]).tolist() == [3**0.5, -np.inf]
    assert model.notes_ == ("popular: from one click on",)
    for spec in ("popular+bm25", "rrf:popular+bm25", "online:popular"):
        assert build_model(spec).fit(small_graph).rerank("pizza", ["rome", "pizza"]).doc_ids == ["pizza", "rome"]
    with pytest.raises(SettingError, match="power must be a number, 0 to 10; got"):
        build_model("popular", {"power": "11"})


@pytest.mark.parametrize("spec", ["popular", "popular+bm25"])
def test_it_is_saved_and_loaded(spec: str, small_graph: ClickGraph, tmp_path: Path) -> None:
    register(Popular)
    model = build_model(spec, {"popular.power": 2.0}).fit(small_graph)
    model.save(tmp_path / "model")
    again = clickbridge.load(tmp_path / "model")
    assert type(again) is type(model)
    assert again.fitted.choices == model.fitted.choices
    assert again.report_ == model.report_
    for query in ("pizza", "never heard of"):
        ids = [*small_graph.doc_ids, "nowhere"]
        assert again.score(query, ids).tobytes() == model.score(query, ids).tobytes()


def test_without_it_a_saved_one_is_refused_in_one_line(small_graph: ClickGraph, tmp_path: Path) -> None:
    register(Popular)
    build_model("popular").fit(small_graph).save(tmp_path / "model")
    del MODELS["popular"]
    with pytest.raises(ArtifactError, match=r"a 'popular' model, which this clickbridge does not know: .*register"):
        clickbridge.load(tmp_path / "model")


def test_it_is_compared_with_others(small_graph: ClickGraph, tmp_path: Path) -> None:
    """In the same process, as a fresh one would not know it; what it ranked is kept as for the others."""
    register(Popular)
    for reused in (False, True):
        found = clickbridge.compare(small_graph, LISTS, "popular,popular+bm25", save_dir=tmp_path)
        assert [m.spec for m in found.models] == ["given", "popular", "popular+bm25"]
        assert found["popular"].mean("nDCG@5") == 1.0 > found["given"].mean("nDCG@5")
        assert [m.trial.reused for m in found.models] == [reused] * 3


def test_scikit_learn_clones_it() -> None:
    clone = pytest.importorskip("sklearn.base").clone
    assert repr(clone(Popular(power=3.0))) == "Popular(power=3.0)"


@pytest.mark.parametrize("name", ["", None, "a b", "a+b", "a:b", "a,b", "a.b", "a=b", "-", "a/b", "../a", "a\n", 3])
def test_bad_names_are_refused(name: Any) -> None:
    with pytest.raises(SettingError, match="a model's name is letters, digits and hyphens; got"):
        register(named(name))


@pytest.mark.parametrize("name", ["bm25", "mart", "sum", "linear", "robust", "robust-bm25", "online"])
@pytest.mark.parametrize("kind", ["model", "wrapper", "sum"])
def test_a_name_that_is_taken_is_refused(name: str, kind: str) -> None:
    before = {table: dict(content) for table, content in TABLES.items()}
    with pytest.raises(SettingError, match=f"there is a model {name!r} already: choose another name"):
        register(named(name), kind)
    assert before == TABLES


def test_a_kind_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SettingError, match="registered as one of model, wrapper, sum; got 'modle'"):
        register(Popular, "modle")


def test_the_same_model_may_be_registered_again() -> None:
    """A cell of a notebook that is run twice makes a new class of the same name in the same place."""
    register(Popular)
    register(Popular)
    changed = type("Popular", (Popular,), {"__module__": __name__, "__qualname__": "Popular", "about": "new"})
    register(changed)
    assert model_class("popular") is changed
    register(Given)
    assert model_class("given") is Given


def test_a_model_by_where_it_lives_is_imported_when_it_is_asked_for() -> None:
    provide("model", {"far": "no.such.module:Far"})
    assert parse_spec("far").names == ("far",)
    with pytest.raises(ModuleNotFoundError):
        build_model("far")
    provide("model", {"near": f"{Popular.__module__}:Popular"})
    assert model_class("near") is Popular
    assert set(WRAPPERS) == {"robust", "online", "rrf", "mart"}
