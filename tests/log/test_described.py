"""Readers in an interpreter."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from clickbridge import read_docs, read_log
from clickbridge.log.rejects import RejectLog


def test_a_reader_shows_how_it_reads(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("q;sku;n\na;1;x\nb;2;y;z\n")
    (tmp_path / "docs.csv").write_text("sku,name\n1,Pizza\n")
    log = read_log(str(tmp_path / "log.csv"), rejects=RejectLog(1.0))
    assert repr(log) == f"LogReader({log.paths[0]}: not read yet)"
    list(log)
    assert repr(log) == f"LogReader({log.paths[0]}: triples, query=q, doc_id=sku, 1 record left out)"
    docs = read_docs(str(tmp_path / "docs.csv"))
    assert [repr(docs), len(list(docs)), repr(docs)] == [
        f"DocumentReader({docs.paths[0]}: not read yet)", 1,
        f"DocumentReader({docs.paths[0]}: documents, doc_id=sku, title=name)",
    ]  # fmt: skip
    assert repr(read_log(pa.table({"q": ["a"], "sku": ["1"]}))) == "LogFrame(the log: triples, query=q, doc_id=sku)"
    assert repr(read_log("-")) == "LogReader(standard input: not read yet)"
    assert repr(read_log(*"abcd")) == "LogReader(a, b, c and 1 more: not read yet)"
