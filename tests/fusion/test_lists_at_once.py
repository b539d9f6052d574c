"""Work over many lists, shared out to threads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from clickbridge.engines.local import Local
from clickbridge.fusion.lists_at_once import LISTS_AT_ONCE, over_lists
from clickbridge.models.candidates import Candidates, Query
from clickbridge.numerics.ragged import Ragged


@pytest.mark.parametrize("engine", [None, Local(threads=1), Local(threads=3)], ids=repr)
@pytest.mark.parametrize("n", [0, 1, LISTS_AT_ONCE, 5 * LISTS_AT_ONCE + 7])
def test_every_list_is_worked_on_once(engine: Local | None, n: int) -> None:
    flat = Candidates([Query("")] * n, Ragged(np.zeros(n + 1, dtype=np.int64)), np.empty(0, dtype=np.int64))
    seen: np.ndarray[Any, Any] = np.zeros(n, dtype=int)
    lock = threading.Lock()

    def work(start: int, stop: int) -> None:
        assert 0 < stop - start <= LISTS_AT_ONCE
        with lock:
            seen[start:stop] += 1

    over_lists(flat, engine, work)
    assert (seen == 1).all()
