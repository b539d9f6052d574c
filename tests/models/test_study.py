"""One GRAPH under study: each question is answered once, whatever and however many models ask it."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clickbridge import ClickGraph, build_model
from clickbridge.graph.hold_back import HoldBack
from clickbridge.models import ascent, lexical, study
from clickbridge.models.study import Study
from clickbridge.settings import Counting
from clickbridge.types import Impression
from oracles.graphs import noisy_field_graph

FOLLOWED = ["bm25+pls", "robust:bm25", "bm25+pls+cos-click", "bm25+lmir+cos-word", "rrf:bm25+pls"]


@pytest.fixture(scope="module")
def graph() -> ClickGraph:
    """Enough pages that field weights, weights of a sum and kernels are learned."""
    return noisy_field_graph(600)


class Followed:
    """Notes what is asked of every GRAPH while a model is fitted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held: Counter[Any] = Counter()
        self.weights: Counter[Any] = Counter()
        self.counted: Counter[Any] = Counter()
        self.learned: list[str] = []
        self._alive: list[Any] = []  # an id is a GRAPH's own for as long as it lives
        hold_back, field_weights, count_fields = ClickGraph.hold_back, ascent._field_weights, study.count_fields
        learn = lexical.LexicalModel.learn

        def held(graph: ClickGraph, fraction: float = 0.1, by: str = "auto", seed: int = 0) -> HoldBack:
            self.held[self._of(graph), fraction, by, seed] += 1
            return hold_back(graph, fraction, by, seed)

        def weights(formula: Any, language: str, stop_words: str, seed: int, over: Study) -> Any:
            self.weights[self._of(over.graph), formula, language, stop_words, seed] += 1
            return field_weights(formula, language, stop_words, seed, over)

        def counts(counter: Any, texts: Any, n: int) -> Any:
            self.counted[tuple(texts)] += 1
            return count_fields(counter, texts, n)

        def learned(model: Any, over: Study, choices: Any) -> Any:
            self.learned.append(model.name)
            return learn(model, over, choices)

        monkeypatch.setattr(ClickGraph, "hold_back", held)
        monkeypatch.setattr(ascent, "_field_weights", weights)
        monkeypatch.setattr(study, "count_fields", counts)
        monkeypatch.setattr(lexical.LexicalModel, "learn", learned)

    def _of(self, graph: ClickGraph) -> int:
        self._alive.append(graph)
        return id(graph)


@pytest.mark.parametrize("spec", FOLLOWED)
def test_no_question_is_asked_twice(spec: str, graph: ClickGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Followed(monkeypatch)
    build_model(spec, {"pls.dim": 5} if "pls" in spec else {}).fit(graph)
    assert asked.held
    assert set(asked.held.values()) == {1}, "no GRAPH is split twice in the same way"
    assert set(asked.weights.values()) == {1}, "no field weights are learned twice"
    assert asked.counted == {tuple(graph.field_names): 1}, "no text is counted twice"


@pytest.mark.parametrize(
    ("spec", "learned"),
    [
        # Once on the rest of a hold-back, to choose; once on everything.
        ("bm25+pls", ["bm25"] * 2),
        ("bm25+pls+cos-click", ["bm25"] * 2),
        ("robust:bm25", ["bm25"] * 2),
        ("rrf:bm25+pls", ["bm25"]),
        ("pls", []),
        ("cos-word", ["cos-word"]),
    ],
)
def test_there_is_no_hidden_second_bm25(
    spec: str, learned: list[str], graph: ClickGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What pls and cos-word need of BM25 are its field weights, learned where it learns its own."""
    asked = Followed(monkeypatch)
    build_model(spec, {"pls.dim": 5} if "pls" in spec else {}).fit(graph)
    assert asked.learned == learned
    assert len(asked.weights) == 1, "field weights of one formula, on one GRAPH"


def test_models_on_one_study_share_what_was_found_out(graph: ClickGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    apart = [build_model(spec).fit(graph) for spec in ("bm25", "cos-word", "bm25+cos-word")]
    asked, over = Followed(monkeypatch), Study(graph)
    shared = [build_model(spec).fit_on(over) for spec in ("bm25", "cos-word", "bm25+cos-word")]
    assert set(asked.held.values()) == set(asked.weights.values()) == set(asked.counted.values()) == {1}
    for one, other in zip(apart, shared, strict=True):
        assert other.score("w3x", graph.doc_ids).tobytes() == one.score("w3x", graph.doc_ids).tobytes()
        assert other.fitted.choices == one.fitted.choices


@pytest.mark.parametrize("spec", ["bm25+pls", "robust:bm25", "bm25+walk", "cos-click"])
def test_fitting_on_an_opened_graph_needs_no_database(spec: str, graph: ClickGraph, tmp_path: Path) -> None:
    graph.save(tmp_path / "graph")
    code = (
        "import sys; from clickbridge import ClickGraph, build_model\n"
        f"model = build_model({spec!r}).fit(ClickGraph.open({str(tmp_path / 'graph')!r}))\n"
        f"model.rank('w3x'); model.save({str(tmp_path / 'model')!r}); print('duckdb' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "False"), done.stderr


# --- the study itself --------------------------------------------------------------------------------


def test_an_answer_is_kept_under_its_key(small_graph: ClickGraph) -> None:
    over, calls = Study(small_graph), list[int]()

    def answer() -> int:
        calls.append(1)
        return len(calls)

    assert [over.once(("a", 1), answer), over.once(("a", 1), answer), over.once(("a", 2), answer)] == [1, 1, 2]
    assert over.once("nothing", lambda: None) is None


def test_a_failed_answer_is_not_kept(small_graph: ClickGraph) -> None:
    over = Study(small_graph)
    with pytest.raises(ZeroDivisionError):
        over.once("a", lambda: 1 / 0)
    assert over.once("a", lambda: 7) == 7


def test_the_rest_of_a_hold_back_is_a_study_of_its_own(graph: ClickGraph) -> None:
    told: list[str] = []
    over = Study(graph, progress=told.append)
    held, rest = over.hold_back(0.2, 3)
    assert over.hold_back(fraction=0.2, seed=3)[1] is rest
    assert over.hold_back(0.2, 4)[1] is not rest
    assert rest.graph is held.graph
    assert rest.catalogue is over.catalogue
    assert rest.engine is over.engine
    rest.progress("a line")
    assert told == ["a line"]
    names = graph.field_names
    assert rest.words(names, "english", "keep")[1] is over.words(names, "english", "keep")[1]
    assert int(np.sum(rest.graph.pairs.clicks)) < int(np.sum(graph.pairs.clicks))
    folds = over.folds(3, seed=0)
    assert over.folds(3, seed=0) is folds
    assert all(fold.catalogue is over.catalogue for _, fold in folds)


def test_known_queries_are_one_object_for_all_who_know_the_same() -> None:
    pages = [Impression(f"q{i}", ["a", "b"], ["a"] * (i > 0)) for i in range(4)] * 2
    graph = ClickGraph.build([*pages, Impression("once", ["a"], ["a"])])
    over = Study(graph)
    plain, twice = over.clicked(), over.clicked(Counting(min_clicks=2))
    assert plain.queries.keys == ["once", "q1", "q2", "q3"]
    assert twice.queries.keys == ["q1", "q2", "q3"]
    assert over.clicked(Counting()).queries is plain.queries
    assert over.clicked(Counting(min_clicks=2)) is twice
    assert twice.notes == over.clicked(Counting(min_clicks=2)).notes


def test_encoders_are_told_apart_however_long_they_live(small_graph: ClickGraph) -> None:
    """An encoder that is gone may leave its address to the next one."""
    over, seen = Study(small_graph), []
    for size in range(1, 20):
        encoded = over.encoded({"m": lambda texts, size=size: [[1.0] * size] * len(texts)})
        seen.append(encoded.graph.vectors["m"]["doc"].shape[1])
    assert seen == list(range(1, 20))
    assert over.encoded({}) is over
