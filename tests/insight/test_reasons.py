"""Reasons are sentences about words and queries, whatever the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from clickbridge import ClickGraph, Document, Impression, build_model, load
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


def test_the_query_itself_is_not_a_query_like_it(graph: ClickGraph) -> None:
    fitted = build_model("pls").fit(graph).fitted
    told = [reason.text for reason in reasons(fitted, "NY pizza", "york")]
    assert any("a query like yours" in text for text in told)
    assert not any("*ny pizza*, a query like yours" in text for text in told)


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


@pytest.fixture(scope="module")
def stemmed() -> ClickGraph:
    """Words whose stems are no words; "primitive" stands far behind what a snippet shows."""
    docs = [
        Document("art", {"title": "Museum of movies", "body": f"{'on and on ' * 40} primitive dwellings"}),
        Document("zoo", {"title": "Zoological gardens", "body": "happily living animals"}),
    ]
    log = [Impression("old pictures", ["zoo", "art"], ["art"], user=str(i)) for i in range(9)]
    log += [Impression("happy beasts", ["art", "zoo"], ["zoo"], user=str(i)) for i in range(9)]
    return ClickGraph.build(log, docs)


@pytest.mark.parametrize("spec", ["bm25", "pls", "bm25+pls", "ssi", "mart:bm25+pls"])
def test_no_stem_is_shown(stemmed: ClickGraph, spec: str, tmp_path: Path) -> None:
    build_model(spec).fit(stemmed).save(tmp_path / "m")
    model = load(tmp_path / "m")
    for query, doc_id in (("primitives pictured", "art"), ("happiness movie", "zoo"), ("old", "art")):
        words = {w for reason in reasons(model.fitted, query, doc_id) for kind, w in reason.spans if kind == "word"}
        if spec not in ("mart:bm25+pls",):
            words |= {w for p in model.explain(query, doc_id).pairs for w in (p.query_feature, p.doc_feature)}
        stems = {"primit", "pictur", "movi", "happi", "dwell", "zoolog", "museum of", "anim", "live", "beast"}
        assert not stems & {part for word in words for part in word.split()}, words


def test_words_as_typed_and_as_in_the_document(stemmed: ClickGraph) -> None:
    model = build_model("pls", {"views": "word"}).fit(stemmed)
    pairs = {(p.query_feature, p.doc_feature) for p in model.explain("pictured", "art", 50).pairs}
    assert {("pictured", "movies"), ("pictured", "primitive")} <= pairs
    told = " ".join(reason.text for reason in reasons(model.fitted, "pictured", "art"))
    assert "`pictured` met `" in told
    assert "*old pictures*" in told
    model = build_model("bm25").fit(stemmed)
    (only,) = reasons(model.fitted, "primitives", "art")
    assert only.text == "`primitives` (`primitive`) is in this document"
    (equal,) = model.explain("primitives", "art").pairs
    assert (equal.query_feature, equal.doc_feature, equal.model) == ("primitives", "primitive", "")


def test_letters_are_said_by_their_words(stemmed: ClickGraph) -> None:
    model = build_model("pls", {"views": "word,char"}).fit(stemmed)
    shown = str(model.explain("pictrues", "art"))
    assert "#" not in shown
    assert "…" in shown
    told = [reason.text for reason in reasons(model.fitted, "pictrues", "art", most=20)]
    assert not any("#" in text or "…" in text for text in told)
    assert not any("is spelled like `movies`" in text for text in told)
