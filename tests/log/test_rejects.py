"""Lines left out: counted, the first three reasons in the message, all of them in the file."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from clickbridge import ClickGraph, read_docs, read_log
from clickbridge.errors import InputError, SettingError
from clickbridge.log.rejects import RejectLog, parse_share

GOOD = '{"query":"a","results":["1","2"],"clicks":["1"]}\n'


def written(path: Path, text: str | bytes) -> str:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


@pytest.mark.parametrize(("text", "share"), [("1%", 0.01), ("0.05", 0.05), ("0", 0.0), ("100%", 1.0), ("1", 1.0)])
def test_shares(text: str, share: float) -> None:
    assert parse_share(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "%", "2", "101%", "-1%", "nan", "one"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match="a share is a number"):
        parse_share(text)


def test_up_to_the_share_lines_are_left_out(tmp_path: Path) -> None:
    log = read_log(written(tmp_path / "log.jsonl", GOOD * 99 + "{}\n"))
    assert len(list(log)) == 99
    assert (log.rejects.count, log.rejects.lines) == (1, 100)
    assert [(r.line, r.reason) for r in log.rejects.first] == [(100, "neither query nor query_id")]


def test_above_the_share_the_line_names_count_and_first_three_reasons(tmp_path: Path) -> None:
    bad = '{}\nnonsense\n{"query":"a"}\n{"query":"b"}\n'
    with pytest.raises(InputError) as refusal:
        list(read_log(written(tmp_path / "log.jsonl", GOOD * 6 + bad)))
    line = str(refusal.value)
    assert "\n" not in line
    assert line.startswith("4 of 10 lines are unusable, at most 1% of them may be (")
    assert f"({tmp_path}/log.jsonl line 7: neither query nor query_id; " in line
    assert f"; {tmp_path}/log.jsonl line 8: not JSON" in line
    assert "line 9: no clicks" in line
    assert "line 10" not in line
    assert "max_rejects" in line


def test_the_line_names_the_file_among_several_and_the_limit_as_written(tmp_path: Path) -> None:
    good, bad = written(tmp_path / "good.jsonl", GOOD * 9), written(tmp_path / "bad.jsonl", GOOD + "{}\n" * 3)
    for limit in ("2.5%", "0.025", 0.025):
        with pytest.raises(InputError, match=rf"at most {limit} of them may be \({bad} line 2: neither"):
            list(read_log(good, bad, rejects=RejectLog(limit)))


def test_the_share_can_be_raised_and_lowered(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", GOOD + "{}\n")
    assert len(list(read_log(path, rejects=RejectLog(0.5)))) == 1
    path = written(tmp_path / "log.jsonl", GOOD * 999 + "{}\n")
    with pytest.raises(InputError, match="1 of 1,000 lines"):
        list(read_log(path, rejects=RejectLog(0.0)))


def test_every_reject_is_written_with_source_line_and_reason(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", b"{}\n" + GOOD.encode() + b'"\xff"\n[]\n')
    kept = tmp_path / "rejects.jsonl"
    list(read_log(path, rejects=RejectLog(1.0, kept)))
    rows = [orjson.loads(line) for line in kept.read_bytes().splitlines()]
    assert [(row["source"], row["line"]) for row in rows] == [(path, 1), (path, 3), (path, 4)]
    assert all(row["reason"] for row in rows)


def test_the_file_is_kept_above_the_share_too(tmp_path: Path) -> None:
    kept = tmp_path / "rejects.jsonl"
    with pytest.raises(InputError):
        list(read_log(written(tmp_path / "log.jsonl", "{}\n" * 5), rejects=RejectLog(0.01, kept)))
    assert len(kept.read_bytes().splitlines()) == 5


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", "{}\n")
    with pytest.raises(InputError, match=r"cannot write the rejects to .*nowhere"):
        list(read_log(path, rejects=RejectLog(1.0, tmp_path / "nowhere" / "rejects.jsonl")))


def test_an_ended_reading_leaves_no_file_open(tmp_path: Path) -> None:
    """Warnings are errors: an unclosed file would fail here."""
    kept = tmp_path / "rejects.jsonl"
    reading = iter(read_log(written(tmp_path / "log.jsonl", "{}\n" + GOOD * 5), rejects=RejectLog(1.0, kept)))
    next(reading)
    reading.close()  # type: ignore[attr-defined]
    assert len(kept.read_bytes().splitlines()) == 1
    docs = iter(read_docs(written(tmp_path / "docs.jsonl", '{}\n{"doc_id":"1"}\n' * 3), rejects=RejectLog(1.0, kept)))
    next(docs)
    docs.close()  # type: ignore[attr-defined]
    assert len(kept.read_bytes().splitlines()) == 1


def test_the_graph_keeps_a_copy_of_the_rejects(tmp_path: Path) -> None:
    kept = tmp_path / "mine.jsonl"
    log = read_log(written(tmp_path / "log.jsonl", "{}\n" + GOOD * 5), rejects=RejectLog(1.0, kept))
    ClickGraph.build(log, out=tmp_path / "graph")
    assert kept.exists(), "--rejects FILE is the user's"
    copies = list((tmp_path / "graph").glob("rejects*.jsonl"))
    assert [copy.read_bytes() for copy in copies] == [kept.read_bytes()]
    # Built again from a sound log, the old file says nothing about it.
    again = read_log(written(tmp_path / "log.jsonl", GOOD * 5), rejects=RejectLog(1.0, kept))
    ClickGraph.build(again, out=tmp_path / "graph")
    assert not list((tmp_path / "graph").glob("rejects*.jsonl"))


def test_counting_anew(tmp_path: Path) -> None:
    log = read_log(written(tmp_path / "log.jsonl", "{}\n" + GOOD), rejects=RejectLog(1.0))
    list(log)
    log.rejects.reset()
    assert (log.rejects.count, log.rejects.lines, log.rejects.first) == (0, 0, [])
