"""A wrapper from fit to rank, and similar queries by clicks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., Any]


def test_a_wrapped_model_from_fit_to_rank(call: Run, tiny: Path) -> None:
    fitted = call("fit", tiny / "graph", "--model", "robust-bm25", "--out", tiny / "robust", "--seed", 3, "--json")
    assert fitted.code == 0, fitted.err
    assert fitted.json["spec"] == "robust:bm25"
    assert fitted.json["parts"][0]["spec"] == "bm25"
    assert fitted.json["weights"]["epsilon"] > 0
    ranked = call("rank", tiny / "robust", "--lists", tiny / "lists.jsonl", "--out", tiny / "robust.run")
    assert ranked.code == 0, ranked.err
    assert len((tiny / "robust.run").read_text().splitlines()) == 8
    assert (tiny / "robust.run").read_text().split()[5] == "robust:bm25"


def test_what_is_ranked_by_the_base_alone_is_said(call: Run, tiny: Path) -> None:
    assert call("fit", tiny / "graph", "--model", "robust-bm25", "--out", tiny / "robust").code == 0
    (tiny / "in.jsonl").write_text('{"query_id":"1","query":"baked","results":["ny","bagel"]}\n')
    said = call("rank", tiny / "robust", "--lists", tiny / "in.jsonl", "--out", tiny / "out.run").err
    assert "robust:bm25 knows no query like 1 of 1: its base model ranked them" in said
    found = call("search", tiny / "robust", "baked")
    assert "no known query is like 'baked'; this is its base model's answer" in found.err
    assert "bagel" in found.out


def test_similar_by_clicks(call: Run, tiny: Path) -> None:
    assert call("fit", tiny / "graph", "--model", "walk", "--out", tiny / "walk").code == 0
    near = call("similar", tiny / "walk", "--query", "ny pizza", "--by", "clicks", "-k", 1, "--json").json["similar"]
    assert [row["query"] for row in near] == ["pizza slice"]
    refused = call("similar", tiny / "model", "--query", "ny pizza", "--by", "clicks")
    assert (refused.code, refused.err.count("\n")) == (1, 1)
    assert "bm25 keeps no clicks: use --by latent" in refused.err
    for words in (["--query", "ny", "--by", "words"], ["--doc", "ny", "--by", "clicks"]):
        wrong = call("similar", tiny / "walk", *words)
        assert wrong.code == 2
        assert "--by is latent, or clicks together with --query" in wrong.err


def test_models_lists_wrappers(call: Run) -> None:
    names = [row["name"] for row in call("models", "--json").json]
    assert {"expansion", "pairwise", "robust:SPEC"} <= set(names)
