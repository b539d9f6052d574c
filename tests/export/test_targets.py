"""What is written for each target, without an engine."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from clickbridge import build_model, read_qrels, read_run
from clickbridge.errors import InputError, MissingPart, NotSupported, SettingError
from clickbridge.export.elasticsearch_ltr import weights
from clickbridge.export.lucene import Features, kept
from clickbridge.export.maps import Block, Maps
from clickbridge.export.source import Source
from clickbridge.export.targets import TARGETS, export, request


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_is_a_folder_with_a_recipe(models: Any, graph: Any, tmp_path: Path, target: str) -> None:
    out = export(models["bm25+pls"], target, tmp_path / "out", graph)
    text = (out / "README.md").read_text()
    for named in (line.split("`")[1] for line in text.splitlines() if line.startswith("| `")):
        first = named.split(" … ")[0].rstrip("/")
        assert (out / first).exists(), f"{named} is named and missing"
    assert json.loads((out / "export.json").read_text())["target"] == target
    samples = json.loads((out / "expected.json").read_text())
    assert len(samples) == 5
    for sample in samples:
        ours = models["bm25+pls"].rank(sample["query"], 10)
        assert [r["doc_id"] for r in sample["results"]] == ours.doc_ids
    before = sorted(p.name for p in out.iterdir())
    export(models["bm25+pls"], target, out, graph)
    assert sorted(p.name for p in out.iterdir()) == before, "an export is replaced"
    assert [p.name for p in tmp_path.iterdir()] == ["out"], "nothing is left beside it"


def test_what_is_refused(models: Any, graph: Any, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="is not an export"):
        export(models["bm25"], "parquet", tmp_path / "mine")
    assert (tmp_path / "mine" / "notes.txt").read_text() == "mine"
    with pytest.raises(SettingError, match="to must be one of"):
        export(models["bm25"], "solr", tmp_path / "x")
    with pytest.raises(MissingPart, match="graph"):
        export(models["bm25"], "judgments", tmp_path / "x")
    with pytest.raises(NotSupported, match="not an S-function"):
        export(build_model("given").fit(graph), "opensearch", tmp_path / "x")
    with pytest.raises(NotSupported, match="not an engine"):
        request(models["bm25"], "judgments", "pizza")
    assert not (tmp_path / "x").exists()


def test_an_export_that_fails_leaves_what_was_there(models: Any, graph: Any, tmp_path: Path) -> None:
    out = export(models["bm25"], "parquet", tmp_path / "out")
    before = (out / "README.md").read_text()
    with pytest.raises(MissingPart):
        export(models["bm25"], "letor", out)
    assert (out / "README.md").read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("spec", ["bm25", "pls", "bm25+pls", "lmir", "rmls"])
def test_maps_are_the_score(models: Any, spec: str) -> None:
    maps = Maps.of(models[spec].fitted, "x")
    for query in ("ny pizza", "lima"):
        blocks = zip(maps.blocks, maps.query(query), strict=True)
        total = np.zeros(len(maps.doc_ids))
        for block, values in blocks:
            vector = np.zeros(block.width, dtype=np.float32)
            if isinstance(values, np.ndarray):
                vector[:] = values
            else:
                vector[values.columns] = values.values
            total += np.array([block.vector(i) @ vector for i in range(len(maps.doc_ids))])
        for hit in models[spec].rank(query, 5):
            assert total[maps.doc_ids.index(hit.doc_id)] == pytest.approx(hit.score, rel=1e-5, abs=1e-6)


def test_signed_features_are_moved_and_exact(models: Any) -> None:
    """y - low and high - y are positive; the query asks for one of them and knows the constant."""
    from clickbridge.numerics.row import Row

    images = np.array([[0.5, -2.0], [0.0, 1.0], [3.0, 0.0]], dtype=np.float32)
    from scipy import sparse

    features = Features(Block("b", sparse.csr_array(images), np.ones(3, dtype=bool)))
    for asked in ([2.0, 1.0], [1.0, -3.0]):
        row = Row(np.array([0, 1]), np.array(asked, dtype=np.float32))
        tokens, constant = features.query(row)
        for number in range(3):
            have = features.document(number)
            assert all(value > 0 for value in have.values())
            score = sum(weight * float(have.get(token, 0.0)) for token, weight in tokens.items()) - constant
            assert score == pytest.approx(float(images[number] @ row.values), rel=1e-2)
    with pytest.raises(NotSupported, match="negative weight"):
        features.query(Row(np.array([0]), np.array([-1.0], dtype=np.float32)))


def test_rounding_to_what_lucene_keeps() -> None:
    values = np.array([1.0, 1.001, 1.003, 17.3, 1e-3], dtype=np.float32)
    assert (kept(values).view(np.uint32) & 0x7FFF == 0).all()
    assert (np.abs(kept(values) / values - 1) < 2**-8.9).all()
    assert (kept(kept(values)) == kept(values)).all()


def test_parquet(models: Any, tmp_path: Path) -> None:
    table = pq.read_table(export(models["pls"], "parquet", tmp_path / "a") / "documents.parquet")
    assert table.column_names == ["doc_id", "title", "vector"]
    assert table.num_rows == 42
    both = pq.read_table(export(models["bm25+pls"], "parquet", tmp_path / "b") / "documents.parquet")
    assert both.column_names == ["doc_id", "title", "indices_bm25", "values_bm25", "vector_pls"]
    asked = request(models["pls"], "parquet", "ny pizza")
    scores = np.stack(table["vector"].to_numpy(zero_copy_only=False)) @ asked["vector"]
    best = models["pls"].rank("ny pizza", 1)[0]
    assert table["doc_id"][int(scores.argmax())].as_py() == best.doc_id
    assert scores.max() == pytest.approx(best.score, rel=1e-5)


def test_judgments(models: Any, graph: Any, tmp_path: Path) -> None:
    out = export(models["bm25"], "judgments", tmp_path / "out", graph)
    body = json.loads((out / "workbench.json").read_text())
    assert body["type"] == "IMPORT_JUDGMENT"
    ratings = {j["query"]: {r["docId"]: r["rating"] for r in j["ratings"]} for j in body["judgmentRatings"]}
    assert ratings["rome pasta"]["rome-pasta"] == "3.000"
    assert "0.000" in ratings["rome pasta"].values(), "what was shown and not clicked"
    rows = list(csv.DictReader((out / "quepid.csv").read_text().splitlines()))
    assert {row["query"] for row in rows} == {*ratings}
    assert {row["rating"] for row in rows} <= {"0", "1", "2", "3"}
    assert json.loads((out / "queryset.ndjson").read_text().splitlines()[0])["queryText"] in ratings


def test_queries_of_few_people_are_not_written(models: Any, graph: Any, tmp_path: Path) -> None:
    wide = Source(models["bm25"].fitted, "x", graph, 1).shown_queries
    narrow = Source(models["bm25"].fitted, "x", graph, 8).shown_queries
    assert {*narrow.tolist()} < {*wide.tolist()}
    out = export(models["bm25"], "judgments", tmp_path / "out", graph, min_users=8)
    written = {json.loads(line)["queryText"] for line in (out / "queryset.ndjson").read_text().splitlines()}
    assert written == {graph.query_texts[i] for i in narrow}


def test_trec(models: Any, graph: Any, tmp_path: Path) -> None:
    out = export(models["bm25"], "trec", tmp_path / "out", graph)
    topics = dict(line.split("\t") for line in (out / "topics.tsv").read_text().splitlines())
    run, qrels = read_run(out / "run.txt"), read_qrels(out / "qrels.txt")
    assert {*run} <= {*topics}
    assert {*qrels} == {*topics}


def test_letor_is_what_other_learners_read(models: Any, graph: Any, tmp_path: Path) -> None:
    import lightgbm
    from sklearn.datasets import load_svmlight_file

    out = export(models["bm25+pls"], "letor", tmp_path / "out", graph)
    x, y, qid = load_svmlight_file(str(out / "features.letor"), query_id=True)
    assert x.shape[1] == 2
    assert [f["name"] for f in json.loads((out / "features.json").read_text())] == ["bm25", "pls"]
    group = np.unique(qid, return_counts=True)[1]
    ranker = lightgbm.LGBMRanker(n_estimators=5, min_child_samples=1, verbose=-1).fit(
        np.asarray(x.todense()), y.round().astype(int), group=group
    )
    assert ranker.booster_.num_trees() == 5


def test_ltr_is_the_sum(models: Any, graph: Any) -> None:
    """Features times the linear model's weights, less the constant, is our score."""
    from clickbridge.export.elasticsearch import Index
    from clickbridge.export.elasticsearch_ltr import feature_set, parameters

    model = models["bm25+pls"]
    source = Source(model.fitted, "elasticsearch-ltr", graph)
    names = [f["name"] for f in feature_set(source)["featureset"]["features"]]
    assert names == ["bm25", "pls"]
    for feature in feature_set(source)["featureset"]["features"]:
        filled = feature["template"]
        for name in feature["params"]:
            filled = filled.replace(f"{{{{#toJson}}}}{name}{{{{/toJson}}}}", "[]").replace(f"{{{{{name}}}}}", "1")
        json.loads(filled)
    params, constant = parameters(source, "ny pizza")
    index, counts = Index(source.maps), weights(source)
    for hit in model.rank("ny pizza", 5):
        number = source.maps.doc_ids.index(hit.doc_id)
        tokens = index.features["bm25"].document(number)
        lexical = sum(weight * float(tokens.get(token, 0)) for token, weight in params["bm25"].items())
        latent = params["pls_shift"] + float(source.maps.blocks[1].vector(number) @ params["pls"])
        score = counts["bm25"] * lexical + counts["pls"] * latent - constant
        assert score == pytest.approx(hit.score, rel=5e-3)


def test_synonyms(models: Any, graph: Any, tmp_path: Path) -> None:
    out = export(models["bm25"], "synonyms", tmp_path / "out", graph)
    lines = (out / "synonyms.txt").read_text().splitlines()
    assert {"ny => ny, new york", "sushii => sushi"} <= {*lines}
    rows = {row["typed"]: row for row in csv.DictReader((out / "synonyms.csv").read_text().splitlines())}
    assert rows["ny"]["kind"] == "abbreviation"
    assert int(rows["ny"]["users"]) > 10
    assert "ny" in rows["ny"]["examples"]


def test_vespa_schema(models: Any, tmp_path: Path) -> None:
    out = export(models["bm25+pls"], "vespa", tmp_path / "out")
    schema = (out / "application" / "schemas" / "doc.sd").read_text()
    assert schema.count("{") == schema.count("}")
    assert "sum(query(bm25) * attribute(bm25)) + sum(query(pls) * attribute(pls))" in schema
    fed = [json.loads(line) for path in sorted(out.glob("feed-*.jsonl")) for line in path.read_text().splitlines()]
    assert len(fed) == 42
    assert len(fed[0]["fields"]["pls"]["values"]) == models["bm25+pls"].fitted.parts[1].images.shape[1]
