"""Grows the trees of `mart` from cross-fitted lists, and compares them with the plain sum of the parts.

Trees have hundreds of columns and a few thousand lists. On a small log, or one where words and latent spaces are
enough, they overfit. So some of the lists are only used to measure. If the plain sum of the parts ranks these better,
it replaces the trees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from clickbridge.errors import MissingPart
from clickbridge.fusion.crossfit import Block, joined
from clickbridge.fusion.forest import Forest
from clickbridge.fusion.plain_sum import Judged, judged, learn_weights, part_columns_of, plain_sum
from clickbridge.graph.hold_back import MIN_USABLE, few_held
from clickbridge.graph.notes import said_by
from clickbridge.settings import ADVANCED, Printed, Seeded, Text, setting, settings

JUDGED = 5
"""One of this many lists is not used to grow trees, but to compare them with the plain sum of the parts."""
GRADES = 4
"""The highest grade for lambdarank, which needs whole numbers: shares of clicks are scaled to it."""


class Grown(NamedTuple):
    """Trees and the names of their features, or the weights of the parts instead, and lines for the user."""

    forest: Forest | None
    feature_names: tuple[str, ...]
    weights: tuple[float, ...]
    note: str


@settings
class MartSettings(Printed, Text, Seeded):
    printed: ClassVar[Mapping[str, Any]] = {
        "objective": "regression", "features": "scores", "feature_share": 1.0, "row_share": 1.0, "forests": 1,
    }  # fmt: skip

    objective: str = setting(
        "lambdarank",
        "learn the order of lists (lambdarank), or each grade by regression, as 13 does",
        choices=("lambdarank", "regression"),
        group="13",
    )
    trees: int = setting(200, "number of trees", 1, 100_000)
    learning_rate: float = setting(0.08, "how much each tree contributes", 1e-6, 10)
    leaves: int = setting(7, "leaves of a tree", 2, 100_000)
    leaf_rows: int = setting(20, "minimum documents in a leaf", 1, 1e9, group=ADVANCED)
    feature_share: float = setting(0.3, "share of the features that each tree sees", 0.001, 1, group=ADVANCED)
    row_share: float = setting(0.7, "share of the documents that each tree learns from", 0.001, 1, group=ADVANCED)
    forests: int = setting(3, "forests that are added up, each with random draws of its own", 1, 1000, group=ADVANCED)
    monotone: bool = setting(False, "a higher score of a part may never lower the result", group=ADVANCED)
    folds: int = setting(5, "parts for cross-fitting", 2, 100, group=ADVANCED)
    max_lists: int = setting(
        20_000, "the most lists that trees learn from; if there are more, a sample is used", 50, 1e9, group=ADVANCED
    )
    features: str = setting(
        "all", "the parts' scores with text and clicks, or only the scores, as 13 does", choices=("all", "scores"),
        group="13",
    )  # fmt: skip


def grow(s: MartSettings, spec: str, parts: Sequence[str], blocks: Sequence[Block]) -> Grown:
    """Grows trees from cross-fitted features. If they rank worse than the plain sum of the parts on lists that neither
    has learned from, the weights of the sum are returned instead."""
    n_lists = sum(len(block.lengths) for block in blocks)
    if n_lists < MIN_USABLE:
        few = few_held(n_lists, "list", "for trees", "parts count equally")
        return Grown(None, (), (), said_by(spec, few))
    whole = joined(blocks)
    found, said = against_sum(s, parts, whole) if s.features == "all" else (None, "")
    if found is not None and found.lost:
        weights = learn_weights(whole, parts)
        words = ", ".join(f"{part}:{w:.3g}" for part, w in zip(parts, weights, strict=True))
        return Grown(None, (), weights, f"{spec}: {said}; the sum's order stays, {words}")
    kept = f"{s.forests * s.trees} trees from {n_lists:,} cross-fitted lists, {len(whole.names)} features"
    return Grown(train(s, parts, whole, s.forests), tuple(whole.names), (), f"{spec}: {kept}{said and f'; {said}'}")


def against_sum(s: MartSettings, parts: Sequence[str], block: Block) -> tuple[Judged | None, str]:
    """Measures one forest and the plain sum of the parts, both learned from most lists, on every fifth list, or on more
    if that is too few."""
    n_lists = len(block.lengths)
    if n_lists < 2 * MIN_USABLE:
        return None, ""
    judges = np.arange(n_lists) % min(JUDGED, n_lists // MIN_USABLE) == 0
    learned, others = block.take(~judges), block.take(judges)
    lists, columns = part_columns_of(others, parts)
    plain = plain_sum(lists, parts, learn_weights(learned, parts), columns)
    found = judged(others, train(s, parts, learned, 1).predict(others.x), plain)
    said = f"nDCG@5 {found.trees:.4f} on {len(others.lengths):,} of them not learned from, the plain sum of its parts"
    return found, f"{said} {found.plain:.4f} (± {found.error:.4f})"


def train(s: MartSettings, parts: Sequence[str], block: Block, forests: int) -> Forest:
    """The sum of several forests with different random seeds. What one learned by chance, the others did not."""
    names, x, labels, lengths, asked = block
    lightgbm, ranking = lightgbm_module(), s.objective == "lambdarank"
    parameters = {
        "objective": s.objective,
        "learning_rate": s.learning_rate,
        "num_leaves": s.leaves,
        "min_data_in_leaf": s.leaf_rows,
        "feature_fraction": s.feature_share,
        "bagging_fraction": s.row_share,
        "bagging_freq": int(s.row_share < 1),
        "deterministic": True,
        "force_row_wise": True,
        "verbose": -1,
    }
    if s.monotone:
        parameters["monotone_constraints"] = [int(name in parts) for name in names]
    grades = np.ceil(GRADES * labels) if ranking and (labels % 1).any() else labels
    # A search that was made a hundred times counts more than one made once, but not a hundred times as much.
    heard = np.log1p(asked)
    weights = np.repeat(heard / heard.mean(), lengths)
    grown = []
    for number in range(forests):
        data = lightgbm.Dataset(x, grades, weight=weights, group=lengths if ranking else None)
        one = lightgbm.train({**parameters, "seed": s.seed + number}, data, s.trees)
        grown.append(Forest.of_text(one.model_to_string()))
    return Forest.together(grown)


def lightgbm_module() -> Any:
    try:
        import lightgbm
    except ImportError:
        raise MissingPart("mart needs LightGBM: pip install 'clickbridge[mart]'") from None
    return lightgbm
