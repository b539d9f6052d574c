"""Event logs: one raw event, the files they come in, and the pages they are joined into."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clickbridge import read_log
from clickbridge.log.clean import RecordError
from clickbridge.log.event_formats import event_format
from clickbridge.log.metarank import read_metarank
from clickbridge.log.readers import LogReader
from clickbridge.log.rejects import RejectLog
from clickbridge.log.searches import Action, Search
from clickbridge.log.ubi import read_ubi
from clickbridge.types import Document, Impression

AT = "2026-01-31T10:00:00.000Z"
SECONDS = 1769853600.0


def query(**changes: Any) -> dict[str, Any]:
    return {
        "application": "shop", "query_id": "q1", "client_id": "c1", "user_query": "NY  Pizza", "timestamp": AT,
        "object_id_field": "sku", "query_response_id": "r1", "query_response_hit_ids": ["a", "b", "c"], **changes,
    }  # fmt: skip


def click(doc: Any = "b", **changes: Any) -> dict[str, Any]:
    event = {
        "action_name": "click", "query_id": "q1", "client_id": "c1", "timestamp": AT,
        "event_attributes": {"object": {"object_id": doc}, "position": {}},
    }  # fmt: skip
    return {**event, **changes}


def placed(ordinal: int, doc: Any = None, action: str = "click", **changes: Any) -> dict[str, Any]:
    thing = {} if doc is None else {"object_id": doc}
    return click(
        action_name=action, event_attributes={"object": thing, "position": {"ordinal": ordinal}}, **changes
    )  # fmt: skip


def ndjson(path: Path, records: list[Any]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


@pytest.fixture
def pages(tmp_path: Path) -> Any:
    """`pages(records, records, ...)`: each list is a file; the reader is kept for what it found out."""

    def read(*files: list[Any], format: str = "auto") -> tuple[list[Any], LogReader]:
        paths = [ndjson(tmp_path / f"{n}.ndjson", records) for n, records in enumerate(files)]
        log = read_log(*paths, format=format, rejects=RejectLog(1.0))
        return list(log), log

    return read


# --- one event ---------------------------------------------------------------------------------------------


def test_a_ubi_query() -> None:
    assert read_ubi(query()) == Search("q1", "ny pizza", ["a", "b", "c"], "c1", SECONDS)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"client_id": ""}, {"user": None}),
        ({"timestamp": "2026-01-31T11:00:00+0100"}, {"time": SECONDS}),
        ({"timestamp": 1769853600000}, {"time": SECONDS}),
        ({"timestamp": None}, {"time": None}),
        ({"object_id_field": ""}, {"ids_named": False}),
        ({"query_response_hit_ids": None}, {"results": None}),
        ({"query_response_hit_ids": None, "query_response_object_ids": ["x"]}, {"results": ["x"]}),
        ({"query_id": None}, {"search_id": None}),
    ],
    ids=str,
)
def test_a_ubi_query_as_found_in_the_wild(change: dict[str, Any], expected: dict[str, Any]) -> None:
    found = read_ubi(query(**change))
    assert {name: getattr(found, name) for name in expected} == expected


def test_a_ubi_query_inside_of_a_search_request() -> None:
    opensearch = {"ext": {"ubi": {"query_id": "7", "user_query": "Toner"}}, "query": {"match": {"name": "toner"}}}
    solr = {"query": "x", "params": {"ubi": "true", "query_id": "7", "user_query": "Toner"}}
    assert read_ubi(opensearch) == read_ubi(solr) == Search("7", "toner", None, ids_named=False)
    assert event_format([opensearch]) == event_format([solr]) == "ubi"


def test_a_ubi_event() -> None:
    event = placed(2, "b", user_query="Pizza")
    event["event_attributes"]["object"]["internal_id"] = 17
    assert read_ubi(event) == Action("click", "q1", "b", "pizza", "c1", SECONDS, 2, "17")
    assert read_ubi(click(7)) == Action("click", "q1", "7", "", "c1", SECONDS)
    assert read_ubi(placed(0)) == Action("click", "q1", None, "", "c1", SECONDS, 0)
    assert read_ubi(click(action_name="page_exit", event_attributes=None)) is None


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (click(timestamp=None), "no timestamp"),
        (click(timestamp="soon"), "neither ISO 8601 nor a number"),
        (click("a b"), "white space"),
        (click(None), "without event_attributes.object.object_id"),
        (click(event_attributes="x"), "event_attributes must be a JSON object"),
        (placed(-1, "b"), "position.ordinal"),
        (click(action_name=7), "name of an action"),
        ({"no": "thing"}, "neither action_name"),
        (query(user_query=7), "must be text"),
        (query(query_response_hit_ids="abc"), "must be a list"),
        ([], "must be a JSON object"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_ubi_record_that_cannot_be_used(event: Any, reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        read_ubi(event)


def test_metarank_events() -> None:
    when = {"id": "e", "timestamp": "1769853600000"}
    ranking = {
        "event": "ranking", **when, "user": "u", "session": "s", "items": [{"id": "a"}, {"id": "b", "relevancy": 1.0}],
        "fields": [{"name": "query", "value": "NY Pizza"}, {"name": "source", "value": "search"}],
    }  # fmt: skip
    assert read_metarank(ranking) == Search("e", "ny pizza", ["a", "b"], "u", SECONDS, until=SECONDS + 1800)
    in_words = ranking | {"fields": [{"name": "query", "value": ["NY", "Pizza"]}]}
    assert read_metarank(in_words) == read_metarank(ranking)
    clicked = {"event": "interaction", **when, "ranking": "r", "type": "click", "item": "b", "session": "s"}
    assert read_metarank(clicked) == Action("click", "r", "b", "", "s", SECONDS)
    assert read_metarank(clicked | {"type": "hover"}) is None
    item = {
        "event": "item", **when, "item": "b",
        "fields": [{"name": "Title", "value": "Pizza"}, {"name": "tags", "value": ["hot", "thin"]},
                   {"name": "price", "value": 7.5}, {"name": "Tags", "value": "large"}],
    }  # fmt: skip
    assert read_metarank(item) == Document("b", {"title": "Pizza", "tags": "hot\nthin\nlarge"})
    assert read_metarank({"event": "user", **when, "user": "u", "fields": []}) is None
    for record in (ranking, clicked, item):
        assert event_format([record]) == "metarank"
    with pytest.raises(RecordError, match="event must be one of"):
        read_metarank({"event": "other"})


# --- the join ----------------------------------------------------------------------------------------------


def test_a_pair_of_files_in_either_order(pages: Any) -> None:
    expected = [Impression("ny pizza", ["a", "b", "c"], ["b"], None, "c1", SECONDS)]
    for files in (([query()], [click()]), ([click()], [query()]), ([click(), query()],)):
        assert pages(*files)[0] == expected


def test_a_document_clicked_and_bought_counts_once(pages: Any) -> None:
    records, _ = pages([query(), click(), click(), click(action_name="purchase"), click("z")])
    assert records[0].clicks == ["b", "z"]


def test_searches_without_a_click_are_pages_too(pages: Any) -> None:
    records, _ = pages([query(), query(query_id="q2", user_query="bagel"), query(query_id=None)])
    assert [(page.query, page.clicks) for page in records] == [("ny pizza", []), ("bagel", []), ("ny pizza", [])]


def test_pages_of_one_search_share_their_id(pages: Any) -> None:
    """The second page of results is searched with the same query_id; a click belongs to the one that shows it."""
    more = query(query_response_hit_ids=["d", "e"])
    records, _ = pages([query(), more, click("e"), click("a"), click("nowhere")])
    assert [page.clicks for page in records] == [["a", "nowhere"], ["e"]]


def test_events_alone(pages: Any) -> None:
    """A search that no query record tells of has what its events tell: text, clicks, and what they saw."""
    seen = [placed(2, "b", "impression"), placed(1, "a", "impression")]
    records, log = pages([*seen, click(user_query="Pizza"), click("z", query_id="other")])
    assert records == [Impression("pizza", ["a", "b"], ["b"], None, "c1", SECONDS)]
    assert [reject.reason for reject in log.rejects.first] == ["no search with its query_id, and no user_query"]
    assert log.rejects.first[0].line == 4


def test_internal_document_numbers_are_found_out(pages: Any) -> None:
    """Without object_id_field the plugin stores numbers of Lucene, which are no ids."""
    queries = [query(query_id=f"q{i}", object_id_field=None, query_response_hit_ids=["0", "1"]) for i in range(3)]
    records, log = pages(queries, [click("sku-7", query_id=f"q{i}") for i in range(3)])
    assert [(page.results, page.clicks) for page in records] == [(None, ["sku-7"])] * 3
    assert "set object_id_field" in log.notes[1]
    kept, log = pages(queries, [click("1", query_id=f"q{i}") for i in range(3)])
    assert [page.results for page in kept] == [["0", "1"]] * 3
    assert len(log.notes) == 1
    _, log = pages(queries)
    assert "no click tells" in log.notes[1]


def test_a_document_called_by_the_engines_id(pages: Any) -> None:
    event = click("sku-7")
    event["event_attributes"]["object"]["internal_id"] = "b"
    assert pages([query(), event])[0][0].clicks == ["b"]


@pytest.mark.parametrize(("first", "clicked"), [(1, ["a"]), (0, ["b"])])
def test_where_places_start_is_found_out(pages: Any, first: int, clicked: list[str]) -> None:
    """Events of other searches show it; a click that tells its place alone is then a document."""
    others = [query(query_id="q2"), *[placed(2 + first, "c", query_id="q2")] * 3]
    records, log = pages([query(), placed(1), *others])
    assert records[0].clicks == clicked
    assert ("places on a page are counted from 0" in log.notes) == (first == 0)
    _, log = pages([query(), placed(9), *others])
    assert "outside the results" in log.rejects.first[0].reason


def test_metarank_clicks_join_their_ranking_for_thirty_minutes(pages: Any) -> None:
    ranking = {
        "event": "ranking", "id": "r", "timestamp": 1769853600000, "user": "u",
        "items": [{"id": "a"}, {"id": "b"}], "fields": [{"name": "query", "value": "pizza"}],
    }  # fmt: skip
    at = {"event": "interaction", "id": "i", "ranking": "r", "type": "click"}
    soon, late = at | {"item": "b", "timestamp": 1769855400000}, at | {"item": "a", "timestamp": 1769855401000}
    item = {"event": "item", "id": "x", "timestamp": 0, "item": "a", "fields": [{"name": "title", "value": "Thin"}]}
    records, log = pages([soon, item, ranking, late, {**ranking, "id": "browse", "fields": []}])
    assert records == [Document("a", {"title": "Thin"}), Impression("pizza", ["a", "b"], ["b"], None, "u", SECONDS)]
    assert log.notes[0] == "2 searches and 1 clicked result were joined"
    assert {*log.notes[1:]} == {
        "clicks that came too late after their search, left out: 1",
        "searches without words, left out: 1",
    }


# --- the files ---------------------------------------------------------------------------------------------


def bulk(records: list[Any]) -> str:
    return "".join(f'{{"index": {{"_index": "ubi"}}}}\n{json.dumps(record)}\n' for record in records)


WRAPPED = {
    "lines": lambda records: "".join(json.dumps(record) + "\n" for record in records),
    "bulk": bulk,
    "export": lambda records: "".join(json.dumps({"_index": "ubi", "_id": "1", "_source": r}) + "\n" for r in records),
    "response": lambda records: json.dumps({"hits": {"total": {}, "hits": [{"_source": r} for r in records]}}),
    "array": json.dumps,
    "pretty array": lambda records: json.dumps(records, indent=2),
    "pretty response": lambda records: json.dumps({"hits": {"hits": [{"_source": r} for r in records]}}, indent=1),
}


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
@pytest.mark.parametrize("name", ["x.ndjson", "x.json", "x"])
def test_whatever_wraps_the_events(tmp_path: Path, wrap: Any, name: str) -> None:
    (tmp_path / name).write_text(wrap([query(), click()]))
    log = read_log(str(tmp_path / name))
    assert list(log) == [Impression("ny pizza", ["a", "b", "c"], ["b"], user="c1", time=SECONDS)]
    assert log.rejects.count == 0


def test_other_json_is_no_event_log(tmp_path: Path) -> None:
    """A sessions line may have any more fields."""
    path = ndjson(tmp_path / "log.jsonl", [{"query": "x", "clicks": ["a"], "event": "other"}])
    assert list(read_log(path)) == [Impression("x", None, ["a"])]


def test_lines_that_are_not_json(tmp_path: Path) -> None:
    path = tmp_path / "x.ndjson"
    path.write_text(f"{json.dumps(query())}\n{{broken\n[1]\n{json.dumps(click())}\n")
    log = read_log(str(path), format="ubi", rejects=RejectLog(1.0))
    assert [page.clicks for page in log] == [["b"]]
    assert [(r.line, r.reason) for r in log.rejects.first] == [
        (2, "not JSON: unexpected character, expected a string key"),
        (3, "a UBI record must be a JSON object, got a list"),
    ]
    path.write_text("{\n  // TBD\n}")
    assert list(log) == []
    assert log.rejects.first[-1].reason.startswith("not JSON")


@pytest.mark.data
def test_the_samples_of_the_specification(real_data: Any, tmp_path: Path) -> None:
    home = real_data("ubi")
    searches = [read_ubi(json.loads((home / f"samples-query-{s}.json").read_text())) for s in ("opensearch", "solr")]
    assert [(s.search_id, s.query) for s in searches] == [
        ("12300d16cb-b6f1-4012-93ebcc49cac90426", "toner"),
        ("xyz890", "ram memory"),
    ]
    assert read_ubi(json.loads((home / "samples-event-opensearch.json").read_text())) is None, "a page was left"
    names = ("query-opensearch", "query-solr", "event-opensearch")
    log = read_log(*(str(home / f"samples-{name}.json") for name in names))
    assert [page.query for page in log] == ["toner", "ram memory"]
