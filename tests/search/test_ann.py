"""Approximate search: recall against the exact index, exact scores, and what happens at the edges."""

from __future__ import annotations

import pickle
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clickbridge.errors import NotSupported
from clickbridge.io.artifact import ArtifactWriter, open_artifact
from clickbridge.io.values import read_value, write_value
from clickbridge.search.ann import AnnIndex, Cells, learn_cells
from clickbridge.search.index import DenseIndex
from clickbridge.settings import Searching

Array = np.ndarray[Any, Any]
N_ITEMS, WIDTH, N_QUERIES = 24_000, 48, 200
DEFAULT = Searching().probe
ALL = np.ones(N_ITEMS, dtype=bool)


@cache
def collection() -> tuple[Array, Array, Cells]:
    """Images of many topics and unlike lengths, queries near the topics, and the cells of the images."""
    rng = np.random.default_rng(0)
    topics = rng.standard_normal((300, WIDTH))

    def near_topics(n: int) -> Array:
        return topics[rng.integers(len(topics), size=n)] + rng.standard_normal((n, WIDTH))

    images = (near_topics(N_ITEMS) * rng.uniform(0.2, 1, (N_ITEMS, 1))).astype(np.float32)
    cells = learn_cells(lambda rows: images[rows], np.ones(N_ITEMS, dtype=bool), seed=0)
    return images, near_topics(N_QUERIES).astype(np.float32), cells


def found(index: Any, queries: Array, k: int) -> list[list[int]]:
    return [items.tolist() for items, _ in index.search_many(queries, k)]


def recall(found: list[list[int]], exact: list[list[int]]) -> float:
    return float(np.mean([len({*one} & {*two}) / len(two) for one, two in zip(found, exact, strict=True)]))


def looked_at(queries: Array, cells: Cells, probe: float) -> float:
    """Share of the items in the cells a search looks into, counted from the cells themselves."""
    sizes = np.bincount(cells.of_item, minlength=len(cells.centres))
    nearest = np.argsort(-(queries @ cells.centres.T), axis=1)[:, : int(np.ceil(probe * len(cells.centres)))]
    return float(sizes[nearest].sum(axis=1).mean() / sizes.sum())


def test_recall_at_10_with_the_default_probe() -> None:
    images, queries, cells = collection()
    exact = found(DenseIndex(images, ALL), queries, 10)
    recalls = {p: recall(found(AnnIndex(images, ALL, cells, p), queries, 10), exact) for p in (0.002, DEFAULT)}
    assert recalls[DEFAULT] >= 0.95
    assert recalls[0.002] < recalls[DEFAULT], "the measure sees what is missed"
    assert looked_at(queries, cells, DEFAULT) < 0.15, "and most items were not looked at"


def test_scores_are_exact_and_fall() -> None:
    images, queries, cells = collection()
    index = AnnIndex(images, ALL, cells, DEFAULT)
    for query, (items, scores) in zip(queries, index.search_many(queries, 7), strict=True):
        assert len({*items}) == len(items) == 7
        np.testing.assert_allclose(scores, images[items] @ query, rtol=1e-5)
        assert (np.diff(scores) <= 0).all()
    for query in queries[:10]:
        for one, two in zip(index.search(query, 7), index.search_many(query[None], 7)[0], strict=True):
            np.testing.assert_array_equal(one, two)


def test_hidden_items_and_unmapped_queries() -> None:
    images, queries, _ = collection()
    scorable = np.random.default_rng(1).random(N_ITEMS) < 0.7
    cells = learn_cells(lambda rows: images[rows], scorable, seed=0)
    assert (cells.of_item[~scorable] == -1).all()
    assert (cells.of_item[scorable] >= 0).all()
    some = queries[:20].copy()
    some[3] = 0
    near = AnnIndex(images, scorable, cells, DEFAULT).search_many(some, 10)
    assert [len(items) for items, _ in near] == [10] * 3 + [0] + [10] * 16
    assert all(scorable[items].all() and np.isfinite(scores).all() for items, scores in near)


def test_where_cells_hold_too_few_search_is_exact() -> None:
    images, queries, cells = collection()
    index, exact = AnnIndex(images, ALL, cells, 1e-4), DenseIndex(images, ALL)  # one cell of about 40 items
    assert found(index, queries, 2) != found(exact, queries, 2)
    for k in (1000, N_ITEMS + 5):
        for one, two in zip(index.search_many(queries[:3], k), exact.search_many(queries[:3], k), strict=True):
            np.testing.assert_array_equal(one, two)
    lonely = Cells(cells.centres, np.where(cells.of_item == 0, -1, cells.of_item))
    toward = cells.centres[:1]
    scorable = lonely.of_item >= 0
    near = found(AnnIndex(images, scorable, lonely, 1e-4), toward, 2)  # the nearest cell is empty
    assert near == found(DenseIndex(images, scorable), toward, 2)
    assert AnnIndex(images, ALL, cells, DEFAULT).search_many(queries[:0], 5) == []


def test_lengths_do_not_change_cells() -> None:
    """Why one set of cells serves images and unit images."""
    images, _, cells = collection()
    unit = images / np.linalg.norm(images, axis=1, keepdims=True)
    same = np.argmax(unit @ cells.centres.T, axis=1) == cells.of_item
    assert same.mean() > 0.999  # but for ties within rounding
    np.testing.assert_allclose(np.linalg.norm(cells.centres, axis=1), 1, rtol=1e-5)


def test_one_seed_gives_one_set_of_cells() -> None:
    images = collection()[0][:3000]
    everything = np.ones(len(images), dtype=bool)
    one, two, other = (learn_cells(lambda rows: images[rows], everything, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.of_item, two.of_item)
    assert not np.array_equal(one.of_item, other.of_item)


def test_cells_are_two_plain_arrays(tmp_path: Path) -> None:
    images, queries, cells = collection()
    with ArtifactWriter(tmp_path / "cells", "model") as writer:
        writer.commit(cells=write_value(writer, "doc_cells", cells))
    artifact = open_artifact(tmp_path / "cells", "model")
    assert sorted(artifact.manifest["files"]) == ["doc_cells.centres.npy", "doc_cells.of_item.npy"]
    again = read_value(artifact, artifact.manifest["cells"])
    assert isinstance(again, Cells)
    one, two = (found(AnnIndex(images, ALL, c, 0.02), queries, 5) for c in (cells, again))
    assert one == two


def test_an_index_is_copied_by_what_it_is_made_of() -> None:
    """FAISS's own lists cannot be pickled: they are filled again."""
    images, queries, cells = collection()
    index = AnnIndex(images, ALL, cells, DEFAULT)
    again = pickle.loads(pickle.dumps(index))  # noqa: S301
    assert found(again, queries, 5) == found(index, queries, 5)


def test_without_the_library_the_line_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    images, _, cells = collection()
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(NotSupported, match=r"pip install 'clickbridge\[ann\]'"):
        AnnIndex(images, ALL, cells, DEFAULT)
