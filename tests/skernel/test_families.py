"""Families of S-kernels: semi-definite, convergent, and what they generate are S-functions (Lemma 6, unseen points)."""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickbridge.errors import SettingError
from clickbridge.skernel.families import FAMILIES, MultipleKernels, PowerSeries, family, s_kernel
from clickbridge.skernel.learn import learn_preferences
from oracles.skernel import LemmaSix, least_eigenvalue, w_matrix

Array = np.ndarray[Any, Any]
RHO = 0.6
COEFFICIENTS = {
    "product": [0.0, 1.0],
    "linear": [1.0, RHO],
    "exponential": [RHO**i / factorial(i) for i in range(9)],
    "geometric": [RHO**i for i in range(9)],
}
every_family = pytest.mark.parametrize("name", FAMILIES)


def points(n: int, seed: int, size: float = 1.0) -> tuple[Array, Array, Array]:
    """Features of x and y in the unit ball, and the two maps of g beside each other."""
    rng = np.random.default_rng(seed)
    x, y = (size * row / np.linalg.norm(row, axis=1, keepdims=True) for row in rng.standard_normal((2, n, 2)))
    return x, y, rng.standard_normal((2, n, 2))


@every_family
@given(seed=st.integers(0, 10_000), n=st.integers(1, 9))
@settings(deadline=None, max_examples=30)
def test_gram_matrices_are_semi_definite(name: str, seed: int, n: int) -> None:
    x, y, maps = points(n, seed)
    g = np.einsum("ij,ij->i", *maps)
    gram = s_kernel(family(name, RHO), g, g, x @ x.T, y @ y.T)
    assert least_eigenvalue(gram) > -1e-9 * max(1.0, np.abs(gram).max())
    np.testing.assert_allclose(gram, gram.T)


@every_family
def test_closed_forms_are_their_series(name: str) -> None:
    z = np.linspace(-0.5, 0.5, 11)
    terms = sum(c * z**i for i, c in enumerate(COEFFICIENTS[name]))
    np.testing.assert_allclose(family(name, RHO)(z, np.ones(11)), terms, atol=1e-4)
    np.testing.assert_allclose(PowerSeries(tuple(COEFFICIENTS[name]))(z, np.ones(11)), terms)


@every_family
def test_what_is_learned_is_an_s_function_on_unseen_points(name: str) -> None:
    """Lemma 6: two maps, made from the training points alone, whose dot product is f anywhere. On a finite sample
    every matrix is an S-function, so only points outside of it say something."""
    x, y, maps = points(7, 1, size=0.6)
    g = np.einsum("ij,ij->i", *maps)
    inner = PowerSeries(tuple(COEFFICIENTS[name])) if name in ("exponential", "geometric") else family(name, RHO)
    gram = s_kernel(inner, g, g, x @ x.T, y @ y.T)
    alpha = learn_preferences(gram, np.array([0, 1, 2]), np.array([3, 4, 5])).alpha
    assert alpha.any()
    operator = LemmaSix(COEFFICIENTS[name], x, y, alpha, g)
    new_x, new_y, new_maps = points(6, 2, size=0.6)
    for i in range(6):
        for j in range(6):  # every x with every y
            factor = new_maps[0, i] @ new_maps[1, j]
            kernel = s_kernel(inner, np.array([factor]), g, new_x[[i]] @ x.T, new_y[[j]] @ y.T)
            f = float((kernel @ alpha)[0])
            image_x, image_y = operator.map_x(new_x[i], new_maps[0, i]), operator.map_y(new_y[j], new_maps[1, j])
            assert image_x @ image_y == pytest.approx(f, abs=1e-9)


def test_a_series_that_does_not_converge_is_refused() -> None:
    with pytest.raises(SettingError, match="converges below 1; the kernels reach 1: use a smaller rho"):
        family("geometric", 1.0)(np.ones(2), np.ones(2))
    family("geometric", 0.99)(np.ones(2), np.ones(2))
    with pytest.raises(SettingError, match="not negative"):
        PowerSeries((1.0, -1.0))
    with pytest.raises(SettingError, match="not negative"):
        MultipleKernels([-1.0])
    with pytest.raises(SettingError, match="family must be one of product"):
        family("polynomial")
    ones, first = np.ones((1, 1)), np.zeros(1, dtype=np.int64)
    for used in (
        lambda: family("geometric", 1.0).gram(ones, first, ones, first, np.ones(1)),
        lambda: family("geometric", 1.0).sums(np.ones(1), ones, first, np.ones(1)),
    ):
        with pytest.raises(SettingError, match="use a smaller rho"):
            used()


@every_family
def test_points_that_share_x_and_y(name: str) -> None:
    """The compiled Gram matrix and sums are s_kernel's, over points that are few x and few y."""
    x, y, _ = points(4, 8, size=0.9)
    rng = np.random.default_rng(9)
    x_of, y_of, g, weights = rng.integers(0, 4, 9), rng.integers(0, 4, 9), rng.random(9), rng.standard_normal(9)
    k_x, k_y, inner = x @ x.T, y @ y.T, family(name, RHO)
    whole = s_kernel(inner, g, g, k_x[np.ix_(x_of, x_of)], k_y[np.ix_(y_of, y_of)])
    np.testing.assert_allclose(inner.gram(k_x, x_of, k_y, y_of, g), whole, atol=1e-12)
    sums = inner(np.broadcast_to(k_x[0][x_of], (4, 9)), k_y[:, y_of]) @ weights
    np.testing.assert_allclose(inner.sums(k_x[0][x_of], k_y, y_of, weights), sums, atol=1e-12)


@given(seed=st.integers(0, 10_000))
@settings(deadline=None, max_examples=30)
def test_several_kernels_on_each_side(seed: int) -> None:
    """(7): its gram matrix is the weighted sum of those of (8), and semi-definite."""
    n, rng = 6, np.random.default_rng(seed)
    features = rng.standard_normal((3, 2, n, 2))
    k_x, k_y = ([row @ row.T for row in features[:, side]] for side in (0, 1))
    g = rng.standard_normal(n)
    c = rng.random(3)
    gram = s_kernel(MultipleKernels(c), g, g, np.array(k_x), np.array(k_y))
    parts = [w * s_kernel(family("product"), g, g, a, b) for w, a, b in zip(c, k_x, k_y, strict=True)]
    np.testing.assert_allclose(gram, sum(parts))
    assert least_eigenvalue(gram) > -1e-9 * max(1.0, np.abs(gram).max())
    with pytest.raises(ValueError, match="3 coefficients for 2"):
        MultipleKernels(c)(np.array(k_x[:2]), np.array(k_y))


@every_family
def test_equal_spaces_give_a_hyperkernel(name: str) -> None:
    """Ong et al. 2005: x and y of one space, one kernel, g = 1. Functions with weights >= 0 on points (x, x) are
    themselves kernels, on points that were not used to make them."""
    x, _, _ = points(5, 3, size=0.9)
    rng = np.random.default_rng(4)
    alpha, new = rng.random(5), points(8, 5, size=0.9)[0]
    inner, to_old = family(name, RHO), new @ x.T
    made = sum(a * inner(to_old[:, [p]], to_old[:, [p]].T) for p, a in enumerate(alpha))
    assert least_eigenvalue(np.asarray(made)) > -1e-9
    assert least_eigenvalue(inner(x @ x.T, x @ x.T)) > -1e-9


def test_the_product_is_the_papers_w() -> None:
    """The matrix of pairs below (12) is the points' gram matrix, differenced."""
    rng = np.random.default_rng(6)
    x, y, _ = points(6, 7)
    x[3:] = x[:3]  # a preference is between two points of one query
    g = rng.random(6) + 0.1
    better, worse = np.array([0, 1, 2]), np.array([3, 4, 5])
    gram = s_kernel(family("product"), g, g, x @ x.T, y @ y.T)
    differences = np.eye(6)[better] - np.eye(6)[worse]
    w = w_matrix(x @ x.T, y @ y.T, g, better, worse)
    np.testing.assert_allclose(differences @ gram @ differences.T, w, atol=1e-12)
