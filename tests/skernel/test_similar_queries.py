"""Similar queries by clicks in common, for every model that keeps its clicks."""

from __future__ import annotations

import pytest

from clickbridge import ClickGraph, build_model
from clickbridge.errors import NotSupported
from clickbridge.skernel.similar_queries import similar_by_clicks
from clickbridge.types import Document, Impression


@pytest.fixture(scope="module")
def graph() -> ClickGraph:
    docs = [Document(d, {"title": f"{d} page"}) for d in ("plane", "hotel", "shop", "news")]
    pages = [
        Impression("aircraft for sale", ["plane", "shop"], ["plane", "shop"]),
        Impression("used airplanes", ["plane", "shop"], ["plane"]),
        Impression("used airplanes", ["plane", "shop"], ["shop"]),
        Impression("room for the night", ["hotel", "news"], ["hotel"]),
        Impression("morning paper", ["news", "hotel"], ["news"]),
    ]
    return ClickGraph.build(pages, docs)


@pytest.mark.parametrize("spec", ["pls", "walk", "cos-click", "bm25+pls", "robust:bm25", "pairwise"])
def test_queries_that_share_no_word(spec: str, graph: ClickGraph) -> None:
    model = build_model(spec).fit(graph).fitted
    near = similar_by_clicks(model, "Aircraft for sale", 1)
    assert near[0][0] == "used airplanes"
    assert near[0][1] > 0.5
    assert "aircraft for sale" not in [name for name, _ in similar_by_clicks(model, "aircraft for sale", 5)]


def test_an_unseen_query_is_compared_by_its_text(graph: ClickGraph) -> None:
    model = build_model("walk").fit(graph).fitted
    assert similar_by_clicks(model, "used airplane", 1)[0][0] == "used airplanes"
    assert similar_by_clicks(model, "zzzqqq", 1) == []
    assert similar_by_clicks(model, "used airplane", 3, min_clicks=2)[0][0] == "used airplanes"


def test_a_model_without_clicks_says_so(graph: ClickGraph) -> None:
    with pytest.raises(NotSupported, match="bm25 keeps no clicks: use by latent, or a model like pls"):
        similar_by_clicks(build_model("bm25").fit(graph).fitted, "used airplanes")
