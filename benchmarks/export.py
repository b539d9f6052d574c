"""Exports of a model in real engines: the first ten against ours, the largest difference of scores, and times.

    python benchmarks/export.py MODEL LISTS [queries] [targets]

Engines: Lucene (through the OpenSearch and Elasticsearch exports), Qdrant, PostgreSQL with pgvector, FAISS.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import clickbridge
from clickbridge.export.elasticsearch import Index as ElasticsearchIndex
from clickbridge.export.opensearch import Index as OpenSearchIndex
from clickbridge.export.source import Source
from clickbridge.export.targets import _source, export
from oracles.search_engines import Faiss, Lucene, Postgres, Qdrant


def compare(model: Any, queries: list[str], target: str, home: Path) -> dict[str, Any]:
    started = time.perf_counter()
    folder = export(model, target, home / target)
    written = time.perf_counter() - started
    started = time.perf_counter()
    engines = {"opensearch": Lucene, "elasticsearch": Lucene, "qdrant": Qdrant, "faiss": Faiss}
    engine: Any = Postgres(folder, home / "pg") if target == "pgvector" else engines[target](folder)
    loaded = time.perf_counter() - started
    source, module = _source(model, target, None, 1)
    same = close = 0
    worst = 0.0
    spent = 0.0
    for query in queries:
        ours = model.rank(query, 10)
        request, scale, constant = asked(module, source, query, target)
        started = time.perf_counter()
        theirs = engine.search(request, 10)
        spent += time.perf_counter() - started
        everything = dict(model.rank(query, 1000))
        # Of documents that score the same, either may come first.
        ties = [abs(everything.get(d, 0.0) - h.score) <= TIE for (d, _), h in zip(theirs, ours, strict=False)]
        same += len(theirs) == len(ours) and all(ties)
        close += {d for d, _ in theirs} == {*ours.doc_ids}
        scores = dict(zip(ours.doc_ids, ours.scores, strict=True))
        largest = max((abs(s) for s in scores.values()), default=1.0)
        both = [abs((s - constant) / scale - scores[d]) / largest for d, s in theirs if d in scores]
        worst = max([worst, *both])
    if target == "pgvector":
        engine.close()
    n = len(queries)
    return {
        "target": target, "same ten": f"{same}/{n}", "same set": f"{close}/{n}", "largest difference": f"{worst:.1e}",
        "write s": round(written, 1), "load s": round(loaded, 1), "query ms": round(1000 * spent / n, 1),
    }  # fmt: skip


def asked(module: Any, source: Source, query: str, target: str) -> tuple[Any, float, float]:
    index = {"opensearch": OpenSearchIndex, "elasticsearch": ElasticsearchIndex}.get(target)
    if index is None:
        return json_of(module.request(source, query, 10)), 1.0, 0.0
    found = INDEXES.setdefault(target, index(source.maps)).request(query, 10)
    return json_of(found.body), found.scale, found.constant


TIE = 1e-5
TARGETS = ("opensearch", "elasticsearch", "qdrant", "pgvector", "faiss")
INDEXES: dict[str, Any] = {}


def json_of(value: Any) -> Any:
    """As it goes over the wire."""
    from clickbridge.export.folder import packed

    return value if isinstance(value, str) else json.loads(packed(value))


def main() -> None:
    model = clickbridge.load(sys.argv[1])
    lists = clickbridge.read_lists(sys.argv[2])
    most = int(sys.argv[3]) if len(sys.argv) > 3 else 200
    queries = [result.query for result in lists][:most]
    started = time.perf_counter()
    for query in queries:
        model.rank(query, 10)
    ours = 1000 * (time.perf_counter() - started) / len(queries)
    print(f"{model.spec}, {len(queries)} queries; ours {ours:.1f} ms a query")
    with tempfile.TemporaryDirectory(prefix="clickbridge-") as home:
        for target in sys.argv[4].split(",") if len(sys.argv) > 4 else TARGETS:
            row = compare(model, queries, target, Path(home))
            print(" | ".join(f"{name} {value}" for name, value in row.items()), flush=True)


if __name__ == "__main__":
    main()
