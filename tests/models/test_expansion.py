"""Query expansion: which words are added, and what they count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clickbridge import ClickGraph, build_model
from clickbridge.errors import SettingError
from clickbridge.types import Document, Impression
from oracles.arrays import dense


@pytest.fixture(scope="module")
def graph() -> ClickGraph:
    docs = [
        Document("ny", {"title": "New York City"}),
        Document("rome", {"title": "Rome"}),
        Document("la", {"title": "LA"}),
    ]
    pages = [
        Impression("big apple", ["ny", "rome"], ["ny"]),
        Impression("big apple", ["ny", "rome"], ["ny", "rome"]),
        Impression("eternal rome", ["ny", "rome"], ["rome"]),
        Impression("city of angels", ["la"], []),
    ]
    return ClickGraph.build(pages, docs)


def fitted(graph: ClickGraph, weight: str = "0.5") -> Any:
    return build_model("expansion", {"expansion_weight": weight, "fields": "title"}).fit(graph)


def added_words(model: Any, *queries: str) -> list[str]:
    return [model.fitted.added_words(model.fitted.query(query)) for query in queries]


def test_the_title_of_the_most_clicked_document(graph: ClickGraph) -> None:
    assert added_words(fitted(graph), "big apple", "Eternal Rome") == ["New York City", "Rome"]


def test_else_the_words_of_the_most_similar_query(graph: ClickGraph) -> None:
    model = fitted(graph)
    assert added_words(model, "apple big pie", "eternl") == ["big apple", "eternal rome"]
    assert added_words(model, "zzzqqq", "") == ["", ""]


def test_the_query_map_is_a_sum(graph: ClickGraph) -> None:
    model, bm25 = fitted(graph), build_model("bm25", {"fields": "title"}).fit(graph)
    found = dense(model.map_queries(["big apple city"]))
    np.testing.assert_allclose(
        found, dense(bm25.map_queries(["big apple city"])) + 0.5 * dense(bm25.map_queries(["big apple"]))
    )
    assert model.score("big apple", ["ny"])[0] > 0
    assert bm25.score("big apple", ["ny"])[0] == -np.inf


def test_weight_0_is_bm25(graph: ClickGraph) -> None:
    model, bm25 = fitted(graph, "0"), build_model("bm25", {"fields": "title"}).fit(graph)
    for query in ("big apple", "city", "eternal rome"):
        assert model.score(query, graph.doc_ids).tolist() == bm25.score(query, graph.doc_ids).tolist()


def test_the_weight_is_learned_where_there_is_data() -> None:
    """Queries whose words no document has: only what was added can help."""
    docs = [Document(f"d{i}", {"title": f"thing{i}"}) for i in range(40)]
    names = [f"{'xyz'[n % 3]}word{n % 40} {n}" for n in range(900)]
    pages = [
        Impression(name, [f"d{n % 40}", f"d{(n + 7) % 40}", f"d{(n + 9) % 40}"], [f"d{n % 40}"])
        for n, name in enumerate(names)
    ] * 2
    model: Any = build_model("expansion").fit(ClickGraph.build(pages, docs))
    assert model.weight_ > 0
    assert any("added words count" in note for note in model.notes_)


def test_one_query_is_a_row_of_many(graph: ClickGraph) -> None:
    fit = fitted(graph).fitted
    queries = [fit.query(text) for text in ("big apple city", "eternl", "zzzqqq", "", "Eternal Rome")]
    rows = dense(fit.map_keys(queries))
    for query, expected in zip(queries, rows, strict=True):
        image, found = fit.image(query), np.zeros(rows.shape[1], dtype=np.float32)
        found[image.columns] = image.values
        assert found.tolist() == expected.tolist()
        assert (np.diff(image.columns) > 0).all()


def test_queries_that_come_later_add_words_of_others_and_lend_theirs(graph: ClickGraph) -> None:
    model = fitted(graph)
    before = model.fitted
    model.update([Impression("Eternal Apple", ["ny"], ["ny"])], [Document("oj", {"title": "Juice"})])
    # Words that nobody asked for before the update stay unknown: "city apple eternal" is most like the new query.
    assert added_words(model, "city apple eternal") == ["eternal apple"]
    assert added_words(model, "eternal apple")[0] in ("big apple", "eternal rome")
    assert len(before.added) == 2, "the value before the update is as it was"
    assert len(model.fitted.added) == len(model.fitted.queries) == model.fitted.query_rows.shape[0] == 3


def test_a_weight_that_makes_no_sense(graph: ClickGraph) -> None:
    for wrong in ("-1", "much", "inf"):
        with pytest.raises(SettingError, match="expansion_weight must be auto or a number from 0"):
            fitted(graph, wrong)
