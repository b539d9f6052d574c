"""Lists against queries and against each other, by dense arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from clickbridge.numerics import list_features as kernels
from clickbridge.numerics.ragged import Ragged

Array = np.ndarray[Any, Any]
N_DOCS, N_TERMS, N_FIELDS = 12, 40, 3


def rows_of(dense: Array) -> tuple[Array, Array, Array]:
    matrix = sparse.csr_array(dense.astype(np.float32))
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data


def random_counts(rng: np.random.Generator, n: int, width: int, density: float = 0.2) -> Array:
    return rng.integers(1, 4, (n, width)) * (rng.random((n, width)) < density)


class Case:
    """Lists of different lengths with unknown documents and one that stands there twice; queries, one of them empty."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.ragged = Ragged.of_lengths(rng.integers(0, 9, 6))
        self.items = rng.integers(-1, N_DOCS, self.ragged.n_rows)
        self.queries = random_counts(rng, 6, N_TERMS)
        self.queries[2] = 0
        self.fields = random_counts(rng, N_DOCS * N_FIELDS, N_TERMS)
        self.scale = rng.random(N_TERMS).astype(np.float32)
        self.lists = self.ragged.indptr, self.items

    def per_row(self, values: Array) -> Array:
        """`values[list, document]` for each row; 0 for unknown documents."""
        return np.where(self.items >= 0, values[self.ragged.owner, self.items], 0.0)


@pytest.fixture(params=range(5))
def case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param)


def test_unit_rows(case: Case) -> None:
    indptr, indices, data = rows_of(case.queries)
    for scale in (case.scale, None):
        dense = case.queries * (1.0 if scale is None else scale)
        lengths = np.linalg.norm(dense, axis=1, keepdims=True)
        expected = dense / np.where(lengths > 0, lengths, 1)
        found = kernels.unit_data(indptr, indices, data, scale)
        np.testing.assert_allclose(found, expected[case.queries > 0], rtol=1e-6)
    assert kernels.unit_data(indptr, indices, data, np.zeros(N_TERMS, np.float32)).max(initial=0) == 0


def test_dot_products(case: Case) -> None:
    documents = case.fields[:N_DOCS]
    out = np.empty(len(case.items))
    kernels.listed_dots(*case.lists, *rows_of(case.queries), *rows_of(documents), out)
    np.testing.assert_allclose(out, case.per_row(case.queries @ documents.T))


def test_words_of_fields(case: Case) -> None:
    rng = np.random.default_rng(0)
    idf = rng.random((N_TERMS, N_FIELDS + 1)).astype(np.float32)
    weights = rng.random((N_TERMS, 2)).astype(np.float32)
    fields = case.fields.reshape(N_DOCS, N_FIELDS, N_TERMS)
    fields = np.concatenate([fields, fields.sum(axis=1, keepdims=True)], axis=1)
    lengths = fields.sum(axis=2).astype(np.float32)
    averages = lengths.mean(axis=0)
    shape = (N_FIELDS + 1, len(case.items))
    bm25, vsm, sums = np.zeros(shape), np.zeros(shape[1]), np.zeros((2, *shape))
    indptr, terms, _ = rows_of(case.queries)
    kernels.word_sums(
        *case.lists, indptr, terms, *rows_of(case.fields), idf, lengths, averages, 1.2, 0.75, weights, bm25, vsm, sums
    )
    asked = (case.queries > 0).astype(float)
    for f in range(N_FIELDS + 1):
        tf = fields[:, f] / (0.25 + 0.75 * lengths[:, f] / averages[f])[:, None]
        np.testing.assert_allclose(bm25[f], case.per_row(asked @ (idf[:, f] * 2.2 * tf / (1.2 + tf)).T), rtol=1e-6)
        for k in range(2):
            np.testing.assert_allclose(sums[k, f], case.per_row(asked @ ((fields[:, f] > 0) * weights[:, k]).T))
    np.testing.assert_allclose(vsm, case.per_row((asked * idf[:, -1] ** 2) @ fields[:, -1].T), rtol=1e-6)
    np.testing.assert_allclose(kernels.summed_weights(indptr, terms, weights), (asked @ weights).T)


def test_votes(case: Case) -> None:
    rng = np.random.default_rng(0)
    ballots = random_counts(rng, 15, N_DOCS) * rng.random((2, 15, N_DOCS)).astype(np.float32)
    voters = random_counts(rng, 6, 15)
    indptr, docs, one = rows_of(ballots[0])
    both = np.stack([one, rows_of(ballots[1])[2]], axis=1)
    v_indptr, who, weights = rows_of(voters)
    out = np.zeros((2, len(case.items)))
    kernels.votes(*case.lists, v_indptr, who, weights.astype(float), indptr, docs, both, out)
    for k in range(2):
        np.testing.assert_allclose(out[k], case.per_row(voters @ ballots[k]), rtol=1e-6)


@pytest.mark.parametrize(("first", "last"), [(0, N_FIELDS), (1, 2)])
@pytest.mark.parametrize("scaled", [True, False])
def test_likeness(case: Case, first: int, last: int, scaled: bool) -> None:
    rng = np.random.default_rng(0)
    weights, norms = rng.random((2, len(case.items))), rng.random(N_DOCS).astype(np.float32)
    dense = case.fields.reshape(N_DOCS, N_FIELDS, N_TERMS)[:, first:last].sum(axis=1).astype(float)
    dense = dense * case.scale * norms[:, None] if scaled else dense
    scale = (case.scale, norms) if scaled else (kernels.NO_SCALE, kernels.NO_SCALE)
    out = np.empty_like(weights)
    kernels.likeness(*case.lists, *rows_of(case.fields), N_FIELDS, first, last, *scale, weights, out)
    for at, (doc, own) in enumerate(zip(case.items, case.ragged.owner, strict=True)):
        others = [j for j in np.flatnonzero(case.ragged.owner == own) if j != at and case.items[j] >= 0 and doc >= 0]
        for k in range(2):
            expected = sum(weights[k, j] * (dense[doc] @ dense[case.items[j]]) for j in others)
            np.testing.assert_allclose(out[k, at], expected, rtol=1e-6, atol=1e-12)


def test_what_is_shared_with_nobody_is_nothing() -> None:
    """Not a little more or less than 0, which trees could tell apart."""
    rng = np.random.default_rng(0)
    rows = rows_of(np.kron(np.eye(N_DOCS), rng.integers(1, 5, (1, 3))))
    weights, out = rng.random((1, N_DOCS)), np.empty((1, N_DOCS))
    scale, norms = rng.random((2, 3 * N_DOCS)).astype(np.float32)
    kernels.likeness(np.array([0, N_DOCS]), np.arange(N_DOCS), *rows, 1, 0, 1, scale, norms, weights, out)
    assert not out.any()


def test_kept_terms(case: Case) -> None:
    chosen = random_counts(np.random.default_rng(1), 6, N_DOCS) / 7
    indptr, terms, _ = rows_of(case.queries)
    fields = rows_of(case.fields)
    asked, kept = np.zeros((2, N_TERMS))
    kernels.kept_terms(*rows_of(chosen), indptr, terms, *fields[:2], N_FIELDS, asked, kept)
    holds = case.fields.reshape(N_DOCS, N_FIELDS, N_TERMS).sum(axis=1) > 0
    np.testing.assert_allclose(asked, chosen.sum(axis=1) @ (case.queries > 0), rtol=1e-6)
    np.testing.assert_allclose(kept, ((chosen @ holds) * (case.queries > 0)).sum(axis=0), rtol=1e-6)


def test_nearest() -> None:
    rng = np.random.default_rng(0)
    queries, items = random_counts(rng, 5, N_TERMS), random_counts(rng, 9, N_TERMS)
    queries[3] = 0
    for k in (1, 4, 50):
        indptr, found, scores = kernels.nearest(rows_of(queries), rows_of(items.T), 9, k)
        for row, dots in enumerate(queries @ items.T):
            order = [i for i in np.argsort(-dots, kind="stable") if dots[i] > 0][:k]
            assert found[indptr[row] : indptr[row + 1]].tolist() == order
            assert scores[indptr[row] : indptr[row + 1]].tolist() == dots[order].tolist()
    nobody = kernels.nearest(rows_of(queries), rows_of(np.zeros((N_TERMS, 0))), 0, 5)
    assert [part.tolist() for part in nobody] == [[0] * 6, [], []]


def test_no_list() -> None:
    lists = np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64)
    none, documents = rows_of(np.zeros((0, 4))), rows_of(np.ones((3, 4)))
    kernels.listed_dots(*lists, *none, *documents, np.empty(0))
    kernels.votes(*lists, *none[:2], np.empty(0), *documents[:2], np.ones((12, 1), np.float32), np.empty((1, 0)))
    kernels.likeness(
        *lists, *documents, 1, 0, 1, kernels.NO_SCALE, kernels.NO_SCALE, np.empty((2, 0)), np.empty((2, 0))
    )
