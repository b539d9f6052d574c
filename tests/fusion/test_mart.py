"""Trees over models: what they learn, that nothing leaks, and what becomes of little data."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clickbridge
from clickbridge import BM25, LMIR, ClickGraph, build_model
from clickbridge.errors import MissingPart, SettingError
from clickbridge.fusion import crossfit, mart
from clickbridge.fusion.features import ListFeatures
from clickbridge.fusion.flat import FlatLists
from clickbridge.fusion.linear import standardised
from clickbridge.fusion.mart import Mart
from clickbridge.fusion.together import fit_together
from clickbridge.graph.hold_back import HoldBack
from clickbridge.io.letor import read_letor
from clickbridge.models.base import Array, Model, query_of
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


class Memory(Model):
    """Knows the clicks it was fitted on by heart and nothing else."""

    name = "memory"
    about = "remembers"
    paper = "-"

    def _fit(self, graph: ClickGraph) -> None:
        pairs = zip(graph.pairs.query, graph.pairs.doc, graph.pairs.clicks, strict=True)
        self.known = {(graph.query_keys[q], graph.doc_ids[d]) for q, d, clicks in pairs if clicks}

    def score_lists(self, lists: Sequence[ResultList]) -> list[Array]:
        return [np.array([float((query_of(r), d) in self.known) for d in r.results]) for r in lists]


def trust(model: Mart) -> float:
    """The share of the trees' gain that rests on the memory, directly or through what derives from it."""
    return sum(share for name, share in model.importance().items() if name.startswith("memory"))


def test_a_part_that_remembers_training_clicks_gets_no_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = movie_graph()
    honest = Mart([BM25(fields="body"), Memory()], **SMALL).fit(graph)
    assert trust(honest) < 0.02

    def leaking(graph: ClickGraph, n: int, seed: int) -> Any:
        for held in clickbridge.graph.hold_back.folds(graph, n, seed=seed):
            yield HoldBack(graph, held.by, held.shown, held.clicked)

    monkeypatch.setattr(crossfit, "folds", leaking)
    fooled = Mart([BM25(fields="body"), Memory()], **SMALL).fit(graph)
    assert trust(fooled) > 0.5, "the test would not notice a leak"


@pytest.mark.parametrize("by", ["query", "click", "time"])
def test_no_component_sees_the_clicks_of_its_fold(by: str) -> None:
    graph = movie_graph(times=by == "time")
    seen: list[tuple[set[Any], list[ResultList]]] = []

    class Watching(Mart):
        def _labelled(self, held: HoldBack) -> list[ResultList]:
            memory: Any = self.parts[0]
            seen.append((set(memory.known), super()._labelled(held)))
            return seen[-1][1]

    model = Watching([Memory()], **SMALL)
    model.fit(graph)
    lists = [result for _, fold in seen for result in fold]
    assert len({result.query for result in lists}) == len(lists) >= (N // 2 - 5 if by == "time" else N)
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


def test_saved_as_text_and_loaded(fitted: Mart, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    again = clickbridge.load(tmp_path / "model")
    lists = [ResultList("1", "name3 word2", ["d1", "d3", "nowhere"])]
    assert again.score_lists(lists)[0].tolist() == fitted.score_lists(lists)[0].tolist()
    assert again.report_ == fitted.report_
    assert isinstance(again, Mart)
    assert again.trees_.startswith("tree\n")


def test_one_seed_gives_one_forest(fitted: Mart) -> None:
    again = Mart([BM25(fields="title,body"), LMIR(fields="title,body")], **SMALL).fit(movie_graph())
    assert again.trees_ == fitted.trees_


def test_regression_and_monotone_trees() -> None:
    model = build_model("mart:bm25", SMALL | {"objective": "regression", "monotone": True, "max_lists": "60"})
    model.fit(movie_graph())
    assert isinstance(model, Mart)
    assert "objective=regression" in model.trees_
    names = model.feature_names_
    x = np.zeros((50, len(names)), dtype=np.float32)
    x[:, names.index("bm25")] = np.linspace(-1, 9, 50)
    assert (np.diff(model._booster.predict(x)) >= 0).all()
    assert any("60 cross-fitted lists" in note for note in model.notes_)


def test_a_log_without_pages_pools_what_the_parts_find() -> None:
    graph = movie_graph(pages=False)
    model = Mart([BM25(fields="title,body")], **SMALL).fit(graph)
    assert model.trees_
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
    assert not model.trees_
    assert any("too few for trees" in note for note in model.notes_)
    ids = small_graph.doc_ids
    parts = [standardised(part.score("ny pizza", ids)) for part in model.parts]
    found = model.score("ny pizza", ids)
    known = np.isfinite(found)
    np.testing.assert_allclose(found[known], np.sum(parts, axis=0)[known])


def test_features_as_a_letor_file(fitted: Mart, tmp_path: Path) -> None:
    lists = [ResultList("7", "name3", ["d1", "d3"], [0.0, 2.0]), ResultList("8", "name4", ["d4", "nowhere"])]
    fitted.write_letor(tmp_path / "x.letor", lists)
    names, rows = read_letor(str(tmp_path / "x.letor"))
    assert [name.replace("_", " ") for name in names] == fitted.feature_names_
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
    held = next(iter(clickbridge.graph.hold_back.folds(ClickGraph.build(records, []), 2, by="query")))
    lists = held.lists([lambda key, k: ["often0", "seldom0"]])
    asked = crossfit.times_asked(held, lists)
    assert {(r.query.split()[0], n) for r, n in zip(lists, asked, strict=True)} == {("often", 10.0), ("seldom", 1.0)}


def test_recent_clicks_are_told_from_old_ones() -> None:
    day = 86400.0
    records = [PairCount("film", "old", 1, time=0.0)] * 5 + [PairCount("film", "new", 1, time=70 * day)] * 2
    docs = [Document(d, {"title": d}) for d in ("old", "new")]
    graph = ClickGraph.build(records, docs)
    features = ListFeatures.fit(graph, "english", "keep")
    flat = FlatLists.of(
        [ResultList("1", "film", ["old", "new"])],
        {"old": graph.doc_ids.index("old"), "new": graph.doc_ids.index("new")},
    )
    columns = features.columns(flat, [BM25().fit(graph)])
    assert columns["same query"][0] > columns["same query"][1]
    assert columns["same query lately"][1] > columns["same query lately"][0]
    assert columns["clicks lately"][0] == pytest.approx(5 * 2 ** (-70 / 7))
    timeless = ListFeatures.fit(ClickGraph.build([PairCount("film", "old", 5)], docs), "english", "keep")
    assert not [name for name in timeless.columns(flat, [BM25().fit(graph)]) if "lately" in name]


def test_forests_that_share_their_parts_are_those_fitted_apart() -> None:
    graph, lists = movie_graph(), [ResultList("1", "name3 word2", ["d1", "d3", "d5"])]

    def forests() -> list[Mart]:
        bodies = (LMIR(fields="body"), BM25(fields="body"), BM25(fields="body", k1=2.0))
        return [Mart([BM25(fields="body"), *bodies[:n]], **SMALL) for n in (1, 2, 3)]

    fits: list[Model] = []

    class Counting(LMIR):
        def refit(self, graph: ClickGraph) -> Counting:
            fits.append(self)
            return super().refit(graph)

    apart, shared = [mart.fit(graph) for mart in forests()], forests()
    for forest in shared:
        forest.parts[1] = Counting(fields="body")
    fit_together(shared, graph)
    assert len(fits) == shared[0].folds + 1
    assert shared[0].parts[0] is shared[1].parts[0] is shared[1].parts[2]
    assert shared[2].parts[3] is not shared[2].parts[2]
    for one, other in zip(apart, shared, strict=True):
        assert other.score_lists(lists)[0].tolist() == one.score_lists(lists)[0].tolist()
        assert other.report_["importance"] == one.report_["importance"]
    with pytest.raises(SettingError, match="folds"):
        fit_together([forests()[0], Mart([BM25()], folds=3)], graph)
