"""Trees as arrays: they predict what LightGBM predicts, to the bit, and refuse what is not a forest."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickbridge.errors import ArtifactError
from clickbridge.fusion.forest import TYPES, Forest
from clickbridge.io.artifact import ArtifactWriter, open_artifact
from clickbridge.io.values import read_value, write_value

Array = np.ndarray[Any, Any]
WIDTH = 6
QUIET = {"verbose": -1, "deterministic": True, "num_threads": 1, "seed": 0}
SPECIAL = (0.0, -0.0, 1e-36, -1e-36, 1e-35, -1e-35, 1e-300, np.inf, -np.inf, np.nan, 1.0, -1.0)


def grown(objective: str = "regression", missing: bool = True, **more: Any) -> Any:
    """Trees over columns of which some hold many zeros, some are missing at times, and some say nothing."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(900, WIDTH)) * (rng.random((900, WIDTH)) < [1, 0.5, 1, 0.2, 1, 0.9])
    y = np.sign(x[:, 0]) + np.nan_to_num(x[:, 1]) * (x[:, 2] > 0) + 3 * (x[:, 3] == 0)
    if missing:
        x[rng.random(x.shape) < [0, 0.1, 0.3, 0, 0, 0.6]] = np.nan
    groups = np.full(90, 10) if objective == "lambdarank" else None
    y = np.clip(np.round(y), 0, 4) if groups is not None else y
    data = lightgbm.Dataset(x, y, group=groups)
    parameters = QUIET | {"objective": objective, "num_leaves": 9, "min_data_in_leaf": 5} | more
    return lightgbm.train(parameters, data, 30)


@pytest.fixture(scope="module")
def booster() -> Any:
    return grown()


@pytest.mark.parametrize("objective", ["regression", "lambdarank"])
@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_it_predicts_what_lightgbm_predicts(objective: str, missing: bool, kind: type) -> None:
    booster = grown(objective, missing)
    forest = Forest.of_text(booster.model_to_string())
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, WIDTH)).astype(kind)
    # Values that fall on a threshold, and all that are special.
    thresholds = np.append(forest.threshold, SPECIAL).astype(kind)
    x = np.where(rng.random(x.shape) < 0.5, rng.choice(thresholds, x.shape), x)
    np.testing.assert_array_equal(forest.predict(x), booster.predict(x))
    np.testing.assert_array_equal(forest.importance(), booster.feature_importance("gain"))
    assert len(forest) == booster.num_trees()


@settings(max_examples=200)
@given(st.lists(st.one_of(st.floats(width=32), st.sampled_from(SPECIAL)), min_size=WIDTH, max_size=WIDTH))
def test_any_row(booster: Any, row: list[float]) -> None:
    x = np.array([row], dtype=np.float32)
    forest = Forest.of_text(booster.model_to_string())
    assert forest.predict(x).tolist() == booster.predict(x, num_threads=1).tolist()


def test_trees_without_a_split() -> None:
    data = lightgbm.Dataset(np.zeros((50, 2)), np.arange(50.0))
    booster = lightgbm.train(QUIET | {"objective": "regression"}, data, 3)
    forest = Forest.of_text(booster.model_to_string())
    x = np.random.default_rng(0).normal(size=(7, 2))
    np.testing.assert_array_equal(forest.predict(x), booster.predict(x))
    assert forest.importance().tolist() == [0, 0]
    assert forest.predict(x[:0]).tolist() == []


def test_saved_read_and_pickled(booster: Any, tmp_path: Path) -> None:
    forest = Forest.of_text(booster.model_to_string())
    with ArtifactWriter(tmp_path / "forest", "forest") as writer:
        writer.commit(forest=write_value(writer, "forest", forest))
    artifact = open_artifact(tmp_path / "forest", "forest")
    x = np.random.default_rng(0).normal(size=(50, WIDTH))
    for again in (read_value(artifact, artifact.manifest["forest"]), pickle.loads(pickle.dumps(forest))):  # noqa: S301
        np.testing.assert_array_equal(again.predict(x), forest.predict(x))
        assert not any(getattr(again, name).flags.writeable for name in TYPES)


def test_a_row_of_the_wrong_width_is_refused(booster: Any) -> None:
    with pytest.raises(ValueError, match="rows of 6 features are needed"):
        Forest.of_text(booster.model_to_string()).predict(np.zeros((3, 5)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_predicts_too(booster: Any) -> None:
    """LightGBM's own threads do not live on in a child, which then waits for them."""
    forest, x = Forest.of_text(booster.model_to_string()), np.ones((5000, WIDTH))
    expected = forest.predict(x)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        found = pool.apply_async(forest.predict, (x,)).get(timeout=60)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("left_child=", "left_child=99 "),
        ("left_child=", "left_child=-99 "),
        ("left_child=", "left_child=0 "),
        ("right_child=", "right_child=x "),
        ("split_feature=", "split_feature=7 "),
        ("split_feature=", "split_feature=-1 "),
        ("leaf_value=", "leaf_value=nan "),
        ("leaf_value=", "leaf_value=inf "),
        ("threshold=", "threshold=nan "),
        ("decision_type=", "decision_type=1 "),
        ("decision_type=", "decision_type=6 "),
        ("num_cat=0", "num_cat=1"),
        ("is_linear=0", "is_linear=1"),
        ("split_gain=", "no_gain="),
        ("objective=regression", "objective=binary"),
        ("objective=regression", "average_output\nobjective=regression"),
        ("num_tree_per_iteration=1", "num_tree_per_iteration=3"),
        ("max_feature_idx=5", "max_feature_idx="),
        ("\nTree=", "\nShrub="),
    ],
)
def test_damaged_text_is_refused(booster: Any, old: str, new: str) -> None:
    text = booster.model_to_string()
    assert old in text
    # A number put first takes the place of the line's own first one.
    head, _, tail = text.partition(old)
    tail = tail.partition(" ")[2] if new.endswith(" ") else tail
    changed = text.replace(old, new) if old == "\nTree=" else head + new + tail
    with pytest.raises(ArtifactError, match="the trees of the model are damaged"):
        Forest.of_text(changed)


def test_damaged_arrays_are_refused(booster: Any) -> None:
    forest = Forest.of_text(booster.model_to_string())
    arrays = {name: getattr(forest, name) for name in TYPES}
    changes: list[dict[str, Any]] = [
        {"leaf": arrays["leaf"][1:]},
        {"children": arrays["children"].ravel()},
        {"children": np.zeros_like(arrays["children"])},
        {"children": arrays["children"][::-1]},
        {"roots": arrays["roots"] + 1},
        {"gain": np.array(["a"] * len(arrays["gain"]))},
        {"feature": arrays["feature"] + WIDTH},
    ]
    for change in changes:
        with pytest.raises(ArtifactError, match="damaged"):
            Forest(forest.n_features, **arrays | change)
    with pytest.raises(ArtifactError, match="damaged"):
        Forest(2, **arrays)


def test_forests_together_are_their_sum() -> None:
    one, two = (
        Forest.of_text(grown(seed=seed, num_leaves=leaves).model_to_string()) for seed, leaves in ((1, 5), (2, 9))
    )
    stump = Forest.of_text(grown(min_data_in_leaf=900).model_to_string())
    both = Forest.together([one, stump, two])
    x = np.random.default_rng(0).normal(size=(50, WIDTH))
    x[x > 1.5] = np.nan
    assert len(both) == len(one) + len(stump) + len(two)
    np.testing.assert_allclose(both.predict(x), one.predict(x) + stump.predict(x) + two.predict(x), rtol=1e-12)
    np.testing.assert_allclose(both.importance(), one.importance() + two.importance(), rtol=1e-6)
