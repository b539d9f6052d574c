"""No NaN and no infinity leaves a model, whatever log it was fitted on; saved, it says the same; and it can rank in a
forked child."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clickbridge
from clickbridge import ClickGraph, build_model
from clickbridge.errors import ClickbridgeError
from clickbridge.models.model import Model
from clickbridge.types import Document, Impression, PairCount
from contract.specs import SPECS

every_spec = pytest.mark.parametrize("spec", SPECS)
DOCS = [Document(f"d{i}", {"title": f"word{i % 3} thing{i % 2}", "body": f"text of {i}"}) for i in range(6)]
LONG = [Document("d0", {"title": "word " * 3000}), Document("d1", {"title": "x"}), Document("d2", {"title": "word"})]


def pages(n: int, clicks: Callable[[int], list[str]], shown: int = 4, **more: Any) -> list[Impression]:
    return [
        Impression(f"word{i % 3} thing{i % 2}", [f"d{j % 6}" for j in range(i, i + shown)], clicks(i), **more)
        for i in range(n)
    ]


def first(i: int) -> list[str]:
    return [f"d{i % 6}"]


def timed(n: int, seconds: Callable[[int], float]) -> list[Impression]:
    return [
        Impression(p.query, p.results, p.clicks, user=f"u{i % 3}", time=seconds(i))
        for i, p in enumerate(pages(n, first))
    ]


DEGENERATE: dict[str, tuple[list[Any], list[Document]]] = {
    "one click": ([Impression("a", ["d0"], ["d0"])], [Document("d0", {"title": "a"})]),
    "one document": (pages(20, lambda i: ["d0"], shown=1), DOCS[:1]),
    "one query": ([Impression("word0", ["d0", "d1"], ["d1"])] * 30, DOCS),
    "all clicked": (pages(30, lambda i: [f"d{j % 6}" for j in range(i, i + 4)]), DOCS),
    "one click in many pages": (pages(60, lambda i: ["d0"] if i == 0 else []), DOCS),
    "equal documents": (pages(40, first), [Document(f"d{i}", {"title": "same"}) for i in range(6)]),
    "empty texts": (pages(40, first), [Document(f"d{i}", {"title": ""}) for i in range(6)]),
    "huge counts": ([PairCount(f"word{i}", f"d{i % 6}", 2**31 - 1, 2**31 - 1) for i in range(9)], DOCS),
    "tiny and huge counts": ([PairCount(f"word{i}", f"d{i % 6}", 10 ** (i % 10)) for i in range(40)], DOCS),
    "queries without a known word": ([PairCount(f"zz{i}", f"d{i % 6}") for i in range(40)], DOCS),
    "a very long document": ([PairCount("word x", f"d{i % 3}", i + 1) for i in range(9)], LONG),
    "clicks outside": ([Impression("word1", ["d0", "d1"], ["elsewhere"])] * 20, DOCS),
    "one moment": (timed(60, lambda i: 1.7e9), DOCS),
    "far apart": (timed(60, lambda i: 0.0 if i < 59 else 4e9), DOCS),
    "stars": ([PairCount(f"word{i}", "d0", 3) for i in range(30)], DOCS),
    "no shared click": ([PairCount(f"word{i} thing", f"d{i}", 1) for i in range(6)], DOCS),
}
GRAPHS: dict[str, ClickGraph] = {}
QUERIES = ["word0 thing0", "word", "a", "zz3", "nothing at all", "", "word0 " * 50]


def _graph(name: str, log: list[Any], docs: list[Document]) -> ClickGraph:
    """Built once for all specs."""
    if name not in GRAPHS:
        GRAPHS[name] = ClickGraph.build(log, docs)
    return GRAPHS[name]


def numbers(model: Any) -> list[float]:
    """Every number that a model gives out; -inf, which says that there is no score, as 0."""
    out: list[float] = []
    ids, able = [*model.doc_ids_, "unknown"], model.fitted.abilities
    for query in QUERIES:
        out += np.where(np.isneginf(scores := model.score(query, ids)), 0.0, scores).tolist()
        ranking = model.rerank(query, ids)
        assert sorted(ranking.doc_ids) == sorted(ids)
        if "search" in able:
            out += model.rank(query, 4).scores
        if "similar queries" in able:
            out += [value for _, value in model.similar_queries(query, 3)]
        if "explain" in able:
            try:
                told = model.explain(query, ids[0])
            except ClickbridgeError:
                continue
            out += [told.score, told.rest, *(x for pair in told.pairs for x in (pair.contribution, pair.share))]
    if "similar documents" in able:
        out += model.similar_documents(ids[0], 3).scores
    return out


@every_spec
def test_no_degenerate_log_makes_a_model_say_nan(spec: str) -> None:
    fitted = 0
    for name, made_of in DEGENERATE.items():
        try:
            model = build_model(spec).fit(_graph(name, *made_of))
        except ClickbridgeError:
            continue  # refused with a reason
        fitted += 1
        assert np.isfinite(numbers(model)).all(), name
    assert fitted >= 4


# --- saved equals fitted, whatever the log has -------------------------------------------------------


def _log(times: bool = False, users: bool = False, results: bool = True, text: bool = True) -> list[Any]:
    rng = np.random.default_rng(3)
    out: list[Any] = []
    for i in range(90):
        shown = [f"d{j}" for j in rng.permutation(6)[:4]]
        who = {"user": f"u{i % 7}" if users else None, "time": 1.7e9 + 3600.0 * i if times else None}
        query, key = (f"word{i % 3} thing{i % 2}", None) if text else ("", f"Q{i % 8}")
        if results:
            out.append(Impression(query, shown, shown[: 1 + i % 2], key, **who))
        else:
            out.append(PairCount(query, shown[0], 1 + i % 3, None, key, **who))
    return out


SHAPES: dict[str, tuple[list[Any], list[Document]]] = {
    "times": (_log(times=True), DOCS),
    "users": (_log(users=True, times=True), DOCS),
    "pages": (_log(), DOCS),
    "clicks only": (_log(results=False), DOCS),
    "no text": (_log(), []),
    "ids only": (_log(text=False), []),
}


def answers(model: Any) -> list[Any]:
    ids, able = model.doc_ids_, model.fitted.abilities
    out: list[Any] = []
    for query in (*QUERIES, "Q3"):
        out += [model.score(query, ids).tobytes(), model.rerank(query, ids).hits]
        for ability, ask in (
            ("search", lambda q=query: model.rank(q, 5).hits),
            ("similar queries", lambda q=query: model.similar_queries(q, 4)),
            ("similar documents", lambda: model.similar_documents(ids[1], 4).hits),
            ("explain", lambda q=query: model.explain(q, ids[2])),
        ):
            if ability in able:
                try:
                    out.append(ask())
                except ClickbridgeError as refusal:
                    out.append(str(refusal))
    return out


@every_spec
def test_saved_it_says_the_same_whatever_the_log_has(spec: str, tmp_path: Path) -> None:
    for name, made_of in SHAPES.items():
        try:
            model = build_model(spec).fit(_graph(name, *made_of))
        except ClickbridgeError:
            continue
        model.save(tmp_path / name)
        assert answers(clickbridge.load(tmp_path / name)) == answers(model), name
        assert np.isfinite(numbers(model)).all(), name
    assert list(tmp_path.iterdir())


# --- in a forked child -------------------------------------------------------------------------------


def test_every_model_ranks_in_a_forked_child(tuned: Callable[[str], Model], large_graph: ClickGraph) -> None:
    """After the parent has ranked: threads that it started are not in the child, and locks may be held."""
    ids = large_graph.doc_ids
    for spec in SPECS:
        model = tuned(spec)

        def said(model: Model = model) -> bytes:
            scores = [model.score(query, ids).tobytes() for query in ("old river", "loaf", "never heard of")]
            return hashlib.sha256(b"".join(scores)).digest()

        mine = said()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, said())
            os._exit(0)
        os.close(write)
        try:
            assert _ended(child), f"{spec} hangs in a forked child"
            assert os.read(read, 64) == mine, spec
        finally:
            os.close(read)


def _ended(child: int, seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False
