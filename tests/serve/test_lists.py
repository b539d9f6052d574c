"""What people are shown: filters, pins and blocks, suggestions, snippets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import clickbridge
from clickbridge import ClickGraph, build_model
from clickbridge.errors import InputError, SettingError
from clickbridge.models.display import Display, parse_filter, snippet
from clickbridge.types import Document, Impression
from running import Running, eventually

DOCS = [
    Document("ny", {"title": "New York City", "body": "The big apple, city of pizza", "kind": "city", "groups": "all"}),
    Document("pizza", {"title": "Pizza", "body": "New York style pizza", "kind": "food", "groups": "staff\nhr"}),
    Document("rome", {"title": "Rome", "body": "Pizza in the eternal city", "kind": "City", "groups": "all\nstaff"}),
    Document("bagel", {"title": "Bagels", "body": "Boiled, then baked, like no pizza", "kind": "food"}),
]
IDS = [document.doc_id for document in DOCS]
PAGES = [
    Impression("ny pizza", ["pizza", "rome", "ny"], ["pizza"], user="a"),
    Impression("ny pizza", ["rome", "pizza", "ny"], ["pizza"], user="b"),
    Impression("ny bagels", ["bagel", "ny"], ["bagel"], user="a"),
    Impression("ny bagels", ["bagel", "ny"], ["bagel"], user="a"),
    Impression("write to jo@example.org", ["ny"], ["ny"], user="a"),
    Impression("write to jo@example.org", ["ny"], ["ny"], user="b"),
    Impression("pizza in rome", ["rome"], ["rome"], user="c"),
    Impression("pizza in rome", ["rome"], ["rome"], user="d"),
    Impression("pizza in rome", ["rome"], ["rome"], user="e"),
]


@pytest.fixture(scope="module")
def graph() -> ClickGraph:
    return ClickGraph.build(PAGES, DOCS)


@pytest.fixture
def path(graph: ClickGraph, tmp_path: Path) -> Path:
    build_model("bm25+pls").fit(graph).keep_fields(graph, ["kind", "groups"]).save(tmp_path / "model")
    return tmp_path / "model"


def found(live: Running, **asked: object) -> list[str]:
    answer = live.get("/search", **asked)
    assert answer.status_code == 200, answer.text
    return [result["doc_id"] for result in answer.json()["results"]]


# --- filters ---------------------------------------------------------------------------------------


def test_filters(serve: Callable[..., Running], path: Path) -> None:
    live = serve(path)
    everything = found(live, q="pizza")
    assert set(everything) == set(IDS)
    assert found(live, q="pizza", filter="kind:city") == [d for d in everything if d in ("ny", "rome")]
    assert set(found(live, q="pizza", filter="groups:hr|all")) == {"ny", "pizza", "rome"}
    assert found(live, q="pizza", filter="kind:food,groups:staff") == ["pizza"]
    assert found(live, q="pizza", filter="kind:nothing") == []
    assert found(live, q="pizza", filter="kind:city", k=1) == [d for d in everything if d in ("ny", "rome")][:1]
    order = live.rank("pizza", IDS)
    assert live.rank("pizza", IDS, filter="kind:food") == [d for d in order if d in ("pizza", "bagel")]
    new = {"doc_id": "new", "title": "Pizza", "kind": "food"}
    assert "new" in live.rank("pizza", [*IDS, new], filter="kind:food")
    assert "new" not in live.rank("pizza", [*IDS, new], filter="kind:city")


def test_filters_that_cannot_be(serve: Callable[..., Running], path: Path) -> None:
    live = serve(path)
    for asked in ("kind", "kind:", "colour:red", ':x"'):
        refused = live.get("/search", q="pizza", filter=asked)
        assert refused.status_code == 422, asked
    assert "filter_fields colour" in live.get("/search", q="pizza", filter="colour:red").json()["error"]["message"]
    assert live.post("/rank", {"query": "a", "documents": IDS, "filter": "colour:red"}).status_code == 422


def test_a_filter_is_read() -> None:
    assert parse_filter("A:x|Y , b:z") == {"a": {"x", "y"}, "b": {"z"}}
    assert parse_filter('a:"x, y|z:1"|w') == {"a": {"x, y|z:1", "w"}}
    assert parse_filter("a:x,a:x|y") == {"a": {"x"}}
    for text in ("a", "a:", ":x", "a:x,b"):
        with pytest.raises(InputError):
            parse_filter(text)


def test_fields_follow_updates_and_files(graph: ClickGraph, path: Path, tmp_path: Path) -> None:
    model = clickbridge.load(path)
    new = Document("deli", {"title": "Deli", "body": "Pastrami on rye", "kind": "food"})
    model.update(docs=[new], remove=["rome"])
    model.save(tmp_path / "updated")
    display = clickbridge.load(tmp_path / "updated").fitted.display
    ids = model.doc_ids_
    food = display.matching(parse_filter("kind:food"), len(ids)).nonzero()[0]
    assert {ids[i] for i in food} == {"pizza", "bagel", "deli"}
    assert display.snippet(ids.index("deli")) == "Pastrami on rye"
    with pytest.raises(SettingError, match="no field 'colour'"):
        model.keep_fields(graph, ["colour"])


def test_search_shows_snippets(serve: Callable[..., Running], path: Path) -> None:
    first = serve(path).get("/search", q="boiled baked").json()["results"][0]
    assert (first["title"], first["snippet"]) == ("Bagels", "Boiled, then baked, like no pizza")
    assert snippet("word " * 100).endswith("word …")
    assert len(snippet("word " * 100)) <= 202


# --- pins and blocks -------------------------------------------------------------------------------


def test_pins_and_blocks_come_from_a_file_that_is_read_again(
    serve: Callable[..., Running], path: Path, tmp_path: Path
) -> None:
    rules = tmp_path / "pins.jsonl"
    rules.write_text('{"query": "NY  pizza", "pin": ["bagel", "nobody"], "block": ["rome"]}\n')
    live = serve(path, pins=str(rules))
    ranked = live.rank("ny pizza", ["ny", "rome", "pizza", "bagel"])
    assert ranked[0] == "bagel"
    assert "rome" not in ranked
    hits = found(live, q="ny pizza", k=2)
    assert hits[0] == "bagel"
    assert len(hits) == 2
    assert found(live, q="ny pizza", filter="kind:city") == ["ny"], "a pin must pass the filter too"
    assert "rome" in found(live, q="pizza")
    rules.write_text('{"query": "*", "block": ["pizza"]}\n')
    eventually(lambda: "pizza" not in found(live, q="pizza"))
    assert live.rank("ny pizza", ["ny", "rome"])[0] in ("ny", "rome")
    rules.write_text("broken\n")
    live.service._guarded(live.service.rules.reload)
    assert "pizza" not in found(live, q="pizza"), "what cannot be read leaves the rules of before"


def test_a_file_of_rules_that_is_none_stops_the_start(serve: Callable[..., Running], tmp_path: Path) -> None:
    for text in ("broken\n", '{"pin": ["a"]}\n', '{"query": "a", "pin": "b"}\n', '{"query": "*", "pin": ["b"]}\n'):
        (tmp_path / "pins.jsonl").write_text(text)
        with pytest.raises(InputError, match="line 1"):
            serve("bm25", pins=str(tmp_path / "pins.jsonl"))
    with pytest.raises(InputError, match="cannot be read"):
        serve("bm25", pins=str(tmp_path / "missing.jsonl"))


# --- suggestions -----------------------------------------------------------------------------------


def suggested(live: Running, typed: str) -> list[str]:
    return [row["query"] for row in live.get("/suggest", q=typed).json()["results"]]


def test_only_what_several_people_typed_is_suggested(serve: Callable[..., Running], path: Path) -> None:
    live = serve(path)
    live.service.refresh_suggestions()
    assert suggested(live, "") == ["pizza in rome", "ny pizza"], "by people"
    assert suggested(live, "NY ") == ["ny pizza"], "ny bagels is one person's, however often"
    assert suggested(live, "write") == [], "and what looks personal is nobody's"
    near = [row["query"] for row in live.get("/similar/queries", q="ny bagel pizza").json()["results"]]
    assert set(near) <= {"ny pizza", "pizza in rome"}
    assert near
    page = {"query": "ny bagels", "results": ["bagel"], "clicks": ["bagel"]}
    live.feedback(*({**page, "event_id": f"e{n}", "user": f"u{n % 2}"} for n in range(4)))
    live.service.refresh_suggestions()
    assert set(suggested(live, "ny")) == {"ny pizza", "ny bagels"}


def test_explanations_hide_what_one_person_typed(serve: Callable[..., Running], path: Path) -> None:
    live = serve(path)
    live.service.refresh_suggestions()
    plain = clickbridge.load(path).explain("ny bagels", "bagel")
    assert any("ny bagels" in taught for pair in plain.pairs for taught in pair.taught_by), "the model would say so"
    answer = live.get("/explain", q="ny bagels", doc_id="bagel").json()
    assert all("ny bagels" not in taught for pair in answer["pairs"] for taught in pair["taught_by"])
    ranked = live.post("/rank", {"query": "ny bagels", "documents": ["bagel"], "explain": True}).text
    assert "ny bagels →" not in ranked


def test_min_users_one_shows_all_but_the_personal(serve: Callable[..., Running], path: Path) -> None:
    live = serve(path, min_users=1)
    live.service.refresh_suggestions()
    assert set(suggested(live, "")) == {"pizza in rome", "ny pizza", "ny bagels"}


def test_a_model_keeps_no_trace_of_who_typed_alone(graph: ClickGraph) -> None:
    display = Display.of(graph)
    assert dict(zip(display.queries, display.people.tolist(), strict=True)) == {
        "ny pizza": 2, "write to jo@example.org": 2, "pizza in rome": 3,
    }  # fmt: skip
