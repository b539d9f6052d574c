"""The latent part of k_Q: cosines of images, positive semi-definite, of its own part of the log."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from clickbridge import ClickGraph, build_model, load
from clickbridge.errors import SettingError
from clickbridge.models.pls import PLS
from clickbridge.models.study import Study
from clickbridge.skernel.kernel_model import FittedKernel
from clickbridge.skernel.latent_kernel import DIM, LatentMap, learn_latent_map
from clickbridge.skernel.query_kernel import QueryFeatures, QueryKernel
from clickbridge.skernel.training_data import KERNEL_SHARE
from clickbridge.types import Document, Impression
from oracles.skernel import least_eigenvalue

Array = np.ndarray[Any, Any]
KEYS = ["sofa", "couch", "red sofa", "blue couch", "kettle", "tea pot", "zzz"]
DOCS = {"s": "sofa couch settee", "r": "red settee", "b": "blue settee", "k": "kettle for tea", "p": "tea pot"}
CLICKS = {"sofa": "s r", "couch": "s b", "red sofa": "r", "blue couch": "b", "kettle": "k p", "tea pot": "p k"}


LOG = [Impression(query, list(DOCS), clicked.split()) for query, clicked in CLICKS.items() for _ in range(4)]
EVERY = np.arange(len(KEYS))


@cache
def graph_of() -> ClickGraph:
    return ClickGraph.build(LOG, [Document(doc_id, {"title": title}) for doc_id, title in DOCS.items()])


@cache
def map_of(graph: ClickGraph, keys: tuple[str, ...]) -> LatentMap:
    return learn_latent_map(Study(graph), keys, "english", 0)


def kernel_of(weights: dict[str, float], kind: str = "pearson") -> QueryKernel:
    clicks = sparse.csr_array(np.random.default_rng(0).integers(0, 3, (len(KEYS), 6)))
    features = QueryFeatures.of(KEYS, clicks, latent=map_of(graph_of(), tuple(KEYS)))
    return QueryKernel(features, weights, kind)


def against(kernel: QueryKernel, query: str, rows: Array) -> Array:
    return kernel.values(kernel.asked(query, KEYS.index(query) if query in KEYS else -1), rows)


def neighbours(kernel: QueryKernel, query: str, k: int, among: Array | None = None) -> tuple[Array, Array]:
    return kernel.neighbours(kernel.asked(query, KEYS.index(query) if query in KEYS else -1), k, among)


@given(weights=st.fixed_dictionaries({n: st.floats(0.01, 5) for n in ("click", "word", "char", "latent")}))
@settings(deadline=None, max_examples=30)
def test_any_weighted_sum_is_semi_definite_and_unit(weights: dict[str, float]) -> None:
    kernel = kernel_of(weights)
    gram = kernel.gram(EVERY)
    assert least_eigenvalue(gram) > -1e-6
    np.testing.assert_allclose(np.diag(gram), 1, atol=1e-5)
    for i, key in enumerate(KEYS):
        np.testing.assert_allclose(against(kernel, key, EVERY), gram[i], atol=1e-6)


def test_the_values_are_cosines_of_the_images_of_pls() -> None:
    images = PLS(dim=DIM).fit(graph_of()).map_queries([*KEYS, "green sofa"])
    norms = np.linalg.norm(images, axis=1)
    cosines = images @ images.T / np.maximum(np.outer(norms, norms), 1e-9)
    kernel = kernel_of({"latent": 1.0})
    np.testing.assert_allclose(kernel.gram(EVERY[:-1]), cosines[:6, :6], atol=1e-5)
    np.testing.assert_allclose(against(kernel, "green sofa", EVERY[:-1]), cosines[-1, :6], atol=1e-5)
    # A query without an image is like nothing, itself included.
    assert not kernel.gram(EVERY)[-1].any()
    assert not len(neighbours(kernel, "qqq", 3)[0])


@pytest.mark.parametrize("query", [*KEYS, "green sofa", "couchs", "tea", "qqq"])
@pytest.mark.parametrize("weights", [{"latent": 1.0}, {"latent": 0.5, "word": 0.3, "click": 0.2}])
def test_neighbours_are_the_best_of_all(query: str, weights: dict[str, float]) -> None:
    kernel = kernel_of(weights)
    every = against(kernel, query, EVERY)
    found, values = neighbours(kernel, query, 3)
    np.testing.assert_allclose(values, np.sort(every[every > 1e-9])[::-1][:3], atol=1e-6)
    np.testing.assert_allclose(every[found], values, atol=1e-6)
    allowed = EVERY % 2 == 0
    assert allowed[neighbours(kernel, query, 3, allowed)[0]].all()


def test_an_unseen_query_finds_those_that_share_no_word_with_it() -> None:
    by_words, by_images = (neighbours(kernel_of({name: 1.0}), "the sofa", 3)[0] for name in ("word", "latent"))
    assert {KEYS[i] for i in by_words} == {"sofa", "red sofa"}
    assert {KEYS[i] for i in by_images} == {"sofa", "red sofa", "couch"}


def test_a_kernel_without_images_says_so() -> None:
    features = QueryFeatures.of(KEYS, sparse.csr_array((len(KEYS), 2)))
    with pytest.raises(SettingError, match="no images"):
        QueryKernel(features, {"latent": 1.0})


def test_the_map_never_sees_what_gives_the_preferences(tmp_path: Path) -> None:
    asked = {"query_kernel": "latent:0.5,word:0.5", "preference": "clicked"}
    graph = graph_of()
    model = build_model("robust:pls", asked).fit(graph)
    fitted = model.fitted
    assert isinstance(fitted, FittedKernel)
    assert any("50% of the log for the latent kernel" in note for note in model.notes_)
    halves = graph.hold_back(1 - KERNEL_SHARE, by="click", seed=fitted.settings.seed)
    keys, latent = tuple(fitted.queries.keys), fitted.kernel.latent
    assert latent is not None
    np.testing.assert_allclose(latent.images, map_of(halves.graph, keys).images, atol=1e-6)
    whole = map_of(graph, keys).images
    assert whole.shape != latent.images.shape or not np.allclose(whole, latent.images, atol=1e-3)
    # Saved and loaded, it answers the same, for known and for new queries.
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    for query in ("sofa", "green couch", "qqq"):
        np.testing.assert_array_equal(again.score(query, list(DOCS)), model.score(query, list(DOCS)))
