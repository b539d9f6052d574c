"""Updates against a decomposition from scratch over the same frozen features."""

from __future__ import annotations

import numpy as np
import pytest

from clickbridge import MPLS, PLS, ClickGraph, build_model, load
from clickbridge.errors import NotSupported
from clickbridge.models.update import _decompose
from clickbridge.types import Document, Impression, PairCount

RNG = np.random.default_rng(5)
WORDS = [f"word{i}" for i in range(40)]
DOCS = [Document(f"d{i}", {"title": " ".join(RNG.choice(WORDS, 4))}) for i in range(30)]


def pages(start: int, stop: int) -> list[Impression]:
    rng = np.random.default_rng(9)
    out = []
    for i in range(stop):
        words = rng.choice(WORDS[:36], 2)
        clicks = [f"d{n}" for n in rng.choice(30, 2, replace=False)]
        if i >= start:
            out.append(Impression(" ".join(words), None, clicks, user=f"u{i}"))
    return out


@pytest.fixture
def graph() -> ClickGraph:
    return ClickGraph.build(pages(0, 120), DOCS)


def from_scratch(model: PLS) -> np.ndarray:
    """Images of a cold start over the model's own features."""
    cold = [model._space(s.q_columns, s.d_columns, s.dim) for s in model.spaces_]
    weights = getattr(model, "weights_", np.ones(len(cold)))
    model.spaces_ = [model._scaled(s, float(w)) for s, w in zip(cold, weights, strict=True)]
    model._finish()
    return model.images_


@pytest.mark.parametrize("kind", [PLS, MPLS])
@pytest.mark.parametrize("response", ["clicks", "log"])
def test_an_update_agrees_with_a_cold_start_on_frozen_features(
    kind: type[PLS], response: str, graph: ClickGraph
) -> None:
    model = kind(dim=8, views="word,click", response=response, precision="float64").fit(graph)
    model.update(pages(120, 150))
    queries = model.query_keys_[:25]
    warm = np.stack([model.score(q, model.doc_ids_) for q in queries])
    from_scratch(model)
    cold = np.stack([model.score(q, model.doc_ids_) for q in queries])
    np.testing.assert_allclose(warm, cold, atol=2e-3)


def test_responses_are_those_of_the_joint_log(graph: ClickGraph) -> None:
    model = PLS(dim=8, views="word").fit(graph).update(pages(120, 150))
    both = PLS(dim=8, views="word").fit(ClickGraph.build(pages(0, 150), DOCS))
    assert sorted(model.query_keys_) == sorted(both.query_keys_)
    for key in both.query_keys_:
        one = model.responses_[[model._query_numbers[key]]].toarray()
        two = both.responses_[[both._query_numbers[key]]].toarray()
        np.testing.assert_allclose(one, two)


def test_nothing_new_changes_nothing(graph: ClickGraph) -> None:
    model = PLS(dim=8, views="word,click", precision="float64").fit(graph)
    before = np.stack([model.score(q, model.doc_ids_) for q in model.query_keys_[:20]])
    model.update()
    after = np.stack([model.score(q, model.doc_ids_) for q in model.query_keys_[:20]])
    np.testing.assert_allclose(before, after, atol=1e-4)


@pytest.mark.parametrize("spec", ["bm25", "pls", "bm25+pls"])
def test_documents_come_change_and_go(spec: str, graph: ClickGraph, tmp_path) -> None:  # type: ignore[no-untyped-def]
    model = build_model(spec, {"weights": "1,1"} if "+" in spec else {}).fit(graph)
    model.update([], [Document("new", {"title": "word1 word2"}), Document("d3", {"title": "word7 word7"})], ["d5"])
    assert "new" in model.doc_ids_
    assert "d5" not in model.doc_ids_
    assert "d5" not in model.rank("word1 word2", 50).doc_ids
    if spec == "bm25":
        assert model.rank("word1 word2", 3).doc_ids[0] == "new"
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.score("word1", model.doc_ids_), model.score("word1", model.doc_ids_))


def test_a_clicked_document_without_text_is_known_by_its_clicks(graph: ClickGraph) -> None:
    model = PLS(dim=8, views="word,click").fit(graph)
    key = model.query_keys_[0]
    model.update([PairCount(key, "unheard-of", 50)])
    assert "unheard-of" in model.rank(key, 5).doc_ids


@pytest.mark.parametrize("setting", [{"half_life": 7.0}, {"min_clicks": 2}])
def test_what_is_not_additive_is_refused(setting: dict[str, float], graph: ClickGraph) -> None:
    timed = ClickGraph.build([*pages(0, 60), Impression("word1", None, ["d1"], time=1.0)] * 2, DOCS)
    model = PLS(dim=4, views="word", **setting).fit(timed)
    with pytest.raises(NotSupported, match="fit it again"):
        model.update(pages(60, 70))


def test_decomposing_again_is_stable(graph: ClickGraph) -> None:
    model = PLS(dim=8, views="word,click", precision="float64").fit(graph)
    first = model.images_.copy()
    _decompose(model)
    np.testing.assert_allclose(np.abs(model.images_), np.abs(first), atol=1e-3)
