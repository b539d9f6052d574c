"""Everything that reads a file from outside, each with a few sound records to start from."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clickbridge.evaluate.similar import read_judgments
from clickbridge.io.letor import read_letor
from clickbridge.io.lists import read_lists
from clickbridge.io.svdfeature import read_observations
from clickbridge.io.topics import read_topics
from clickbridge.io.trec import read_qrels, read_run
from clickbridge.log.documents import read_docs
from clickbridge.log.readers import read_log
from clickbridge.log.rejects import RejectLog
from clickbridge.serve.rules import read_rules


@dataclass(frozen=True)
class Target:
    suffix: str
    records: tuple[bytes, ...]
    read: Callable[[str], Any]
    head: bytes = b""
    tail: bytes = b""
    together: int = 50
    """Records of a file that are read on after a bad one; 1 where a reader stops at the first."""
    joined: bool = False
    """Whether DuckDB joins the records into pages, which takes some fifty times as long as to read them."""


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
ALGOLIA = (
    b'{"query":"NY Pizza","queryID":"q1","hits":[{"objectID":"a"},{"objectID":"b"}]}',
    b'{"events":[{"eventType":"click","eventName":"x","index":"i","userToken":"u","timestamp":1769853600000,'
    b'"objectIDs":["b"],"queryID":"q1","positions":[2]}]}',
)
MEILISEARCH = (
    b'{"query":"q","hits":[{"sku":7},{"sku":8}],"metadata":{"queryUid":"q1","primaryKey":"sku"}}',
    b'{"eventType":"click","eventName":"x","indexUid":"i","userId":"u","queryUid":"q1","objectId":"8","position":1}',
)
TYPESENSE = (
    b'{"name":"clicks","type":"click","data":{"q":"NY Pizza","doc_id":"b","user_id":"u"}}',
    b'{"name":"carts","event_type":"conversion","timestamp":1769853600,"data":{"q":"x","doc_ids":["c","d"]}}',
)
EVENTS = (
    b'{"event":"search","query":"ny pizza","results":["a","b"],"user":"u","session":"s","time":1700000000}',
    b'{"event":"click","doc_id":"b","position":2,"session":"s","time":"2024-01-31T10:00:00Z"}',
    b'{"event":"impression","query_id":"Q7","search_id":3,"doc_id":1,"user":"v"}',
)
SHOWN = (b"ny pizza,d1,1,0,u1,1700000000,s1", b"ny pizza,d2,2,1,u1,1700000000,s1", b'"a, b",d3,,yes,,,')
SHOWN_HEAD = b"query,doc_id,position,clicks,user,time,search_id"
EXPORTED = (
    b'{"_index":"x","_id":"1","_source":{"query":"ny pizza","results":[{"doc_id":"a","clicked":1}],"user":"u"}}',
    b'{"index":{"_index":"x","_id":"1"}}',
    b'{"hits":{"hits":[{"_source":{"query":"b","clicks":["a"],"results":["a"]}}]}}',
)
DOCS = (b'{"doc_id":"d1","title":"New York","tags":["a","b"],"year":1999}', b'{"doc_id":7,"body":"x","nested":{"a":1}}')
LISTS = (b'{"query_id":"1","query":"a b","results":["x","y"],"labels":[0,1.5],"scores":[2,1]}',)
JUDGMENTS = (b'{"query":"a","intent":"x"}', b'{"query":"b","similar":{"a":1,"c":0.5}}')
RULES = (b'{"query":"ny pizza","pin":["d2"],"block":["d9"]}', b'{"query":"*","block":[13]}')
TARGETS = {
    "sessions": Target(".jsonl", SESSIONS, _log("sessions")),
    "triples.csv": Target(".csv", ROWS, _log("triples"), HEAD),
    "triples.tsv": Target(
        ".tsv", tuple(r.replace(b",", b"\t") for r in ROWS), _log("triples"), HEAD.replace(b",", b"\t")
    ),
    "trec-session": Target(".xml", XML, _log("trec-session"), b"<sessiontrack>", b"</sessiontrack>", 1),
    "ubi": Target(".ndjson", UBI, _log("ubi"), together=500, joined=True),
    "metarank": Target(".ndjson", METARANK, _log("metarank"), together=500, joined=True),
    "algolia": Target(".ndjson", ALGOLIA, _log("algolia"), together=500, joined=True),
    "meilisearch": Target(".ndjson", MEILISEARCH, _log("meilisearch"), together=500, joined=True),
    "typesense": Target(".ndjson", TYPESENSE, _log("typesense"), together=500, joined=True),
    "events": Target(".jsonl", EVENTS, _log("events"), together=500, joined=True),
    "shown": Target(".csv", SHOWN, _log("shown"), SHOWN_HEAD, together=500, joined=True),
    "array": Target(".json", tuple(record + b"," for record in SESSIONS), _log("auto"), b"[", b"]", 25),
    "exported": Target(".json", EXPORTED, _log("auto"), together=25),
    "auto": Target("", (*SESSIONS, *ROWS, *UBI), _log("auto"), together=25),
    "documents": Target(".jsonl", DOCS, _docs),
    "documents.csv": Target(".csv", (b"d1,New York,x", b'7,"a ""q""",y'), _docs, b"doc_id,title,body"),
    "lists": Target(".jsonl", LISTS, read_lists, together=1),
    "topics": Target(".tsv", (b"q1\tny pizza", b'{"query_id":"7","query":"a b"}'), read_topics, together=1),
    "judgments": Target(".jsonl", JUDGMENTS, read_judgments, together=1),
    "rules": Target(".jsonl", RULES, lambda path: read_rules(Path(path)), together=1),
    "run": Target("", (b"q1 Q0 d1 1 9.5 bm25",), read_run, together=1),
    "qrels": Target("", (b"q1 0 d1 2",), read_qrels, together=1),
    "letor": Target("", (b"2 qid:1 1:0.5 3:-1e9 # doc=d1",), read_letor, together=1),
    "svdfeature": Target("", (b"1 0 2 1 0:1 1:0.5 3:1",), read_observations, together=1),
}


def temporary_home() -> tempfile.TemporaryDirectory[str]:
    """In memory where there is room for it: a file is written for each try."""
    return tempfile.TemporaryDirectory(prefix="campaign-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
