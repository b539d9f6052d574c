"""Files as people have them: what is guessed, that options say the same, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickbridge import ClickGraph, Impression, PairCount, read_docs, read_log
from clickbridge.cli.inputs import guessed_line, guesses_told, renames
from clickbridge.errors import InputError, SettingError
from clickbridge.graph.unmatched_ids import unmatched_ids
from clickbridge.log.json_objects import json_objects
from clickbridge.log.plain_text import without_html
from clickbridge.log.rejects import RejectLog
from clickbridge.log.time_formats import guess_format
from log.messy import CLICKED, DOCUMENTS, LOGS, QUERIES, products_csv, write_all


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_all(tmp_path)
    return tmp_path


def said(options: str) -> dict[str, Any]:
    """Options of the command line as arguments of `read_log`."""
    words = shlex.split(options)
    pairs = dict(zip(words[::2], words[1::2], strict=True))
    columns = {"columns": renames([pairs.pop("--columns", "")])}
    return columns | {name.removeprefix("--").replace("-", "_"): value for name, value in pairs.items()}


@pytest.mark.parametrize("name", LOGS)
def test_what_is_guessed_is_what_the_options_say(home: Path, name: str) -> None:
    path, options = str(home / name), LOGS[name][1]
    log = read_log(path)
    records = list(log)
    line = guessed_line(log)
    assert line.removeprefix(f"guessed, written as options: {path}: ") == options
    again = read_log(path, **said(options))
    assert list(again) == records
    assert guessed_line(again) == ""
    assert not log.rejects.count


@pytest.mark.parametrize("name", sorted(set(LOGS) - {"german.csv", "pipes.txt", "shown.csv", "repeated.csv"}))
def test_every_file_says_the_same(home: Path, name: str) -> None:
    records = list(read_log(str(home / name)))
    assert [r.query for r in records] == QUERIES  # type: ignore[union-attr]
    clicked = [r.clicks if isinstance(r, Impression) else [r.doc_id] for r in records]  # type: ignore[union-attr]
    assert clicked == [[doc] for doc in CLICKED]
    if isinstance(records[0], Impression):
        assert all(r.results == ["d1", "d2", "d3"] for r in records)  # type: ignore[union-attr]


def test_times_of_messy_files(home: Path) -> None:
    day = 86400.0
    for name, first, step in (("shop.csv", 1704103200.0, day), ("german.csv", 1704103200.0, day + 60)):
        times = [record.time for record in read_log(str(home / name))]  # type: ignore[union-attr]
        assert times == [first + i * step for i in range(20)]
    assert next(iter(read_log(str(home / "excel.txt")))).time == 1704115800.0 + 0  # type: ignore[union-attr]
    assert next(iter(read_log(str(home / "triples.jsonl")))).time == 1_700_000_000.0  # type: ignore[union-attr]


def test_rows_of_shown_results_become_pages(home: Path) -> None:
    pages = list(read_log(str(home / "shown.csv")))
    assert pages.count(Impression("ny pizza", ["d1", "d2", "d3"], ["d2"], user="u1")) == 2
    assert len(pages) == 16


def test_shown_results_without_anything_that_tells_pages_are_counts(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("query,doc_id,clicked\na,1,0\na,2,1\n")
    assert list(read_log(str(path))) == [PairCount("a", "1", 0, 1), PairCount("a", "2", 1, 1)]


def test_shown_results_with_the_id_of_their_search(tmp_path: Path) -> None:
    """Rows in any order; positions tell the order, and the query stands in one of them alone."""
    path = tmp_path / "log.csv"
    path.write_text("search_id,query,doc_id,rank,is_click\ns1,a,3,3,0\ns2,b,9,1,1\ns1,,1,1,1\ns1,a,2,2,0\n")
    assert list(read_log(str(path))) == [Impression("a", ["1", "2", "3"], ["1"]), Impression("b", ["9"], ["9"])]


def test_shown_results_of_another_time_are_another_page(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("query,doc_id,clicked,user,time\na,1,0,u,10\na,2,1,u,10\na,3,1,u,20\n")
    assert [(page.results, page.clicks) for page in read_log(str(path))] == [(["1", "2"], ["2"]), (["3"], ["3"])]  # type: ignore[union-attr]


@pytest.mark.parametrize(("kinds", "format"), [(("search", "click"), "events"), (("book", "film"), "triples")])
def test_a_column_is_one_of_events_by_its_values(tmp_path: Path, kinds: tuple[str, str], format: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"type,query,doc_id,session\n{kinds[0]},a,1,s\n{kinds[1]},a,2,s\n")
    log = read_log(str(path), rejects=RejectLog(1.0))
    list(log)
    assert log.layouts[str(path)].format == format


@pytest.mark.parametrize("name", ["Klickdatum", "shop_click_timestamp", "Bestellzeit", "Klick-Zeitpunkt"])
def test_a_column_that_ends_like_a_time_is_the_time(tmp_path: Path, name: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"Suchbegriff;SKU;{name}\nkäse;A1;13.03.2024 12:05\nkäse;A2;14.03.2024 12:05\n")
    log = read_log(str(path))
    list(log)
    assert log.layouts[str(path)].renamed["time"] == name


def test_clicks_of_an_event_log_find_their_search_by_query_id(tmp_path: Path) -> None:
    """A click has the query_id of its search and no text: it belongs to the latest search with that id."""
    path = tmp_path / "log.jsonl"
    path.write_text(
        '{"event":"search","query_id":"x1","query":"Pizza","results":["a","b"]}\n'
        '{"event":"click","query_id":"x1","doc_id":"b"}\n'
        '{"event":"search","query_id":"x2","query":"Hotel","results":["c"]}\n'
        '{"event":"search","query_id":"x1","query":"Pizza","results":["b","a"]}\n'
        '{"event":"click","query_id":"x1","doc_id":"a"}\n'
        '{"event":"click","query_id":"x2","doc_id":"c"}\n'
        '{"event":"click","query_id":"other","doc_id":"c"}\n'
    )
    assert list(read_log(str(path))) == [
        Impression("pizza", ["a", "b"], ["b"]),
        Impression("hotel", ["c"], ["c"]),
        Impression("pizza", ["b", "a"], ["a"]),
        Impression("", None, ["c"], query_id="other"),
    ]


@pytest.mark.parametrize("first", ['"n"', '""'])
def test_quotes_in_a_table_with_tabs(tmp_path: Path, first: str) -> None:
    path = tmp_path / "log.tsv"
    path.write_text(f'{first}\t"query"\t"doc_id"\n"1"\t"a b"\t"7"\n')
    assert list(read_log(str(path))) == [PairCount("a b", "7", 1)]


def test_repeated_records(home: Path) -> None:
    log = read_log(str(home / "repeated.csv"))
    assert (len(list(log)), log.repeated) == (40, 20)
    once = read_log(str(home / "repeated.csv"), dedupe=True)
    assert (len(list(once)), once.repeated) == (20, 20)
    assert len(list(once)) == 20  # again


def test_documents_of_a_shop(home: Path) -> None:
    docs = read_docs(str(home / "products.csv"))
    first, second, third = docs
    assert guessed_line(docs).endswith(DOCUMENTS)
    assert first.fields["description"] == "The big apple, a city of pizza & bagels"
    assert second.fields == {
        "title": "Pizza", "description": "New York style pizza by the slice, jalapeños", "price": "4,00"
    }  # fmt: skip
    assert third.fields["description"] == "Baked with big apples"
    assert docs.with_html == 3
    named = read_docs(str(home / "products.csv"), columns={"doc_id": "SKU", "title": "Description"})
    assert next(iter(named)).fields["title"].startswith("The big apple")


def test_the_log_tells_which_column_of_documents_is_the_id(tmp_path: Path) -> None:
    (tmp_path / "docs.csv").write_text("id,sku,name\n1,A,Pizza\n")
    (tmp_path / "log.csv").write_text("q,sku\npizza,A\n")
    log = read_log(str(tmp_path / "log.csv"))
    graph = ClickGraph.build(log, read_docs(str(tmp_path / "docs.csv"), id_name=lambda: log.id_name))
    assert graph.doc_ids == ["A"]


def test_files_that_differ_cannot_be_said_by_one_option(home: Path) -> None:
    log, docs = read_log(str(home / "pipes.txt")), read_docs(str(home / "products.csv"))
    list(log), list(docs)
    line = guessed_line(log, docs)
    assert "pipes.txt (delimiter pipe): --columns" in line
    assert "products.csv (encoding cp1252, delimiter semicolon): --doc-columns" in line


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("weight;height\n1;2\n", "needs columns query and doc_id; it has weight, height: name them with columns"),
        ("ny pizza,d2\nbig apple,d1\n", r"it has ny pizza, d2: name them with .*; is there a header line\?"),
        ("Query,Query,doc_id\na,b,1\n", "has several columns 'Query', one of which is query: rename the others"),
        ("Query;QUERY;doc_id\na;b;1\n", "query may be any of Query, QUERY: say which, as in columns query=Query"),
        ('{"a": 1, "b": {"c": 2}}\n', "needs keys query and clicks; it has a, b, b.c: name them with columns"),
        ("query,doc_id,time\na,1,03/04/2024\n", r'may be a day and a month .*"%d/%m/%Y" or "%m/%d/%Y"'),
        ('[{"query": "a", "clicks": ["1"]}, {"query": "b"', "is cut short: its last bracket is never closed"),
    ],
)
def test_what_cannot_be_guessed_is_refused_once(tmp_path: Path, text: str, refusal: str) -> None:
    path = tmp_path / "log"
    path.write_text(text)
    with pytest.raises(InputError, match=refusal) as found:
        list(read_log(str(path)))
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("Click Timestamp,Shopper Hash,Typed Search,Opened Product Code", "time user query doc_id"),
        ("event_date,web_user_id,site_search_query,clicked_item_id", "time user query doc_id"),
        ("log_time,customerNumber,SearchTerm,productSku", "time user query doc_id"),
        ("ts,sid,q,asin", "time session query doc_id"),
        ("created_at,session_key,keywords,article_no", "time session query doc_id"),
    ],
)
def test_other_shops(tmp_path: Path, header: str, columns: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"{header}\n2024-01-31 10:00,u1,ny pizza,d2\n2024-02-01 10:00,u2,big apple,d1\n")
    log = read_log(str(path))
    assert [(r.query, r.doc_id, r.user) for r in log] == [  # type: ignore[union-attr]
        ("ny pizza", "d2", "u1"), ("big apple", "d1", "u2")
    ]  # fmt: skip
    found = log.layouts[str(path)].columns
    assert found == dict(zip(columns.split(), header.split(","), strict=True))


def test_a_mistyped_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"query": "a", "clicks": ["1"], "when": 5}\n')
    with pytest.raises(InputError, match="has no key 'wehn' for time; it has query, clicks, when"):
        list(read_log(str(path), columns={"time": "wehn"}))


@pytest.mark.parametrize(
    "options", [{"encoding": "klingon"}, {"delimiter": "ab"}, {"time_format": "%H:%M"}, {"time_format": "day"}]
)
def test_refused_options(options: dict[str, str]) -> None:
    (name,) = options
    with pytest.raises(SettingError, match=f"^{name} "):
        read_log("x", **options)  # type: ignore[arg-type]


def test_a_delimiter_is_taken_at_its_word(tmp_path: Path) -> None:
    """Commas would cut the same lines into more columns."""
    path = tmp_path / "log.csv"
    path.write_text("query;doc_id;a,b,c,d,e\nx;1;1,2,3,4,5\ny;2;1,2,3,4,5\n")
    assert list(read_log(str(path), delimiter=";")) == [PairCount("x", "1", 1), PairCount("y", "2", 1)]
    assert list(read_log(str(path), delimiter="semicolon")) == [PairCount("x", "1", 1), PairCount("y", "2", 1)]
    with pytest.raises(InputError, match="query"):
        list(read_log(str(path)))


def test_columns_without_a_name_at_the_end_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("query,doc_id,clicks,,\na,1,2,,\nb,2,3\n")
    assert [r.clicks for r in read_log(str(path))] == [2, 3]  # type: ignore[union-attr]


@pytest.mark.parametrize(("one", "other"), [(7, 8), (7.0, 8.0)])
def test_whole_numbers_are_ids_under_any_name(tmp_path: Path, one: float, other: float) -> None:
    path = tmp_path / "log.jsonl"
    rows = [{"query": "a", "product": one, "price": 1.5}, {"query": "b", "product": other, "price": 2.5}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = read_log(str(path))
    assert [r.doc_id for r in log] == ["7", "8"]  # type: ignore[union-attr]
    assert log.layouts[str(path)].columns["doc_id"] == "product"


def test_a_page_that_begins_with_its_results_is_one_record(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"results": [{"doc_id": "a", "clicked": 1}, {"doc_id": "b"}], "query": "x"}\n' * 2)
    assert list(read_log(str(path))) == [Impression("x", ["a", "b"], ["a"])] * 2


def test_a_time_format_is_taken_at_its_word(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("query,doc_id,time\na,1,03/04/2024\nb,1,31/12/2024\n")
    log = read_log(str(path), time_format="%m/%d/%Y", rejects=RejectLog(1.0))
    assert [record.time for record in log] == [1709510400.0]  # type: ignore[union-attr]
    assert log.rejects.first[0].reason == "time '31/12/2024' is not of the form %m/%d/%Y"


@pytest.mark.parametrize(
    ("times", "form"),
    [
        (["2024-01-31T10:00:00Z", "1706695200"], None),
        (["31.01.2024", "1.2.2024"], "%d.%m.%Y"),
        (["01/31/2024 10:15", "02/01/2024 11:00"], "%m/%d/%Y %H:%M"),
        (["01/02/2024", "02/02/2024", "01/03/2024"], "%d/%m/%Y"),  # a log is in the order of time
        (["31-Jan-2024 10:15:00", "01-Feb-2024 10:15:00"], "%d-%b-%Y %H:%M:%S"),
        (["31/Jan/2024:10:15:00 +0000"], "%d/%b/%Y:%H:%M:%S %z"),
        (["Jan 31, 2024 10:15 PM"], "%b %d, %Y %I:%M %p"),
        ([20240131, 20240201], "%Y%m%d"),
        (["20240131101500"], "%Y%m%d%H%M%S"),
        (["2024/01/31 10:15:00.250"], "%Y/%m/%d %H:%M:%S.%f"),
        (["soon", "later"], None),
    ],
)
def test_formats_of_times(times: list[Any], form: str | None) -> None:
    assert guess_format(times, "log") == form


def test_a_frame_is_recognised_like_a_file() -> None:
    log = pa.table({"search_term": ["ny pizza"], "sku": ["d2"], "ts": [1_700_000_000_000]})
    docs = pa.table({"sku": ["d2"], "product_title": ["<b>Pizza</b>"]})
    graph = ClickGraph.from_frame(log, docs)
    assert graph.field("title") == ["Pizza"]
    assert graph.clicks is not None
    assert graph.clicks.time[0] == 1_700_000_000


def test_a_frame_says_what_was_guessed_and_what_is_odd(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "clickbridge")
    log = pa.table({"q": ["a", "b"], "hits": [["C1"], ["B1"]], "clicked": [["A1"], ["B1"]], "ran": ["u", "v"]})
    docs = pa.table({"id": ["a1", "b1"], "name": ["<p>x</p>", "y"], "price": [1.5, 2.5]})
    ClickGraph.from_frame(log, docs)
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [line for level, line in said if level == "INFO" and "guessed" in line] == [
        "guessed of the log: columns={'query': 'q', 'results': 'hits', 'clicks': 'clicked'}; not used of the log: ran",
        "guessed of the documents: doc_columns={'doc_id': 'id', 'title': 'name'}",
    ]
    assert ("INFO", "fields of documents that are not text were left out: price") in said
    assert [line for level, line in said if level == "WARNING"] == [
        "HTML was taken out of the text of 1 document",
        "1 of 2 clicks is on documents that the page did not show",
        "2 of 2 clicks are on ids that no document has, such as 'A1'; the documents have 'a1'",
    ]


def test_files_say_what_is_odd_and_records_made_by_hand_do_not(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", "clickbridge")
    log, docs = read_log(str(home / "capitals.csv")), read_docs(str(home / "products.csv"))
    ClickGraph.build(list(log), list(docs))
    assert caplog.records == []
    ClickGraph.build(log, docs)
    assert [record.getMessage() for record in caplog.records] == [
        "HTML was taken out of the text of 3 documents",
        "20 of 20 clicks are on ids that no document has, such as 'D2'; the documents have 'd2'",
    ]


@pytest.mark.parametrize(
    ("clicked", "known", "meant"),
    [("A1", "a1", "a1"), ("9713872.0", "9713872", "9713872"), ("0042", "42", "42"), ("x", "y", "")],
)
def test_ids_that_match_no_document(clicked: str, known: str, meant: str) -> None:
    docs = pa.table({"doc_id": [known], "title": ["Pizza"]})
    graph = ClickGraph.from_frame(pa.table({"query": ["a"], "doc_id": [clicked]}), docs)
    found = unmatched_ids(graph)
    assert found is not None
    assert (found.clicks, found.all_clicks, found.example, found.meant) == (1, 1, clicked, meant)
    assert f"1 of 1 click is on ids that no document has, such as {clicked!r}" in str(found)


@given(
    st.lists(
        st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.lists(st.integers(), max_size=3), max_size=3)
    ),
    st.integers(1, 9),
)
@settings(max_examples=60)
def test_arrays_are_cut_into_their_objects(records: list[dict[str, Any]], chunk: int) -> None:
    """However the bytes come, and whatever brackets and quotes the texts hold."""
    import json

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(chunk)

    data = json.dumps(records, indent=1).encode()
    assert [json.loads(part) for part in json_objects(Slow(data), "x", 1)] == records


@given(st.text(alphabet="<>/pbascript&;!- \"'=x\n", max_size=80))
@settings(max_examples=100)
def test_any_text_survives_the_search_for_html(text: str) -> None:
    assert isinstance(without_html(text), str)
    if "<" not in text and "&" not in text:
        assert without_html(text) == text


def test_html_of_all_sorts() -> None:
    page = "<!DOCTYPE html><style>p {}</style><script>alert('<p>')</script><p class='a'>One<br/>two<!-- no --></p>"
    assert without_html(page) == "One two"
    assert without_html("List<String> &lt; <stdin>") == "List<String> < <stdin>"
    assert without_html("<script>never closed") == "<script>never closed"
    assert len(without_html("<script" * 100_000)) > 0  # and soon


def test_escaped_quotes_and_single_quotes(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text('query,doc_id\n"15\\" tv, black",1\nplain,2\n')
    assert [r.query for r in read_log(str(path))] == ['15" tv, black', "plain"]  # type: ignore[union-attr]
    path.write_text("'query';'doc_id'\n'a;b';'1'\n")
    assert [r.query for r in read_log(str(path))] == ["a;b"]  # type: ignore[union-attr]


def test_a_table_in_memory_is_never_needed(tmp_path: Path) -> None:
    """More rows than are looked at; the last one counts too."""
    path = tmp_path / "log.csv"
    with path.open("w") as file:
        rows = csv.writer(file, delimiter=";")
        rows.writerow(["Search Term", "SKU"])
        rows.writerows([f"query {i} ü", f"d{i}"] for i in range(30_000))
    records = list(read_log(str(path)))
    assert (len(records), records[-1]) == (30_000, PairCount("query 29999 ü", "d29999"))


def test_the_file_of_documents_is_what_it_claims() -> None:
    assert products_csv().decode("latin-1").count("\r\n") == 3


@pytest.mark.parametrize(
    ("text", "unused"),
    [
        ("q,doc,t,price\na,1,2024-01-01,3\n", "t price"),
        (
            '{"q": "a", "item": {"sku": "1", "price": {"eur": 2}}, "results": ["1"], "lang": "en"}\n',
            "item.price.eur lang",
        ),
        ("query,doc_id\na,1\n", ""),
    ],
)
def test_columns_that_are_not_used_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, unused: str
) -> None:
    path = tmp_path / "log"
    path.write_text(text)
    log = read_log(str(path))
    with guesses_told(False, log):
        list(log)
    assert log.layouts[str(path)].unused == unused.split()
    assert capsys.readouterr().err == (f"not used: {', '.join(unused.split())}\n" if unused else "")
