"""The tables of 09: ranks of clicked results before and after, by groups, and which clicks they are made of."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from clickbridge import ClickGraph
from clickbridge.evaluate.reproduction import paper09
from clickbridge.evaluate.reproduction.bench import Data
from clickbridge.evaluate.reproduction.lab import Lab, clicks_up_to
from clickbridge.online.groups import rank_groups
from clickbridge.types import Impression


def test_rank_groups_by_hand() -> None:
    shown = [f"d{n}" for n in range(1, 21)]
    pages = [Impression("q", shown, ["d2", "d7"]), Impression("q", shown, ["d15"])]
    turned = paper09.moved(pages, lambda lists: [[*reversed(r.results)] for r in lists])
    found = {row.group: paper09._of_order(row) for row in rank_groups(turned)}
    # Rank 2 becomes 19, 7 becomes 14, 15 becomes 6.
    assert found["1-5"] == (-17.0, 0.0, 100.0, 1)
    assert found["6-20"] == (1.0, 50.0, 50.0, 2)
    assert found["6-10"] == (-7.0, 0.0, 100.0, 1)
    assert found["11-20"] == (9.0, 100.0, 0.0, 1)
    same = {row.group: row for row in rank_groups(paper09.moved(pages, paper09.as_shown))}
    assert paper09._of_order(same["6-20"]) == (0.0, 0.0, 0.0, 2)
    # A random order: rank 10.5 on average; 1 of 20 ranks is better than 2, and 18 are worse.
    assert paper09._of_random(same["1-5"]) == pytest.approx((2 - 10.5, 5.0, 90.0, 1))
    assert [p.clicks for p in clicks_up_to(pages, 5)] == [["d2"], []]
    assert [p.clicks for p in pages] == [["d2", "d7"], ["d15"]]


def test_counts_order_by_the_clicks_of_the_same_query() -> None:
    taught = [Impression("", ["a", "b", "c"], ["c"], "1"), Impression("", ["a", "b", "c"], ["b", "c"], "1"),
              Impression("", ["a", "b"], ["b"], "2")]  # fmt: skip
    rerank = paper09.by_counts(ClickGraph.build(taught))
    later = [Impression("", ["a", "b", "c"], ["c", "elsewhere"], name) for name in ("1", "2", "new")]
    assert rerank(paper09.lists_of(later)) == [["c", "b", "a"], ["b", "a", "c"], ["a", "b", "c"]]
    assert [m.after for m in paper09.moved(later, rerank)] == [1, 3, 3]


def write_clara2(folder: Path) -> None:
    """40 searches of two queries known by id; the third result is clicked, by the later ones as well. Not in time."""
    (folder / "clara2").mkdir()
    lines = [
        {"query_id": f"q{n % 2}", "time": n, "results": [f"d{n % 2}.{i}" for i in range(10)],
         "clicks": [f"d{n % 2}.{2 if n % 4 < 2 else 7}"]} for n in range(40)
    ]  # fmt: skip
    with gzip.open(folder / "clara2" / "log.jsonl.gz", "wt") as file:
        file.write("".join(json.dumps(line) + "\n" for line in reversed(lines)))


def test_f_as_printed_learns_from_clicks_on_selected_pages_and_is_measured_on_them() -> None:
    """09, Section 4: "often" is on twelve lists; each query's own page, which draws most clicks, is on one."""
    pages = [
        Impression(f"q{n}", [f"own{n}", "often", "too"], [f"own{n}", "often"] if n % 3 else [f"own{n}"])
        for n in range(12)
    ]
    setting = paper09.Condition(
        Data("made up", "", ClickGraph.build(pages), {}), pages, (paper09.PRINTED,), ((1, 5),), ""
    )
    own = paper09.of_selected(setting)
    assert own is not None
    assert [page.clicks for page in own.pages] == [["often"]] * 8
    moves = paper09.order_moves(setting, paper09.PRINTED)
    assert [move[:2] for move in moves] == [(2, 1)] * 8
    assert len(paper09.order_moves(setting, paper09.RANDOM)) == 20
    assert paper09.of_selected(setting, 13) is None


def test_rank_groups_on_a_log_without_text(tmp_path: Path) -> None:
    """Clicks at ranks 3 and 8 teach, so counts put both on top. No rank beyond 10, so no group of such."""
    write_clara2(tmp_path)
    setting = paper09.clara2(Lab(tmp_path, 0.003, 30, quick=True, real=tmp_path))
    assert setting is not None
    found = {t.title.split(": ")[1]: t for t in paper09.rank_tables(setting)}
    assert list(found) == ["online, as printed", "online", "walk", "click counts", "random order"]
    assert "28 pages teach, 12 later ones have a click" in found["walk"].data
    printed = found.pop("online, as printed").rows
    assert [(row.label, row.ours[0]) for row in printed] == [(r, paper09.NONE_SELECTED) for r in ("1~5", "6~10")]
    assert printed[1].paper == (0.7924, 62.8, 32.6)
    for table in found.values():
        assert [row.label for row in table.rows] == ["1~5", "6~10", "all"]
        assert [row.ours[3] for row in table.rows] == [6, 6, 12]
    counts = found["click counts"].rows
    # Each click stood 3rd or 8th, and both are equally often clicked: 3rd to 1st, 8th to 2nd.
    assert [row.ours[:3] for row in counts] == [(2.0, 100.0, 0.0), (6.0, 100.0, 0.0), (4.0, 100.0, 0.0)]
    assert found["walk"].rows[0].ours == counts[0].ours
    assert found["random order"].rows[0].ours[0] == pytest.approx(3 - 5.5)
    assert found["online"].rows[1].paper == ()
    assert float(str(found["online"].rows[2].ours[0])) >= 0
    timed = paper09.time_table(setting.data, setting.pages)
    assert all(float(str(row.ours[0])) > 0 for row in timed.rows)
    again = {t.title.split(": ")[1]: t for t in paper09.rank_tables(setting)}
    assert again["online"].rows == found["online"].rows  # what it learned for its times, it learned aside
