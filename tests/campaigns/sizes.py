"""Memory and disk for each byte of input, by reader: `python -m campaigns.sizes [MB [READER...]]`.

Each reader runs in a process of its own over a sound input of a few MB and over one four times as large. Memory is the
peak above a process that has only imported; disk is the finished GRAPH, the rejects where every record is bad.
"""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow.csv
import pyarrow.parquet

CHILD = """
import sys, pathlib
import duckdb, pyarrow.parquet
import clickbridge.graph.build
from campaigns.targets import TARGETS
from clickbridge import ClickGraph
from clickbridge.log.documents import read_docs
from clickbridge.log.readers import read_log
from clickbridge.log.rejects import RejectLog
from clickbridge.types import Impression

def peak():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024

path, kind, format, out = sys.argv[1:]
before = peak()
lost = RejectLog("100%", pathlib.Path(path + ".rejects"))
if not format:
    found = TARGETS[kind].read(path)
else:
    records = read_docs(path, rejects=lost) if format == "documents" else read_log(path, format=format, rejects=lost)
    if out == "-":
        for record in records:
            pass
    elif format == "documents":
        ClickGraph.build([Impression("word1", ["doc-1"], ["doc-1"])], records, out=out)
    else:
        ClickGraph.build(records, out=out)
print(peak() - before)
"""
WORDS = [f"word{n}" for n in range(500)]


def pages(rng: Random) -> Iterator[dict[str, Any]]:
    for n in range(10**9):
        shown = [f"doc-{rng.randrange(5000)}" for _ in range(8)]
        shown = list(dict.fromkeys(shown))
        yield {"query": " ".join(rng.choices(WORDS, k=3)), "results": shown, "clicks": shown[:1], "user": f"u{n % 997}"}


def _triple(page: dict[str, Any], number: int) -> str:
    return _cells(page["query"], page["results"][0], 1, page["user"])


def _cells(*values: Any) -> str:
    cells = io.StringIO()
    csv.writer(cells).writerow(values)
    return cells.getvalue().rstrip()


def _lines(*records: dict[str, Any]) -> str:
    return "\n".join(map(json.dumps, records))


def _session(page: dict[str, Any], number: int) -> str:
    rows = "".join(
        f'<result rank="{r}"><clueweb12id>{d}</clueweb12id><title>t</title></result>'
        for r, d in enumerate(page["results"], 1)
    )
    return (
        f'<session num="{number}"><interaction num="1"><query>{page["query"]}</query><results>{rows}</results><clicked>'
        f'<click num="1"><rank>1</rank></click></clicked></interaction></session>'
    )


def _ubi(page: dict[str, Any], number: int) -> str:
    same = {"query_id": f"{number}", "client_id": page["user"], "timestamp": "2024-01-31T10:00:00Z"}
    did = {"action_name": "click", "event_attributes": {"object": {"object_id": page["results"][0]}}, **same}
    return _lines({"user_query": page["query"], "query_response_hit_ids": page["results"], **same}, did)


def _metarank(page: dict[str, Any], number: int) -> str:
    who = {"timestamp": str(1_700_000_000_000 + number), "user": page["user"], "session": page["user"]}
    what = {"event": "ranking", "id": f"r{number}", "items": [{"id": d} for d in page["results"]], **who}
    what["fields"] = [{"name": "query", "value": page["query"]}]
    did = {"event": "interaction", "id": f"i{number}", "ranking": f"r{number}", "type": "click"}
    return _lines(what, {**did, "item": page["results"][0], **who})


def _algolia(page: dict[str, Any], number: int) -> str:
    what = {"query": page["query"], "queryID": f"{number}", "hits": [{"objectID": d} for d in page["results"]]}
    did = {"eventType": "click", "eventName": "x", "index": "i", "userToken": page["user"], "queryID": f"{number}"}
    return _lines(what, {**did, "timestamp": 1769853600000, "objectIDs": page["results"][:1], "positions": [1]})


def _meilisearch(page: dict[str, Any], number: int) -> str:
    hits = [{"id": d} for d in page["results"]]
    what = {"query": page["query"], "hits": hits, "metadata": {"queryUid": f"{number}", "primaryKey": "id"}}
    did = {"eventType": "click", "eventName": "x", "indexUid": "i", "userId": page["user"], "queryUid": f"{number}"}
    return _lines(what, {**did, "objectId": page["results"][0], "position": 0})


def _typesense(page: dict[str, Any], number: int) -> str:
    data = {"q": page["query"], "doc_id": page["results"][0], "user_id": page["user"]}
    return _lines({"name": "clicks", "type": "click", "timestamp": 1769853600000 + number, "data": data})


def _events(page: dict[str, Any], number: int) -> str:
    who = {"user": page["user"], "session": f"s{number}", "time": 1_700_000_000 + number}
    what = {"event": "search", "query": page["query"], "results": page["results"], **who}
    return _lines(what, {"event": "click", "doc_id": page["results"][0], **who})


def _shown(page: dict[str, Any], number: int) -> str:
    rows = [(page["query"], doc, rank, int(rank == 1), f"s{number}") for rank, doc in enumerate(page["results"], 1)]
    return "\n".join(_cells(*row) for row in rows)


def _document(page: dict[str, Any], number: int) -> str:
    return _lines({"doc_id": f"doc-{number}", "title": page["query"], "body": " ".join(page["results"]) * 3})


def _list(page: dict[str, Any], number: int) -> str:
    shown = page["results"]
    return _lines({"query_id": f"{number}", "query": page["query"], "results": shown, "labels": [0] * len(shown)})


def _run(page: dict[str, Any], number: int) -> str:
    return "\n".join(f"q{number} Q0 {doc} {rank} {9.5 - rank} name" for rank, doc in enumerate(page["results"], 1))


def _qrels(page: dict[str, Any], number: int) -> str:
    return "\n".join(f"q{number} 0 {doc} {n % 3}" for n, doc in enumerate(page["results"]))


def _letor(page: dict[str, Any], number: int) -> str:
    return "\n".join(f"{n % 3} qid:{number} 1:0.5 2:{n} 3:-1e9 # doc={doc}" for n, doc in enumerate(page["results"]))


def _judgment(page: dict[str, Any], number: int) -> str:
    return _lines({"query": f"{page['query']} {number}", "similar": {f"{page['query']} {number + 1}": 1}})


def _rule(page: dict[str, Any], number: int) -> str:
    return _lines({"query": f"{page['query']} {number}", "pin": page["results"][:1], "block": page["results"][1:]})


class Sample(NamedTuple):
    """How to write records of a reader, and what ingest calls the format; nothing where it takes none of that kind."""

    record: Callable[[dict[str, Any], int], str]
    format: str = ""
    suffix: str = ".jsonl"
    head: str = ""
    between: str = "\n"
    tail: str = "\n"


SAMPLES = {
    "sessions": Sample(lambda page, _: json.dumps(page), "sessions"),
    "triples.csv": Sample(_triple, "triples", ".csv", "query,doc_id,clicks,user\n"),
    "triples.parquet": Sample(_triple, "triples", ".parquet", "query,doc_id,clicks,user\n"),
    "trec-session": Sample(_session, "trec-session", ".xml", "<sessiontrack>\n", tail="</sessiontrack>\n"),
    "ubi": Sample(_ubi, "ubi"),
    "metarank": Sample(_metarank, "metarank"),
    "algolia": Sample(_algolia, "algolia"),
    "meilisearch": Sample(_meilisearch, "meilisearch"),
    "typesense": Sample(_typesense, "typesense"),
    "events": Sample(_events, "events"),
    "shown": Sample(_shown, "shown", ".csv", "query,doc_id,position,clicks,search_id\n"),
    "array": Sample(lambda page, _: json.dumps(page), "auto", ".json", "[", ",\n", "]\n"),
    "exported": Sample(lambda page, number: _lines({"_id": f"{number}", "_source": page}), "auto", ".json"),
    "documents": Sample(_document, "documents"),
    "lists": Sample(_list),
    "topics": Sample(lambda page, number: f"q{number}\t{page['query']}", suffix=".tsv"),
    "judgments": Sample(_judgment),
    "rules": Sample(_rule),
    "run": Sample(_run, suffix=".txt"),
    "qrels": Sample(_qrels, suffix=".txt"),
    "letor": Sample(_letor, suffix=".txt"),
    "svdfeature": Sample(lambda _, n: f"1 0 2 1 {n % 997}:1 {997 + n % 89}:0.5 {n % 503}:1", suffix=".txt"),
}
WITH_REJECTS = ("sessions", "triples.csv", "ubi", "metarank", "documents")


def write(path: Path, kind: str, size: int, bad: bool = False) -> int:
    """About so many bytes; of a compressed format, as many as that many bytes of text become."""
    if kind == "triples.parquet":
        write(path.with_suffix(".csv"), "triples.csv", size)
        table = pyarrow.csv.read_csv(path.with_suffix(".csv"))
        pyarrow.parquet.write_table(table, path)
        return path.stat().st_size
    rng, sample = Random(1), SAMPLES[kind]
    with path.open("w") as out:
        done = out.write(sample.head)
        for number, page in enumerate(pages(rng)):
            done += out.write(sample.between if number else "")
            done += out.write("not a record" if bad else sample.record(page, number))
            if done >= size:
                break
        done += out.write(sample.tail)
    return done


def measured(path: Path, kind: str, out: Path | None) -> int:
    line = [sys.executable, "-P", "-c", CHILD, str(path), kind, SAMPLES[kind].format, str(out or "-")]
    return int(subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True).stdout)


def main() -> None:
    mb = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
    print("| reader | input, MB | memory of reading, MB | memory of ingest, MB | GRAPH bytes / byte | rejects / byte |")
    print("|---|---|---|---|---|---|")
    for kind in sys.argv[2:] or SAMPLES:
        with tempfile.TemporaryDirectory(prefix="campaign-") as place:
            for size in (int(mb * 1e6), int(4e6 * mb)):
                print(f"| {kind} | {' | '.join(_measures(Path(place), kind, size))} |", flush=True)


def _measures(place: Path, kind: str, size: int) -> list[str]:
    path = place / f"log{SAMPLES[kind].suffix}"
    read = write(path, kind, size)
    cells = [f"{read / 1e6:.1f}", f"{measured(path, kind, None) / 1e6:.0f}", "", "", ""]
    if SAMPLES[kind].format:
        graph = place / f"graph{size}"
        held = measured(path, kind, graph)
        disk = sum(file.stat().st_size for file in graph.rglob("*") if file.is_file())
        cells[2:4] = [f"{held / 1e6:.0f}", f"{disk / read:.2f}"]
    if kind in WITH_REJECTS:
        lost = write(path, kind, size, bad=True)
        measured(path, kind, None)
        cells[4] = f"{Path(str(path) + '.rejects').stat().st_size / lost:.2f}"
    return cells


if __name__ == "__main__":
    main()
