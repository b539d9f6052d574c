"""The bilingual topic model as a model: its formula, its mixture, and that it learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clickbridge import LMIR, ClickGraph, build_model
from clickbridge.errors import SettingError
from clickbridge.types import Document, Impression, ResultList
from clickbridge.views.text import Analyzer
from oracles.latent import random_clicks

SMALL: dict[str, Any] = {"dim": 5, "fields": "title:2,body", "iterations": 8}


def probability(model: Any, word: str, doc: int) -> tuple[float, float]:
    """p(word | document) of the unigram model and of the topics, from counts and parameters."""
    lmir = model.unigram_
    column = lmir.vocabulary.get(word)
    unigram = 0.0
    if column is not None:
        image = lmir.images[[doc]].toarray()[0]
        unigram = lmir.statistics.shares[column] * np.exp(image[column]) * np.exp(image[-1])
    number = model.vocabulary_.get(word)
    topics = 0.0 if number is None else float(model.phi_query_[number] @ model.theta_[doc])
    return unigram, topics


@pytest.mark.parametrize("weight", ["0.3", "1"])
def test_scores_are_the_formula(weight: str) -> None:
    model: Any = build_model("bltm", SMALL | {"topic_weight": weight}).fit(random_clicks(3))
    terms = Analyzer("english", "keep").terms
    for query in ("river stone river", "apple q3", terms("salt")[0]):
        scores = model.score(query, model.doc_ids_)
        for doc, found in enumerate(scores):
            if np.isfinite(found):
                total = 0.0
                for word in terms(query):
                    unigram, topics = probability(model, word, doc)
                    total += np.log(max((1 - float(weight)) * unigram + float(weight) * topics, 1e-12))
                assert found == pytest.approx(total, rel=1e-5)


def test_without_topics_it_ranks_as_lmir_does() -> None:
    graph = random_clicks(3)
    model: Any = build_model("bltm", SMALL | {"topic_weight": "0"}).fit(graph)
    lmir = LMIR(fields="title:2,body").fit(graph)
    for query in ("river stone", "apple lamp wind"):
        assert model.rerank(query, graph.doc_ids).doc_ids[:10] == lmir.rerank(query, graph.doc_ids).doc_ids[:10]


def test_one_list_is_one_of_many_and_search_is_a_list_of_all() -> None:
    model: Any = build_model("bltm", SMALL | {"topic_weight": "0.3"}).fit(random_clicks(3))
    ids, queries = model.doc_ids_, ["river stone", "", "apple lamp apple", "zzzqqq"]
    lists = [ResultList(str(n), query, [*ids, "nowhere"]) for n, query in enumerate(queries)]
    for query, scores in zip(queries, model.score_lists(lists), strict=True):
        assert scores.tolist() == model.score(query, [*ids, "nowhere"]).tolist()
        scored = [doc_id for doc_id, score in model.rerank(query, ids) if score > -np.inf]
        assert model.rank(query, 7).doc_ids == scored[:7]
    assert model.score_lists([]) == []


def test_probabilities_sum_to_one() -> None:
    model: Any = build_model("bltm", SMALL).fit(random_clicks(3))
    np.testing.assert_allclose(model.phi_query_.sum(axis=0), 1)
    np.testing.assert_allclose(model.phi_title_.sum(axis=0), 1)
    np.testing.assert_allclose(model.theta_.sum(axis=1), 1)
    assert model.mixture_.sum() == pytest.approx(1)
    assert np.diff(model.bounds_).min() > -1e-6 * abs(model.bounds_[-1])


def test_it_learns_what_words_do_not_say() -> None:
    """Queries and titles share no word: query word aK means title word bK."""
    rng = np.random.default_rng(0)
    topics = 8
    docs = [Document(f"d{i}", {"title": f"b{i % topics} c{rng.integers(30)}"}) for i in range(64)]
    pages = []
    for i in range(240):
        good = int(rng.choice(np.arange(i % topics, 64, topics)))
        others = [int(d) for d in rng.permutation(64) if d % topics != i % topics][:7]
        shown = [f"d{d}" for d in rng.permutation([good, *others])]
        pages.append(Impression(f"a{i % topics} x{i}", shown, [f"d{good}"]))
    model: Any = build_model("bltm", {"dim": 24, "topic_weight": "auto"}).fit(ClickGraph.build(pages, docs))
    assert model.topic_weight_ > 0
    right = [int(model.rank(f"a{t}", 1).doc_ids[0][1:]) % topics == t for t in range(topics)]
    assert np.mean(right) > 0.8


def test_limits(small_graph: ClickGraph) -> None:
    for wrong in ("2", "much"):
        with pytest.raises(SettingError, match="topic_weight is auto or a number, 0 to 1"):
            build_model("bltm", {"topic_weight": wrong}).fit(small_graph)
