"""Kernels of queries and documents: their values, that they are positive semi-definite, and neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from clickbridge.errors import SettingError
from clickbridge.log.clean import normalise_query
from clickbridge.skernel.click_kernel import CLICK_KERNELS, ClickKernel
from clickbridge.skernel.document_kernel import DocumentKernel, view_rows
from clickbridge.skernel.query_kernel import Asked, QueryFeatures, QueryKernel
from clickbridge.views.view import Source
from oracles.skernel import click_kernel, least_eigenvalue, pearson_over_union

Array = np.ndarray[Any, Any]
KEYS = ["walmart", "wal mart", "wallmart store", "southwest airlines", "cheap flights", "\x1f77"]
PRINTED = "pearson-union"
every_kind = pytest.mark.parametrize("kind", [kind for kind in CLICK_KERNELS if kind != PRINTED])
clicks_of = hnp.arrays(np.int64, st.tuples(st.integers(1, 8), st.integers(2, 6)), elements=st.integers(0, 5))


@every_kind
@given(clicks=clicks_of)
@settings(deadline=None)
def test_click_kernels_are_their_formulas_and_semi_definite(kind: str, clicks: Array) -> None:
    every = np.arange(len(clicks))
    kernel = ClickKernel.of(kind, sparse.csr_array(clicks))
    found = kernel.block(every, every)
    assert least_eigenvalue(found) > -1e-9
    varies = kernel.present
    if kind == "pearson":
        assert varies.tolist() == [len(set(row)) > 1 for row in clicks.tolist()]
    for i in every[varies]:
        assert found[i, i] == pytest.approx(1)
        for j in every[varies]:
            assert found[i, j] == pytest.approx(click_kernel(kind, clicks[i], clicks[j]), abs=1e-9)
    assert not found[~varies].any()


def test_the_printed_pearson_is_no_kernel() -> None:
    """Over the union of two queries' own documents, as (9) has it: why the set of documents is fixed here."""
    assert np.isnan(pearson_over_union(np.array([3, 0]), np.array([1, 0])))
    assert pearson_over_union(np.array([3, 0, 0]), np.array([0, 2, 0])) == pytest.approx(-1)
    rng = np.random.default_rng(0)
    clicks = rng.integers(0, 3, (8, 5))
    gram = np.array([[np.nan_to_num(pearson_over_union(u, v), nan=1.0) for v in clicks] for u in clicks])
    assert least_eigenvalue(gram) < -0.5


@given(clicks=clicks_of)
@settings(deadline=None)
def test_equation_9_as_printed(clicks: Array) -> None:
    every = np.arange(len(clicks))
    found = ClickKernel.of(PRINTED, sparse.csr_array(clicks)).block(every, every)
    for i in every:
        for j in every:
            one, two = clicks[i], clicks[j]
            expected = (
                1.0 if i == j else np.nan_to_num(pearson_over_union(one, two)) if one.any() and two.any() else 0.0
            )
            assert found[i, j] == pytest.approx(expected if one.any() else 0.0, abs=1e-7)


def kernel_of(weights: dict[str, float], kind: str, seed: int = 0) -> QueryKernel:
    clicks = np.random.default_rng(seed).integers(0, 4, (len(KEYS), 7))
    clicks[4] = 0
    return QueryKernel(QueryFeatures.of(KEYS, sparse.csr_array(clicks)), weights, kind)


def asked(kernel: QueryKernel, query: str) -> Asked:
    key = normalise_query(query)
    return kernel.asked(query if query in KEYS else key, KEYS.index(query) if query in KEYS else -1)


def against(kernel: QueryKernel, query: str, rows: Array) -> Array:
    return kernel.values(asked(kernel, query), rows)


def neighbours(kernel: QueryKernel, query: str, k: int, among: Array | None = None) -> tuple[Array, Array]:
    return kernel.neighbours(asked(kernel, query), k, among)


@every_kind
@given(weights=st.fixed_dictionaries({n: st.floats(0.01, 5) for n in ("click", "word", "char")}))
@settings(deadline=None, max_examples=20)
def test_any_weighted_sum_is_semi_definite_and_unit(kind: str, weights: dict[str, float]) -> None:
    kernel = kernel_of(weights, kind)
    every = np.arange(len(KEYS))
    gram = kernel.gram(every)
    assert least_eigenvalue(gram) > -1e-6
    np.testing.assert_allclose(np.diag(gram), 1, atol=1e-5)
    assert gram.max() <= 1 + 1e-5
    for i, key in enumerate(KEYS):
        np.testing.assert_allclose(against(kernel, key, every), gram[i], atol=1e-6)


@every_kind
@pytest.mark.parametrize("query", [*KEYS, "walmrt", "flights southwest", "zzzqqq"])
def test_neighbours_are_the_best_of_all(kind: str, query: str) -> None:
    kernel = kernel_of({"click": 0.5, "word": 0.3, "char": 0.2}, kind)
    every = against(kernel, query, np.arange(len(KEYS)))
    found, values = neighbours(kernel, query, 3)
    best = [i for i in np.argsort(-every, kind="stable")[:3] if every[i] > 1e-9]
    assert found.tolist() == best
    np.testing.assert_allclose(values, every[best], atol=1e-7)
    allowed = np.array([True, False, True, False, True, True])
    for i in neighbours(kernel, query, 3, allowed)[0]:
        assert allowed[i]


def test_an_unseen_query_has_neighbours_by_text_alone() -> None:
    kernel = kernel_of({"click": 0.5, "word": 0.3, "char": 0.2}, "pearson")
    assert KEYS[neighbours(kernel, "walmartt", 1)[0][0]] == "walmart"
    assert len(neighbours(kernel_of({"click": 1.0}, "pearson"), "walmartt", 3)[0]) == 0
    # A text that says the same as a known query is 1 like the text part of it.
    text = kernel_of({"word": 1.0, "char": 1.0}, "pearson")
    assert against(text, "Walmart!", np.array([0]))[0] == pytest.approx(1, abs=1e-6)


def test_a_missing_part_does_not_change_the_scale_of_others() -> None:
    kernel = kernel_of({"click": 0.9, "word": 0.1}, "cosine")
    assert kernel.gram(np.array([4]))[0, 0] == pytest.approx(1)
    assert kernel.gram(np.array([5]))[0, 0] == pytest.approx(1)


@pytest.mark.parametrize("weights", [{}, {"click": 0.0}, {"word": -1.0, "char": 2.0}, {"image": 1.0}])
def test_weights_that_make_no_kernel(weights: dict[str, float]) -> None:
    with pytest.raises(SettingError, match="query_kernel is made of weights >= 0"):
        kernel_of(weights, "cosine")


def test_a_click_kernel_that_is_none() -> None:
    with pytest.raises(SettingError, match=r"click_kernel must be one of pearson, .*jensen-shannon; got 'dice'"):
        kernel_of({"click": 1.0}, "dice")


def test_a_part_that_weighs_nothing_costs_nothing() -> None:
    kernel = kernel_of({"word": 1.0}, "cosine")
    words = kernel.features.views.views[0].width
    assert kernel.rows.nnz < kernel.features.text.nnz
    assert kernel.rows.indices.max() < words
    assert kernel.inverted.shape == (kernel.features.views.width, len(KEYS))


@given(st.lists(st.text("ab ", max_size=8), min_size=1, max_size=6))
@settings(deadline=None, max_examples=25)
def test_document_kernels_are_semi_definite(titles: list[str]) -> None:
    source = Source({"title": titles, "url": [f"http://x.org/{t}" for t in titles]}, len(titles))
    every = np.arange(len(titles))
    for terms in (["word:title", "word:url"], ["char:title"]):
        kernel = DocumentKernel.of(view_rows(terms, source, "english"))
        gram = kernel.block(every, every)
        assert least_eigenvalue(gram) > -1e-6
        np.testing.assert_allclose(np.diag(gram), kernel.present, atol=1e-5)
        assert (gram > -1e-9).all()
        (rows,) = kernel.blocks
        dense = DocumentKernel.of(rows.toarray())
        np.testing.assert_allclose(dense.block(every, every), gram, atol=1e-6)
        assert dense.present.tolist() == kernel.present.tolist()
        # Rows of any length, and several matrices side by side, are compared by their cosine.
        for both in (DocumentKernel.of(rows * 3.0, rows.toarray() * 4.0), DocumentKernel.of(rows * 0.1)):
            np.testing.assert_allclose(both.block(every, every.copy()), gram, atol=1e-6)
            square, beside = both.square(every, every[::-1])
            np.testing.assert_allclose(square, gram, atol=1e-6)
            np.testing.assert_allclose(beside, gram[::-1], atol=1e-6)
