"""The lexical models on a real collection, beside independent libraries."""

from __future__ import annotations

from typing import Any

import bm25s
import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer  # type: ignore[import-untyped]

from clickbridge import BM25, LMIR, VSM
from clickbridge.measures import evaluate_run, parse_measures
from clickbridge.views.text import Analyzer

pytestmark = pytest.mark.data
Array = np.ndarray[Any, Any]


def same_order(ours: Array, theirs: Array, slack: float) -> None:
    """No pair of documents stands in a clearly different order; `slack` is what float32 cannot tell apart."""
    by_ours = theirs[np.argsort(-ours, kind="stable")]
    # Along our order, their score never rises above the least seen so far by more than the slack.
    rise = by_ours - np.minimum.accumulate(by_ours)
    assert rise.max() <= slack * max(1.0, np.abs(theirs).max())


@pytest.mark.parametrize("method", ["lucene", "atire", "robertson"])
@pytest.mark.parametrize(("k1", "b", "stop_words"), [(1.2, 0.75, "keep"), (0.9, 0.4, "drop")])
def test_bm25_ranks_like_bm25s(cranfield: Any, method: str, stop_words: str, k1: float, b: float) -> None:
    texts = cranfield.texts
    analyzer = Analyzer("english", stop_words)
    other = bm25s.BM25(k1=k1, b=b, method=method)
    other.index([analyzer.terms(text) for text in texts.values()], show_progress=False)
    # k3 = 0: a word counts once however often the query repeats it.
    model = BM25(k1=k1, b=b, k3=0, idf=method, fields="body", stop_words=stop_words).fit(cranfield.graph)
    for query in cranfield.queries.values():
        theirs = np.asarray(other.get_scores(list(dict.fromkeys(analyzer.terms(query)))), dtype=np.float64)
        ours = model.score(query, list(texts))
        same_order(ours, theirs, slack=2e-6)
        same_order(theirs, ours, slack=2e-6)
        best = [list(texts)[i] for i in np.argsort(-ours, kind="stable")[:10]]
        assert model.rank(query, 10).doc_ids == best


@pytest.fixture(scope="module")
def counted(cranfield: Any) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Counts of documents and queries by scikit-learn, our tokens."""
    vectorizer = CountVectorizer(analyzer=Analyzer("english").terms)
    docs = vectorizer.fit_transform(cranfield.texts.values())
    return sparse.csr_array(docs, dtype=float), sparse.csr_array(
        vectorizer.transform(cranfield.queries.values()), dtype=float
    )


def test_vsm_equals_scikit_learn_s_counts(cranfield: Any, counted: tuple[sparse.csr_array, sparse.csr_array]) -> None:
    docs, queries = counted
    idf = np.log(1 + docs.shape[0] / np.bincount(docs.indices, minlength=docs.shape[1]))
    expected = (queries.toarray() * idf) @ (docs.toarray() * idf).T
    model = VSM(fields="body").fit(cranfield.graph)
    for row, query in enumerate(cranfield.queries.values()):
        np.testing.assert_allclose(model.score(query, list(cranfield.texts)), expected[row], rtol=1e-5)


@pytest.mark.parametrize(
    ("smoothing", "setting", "value"), [("dirichlet", "mu", 300.0), ("jelinek-mercer", "lam", 0.3)]
)
def test_lmir_equals_log_probabilities(
    cranfield: Any, counted: tuple[sparse.csr_array, sparse.csr_array], smoothing: str, setting: str, value: float
) -> None:
    docs, queries = counted[0].toarray(), counted[1].toarray()
    length, collection = docs.sum(axis=1, keepdims=True), docs.sum(axis=0) / docs.sum()
    if smoothing == "dirichlet":
        probabilities = (docs + value * collection) / (length + value)
    else:
        probabilities = (1 - value) * docs / length + value * collection
    expected = queries @ np.log(probabilities).T - (queries @ np.log(collection))[:, None]
    model = LMIR(smoothing=smoothing, fields="body", **{setting: value}).fit(cranfield.graph)
    for row, query in enumerate(cranfield.queries.values()):
        scores = model.score(query, list(cranfield.texts))
        np.testing.assert_allclose(scores, expected[row], rtol=1e-4, atol=1e-4)
        assert np.argmax(scores) == np.argmax(expected[row])


@pytest.mark.parametrize(
    ("model", "least"), [(BM25(fields="body"), 0.35), (LMIR(fields="body"), 0.30), (VSM(fields="body"), 0.20)]
)
def test_quality_is_sane(cranfield: Any, model: Any, least: float) -> None:
    model.fit(cranfield.graph)
    rankings = model.rank_many(list(cranfield.queries.values()), 10)
    run = {query_id: ranking.doc_ids for query_id, ranking in zip(cranfield.queries, rankings, strict=True)}
    values = evaluate_run(run, cranfield.grades, parse_measures("nDCG@10"))["nDCG@10"]
    assert len(values) > 180
    assert np.mean(list(values.values())) > least
