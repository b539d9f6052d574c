"""Trees over models: what they learn, that nothing leaks, and what becomes of little data."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import clickbridge
from clickbridge import BM25, LMIR, ClickGraph, build_model
from clickbridge.errors import MissingPart, SettingError
from clickbridge.fusion import growing, mart
from clickbridge.fusion.crossfit import Block, Fold
from clickbridge.fusion.features import ListFeatures
from clickbridge.fusion.forest import TYPES
from clickbridge.fusion.mart import Mart, choose_together
from clickbridge.fusion.plain_sum import Judged
from clickbridge.graph.hold_back import HoldBack, folds
from clickbridge.io.letor import read_letor
from clickbridge.models import study
from clickbridge.models.candidates import Candidates, Query
from clickbridge.models.catalogue import Catalogue, KnownQueries
from clickbridge.models.fitted import Array, Choices, Fitted
from clickbridge.models.model import Model
from clickbridge.models.study import Study
from clickbridge.numerics.ragged import Ragged
from clickbridge.types import Document, Impression, PairCount, ResultList

SMALL: dict[str, Any] = {"trees": 25, "leaves": 7, "leaf_rows": 10, "feature_share": 1.0}
N = 160


def movie_graph(pages: bool = True, times: bool = False) -> ClickGraph:
    """Query i asks for document i by a word of its title; a second word misleads to others."""
    rng = np.random.default_rng(5)
    docs = [
        Document(
            f"d{i}", {"title": f"name{i} film", "body": f"word{i % 7} word{(i + 3) % 7}", "year": str(1990 + i % 9)}
        )
        for i in range(N)
    ]
    log: list[Impression | PairCount] = []
    for i in range(N):
        query, time = f"name{i} word{rng.integers(7)}", float(i) if times else None
        shown = [f"d{j}" for j in rng.permutation([i, *((i + 1 + rng.permutation(N - 1)[:9]) % N)])]
        if pages:
            log.append(Impression(query, shown, [f"d{i}"], time=time))
        else:
            log.append(PairCount(query, f"d{i}", 1, time=time))
    return ClickGraph.build(log, docs)


@pytest.fixture(scope="module")
def fitted() -> Mart:
    return Mart([BM25(fields="title,body"), LMIR(fields="title,body")], **SMALL).fit(movie_graph())


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedMemory(Fitted):
    known: set[tuple[str, int]]

    def score_items(self, query: Query, items: Array, incoming: Sequence[float] | None = None) -> Array:
        return np.array([float((query.key, item) in self.known) for item in items.tolist()])


class Memory(Model):
    """Knows the clicks it was fitted on by heart and nothing else."""

    name = "memory"
    about = "remembers"
    paper = "-"
    fitted_type: ClassVar[type[Fitted]] = FittedMemory

    def learn(self, study: Study, choices: Choices) -> FittedMemory:
        graph = study.graph
        pairs = zip(graph.pairs.query.tolist(), graph.pairs.doc.tolist(), graph.pairs.clicks.tolist(), strict=True)
        return FittedMemory(
            model=self.name, settings=self.settings, catalogue=study.catalogue, choices=choices,
            known={(graph.query_keys[q], d) for q, d, clicks in pairs if clicks},
        )  # fmt: skip


def trust(model: Mart) -> float:
    """The share of the trees' gain that rests on the memory, directly or through what derives from it."""
    return sum(share for name, share in model.importance().items() if name.startswith("memory"))


def test_a_part_that_remembers_training_clicks_gets_no_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = movie_graph()
    honest = Mart([BM25(fields="body"), Memory()], **SMALL).fit(graph)
    assert trust(honest) < 0.02

    def leaking(graph: ClickGraph, n: int, seed: int) -> Any:
        for held in folds(graph, n, seed=seed):
            yield HoldBack(graph, held.by, held.shown, held.clicked)

    monkeypatch.setattr(study, "folds", leaking)
    fooled = Mart([BM25(fields="body"), Memory()], **SMALL).fit(graph)
    assert trust(fooled) > 0.5, "the test would not notice a leak"


@pytest.mark.parametrize("by", ["query", "click", "time"])
def test_no_component_sees_the_clicks_of_its_fold(by: str) -> None:
    graph = movie_graph(times=by == "time")
    seen: list[tuple[set[Any], list[ResultList]]] = []

    class Watching(Mart):
        def _labelled(self, fold: Fold, parts: Sequence[Fitted], features: ListFeatures) -> list[ResultList]:
            memory: Any = parts[0]
            ids = memory.doc_ids
            seen.append(({(key, ids[d]) for key, d in memory.known}, super()._labelled(fold, parts, features)))
            return seen[-1][1]

    model = Watching([Memory()], **SMALL)
    model.fit(graph)
    lists = [result for _, fold in seen for result in fold]
    assert len({result.query for result in lists}) == len(lists) >= (3 * N // 4 - 5 if by == "time" else N)
    for known, fold in seen:
        for result in fold:
            assert not any((result.query, d) in known for d in result.results)


def test_it_finds_what_its_parts_know(fitted: Mart) -> None:
    graph = movie_graph()
    lists = [ResultList(str(i), f"film name{i}", [f"d{j % N}" for j in range(i, i + 9)]) for i in range(0, N, 3)]
    first = [ranking.doc_ids[0] == r.results[0] for ranking, r in zip(fitted.rerank_lists(lists), lists, strict=True)]
    assert np.mean(first) > 0.95
    assert fitted.rank("name7", 3).doc_ids[0] == "d7"
    assert fitted.score("name7", ["d7", "nowhere"])[1] == -np.inf
    assert fitted.report_["importance"]
    assert sum(fitted.report_["importance"].values()) == pytest.approx(1, abs=0.01)
    assert graph.n_docs == N


def test_scores_do_not_depend_on_company_in_the_batch(fitted: Mart, monkeypatch: pytest.MonkeyPatch) -> None:
    lists = [ResultList(str(i), f"name{i} word1", [f"d{j}" for j in range(i, i + 4)]) for i in range(9)]
    at_once = fitted.score_lists(lists)
    monkeypatch.setattr(mart, "ROWS_AT_ONCE", 7)
    for one, two in zip(at_once, fitted.score_lists(lists), strict=True):
        assert one.tolist() == two.tolist()
    turned = ResultList("0", lists[0].query, lists[0].results[::-1])
    assert fitted.score_lists([turned])[0][::-1].tolist() == at_once[0].tolist()


def test_saved_and_loaded(fitted: Mart, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    again = clickbridge.load(tmp_path / "model")
    lists = [ResultList("1", "name3 word2", ["d1", "d3", "nowhere"])]
    assert again.score_lists(lists)[0].tolist() == fitted.score_lists(lists)[0].tolist()
    assert again.report_ == fitted.report_
    assert isinstance(again, Mart)


def test_a_log_with_times_is_saved_and_loaded(tmp_path: Path) -> None:
    """Recent clicks are features of their own, which must be there again."""
    rng = np.random.default_rng(2)
    docs = [Document(f"d{i}", {"title": f"name{i % 40} film"}) for i in range(80)]
    pages = []
    for time in range(400):
        number = int(rng.integers(40))
        shown = [f"d{i}" for i in rng.permutation([number, number + 40, *rng.choice(80, 6)])]
        # Of two documents of one name the first is wanted in the first weeks, the second later.
        wanted = f"d{number + 40 * (time > 300)}"
        pages.append(Impression(f"name{number}", list(dict.fromkeys(shown)), [wanted], time=time * 86400.0 / 5))
    model = Mart([BM25(fields="title")], **SMALL).fit(ClickGraph.build(pages, docs))
    assert any("lately" in name for name in model.importance())
    model.save(tmp_path / "model")
    again = clickbridge.load(tmp_path / "model")
    lists = [ResultList(str(i), f"name{i}", [f"d{i}", f"d{i + 40}", "d7"]) for i in range(40)]
    for one, other in zip(model.score_lists(lists), again.score_lists(lists), strict=True):
        assert other.tolist() == one.tolist()
    assert np.mean([ranking.doc_ids[0] == f"d{i + 40}" for i, ranking in enumerate(again.rerank_lists(lists))]) > 0.8


def test_a_loaded_model_needs_no_lightgbm(fitted: Mart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted.save(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    again: Any = clickbridge.load(tmp_path / "model")
    assert again.rerank("name3", ["d1", "d3"]).doc_ids == ["d3", "d1"]
    assert again.importance() == fitted.importance()


def test_one_seed_gives_one_forest(fitted: Mart) -> None:
    again = Mart([BM25(fields="title,body"), LMIR(fields="title,body")], **SMALL).fit(movie_graph())
    assert again.forest_ is not None
    assert fitted.forest_ is not None
    for name in TYPES:
        assert getattr(again.forest_, name).tolist() == getattr(fitted.forest_, name).tolist()


def test_regression_and_monotone_trees() -> None:
    model = build_model("mart:bm25", SMALL | {"objective": "regression", "monotone": True, "max_lists": "60"})
    model.fit(movie_graph())
    assert isinstance(model, Mart)
    assert model.forest_ is not None
    names = list(model.feature_names_)
    x = np.zeros((50, len(names)), dtype=np.float32)
    x[:, names.index("bm25")] = np.linspace(-1, 9, 50)
    assert (np.diff(model.forest_.predict(x)) >= 0).all()
    assert len(set(model.forest_.predict(x))) > 1
    assert any("60 cross-fitted lists" in note for note in model.notes_)


def test_a_log_without_pages_pools_what_the_parts_find() -> None:
    graph, labelled = movie_graph(pages=False), []

    class Watching(Mart):
        def _labelled(self, fold: Fold, parts: Sequence[Fitted], features: ListFeatures) -> list[ResultList]:
            labelled.append(super()._labelled(fold, parts, features))
            return labelled[-1]

    model = Watching([BM25(fields="title,body")], **SMALL).fit(graph)
    # Documents drawn at random stand among those that were found, by ids as they came in.
    assert {type(d) for lists in labelled for r in lists for d in r.results} == {str}
    assert all(len(r.results) > 5 for lists in labelled for r in lists)
    assert model.forest_
    assert model.rank("name9 word1", 1).doc_ids == ["d9"]


def test_a_click_that_no_part_found_teaches_nothing() -> None:
    """Half of the clicks are on documents that share no word with the query: in a pooled list they would stand
    only because they were clicked, and what matches nothing would rank first in the whole collection."""
    rng = np.random.default_rng(3)
    docs = [Document(f"d{i}", {"title": f"name{i} film"}) for i in range(200)]
    log = [PairCount(f"name{i} film", f"d{i if i % 2 else rng.integers(200)}", 1) for i in range(200)]
    model = Mart([BM25(fields="title")], **SMALL).fit(ClickGraph.build(log, docs))
    assert np.mean([model.rerank(f"name{i} film", model.doc_ids_).doc_ids[0] == f"d{i}" for i in range(50)]) > 0.9


def test_too_few_lists_and_the_parts_count_equally(small_graph: ClickGraph) -> None:
    model: Any = build_model("mart:bm25+lmir").fit(small_graph)
    assert model.forest_ is None
    assert "mart:bm25+lmir: parts count equally" in model.notes_
    ids = small_graph.doc_ids
    one = Ragged.of_lengths([len(ids)])
    parts = [one.standardised(part.score("ny pizza", ids)) for part in model.parts_]
    found = model.score("ny pizza", ids)
    known = np.isfinite(found)
    np.testing.assert_allclose(found[known], np.sum(parts, axis=0)[known])


def test_features_as_a_letor_file(fitted: Mart, tmp_path: Path) -> None:
    lists = [ResultList("7", "name3", ["d1", "d3"], [0.0, 2.0]), ResultList("8", "name4", ["d4", "nowhere"])]
    fitted.write_letor(tmp_path / "x.letor", lists)
    names, rows = read_letor(str(tmp_path / "x.letor"))
    assert [name.replace("_", " ") for name in names] == list(fitted.feature_names_)
    assert [(r.query_id, r.doc_id, r.grade) for r in rows] == [
        ("7", "d1", 0), ("7", "d3", 2), ("8", "d4", 0), ("8", "nowhere", 0),
    ]  # fmt: skip
    np.testing.assert_allclose(np.stack([r.features for r in rows]), fitted.columns(lists)[1], rtol=1e-6)


def test_without_lightgbm_the_extra_is_named(small_graph: ClickGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingPart, match=r"mart needs LightGBM: .*clickbridge\[mart\]"):
        build_model("mart:bm25").fit(small_graph)


def test_what_was_asked_often_counts_more() -> None:
    """Two queries disagree on which document is right; the one that came ten times as often decides."""
    records = [
        PairCount(f"{word} {i}", f"{word}{i % 4}", 10 if word == "often" else 1)
        for i in range(60)
        for word in ("often", "seldom")
    ]
    held = next(iter(folds(ClickGraph.build(records, []), 2, by="query")))
    lists = held.lists([lambda keys, k: [["often0", "seldom0"]] * len(keys)])
    asked = held.times_asked(lists)
    assert {(r.query.split()[0], n) for r, n in zip(lists, asked, strict=True)} == {("often", 10.0), ("seldom", 1.0)}


def by_name(names: list[str], x: Array) -> dict[str, Array]:
    return dict(zip(names, x.T, strict=True))


def test_recent_clicks_are_told_from_old_ones() -> None:
    day = 86400.0
    records = [PairCount("film", "old", 1, time=0.0)] * 5 + [PairCount("film", "new", 1, time=70 * day)] * 2
    docs = [Document(d, {"title": d}) for d in ("old", "new")]
    graph = ClickGraph.build(records, docs)
    features = ListFeatures.of(graph)
    lists = [ResultList("1", "film", ["old", "new"])]
    columns = by_name(*features.matrix(Candidates.of(lists, Catalogue.of(graph), KnownQueries.none()), {}, {}))
    assert columns["same query"][0] > columns["same query"][1]
    assert columns["same query lately"][1] > columns["same query lately"][0]
    assert columns["clicks lately"][0] == pytest.approx(5 * 2 ** (-70 / 7))
    timeless = ListFeatures.of(ClickGraph.build([PairCount("film", "old", 5)], docs))
    assert not [name for name in timeless.names({}, {}) if "lately" in name]


def test_forests_that_share_their_parts_are_those_fitted_apart() -> None:
    graph, lists = movie_graph(), [ResultList("1", "name3 word2", ["d1", "d3", "d5"])]

    def forests() -> list[Mart]:
        bodies = (LMIR(fields="body"), BM25(fields="body"), BM25(fields="body", k1=2.0))
        return [Mart([BM25(fields="body"), *bodies[:n]], **SMALL) for n in (1, 2, 3)]

    learned: list[Study] = []

    class Counting(LMIR):
        def learn(self, study: Study, choices: Choices) -> Any:
            learned.append(study)
            return super().learn(study, choices)

    apart, shared, study = [mart.fit(graph) for mart in forests()], forests(), Study(graph)
    for forest in shared:
        forest.parts[1] = Counting(fields="body")
    choices = choose_together([forest.in_language_of(study) for forest in shared], study)
    assert len(learned) == len(set(map(id, learned))) == shared[0].folds, "once on the rest of each fold, for all"
    for forest, own in zip(shared, choices, strict=True):
        forest.fit_on(study, own)
    for one, other in zip(apart, shared, strict=True):
        assert other.score_lists(lists)[0].tolist() == one.score_lists(lists)[0].tolist()
        assert other.report_["importance"] == one.report_["importance"]
    with pytest.raises(SettingError, match="folds"):
        choose_together([forests()[0], Mart([BM25()], folds=3)], study)


# --- against the plain sum of the parts --------------------------------------------------------------


def blocks_where(wanted: str, n_lists: int = 120) -> list[Block]:
    """Two folds of lists of six; the wanted document of each is the best by `a + .25 b`, or by a feature that no part
    has."""
    names = ["bm25", "bm25 over the query", "lmir", "lmir over the query", "signal"]
    rng, out = np.random.default_rng(3), []
    for _ in range(2):
        x = rng.normal(size=(6 * n_lists, 5)).astype(np.float32)
        x[:, 1], x[:, 3] = x[:, 0], x[:, 2]
        worth = x[:, 1] + 0.25 * x[:, 3] if wanted == "sum" else x[:, 4]
        best = worth.reshape(-1, 6).argmax(axis=1)
        labels = np.zeros((n_lists, 6))
        labels[np.arange(n_lists), best] = 1
        out.append(Block(names, x, labels.ravel(), np.full(n_lists, 6), np.ones(n_lists)))
    return out


def test_trees_that_lose_to_the_plain_sum_give_way_to_it() -> None:
    model = Mart([BM25(), LMIR()], **SMALL | {"trees": 3})
    grown = model.grow(blocks_where("sum"))
    assert grown.forest is None
    assert grown.weights == pytest.approx((1.0, 0.25), abs=0.15)
    assert "the sum's order stays" in grown.note
    kept = model.grow(blocks_where("signal"))
    assert kept.forest is not None
    assert kept.weights == ()
    assert "the plain sum of its parts" in kept.note


def test_what_13_prints_has_no_guard() -> None:
    grown = Mart([BM25(), LMIR()], **SMALL | {"trees": 3, "features": "scores"}).grow(blocks_where("sum"))
    assert grown.forest is not None


def test_a_plain_sum_in_place_of_trees_orders_as_the_sum_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "judged", lambda *_: Judged(0.1, 0.2, 0.01))  # whatever trees had reached
    model = Mart([BM25(fields="title,body"), LMIR(fields="title,body")], **SMALL).fit(movie_graph())
    assert not model.fitted.grown
    weights = ",".join(map(str, model.fitted.choices.weights))
    plain = (BM25(fields="title,body") + LMIR(fields="title,body")).set_params(weights=weights).fit(movie_graph())
    model.save(tmp_path / "m")
    for one in (model, clickbridge.load(tmp_path / "m")):
        for query in ("name3 word2", "word5", "nothing like it"):
            assert (
                one.rerank(query, [f"d{i}" for i in range(20)]).doc_ids
                == plain.rerank(query, [f"d{i}" for i in range(20)]).doc_ids
            )
            assert one.rank(query, 5).doc_ids == plain.rank(query, 5).doc_ids
