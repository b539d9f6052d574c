"""Trees grown by LightGBM, as a value that no longer needs LightGBM.

LightGBM starts threads to predict, which cost more than the work on one list and hang in a forked process. It also
crashes on damaged model text. Here trees are flat arrays, checked once when they are created, and added up by a
compiled loop. The sums equal those of LightGBM to the last bit; tests compare them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from clickbridge.engines.base import Engine
from clickbridge.errors import ArtifactError
from clickbridge.fusion.fixed_arrays import Array, Value, frozen
from clickbridge.io.values import stored
from clickbridge.numerics.forest import sum_leaves

RAW_OBJECTIVES = ("lambdarank", "regression")
"""Those whose prediction is the sum of the leaves itself."""
CATEGORICAL, DEFAULT_LEFT = 1, 2
MISSING_ZERO, MISSING_NAN = 1, 2
"""LightGBM's decision type: two flags, and above them what a missing value looks like (0: nothing is missing)."""


@stored
@dataclass(frozen=True, eq=False, repr=False)
class Forest(Value):
    """The nodes of all trees, one after the other, and the leaves. A tree starts at its root. A child number of 0 or
    more is a node; -1 - i is leaf i."""

    n_features: int
    roots: Array
    feature: Array
    threshold: Array
    """Larger values go to the node's second child, all others to the first."""
    nan_right: Array
    """Whether a missing value goes to the second."""
    children: Array
    gain: Array
    leaf: Array

    def __post_init__(self) -> None:
        for name, kind in TYPES.items():
            object.__setattr__(self, name, frozen(getattr(self, name), kind))
        self._check()

    def _check(self) -> None:
        """Checks that every path from a root ends in a leaf: children come after their node and have one parent."""
        n_nodes, n_leaves = self.feature.size, self.leaf.size
        nodes = (self.feature, self.threshold, self.nan_right, self.gain)
        fits = all(values.shape == (n_nodes,) for values in nodes) and self.children.shape == (n_nodes, 2)
        if not fits or self.roots.ndim != 1 or self.leaf.shape != (len(self.roots) + n_nodes,):
            raise damaged("nodes, leaves and roots do not fit together")
        once = np.concatenate([self.roots, self.children.ravel()])
        if not np.array_equal(np.sort(once), np.arange(-n_leaves, n_nodes)):
            raise damaged("a node or leaf is not the child of exactly one")
        if ((self.children >= 0) & (self.children <= np.arange(n_nodes)[:, None])).any():
            raise damaged("a node stands before its parent")
        if n_nodes and not 0 <= self.feature.min() <= self.feature.max() < self.n_features:
            raise damaged(f"a feature is not one of {self.n_features}")
        if not np.isfinite(self.leaf).all() or np.isnan(self.threshold).any():
            raise damaged("a leaf or threshold is not a number")

    def __len__(self) -> int:
        """The number of trees."""
        return len(self.roots)

    def predict(self, x: Array, engine: Engine | None = None) -> Array:
        """One score for each row of `x`, whose columns are the features that the trees were grown on."""
        if x.ndim != 2 or x.shape[1] != self.n_features:
            raise ValueError(f"rows of {self.n_features} features are needed; got an array of shape {x.shape}")
        x = np.ascontiguousarray(x, dtype=np.float64 if x.dtype == np.float64 else np.float32)
        nodes = (self.feature, self.threshold, self.nan_right, self.children)
        return sum_leaves(x, self.roots, *nodes, self.leaf, engine)

    def importance(self) -> Array:
        """The total gain of the splits on each feature."""
        gained = np.maximum(self.gain, 0).astype(np.float64)
        return np.bincount(self.feature, weights=gained, minlength=self.n_features)

    @classmethod
    def together(cls, forests: Sequence[Self]) -> Self:
        """Joins several forests with the same features. The score of the result is the sum of their scores."""
        columns: dict[str, list[Array]] = {name: [] for name in TYPES}
        n_nodes = n_leaves = 0
        for forest in forests:
            for name in TYPES:
                values = getattr(forest, name)
                if name in ("roots", "children"):
                    values = np.where(values >= 0, values + n_nodes, values - n_leaves)
                columns[name].append(values)
            n_nodes, n_leaves = n_nodes + len(forest.feature), n_leaves + len(forest.leaf)
        return cls(forests[0].n_features, **{name: np.concatenate(own) for name, own in columns.items()})

    @classmethod
    def of_text(cls, text: str) -> Self:
        """From LightGBM's text format (`Booster.model_to_string`)."""
        head, *blocks = text.split("end of trees")[0].split("\nTree=")
        about = _entries(head)
        if about.get("objective", "").split(" ")[0] not in RAW_OBJECTIVES or "average_output" in head.split("\n"):
            raise damaged(f"trees for {', '.join(RAW_OBJECTIVES)} are needed; got {about.get('objective')!r}")
        if about.get("num_tree_per_iteration") != "1":
            raise damaged("one tree for each round is needed")
        if not blocks:
            raise damaged("there are none")
        trees: list[dict[str, Array]] = []
        n_nodes = n_leaves = 0
        for block in blocks:
            trees.append(_tree(_entries(block), n_nodes, n_leaves))
            n_nodes += len(trees[-1]["feature"])
            n_leaves += len(trees[-1]["leaf"])
        try:
            n_features = int(about["max_feature_idx"]) + 1
        except (KeyError, ValueError):
            raise damaged("the number of features is missing") from None
        columns = {name: np.concatenate([tree[name] for tree in trees]) for name in TYPES}
        return cls(n_features, **columns)


TYPES: dict[str, type[np.generic]] = {
    "roots": np.int32, "feature": np.int32, "threshold": np.float64, "nan_right": np.bool_, "children": np.int32,
    "gain": np.float32, "leaf": np.float64,
}  # fmt: skip


def damaged(what: str) -> ArtifactError:
    return ArtifactError(f"the trees of the model are damaged ({what}): fit it again")


def _entries(block: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in block.split("\n") if "=" in line)


def _tree(entries: Mapping[str, str], n_nodes: int, n_leaves: int) -> dict[str, Array]:
    """One tree whose nodes and leaves follow `n_nodes` and `n_leaves` others."""
    if entries.get("num_cat", "0") != "0" or entries.get("is_linear", "0") != "0":
        raise damaged("splits on plain numbers and constant leaves are needed")
    try:
        feature, left, right, decision = (
            np.array(entries.get(name, "").split(), dtype=np.int64)
            for name in ("split_feature", "left_child", "right_child", "decision_type")
        )
        threshold, gain, leaf = (
            np.array(entries.get(name, "").split(), dtype=np.float64)
            for name in ("threshold", "split_gain", "leaf_value")
        )
        default, missing = (decision & DEFAULT_LEFT) > 0, decision >> 2
        if (decision & CATEGORICAL).any() or (missing == MISSING_ZERO).any():
            raise damaged("splits on plain numbers are needed, of which none stands for a missing one")
        # If the training data had no missing values, a missing value counts as 0.
        nan_right = np.where(missing == MISSING_NAN, ~default, threshold < 0)
        children = np.stack([left, right], axis=1)
    except (ValueError, OverflowError):
        raise damaged("a tree is not one in LightGBM's text format") from None
    return {
        "roots": np.array([n_nodes if len(feature) else ~n_leaves]),
        "feature": feature,
        "threshold": threshold,
        "nan_right": nan_right,
        "children": np.where(children >= 0, children + n_nodes, children - n_leaves),
        "gain": gain,
        "leaf": leaf,
    }
