"""Several forests over the same models, as 13's Table 4 compares them: each model is fitted once for all."""

from __future__ import annotations

from collections.abc import Sequence

from clickbridge.errors import SettingError
from clickbridge.fusion.crossfit import Block, crossfit
from clickbridge.fusion.mart import Mart
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.models.base import Model


def fit_together(marts: Sequence[Mart], graph: ClickGraph) -> None:
    """What `fit` of each would give. Parts of the same spec and settings become one object, which they share."""
    if len({(mart.folds, mart.seed) for mart in marts}) > 1:
        raise SettingError("forests that share models must have the same folds and seed")
    parts = share_parts(marts)
    blocks: list[list[Block]] = [[] for _ in marts]
    for mart in marts:
        mart.prepare(graph)
    for held in crossfit(parts, graph, marts[0].folds, marts[0].seed):
        for mart, own in zip(marts, blocks, strict=True):
            own += mart.block(held)
    for part in parts:
        part.refit(graph)
    for mart, own in zip(marts, blocks, strict=True):
        mart.lesson = own
        mart.fit(graph)
        mart.lesson = None


def share_parts(marts: Sequence[Mart]) -> list[Model]:
    """All different parts; equal ones are replaced by the first of them."""
    known: dict[tuple[str, str], Model] = {}
    for mart in marts:
        mart.parts = [known.setdefault((part.spec, repr(part.get_params())), part) for part in mart.parts]
    return list(known.values())
