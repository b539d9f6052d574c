"""The demo's data: standard-library documents, hand-written intents, simulated clicks.

Each intent has target objects and several phrasings. Simulated users search for half of the phrasings, which gives the
log; the other half never appear in it and are the test. A result page shows what a plain keyword engine finds for the
phrasing, mixed, as by an engine with several sources, with documents about the intent. Users click by one of three
click models.
"""

from __future__ import annotations

import gzip
import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from clickbridge.io.lists import write_lists
from clickbridge.simulate.clicks import check_click_model, clicks_on_page
from clickbridge.simulate.corpus import standard_library
from clickbridge.types import Document, ResultList

PAGE, POOL, MOST_SEARCHES = 10, 30, 40
SHOW_TARGET = 0.9
_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True)
class Intent:
    """What a user wants: the `grades` of the objects that answer it, and its phrasings."""

    grades: dict[str, int]
    phrasings: list[str]


def read_intents() -> list[Intent]:
    text = (files("clickbridge.simulate") / "intents.tsv").read_text(encoding="utf8")
    out = []
    for line in text.splitlines():
        targets, phrasings = line.split("\t")
        first, *others = targets.split()
        out.append(Intent({first: 2, **dict.fromkeys(others, 1)}, phrasings.split(" | ")))
    return out


class KeywordEngine:
    """A plain engine that sums the idf of shared words. The simulated users see its pages."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.ids = [d.doc_id for d in documents]
        self._found: dict[tuple[str, int], list[str]] = {}
        self._postings: dict[str, list[int]] = {}
        for number, document in enumerate(documents):
            for word in set(_WORD.findall(" ".join(document.fields.values()).lower())):
                self._postings.setdefault(word, []).append(number)

    def search(self, query: str, k: int) -> list[str]:
        if (query, k) not in self._found:
            self._found[query, k] = self._search(query, k)
        return [*self._found[query, k]]

    def _search(self, query: str, k: int) -> list[str]:
        scores: dict[int, float] = defaultdict(float)
        # In a fixed order: the last bit of a sum, and with it a tie, must not depend on the hash seed.
        for word in sorted(set(_WORD.findall(query))):
            postings = self._postings.get(word, [])
            for number in postings:
                scores[number] += math.log(1 + len(self.ids) / len(postings))
        best = sorted(scores, key=lambda number: (-scores[number], len(self.ids[number]), number))
        return [self.ids[number] for number in best[:k]]


def write_demo(out: Path, seed: int = 0, clicks: str = "pbm") -> dict[str, Any]:
    """Writes docs.jsonl.gz, log.jsonl.gz, seen.lists.jsonl and unseen.lists.jsonl into `out`."""
    check_click_model(clicks)
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    intents = read_intents()
    documents = standard_library(extra=[target for intent in intents for target in intent.grades])
    known = {d.doc_id for d in documents}
    engine = KeywordEngine(documents)
    # mtime=0: one seed gives the same bytes.
    with gzip.GzipFile(out / "docs.jsonl.gz", "wb", mtime=0) as f:
        for d in documents:
            f.write(orjson.dumps({"doc_id": d.doc_id, **d.fields}, option=orjson.OPT_APPEND_NEWLINE))
    searches: list[tuple[str, Intent]] = []
    lists: dict[str, list[ResultList]] = {"seen": [], "unseen": []}
    for intent in intents:
        grades = {target: grade for target, grade in intent.grades.items() if target in known}
        if not grades:
            continue
        order = rng.permutation(len(intent.phrasings))
        popularity = rng.zipf(1.5, size=len(order)).clip(1, MOST_SEARCHES) + 2
        for place, number in enumerate(order):
            phrasing = intent.phrasings[number]
            kind = "seen" if place % 2 == 0 else "unseen"
            if kind == "seen":
                searches += [(phrasing, Intent(grades, intent.phrasings))] * int(popularity[place])
            lists[kind].append(_judged(f"{kind}-{len(lists[kind])}", phrasing, grades, engine, rng))
    n_clicks = 0
    with gzip.GzipFile(out / "log.jsonl.gz", "wb", compresslevel=5, mtime=0) as f:
        for i in rng.permutation(len(searches)):
            phrasing, intent = searches[i]
            page = _page(phrasing, intent, engine, rng)
            clicked = clicks_on_page([intent.grades.get(d, 0) for d in page], rng, clicks)
            chosen = [d for d, c in zip(page, clicked, strict=True) if c]
            n_clicks += len(chosen)
            record = {
                "query": phrasing,
                "results": page,
                "clicks": chosen,
                "user": f"simulated-{rng.integers(2000)}",
            }
            f.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
    for kind, judged in lists.items():
        write_lists(out / f"{kind}.lists.jsonl", judged)
    return {
        "documents": len(documents), "intents": len(intents), "simulated searches": len(searches),
        "simulated clicks": n_clicks, "seen phrasings": len(lists["seen"]), "unseen phrasings": len(lists["unseen"]),
    }  # fmt: skip


def _page(phrasing: str, intent: Intent, engine: KeywordEngine, rng: np.random.Generator) -> list[str]:
    page = engine.search(phrasing, PAGE - 2)
    for target in intent.grades:
        if target not in page and rng.random() < SHOW_TARGET:
            page.insert(int(rng.integers(len(page) + 1)), target)
    while len(page) < PAGE:
        filler = engine.ids[int(rng.integers(len(engine.ids)))]
        if filler not in page:
            page.append(filler)
    return page[:PAGE]


def _judged(
    query_id: str, phrasing: str, grades: dict[str, int], engine: KeywordEngine, rng: np.random.Generator
) -> ResultList:
    """A judged list: the phrasing's keyword results, some of their neighbours in the alphabet, and the targets,
    shuffled."""
    pool = dict.fromkeys([*engine.search(phrasing, POOL), *grades])
    for number in rng.integers(len(engine.ids), size=max(POOL - len(pool), 5)):
        pool[engine.ids[int(number)]] = None
    results = [str(d) for d in rng.permutation(list(pool))]
    return ResultList(query_id, phrasing, results, [float(grades.get(d, 0)) for d in results])
