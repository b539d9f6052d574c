"""A score as a sum over feature pairs: the strongest ones, their shares, and what taught them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clickbridge.types import Explanation, FeaturePair

Part = tuple[str, str, float, tuple[str, ...]]
"""Query feature, document feature, contribution, what taught the pair."""


def explanation(query: str, doc_id: str, parts: Iterable[Part], k: int, rest: float = 0.0) -> Explanation:
    """The k parts of largest size; shares are of the summed sizes, so that they stay between 0 and 1 where
    contributions of both signs cancel."""
    ordered = sorted(parts, key=lambda part: -abs(part[2]))
    score = float(sum(value for _, _, value, _ in ordered) + rest)
    size = sum(abs(value) for _, _, value, _ in ordered) + abs(rest) or 1.0
    pairs = tuple(
        FeaturePair(one, two, float(value), float(abs(value) / size), taught) for one, two, value, taught in ordered[:k]
    )
    return Explanation(query, doc_id, score, pairs, score - float(sum(pair.contribution for pair in pairs)))


def merge(query: str, doc_id: str, parts: Sequence[tuple[str, float, Explanation]], k: int) -> Explanation:
    """The explanation of a weighted sum from those of its parts; features are marked with their model."""
    pairs: list[Part] = []
    rest = 0.0
    for name, weight, part in parts:
        rest += weight * part.rest
        pairs += [
            (f"{name} {p.query_feature}", p.doc_feature, weight * p.contribution, p.taught_by) for p in part.pairs
        ]
    return explanation(query, doc_id, pairs, k, rest)
