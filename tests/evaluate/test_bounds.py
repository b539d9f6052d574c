"""Theorems 1-5: the bound holds where the expectation is known, falls as it must, and its constants are tight."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from clickbridge import ClickGraph, build_model
from clickbridge.errors import InputError, NotSupported, SettingError
from clickbridge.evaluate.bounds import (
    Constants,
    Sample,
    alignment,
    averaged,
    bounds,
    describe,
    largest_gap,
    pls_constants,
    rmls_constants,
    theorem_1,
    theorem_2,
    theorem_3,
    within_unit_ball,
)
from clickbridge.models.pls import LatentModel
from clickbridge.types import Document, Impression

Array = np.ndarray[Any, Any]


class Population:
    """Assumption 1 with finitely many queries and documents: everything about it can be summed exactly."""

    def __init__(self, seed: int = 0, n_x: int = 30, n_y: int = 40, width: int = 12) -> None:
        rng = np.random.default_rng(seed)
        self.x, self.y = (self._unit(rng.random((n, width)) * (rng.random((n, width)) < 0.4)) for n in (n_x, n_y))
        self.p_x = rng.dirichlet(np.ones(n_x))
        self.p_y = rng.dirichlet(np.full(n_y, 0.3), size=n_x)
        self.r = rng.integers(1, 6, (n_x, n_y)).astype(float)
        self.W = np.einsum("i,ij,ij,iu,jv->uv", self.p_x, self.p_y, self.r, self.x, self.y)

    @staticmethod
    def _unit(rows: Array) -> Array:
        rows[:, 0] += 0.1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def draw(self, n: int, per_query: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Sampled queries, one row each; their documents; their responses."""
        i = rng.choice(len(self.x), size=n, p=self.p_x)
        j = (rng.random((n, per_query, 1)) > np.cumsum(self.p_y, axis=1)[i][:, None, :-1]).sum(axis=2)
        return i, j, self.r[i[:, None], j]

    def gap(self, n: int, per_query: int, d: int, rng: np.random.Generator) -> float:
        """D(S) exactly: the sup over orthonormal maps is the sum of the first d singular values."""
        i, j, r = self.draw(n, per_query, rng)
        W = np.einsum("ij,iu,ijv->uv", r / (n * per_query), self.x[i], self.y[j])
        return float(np.linalg.svd(W - self.W, compute_uv=False)[:d].sum())


@pytest.mark.parametrize(("d", "per_query"), [(1, 1), (4, 3)])
def test_the_exact_gap_of_pls_stays_under_the_bound_and_falls_as_the_square_root(d: int, per_query: int) -> None:
    population, rng = Population(), np.random.default_rng(1)
    sizes, means = [50, 100, 200, 400, 800, 1600], []
    for n in sizes:
        gaps = [population.gap(n, per_query, d, rng) for _ in range(30)]
        sample = Sample(n, per_query, population.r.max(), 12, 12, 12, 12)
        assert max(gaps) < theorem_3(sample, pls_constants(d), 0.05)
        means.append(np.mean(gaps))
    slope = np.polyfit(np.log(sizes), np.log(means), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.06)


def test_largest_gap_is_the_supremum() -> None:
    """Against dense linear algebra, and no pair of random orthonormal maps exceeds it."""
    population, rng, d = Population(2), np.random.default_rng(3), 3
    x, y = sparse.csr_array(population.x), sparse.csr_array(population.y)
    one, two = (sparse.random_array((30, 40), density=0.2, rng=rng, format="csr") for _ in range(2))
    found = largest_gap(x, one, two, y, d)
    dense = population.x.T @ (averaged(one) - averaged(two)).toarray() @ population.y
    assert found == pytest.approx(np.linalg.svd(dense, compute_uv=False)[:d].sum(), rel=1e-6)
    for _ in range(50):
        l_x, l_y = (np.linalg.qr(rng.normal(size=(12, d)))[0] for _ in range(2))
        assert abs(alignment(x, one, y, l_x, l_y) - alignment(x, two, y, l_x, l_y)) <= found + 1e-9


def test_alignment_is_the_double_sum_of_the_paper() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.random((5, 6)), rng.random((7, 4))
    r = sparse.csr_array(rng.integers(0, 3, (5, 7)) * (rng.random((5, 7)) < 0.6))
    r.eliminate_zeros()
    l_x, l_y = rng.normal(size=(6, 2)), rng.normal(size=(4, 2))
    total, n_x = 0.0, 0
    for i in range(5):
        clicked = [j for j in range(7) if r[i, j]]
        n_x += bool(clicked)
        for j in clicked:
            total += r[i, j] * float(x[i] @ l_x @ l_y.T @ y[j]) / len(clicked)
    assert alignment(sparse.csr_array(x), r, sparse.csr_array(y), l_x, l_y) == pytest.approx(total / n_x)


def test_tightness_example_of_12() -> None:
    """All rows of the maps equal theta l with |l| = 1 in both norms; x and y flat over m_x and m_y features."""
    d, d_x, d_y, m_x, m_y, theta_x, theta_y = 5, 20, 30, 4, 6, 0.7, 1.3
    sample = Sample(100, 2.0, 3.0, m_x, m_y, d_x, d_y)
    l = np.eye(d)[2]  # noqa: E741
    l_x, l_y = theta_x * np.outer(np.ones(d_x), l), theta_y * np.outer(np.ones(d_y), l)
    x, y = (np.r_[np.ones(m), np.zeros(n - m)] / math.sqrt(m) for m, n in ((m_x, d_x), (m_y, d_y)))
    constants = rmls_constants(sample, d, theta_x, theta_y, lambda_x=theta_x, lambda_y=theta_y)
    assert pytest.approx(np.linalg.norm(l_x.T @ x) * np.linalg.norm(l_y.T @ y)) == constants.B
    assert pytest.approx(np.linalg.norm(l_x @ l_y.T)) == constants.C
    assert constants == rmls_constants(sample, d, theta_x, theta_y)


@given(st.integers(1, 12), st.integers(0, 2**31))
def test_constants_of_pls_are_reached_and_never_exceeded(d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    l_x, l_y = (np.linalg.qr(rng.normal(size=(n, d)))[0] for n in (12, 15))
    constants = pls_constants(d)
    assert np.linalg.norm(l_x @ l_y.T) == pytest.approx(constants.C)
    assert np.linalg.norm(l_x.T @ l_x[:, 0]) * np.linalg.norm(l_y.T @ l_y[:, 0]) == pytest.approx(constants.B)
    x = rng.normal(size=12)
    assert np.linalg.norm(l_x.T @ x) <= constants.B * np.linalg.norm(x) + 1e-9


def test_theorems_by_hand() -> None:
    sample, constants = Sample(100, 4.0, 2.0, 1, 1, 1, 1), Constants(3.0, 5.0)
    top = 2 * 5 * 2 + 2 * 3 * math.sqrt(2 * math.log(20))
    assert theorem_1(sample, constants, 0.05) == pytest.approx(top / 20)
    assert theorem_2(sample, constants, 0.05) == pytest.approx(top / 10)
    assert theorem_3(sample, constants, 0.05) == pytest.approx(top * (1 / 20 + 1 / 10))
    for delta in (0.0, 1.0):
        with pytest.raises(SettingError, match="delta"):
            theorem_1(sample, constants, delta)


def test_at_the_papers_own_size_the_bound_says_nothing() -> None:
    """One week, d = 1000: if the most clicked pair has 10,000 clicks, the bound is thousands of clicks, where no
    alignment can exceed the mean response, a few tens."""
    sample = Sample(94_022, 1.3, 10_000.0, 20, 20, 210_000, 200_000)
    pls = theorem_3(sample, pls_constants(1000), 0.05)
    assert pls > 3_000
    assert theorem_3(sample, rmls_constants(sample, 1000, 1.0, 1.0), 0.05) > 1_000 * pls


def test_describe_and_renormalise() -> None:
    x = sparse.csr_array(np.array([[1.0, 0, 1], [0, 2, 0], [0, 0, 0]]))
    r = sparse.csr_array(np.array([[1.0, 0, 0, 3], [0, 5, 0, 0], [0, 0, 0, 0]]))
    y = sparse.csr_array(np.eye(4))
    found = describe(x, r, y)
    assert (found.n_x, found.R, found.m_x, found.m_y, found.d_x, found.d_y) == (2, 5.0, 2, 1, 3, 4)
    assert found.n_y == pytest.approx(2 / (1 / 2 + 1))
    norms = np.linalg.norm(within_unit_ball(x).toarray(), axis=1)
    assert norms == pytest.approx([math.sqrt(0.5), 1, 0])
    with pytest.raises(InputError, match="no response"):
        describe(x, sparse.csr_array((3, 4)), y)


@pytest.fixture(scope="module")
def topical() -> ClickGraph:
    rng = np.random.default_rng(0)
    words = [[f"w{topic}x{number}" for number in range(12)] for topic in range(5)]
    docs = [Document(f"d{i}", {"title": " ".join(rng.choice(words[i % 5], 3))}) for i in range(60)]
    log = []
    for i in range(300):
        query = f"q{i} {' '.join(rng.choice(words[i % 5], 2))}"
        shown = [f"d{int(n) * 5 + i % 5}" for n in rng.choice(12, 2, replace=False)]
        log += [Impression(query, shown, shown, user="u")]
    return ClickGraph.build(log, docs)


@pytest.mark.parametrize(("spec", "spaces"), [("pls", 1), ("bm25+pls", 1), ("mpls", 2)])
def test_a_fitted_model_has_bounds_above_its_gap(topical: ClickGraph, spec: str, spaces: int) -> None:
    settings = {"dim": 8, "pls.views" if "+" in spec else "views": "word,click"}
    found = bounds(build_model(spec, settings).fit(topical))
    assert len(found) == spaces
    for bound in found:
        assert bound.n_held + bound.sample.n_x == 300
        assert bound.sample.n_y == pytest.approx(2.0)
        assert bound.training > 0
        assert bound.largest_gap is not None
        assert abs(bound.gap) <= bound.largest_gap + 1e-6 < bound.bound
        assert bound.bound == pytest.approx(bound.d1 + bound.d2)
        at_the_needed = Sample(**{**vars(bound.sample), "n_x": round(bound.queries_needed)})
        assert theorem_3(at_the_needed, bound.constants, 0.05) == pytest.approx(bound.training, rel=0.01)
    again = bounds(build_model(spec, settings).fit(topical))
    assert [b.as_dict() for b in again] == [b.as_dict() for b in found]


def test_rmls_by_theorem_5(topical: ClickGraph) -> None:
    """Its maps keep to the family: no row longer than theta, so nothing exceeds B and C."""
    model = build_model("rmls", {"dim": 8, "views": "word", "theta_x": 0.5, "theta_y": 2.0}).fit(topical)
    assert isinstance(model, LatentModel)
    (bound,) = bounds(model)
    m_x, m_y, d_x, d_y = (getattr(bound.sample, name) for name in ("m_x", "m_y", "d_x", "d_y"))
    assert bound.constants == Constants(math.sqrt(m_x * m_y), math.sqrt(d_x * d_y))  # theta_x theta_y = 1
    space = model.spaces_[0]
    l_x, l_y = (np.asarray(maps[np.arange(maps.shape[0])]) for maps in (space.l_x, space.l_y))
    assert np.linalg.norm(l_x, axis=1).max() <= 0.5 + 1e-5
    assert np.linalg.norm(l_x @ l_y.T) <= bound.constants.C
    assert bound.largest_gap is None
    assert abs(bound.gap) < bound.bound
    x, y = (within_unit_ball(f) for f in (model.query_features_, model.doc_features_))
    dense = alignment(x, model.responses_, y, l_x, l_y)
    assert alignment(x, model.responses_, y, space.l_x, space.l_y) == pytest.approx(dense, rel=1e-5)


def test_refusals(topical: ClickGraph, small_graph: ClickGraph) -> None:
    with pytest.raises(NotSupported, match="linear maps"):
        bounds(build_model("bm25").fit(topical))
    with pytest.raises(InputError, match="held back, and the measured gap needs"):
        bounds(build_model("pls").fit(small_graph))
