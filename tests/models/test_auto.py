"""`auto` on the contract's GRAPH: what it tries, what it takes, and that what it saves is the model it took."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import clickbridge
from clickbridge import Auto, ClickGraph, build_model
from clickbridge.engines.local import Local
from clickbridge.errors import EngineError, NoRoom, SettingError
from clickbridge.models.auto import CLOSE, Contest, Trial, budget_seconds
from clickbridge.models.jury import Jury
from clickbridge.models.ladder import Candidate, candidates
from clickbridge.models.study import Study
from clickbridge.types import Document, Impression, PairCount
from contract.conftest import townhall_graph

FEW = "bm25,bm25+pls,robust:bm25"


@pytest.fixture(scope="module")
def graph() -> ClickGraph:
    return townhall_graph()


@pytest.fixture(scope="module")
def auto(graph: ClickGraph) -> Auto:
    return Auto(candidates=FEW).fit(graph)


def test_it_takes_the_best_of_what_it_tried(auto: Auto) -> None:
    record = auto.report_["auto"]
    reached = {trial["spec"]: trial["ndcg"] for trial in record["trials"]}
    assert set(reached) == set(FEW.split(","))
    assert reached[record["chosen"]] >= max(reached.values()) - CLOSE
    assert reached["bm25+pls"] > reached["bm25"], "half of the queries use words that no document has"


@pytest.mark.parametrize("spec", ["bm25+pls", "mart:bm25+lmir"])
def test_it_answers_as_its_choice_fitted_by_name(spec: str, graph: ClickGraph) -> None:
    """Weights and trees of the trial have not seen what was held back, the latest clicks of a log with times."""
    auto, named = Auto(candidates=spec).fit(graph), build_model(spec).fit(graph)
    assert auto.chosen_model.spec == auto.report_["auto"]["chosen"] == spec
    for query in ("stream", "old river", "town"):
        np.testing.assert_array_equal(auto.score(query, graph.doc_ids), named.score(query, graph.doc_ids))


def test_what_is_saved_is_the_choice_with_its_record(auto: Auto, tmp_path: Path) -> None:
    auto.save(tmp_path / "m")
    loaded = clickbridge.load(tmp_path / "m")
    assert loaded.spec == auto.report_["auto"]["chosen"]
    assert loaded.report_["auto"] == auto.report_["auto"]
    assert loaded.rank("old river").doc_ids == auto.rank("old river").doc_ids


def test_it_says_so_in_five_lines(auto: Auto) -> None:
    said = [note for note in auto.notes_ if note.startswith("auto: ")]
    assert 3 <= len(said) <= 5
    assert "tried bm25 0." in said[1]
    assert any(f"takes {auto.report_['auto']['chosen']}" in line for line in said)


def test_refit_learns_the_same_choice(auto: Auto) -> None:
    again = Auto(candidates=FEW)
    again.fitted_ = auto.fitted
    again.refit(townhall_graph(seed=6))
    assert again.report_["spec"] == auto.report_["spec"]
    assert again.report_["auto"] == auto.report_["auto"]


def test_a_budget_leaves_out_what_is_dear(graph: ClickGraph) -> None:
    ladder = candidates(graph)
    assert [c.seconds for c in ladder] == sorted(c.seconds for c in ladder)
    some = Auto(budget=f"{ladder[2].seconds + 0.01}s").fit(graph).report_["auto"]["trials"]
    left = {trial["spec"]: trial["left_out"] for trial in some if "left_out" in trial}
    assert "mart:bm25+pls" in left
    assert "budget" in left["mart:bm25+pls"]


def test_what_does_not_fit_in_memory_is_left_out(graph: ClickGraph) -> None:
    auto = Auto(candidates="bm25,bm25+pls").fit(graph, engine=Local(memory=4096))
    record = auto.report_["auto"]
    assert record["chosen"] == "bm25"
    left = {trial["spec"]: trial.get("left_out", "") for trial in record["trials"]}
    assert "raise memory" in left["bm25+pls"]


def least_memory(spec: str, graph: ClickGraph) -> int:
    """The fewest bytes with which its plan is not refused."""

    def fits(memory: int) -> bool:
        try:
            build_model(spec).plans(graph, Local(memory=memory))
        except NoRoom:
            return False
        return True

    low, high = 0, 1 << 30
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def test_where_all_of_the_log_does_not_fit_the_next_best_is_taken(graph: ClickGraph) -> None:
    """Most of it did."""
    memory = least_memory("pls", graph) - 1
    auto = Auto(candidates="bm25,bm25+pls").fit(graph, engine=Local(memory=memory))
    record = auto.report_["auto"]
    assert record["trials"][1]["ndcg"] > record["trials"][0]["ndcg"], "both were tried"
    assert record["chosen"] == auto.chosen_model.spec == "bm25"
    assert [note for note in auto.notes_ if "takes bm25 after all: bm25+pls does not fit" in note]
    with pytest.raises(NoRoom, match="raise memory"):
        Auto(candidates="bm25+pls").fit(graph, engine=Local(memory=memory))


def test_an_engine_that_cannot_be_reached_is_no_matter_of_memory(
    graph: ClickGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*given: object) -> None:
        raise EngineError("the cluster does not answer")

    monkeypatch.setattr("clickbridge.models.pls.fitting_plan", away)
    with pytest.raises(EngineError, match="does not answer"):
        Auto(candidates="bm25,bm25+pls").fit(graph)


def test_candidates_depend_on_the_log_alone(graph: ClickGraph) -> None:
    assert candidates(graph) == candidates(townhall_graph())
    specs = {candidate.spec for candidate in candidates(graph)}
    assert {"given", "bm25", "bm25+pls", "mart:bm25+pls"} <= specs
    bare = ClickGraph.build([PairCount(f"q{i}", f"d{i % 7}", 1) for i in range(200)], [])
    assert "bm25" not in {candidate.spec for candidate in candidates(bare)}


def test_half_lives_are_tried_where_queries_repeat_and_times_are_known(graph: ClickGraph) -> None:
    names = [candidate.name for candidate in candidates(graph)]
    assert "bm25+pls+cos-click (half_life 7)" in names
    timeless = [PairCount(f"salt {i % 9}", f"{i % 7}", 5) for i in range(200)]
    docs = [Document(f"{i}", {"title": "salt"}) for i in range(7)]
    assert not [c.name for c in candidates(ClickGraph.build(timeless, docs)) if "half_life" in c.name]
    built = Auto().built("bm25+pls+cos-click", {"cos-click.half_life": 7.0})
    assert built.get_params()["cos-click__half_life"] == 7.0
    assert built.get_params()["pls__half_life"] == 0.0


def test_a_small_log_gets_bm25_and_a_line() -> None:
    docs = [Document("a", {"title": "salt mine"}), Document("b", {"title": "river"})]
    auto = Auto().fit(ClickGraph.build([Impression("salt", ["a", "b"], ["a"])], docs))
    assert auto.report_["spec"] == "bm25"
    assert "50 are needed" in auto.notes_[0]


def test_settings_reach_the_candidates() -> None:
    built = Auto(half_life=30, seed=3).built("bm25+pls")
    assert built.get_params()["pls__half_life"] == 30
    assert built.get_params()["bm25__seed"] == 3


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), ("2h", 7200), ("45", 45), ("1.5m", 90)])
def test_budgets(text: str, seconds: float) -> None:
    assert budget_seconds(text) == seconds


@pytest.mark.parametrize("settings", [{"budget": "soon"}, {"candidates": "bm25,nonsense"}])
def test_bad_settings_are_refused_before_any_work(settings: dict[str, str], graph: ClickGraph) -> None:
    with pytest.raises(SettingError):
        Auto(**settings).fit(graph)


# --- the rule, on made-up values ---------------------------------------------------------------------


def contest(jury: Jury, **means: float) -> Contest:
    """Trials whose values are those of `given` (half right) plus so much, evenly."""
    found = Contest(Auto(), jury, 1.0)
    noise = np.random.default_rng(0).random(len(jury))
    for spec, mean in means.items():
        values = noise + mean
        found.trials[spec] = Trial(Candidate(spec, 1.0), values, jury.mean(values), spec != "given")
    return found


@pytest.fixture(scope="module")
def jury(graph: ClickGraph) -> Jury:
    return Jury(Study(graph, shares=True))


def test_the_simpler_of_two_that_are_close(jury: Jury) -> None:
    assert contest(jury, bm25=0.3, pls=0.3009, mart=0.2).best().spec == "bm25"
    assert contest(jury, bm25=0.3, pls=0.3011, mart=0.2).best().spec == "pls"


def test_never_worse_than_the_given_order(jury: Jury) -> None:
    assert contest(jury, given=0.5, bm25=0.3, pls=0.4).best().spec == "given"
    assert contest(jury, given=0.3, bm25=0.3, pls=0.4).best().spec == "pls"


def test_without_text_the_given_order_stays_unless_something_is_surely_better() -> None:
    pages = [Impression(f"q{n % 50}", ["a", "b", "c"], ["a"], time=float(n)) for n in range(600)]
    found = contest(Jury(Study(ClickGraph.build(pages, []))), given=0.3)
    noise = np.random.default_rng(1).standard_normal(len(found.jury)) + 0.02
    for spec, gained in (("given+cos-click", noise), ("online:given", 0.0 * noise + 0.002)):
        values = found.trials["given"].values + gained
        found.trials[spec] = Trial(Candidate(spec, 1.0), values, found.jury.mean(values), True)
    assert found.best().spec == "online:given"
    del found.trials["online:given"]
    assert found.best().spec == "given"


def test_the_jury_pairs_searches(jury: Jury, graph: ClickGraph) -> None:
    bm25 = jury.values(build_model("bm25").fit_on(jury.rest).fitted)
    given = jury.values(build_model("given").fit_on(jury.rest).fitted)
    gain = jury.gain(bm25, given)
    assert gain.mean == pytest.approx(bm25.mean() - given.mean())
    assert jury.gain(bm25, bm25).bounds() == (0.0, 0.0)


def test_without_pages_a_candidate_must_find_what_was_clicked() -> None:
    """What a model does not find counts nothing, though it could tell it from others."""
    docs = [Document(f"d{i}", {"title": f"word{i}"}) for i in range(80)]
    clicks = [PairCount(f"word{i} please", f"d{i}", 1, time=float(i)) for i in range(80)]
    clicks += [PairCount("nothing like it", f"d{i}", 3, time=100.0 + i) for i in range(5)]
    jury = Jury(Study(ClickGraph.build(clicks, docs)))
    values = jury.values(build_model("bm25").fit_on(jury.rest).fitted)
    found = dict(zip(jury.candidates.keys, values.tolist(), strict=True))
    assert found.pop("nothing like it") == 0.0
    assert all(value == 1.0 for value in found.values())
    assert jury.weights.max() > 1, "a query counts as often as it was clicked"


def test_where_the_given_order_beats_all_that_search_a_sum_with_it_still_searches() -> None:
    """People want the first result, whatever the words say."""
    rng = np.random.default_rng(0)
    docs = [Document(f"d{i}", {"title": f"word{i % 7} word{i}"}) for i in range(60)]
    pages = []
    for n in range(600):
        shown = [f"d{i}" for i in rng.permutation(60)[:8]]
        pages.append(Impression(f"word{n % 7} word{int(rng.integers(60))}", shown, shown[:1], time=float(n)))
    model = Auto(candidates="auto", budget="1s").fit(ClickGraph.build(pages, docs))
    trials = {trial["spec"]: trial for trial in model.fitted.report["auto"]["trials"]}
    assert trials["given"]["ndcg"] > trials["bm25"]["ndcg"]
    assert model.chosen_model.fitted.spec in ("given+bm25", "online:given+bm25")
    assert model.rank("word3")
