"""Half a year of web search on one machine: seconds and peak memory of every step, and what the size is good for.

    python benchmarks/half_year.py FOLDER [--fraction 0.1] [--memory 4GiB]

Two tracks. *Size*: a log of click counts with the published statistics is simulated, ingested, fitted (rmls d = 1000,
pls d = 200, words and clicks as features) and searched. *Truth*: a log whose truth is known, of `--truth` times the
size, gives nDCG@5 of bm25, rmls and pls on queries of the log and on others, learned from all of it and from a tenth
of its searches. Each step is a process of its own and is noted in FOLDER/steps.json. A second call goes on after the
last step that was done; a fit goes on after its last pass.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ingest import CLICKBRIDGE, measured

FULL = {"pls": 200, "rmls": 1000}
MEMORY = {"bm25": "1GiB", "rmls": "9GiB", "pls": "14GiB"}
PAPER = ("--set", "views=word,click")
TOPICS = 1000
SAMPLE = 0.1
THRESHOLD = ("--min-clicks", "4")
LEARNED: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "bm25": ("bm25", (), ("all", "tenth")),
    "pls": ("pls", (), ("all", "tenth")),
    "rmls": ("rmls", (), ("all", "tenth")),
    "pls-4-clicks": ("pls", THRESHOLD, ("all",)),
    "rmls-4-clicks": ("rmls", THRESHOLD, ("all",)),
}
"""For each row of the truth: the model, its options, and from which shares of the searches it is learned."""


@dataclass(frozen=True)
class Step:
    name: str
    words: tuple[str, ...]


class Notes:
    """What was done, in a file that is replaced whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}

    def add(self, name: str, value: Any) -> None:
        self.done[name] = value
        aside = self.path.with_suffix(".new")
        aside.write_text(json.dumps(self.done, indent=2))
        aside.replace(self.path)


def run(steps: Iterator[Step], notes: Notes) -> None:
    for step in steps:
        if step.name in notes.done:
            print(f"{step.name}: done before")
            continue
        cost = measured(*step.words)
        notes.add(step.name, asdict(cost))
        print(f"{step.name}: {cost.seconds:.1f} s, CPU {cost.cpu:.1f} s, peak {cost.peak_gib:.2f} GiB", flush=True)


def size_steps(folder: Path, fraction: float, memory: str | None) -> Iterator[Step]:
    data, graph = folder / "data", folder / "graph"
    yield Step("simulate", ("simulate", "--scale", "half-year", "--fraction", str(fraction), "--out", str(data)))
    log, docs = str(data / "log.parquet"), str(data / "docs.jsonl.gz")
    yield Step("ingest", ("ingest", log, "--docs", docs, "--memory", "2GiB", "--out", str(graph)))
    for spec, dim in FULL.items():
        yield Step(f"fit {spec}", fitting(folder, graph, spec, f"{spec}-{dim}", "title,url", memory))
        topics = write_topics(folder / "topics.tsv", Path(log))
        words = (
            "search",
            str(folder / f"{spec}-{dim}"),
            "--queries",
            str(topics),
            "--out",
            str(folder / f"{spec}.run"),
        )
        yield Step(f"load, index and {TOPICS} searches, {spec}", words)


def fitting(folder: Path, graph: Path, spec: str, name: str, fields: str, memory: str | None) -> tuple[str, ...]:
    more = () if spec == "bm25" else ("--dim", str(FULL[spec]), "--fields", fields, *PAPER)
    kept = ("--checkpoint", str(folder / f"{name}.state"), "--memory", memory or MEMORY[spec])
    return ("fit", str(graph), "--model", spec, *more, *kept, "--out", str(folder / name))


def write_topics(path: Path, log: Path) -> Path:
    """Queries of the log to search for, from its first rows."""
    if not path.is_file():
        rows = next(pq.ParquetFile(log).iter_batches(20 * TOPICS, columns=["query"]))
        queries = list(dict.fromkeys(rows["query"].to_pylist()))[:TOPICS]
        path.write_text("".join(f"{number}\t{query}\n" for number, query in enumerate(queries)))
    return path


def truth_steps(folder: Path, fraction: float, memory: str | None) -> Iterator[Step]:
    data = folder / "truth"
    simulate = ("simulate", "--scale", "half-year", "--fraction", str(fraction), "--clicks", "pbm", "--out", str(data))
    yield Step("simulate the truth", simulate)
    tenth = write_sample(data / "log.jsonl.gz", data / "tenth.jsonl.gz")
    for log, share in ((data / "log.jsonl.gz", "all"), (tenth, "a tenth")):
        graph = folder / f"truth-{share[-5:]}"
        ingest = ("ingest", str(log), "--docs", str(data / "docs.jsonl.gz"), "--out", str(graph))
        yield Step(f"ingest, {share}", ingest)
        for label, (spec, more, shares) in LEARNED.items():
            if share[-5:] not in shares:
                continue
            name = f"{graph.name}-{label}"
            words = (*fitting(folder, graph, spec, name, "title", memory), *more)
            yield Step(f"fit {label}, {share}", words)
            for queries in ("seen", "unseen"):
                lists, out = data / f"{queries}.lists.jsonl", folder / f"{name}-{queries}.run"
                words = ("rank", str(folder / name), "--lists", str(lists), "--out", str(out))
                yield Step(f"rank {label}, {share}, {queries}", words)


def write_sample(log: Path, out: Path) -> Path:
    """A tenth of the searches, at random."""
    if not out.is_file():
        aside, draw = out.with_name("new.gz"), random.Random(0)
        with gzip.open(log, "rb") as lines, gzip.open(aside, "wb", compresslevel=1) as kept:
            kept.writelines(line for line in lines if draw.random() < SAMPLE)
        aside.replace(out)
    return out


def print_truth(folder: Path) -> None:
    print(f"\nnDCG@5 by the truth\n{'':<18}{'seen, all':>12}{'a tenth':>10}{'unseen, all':>14}{'a tenth':>10}")
    for label, (_, _, shares) in LEARNED.items():
        cells = [
            f"{ndcg(folder / f'truth-{share}-{label}-{queries}.run', folder / f'truth/{queries}.lists.jsonl'):.3f}"
            if share in shares
            else ""
            for queries in ("seen", "unseen")
            for share in ("all", "tenth")
        ]
        print(f"{label:<18}{cells[0]:>12}{cells[1]:>10}{cells[2]:>14}{cells[3]:>10}")


def ndcg(run: Path, lists: Path) -> float:
    line = [*CLICKBRIDGE, "evaluate", str(run), "--lists", str(lists), "--measures", "nDCG@5", "--json"]
    done = subprocess.run(line, check=True, capture_output=True, text=True)
    (row,) = json.loads(done.stdout)
    return float(row["nDCG@5"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where everything goes, and stays")
    parser.add_argument("--fraction", type=float, default=1.0, help="of the half year, for the first track")
    parser.add_argument("--truth", type=float, default=0.01, help="of the half year, for the second; 0: leave out")
    parser.add_argument(
        "--memory", help="for working arrays of a fit; the full size takes 9GiB for rmls, 14GiB for pls"
    )
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    notes = Notes(options.folder / "steps.json")
    asked = {"fraction": options.fraction, "truth": options.truth, "memory": options.memory}
    if notes.done.setdefault("asked", asked) != asked:
        sys.exit(f"{options.folder} has steps of {notes.done['asked']}: give the same, or another folder")
    if options.fraction:
        run(size_steps(options.folder, options.fraction, options.memory), notes)
    if options.truth:
        run(truth_steps(options.folder, options.truth, options.memory), notes)
        print_truth(options.folder)


if __name__ == "__main__":
    main()
