"""Soft k-means against its equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clickbridge.engines.local import Local
from clickbridge.online import clusters
from clickbridge.online.clusters import first_centres, query_vectors, responsibilities, soft_k_means, step
from oracles.online import soft_k_means_step

Array = np.ndarray[Any, Any]


def blobs(seed: int = 0, n: int = 120) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0], [8, 0], [0, 8]])
    which = rng.integers(3, size=n)
    return (centres[which] + rng.standard_normal((n, 2)) * 0.5).astype(np.float32), which


def test_a_query_is_the_mean_of_its_pages() -> None:
    z = np.arange(8, dtype=np.float32).reshape(4, 2)
    found = query_vectors(np.array([0, 2, 2, 3]), np.array([0, 3, 2]), z)
    assert found.tolist() == [[3, 4], [0, 0], [4, 5]]


@pytest.mark.parametrize("beta", [0.01, 0.5, 3.0])
def test_a_round_is_equations_26_and_27(beta: float) -> None:
    points, _ = blobs()
    centres = points[:4].copy()
    p, expected = soft_k_means_step(points.astype(float), centres.astype(float), beta)
    np.testing.assert_allclose(responsibilities(points, centres, beta)[0], p, atol=2e-4)
    np.testing.assert_allclose(step(points, centres, beta)[0], expected, rtol=1e-3, atol=1e-3)


def test_hard_and_far_does_not_overflow() -> None:
    points = np.array([[0.0, 0.0], [1e4, 0.0]], dtype=np.float32)
    shares, logs = responsibilities(points, points, 1e3)
    np.testing.assert_allclose(shares, np.eye(2))
    assert np.isfinite(logs).all()


def test_the_free_energy_falls() -> None:
    points, _ = blobs(1)
    centres, beta = points[:5].copy(), 0.3
    energies = []
    for _ in range(12):
        centres, energy = step(points, centres, beta)
        energies.append(energy)
    assert (np.diff(energies) <= 1e-4 * abs(energies[0])).all()
    assert energies[-1] < energies[0]


def test_blobs_are_found_whatever_the_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "CHUNK", 32)
    points, which = blobs(2)
    for scale in (1e-3, 1.0, 1e3):
        centres, beta = soft_k_means((points * scale).astype(np.float32), 3, 10.0, seed=1)
        nearest = responsibilities((points * scale).astype(np.float32), centres, beta)[0].argmax(axis=1)
        assert len({(a, b) for a, b in zip(nearest, which, strict=True)}) == 3


def test_threads_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "CHUNK", 16)
    points, _ = blobs(3)
    one, two = (step(points, points[:3].copy(), 0.5, Local(threads)) for threads in (1, 3))
    assert one[0].tobytes() == two[0].tobytes()
    assert one[1] == two[1]


def test_more_clusters_than_queries_and_equal_queries() -> None:
    centres, _ = soft_k_means(np.ones((3, 2), dtype=np.float32), 10, 5.0)
    assert centres.shape == (3, 2)
    np.testing.assert_allclose(centres, 1.0)


def test_the_start_spreads_out() -> None:
    points, which = blobs(4)
    centres, spread = first_centres(points, 3, np.random.default_rng(0))
    of = {int(which[np.argmin(((points - c) ** 2).sum(axis=1))]) for c in centres}
    assert of == {0, 1, 2}
    assert 0 < spread < 5
