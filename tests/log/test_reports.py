"""Tables as reports write them: lines above the header, and marks between thousands."""

from __future__ import annotations

from pathlib import Path

import pytest

from clickbridge import ClickGraph, PairCount, read_docs, read_log
from clickbridge.cli.inputs import guessed_line
from clickbridge.errors import InputError
from clickbridge.graph.oddities import oddities
from clickbridge.log.clean import RecordError, whole_number

TABLE = ["query,doc_id,clicks", "ny pizza,d2,12", "big apple,d1,5"]
PAIRS = [PairCount("ny pizza", "d2", 12), PairCount("big apple", "d1", 5)]
LINE = "Search terms, by page and day"  # three names would be a header


@pytest.mark.parametrize(
    ("above", "said"),
    [
        (["Site search report"], "1 line was skipped: 'Site search report'"),
        (["Search terms"], "1 line was skipped: 'Search terms'"),
        (["Report", "", "2024-01-01 - 2024-01-31", ""], "2 lines were skipped: 'Report', …"),
        (["Report", "Period: 1 Jan 2024, to 31 Jan 2024"], "2 lines were skipped: 'Report', …"),
        (["Report", "From,2024-01-01,2024-01-31"], "2 lines were skipped: 'Report', …"),
        (["Report,,", "Period,January,", ",,"], "2 lines were skipped: 'Report', …"),
        (["# ------", f"# {LINE}", "# ------"], f"1 line was skipped: '{LINE}'"),
        (["# Search terms, by page"], "1 line was skipped: 'Search terms, by page'"),
        (["sep=,", "Report"], "1 line was skipped: 'Report'"),
        (["", ""], ""),
        (["sep=,"], ""),
        (["# --"], ""),
    ],
)
@pytest.mark.parametrize(("mark", "name"), [(",", "log.csv"), (";", "log.csv"), ("\t", "log.tsv"), (",", "log")])
def test_lines_above_the_header(tmp_path: Path, above: list[str], said: str, mark: str, name: str) -> None:
    path = tmp_path / name
    marked = [row if "terms" in row else row.replace(",", mark) for row in (*above, *TABLE)]
    path.write_text("\n".join([*marked, ""]))
    log = read_log(str(path))
    assert list(log) == PAIRS
    line = guessed_line(log)
    assert line.endswith(f"above the header of {path} {said}" if said else "")
    assert ("above the header" in line) == bool(said)


@pytest.mark.parametrize(
    "rows",
    [
        ["a,b,c", "ny pizza,query,doc", "big apple,d1,5"],
        ["shop_time,Typed Search,Opened Product Code", "2024-01-31,title,name", "2024-01-31,query,sku"],
        ["sku,what,which", "query,title,d1", "d2,x"],
        ["#query,doc_id", "ny pizza,d2"],
        ["query,doc_id", "a,1,x", "query,2,clicks", "b,3,y"],
    ],
)
def test_a_row_is_not_taken_for_the_header(tmp_path: Path, rows: list[str]) -> None:
    from clickbridge.log.tables import find_dialect

    found = find_dialect("\n".join(rows), None)
    assert (found.skip, found.above, found.delimiter) == (0, (), ",")


def test_lines_above_documents(tmp_path: Path) -> None:
    path = tmp_path / "docs.tsv"
    path.write_text("Products\nJanuary\n\nsku\tproduct name\nd1\tPizza\nd2\tPie\n")
    docs = read_docs(str(path))
    assert [(document.doc_id, document.fields["title"]) for document in docs] == [("d1", "Pizza"), ("d2", "Pie")]
    assert guessed_line(docs).endswith(f"; above the header of {path} 2 lines were skipped: 'Products', …")


def test_names_that_the_user_gives_are_looked_for(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("A report\n\nwhat,which\nny pizza,d2\nbig apple,d1\n")
    with pytest.raises(InputError, match=r"it has A report: name them with .*; the header line is the first: remove w"):
        list(read_log(str(path)))
    log = read_log(str(path), columns={"query": "what", "doc_id": "which"})
    assert list(log) == [PairCount("ny pizza", "d2", 1), PairCount("big apple", "d1", 1)]
    with pytest.raises(InputError, match=r"a column doc_id is needed; there are A report: .*: remove what is above"):
        list(read_docs(str(path)))


def test_lines_that_are_rejected_have_their_number_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["Report", "", *TABLE, "x,y,many"]))
    with pytest.raises(InputError, match=r"log.csv line 6: clicks must be a whole number, got 'many'"):
        list(read_log(str(path)))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1,204", 1204), ("12,050,000", 12_050_000), ("1 204", 1204), ("1\u202f204", 1204), ("1\u00a0204", 1204),
        ("1'204", 1204), ("1’204", 1204), (" 3,000 ", 3000), ("12", 12), ("3.0", 3),
    ],
)  # fmt: skip
def test_marks_between_thousands(text: str, count: int) -> None:
    assert whole_number(text, "clicks", 1) == count


@pytest.mark.parametrize(
    "text", ["1,20", "0,204", "1204,000", "1,204 000", "1,204.5", "1,2045", "3.5", "1.204", "1,,204"]
)
def test_other_marks_are_refused(text: str) -> None:
    with pytest.raises(RecordError, match="clicks must be a whole number"):
        whole_number(text, "clicks", 1)


@pytest.mark.parametrize(
    ("clicks", "impressions", "read"),
    [
        (["1.204", "5"], ["12.000", "30"], [(1204, 12_000), (5, 30)]),
        (["1.204", "5"], ["12.000", "3.000"], [(1204, 12_000), (5, 3000)]),  # clicks tell what impressions mean
        (["1.204.000", "3.000"], ["", ""], [(1_204_000, None), (3000, None)]),
        (["12.000", "3.000"], ["", ""], [(12, None), (3, None)]),  # as a program writes numbers
        (["12.0", "3.0"], ["4000", "30.0"], [(12, 4000), (3, 30)]),
        (["1,204", "5"], ["12,000", "30"], [(1204, 12_000), (5, 30)]),
        (["1 204", "5"], ["12 000", "3 000"], [(1204, 12_000), (5, 3000)]),
    ],
)
def test_points_between_thousands(
    tmp_path: Path, clicks: list[str], impressions: list[str], read: list[tuple[int, int | None]]
) -> None:
    path = tmp_path / "log.csv"
    rows = [f"q{i};d{i};{c};{n}" for i, (c, n) in enumerate(zip(clicks, impressions, strict=True))]
    path.write_text("\n".join(["query;doc_id;clicks;impressions", *rows, ""]))
    log = read_log(str(path))
    assert [(row.clicks, row.impressions) for row in log] == read  # type: ignore[union-attr]
    assert [n for block in log.blocks() for n in block.clicks] == [n for n, _ in read]  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["log.tsv", "log.csv"])
@pytest.mark.parametrize("text", ["# only a comment", "sep=;", "sep=;\n"])
def test_a_file_without_a_header_line_is_refused(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=r"a header line with column names is needed|needs columns"):
        list(read_log(str(path)))


def test_separators_of_lines_within_a_text_are_no_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("Report\nquery,doc_id,clicks\na\u2028b\u2028c,1,2\n", encoding="utf-8")
    assert [record.doc_id for record in read_log(str(path))] == ["1"]  # type: ignore[union-attr]


PRINTED = """\
   query   | doc_id | clicks
-----------+--------+--------
 ny pizza  | 101    |      3
 big apple | 102    |      1
(2 rows)
"""


@pytest.mark.parametrize(
    "text",
    [
        PRINTED,
        "query, doc_id, clicks\nny pizza, 101, 3\nbig apple, 102, 1\n",
        "query;doc_id;clicks\nny pizza; 101; 3\nbig apple; 102; 1\n",
        'query, doc_id, clicks\n"ny pizza", "101", 3\n"big apple", "102", 1\n',
    ],
)
def test_blanks_beside_delimiters_are_no_part_of_the_cells(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text)
    log = read_log(str(path))
    assert list(log) == [PairCount("ny pizza", "101", 3), PairCount("big apple", "102", 1)]


def test_a_blank_in_some_cells_is_part_of_them(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("query,doc_id\nny pizza,101\nbig apple, 102\n")
    with pytest.raises(InputError, match="doc_id ' 102' is empty or has white space"):
        list(read_log(str(path)))


def test_a_quote_in_a_printed_table_is_a_character(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(PRINTED.replace(" ny pizza ", ' "ny pizza'))
    assert [record.query for record in read_log(str(path))] == ['"ny pizza', "big apple"]  # type: ignore[union-attr]


def test_cells_of_marks_alone_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("query, doc_id\n" + "ny, 1\n" * 200 + "-, -\n")
    assert list(read_log(str(path)))[-1] == PairCount("-", "-")


def test_a_table_named_as_a_spreadsheet_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.xlsx"
    path.write_text("query,doc_id\nny,1\n")
    assert list(read_log(str(path))) == [PairCount("ny", "1")]
    path.write_bytes(b"PK\x03\x04" + bytes(30))
    with pytest.raises(InputError, match=r"log.xlsx is a spreadsheet: save it as CSV"):
        list(read_log(str(path)))


def test_line_ends_of_windows_add_no_row(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b'Report\r\nquery,doc_id,clicks\r\n"ny\rtv",1,3\r\nny,1,2\r\n')
    assert [record.doc_id for record in read_log(str(path))] == ["1", "1"]  # type: ignore[union-attr]


def test_times_in_1970_are_said(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("query,doc_id,time\nny,1,45717.25\nny,1,45718.5\n")
    graph = ClickGraph.build(read_log(str(path)))
    assert any(line.startswith("all times are in 1970") for line in oddities(graph))
