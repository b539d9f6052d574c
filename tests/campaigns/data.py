"""A small world for campaigns: a log, documents, a GRAPH, models, and what they answer."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from clickbridge import ClickGraph, build_model, load
from clickbridge.types import Document, Impression

WORDS = ["salt", "river", "stone", "cloud", "apple", "bread", "violin", "engine", "harbour", "candle", "moss", "glass"]


def documents() -> list[dict[str, Any]]:
    rng = Random(7)
    return [
        {"doc_id": f"d{n}", "title": f"{WORDS[n % 12]} {WORDS[n % 5]}", "body": " ".join(rng.choices(WORDS, k=6))}
        for n in range(40)
    ]


def pages(n: int = 160, seed: int = 3) -> list[dict[str, Any]]:
    rng, ids = Random(seed), [document["doc_id"] for document in documents()]
    rows = []
    for i in range(n):
        shown = rng.sample(ids, 6)
        query = " ".join(rng.choices(WORDS, k=rng.choice((1, 2))))
        clicks = rng.sample(shown, rng.choice((0, 1, 1, 2)))
        rows.append({"query": query, "results": shown, "clicks": clicks, "user": f"u{i % 17}", "time": 1.7e9 + 600 * i})
    return rows


def write_world(home: Path, n: int = 160) -> None:
    """`log.jsonl`, `more.jsonl`, `docs.jsonl`."""
    home.mkdir(parents=True, exist_ok=True)
    for name, rows in (("log", pages(n)), ("more", pages(40, seed=9)), ("docs", documents())):
        (home / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def graph_of(rows: list[dict[str, Any]], out: Path | None = None) -> ClickGraph:
    docs = [Document(d["doc_id"], {k: v for k, v in d.items() if k != "doc_id"}) for d in documents()]
    return ClickGraph.build([Impression(**row) for row in rows], docs, out)


def save_model(spec: str, graph: ClickGraph, out: Path, **settings: Any) -> None:
    build_model(spec, settings).fit(graph).save(out)


def answers(path: Path) -> bytes:
    """What a saved model says, as bytes to compare."""
    model = load(path)
    ids = model.doc_ids_
    return b"".join(np.asarray(model.score(query, ids)).tobytes() for query in ("salt river", "stone", "glass cloud"))
