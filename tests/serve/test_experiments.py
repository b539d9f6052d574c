"""Experiments: pages of two models, credit from clicks, and a test that may be looked at any time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import betaln

from clickbridge.errors import SettingError
from clickbridge.serve.config import Config, two_names
from clickbridge.serve.experiments import Experiment, always_valid_p
from running import Running

IDS = ["bagel", "rome", "ny", "pizza"]


def test_two_models_on_one_page(serve: Callable[..., Running]) -> None:
    live = serve("bm25", "cos-click", experiment=("bm25", "cos-click"))
    firsts = {model: live.rank("ny pizza", IDS, model=model) for model in ("bm25", "cos-click")}
    answer = live.post("/rank", {"query": "ny pizza", "documents": IDS}).json()
    assert answer["model"] == "bm25:cos-click"
    assert sorted(r["doc_id"] for r in answer["results"]) == sorted(IDS)
    assert answer["results"][0]["doc_id"] in {order[0] for order in firsts.values()}
    assert len(live.get("/search", q="ny pizza", k=2).json()["results"]) == 2
    named = live.post("/rank", {"query": "ny pizza", "documents": IDS, "model": "bm25"}).json()
    assert named["model"] == "bm25", "who names a model gets that one"


def test_credit_and_report(serve: Callable[..., Running]) -> None:
    """People who want what only the second model knows."""
    live = serve("bm25", "cos-click", experiment=("bm25", "cos-click"))
    empty = live.get("/experiments").json()["experiments"][0]
    assert (empty["wins"], empty["losses"], empty["p_value"], empty["decided"]) == (0, 0, 1.0, False)
    for number in range(60):
        answer = live.post("/rank", {"query": "ny pizza", "documents": IDS}).json()
        shown = (
            live.service.writer.find(answer["query_id"])
            or live.service.store.shown([answer["query_id"]])[answer["query_id"]]
        )
        wanted = next(d for d, team in zip(shown.results, shown.teams, strict=True) if team == 1)
        live.feedback({"event_id": f"e{number}", "query_id": answer["query_id"], "clicks": [wanted]})
    report = live.get("/experiments").json()["experiments"][0]
    assert (report["wins"], report["losses"], report["leader"]) == (0, 60, "cos-click")
    assert report["decided"]
    assert report["p_value"] < 1e-10


def test_without_an_experiment_there_is_none(serve: Callable[..., Running]) -> None:
    assert serve("bm25").get("/experiments").json() == {"experiments": []}


def test_the_p_value_is_that_of_the_mixture() -> None:
    for wins, losses in ((0, 0), (3, 1), (40, 60), (500, 400)):
        evidence = np.exp(betaln(wins + 1, losses + 1) + (wins + losses) * np.log(2))
        assert always_valid_p(wins, losses) == pytest.approx(min(1.0, 1 / evidence))


def test_looking_all_the_time_does_not_deceive() -> None:
    """Of models that are equal, at most one in twenty experiments may ever look decided; of unequal ones most do."""
    rng = np.random.default_rng(1)

    def ever_decided(p: float, runs: int = 400, pages: int = 400) -> float:
        wins = (rng.random((runs, pages)) < p).cumsum(axis=1)
        n = np.arange(1, pages + 1)
        evidence = betaln(wins + 1, n - wins + 1) + n * np.log(2)
        return float((evidence.max(axis=1) > np.log(20)).mean())

    assert ever_decided(0.5) <= 0.05
    assert ever_decided(0.65) >= 0.95


def test_interleaving_is_fair() -> None:
    """Either side brings the first result equally often."""
    experiment = Experiment("a", "b")
    one, two = [("x", 2.0), ("y", 1.0)], [("y", 5.0), ("x", 4.0)]
    pages = [experiment.interleave(one, two, 1) for _ in range(400)]
    assert 140 < sum(ordered[0][0] == "x" for ordered, _ in pages) < 260
    assert all((ordered[0], teams) in ((("x", 2.0), (0,)), (("y", 5.0), (1,))) for ordered, teams in pages)


def test_names_of_an_experiment() -> None:
    assert two_names("a, b") == ("a", "b")
    for text in ("a", "a,a", "a,b,c"):
        with pytest.raises(SettingError):
            two_names(text)
    with pytest.raises(SettingError, match="compares two of the models"):
        Config(models={"a": "m"}, store="sqlite://", experiment=("a", "b")).check()
