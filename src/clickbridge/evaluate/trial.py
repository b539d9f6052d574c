"""Fits one model and runs it over lists in a process of its own, so that its peak memory can be measured.

The child process gets its task as JSON on standard input. The result is an artifact with the report of the fit and the
ranking of every list, as positions and scores. It contains no text. Its name ends in a key of everything that the
rankings depend on, so that a later call with the same key can use it again. Labels are never given to a model. A user's
own model (`register`) is fitted in this process, since a child process would not know it.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import orjson

import clickbridge
from clickbridge import errors
from clickbridge.engines.base import Engine
from clickbridge.engines.named import engine_named, in_plain_values
from clickbridge.errors import ClickbridgeError, MissingPart, NotSupported
from clickbridge.evaluate.own import OwnModel
from clickbridge.evaluate.single import reranked
from clickbridge.io.artifact import ArtifactWriter, open_artifact
from clickbridge.models.fitted import Array, Fitted
from clickbridge.models.model import Model
from clickbridge.models.specs import build_model
from clickbridge.settings import addressed
from clickbridge.types import ResultList

KIND = "trial"
TIMED_LISTS, TIMED_SECONDS = 200, 3.0
REFUSED = 3
"""Exit status of a trial whose model refused."""
CHILD = """import sys
sys.path.insert(0, sys.argv[1])
import clickbridge
del sys.path[0]
from clickbridge.evaluate.trial import main
sys.exit(main())"""
"""The program of the child: it imports this same copy of clickbridge, installed or not."""


@dataclass(frozen=True)
class Trial:
    """The results of one model: `ranked[i]` are positions in list i, best first, and `scores[i]` their scores."""

    spec: str
    settings: dict[str, Any]
    seconds: float
    query_ms: float
    peak_mb: float
    report: dict[str, Any]
    ranked: list[Array]
    scores: list[Array]
    reused: bool

    @property
    def scored(self) -> list[bool]:
        """For which lists the model has a score for at least one document."""
        return [bool(np.isfinite(s).any()) for s in self.scores]


def components(model: Model) -> Iterator[Model]:
    """A model and all its parts."""
    yield model
    for part in getattr(model, "parts", ()):
        yield from components(part)


def own_models(spec: str) -> list[type[Model]]:
    """The parts of a spec that were registered by the user."""
    kinds = (type(part) for part in components(build_model(spec)))
    return [kind for kind in kinds if kind.__module__.partition(".")[0] != "clickbridge"]


def settings_for(spec: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that at least one part of the spec has. `pls.dim` is for the part with that name."""
    taken = {(part.name, name) for part in components(build_model(spec)) for name in part.setting_names()}
    out = {}
    for key, value in settings.items():
        if any(addressed(key, part, [setting]) for part, setting in taken):
            out[key] = value
    return out


def lists_digest(lists: Sequence[ResultList]) -> str:
    digest = hashlib.sha256()
    for r in lists:
        digest.update(orjson.dumps([r.query_id, r.query, r.results, r.scores, r.vectors]))
    return digest.hexdigest()


def graph_digest(path: Path) -> str:
    manifest = open_artifact(path, "graph").manifest
    sums = {name: entry["sha256"] for name, entry in manifest["files"].items()}
    return _digest([sums, manifest.get("defaults")])


def trial_key(graph: str, lists: str, spec: str, settings: Mapping[str, Any]) -> str:
    """A key of the GRAPH, the lists, every setting of every part (including defaults) and the source code."""
    params = [[part.name, asdict(part.settings)] for part in components(build_model(spec, settings))]
    code = [_code_digest(), *map(_source_digest, own_models(spec))]
    return _digest([graph, lists, spec, params, clickbridge.__version__, code])


def _digest(value: Any) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _source_digest(kind: type[Model]) -> str:
    """A checksum of the source file of a user's own model. Without a file, it differs each time."""
    try:
        source = Path(inspect.getfile(kind)).read_bytes()
    except (TypeError, OSError):
        source = os.urandom(32)
    return hashlib.sha256(source).hexdigest()


@cache
def _code_digest() -> str:
    """A checksum of all source files that could change a ranking: all except evaluation, simulation, serving and the
    command line."""
    root = Path(clickbridge.__file__).parent
    outside = {"cli", "serve", "evaluate", "measures", "simulate"}
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        if name.parts[0] not in outside:
            digest.update(f"{name}\0".encode() + path.read_bytes())
    digest.update(Path(__file__).read_bytes())
    return digest.hexdigest()


# --- the parent's side ---------------------------------------------------------------------------


def trial_folder(home: Path, spec: str, key: str) -> Path:
    return home / f"{spec.replace(':', '.')}-{key[:16]}"


def run_trial(
    graph: Path, lists: Path, spec: str, settings: Mapping[str, Any], out: Path, engine: Engine | None = None
) -> None:
    """Fits and runs a model in a fresh process, which writes the artifact `out`; it fits on an engine like this one."""
    job = {"graph": str(graph), "lists": str(lists), "spec": spec, "settings": dict(settings), "out": str(out)}
    if engine is not None:
        job["engine"] = in_plain_values(engine)
    if own_models(spec):
        perform(job)
        return
    home = str(Path(clickbridge.__file__).parents[1])
    # -P: a file in the current folder must not replace a library of the same name.
    line = [sys.executable, "-P", "-c", CHILD, home]
    done = subprocess.run(line, input=orjson.dumps(job), capture_output=True)
    if done.returncode == REFUSED:
        refusal = orjson.loads(done.stdout)
        raise getattr(errors, refusal["kind"])(refusal["message"])
    if done.returncode < 0:
        raise ClickbridgeError(
            f"{spec}: its process was ended by signal {-done.returncode} (9 usually means too little memory); "
            "leave it out, or make it smaller with --dim"
        )
    if done.returncode:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["it printed no error"])[-1]
        raise ClickbridgeError(f"{spec} failed: {last}")


def read_trial(path: Path, lists: Sequence[ResultList], reused: bool) -> Trial:
    artifact = open_artifact(path, KIND)
    header = artifact.manifest["trial"]
    bounds = np.cumsum([len(r.results) for r in lists])[:-1]
    ranked, scores = (np.split(artifact.array(name), bounds) for name in ("ranked", "scores"))
    return Trial(**header, ranked=ranked, scores=scores, reused=reused)


# --- the child's side ----------------------------------------------------------------------------


def peak_mb() -> float:
    """The peak resident memory of this process. Uses the kernel's figure for this program if there is one, since
    ru_maxrss also counts the parent's memory from before the program was loaded."""
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) / 1024, 1)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def query_milliseconds(model: Model | Fitted | OwnModel, lists: Sequence[ResultList]) -> float:
    """Median time to re-rank one list, given alone, after a first one that loads what is loaded once."""
    model.rerank_lists(lists[:1])
    times: list[float] = []
    for result in lists[:TIMED_LISTS]:
        start = time.perf_counter()
        model.rerank_lists([result])
        times.append(time.perf_counter() - start)
        if sum(times) > TIMED_SECONDS:
            break
    return 1000 * statistics.median(times)


def perform(job: Mapping[str, Any]) -> None:
    from clickbridge.graph.clickgraph import ClickGraph
    from clickbridge.io.lists import read_lists

    graph = ClickGraph.open(job["graph"])
    lists = [replace(result, labels=None) for result in read_lists(job["lists"])]
    model = build_model(job["spec"], job["settings"])
    start = time.perf_counter()
    with engine_named(**job.get("engine", {"name": "local"})) as engine:
        model.fit(graph, engine=engine)
    seconds = time.perf_counter() - start
    ranked, scores = reranked(model, lists)
    header = {
        "spec": job["spec"],
        "settings": job["settings"],
        "seconds": seconds,
        "query_ms": query_milliseconds(model, lists),
        "peak_mb": peak_mb(),
        "report": model.report_,
    }
    with ArtifactWriter(job["out"], KIND) as writer:
        writer.array("ranked", np.concatenate(ranked))
        writer.array("scores", np.concatenate(scores))
        writer.commit(trial=header)


def main() -> int:
    try:
        perform(orjson.loads(sys.stdin.buffer.read()))
    except ClickbridgeError as error:
        sys.stdout.buffer.write(orjson.dumps({"kind": type(error).__name__, "message": error.line}))
        return REFUSED
    return 0


CANNOT = (MissingPart, NotSupported)
"""A model that refuses with one of these cannot learn from this GRAPH; others still can."""
