"""Learning and ranking loops against loops that are easy to read, and on nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clickbridge.numerics.feedback import (
    OF_QUERY,
    Layout,
    blended,
    latent_scores,
    learn_latent,
    learn_own,
    listed_pages,
    own_scores,
    read_only,
)
from clickbridge.numerics.hash_table import empty_table, mixed, value_at

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.filterwarnings("ignore:overflow")  # wanted, and only the interpreter mentions it


def layout(seed: int = 0) -> tuple[Layout, list[Array], list[Array], list[Array]]:
    """Seven pages: four in a component of three dimensions and two clusters, two in one of two dimensions, one in
    none. Also z, z~ and centres by component."""
    rng = np.random.default_rng(seed)
    z = [rng.standard_normal((4, 3)).astype(np.float32), rng.standard_normal((2, 2)).astype(np.float32)]
    tilde = [rng.standard_normal(part.shape).astype(np.float32) for part in z]
    centres = [rng.standard_normal((2, 3)).astype(np.float32), np.zeros((1, 2), dtype=np.float32)]
    made = Layout(
        component=np.array([0, 0, 0, 0, 1, 1, -1], dtype=np.int32),
        start=np.array([0, 3, 6, 9, 12, 14, 0]),
        z=np.concatenate([part.ravel() for part in z]),
        z_tilde=np.concatenate([part.ravel() for part in tilde]),
        dims=np.array([3, 2]),
        n_clusters=np.array([2, 1]),
        beta=np.array([0.7, 1.0]),
        centre_start=np.array([0, 6]),
        centres=np.concatenate([part.T.ravel() for part in centres]),
        weight_start=np.array([0, 6]),
        slot_start=np.array([0, 2]),
        sums=np.array([False, False]),
    )
    return Layout(*map(read_only, made)), z, tilde, centres


def shares(z: Array, members: list[int], centres: Array, beta: float) -> Array:
    query = z[members].mean(axis=0)
    raw = np.exp(-beta * ((query - centres) ** 2).sum(axis=1)) if len(centres) > 1 else np.ones(1)
    out: Array = raw / raw.sum()
    return out


def test_one_event_by_hand_then_a_ranking_by_it() -> None:
    made, z, tilde, centres = layout()
    shown, y = np.array([2, 6, 4, -1, 0, 5]), np.array([3.0, -1.0, 0.5, 1.0, -2.0, -1.5])
    weights, evidence = np.zeros(8), np.zeros(3)
    learn_latent(np.array([0, 6]), shown, 10, y, np.array([2.0]), made, weights, evidence)
    p = shares(z[0], [2, 0], centres[0], 0.7)
    step = 3.0 * tilde[0][2] - 2.0 * tilde[0][0]
    u = [weights[:6].reshape(2, 3), weights[6:].reshape(1, 2)]
    np.testing.assert_allclose(u[0], 2.0 * np.outer(p, step), rtol=1e-5)
    np.testing.assert_allclose(u[1][0], 2.0 * (0.5 * tilde[1][0] - 1.5 * tilde[1][1]), rtol=1e-5)
    np.testing.assert_allclose(evidence, [2 * p[0], 2 * p[1], 2.0], rtol=1e-5)

    asked, out = np.array([1, 6, 3, 5, -1]), np.zeros(5)
    latent_scores(np.array([0, 5]), asked, 10, made, weights, evidence, 1.0, 4.0, out)
    p = shares(z[0], [1, 3], centres[0], 0.7)
    f = sum(p[k] * u[0][k] / (evidence[k] + 4.0) for k in range(2))
    expected = [z[0][1] @ f, 0.0, z[0][3] @ f, z[1][1] @ u[1][0] / (2.0 + 4.0), 0.0]
    np.testing.assert_allclose(out, expected, rtol=1e-4)


def test_only_the_first_results_say_what_the_query_is_about() -> None:
    made, z, _, centres = layout(1)
    weights, evidence, out = np.arange(8.0), np.ones(3), np.zeros(3)
    latent_scores(np.array([0, 3]), np.array([1, 3, 2]), 1, made, weights, evidence, 1.0, 0.0, out)
    p = shares(z[0], [1], centres[0], 0.7)
    np.testing.assert_allclose(out, z[0][[1, 3, 2]] @ (p @ weights[:6].reshape(2, 3)), rtol=1e-4)


def test_own_memory() -> None:
    keys, values = empty_table()
    queries = np.array([7, 8], dtype=np.uint64)
    pages, labels = np.array([0, 1, 1, -1]), np.array([1.0, -1.0, 2.0, 3.0])
    done, used = learn_own(np.array([0, 2, 4]), pages, labels, np.array([1.0, 3.0]), queries, 0, keys, values, 0)
    assert (done, used) == (2, 5)
    assert value_at(keys, values, mixed(queries[1], np.uint64(OF_QUERY))) == 3.0
    out = np.zeros(4)
    own_scores(
        np.array([0, 3, 4]), np.array([0, 1, 5, 0]), np.array([7, 9], dtype=np.uint64), keys, values, 1.0, 1.0, out
    )
    assert out.tolist() == [0.5, -0.5, 0.0, 0.0]


def test_nothing_to_learn_or_rank() -> None:
    made, _, _, _ = layout()
    ends, none, flat = np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)
    weights, evidence = np.zeros(8), np.zeros(3)
    learn_latent(ends, none, 5, flat, flat, made, weights, evidence)
    latent_scores(np.zeros(3, dtype=np.int64), none, 5, made, weights, evidence, 1.0, 1.0, flat)
    own_scores(ends, none, none.astype(np.uint64), *empty_table(), 1.0, 1.0, flat)
    assert learn_own(ends, none, flat, flat, none.astype(np.uint64), 0, *empty_table(), 0) == (0, 0)
    listed_pages(none, none, np.array([-1]), none, none)
    empty = np.zeros(2, dtype=np.int64)
    how = np.ones(4)
    query = np.zeros(1, dtype=np.uint64)
    blended(empty, none, none, flat, flat, query, *empty_table(), 1.0, how, np.zeros(1), flat)
    assert not weights.any()
    assert not evidence.any()


def test_a_table_that_would_be_crowded_stops_the_loop() -> None:
    keys, values = empty_table(8)
    queries = np.arange(3, dtype=np.uint64)
    pages, labels = np.array([0, 1, 0, 1, 0, 1]), np.ones(6)
    done, used = learn_own(np.array([0, 2, 4, 6]), pages, labels, np.ones(3), queries, 0, keys, values, 0)
    assert (done, used) == (1, 3)
    assert np.count_nonzero(keys) == 3


def test_later_pages_stand_behind_the_others() -> None:
    """The same list once with a page of the layout, once with one behind it that has the same place."""
    made, z, tilde, _ = layout()
    later = made._replace(
        later_component=read_only(np.array([-1, 0], dtype=np.int32)),
        later_start=read_only(np.array([0, 2])),
        later_z=read_only(np.concatenate([[9, 9], z[0][1]]).astype(np.float32)),
        later_z_tilde=read_only(np.concatenate([[9, 9], tilde[0][1]]).astype(np.float32)),
    )
    y = np.array([2.0, -1.0, -1.0])
    learned = []
    for page in (1, 8):
        weights, evidence, out = np.zeros(8), np.zeros(3), np.zeros(3)
        shown = np.array([0, page, 7])
        learn_latent(np.array([0, 3]), shown, 10, y, np.ones(1), later, weights, evidence)
        latent_scores(np.array([0, 3]), shown, 10, later, weights, evidence, 1.0, 1.0, out)
        learned.append((weights, evidence, out))
    for one, two in zip(*learned, strict=True):
        np.testing.assert_array_equal(one, two)
    assert learned[0][2][2] == 0.0


def test_the_blend_by_hand() -> None:
    keys, values = empty_table()
    queries = np.array([7, 8], dtype=np.uint64)
    learn_own(np.array([0, 2]), np.array([4, 5]), np.array([1.0, -1.0]), np.ones(1), queries[:1], 0, keys, values, 0)
    indptr, items = np.array([0, 3, 4]), np.array([0, 3, -1, 1])
    given = np.array([1.0, 3.0, -np.inf, 0.5])
    order = np.array([1, 0, 2, 3])
    pages = np.empty(4, dtype=np.int64)
    listed_pages(order, items, np.array([4, 6, 7, -1]), np.array([5]), pages)
    assert pages.tolist() == [5, 4, -1, 6]
    latent, prior, out = np.array([0.5, 0.25, 9.0, 1.0]), np.array([-1.0, -2.0]), np.empty(4)
    blended(indptr, order, pages, given, latent, queries, keys, values, 1.0, np.array([2.0, 3.0, 1.0, 1.0]), prior, out)
    assert out.tolist() == [2 * 0.25 + 3 * 0.5 - 2, 2 * 0.5 - 3 * 0.5 - 1, -np.inf, 2 * 1.0 - 1]
    latent[:] = np.nan  # not looked at
    blended(indptr, order, pages, given, latent, queries, keys, values, 1.0, np.array([0.0, 3.0, 1.0, 1.0]), prior, out)
    assert out.tolist() == [3 * 0.5 - 2, -3 * 0.5 - 1, -np.inf, -1.0]
    latent[:] = [0.5, 0.25, 9.0, 1.0]
    alone = np.array([1.0, 0.0, 0.0, 0.0])
    blended(indptr, order, pages, given, latent, queries, keys, values, 1.0, alone, prior, out)
    assert out.tolist() == [0.25, 0.5, -np.inf, 1.0]
