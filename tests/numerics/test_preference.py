"""Preference pairs of pages, against each rule in its own words."""

from __future__ import annotations

import numpy as np
import pytest

from clickbridge.log.preference import PAGE_RULES
from clickbridge.numerics.preference import pairs_of_pages
from oracles.skernel import pairs_by_rule

PAGES = [[0, 1, 0, 0, 1], [1], [0, 0], [], [1, 1], [0, 0, 1, 0], [1, 0, 0, 0]]


@pytest.mark.parametrize("rule", PAGE_RULES)
def test_pages_by_rule(rule: str) -> None:
    indptr = np.cumsum([0, *map(len, PAGES)])
    clicked = np.concatenate([np.array(page, dtype=np.uint8) for page in PAGES])
    better, worse = pairs_of_pages(indptr, clicked, PAGE_RULES[rule])
    wanted = {(s + i, s + j) for s, page in zip(indptr, PAGES, strict=False) for i, j in pairs_by_rule(rule, page)}
    assert set(zip(better.tolist(), worse.tolist(), strict=True)) == wanted
    assert len(better) == len(wanted)


def test_no_page() -> None:
    for indptr in ([0], [0, 0]):
        better, worse = pairs_of_pages(np.array(indptr), np.empty(0, dtype=np.uint8), 0)
        assert len(better) == len(worse) == 0
