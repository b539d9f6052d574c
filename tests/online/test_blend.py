"""The blend: rates by rank, and how far to trust what was learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clickbridge.errors import SettingError
from clickbridge.numerics.ragged import Ragged
from clickbridge.online.blend import Blend, ClickedLists, Tried, gentlest, learn_blend, log_rates

Array = np.ndarray[Any, Any]
FALLBACK = Blend(0.0, 0.2, 4.0)


def lists_with(n: int, clicked_place: int, length: int = 5) -> ClickedLists:
    clicked = np.tile(np.arange(length) == clicked_place, n).astype(float)
    prior = np.tile(-np.log(np.arange(1.0, length + 1)), n)
    return ClickedLists(Ragged(np.arange(n + 1) * length), clicked, prior, np.ones(n))


def signal(n: int, place: int, length: int = 5, lists: float = 1.0) -> Array:
    """1 at one place of the first `lists` of all lists."""
    out = np.tile(np.arange(length) == place, n).astype(float)
    out[int(n * lists) * length :] = 0.0
    return out


def test_ranks_by_score_ties_as_they_came() -> None:
    t = ClickedLists(Ragged(np.array([0, 3, 5])), np.array([0, 0, 1.0, 1, 0]), np.zeros(5), np.array([1.0, 3.0]))
    ranks = t.ranks(np.array([1.0, 1.0, 2.0, 0.0, 0.0]))
    assert ranks.tolist() == [2, 3, 1, 1, 2]
    assert t.of_clicks(ranks).tolist() == [1, 1]
    assert t.mean(np.array([4.0, 8.0]))[0] == 7.0
    assert t.take(np.array([False, True])).ragged.indptr.tolist() == [0, 2]
    assert t.any_in_list(np.array([0, 0, 1.0, 0, 0])).tolist() == [True, False]


def test_what_helps_gets_weight() -> None:
    n = 200
    noise = np.zeros(n * 5)
    own, most, words = learn_blend(lists_with(n, 3), {4.0: (noise, signal(n, 3))}, FALLBACK)
    assert own.own > 0 == own.latent
    assert "mean rank of clicks 4.000 to 1.000" in words
    assert most == 3.0
    # Of new queries, only the latent part knows anything.
    both, _, _ = learn_blend(lists_with(n, 3), {4.0: (signal(n, 3), signal(n, 3, lists=0.5))}, FALLBACK)
    assert both.latent > 0


def test_what_harms_gets_none() -> None:
    n = 200
    found, most, words = learn_blend(lists_with(n, 0), {4.0: (signal(n, 4), signal(n, 4))}, FALLBACK)
    assert (found.latent, found.own) == (0.0, 0.0)
    assert "the incoming order stays" in words
    assert most == 0.0


def test_too_few_lists_take_the_fallback() -> None:
    found, most, words = learn_blend(lists_with(49, 3), {4.0: (signal(49, 3), signal(49, 3))}, FALLBACK)
    assert found == FALLBACK
    assert most == 0.0
    assert words.startswith("49 lists can be held back, 50 are needed to learn the blend")


def test_the_gentlest_within_one_error() -> None:
    far, near, weak = (Blend(x, 0.0, 1.0) for x in (3.0, 2.0, 1.0))
    tried = [Tried(far, 1.0, 0.2, 9.0), Tried(near, 0.85, 0.2, 4.0), Tried(weak, 0.5, 0.2, 1.0)]
    assert gentlest(tried) == (near, 0.85)
    assert gentlest([Tried(far, 0.1, 0.2, 1.0)])[1] == 0.0


def test_no_gain_below_is_paid_for_at_the_top() -> None:
    """Mean rank falls by a third of a place while first clicks move from the first place to the second."""
    tried = [Tried(Blend(1.0, 0.0, 1.0), 0.3, 0.1, 1.0, at_top=-0.01), Tried(Blend(0.5, 0.0, 1.0), 0.2, 0.1, 1.0)]
    assert gentlest(tried)[0].latent == 0.5
    assert gentlest(tried[:1])[1] == 0.0


@pytest.mark.parametrize("text", ["", "1,2", "1,2,0", "a,b,c", "-1,0,1", "1,2,3,4", "nan,0,1"])
def test_blends_that_are_none(text: str) -> None:
    with pytest.raises(SettingError, match=r"blend must be auto, none or latent,own,shrink"):
        Blend.parse(text)
    assert Blend.parse("0.5,0,4") == Blend(0.5, 0.0, 4.0)


def test_below_the_longest_list_rates_go_on_falling() -> None:
    rates = np.array([0.5, 0.2])
    np.testing.assert_allclose(log_rates(rates, np.arange(4)), np.log([0.5, 0.2, 0.2 * 2 / 3, 0.2 * 2 / 4]))
