"""The written files have the statistics of the papers, measured here from the files alone."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import Stemmer
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # type: ignore[import-untyped]

from clickbridge.errors import SettingError
from clickbridge.simulate.scale import SCALES, write_log
from clickbridge.simulate.words import pseudo_words

TOLERANCE = 0.10


def read_lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path) as file:
        return [orjson.loads(line) for line in file]


@dataclass
class Measured:
    X: sp.csr_array  # queries by words, then clicked documents
    Y: sp.csr_array  # documents by words, then clicking queries
    R: sp.csr_array  # queries by documents
    n_words: int
    shared: float  # part of the links whose query and document have a word in common


def pattern(cells: set[tuple[int, int]], shape: tuple[int, int]) -> sp.csr_array:
    rows, columns = np.array(sorted(cells)).T
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def measure(folder: Path) -> Measured:
    stem = Stemmer.Stemmer("english").stemWord
    vocabulary: dict[str, int] = {}

    def features(text: str) -> set[int]:
        stems = (stem(w) for w in re.findall(r"[a-z0-9]+", text.lower()) if w not in ENGLISH_STOP_WORDS)
        return {vocabulary.setdefault(s, len(vocabulary)) for s in stems}

    triples = pq.read_table(folder / "log.parquet").to_pydict()
    docs = read_lines(folder / "docs.jsonl.gz")
    doc_rows = {doc["doc_id"]: i for i, doc in enumerate(docs)}
    assert len(doc_rows) == len(docs)
    texts = [" ".join(q.lower().split()) for q in triples["query"]]
    query_rows = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    links = [(query_rows[t], doc_rows[d]) for t, d in zip(texts, triples["doc_id"], strict=True)]
    assert len(set(links)) == len(links)

    query_words = {(i, f) for text, i in query_rows.items() for f in features(text)}
    doc_words = {(i, f) for i, doc in enumerate(docs) for f in features(doc["title"] + " " + doc["url"])}
    words_x = pattern(query_words, (len(query_rows), len(vocabulary)))
    words_y = pattern(doc_words, (len(docs), len(vocabulary)))
    R = pattern(set(links), (len(query_rows), len(docs)))
    q, d = np.array(links).T
    shared = float(((words_x[q] * words_y[d]).sum(axis=1) > 0).mean())
    X, Y = sp.hstack([words_x, R]), sp.hstack([words_y, R.T])
    return Measured(sp.csr_array(X), sp.csr_array(Y), R, len(vocabulary), shared)


@pytest.mark.parametrize(("scale", "fraction"), [("one-week", 0.1), ("enterprise", 0.1), ("half-year", 0.002)])
def test_statistics_of_the_papers(scale: str, fraction: float, tmp_path: Path) -> None:
    counts = write_log(scale, tmp_path, fraction=fraction)
    target = SCALES[scale]
    m = measure(tmp_path)
    n_queries, n_docs = m.R.shape
    assert counts["queries"] == n_queries == round(target.n_queries * fraction)
    assert counts["docs"] == n_docs == round(target.n_docs * fraction)
    assert counts["pairs"] == counts["lines"] == m.R.nnz
    assert m.R.sum(axis=1).min() >= 1
    assert m.R.sum(axis=0).min() >= 1
    n_y, n_x = target.clicked_docs_per_query, target.clicking_queries_per_doc
    measured = {
        "words": m.n_words,
        "n~y": m.R.nnz / n_queries,
        "n~x": m.R.nnz / n_docs,
        "c_x": m.X.nnz / n_queries,
        "c_y": m.Y.nnz / n_docs,
    }
    expected = {
        "words": target.n_words * fraction,
        "n~y": n_y,
        "n~x": n_x,
        "c_x": target.words_per_query + n_y,
        "c_y": target.words_per_doc + n_x,
    }
    if target.w_x and target.w_y:
        W = m.X.T.tocsr() @ (m.R @ m.Y)
        measured |= {"W_x": W.nnz / m.X.shape[1], "W_y": W.nnz / m.Y.shape[1]}
        expected |= {"W_x": target.w_x, "W_y": target.w_y}
    assert measured == pytest.approx(expected, rel=TOLERANCE)
    assert 0.2 < m.shared < 0.8  # term mismatch, yet words carry signal


@pytest.mark.parametrize(
    ("scale", "published"),
    [
        ("one-week", {"d_x": 2.1e5, "d_y": 2.0e5, "c_x": 4.0, "c_y": 5.9, "N_x": 1.7, "N_y": 3.4}),
        ("half-year", {"d_x": 4.9e6, "d_y": 6.6e6, "c_x": 5.5, "c_y": 8.6, "N_x": 7.2, "N_y": 5.9}),
    ],
)
def test_targets_agree_with_table_1(scale: str, published: dict[str, float]) -> None:
    s = SCALES[scale]
    c_x = s.words_per_query + s.clicked_docs_per_query
    c_y = s.words_per_doc + s.clicking_queries_per_doc
    d_x, d_y = s.n_words + s.n_docs, s.n_words + s.n_queries
    N_x, N_y = s.n_queries * c_x / d_x, s.n_docs * c_y / d_y
    derived = {"d_x": d_x, "d_y": d_y, "c_x": c_x, "c_y": c_y, "N_x": N_x, "N_y": N_y}
    assert derived == pytest.approx(published, rel=0.05)


def test_click_counts_have_a_heavy_tail_from_four(tmp_path: Path) -> None:
    counts = write_log("one-week", tmp_path, fraction=0.05)
    table = pq.read_table(tmp_path / "log.parquet")
    assert [str(t) for t in table.schema.types] == ["string", "string", "int32"]
    clicks = table["clicks"].to_numpy()
    assert clicks.min() == 4
    assert clicks.sum() == counts["clicks"]
    assert clicks.max() > 50 * np.median(clicks)


@pytest.mark.parametrize(("impressions", "log"), [(None, "log.parquet"), (500, "log.jsonl.gz")])
def test_same_seed_same_bytes(impressions: int | None, log: str, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_log("one-week", tmp_path / name, fraction=0.01, impressions=impressions, seed=seed)
    for file in ("docs.jsonl.gz", log):
        a, b, c = ((tmp_path / name / file).read_bytes() for name in "abc")
        assert a == b
        assert a != c


def test_impressions(tmp_path: Path) -> None:
    n = 120_000  # more than one chunk
    heard: list[str] = []
    counts = write_log("half-year", tmp_path, fraction=0.002, impressions=n, progress=heard.append)
    write_log("half-year", tmp_path, fraction=0.002)
    triples = pq.read_table(tmp_path / "log.parquet")
    graph = set(zip(triples["query"].to_pylist(), triples["doc_id"].to_pylist(), strict=True))
    doc_ids = {doc["doc_id"] for doc in read_lines(tmp_path / "docs.jsonl.gz")}
    lines = read_lines(tmp_path / "log.jsonl.gz")
    assert len(lines) == counts["lines"] == n
    assert heard[-1] == "simulating searches, 120,000 of 120,000"
    assert all(list(line) == ["query", "user", "session", "time", "results", "clicks"] for line in lines)
    assert all(len(line["results"]) == 10 == len(set(line["results"])) for line in lines)
    assert all(doc_ids.issuperset(line["results"]) for line in lines)
    assert all(set(line["clicks"]) <= set(line["results"]) for line in lines)

    pairs = [(line["query"], doc) for line in lines for doc in line["clicks"]]
    assert len(pairs) == counts["clicks"] > 0.3 * n
    assert len(set(pairs)) == counts["pairs"]
    assert graph.issuperset(pairs)
    assert len({line["query"] for line in lines}) == counts["queries"]

    times = np.array([line["time"] for line in lines])
    assert (np.diff(times) >= 0).all()
    assert 180 * 86_400 < times[-1] - times[0] <= 182 * 86_400
    users = {line["session"]: line["user"] for line in lines}
    assert all(users[line["session"]] == line["user"] for line in lines)
    assert len(set(users.values())) <= n // 5
    assert 1.5 < n / len(users) < 2.5


def test_clicks_fall_with_rank(tmp_path: Path) -> None:
    write_log("one-week", tmp_path, fraction=0.02, impressions=20_000)
    clicks = np.zeros(10)
    for line in read_lines(tmp_path / "log.jsonl.gz"):
        clicks[[line["results"].index(doc) for doc in line["clicks"]]] += 1
    assert clicks[0] > clicks[1] > clicks[3] > clicks[9]


@pytest.mark.parametrize("fraction", [1e-9, 0.0005])
def test_tiny_fractions_still_work(fraction: float, tmp_path: Path) -> None:
    for scale in SCALES:
        counts = write_log(scale, tmp_path, fraction=fraction)
        assert counts["queries"] >= 100
        assert write_log(scale, tmp_path, fraction=fraction, impressions=1)["lines"] == 1


@pytest.mark.parametrize(
    ("scale", "options"),
    [("two-weeks", {}), ("one-week", {"fraction": 0.0}), ("one-week", {"impressions": 0})],
)
def test_refuses_settings_out_of_range(scale: str, options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(SettingError):
        write_log(scale, tmp_path, **options)


def test_words_survive_stemming_and_stop_words() -> None:
    words = pseudo_words(SCALES["half-year"].n_words).tolist()
    assert len(set(words)) == SCALES["half-year"].n_words
    assert Stemmer.Stemmer("english").stemWords(words) == words
    assert not ENGLISH_STOP_WORDS.intersection(words)
