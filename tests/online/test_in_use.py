"""Rank groups, interleaving, simulated use, and the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import clickbridge
from clickbridge import ClickGraph, build_model
from clickbridge.cli.app import app
from clickbridge.online.groups import Move, moves, rank_groups
from clickbridge.online.interleave import Verdict, compare, team_draft
from clickbridge.online.simulated import against_the_engine, learning_curve, quality
from clickbridge.types import Document, Impression, ResultList
from oracles.pages import random_pages


def test_moves_and_groups() -> None:
    found = [*moves(["a", "b", "c"], ["c", "a", "b"], ["c", "a", "elsewhere"]), Move(8, 10, 20)]
    assert found == [Move(3, 1, 3), Move(1, 2, 3), Move(8, 10, 20)]
    rows = {row.group: row for row in rank_groups(found)}
    assert list(rows) == ["all", "1-5", "6-20", "6-10"]
    assert rows["1-5"][1:5] == (2, 0.5, 0.5, 0.5)
    assert rows["6-10"][1:] == pytest.approx((1, -2, 0, 1, 8 - 10.5, 7 / 20, 12 / 20))
    assert rank_groups([]) == []


def test_the_random_baseline_is_that_of_random_orders() -> None:
    rng = np.random.default_rng(0)
    found = [Move(3, int(rng.integers(1, 11)), 10) for _ in range(20_000)]
    row = rank_groups(found)[0]
    assert row[2:5] == pytest.approx(row[5:], abs=0.05)


@settings(deadline=None)
@given(st.permutations(list("abcdef")), st.permutations(list("abcdef")), st.integers(0, 999))
def test_team_draft_shows_all_once_and_gives_both_their_turn(one: list[str], two: list[str], seed: int) -> None:
    page, teams = team_draft(one, two, np.random.default_rng(seed))
    assert sorted(page) == sorted(one)
    assert {page[0]} <= {one[0], two[0]}
    for turn in range(0, 6, 2):
        assert sorted(teams[turn : turn + 2]) == [0, 1]


def test_interleaving_prefers_the_better_ranking_and_no_one_between_equals() -> None:
    lists = [ResultList(str(i), f"q{i}", list("abcdefgh"), [0, 0, 0, 0, 0, 0, 0, 2.0]) for i in range(5)]
    rng = np.random.default_rng(0)
    better = compare(lists, lambda r: r.results[::-1], lambda r: r.results, 400, rng)
    assert better.preference > 0.8
    same = compare(lists, lambda r: r.results, lambda r: r.results, 1000, rng)
    assert 0.4 < same.preference < 0.6
    assert sum(same) == 1000
    assert Verdict(0, 0, 5).preference == 0.5


def test_a_page_in_use_gets_better() -> None:
    model: Any = build_model("online", {"blend": "0.3,0.3,2"}).fit(ClickGraph.build(random_pages(0, 80)))
    rng = np.random.default_rng(0)
    lists = []
    for q in range(12):
        shown = [f"d{(q * 2 + i) % 30}" for i in range(8)]
        lists.append(ResultList(str(q), f"query {q}", shown, [0.0, 0, 0, 0, 1, 0, 2, 0]))
    curve = learning_curve(model, lists, (0, 300, 1500), rng)
    assert [p.searches for p in curve] == [0, 300, 1500]
    assert curve[0].clicks == 0 < curve[1].clicks < curve[2].clicks
    assert curve[0].ndcg < curve[1].ndcg - 0.05 < curve[2].ndcg - 0.05
    assert curve[2].ndcg == pytest.approx(quality(model, lists))
    assert against_the_engine(model, lists, 300, rng).preference > 0.6


def test_fit_update_and_rank_from_the_command_line(tmp_path: Path) -> None:
    def write(name: str, pages: list[Any]) -> str:
        lines = [{"query": p.query, "results": p.results, "clicks": p.clicks, "time": p.time} for p in pages]
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        return str(tmp_path / name)

    def run(*words: str) -> Any:
        result = CliRunner().invoke(app, [str(w) for w in words])
        assert result.exit_code == 0, result.output
        return result

    graph, model, out = (str(tmp_path / n) for n in ("graph", "model", "out.run"))
    run("ingest", write("log.jsonl", random_pages(0, 50)), "--out", graph)
    run("fit", graph, "--model", "online", "--set", "blend=0,1,1", "--out", model)
    before = clickbridge.load(model).state_.events
    run("update", model, write("more.jsonl", random_pages(3, 20)))
    after: Any = clickbridge.load(model)
    assert after.spec == "online:given"
    assert after.state_.events == before + 20
    lists = tmp_path / "lists.jsonl"
    lists.write_text(json.dumps({"query_id": "1", "query": "query 1", "results": ["d2", "d3", "d2", "d5"]}) + "\n")
    run("rank", model, "--lists", str(lists), "--out", out)
    ranked = [line.split()[2] for line in Path(out).read_text().splitlines()]
    assert sorted(ranked) == ["d2", "d3", "d5"]
    assert run("models").output.count("online:SPEC") == 1


def test_pages_in_no_order_do_not_teach_it_to_distrust_its_inner_model() -> None:
    """The log's pages were shuffled, so their order says nothing; that of bm25, which it re-ranks, says nearly all."""
    rng = np.random.default_rng(0)
    docs = [Document(f"d{i}", {"title": f"name{i} topic{i % 7}"}) for i in range(120)]
    pages = []
    for i in range(600):
        target = int(rng.integers(120))
        shown = list(dict.fromkeys([f"d{target}", *(f"d{d}" for d in rng.integers(120, size=9))]))
        shown = [shown[j] for j in rng.permutation(len(shown))]
        pages.append(Impression(f"name{target} topic{target % 7} word{i}", shown, [f"d{target}"]))
    model = build_model("online:bm25", {"dim": 10, "clusters": 3}).fit(ClickGraph.build(pages, docs))
    lists = [
        ResultList(str(i), f"name{i} topic{i % 7}", [f"d{(i + 7 * j) % 120}" for j in (3, 2, 0, 1)]) for i in range(120)
    ]
    first = [ranking.doc_ids[0] for ranking in model.rerank_lists(lists)]
    assert np.mean([top == f"d{i}" for i, top in enumerate(first)]) > 0.98
    assert model.prior_[0] > 5 * model.rates_[0]
