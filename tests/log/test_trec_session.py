"""TREC session track XML, by hand and as it was distributed."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from clickbridge import ClickGraph, read_log
from clickbridge.errors import InputError
from clickbridge.insight.validation import validate
from clickbridge.types import Document, Impression

SAMPLE = """<?xml version="1.0" encoding="UTF-8"?>
<sessiontrack2012>
  <session num="7" starttime="09:54:08.7">
    <topic num="1"><desc>not used</desc></topic>
    <interaction num="1">
      <query>US Tax &amp; Code</query>
      <results>
        <result rank="1"><url>http://a.org/x</url><clueweb09id>cw-1</clueweb09id><title>A</title><snippet>s</snippet></result>
        <result rank="2"><url>http://b.org</url><title>B</title></result>
        <result rank="3"><url>http://c.org</url><clueweb12id>cw-1</clueweb12id></result>
      </results>
      <clicked><click num="1"><rank>2</rank></click><click num="2"><rank> 2 </rank></click>
        <click num="3"><rank>9</rank></click></clicked>
    </interaction>
    <interaction num="2"><query>  </query></interaction>
    <interaction num="3"><query>nothing found</query><results/></interaction>
    <currentquery><query>403b</query></currentquery>
  </session>
  <session num="8"><interaction><query>again</query><results>
    <result rank="1"><clueweb09id>cw-1</clueweb09id></result></results></interaction></session>
</sessiontrack2012>
"""


def test_a_sample_by_hand(tmp_path: Path) -> None:
    (tmp_path / "log.xml").write_text(SAMPLE)
    log = read_log(str(tmp_path / "log.xml"))
    records = list(log)
    assert [record for record in records if isinstance(record, Impression)] == [
        Impression("us tax & code", ["cw-1", "http://b.org"], ["http://b.org"], user="session 7"),
        Impression("nothing found", [], [], user="session 7"),
        Impression("again", ["cw-1"], [], user="session 8"),
    ]
    assert [record for record in records if isinstance(record, Document)] == [
        Document("cw-1", {"title": "A", "url": "http://a.org/x", "snippet": "s"}),
        Document("http://b.org", {"title": "B", "url": "http://b.org"}),
        Document("cw-1", {"url": "http://c.org"}),
        Document("cw-1", {}),
    ]
    assert log.rejects.lines == 3


def test_its_documents_enter_the_graph_once_and_a_documents_file_beats_them(tmp_path: Path) -> None:
    (tmp_path / "log.xml").write_text(SAMPLE)
    graph = ClickGraph.build(read_log(str(tmp_path / "log.xml")), [Document("http://b.org", {"title": "mine"})])
    assert graph.doc_ids == ["cw-1", "http://b.org"]
    assert graph.field("title") == ["A", "mine"]
    assert graph.summary["repeated_documents"] == 0
    assert graph.impressions is not None
    assert len(graph.impressions) == 2
    assert graph.parts == ["pairs", "impressions", "users", "documents"]


def test_a_result_without_an_id_names_the_session(tmp_path: Path) -> None:
    (tmp_path / "log.xml").write_text(SAMPLE.replace("<url>http://b.org</url>", ""))
    with pytest.raises(InputError, match="session 7: the id of a result must be text, got null"):
        list(read_log(str(tmp_path / "log.xml")))


def test_other_xml_has_no_pages(tmp_path: Path) -> None:
    (tmp_path / "log.xml").write_text("<html><body/></html>")
    with pytest.raises(InputError, match="neither a shown result nor a click"):
        ClickGraph.build(read_log(str(tmp_path / "log.xml")))


def test_a_log_that_brings_titles_needs_no_documents(tmp_path: Path) -> None:
    (tmp_path / "log.xml").write_text(SAMPLE)
    (ids,) = (check for check in validate(read_log(str(tmp_path / "log.xml"))) if check.name == "document ids")
    assert (ids.verdict, ids.found) == ("PASS", "1 clicked document, the log itself brings titles or texts")


@pytest.mark.data
def test_the_track_of_2012(real_data: Callable[[str], Path]) -> None:
    path = real_data("trec_session_2012") / "sessions.xml.gz"
    with gzip.open(path) as file:
        root = ElementTree.parse(file).getroot()
    pages = [
        (q.text, i) for i in root.iter("interaction") for q in i.findall("query") if q.text and q.text.strip()
    ]  # fmt: skip
    records = list(read_log(str(path)))
    found = [record for record in records if isinstance(record, Impression)]
    assert len(found) == len(pages)
    assert len({record.user for record in found}) == len(
        {s.get("num") for s in root.iter("session") if s.find("interaction") is not None}
    )
    shown = sum(len(record.results or []) for record in found)
    assert shown <= 2157
    assert shown > 2000
    assert 200 < sum(len(record.clicks) for record in found) <= 272
    for (text, interaction), record in zip(pages, found, strict=True):
        assert record.query == " ".join(text.casefold().split())
        by_rank = {r.get("rank"): r.findtext("clueweb09id") or r.findtext("url") for r in interaction.iter("result")}
        assert record.results == list(dict.fromkeys(by_rank.values()))
        clicked = [by_rank.get(c.findtext("rank", "").strip()) for c in interaction.iter("click")]
        assert record.clicks == list(dict.fromkeys(c for c in clicked if c))
    graph = ClickGraph.build(records)
    assert graph.field_names == ["snippet", "title", "url"]
    assert graph.pairs.clicks.sum() == sum(len(record.clicks) for record in found)
    assert graph.pairs.users is not None
