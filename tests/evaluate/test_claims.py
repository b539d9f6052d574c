"""When a claim of a paper holds: verdicts by tests, and what they leave out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clickbridge import ClickGraph
from clickbridge.evaluate.reproduction import claims_of_11, paper09, paper11m, paper13, rmls_runs, verdicts
from clickbridge.evaluate.reproduction.bench import NDCG, NO_SCORE, Data, Trial, built, key_of
from clickbridge.evaluate.reproduction.claims import CLAIMS
from clickbridge.evaluate.reproduction.lab import Lab
from clickbridge.evaluate.reproduction.relevance_rows import (
    Line,
    own_tests,
    relevance_table,
    sign_on,
    signs,
    t_on,
    without_scores,
)
from clickbridge.evaluate.reproduction.run import TABLES
from clickbridge.evaluate.similar import Judgments
from clickbridge.models.specs import parse_spec
from clickbridge.online.groups import Move
from clickbridge.types import Document, Impression, ResultList


def a_week(values: dict[str, list[float]]) -> Data:
    """Judged queries whose nDCG under each model is given."""
    lists = [ResultList(str(n), str(n), ["a"], [1.0]) for n in range(max(map(len, values.values())))]
    data = Data("made up", "", ClickGraph.build([Impression("q", ["a", "b"], ["a"])]), {"seen": lists, "unseen": lists})
    for spec, own in values.items():
        by_query = {str(n): value for n, value in enumerate(own)}
        data._trials[key_of(spec, {})] = Trial(0.0, {"seen": dict.fromkeys(NDCG, by_query)})
    return data


def test_verdicts() -> None:
    rng = np.random.default_rng(0)
    low = rng.random(60) / 2
    high = low + 0.2 + rng.random(60) / 10
    data = a_week({"bm25": low.tolist(), "pls": high.tolist(), "walk": (low + rng.normal(0, 0.1, 60)).tolist()})
    bm25, pls, walk = (Line(spec.upper(), spec, ()) for spec in ("bm25", "pls", "walk"))
    test = t_on("nDCG@5")
    assert verdicts.beats(data, pls, bm25, test).word == "holds"
    assert verdicts.beats(data, bm25, pls, test).word == "fails"
    assert verdicts.beats(data, walk, bm25, test).word == "not significant"
    assert verdicts.level(data, walk, bm25, test).word == "holds"
    assert verdicts.level(data, pls, bm25, test).word == "fails"
    assert verdicts.not_below(data, pls, bm25, test).word == "holds"
    both = verdicts.beats_all(data, walk, [bm25, pls], test)
    assert both.word == "fails"
    assert "below PLS; level with BM25 (t-test)" in both.figures
    absent = verdicts.beats_all(data, pls, [bm25, Line("RW", "rmls", ())], test)
    assert absent.word == "holds"
    assert "above BM25; no figures of RW (t-test)" in absent.figures
    assert verdicts.higher(high, low, "against").word == "holds"
    assert verdicts.higher(low, high, "against").word == "fails"
    assert verdicts.higher(low, low, "against").word == "not significant"
    assert verdicts.higher(low[:1], high, "against") == verdicts.NOT_TESTED
    few = verdicts.beats(data, pls, bm25, test, only={"0"})
    assert few == verdicts.NOT_TESTED
    assert verdicts.beats(data, pls, bm25, sign_on("nDCG@5")).figures.endswith("sign test p <.001")
    assert verdicts.all_of([few, verdicts.Verdict("holds", "a"), verdicts.Verdict("fails", "b")]) == ("fails", "a; b")
    assert verdicts.within(49.1, 40, 60, "49.1%").word == "holds"
    seldom = np.array([1.0, 1.0, 1.0, -9.0])
    assert verdicts.by_mean(float(seldom.mean()), 0.01, "").word == "fails"
    apart = verdicts.by_gains(seldom, 0.01, "p .010", signs)
    assert apart == ("not significant", "p .010, but 3 up, 1 down and -1.5000 on average")
    assert verdicts.by_gains(np.array([1.0, 1.0, 1.0, -0.5]), 0.01, "", signs).word == "holds"


def test_gains_that_are_many_and_small_are_not_marked() -> None:
    """The sign test is sure of 60 small losses; on average the row has gained."""
    low = np.full(80, 0.5)
    mixed = low + np.where(np.arange(80) < 60, -0.001, 0.1)
    data = a_week({"bm25": low.tolist(), "pls": mixed.tolist()})
    pls, bm25 = Line("PLS", "pls", ()), Line("BM25", "bm25", ())
    table = own_tests("12-2", data, [pls, bm25], ["PLS"], sign_on("nDCG@5"))
    assert table.rows[1].ours == ("+0.024, p <.001",)
    assert own_tests("12-2", data, [pls, bm25], ["PLS"], t_on("nDCG@5")).rows[1].ours == ("+0.024, p <.001 ▲▲",)


def test_a_sum_with_a_model_without_scores_is_no_model_of_its_own() -> None:
    """Where the walk has no score, walk+bm25 is bm25 once more: it neither counts in an order nor as a baseline."""
    rng = np.random.default_rng(0)
    low = rng.random(40)
    data = a_week(
        {"bm25": low.tolist(), "walk+bm25": low.tolist(), "pls": (low + 0.1).tolist(), "lsi-dt": low.tolist()}
    )
    data._trials[key_of("walk", {})] = Trial(0.0, {"seen": NO_SCORE})
    lines = [Line(spec, spec, (n,)) for n, spec in enumerate(("pls", "bm25", "walk+bm25", "walk", "lsi-dt"))]
    assert without_scores(data, lines) == {"walk", "walk+bm25"}
    table = relevance_table("13-2", "", data, lines, with_map=False)
    assert "over 3 models" in table.notes[0]
    assert "over 3 models" in verdicts.same_order(data, lines, "nDCG@5", 0).figures
    found = verdicts.beats_all(data, lines[0], lines[1:], t_on("nDCG@5"))
    assert "above bm25, lsi-dt; no figures of walk+bm25, walk" in found.figures


def test_a_rise_that_chance_would_give_too() -> None:
    """Results of rank 6 to 10 of 10 go to rank 5 or 6: they rise, and a random order lifts them as far."""
    rng = np.random.default_rng(0)
    found = [Move(int(before), int(rng.integers(5, 7)), 10) for before in rng.integers(6, 11, 400)]
    data = a_week({"bm25": [0.5]})
    condition = paper09.Condition(data, [], (), (), "")
    data.once(("moves", paper09.PRINTED), lambda: found)
    assert claims_of_11._moved(condition, paper09.PRINTED, 6, 20, 1.0).word == "holds"
    assert claims_of_11._above_middle(condition, paper09.PRINTED, 6, 20).word == "not significant"
    better = [m._replace(after=2) for m in found]
    data = a_week({"bm25": [0.5]})
    data.once(("moves", paper09.PRINTED), lambda: better)
    assert claims_of_11._above_middle(condition._replace(data=data), paper09.PRINTED, 6, 20).word == "holds"


def test_an_order_that_moves_nothing_says_nothing_of_f() -> None:
    """Where no page is on enough lists, f is 0 for all and every result stays."""
    found = [Move(rank, rank, 10) for rank in range(6, 11)] * 20
    data = a_week({"bm25": [0.5]})
    condition = paper09.Condition(data, [], (), (), "")
    data.once(("moves", paper09.PRINTED), lambda: found)
    assert claims_of_11._moved(condition, paper09.PRINTED, 6, 20, 1.0) == verdicts.NOT_TESTED
    assert claims_of_11._above_middle(condition, paper09.PRINTED, 6, 20) == verdicts.NOT_TESTED


def test_every_claim_names_a_table_that_there_is() -> None:
    assert {claim.table for claim in CLAIMS} <= set(TABLES)
    assert {claim.where.split()[0] for claim in CLAIMS} == {"13", "12", "11M", "11R", "09"}


def test_similarities_on_clicks_are_tested_query_by_query() -> None:
    """A mean that is higher by one query in a hundred decides nothing."""
    low, high = np.zeros(100), np.tile([0.0, 1.0], 50)
    found = claims_of_11._above_jaccard({"Jaccard": low, "Pearson": high, "Jensen-Shannon": high}, "Pearson")
    assert found.word == "holds"
    hardly = low.copy()
    hardly[0] = 1.0
    found = claims_of_11._above_jaccard({"Jaccard": low, "Pearson": hardly, "Jensen-Shannon": high}, "Pearson")
    assert found.word == "not significant"
    assert "P@3 of Pearson 0.010, of Jaccard 0.000, t-test p .320" in found.figures
    assert claims_of_11._above_jaccard({}, "Pearson").word == "not tested"


def test_what_11m_says_of_both_tables_is_tested_on_both() -> None:
    said = [{claim.words.split(",")[0] for claim in CLAIMS if claim.table == key} for key in ("11M-3", "11M-4")]
    assert said[0] == said[1]


def test_pairs_that_judgments_do_not_bear_out() -> None:
    """d2 was clicked below d1 and is worse, d4 below d3 and is as good, d6 below d5 and is better."""
    log = [Impression("q", [f"d{n}", f"d{n + 1}"], [f"d{n + 1}"]) for n in (1, 3, 5)]
    judged = [ResultList("1", "q", [f"d{n}" for n in range(1, 7)], [2.0, 1.0, 1.0, 1.0, 0.0, 3.0])]
    data = Data("pairs", "", ClickGraph.build(log), {"seen": judged, "unseen": judged})
    found = rmls_runs.judged_pairs(data)
    assert found is not None
    assert (found["judged"], found["agree"], found["tie"], found["contradict"]) == (3, 1, 1, 1)
    assert rmls_runs.judged_pairs(replace(data, graph=ClickGraph.build([Impression("r", ["x"], ["x"])]))) is None


def test_all_find_similar_queries_in_one_graph() -> None:
    """Queries whose pairs the threshold drops are no answers of Cos_W either: M-PLS cannot give them."""
    kept = ("apple pie", "pear pie", "fig pie", "plum pie")
    seldom = [f"apple pie {word}" for word in ("a", "b", "c", "d", "e")]
    log = [Impression(query, ["d1", "d2"], ["d1"]) for query in kept for _ in range(5)]
    log += [Impression(query, ["d1", "d2"], ["d2"]) for query in seldom]
    docs = [Document("d1", {"title": "apple pear fig plum pie"}), Document("d2", {"title": "cake"})]
    alike = Judgments.of_groups(dict.fromkeys(kept, "pie"))
    data = Data("pies", "", ClickGraph.build(log, docs), {}, alike, settings={"min_clicks": 4, "mpls.dim": 2})
    for ours in (False, True):
        found, queries, failed = paper11m.compare_similar(data, ours=ours)
        assert (queries, failed) == (4, {})
        by_words = next(p for p in found if p.baseline == "Cos_W")
        assert by_words.pos == 0, "Cos_W finds pies, not the queries that were dropped"
        shares = claims_of_11._shares(data, 0, ours, 0.25, 0.03)
        assert shares.word == "fails", "all queries are found by Cos_W too: nothing is better on a quarter of them"
        assert shares.figures.startswith("better on 0% or more")
        assert claims_of_11._shares(data, 0, ours, -0.01, 1.01).word == "holds"


@pytest.mark.parametrize(("mean", "p", "word"), [(3.0, 0.5, "holds"), (3.0, 0.01, "fails"), (-3.0, 0.01, "fails")])
def test_level_is_where_the_test_finds_nothing(mean: float, p: float, word: str) -> None:
    assert verdicts.not_apart(mean, p, "better on 5") == verdicts.Verdict(word, "better on 5")


def test_a_claim_on_every_measure_fails_with_one() -> None:
    low = np.random.default_rng(0).random(40) / 2
    data = a_week({"pls": (low + 0.2).tolist(), "bm25": low.tolist()})
    by_walk = {key: {str(n): v for n, v in enumerate(low.tolist())} for key in NDCG}
    by_walk[NDCG[0]] = dict.fromkeys(by_walk[NDCG[0]], 0.9)
    data._trials[key_of("walk", {})] = Trial(0.0, {"seen": by_walk})
    pls, bm25, walk = (Line(spec.upper(), spec, ()) for spec in ("pls", "bm25", "walk"))
    tests = [t_on(measure) for measure in NDCG]
    assert verdicts.beats_all_by(data, pls, [bm25], tests).word == "holds"
    both = verdicts.beats_all_by(data, pls, [bm25, walk], tests)
    assert both.word == "fails"
    assert "nDCG@1 .4" in both.figures
    assert "below WALK" in both.figures
    assert verdicts.beats_all_by(data, pls, [bm25, walk], tests, {"nDCG@1": "WALK"}).word == "holds"


class _OneData:
    """A lab with one data set."""

    def __init__(self, data: Data) -> None:
        self.data = data

    def relevance_sets(self, _: str) -> list[Data]:
        return [self.data]


def test_lambda_is_not_tested_where_nothing_is_learned() -> None:
    """The judged queries have no similar query: lambda is nowhere in their scores, and proves nothing."""
    log = [Impression("apple pie", ["d1", "d2", "d3"], ["d2"]), Impression("pear pie", ["d1", "d3"], ["d3"])]
    docs = [Document("d1", {"title": "apple"}), Document("d2", {"title": "fig"}), Document("d3", {"title": "pear"})]
    lists = [ResultList(str(n), query, ["d1", "d2", "d3"], [1.0, 0.0, 2.0]) for n, query in enumerate(("fig", "pear"))]
    data = Data("new", "", ClickGraph.build(log * 4, docs), {"seen": lists, "unseen": lists}, relevant=1)
    lab: Any = _OneData(data)
    ((_, printed, ours),) = claims_of_11.lambda_hardly_matters(lab)
    assert printed == ours == verdicts.NOT_TESTED


@pytest.mark.parametrize(("sign", "word"), [(1.0, "holds"), (-1.0, "fails")])
def test_a_claim_of_a_fall_is_that_of_a_rise_the_other_way(sign: float, word: str) -> None:
    rises = np.array([1.0] * 30 + [-1.0] * 5)
    assert verdicts.by_gains(rises, 0.001, "+0.71 places", signs, sign) == verdicts.Verdict(word, "+0.71 places")


def test_what_falls_is_not_said_to_rise() -> None:
    """Thirty fall by one place, twelve rise by four."""
    rises = np.array([-1.0] * 30 + [4.0] * 12)
    found = verdicts.by_gains(rises, 0.008, "+0.43 places", signs, -1.0)
    assert found == verdicts.Verdict("not significant", "+0.43 places, but 12 up, 30 down and +0.4286 on average")


def test_pls_on_half_a_year_has_words_alone_in_both_rows() -> None:
    (line,) = [line for line in paper13.HALF_YEAR if line.label == "PLS (word)"]
    for settings in (line.settings, line.ours):
        assert built(parse_spec("pls"), settings or {}).views == "word"
    trees = [tree for tree in paper13.mart_lines(Lab(Path("unused"), 0.01, 10), "13-5") if "+pls" in tree.spec]
    assert len(trees) == 2
    for tree in trees:
        for settings in (tree.settings, tree.ours):
            parts = built(parse_spec(tree.spec), settings or {}).parts  # type: ignore[attr-defined]
            assert [part.views for part in parts if part.name == "pls"] == ["word"]


@pytest.mark.parametrize(("robust", "word"), [([1.0, 1.0, 1.0], "holds"), ([0.5, 0.6, 0.7], "not tested")])
def test_lambda_is_tested_where_robust_bm25_learned(
    robust: list[float], word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may make no difference at all; where nothing is learned the scores are those of BM25."""
    base = [0.5, 0.6, 0.7]
    data = a_week({"bm25": base})
    values = {True: robust, False: base}

    def found(spec: str, settings: dict[str, Any]) -> dict[str, dict[str, float]]:
        return {data.map_name: dict(enumerate(values[spec == "robust-bm25"]))}  # type: ignore[arg-type]

    monkeypatch.setattr(data, "values", found)
    monkeypatch.setattr(claims_of_11.paper11r, "some_judged", lambda own: own)
    lab = Lab(Path("unused"), fraction=0.01, dim=10)
    monkeypatch.setattr(lab, "relevance_sets", lambda scale: iter([data]))
    ((_, printed, _),) = claims_of_11.lambda_hardly_matters(lab)
    assert printed.word == word


def test_dimensions_below_the_least_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(Path("unused"), fraction=0.01, dim=30)
    data = a_week({"mpls": [0.5, 0.6]})
    monkeypatch.setattr(lab, "simulated", lambda scale: data)
    monkeypatch.setattr(paper11m, "dimensions", lambda lab, data: [50, 90])
    ((_, printed, ours),) = claims_of_11.others_with_dimensions("one-week", paper11m.WEB)(lab)
    assert printed == ours == verdicts.NOT_TESTED
