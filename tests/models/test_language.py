"""The stemmer is chosen from the text in one place: `fit`, sums, wrappers, plans and comparisons have the same."""

from __future__ import annotations

import logging

import pytest

from clickbridge import BM25, PLS, ClickGraph, Document, Impression, ResultList, build_model, compare
from clickbridge.models.study import Study

TEXTS = {
    "german": ("Bücher", "Buch", "Die Bücher sind nicht angekommen und der Kunde möchte sein Geld zurück, aber es"),
    "french": ("livraisons", "livraison", "Les livraisons ne sont pas arrivées et le client veut que nous les"),
    "russian": ("заказы", "заказ", "Эти заказы не пришли, и покупатель хочет вернуть деньги за них"),
    "turkish": ("siparişler", "sipariş", "Bu siparişler ulaşmadı ve müşteri parasını geri istiyor, şubesi kapalıymış"),
    "english": ("orders", "order", "The orders have not arrived and the customer would like to have the money back"),
}


def graph_in(language: str) -> ClickGraph:
    word, _, text = TEXTS[language]
    docs = [
        Document("0", {"title": word, "body": f"{text} " * 8}),
        Document("1", {"title": "x1", "body": f"{text} " * 8}),
    ]
    return ClickGraph.build([Impression(word, ["1", "0"], ["0"])] * 3, docs)


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("spec", ["bm25", "bm25+pls", "robust:bm25"])
def test_fit_takes_the_language_of_the_documents(language: str, spec: str) -> None:
    model = build_model(spec).fit(graph_in(language))
    parts = getattr(model.fitted, "parts", (model.fitted,))
    assert {part.settings.language for part in parts if hasattr(part.settings, "language")} == {language}
    assert model.rank(TEXTS[language][1]).doc_ids[0] == "0", "another form of the word finds it"
    said = [note for note in model.notes_ if "language=" in note]
    assert len(said) == (0 if language == "english" else 1)
    unfitted = getattr(model, "parts", [model])
    assert all(part.language == "auto" for part in unfitted), "the settings stay as they were given"


def test_a_given_language_is_taken_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "clickbridge")
    model = BM25(language="english").fit(graph_in("german"))
    assert model.fitted.settings.language == "english"
    assert not any("language=" in line for line in [*model.notes_, *caplog.messages])


def test_the_choice_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "clickbridge")
    (BM25() + PLS()).fit(graph_in("german"))
    assert sum("the text looks German" in line for line in caplog.messages) == 1


def test_a_study_a_plan_and_a_comparison_agree() -> None:
    graph = graph_in("german")
    assert Study(graph).language == "german"
    assert build_model("pls").plans(graph)
    lists = [ResultList("1", "buch", ["1", "0"], [0, 1])]
    found = compare(graph, lists, {"words": BM25()}, measures="nDCG@1")
    assert any("language=german" in note for note in found.notes)
    assert {row["model"]: row["nDCG@1"] for row in found.rows()} == {"given": 0.0, "words": 1.0}
