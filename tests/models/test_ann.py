"""Models with `search=ann`: notes, files, similarities, sums, and the library being absent."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clickbridge import ClickGraph, build_model, load
from clickbridge.errors import NotSupported
from clickbridge.models.fitted import Fitted
from clickbridge.models.model import Model
from clickbridge.search import ann
from clickbridge.types import Document, PairCount

RNG = np.random.default_rng(2)
WORDS = [f"w{i}x" for i in range(60)]
DOCS = [Document(f"d{i}", {"title": " ".join(RNG.choice(WORDS, 3))}) for i in range(400)]
LOG = [PairCount(" ".join(RNG.choice(WORDS, 2)), f"d{i}", int(n)) for i, n in enumerate(RNG.integers(1, 5, 400))]
GRAPH = ClickGraph.build(LOG, DOCS)
ANN = {"search": "ann", "probe": 0.3, "dim": 20}
DENSE = ["pls", "mpls", "lsi-dt", "lsi-qd"]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four hundred documents count as many."""
    monkeypatch.setattr(ann, "LEAST_ITEMS", 100)


def searched_exactly(model: Model) -> Fitted:
    """The same fitted model under another setting of search."""
    return replace(model.fitted, settings=replace(model.fitted.settings, search="exact"))  # type: ignore[call-arg]


def overlap(one: Any, two: Any) -> float:
    return len({*one} & {*two}) / len(two) if len(two) else float(not len(one))


@pytest.mark.parametrize("name", DENSE)
def test_a_dense_model_searches_in_cells(name: str, few: None, tmp_path: Path) -> None:
    model = build_model(name, ANN).fit(GRAPH)
    exact = build_model(name, ANN | {"search": "exact"}).fit(GRAPH)
    assert isinstance(model.index_, ann.AnnIndex)
    assert not isinstance(exact.index_, ann.AnnIndex)
    assert any("cells for approximate search" in note for note in model.notes_)
    keys = exact.queries_.keys[:60]
    assert np.mean([overlap(model.rank(q).doc_ids, exact.rank(q).doc_ids) for q in keys]) >= 0.9
    assert np.mean([overlap(dict(model.similar_queries(q)), dict(exact.similar_queries(q))) for q in keys]) >= 0.9
    near = [[m.similar_documents(d, 5).doc_ids for d in model.doc_ids_[:60]] for m in (model, exact)]
    assert np.mean([overlap(*pair) for pair in zip(*near, strict=True)]) >= 0.9
    for q in keys[:10]:
        found = model.rank(q)
        np.testing.assert_allclose([h.score for h in found], exact.score(q, found.doc_ids), rtol=1e-4, atol=1e-6)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again.index_, ann.AnnIndex)
    for q in keys[:10]:
        assert again.rank(q) == model.rank(q)
        assert again.similar_queries(q) == model.similar_queries(q)
    exactly = searched_exactly(again)
    assert [exactly.rank(q).doc_ids for q in keys] == [exact.rank(q).doc_ids for q in keys]


def test_cells_follow_updates_and_fits(few: None) -> None:
    model = build_model("pls", ANN).fit(GRAPH)
    model.update([PairCount("w1x w2x", "brand-new", 9)], [Document("brand-new", {"title": "w1x w2x w3x"})], ["d7"])
    assert len(model.cells_.documents.of_item) == len(model.doc_ids_) == 400
    ranked = model.rank("w1x w2x", 50).doc_ids
    assert "brand-new" in ranked
    assert "d7" not in ranked
    model.fit(ClickGraph.build(LOG[:50], DOCS[:50]))
    assert model.cells_.documents is None
    assert "pls: search is exact, since 50 documents are few (under 100)" in model.notes_
    assert len(model.rank(LOG[0].query)) == 10


def test_a_sum_is_searched_exactly_and_says_so(few: None) -> None:
    settings = {**ANN, "weights": "1,1"}
    model = build_model("bm25+pls", settings).fit(GRAPH)
    assert "pls: search=ann is for a model by itself; a sum is searched exactly" in model.notes_
    exact = build_model("bm25+pls", settings | {"search": "exact"}).fit(GRAPH)
    for q in LOG[:20]:
        assert model.rank(q.query) == exact.rank(q.query)


def test_without_the_library(few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for how in ("exact", "ann"):
        build_model("pls", ANN | {"search": how}).fit(GRAPH).save(tmp_path / how)
    monkeypatch.setitem(sys.modules, "faiss", None)
    assert len(load(tmp_path / "exact").rank("w1x w2x"))
    # An index is ready when `load` returns, so that is where its absence is said.
    with pytest.raises(NotSupported, match=r"clickbridge\[ann\]'"):
        load(tmp_path / "ann")
    with pytest.raises(NotSupported, match=r"clickbridge\[ann\]'"):
        build_model("pls", ANN).fit(GRAPH)
