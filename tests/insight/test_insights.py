"""Insights: planted troubles are found, and nothing that too few people typed is shown."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from clickbridge import ClickGraph, Document, Impression, build_model
from clickbridge.errors import InputError
from clickbridge.insight.failing_searches import buried_documents, dead_searches
from clickbridge.insight.insights import find_insights, insights_of_model, write_insights
from clickbridge.insight.people import people_by_query
from clickbridge.insight.same_need import same_need
from clickbridge.insight.word_pairs import word_pairs

IDS = [f"d{i}" for i in range(12)]
DOCS = [Document(d, {"title": f"thing {i}"}) for i, d in enumerate(IDS)]


def pages(query: str, clicks: list[str], people: int, start: int = 0) -> list[Impression]:
    return [Impression(query, IDS, clicks, user=f"{query}{start + i}", time=float(i)) for i in range(people)]


@pytest.fixture(scope="module")
def graph() -> ClickGraph:
    log = [
        *pages("red shoes", ["d0"], 6),
        *pages("red shoe", [], 5),
        *pages("shoes in red", ["d0"], 3),
        *pages("deep one", ["d10"], 4),
        *pages("secret of one person", [], 1) * 5,
    ]
    return ClickGraph.build(log, DOCS)


def test_people_are_counted_not_pages(graph: ClickGraph) -> None:
    people = dict(zip(graph.query_texts, people_by_query(graph).tolist(), strict=True))
    assert people["secret of one person"] == 1
    assert people["red shoes"] == 6


def test_dead_searches_with_what_works_instead(graph: ClickGraph) -> None:
    found = {dead.query: dead for dead in dead_searches(graph, min_users=2)}
    assert set(found) == {"red shoe", "deep one"}
    assert (found["red shoe"].asked, found["red shoe"].clicked, found["red shoe"].instead) == (5, 0, "red shoes")
    assert found["deep one"].place == 11.0
    assert {dead.query for dead in dead_searches(graph, min_users=1)} == {
        "red shoe",
        "deep one",
        "secret of one person",
    }


def test_buried_documents(graph: ClickGraph) -> None:
    (found,) = buried_documents(graph)
    assert (found.doc_id, found.query, found.clicks, found.place) == ("d10", "deep one", 4, 11.0)


def test_same_need_is_the_same_document(graph: ClickGraph) -> None:
    (found,) = same_need(graph)
    assert (found.doc_id, found.queries, found.clicks) == ("d0", ("red shoes", "shoes in red"), 9)


def test_a_folder_of_tables_and_one_page(graph: ClickGraph, tmp_path: Path) -> None:
    out = tmp_path / "insights"
    for _ in range(2):  # it replaces itself
        write_insights(find_insights(graph), out, "What <b>it</b> tells")
    names = sorted(path.name for path in out.iterdir())
    assert names == ["buried_documents.csv", "dead_searches.csv", "insights.html", "same_need.csv", "synonyms.csv",
                     "synonyms.txt", "word_pairs.csv"]  # fmt: skip
    page = (out / "insights.html").read_text()
    assert "What &lt;b&gt;it" in page
    assert "secret of one person" not in "".join(path.read_text() for path in out.iterdir())
    assert "http://" not in page
    rows = list(csv.DictReader((out / "dead_searches.csv").read_text().splitlines()))
    assert rows[0]["query"] == "red shoe"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").write_text("x")
    with pytest.raises(InputError, match="holds no insights"):
        write_insights(find_insights(graph), tmp_path / "mine", "")
    assert (tmp_path / "mine/file").read_text() == "x"


def test_a_model_tells_pairs_of_words() -> None:
    docs = [
        Document("1", {"title": "new york city"}),
        Document("2", {"title": "rome"}),
        Document("3", {"title": "oslo"}),
    ]
    log = [Impression("ny", ["1", "2"], ["1"], user=str(i)) for i in range(9)]
    log += [Impression("eternal city", ["2", "1"], ["2"], user=str(i)) for i in range(5)]
    log += [Impression("oslo", ["3", "1"], ["3"], user=str(i)) for i in range(5)]
    fitted = build_model("bm25+pls").fit(ClickGraph.build(log, docs)).fitted
    pairs = {(pair.typed, pair.means) for pair in word_pairs(fitted)}
    assert ("ny", "york") in pairs
    assert ("eternal", "rome") in pairs
    assert not any(typed == means for typed, means in pairs)
    assert word_pairs(build_model("bm25").fit(ClickGraph.build(log, docs)).fitted) == []
    assert insights_of_model(fitted).pairs
