"""Fitted kernel models as values: nothing is kept of a query, nothing is stored twice, what has no score is refused."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clickbridge import ClickGraph, build_model, load
from clickbridge.engines.base import default_engine
from clickbridge.errors import InputError, NotSupported
from clickbridge.models.candidates import Query
from clickbridge.models.change import Change
from clickbridge.models.study import Study
from clickbridge.skernel.base_scores import above_zero, references
from clickbridge.skernel.kernel_model import FittedKernel
from clickbridge.types import Document, Impression

Array = np.ndarray[Any, Any]
SPECS = ["pairwise", "robust:bm25", "robust:pls", "robust:bm25+lmir"]
QUERIES = ["red shoe", "a red shoe", "blue boots", "boot", "zzzqqq", "green hat 3", "hat"]
COLOURS, THINGS = ["red", "blue", "green"], ["shoe", "boot", "hat", "coat"]
every_spec = pytest.mark.parametrize("spec", SPECS)


@pytest.fixture(scope="module")
def graph() -> ClickGraph:
    names = [(colour, thing) for colour in COLOURS for thing in THINGS]
    docs = [Document(f"{c}-{t}", {"title": f"{c} {t}", "body": f"{t} to wear in {c}"}) for c, t in names]
    docs.append(Document("blank", {}))
    ids = [d.doc_id for d in docs]
    rng, pages = np.random.default_rng(0), []
    for n in range(120):
        colour, thing = names[n % len(names)]
        shown = [ids[i] for i in rng.permutation(len(ids))[:8]]
        clicked = [d for d in shown if d.endswith(thing)][:2]
        pages.append(Impression(f"{colour} {thing} {n % 5}", shown, clicked))
    return ClickGraph.build(pages, docs)


@pytest.fixture(scope="module")
def fitted(graph: ClickGraph) -> dict[str, FittedKernel]:
    made = {spec: build_model(spec).fit(graph).fitted for spec in SPECS}
    return {spec: model for spec, model in made.items() if isinstance(model, FittedKernel)}


@every_spec
def test_nothing_is_kept_of_the_queries(spec: str, fitted: dict[str, FittedKernel]) -> None:
    model = fitted[spec]
    model.rank("a first query")
    before, size = set(vars(model)), len(pickle.dumps(model))
    for n in range(300):
        model.score(f"red thing {n}", model.doc_ids)
        model.rank(f"{COLOURS[n % 3]} hat {n}", 3)
    assert set(vars(model)) == before
    assert len(pickle.dumps(model)) == size


@every_spec
def test_copies_and_threads_answer_alike(spec: str, fitted: dict[str, FittedKernel], tmp_path: Path) -> None:
    model = fitted[spec]
    scores = [model.score(query, model.doc_ids) for query in QUERIES]
    build_model(spec).from_fitted(model).save(tmp_path / "model")
    pickled = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own bytes
    others = [pickled, copy.deepcopy(model), load(tmp_path / "model").fitted]
    for other in others:
        for query, wanted in zip(QUERIES, scores, strict=True):
            np.testing.assert_array_equal(other.score(query, model.doc_ids), wanted)
        assert other.choices == model.choices
        assert other.describe() == model.describe()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda query: model.score(query, model.doc_ids), QUERIES * 20))
    for place, got in enumerate(found):
        np.testing.assert_array_equal(got, scores[place % len(QUERIES)])


@every_spec
def test_a_score_does_not_depend_on_the_list(spec: str, fitted: dict[str, FittedKernel]) -> None:
    model = fitted[spec]
    for query in QUERIES:
        whole = model.score(query, model.doc_ids)
        alone = [model.score(query, [doc_id])[0] for doc_id in model.doc_ids]
        np.testing.assert_array_equal(whole, alone)
        ranked = {hit.doc_id: hit.score for hit in model.rank(query, 100)}
        assert all(whole[model.doc_ids.index(d)] == score for d, score in ranked.items())


@every_spec
def test_refitting_takes_over_what_was_chosen(spec: str, fitted: dict[str, FittedKernel], graph: ClickGraph) -> None:
    model = fitted[spec]
    study = Study(graph)
    again = build_model(spec).in_language_of(study).learn(study, model.choices)
    assert again.choices is model.choices
    for query in QUERIES:
        np.testing.assert_array_equal(again.score(query, model.doc_ids), model.score(query, model.doc_ids))


@every_spec
def test_documents_without_a_score_are_not_explained(spec: str, fitted: dict[str, FittedKernel]) -> None:
    """It used to say NaN."""
    model = fitted[spec]
    assert model.score("red shoe", ["blank"])[0] == -np.inf
    with pytest.raises(InputError, match=f"{spec.replace('+', '.')} has no score for 'blank': there is nothing to"):
        model.explain("red shoe", "blank")
    explained = model.explain("red shoe", "red-shoe", 1000)
    assert explained.score == pytest.approx(model.score("red shoe", ["red-shoe"])[0])
    assert np.isfinite([pair.share for pair in explained.pairs]).all()


def test_where_no_known_query_is_like_it(fitted: dict[str, FittedKernel]) -> None:
    with pytest.raises(InputError, match="pairwise: 'zzzqqq' resembles no known query; there is nothing to explain"):
        fitted["pairwise"].explain("zzzqqq", "red-shoe")
    base: Any = fitted["robust:bm25"]
    assert base.falls_back("wear")
    assert base.explain("wear", "red-shoe") == base.base.explain("wear", "red-shoe")
    assert base.rank("wear") == base.base.rank("wear")


def test_neighbours_that_prefer_nothing() -> None:
    """Queries that resemble the asked one, none of which has a preference: 0, and an explanation of nothing."""
    docs = [Document(d, {"title": d}) for d in ("hat", "coat", "shoe")]
    pages = [Impression("new hat", ["hat"], ["hat"]), Impression("old shoe", ["coat", "shoe"], ["shoe"])]
    model = build_model("pairwise").fit(ClickGraph.build(pages, docs)).fitted
    assert model.falls_back("hat")
    assert model.score("hat", ["hat", "coat"]).tolist() == [0, 0]
    explained = model.explain("hat", "coat")
    assert (explained.score, explained.pairs, explained.rest) == (0.0, (), 0.0)


def test_images_of_the_base_are_not_kept_twice(graph: ClickGraph, tmp_path: Path) -> None:
    model = build_model("robust:bm25+lmir", doc_kernel="base").fit(graph)
    model.save(tmp_path / "model")
    for found in (model.fitted, load(tmp_path / "model").fitted):
        assert found.doc_rows is None
        assert [id(block) for block in found.documents.blocks] == [id(part.images) for part in found.base.parts]
    titles = build_model("robust:bm25", doc_kernel="titles").fit(graph).fitted
    assert titles.doc_rows is not None
    assert titles.documents.blocks == (titles.doc_rows,)


@every_spec
def test_similar_documents_are_those_of_largest_k_d(spec: str, fitted: dict[str, FittedKernel]) -> None:
    model = fitted[spec]
    number, every = model.doc_ids.index("red-shoe"), np.arange(len(model.doc_ids))
    values = model.documents.block(np.array([number]), every)[0]
    found = model.similar_documents("red-shoe", 4)
    values[number] = -np.inf
    np.testing.assert_allclose([hit.score for hit in found], np.sort(values)[::-1][:4], atol=1e-6)
    np.testing.assert_allclose(values[model.catalogue.items(found.doc_ids)], [hit.score for hit in found], atol=1e-6)
    assert not model.similar_documents("blank")
    with pytest.raises(InputError, match="no document 'zzz' in the model"):
        model.similar_documents("zzz")


@every_spec
def test_an_update_learns_again_from_both_logs(spec: str, graph: ClickGraph) -> None:
    model = build_model(spec).fit(graph)
    before, new = model.fitted, Impression("red shoe", ["red-shoe", "blue-hat"], ["blue-hat"])
    assert "update" not in before.abilities
    with pytest.raises(NotSupported, match="cannot be updated: fit it again"):
        before.updated(Change.of(before.catalogue, before.queries, [new]), default_engine())
    model.update([new])
    assert model.fitted.choices is before.choices
    assert model.fitted.queries.clicks.sum() == before.queries.clicks.sum() + 1


@every_spec
def test_unknown_documents_have_no_score(spec: str, fitted: dict[str, FittedKernel]) -> None:
    scores = fitted[spec].score_items(Query("red shoe 0"), np.array([-1, 1, -1]))
    assert np.isfinite(scores).tolist() == [False, True, False]


@pytest.mark.parametrize("spec", SPECS[1:])
def test_points_are_scored_as_lists_are(spec: str, fitted: dict[str, FittedKernel]) -> None:
    """Many at once or one by one; a sum with lmir can be negative and is shifted."""
    model: Any = fitted[spec]
    training, scores = model.training, model.base_scores
    assert scores.negative == ("lmir" in spec)
    spread = references(len(model.catalogue)) if scores.negative else None
    for query in np.unique(training.point_query).tolist():
        mine = np.flatnonzero(training.point_query == query)
        one = above_zero(model.base, Query(model.queries.keys[query]), training.point_doc[mine], spread)
        np.testing.assert_allclose(scores.points[mine], one, atol=1e-6)
    assert scores.mean == pytest.approx(scores.points.mean())
