"""Pairs summed in memory, against the same sums made out of core by ingest."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clickbridge import ClickGraph
from clickbridge.graph.parts import Clicks, Impressions, Pairs, columns, time_or_nan, user_or_zero
from clickbridge.graph.storage import COLUMNS
from clickbridge.graph.sums import sum_pairs
from clickbridge.log.pair_sums import PairSums, connect
from clickbridge.types import PairCount

TIMES = st.sampled_from([np.nan, 0.0, -1.5, 7.25, 1e9])
USERS = st.sampled_from([0, 1, 2, 2**63, 2**64 - 1])


def column(draw: st.DrawFn, dtype: Any, length: int, values: Any) -> Any:
    return draw(hnp.arrays(dtype, length, elements=values))


@st.composite
def pages(draw: st.DrawFn) -> Impressions:
    lengths = draw(st.lists(st.integers(0, 4), max_size=8))
    n, shown = len(lengths), sum(lengths)
    return Impressions(
        column(draw, np.int32, n, st.integers(0, 3)),
        np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
        column(draw, np.int32, shown, st.integers(0, 3) | st.just(2**31 - 1)),
        column(draw, np.uint8, shown, st.integers(0, 1)),
        draw(st.none() | st.just(True)) and column(draw, np.float64, n, TIMES),
        draw(st.none() | st.just(True)) and column(draw, np.uint64, n, USERS),
    )


@st.composite
def singles(draw: st.DrawFn) -> Clicks:
    n = draw(st.integers(0, 10))
    return Clicks(
        column(draw, np.int32, n, st.integers(0, 3) | st.just(2**31 - 1)),
        column(draw, np.int32, n, st.integers(0, 3)),
        column(draw, np.int32, n, st.sampled_from([0, 1, 2, 2**31 - 1])),
        draw(st.none() | st.just(True)) and column(draw, np.float64, n, TIMES),
        draw(st.none() | st.just(True)) and column(draw, np.uint64, n, USERS),
        draw(st.none() | st.just(True)) and column(draw, np.int32, n, st.sampled_from([0, 3, 2**31 - 1])),
    )


def summed_by_ingest(shown: Impressions | None, clicks: Clicks | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        sums = PairSums(connect(Path(folder), 256))
        if shown is not None:
            own = {"query": shown.query, "length": np.diff(shown.indptr), "doc": shown.doc, "clicked": shown.clicked}
            sums.add_pages(own | {"time": time_or_nan(shown), "user": user_or_zero(shown)})
        if clicks is not None:
            stated = np.zeros(len(clicks), np.int32) if clicks.impressions is None else clicks.impressions
            own = {"query": clicks.query, "doc": clicks.doc, "clicks": clicks.clicks, "impressions": stated}
            sums.add_clicks(own | {"time": time_or_nan(clicks), "user": user_or_zero(clicks)})
        table = sums.pairs(1000).read_all()
        return {name: table[name].to_numpy() for name in table.column_names}


@given(st.none() | pages(), st.none() | singles())
@settings(max_examples=60)
def test_both_ways_of_summing_agree(shown: Impressions | None, clicks: Clicks | None) -> None:
    pairs, wanted = sum_pairs(shown, clicks), summed_by_ingest(shown, clicks)
    known = [part for part in (shown, clicks) if part is not None]
    absent = set() if any(part.user is not None for part in known) else {"users"}
    absent |= set() if any(part.time is not None for part in known) else {"first", "last"}
    assert {name for name, values in columns(pairs).items() if values is None} == absent
    for name, values in columns(pairs).items():
        if values is not None:
            np.testing.assert_array_equal(values, wanted[name])
            assert values.dtype == wanted[name].dtype == COLUMNS["pairs"][name]


def test_no_events_no_pairs() -> None:
    assert len(sum_pairs(None, None)) == 0
    assert sum_pairs(None, None).users is None


def test_holding_back_opens_no_database_and_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    log = [PairCount(f"q{i % 9}", f"d{i % 5}", 2, user=f"u{i}", time=float(i)) for i in range(40)]
    graph = ClickGraph.build(log)

    def refused(*args: Any, **more: Any) -> None:
        raise AssertionError("opened")

    monkeypatch.setattr("duckdb.connect", refused)
    for name in ("mkdtemp", "mkstemp", "TemporaryDirectory"):
        monkeypatch.setattr(f"tempfile.{name}", refused)
    for by in ("time", "query", "click"):
        held = graph.hold_back(0.3, by=by)
        assert isinstance(held.clicked, Pairs)
        assert held.graph.pairs.clicks.sum() + held.clicked.clicks.sum() == graph.pairs.clicks.sum()
