"""Arrays of a MODEL or a GRAPH replaced by hostile ones, every checksum made anew: it is refused, or it answers.

Compiled loops do not look where they read, so what passes is used too: every answer a model can give is asked for. A
forked child tries many; if it dies by a signal, its last words say on what.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from campaigns.children import Child, preload
from campaigns.data import WORDS, graph_of, pages
from campaigns.tally import Tally
from clickbridge import ClickGraph, build_model, load
from clickbridge.errors import ClickbridgeError
from contract.specs import SPECS
from forgery import manifest_of, replaced

SHORT, LONG = 60, 1_200
AT_ONCE = 40
NUMBERS = (-1, -5, 2**30, 2**31 - 1, -(2**31), 0, 1, 7, 10**6)


def run(count: int, seed: int = 0, specs: list[str] | None = None) -> Tally:
    tally = Tally()
    preload()
    with tempfile.TemporaryDirectory(prefix="campaign-") as home:
        graph = graph_of(pages())
        targets = _targets(Path(home), graph, specs or [*SPECS, "graph"])
        each = max(1, count // len(targets))
        for spec, folder in targets.items():
            done = 0
            while done < each:
                done += _tried(tally, Path(home), spec, folder, min(AT_ONCE, each - done), seed + done)
    return tally


def _targets(home: Path, graph: ClickGraph, specs: list[str]) -> dict[str, Path]:
    """Saved in a child each: what the parent has computed would be copied into all others."""
    out = {}
    for number, spec in enumerate(specs):
        out[spec] = home / str(number)
        work = _saving(spec, graph, out[spec])
        ended = Child(work, home / "err").wait()
        if ended.code:
            raise RuntimeError(f"{spec} cannot be fitted here: {ended.err[-300:]}")
    return out


def _saving(spec: str, graph: ClickGraph, out: Path) -> Callable[[], None]:
    return lambda: graph.save(out) if spec == "graph" else build_model(spec).fit(graph).save(out)  # type: ignore[func-returns-value]


def _tried(tally: Tally, home: Path, spec: str, sound: Path, count: int, seed: int) -> int:
    """A child tries `count` forgeries; returns how many it came to."""
    words = home / "words"
    words.write_bytes(b"")
    ended = Child(lambda: _forgeries(home, spec, sound, count, seed, words), home / "err").wait()
    lines = words.read_text().splitlines()
    tries = [line for line in lines if line.startswith("try ")]
    tally.tried += len(tries)
    tally.hit += sum(line == "refused" for line in lines)
    for line in lines:
        if line.startswith("fault "):
            tally.fault(line)
    if ended.code:
        tally.fault(
            f"{spec} (seed {seed}) ended with {ended.code} at {tries[-1] if tries else '-'}: {ended.err[-200:]}"
        )
    return max(1, len(tries))


def _forgeries(home: Path, spec: str, sound: Path, count: int, seed: int, words: Path) -> None:
    out, folder = os.open(words, os.O_WRONLY | os.O_APPEND), home / "forged"
    for number in range(seed, seed + count):
        rng = Random(f"{spec} {number}")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(sound, folder)
        part, name = rng.choice(_arrays(manifest_of(folder)))
        home_of = folder if part is None else folder / "parts" / part
        entry = _files(manifest_of(folder), part)[name + ".npy"]
        values, how = mutated(np.load(home_of / entry["file"]), rng)
        os.write(out, f"try {spec} {part or ''} {name} {how}\n".encode())
        replaced(folder, name, values, part)
        try:
            _used(folder, spec)
            os.write(out, b"answered\n")
        except (ClickbridgeError, MemoryError):
            os.write(out, b"refused\n")
        except Exception as error:
            import traceback

            last = traceback.extract_tb(error.__traceback__)[-1]
            told = f"{type(error).__name__} {str(error)[:120]!r} {last.filename}:{last.lineno}"
            os.write(out, f"fault {spec} {part or ''} {name} {how} (seed {number}): {told}\n".encode())


def _arrays(manifest: dict[str, Any]) -> list[tuple[str | None, str]]:
    own = [(None, name[:-4]) for name in manifest["files"] if name.endswith(".npy")]
    parts = manifest.get("parts", {})
    return own + [(p, name[:-4]) for p in parts for name in parts[p]["files"] if name.endswith(".npy")]


def _files(manifest: dict[str, Any], part: str | None) -> dict[str, Any]:
    return dict((manifest if part is None else manifest["parts"][part])["files"])


def mutated(values: np.ndarray[Any, Any], rng: Random) -> tuple[np.ndarray[Any, Any], str]:
    """Another array, and what was done to it."""
    how = rng.choice(["one", "one", "one", "some", "all", "shorter", "longer", "dtype", "flat", "empty", "shuffled"])
    out = np.array(values)
    if how in ("one", "some", "all") and out.size and out.dtype.kind in "iuf":
        flat, number = out.reshape(-1), rng.choice(NUMBERS)
        places = {"one": [rng.randrange(out.size)], "some": rng.sample(range(out.size), min(out.size, 5))}
        info = np.iinfo(out.dtype) if out.dtype.kind in "iu" else None
        value: Any = number if info is None else min(max(number, info.min), info.max)
        if info is None and rng.random() < 0.5:
            value = rng.choice([np.nan, np.inf, -np.inf, 1e308, -1e308])
        with np.errstate(over="ignore"):
            flat[places.get(how, slice(None))] = value
        return out, f"{how}={value}"
    if how == "shorter":
        return out[: len(out) // 2] if out.ndim else out, how
    if how == "longer" and out.ndim:
        return np.concatenate([out, out]), how
    if how == "dtype":
        kind = rng.choice([np.float64, np.int8, np.uint64, np.int32, "U3"])
        with np.errstate(invalid="ignore", over="ignore"):
            return out.astype(kind), f"dtype={np.dtype(kind)}"
    if how == "flat":
        return out.reshape(1, -1), how
    if how == "empty":
        return out[:0] if out.ndim else out, how
    if out.ndim:
        order = list(range(len(out)))
        rng.shuffle(order)
        return out[order], "shuffled"
    return out, "same"


def _used(folder: Path, spec: str) -> None:
    """All that can be asked of what was opened."""
    if spec == "graph":
        graph = ClickGraph.open(folder)
        graph.matrix(rows="queries")
        build_model("bm25+cos-click").fit(graph)
        return
    model = load(folder)
    ids, queries = model.doc_ids_, ["salt river", WORDS[3], "nothing like it"]
    able = model.fitted.abilities
    for query in queries:
        model.score(query, ids)
        model.rerank(query, ids[:7])
        for ability, ask in (
            ("search", lambda q=query: model.rank(q, 5)),
            ("similar queries", lambda q=query: model.similar_queries(q, 3)),
            ("similar documents", lambda: model.similar_documents(ids[1], 3)),
            ("explain", lambda q=query: model.explain(q, ids[2])),
        ):
            if ability in able:
                with suppress(ClickbridgeError):  # a query without an answer
                    ask()
