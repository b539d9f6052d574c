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
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.csv
import pyarrow.parquet

CHILD = """
import sys, pathlib
import duckdb, pyarrow.parquet
import clickbridge.graph.build
from clickbridge import ClickGraph
from clickbridge.io.lists import read_lists
from clickbridge.log.documents import read_docs
from clickbridge.log.readers import read_log
from clickbridge.log.rejects import RejectLog
from clickbridge.types import Impression

def peak():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024

path, kind, out = sys.argv[1:]
before = peak()
lost = RejectLog("100%", pathlib.Path(path + ".rejects"))
if kind == "documents":
    records = read_docs(path, rejects=lost)
elif kind == "lists":
    records = read_lists(path)
else:
    records = read_log(path, format=kind.partition(".")[0], rejects=lost)
if out == "-":
    for record in records:
        pass
elif kind == "documents":
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


def record(kind: str, page: dict[str, Any], number: int) -> str:
    query, shown = page["query"], page["results"]
    if kind == "sessions":
        return json.dumps(page)
    if kind == "triples":
        cells = io.StringIO()
        csv.writer(cells).writerow([query, shown[0], 1, page["user"]])
        return cells.getvalue().rstrip()
    if kind == "trec-session":
        rows = "".join(
            f'<result rank="{r}"><clueweb12id>{d}</clueweb12id><title>t</title></result>'
            for r, d in enumerate(shown, 1)
        )
        return (
            f'<session num="{number}"><interaction num="1"><query>{query}</query><results>{rows}</results><clicked>'
            f'<click num="1"><rank>1</rank></click></clicked></interaction></session>'
        )
    if kind == "ubi":
        same = {"query_id": f"{number}", "client_id": page["user"], "timestamp": "2024-01-31T10:00:00Z"}
        what = {"user_query": query, "query_response_hit_ids": shown, **same}
        did = {"action_name": "click", "event_attributes": {"object": {"object_id": shown[0]}}, **same}
        return json.dumps(what) + "\n" + json.dumps(did)
    if kind == "metarank":
        who = {"timestamp": str(1_700_000_000_000 + number), "user": page["user"], "session": page["user"]}
        what = {"event": "ranking", "id": f"r{number}", "items": [{"id": d} for d in shown], **who}
        what["fields"] = [{"name": "query", "value": query}]
        did = {
            "event": "interaction",
            "id": f"i{number}",
            "ranking": f"r{number}",
            "type": "click",
            "item": shown[0],
            **who,
        }
        return json.dumps(what) + "\n" + json.dumps(did)
    if kind == "lists":
        return json.dumps({"query_id": f"{number}", "query": query, "results": shown, "labels": [0] * len(shown)})
    return json.dumps({"doc_id": f"doc-{number}", "title": query, "body": " ".join(shown) * 3})


HEADS = {"triples": "query,doc_id,clicks,user\n", "trec-session": "<sessiontrack>\n"}
TAILS = {"trec-session": "</sessiontrack>\n"}
SUFFIX = {"triples": ".csv", "triples.parquet": ".parquet", "trec-session": ".xml"}
READERS = ("sessions", "triples", "triples.parquet", "trec-session", "ubi", "metarank", "documents", "lists")


def write(path: Path, kind: str, size: int, bad: bool = False) -> int:
    """About so many bytes; of a compressed format, as many as that many bytes of text become."""
    if kind == "triples.parquet":
        write(path.with_suffix(".csv"), "triples", size)
        table = pyarrow.csv.read_csv(path.with_suffix(".csv"))
        pyarrow.parquet.write_table(table, path)
        return path.stat().st_size
    rng, done = Random(1), 0
    with path.open("w") as out:
        done += out.write(HEADS.get(kind, ""))
        for number, page in enumerate(pages(rng)):
            done += out.write(("not a record" if bad else record(kind, page, number)) + "\n")
            if done >= size:
                break
        done += out.write(TAILS.get(kind, ""))
    return done


def measured(path: Path, kind: str, out: Path | None) -> int:
    line = [sys.executable, "-P", "-c", CHILD, str(path), kind, str(out or "-")]
    return int(subprocess.run(line, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    mb = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
    print("| reader | input, MB | memory of reading, MB | memory of ingest, MB | GRAPH bytes / byte | rejects / byte |")
    print("|---|---|---|---|---|---|")
    for kind in sys.argv[2:] or READERS:
        with tempfile.TemporaryDirectory(prefix="campaign-") as place:
            for size in (int(mb * 1e6), int(4e6 * mb)):
                path = Path(place) / f"log{SUFFIX.get(kind, '.jsonl')}"
                read = write(path, kind, size)
                reading, cells = measured(path, kind, None), ["", ""]
                if kind != "lists":
                    graph = Path(place) / f"graph{size}"
                    held = measured(path, kind, graph)
                    disk = sum(file.stat().st_size for file in graph.rglob("*") if file.is_file())
                    cells = [f"{held / 1e6:.0f}", f"{disk / read:.2f}"]
                rejects = ""
                if kind in ("sessions", "triples", "ubi", "metarank", "documents"):
                    lost = write(path, kind, size, bad=True)
                    measured(path, kind, None)
                    rejects = f"{Path(str(path) + '.rejects').stat().st_size / lost:.2f}"
                print(
                    f"| {kind} | {read / 1e6:.1f} | {reading / 1e6:.0f} | {' | '.join(cells)} | {rejects} |", flush=True
                )


if __name__ == "__main__":
    main()
