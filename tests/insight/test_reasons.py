"""Reasons are sentences about words and queries, whatever the model."""

from __future__ import annotations

import pytest

from clickbridge import ClickGraph, Document, Impression, build_model
from clickbridge.errors import InputError
from clickbridge.insight.reasons import reasons


@pytest.fixture(scope="module")
def graph() -> ClickGraph:
    docs = [
        Document("york", {"title": "Pizza in York", "body": "places to eat"}),
        Document("rome", {"title": "Rome", "body": "the eternal city"}),
        Document("oslo", {"title": "Oslo", "body": "the north"}),
    ]
    log = [Impression("ny pizza", ["rome", "york", "oslo"], ["york"], user=str(i)) for i in range(9)]
    log += [Impression("ny", ["rome", "york"], ["york"], user=str(i)) for i in range(7)]
    log += [Impression("eternal town", ["rome", "york"], ["rome"], user=str(i)) for i in range(5)]
    log += [Impression("fjord", ["rome", "oslo"], ["oslo"], user="alone")]
    return ClickGraph.build(log, docs)


def test_words_met_because_of_a_query(graph: ClickGraph) -> None:
    fitted = build_model("pls", {"views": "word"}).fit(graph).fitted
    told = [reason.text for reason in reasons(fitted, "ny hotels", "york")]
    assert "`ny` met `york` because people who typed *ny* and *ny pizza* clicked this document" in told
    assert all("word" not in text and "pls" not in text for text in told)


def test_equal_words_are_said_as_typed(graph: ClickGraph) -> None:
    fitted = build_model("bm25").fit(graph).fitted
    (only,) = reasons(fitted, "places pizza", "york")
    assert only.text in ("`places` and `pizza` are in this document", "`pizza` and `places` are in this document")
    assert only.share == pytest.approx(1.0, abs=1e-3)


def test_memory_of_the_same_query(graph: ClickGraph) -> None:
    fitted = build_model("cos-click").fit(graph).fitted
    assert reasons(fitted, "ny pizza", "york")[0].text == "people who typed *ny pizza* clicked this document"


def test_a_query_of_too_few_is_not_named(graph: ClickGraph) -> None:
    fitted = build_model("pls", {"views": "word"}).fit(graph).fitted
    assert any("*fjord*" in reason.text for reason in reasons(fitted, "fjord again", "oslo"))
    assert not any(
        "*fjord*" in reason.text
        for reason in reasons(fitted, "fjord again", "oslo", may_show=lambda query: query != "fjord")
    )


@pytest.mark.parametrize(
    "spec", ["bm25+pls", "mart:bm25+pls", "online:bm25", "rrf:bm25+pls", "robust:bm25", "walk", "given"]
)
def test_every_model_gives_reasons_or_none(graph: ClickGraph, spec: str) -> None:
    fitted = build_model(spec).fit(graph).fitted
    told = reasons(fitted, "ny pizza", "york")
    assert all(reason.text and 0 <= reason.share <= 1.001 for reason in told)
    if "bm25" in spec:
        assert told


def test_an_unknown_document_is_refused(graph: ClickGraph) -> None:
    with pytest.raises(InputError, match="no document"):
        reasons(build_model("bm25").fit(graph).fitted, "ny", "nowhere")
