"""Every solver gives the same bits whatever the number of threads, and however much memory it may use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from clickbridge import Walk, example_graph
from clickbridge.engines.base import Engine
from clickbridge.models.candidates import Query
from clickbridge.numerics import diffusion, factors
from clickbridge.numerics.bltm import em_step
from clickbridge.numerics.csr import csr_times_dense
from clickbridge.numerics.diffusion import list_means, spread
from clickbridge.numerics.factors import Descent, Samples, random_factors
from clickbridge.numerics.ragged import Ragged
from clickbridge.numerics.rmls import DENSITY, RELATIVE, FactoredRows, FormedRows, Shrinkage, half_iteration
from clickbridge.numerics.rows import SparseRows
from clickbridge.numerics.svd import MatrixOperator, ProductOperator, randomised_svd
from clickbridge.numerics.topk import paired_dots, sparse_topk
from clickbridge.online.clusters import soft_k_means
from clickbridge.online.eigen import Lists, decompose

Array = np.ndarray[Any, Any]
Solver = Callable[[Engine], list[Array]]


def rows(seed: int, n: int, m: int, density: float = 0.05, dtype: Any = np.float32) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    return sparse.csr_array(sparse.random_array((n, m), density=density, random_state=rng, dtype=dtype, format="csr"))


def normal(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def result_lists() -> Lists:
    rng = np.random.default_rng(0)
    shown = [np.unique((middle + rng.integers(-9, 10, 8)) % 900) for middle in rng.integers(900, size=3000)]
    return Lists(Ragged.of_lengths([len(pages) for pages in shown]), np.concatenate(shown), 900)


def product(engine: Engine) -> list[Array]:
    return [csr_times_dense(rows(0, 900, 500), normal(1, 500, 20), engine)]


def svd(engine: Engine) -> list[Array]:
    whole = MatrixOperator(rows(0, 900, 500), np.float32, engine)
    chain = ProductOperator(rows(1, 700, 400), rows(2, 700, 800), rows(3, 800, 300), np.float32, engine)
    return [part for found in (randomised_svd(o, 12) for o in (whole, chain)) for part in (found.u, found.s, found.v)]


def half(engine: Engine) -> list[Array]:
    maps, outer, middle, inner = normal(0, 300, 24), rows(1, 5000, 400, 0.02), rows(2, 400, 800), rows(3, 800, 300)
    found = [
        half_iteration(FormedRows(rows(4, 5000, 300)), maps, Shrinkage(RELATIVE, 0.5, decorrelate=0.5), engine=engine),
        half_iteration(FactoredRows(outer, middle, inner, 10), maps, Shrinkage(DENSITY, 4), engine=engine),
    ]
    parts = [(half.maps, half.alignment) for half in found]
    return [a for m, alignment in parts if isinstance(m, SparseRows) for a in (m.indptr, m.indices, m.data, alignment)]


def diffused(engine: Engine) -> list[Array]:
    lists = result_lists()
    v = normal(1, 900, 40)
    return [
        spread(lists.indptr, lists.pages, np.linspace(0, 1, 900), v, engine),
        list_means(lists.indptr, lists.pages, v, engine),
    ]


def eigen(engine: Engine) -> list[Array]:
    return [a for space in decompose(result_lists(), 10, engine=engine).spaces for a in (space.values, space.vectors)]


def clusters(engine: Engine) -> list[Array]:
    centres, beta = soft_k_means(normal(0, 40_000, 5), 6, 5.0, engine=engine)
    return [centres, np.array(beta)]


def descent(engine: Engine) -> list[Array]:
    rng = np.random.default_rng(0)
    n, x, y = 700, rows(1, 50, 30, 0.2), rows(2, 60, 40, 0.2)
    query, positive, negative = (rng.integers(most, size=n) for most in (50, 60, 60))
    samples = Samples(query, positive, negative, np.ones(n), rng.standard_normal((n, 2)), rng.standard_normal(n))
    made = Descent(x, y, random_factors(30, 40, 17, 2, 1.0, seed=1), "logistic", engine=engine)
    assert made.threads == engine.threads
    for _ in range(2):
        made.epoch(samples)
    return [*made.factors.arrays, *made.mean.arrays]


def bltm(engine: Engine) -> list[Array]:
    a, b = (sparse.csr_array(rows(seed, 400, 60) > 0, dtype=float) for seed in (1, 2))
    theta, dual = np.full((400, 5), 0.2), np.zeros((400, 5))
    phi = [p / p.sum(axis=0) for p in np.random.default_rng(0).random((2, 60, 5))]
    for _ in range(3):
        bound, *phi = em_step(a, b, np.ones(400), theta, phi[0], phi[1], dual, 1.0, 1.1, 1.1, engine=engine)
    return [theta, dual, *phi, np.array(bound)]


def walk(engine: Engine) -> list[Array]:
    model = Walk(self_transition=0.8).fit(example_graph()).fitted
    asked = [Query(key) for key in model.queries.keys] * 30
    return [part for found in model.search_many(asked, 5, engine) for part in found]


def search(engine: Engine) -> list[Array]:
    queries, documents = rows(0, 400, 300), rows(1, 500, 300)
    pairs, columns = np.arange(0, 1201, 3), np.random.default_rng(2).integers(500, size=1200)
    return [
        *sparse_topk(queries, sparse.csr_array(documents.T), 9, engine),
        paired_dots(queries, documents, pairs, columns, engine),
        *engine.top_k(normal(4, 700, 12), normal(3, 9000, 12), 9, None),
    ]


@pytest.mark.parametrize(
    "solver", [product, svd, half, diffused, eigen, clusters, descent, bltm, walk, search], ids=lambda s: s.__name__
)
def test_limits_do_not_change_a_bit(make: Any, solver: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    # Small problems would not be shared out at all.
    monkeypatch.setattr(factors, "LEAST_WORK", 0)
    monkeypatch.setattr(diffusion, "LEAST_WORK", 0)
    monkeypatch.setattr(diffusion, "LEAST_PLACES", 0)
    limits = [{"threads": 1}, {"threads": 2}, {"threads": 3}, {"threads": 3, "memory": 1}]
    found = [[np.ascontiguousarray(a).tobytes() for a in solver(make(**given))] for given in limits]
    assert found[0] == found[1] == found[2] == found[3]
