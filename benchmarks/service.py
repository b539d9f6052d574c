"""The service under load, on loopback, client and server on the same cores: requests a second and latency.

    python benchmarks/service.py --graph GRAPH --keep DIR                 the table of docs/benchmarks.md
    python benchmarks/service.py --graph GRAPH --keep DIR --soak 600      ten minutes of mixed traffic: what it holds

Models are fitted into DIR where they are not there yet; mart takes minutes. Latency is measured at a fixed rate from
the moment a request is due (a slow answer delays the next ones and counts against them); the most requests a second
are those of four connections that never pause. Run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from urllib.parse import quote

import numpy as np

from clickbridge import ClickGraph, Document, Impression, build_model
from clickbridge.serve.config import VARIABLE, Config

START = (
    "from clickbridge.serve.config import Config; from clickbridge.serve.run import run; run(Config.from_environment())"
)
CONNECTIONS = 4
LIST = 100
LARGE = 100_000
Request = tuple[str, str, bytes]
"""Method, path, body."""


# --- models and requests ---------------------------------------------------------------------------


def fitted(graph: ClickGraph, spec: str, folder: Path, **settings: object) -> Path:
    path = folder / spec.replace(":", "-").replace("+", "-")
    if not path.exists():
        print(f"fitting {spec}", file=sys.stderr, flush=True)
        build_model(spec, settings).fit(graph).save(path)
    return path


def large_model(folder: Path) -> Path:
    """bm25+pls over 100,000 documents of Zipf-distributed words."""
    path = folder / "large-bm25-pls"
    if not path.exists():
        print(f"fitting bm25+pls over {LARGE:,} documents", file=sys.stderr, flush=True)
        rng = np.random.default_rng(0)
        words = [f"w{n}" for n in range(50_000)]
        drawn = np.minimum(rng.zipf(1.3, size=(LARGE, 25)) - 1, len(words) - 1)
        texts = [[words[w] for w in row] for row in drawn]
        docs = [Document(f"d{i}", {"title": " ".join(t[:5]), "body": " ".join(t)}) for i, t in enumerate(texts)]
        pages = [
            Impression(" ".join(texts[i][:2]), None, [f"d{i}"], user=f"u{i % 997}")
            for i in rng.integers(LARGE, size=20_000).tolist()
        ]
        build_model("bm25+pls", {"dim": 100}).fit(ClickGraph.build(pages, docs)).save(path)
    return path


def post(path: str, value: object) -> Request:
    return "POST", path, json.dumps(value).encode()


def rank_requests(graph: ClickGraph, model: str, rng: random.Random) -> list[Request]:
    queries, ids = graph.query_keys, graph.doc_ids
    return [
        post("/rank", {"query": rng.choice(queries), "documents": rng.sample(ids, LIST), "model": model})
        for _ in range(500)
    ]


def events(graph: ClickGraph, count: int, rng: random.Random) -> Iterator[Request]:
    while True:
        pages = (rng.sample(graph.doc_ids, 10) for _ in range(count))
        yield post("/feedback", {"events": [
            {"event_id": f"{rng.getrandbits(64):x}", "query": rng.choice(graph.query_keys), "results": page,
             "clicks": [rng.choice(page)], "user": f"u{rng.randrange(1000)}"} for page in pages]})  # fmt: skip


# --- the service -----------------------------------------------------------------------------------


@contextmanager
def service(models: dict[str, Path], **options: object) -> Iterator[tuple[int, int]]:
    """Port and process id of a service of its own."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
        s.close()
        named = {name: str(path) for name, path in models.items()}
        config = Config(models=named, store=f"sqlite:///{folder}/e.db", port=port, log_requests=False, **options)
        environment = {**os.environ, VARIABLE: config.to_json()}
        process = subprocess.Popen([sys.executable, "-c", START], env=environment)
        try:
            while True:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health").close()
                    break
                except OSError:
                    time.sleep(0.1)
            time.sleep(2)  # what is warmed on the side
            yield port, process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


class Connection:
    """One kept-alive connection: as little of HTTP as a client can do with."""

    async def open(self, port: int) -> Connection:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)
        return self

    async def ask(self, request: Request) -> int:
        method, path, body = request
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await self.reader.readexactly(length)
        return int(answer[9:12])


async def at_rate(port: int, requests: Iterator[Request], rate: float, seconds: float) -> tuple[list[float], int]:
    """Milliseconds of each request from when it was due, at a fixed rate; and how many failed."""
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(CONNECTIONS * 4):
        free.put_nowait(await Connection().open(port))
    times: list[float] = []
    failed = 0

    async def one(request: Request, due: float) -> None:
        nonlocal failed
        connection = await free.get()
        failed += await connection.ask(request) != 200
        times.append((time.perf_counter() - due) * 1e3)
        free.put_nowait(connection)

    started, tasks = time.perf_counter(), []
    for n in range(int(rate * seconds)):
        due = started + n / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(one(next(requests), due)))
    await asyncio.gather(*tasks)
    while not free.empty():
        free.get_nowait().writer.close()
    return times, failed


async def at_most(port: int, requests: Iterator[Request], seconds: float) -> float:
    """Requests a second of connections that never pause."""
    done = 0
    end = time.perf_counter() + seconds

    async def one() -> None:
        nonlocal done
        connection = await Connection().open(port)
        while time.perf_counter() < end:
            await connection.ask(next(requests))
            done += 1
        connection.writer.close()

    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
    return done / seconds


def measured(port: int, requests: Callable[[], Iterator[Request]], rate: float, seconds: float) -> str:
    asyncio.run(at_rate(port, requests(), rate, min(2.0, seconds)))
    times, failed = asyncio.run(at_rate(port, requests(), rate, seconds))
    most = asyncio.run(at_most(port, requests(), seconds))
    p50, p99 = np.percentile(times, [50, 99])
    note = f", {failed} failed" if failed else ""
    return f"{rate:g} | {p50:.2f} | {p99:.2f} | {most:,.0f}{note}"


# --- what is measured ------------------------------------------------------------------------------


def table(graph: ClickGraph, folder: Path, seconds: float, specs: list[str]) -> None:
    rng = random.Random(0)
    print("| | requests a second | p50 ms | p99 ms | most requests a second |\n|---|---|---|---|---|", flush=True)
    for spec in specs:
        with service({"m": fitted(graph, spec, folder)}) as (port, _):
            asked = rank_requests(graph, "m", rng)
            print(f"| re-rank {LIST}, {spec} | {measured(port, lambda: cycle(asked), 200, seconds)} |", flush=True)  # noqa: B023
    with service({"m": fitted(graph, "bm25+pls", folder)}, min_users=1) as (port, _):
        typed = [("GET", f"/suggest?q={quote(key[:3])}", b"") for key in rng.sample(graph.query_keys, 200)]
        print(f"| suggestions | {measured(port, lambda: cycle(typed), 200, seconds)} |", flush=True)
    with service({"m": large_model(folder)}) as (port, _):
        found = [("GET", f"/search?q=w{rng.randrange(2000)}+w{rng.randrange(2000)}", b"") for _ in range(500)]
        print(f"| search {LARGE:,}, bm25+pls | {measured(port, lambda: cycle(found), 30, seconds)} |", flush=True)
    for spec in ("bm25", "online:bm25"):
        for count, rate in ((1, 100), (100, 20)):
            with service({"m": fitted(graph, spec, folder)}) as (port, _):
                line = measured(port, lambda: events(graph, count, rng), rate, seconds)  # noqa: B023
                print(f"| feedback, {count} a request, {spec} | {line} |", flush=True)
    print("\nMetarank publishes 10 to 30 ms for a ranking and 1,000 to 3,000 events a second (its own hardware).")


def soak(graph: ClickGraph, folder: Path, seconds: float) -> None:
    """Mixed traffic at a moderate rate; what the process holds, every half minute."""
    rng = random.Random(0)
    with service({"m": fitted(graph, "online:bm25", folder)}, click_window=60.0) as (port, pid):
        asked, clicks = cycle(rank_requests(graph, "m", rng)), events(graph, 5, rng)
        found = cycle([("GET", f"/search?q={quote(key)}", b"") for key in rng.sample(graph.query_keys, 200)])
        wrong = cycle([("POST", "/rank", b"{"), ("GET", "/nope", b"")])
        kinds = cycle([asked, asked, found, clicks, asked, found, clicks, wrong])
        mixed = (next(next(kinds)) for _ in iter(int, 1))
        print("| seconds | MB | descriptors | p99 ms |\n|---|---|---|---|", flush=True)
        started = time.monotonic()
        while time.monotonic() - started < seconds:
            times, _ = asyncio.run(at_rate(port, mixed, 40, min(30.0, seconds)))
            rss = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
            descriptors = len(os.listdir(f"/proc/{pid}/fd"))
            spent = time.monotonic() - started
            print(f"| {spent:.0f} | {rss:.1f} | {descriptors} | {np.percentile(times, 99):.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", required=True)
    parser.add_argument("--keep", type=Path, required=True, help="folder of fitted models")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--models", default="bm25+pls,online:bm25+pls,mart", help="of the re-ranking lines")
    parser.add_argument("--soak", type=float, default=0.0, help="seconds of mixed traffic instead")
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)
    graph = ClickGraph.open(options.graph)
    if options.soak:
        soak(graph, options.keep, options.soak)
    else:
        table(graph, options.keep, options.seconds, options.models.split(","))


if __name__ == "__main__":
    main()
