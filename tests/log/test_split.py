"""`split`: a training log that ingests and lists with labels, cut by time or by query."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import orjson
import pytest

from clickbridge import ClickGraph, read_docs, read_log
from clickbridge.errors import InputError, SettingError
from clickbridge.io.lists import read_lists
from clickbridge.log.rejects import RejectLog
from clickbridge.log.split import NO_ORDER, SplitReport, split_log
from clickbridge.types import Impression, PairCount

DAY = 86400


def log_of(path: Path, *records: dict[str, Any]) -> str:
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    return str(path)


def pages(n: int = 100) -> list[dict[str, Any]]:
    """Page i is of day i, shows three documents, the second one clicked."""
    return [
        {
            "query": f"query {i % 20}",
            "results": ["a", f"d{i % 7}", "z"],
            "clicks": [f"d{i % 7}"],
            "time": i * DAY,
            "user": f"u{i % 3}",
        }
        for i in range(n)
    ]


def cut(tmp_path: Path, log: str, at: str, by: str = "time", **more: Any) -> SplitReport:
    options = {name: more.pop(name) for name in ("columns", "rejects", "time_unit") if name in more}
    train, lists = tmp_path / more.pop("train", "train.jsonl"), tmp_path / more.pop("lists", "test.lists.jsonl")
    return split_log(read_log(log, **options), at=at, by=by, train=str(train), lists=str(lists), **more)


def test_by_share_of_time(tmp_path: Path) -> None:
    source = log_of(tmp_path / "log.jsonl", *pages())
    report = cut(tmp_path, source, "80%")
    assert (report.train_lines, report.held_lines, report.by) == (80, 20, "time")
    assert list(read_log(str(tmp_path / "train.jsonl"))) == list(read_log(source))[:80]
    lists = read_lists(str(tmp_path / "test.lists.jsonl"))
    assert report.lists == len(lists) == 20
    assert {lst.query for lst in lists} == {f"query {i}" for i in range(20)}
    for lst in lists:
        i = 80 + int(lst.query.split()[1])
        assert dict(zip(lst.results, lst.labels or [], strict=True)) == {"a": 0.0, f"d{i % 7}": 1.0, "z": 0.0}


@pytest.mark.parametrize("by", ["time", "query"])
def test_a_share_is_a_percentage_or_a_number_below_1(tmp_path: Path, by: str) -> None:
    source = log_of(tmp_path / "log.jsonl", *pages())
    reports = [cut(tmp_path, source, at, by) for at in ("80%", "0.8", ".8")]
    assert len({(report.train_lines, report.held_lines, report.lists) for report in reports}) == 1


def test_by_date(tmp_path: Path) -> None:
    source = log_of(tmp_path / "log.jsonl", *pages())
    report = cut(tmp_path, source, "1970-03-01")  # day 59, which is the last to train on
    assert (report.train_lines, report.held_lines) == (60, 40)
    assert report.at.startswith("1970-03-01T00:00:00")


def test_a_query_held_twice_is_one_list_of_all_it_was_shown(tmp_path: Path) -> None:
    held = [
        {"query": "Q", "results": ["1", "2"], "clicks": ["2"], "time": 10},
        {"query": "q ", "results": ["3", "2"], "clicks": ["9"], "time": 11},
    ]
    source = log_of(tmp_path / "log.jsonl", {"query": "x", "results": ["1"], "clicks": [], "time": 1}, *held)
    cut(tmp_path, source, "1970-01-01T00:00:05")
    (lst,) = read_lists(str(tmp_path / "test.lists.jsonl"))
    assert (lst.query, lst.results, lst.labels) == ("q", ["1", "2", "3", "9"], [0.0, 1.0, 0.0, 1.0])


def test_by_query_keeps_queries_whole(tmp_path: Path) -> None:
    source = log_of(tmp_path / "log.jsonl", *pages(200))
    report = cut(tmp_path, source, "50%", "query", train="train.jsonl.gz", lists="test.jsonl.gz")
    train = {record.query for record in read_log(str(tmp_path / "train.jsonl.gz"))}  # type: ignore[union-attr]
    lists = read_lists(str(tmp_path / "test.jsonl.gz"))
    assert train.isdisjoint(lst.query for lst in lists)
    assert len(train) + len(lists) == 20
    assert report.train_lines + report.held_lines == 200
    first = (tmp_path / "train.jsonl.gz").read_bytes()
    cut(tmp_path, source, "50%", "query", train="again.jsonl.gz")
    assert (tmp_path / "again.jsonl.gz").read_bytes() == first
    cut(tmp_path, source, "50%", "query", train="other.jsonl.gz", seed=1)
    assert gzip.decompress((tmp_path / "other.jsonl.gz").read_bytes()) != gzip.decompress(first)


def test_the_training_log_ingests_to_the_same_graph(tmp_path: Path) -> None:
    records = [*pages(50), {"query_id": "q7", "results": ["a", "b"], "clicks": ["b", "out"], "time": 1, "session": 5},
               {"query": "no page", "clicks": ["c"], "time": 2}]  # fmt: skip
    source = log_of(tmp_path / "log.jsonl", *records)
    cut(tmp_path, source, "70%", "query")
    train = str(tmp_path / "train.jsonl")
    kept = {record.query or record.query_id for record in read_log(train)}  # type: ignore[union-attr]
    whole = [r for r in read_log(source) if (r.query or r.query_id) in kept]  # type: ignore[union-attr]
    one, two = ClickGraph.build(read_log(train)), ClickGraph.build(whole)
    assert list(one.query_keys) == list(two.query_keys)
    assert one.docs == two.docs
    for name in ("query", "doc", "clicks", "impressions", "users", "first", "last"):
        assert getattr(one.pairs, name).tolist() == pytest.approx(getattr(two.pairs, name).tolist(), nan_ok=True)


def test_a_table_written_as_jsonl_becomes_a_line_a_click_and_lists_have_others_to_rank_against(tmp_path: Path) -> None:
    rows = ["query,doc_id,clicks,when", "a,01,3,1", "b,02,1,2", "c,03,0,3", "a,02,2,10", "c,04,0,11", "d,01,1,12"]
    (tmp_path / "log.csv").write_text("\n".join(rows))
    report = cut(tmp_path, str(tmp_path / "log.csv"), "1970-01-01T00:00:05", columns={"time": "when"})
    assert (report.train_lines, report.held_lines, report.lists) == (3, 3, 2)
    assert list(read_log(str(tmp_path / "train.jsonl"))) == [
        *[Impression("a", None, ["01"], time=1.0)] * 3,
        Impression("b", None, ["02"], time=2.0),
    ]
    lists = {lst.query: (lst.results, lst.labels) for lst in read_lists(str(tmp_path / "test.lists.jsonl"))}
    assert lists == {"a": (["01", "02"], [0.0, 1.0]), "d": (["01", "02"], [1.0, 0.0])}


ROWS = [
    "query,doc_id,clicks,impressions,user,time",
    'A  b,01,3,9,"u ""1"", x",1.5', 'a b,01,2,4,"u ""1"", x",1.5', "a b,01,2,,other,1.5", "c,02,0,7,,2",
    "d,09,1,1,,30",
]  # fmt: skip


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.parquet", "t.csv.gz", "t.tsv.gz", "t.pq"])
def test_a_table_stays_a_table_with_equal_rows_summed(tmp_path: Path, name: str) -> None:
    (tmp_path / "log.csv").write_text("\n".join(ROWS))
    report = cut(tmp_path, str(tmp_path / "log.csv"), "1970-01-01T00:00:05", train=name)
    assert report.train_lines == 4
    assert report.notes == [NO_ORDER]
    assert list(read_log(str(tmp_path / name))) == [
        PairCount("a b", "01", 5, 13, user='u "1", x', time=1.5),
        PairCount("a b", "01", 2, None, user="other", time=1.5),
        PairCount("c", "02", 0, 7, time=2.0),
    ]


def test_columns_that_hold_nothing_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("query_id,doc_id\n" + "".join(f"q{i},d{i % 2}\n" * 2 for i in range(20)))
    cut(tmp_path, str(tmp_path / "log.csv"), "50%", "query", train="t.tsv")
    head, *rows = (tmp_path / "t.tsv").read_text().splitlines()
    assert head == "query\tquery_id\tdoc_id\tclicks"
    assert all(row.endswith("\t2") for row in rows)
    assert len(rows) == len({row.split("\t")[1] for row in rows})


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_pages_written_as_a_table_keep_clicks_and_impressions(tmp_path: Path, name: str) -> None:
    source = log_of(tmp_path / "log.jsonl", *(page | {"clicks": [*page["clicks"], "outside"]} for page in pages(50)))
    report = cut(tmp_path, source, "80%", train=name)
    assert report.notes == [f"{tmp_path / name} is a table: 40 result pages became counts; .jsonl keeps pages"]
    early = [r for r in read_log(source) if r.time < 39.5 * DAY]  # type: ignore[union-attr, operator]
    one, two = ClickGraph.build(read_log(str(tmp_path / name))), ClickGraph.build(early)
    for column in ("clicks", "impressions", "users", "last"):
        known = one.pairs.clicks > 0
        assert getattr(one.pairs, column)[known].tolist() == getattr(two.pairs, column).tolist()


def test_many_rows_keep_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clickbridge.log.writers.BATCH_ROWS", 7)
    (tmp_path / "log.csv").write_text(
        "query,doc_id,time\n" + "".join(f"q{i % 50},d,1\n" for i in range(100)) + "x,e,9\n"
    )
    cut(tmp_path, str(tmp_path / "log.csv"), "1970-01-01T00:00:05", train="t.csv")
    assert list(read_log(str(tmp_path / "t.csv"))) == [PairCount(f"q{i}", "d", 2, time=1.0) for i in range(50)]


def test_what_a_table_cannot_hold_is_refused(tmp_path: Path) -> None:
    source = log_of(tmp_path / "log.jsonl", *(page | {"user": "a\tb"} for page in pages()))
    with pytest.raises(InputError, match=r"a TSV file cannot hold 'a\\tb': write the log as .csv"):
        cut(tmp_path, source, "80%", train="t.tsv")
    with pytest.raises(SettingError, match=r"Parquet is packed already: name it .*/t.parquet$"):
        cut(tmp_path, source, "80%", train="t.parquet.gz")
    assert [p.name for p in tmp_path.iterdir()] == ["log.jsonl"]


def test_the_most_clicked_documents_are_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clickbridge.log.split.DISTRACTORS", 1)
    rows = ["query,doc_id,clicks,time", "a,rare,1,1", "b,rare,1,1", "c,often,9,1", "d,never,0,1", "e,new,1,9"]
    (tmp_path / "log.csv").write_text("\n".join(rows))
    cut(tmp_path, str(tmp_path / "log.csv"), "1970-01-01T00:00:05")
    (lst,) = read_lists(str(tmp_path / "test.lists.jsonl"))
    assert lst.results == ["new", "often"]


def test_queries_known_by_id_keep_it(tmp_path: Path) -> None:
    held = [{"query_id": "q0", "results": ["1", "2"], "clicks": ["1"], "time": 9},
            {"query": "text", "query_id": "t", "results": ["1", "2"], "clicks": ["1"], "time": 9}]  # fmt: skip
    source = log_of(tmp_path / "log.jsonl", {"query": "x", "clicks": ["1"], "time": 1}, *held)
    cut(tmp_path, source, "1970-01-01T00:00:05")
    lists = read_lists(str(tmp_path / "test.lists.jsonl"))
    assert (lists[0].query_id, lists[0].query) == ("q0", "")
    assert len({lst.query_id for lst in lists}) == 2


def test_lines_without_a_time_are_trained_on(tmp_path: Path) -> None:
    source = log_of(tmp_path / "log.jsonl", *pages(), {"query": "timeless", "results": ["a"], "clicks": []})
    report = cut(tmp_path, source, "80%")
    assert (report.train_lines, report.held_lines) == (81, 20)


def test_times_in_another_unit_than_said_stop_it(tmp_path: Path) -> None:
    source = log_of(tmp_path / "log.jsonl", *(page | {"time": 1.7e12 + page["time"]} for page in pages()))
    with pytest.raises(InputError, match=r"line 1: time 1700000000000.0 is in the year 55841: is the unit ms\?"):
        cut(tmp_path, source, "80%", time_unit="s")
    assert cut(tmp_path, source, "80%").lists  # where no unit is said, it is found


def test_rejects_are_counted_once(tmp_path: Path) -> None:
    path = Path(log_of(tmp_path / "log.jsonl", *pages()))
    path.write_bytes(path.read_bytes() + b"{}\n")
    rejects = RejectLog(0.01)
    cut(tmp_path, str(path), "80%", rejects=rejects)
    assert (rejects.count, rejects.lines) == (1, 101)


@pytest.mark.parametrize(
    ("at", "by", "error", "says"),
    [
        ("80", "query", SettingError, "by query takes a share like at 80%; got '80'"),
        ("1970-03-01", "query", SettingError, "by query takes a share"),
        ("0%", "time", SettingError, "at takes a share between 0% and 100%; got '0%'"),
        ("100%", "query", SettingError, "at takes a share between"),
        ("x%", "time", SettingError, "at takes a share between"),
        ("soon", "time", SettingError, "at takes a share like 80% or a date like 2026-01-31"),
        ("", "time", SettingError, "at takes a share like 80% or a date"),
        ("80%", "user", SettingError, "by must be time or query; got 'user'"),
        ("2099-01-01", "time", InputError, "leaves 100 lines to train on and 0 to test: move the cut"),
    ],
)
def test_refusals_write_nothing(tmp_path: Path, at: str, by: str, error: type[Exception], says: str) -> None:
    source = log_of(tmp_path / "log.jsonl", *pages())
    with pytest.raises(error) as refusal:
        cut(tmp_path, source, at, by)
    assert says in str(refusal.value)
    assert [p.name for p in tmp_path.iterdir()] == ["log.jsonl"]


def test_a_log_without_times_is_refused(tmp_path: Path) -> None:
    source = log_of(tmp_path / "log.jsonl", {"query": "a", "clicks": ["1"]})
    with pytest.raises(InputError, match="the log has no times: split it with by query"):
        cut(tmp_path, source, "80%")


def test_a_held_part_without_a_usable_list_is_refused_and_nothing_written(tmp_path: Path) -> None:
    clicked_all = [{"query": f"q{i}", "results": ["1"], "clicks": ["1"], "time": i} for i in range(10)]
    source = log_of(tmp_path / "log.jsonl", *clicked_all)
    with pytest.raises(InputError, match="no query with both a clicked and an unclicked result"):
        cut(tmp_path, source, "50%")
    assert [p.name for p in tmp_path.iterdir()] == ["log.jsonl"]


def test_standard_input_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="split reads the log twice"):
        cut(tmp_path, "-", "80%")


def test_counts_are_pair_counts(tmp_path: Path) -> None:
    """What the training log says of a table is what the table says."""
    rows = ["query,doc_id,clicks,user,time", *(f"q{i % 5},d{i % 3},{i % 4},u{i % 2},{i}" for i in range(40))]
    (tmp_path / "log.csv").write_text("\n".join(rows))
    cut(tmp_path, str(tmp_path / "log.csv"), "75%")
    train = ClickGraph.build(read_log(str(tmp_path / "train.jsonl")))
    early = [
        r for r in read_log(str(tmp_path / "log.csv")) if isinstance(r, PairCount) and r.clicks and r.time <= 29.25
    ]  # type: ignore[operator]
    table = ClickGraph.build(early)
    assert (train.matrix(rows="queries") != table.matrix(rows="queries")).nnz == 0
    assert train.pairs.users is not None
    assert train.pairs.users.tolist() == table.pairs.users.tolist()  # type: ignore[union-attr]


def test_documents_that_the_log_brings_along(tmp_path: Path) -> None:
    pages = "".join(
        f'<interaction><query>q{i}</query><results><result rank="1"><url>http://{i}</url>'
        f"<title>Title {i}</title></result>"
        '<result rank="2"><url>http://x</url></result></results>'
        "<clicked><click><rank>1</rank></click></clicked></interaction>"
        for i in range(20)
    )
    (tmp_path / "log.xml").write_text(f'<sessiontrack><session num="1">{pages}</session></sessiontrack>')
    lost = cut(tmp_path, str(tmp_path / "log.xml"), "50%", by="query")
    assert any("the log brings along 21 documents" in note for note in lost.notes)
    kept = cut(tmp_path, str(tmp_path / "log.xml"), "50%", by="query", docs=str(tmp_path / "docs.jsonl"))
    assert (kept.documents, kept.notes) == (21, [])
    assert {d.fields.get("title") for d in read_docs(str(tmp_path / "docs.jsonl"))} >= {"Title 0", "Title 19"}
