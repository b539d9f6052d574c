"""scikit-learn's search over settings, and collections of ir_datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ir_datasets
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from clickbridge import BM25, ClickGraph
from clickbridge.errors import InputError, SettingError
from clickbridge.evaluate.ir_datasets import clicks_of, documents_of, judgments_of, queries_of
from clickbridge.evaluate.sklearn import PageRanker, PageSplit
from clickbridge.types import Document, Impression

WORDS = ["apple", "bread", "cheese", "dill", "egg", "fig", "garlic", "honey"]
DOCS = [Document(word, {"title": word, "body": f"{word} and {WORDS[i - 1]}"}) for i, word in enumerate(WORDS)]
PAGES = [
    Impression(WORDS[i % 8], [WORDS[(i + 1) % 8], WORDS[i % 8], WORDS[(i + 5) % 8]], [WORDS[i % 8]], time=float(i))
    for i in range(80)
]


def test_grid_search_with_our_splitter() -> None:
    grid = {"model__b": [0.1, 0.9], "model__k1": [0.5, 2.0]}
    search = GridSearchCV(PageRanker(BM25(fields="title,body"), DOCS), grid, cv=PageSplit(2)).fit(PAGES)
    assert set(search.best_params_) == {*grid}
    assert search.best_score_ == pytest.approx(1.0)
    assert search.best_estimator_.predict(PAGES[:1])[0][0] == "apple"


def test_no_query_is_in_two_folds() -> None:
    seen: list[int] = []
    for train, test in PageSplit(3).split(PAGES):
        assert not {PAGES[i].query for i in train} & {PAGES[i].query for i in test}
        seen += test.tolist()
    assert sorted(seen) == [*range(80)]


def test_by_time_only_the_past_is_learned_from() -> None:
    splits = list(PageSplit(3, by="time").split(PAGES))
    assert len(splits) == 3
    for train, test in splits:
        assert max(PAGES[i].time or 0 for i in train) < min(PAGES[i].time or 0 for i in test)
    assert np.unique(np.concatenate([test for _, test in splits])).size == 60


def test_what_is_refused() -> None:
    with pytest.raises(SettingError, match="at least 2 parts"):
        PageSplit(1)
    with pytest.raises(InputError, match="no page has"):
        PageRanker(BM25(), DOCS).fit(PAGES).score([Impression("apple", None, ["apple"])])
    with pytest.raises(InputError, match="split by query"):
        list(PageSplit(2, by="time").split([Impression("apple", None, ["apple"])]))


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    (tmp_path / "docs.tsv").write_text("d1\tpizza in new york\nd2\tbagels\n")
    (tmp_path / "queries.tsv").write_text("q1\tny pizza\nq2\tbagel\n")
    (tmp_path / "qrels").write_text("q1 0 d1 2\nq1 0 d2 0\nq2 0 d2 -1\n")
    files = {"docs_tsv": "docs.tsv", "queries_tsv": "queries.tsv", "qrels_trec": "qrels"}
    return ir_datasets.create_dataset(**{name: str(tmp_path / file) for name, file in files.items()})


@pytest.mark.filterwarnings("ignore")
def test_a_collection_of_ir_datasets(dataset: Any) -> None:
    texts = {document.doc_id: document.fields["text"] for document in documents_of(dataset)}
    assert texts == {"d1": "pizza in new york", "d2": "bagels"}
    assert queries_of(dataset) == {"q1": "ny pizza", "q2": "bagel"}
    assert judgments_of(dataset) == {"q1": {"d1": 2.0, "d2": 0.0}, "q2": {"d2": 0.0}}
    graph = ClickGraph.build(clicks_of(dataset), documents_of(dataset))
    assert BM25().fit(graph).rank("pizza", 1).doc_ids == ["d1"]
    import ir_measures

    run = {"q1": {"d1": 1.0}, "q2": {"d2": 1.0}}
    grades = {query: {doc: int(g) for doc, g in own.items()} for query, own in judgments_of(dataset).items()}
    assert ir_measures.calc_aggregate([ir_measures.AP], grades, run)[ir_measures.AP] > 0
