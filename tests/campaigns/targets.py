"""Everything that reads a file from outside, each with a few sound records to start from."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clickbridge.io.letor import read_letor
from clickbridge.io.lists import read_lists
from clickbridge.io.svdfeature import read_observations
from clickbridge.io.trec import read_qrels, read_run
from clickbridge.log.documents import read_docs
from clickbridge.log.readers import read_log
from clickbridge.log.rejects import RejectLog


@dataclass(frozen=True)
class Target:
    suffix: str
    records: tuple[bytes, ...]
    read: Callable[[str], Any]
    head: bytes = b""
    tail: bytes = b""
    together: int = 50
    """Records of a file that are read on after a bad one; 1 where a reader stops at the first."""


def _log(format: str) -> Callable[[str], Any]:
    return lambda path: _all(read_log(path, format=format, rejects=RejectLog("100%")))


def _all(records: Iterable[Any]) -> int:
    return sum(1 for _ in records)


def _docs(path: str) -> int:
    return _all(read_docs(path, rejects=RejectLog("100%")))


SESSIONS = (
    b'{"query":"ny pizza","results":["d1","d2","03"],"clicks":["d2"],"user":"u1","time":"2024-01-31T10:00:00Z"}',
    b'{"query_id":"Q7","clicks":["a"],"session":12,"time":1700000000.5}',
    '{"query":"größe ﬁ","results":[1,2],"clicks":[],"time":null}'.encode(),
)
ROWS = (b"ny pizza,d1,3,10,u1,1700000000", b'"a ""b"", c",d2,1,,u2,2024-01-31', b"x,y,0,0,,")
HEAD = b"query,doc_id,clicks,impressions,user,time"
XML = (
    b'<session num="1" userid="7"><interaction num="1" starttime="00:00:01.5"><query>a b</query><results>'
    b'<result rank="1"><url>http://x/</url><clueweb12id>c1</clueweb12id><title>t</title><snippet>s</snippet></result>'
    b'</results><clicked><click num="1" starttime="00:00:02"><rank>1</rank></click></clicked></interaction></session>',
)
UBI = (
    b'{"query_id":"1","user_query":"shoe","timestamp":"2024-01-31T10:00:00Z","client_id":"c","query_response_hit_ids":["a","b"]}',
    b'{"action_name":"click","query_id":"1","client_id":"c","timestamp":"2024-01-31T10:00:01Z","event_attributes":'
    b'{"object":{"object_id":"a"},"position":{"ordinal":1}}}',
)
METARANK = (
    b'{"event":"ranking","id":"1","timestamp":"1700000000000","user":"u","session":"s","fields":[{"name":"query","value":"q"}],'
    b'"items":[{"id":"a"},{"id":"b"}]}',
    b'{"event":"interaction","id":"2","ranking":"1","timestamp":1700000000001,"user":"u","session":"s","type":"click","item":"a"}',
    b'{"event":"item","id":"3","item":"a","timestamp":"1700000000000","fields":[{"name":"title","value":"t"}]}',
)
DOCS = (b'{"doc_id":"d1","title":"New York","tags":["a","b"],"year":1999}', b'{"doc_id":7,"body":"x","nested":{"a":1}}')
LISTS = (b'{"query_id":"1","query":"a b","results":["x","y"],"labels":[0,1.5],"scores":[2,1]}',)
TARGETS = {
    "sessions": Target(".jsonl", SESSIONS, _log("sessions")),
    "triples.csv": Target(".csv", ROWS, _log("triples"), HEAD),
    "triples.tsv": Target(
        ".tsv", tuple(r.replace(b",", b"\t") for r in ROWS), _log("triples"), HEAD.replace(b",", b"\t")
    ),
    "trec-session": Target(".xml", XML, _log("trec-session"), b"<sessiontrack>", b"</sessiontrack>", 1),
    "ubi": Target(".ndjson", UBI, _log("ubi"), together=500),
    "metarank": Target(".ndjson", METARANK, _log("metarank"), together=500),
    "auto": Target("", (*SESSIONS, *ROWS, *UBI), _log("auto"), together=25),
    "documents": Target(".jsonl", DOCS, _docs),
    "documents.csv": Target(".csv", (b"d1,New York,x", b'7,"a ""q""",y'), _docs, b"doc_id,title,body"),
    "lists": Target(".jsonl", LISTS, read_lists, together=1),
    "run": Target("", (b"q1 Q0 d1 1 9.5 bm25",), read_run, together=1),
    "qrels": Target("", (b"q1 0 d1 2",), read_qrels, together=1),
    "letor": Target("", (b"2 qid:1 1:0.5 3:-1e9 # doc=d1",), read_letor, together=1),
    "svdfeature": Target("", (b"1 0 2 1 0:1 1:0.5 3:1",), read_observations, together=1),
}


def temporary_home() -> tempfile.TemporaryDirectory[str]:
    """In memory where there is room for it: a file is written for each try."""
    return tempfile.TemporaryDirectory(prefix="campaign-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
