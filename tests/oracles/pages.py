"""Random result pages with clicks, for tests of what learns from them."""

from __future__ import annotations

import numpy as np

from clickbridge.types import Impression


def random_pages(seed: int, n: int, n_docs: int = 30, length: int = 6, users: int = 3) -> list[Impression]:
    """Pages of a dozen queries, each about its own corner of the documents; every page has a click and a miss."""
    rng = np.random.default_rng(seed)
    out = []
    for i in range(n):
        query = int(rng.integers(12))
        shown = rng.permutation(np.unique((query * 2 + rng.integers(0, 9, size=length)) % n_docs))
        clicked = shown[rng.random(len(shown)) < 0.3][: len(shown) - 1]
        clicked = clicked if len(clicked) else shown[:1]
        out.append(
            Impression(
                f"query {query}",
                [f"d{d}" for d in shown],
                [f"d{d}" for d in clicked],
                user=f"u{rng.integers(users)}",
                time=float(i),
            )
        )
    return out
