"""Tables as the papers have them: layout, order agreement, missing models; and real runs, small."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from scipy.stats import ttest_1samp

from clickbridge import RMLS, SSI, ClickGraph
from clickbridge.errors import InputError, SettingError
from clickbridge.evaluate.reproduction import (
    claims,
    claims_of_13,
    paper11m,
    paper13,
    rmls_runs,
)
from clickbridge.evaluate.reproduction.bench import KEPT_FITS, NO_SCORE, NOT_HERE, Data, Trial, taken
from clickbridge.evaluate.reproduction.claims import CLAIMS
from clickbridge.evaluate.reproduction.lab import Lab
from clickbridge.evaluate.reproduction.paper_table import Table, TableRow
from clickbridge.evaluate.reproduction.parts import Part, Parts
from clickbridge.evaluate.reproduction.relevance_rows import (
    Line,
    bins_table,
    relevance_table,
)
from clickbridge.evaluate.reproduction.run import TABLES, chosen, reproduce
from clickbridge.evaluate.reproduction.run_folder import Files, escaped, markdown
from clickbridge.evaluate.reproduction.shelf import Shelf
from clickbridge.models.specs import parse_spec
from clickbridge.types import Impression, ResultList

SMALL: dict[str, Any] = {"fraction": 0.003, "dim": 30, "quick": True}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("lab"), **SMALL)


def example() -> Table:
    rows = [TableRow("a", (0.5, 9), (0.4,)), TableRow("b", ("not here", None), (0.3,)), TableRow("c", (0.7, 1), (0.2,)),
            TableRow("d", (0.1, 2), (0.1,))]  # fmt: skip
    return Table("13-2", "title", "data", ("x", "n"), rows)


def test_published_figures_stand_beside_ours() -> None:
    table = example()
    assert table.header() == ["", "x", "n", "13: x"]
    assert table.cells()[:2] == [["a", 0.5, 9, 0.4], ["b", "not here", None, 0.3]]
    stacked = Table("13-6", "", "", ("x",), [TableRow("a", (0.5,), (0.4,)), TableRow("b", (0.6,))], stacked=True)
    assert stacked.header() == ["", "x"]
    assert stacked.cells() == [["a", 0.5], ["  13: a", 0.4], ["b", 0.6]]


def test_order_agreement_counts_models_that_both_have() -> None:
    """a and c are exchanged, the other two of three pairs agree: tau = (2 - 1) / 3."""
    tau, n = example().agreement(0) or (None, None)
    assert tau == pytest.approx(1 / 3)
    assert n == 3
    assert "about 2 of 3 pairs agree" in example().agreement_note(0)
    alike = Table("k", "t", "d", ("MAP",), [TableRow(name, (0.5,), (float(n),)) for n, name in enumerate("abc")])
    assert alike.agreement(0) is None
    assert "too few models that differ here" in alike.agreement_note(0)
    assert "too few" in example().agreement_note(1)


def test_files(tmp_path: Path) -> None:
    table = Table("11M-F3", "", "", ("x",), [TableRow("a", (0.5,))], svg="<svg/>")
    files = Files(tmp_path, "clickbridge reproduce", str)
    files.add(table)
    files.add(table)
    names = ["11M-F3-1.csv", "11M-F3-1.svg", "11M-F3.csv", "11M-F3.svg", "tables.md"]
    assert sorted(p.name for p in tmp_path.iterdir()) == names
    assert list(csv.reader((tmp_path / "11M-F3.csv").read_text().splitlines())) == [["", "x"], ["a", "0.5"]]
    page = (tmp_path / "tables.md").read_text()
    assert page.startswith("Made by `clickbridge reproduce`.\n\n## 11M-F3")
    assert [line for line in page.splitlines() if "svg" in line] == ["![](11M-F3.svg)", "![](11M-F3-1.svg)"]
    Files(tmp_path, "again", str)
    assert (tmp_path / "tables.md").read_text() == "Made by `again`.\n"


def test_parts_come_back_to_the_same_run_alone(tmp_path: Path) -> None:
    table = replace(example(), notes=["a note"], svg="<svg/>")
    part = Part([table], [TableRow("13 Table 2: a claim", ("one-week", "holds", ".8 against .7", "", ""))], 2.5)
    assert Parts(Shelf(tmp_path / "parts", {"dim": 3})).read("13-2") is None
    first = Parts(Shelf(tmp_path / "parts", {"dim": 3, "real": ("msrd",)}))
    first.add("13-2", part)
    again = Parts(Shelf(tmp_path / "parts", {"dim": 3, "real": ("msrd",)}))
    assert again.read("13-2") == part
    assert first.seconds == again.seconds == {"13-2": 2.5}
    assert Parts(Shelf(tmp_path / "parts", {"dim": 4, "real": ("msrd",)})).read("13-2") is None
    assert Parts().read("13-2") is None
    (tmp_path / "parts" / "13-2.json").write_text("{")
    with pytest.raises(InputError, match=r"13-2\.json is not a part .* remove it"):
        again.read("13-2")


def test_a_run_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first table is kept with its claims; the second, which failed half-way, is made again."""
    made: list[str] = []

    def one(key: str, fails: bool) -> Callable[[Lab], Iterator[Table]]:
        def tables(lab: Lab) -> Iterator[Table]:
            made.append(key)
            yield replace(example(), key=key)
            if fails:
                raise KeyboardInterrupt

        return tables

    monkeypatch.setattr(claims, "judged", lambda lab, key: [TableRow(f"claim of {key}", ())])
    lab = Lab(tmp_path, **SMALL)
    for fails in (True, False):
        monkeypatch.setitem(TABLES, "13-2", one("13-2", False))
        monkeypatch.setitem(TABLES, "13-6", one("13-6", fails))
        found = reproduce(["13-2", "13-6"], lab, Parts(Shelf(tmp_path / "parts", lab.run)))
        if fails:
            with pytest.raises(KeyboardInterrupt):
                list(found)
    *tables, judged = found
    assert [table.key for table in tables] == ["13-2", "13-6"]
    assert [row.label for row in judged.rows] == ["claim of 13-2", "claim of 13-6"]
    assert made == ["13-2", "13-6", "13-6"]


def test_a_table_in_markdown() -> None:
    table = replace(
        example(), notes=["1~5 teach | 6~20 is <the> *test*"], rows=[*example().rows, TableRow("__init__", ())]
    )
    assert markdown(table, lambda cell: "-" if cell is None else str(cell), "") == (
        "## 13-2: title\n\ndata\n\n"
        "|  | x | n | 13: x |\n| --- | ---: | ---: | ---: |\n"
        "| a | 0.5 | 9 | 0.4 |\n| b | not here | - | 0.3 |\n| c | 0.7 | 1 | 0.2 |\n| d | 0.1 | 2 | 0.1 |\n"
        "| \\_\\_init\\_\\_ | - | - | - |\n\n"
        "- 1\\~5 teach \\| 6\\~20 is \\<the> \\*test\\*\n"
    )
    assert escaped("LSI_qd+BM25 <=10 <.001") == "LSI_qd+BM25 <=10 <.001"


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1))
def test_any_text_comes_through_markdown(text: str) -> None:
    """As another program reads it: in a cell, in a note, and never as more than text."""
    table = Table("11R-3", "t", "d", (text,), [TableRow(f"a {text}", (text,))], [f"n {text}"])
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown(table, str, ""))
    inline = [token.children or [] for token in tokens if token.type == "inline"]
    assert {child.type for children in inline for child in children} <= {"text", "text_special"}
    plain, words = " ".join(text.split()), ["".join(child.content for child in children) for children in inline]
    assert words == ["11R-3: t", "d", "", plain, f"a {plain}".strip(), plain, f"n {plain}".strip()]


def test_tables_are_chosen_by_key_or_paper() -> None:
    assert chosen([]) == list(TABLES)
    assert chosen(["12"]) == ["12-2", "12-3"]
    found = chosen(["13-2", "13"])
    assert found[:3] == ["13-2", "13-1", "13-3"]
    assert {key.split("-")[0] for key in found} == {"13"}
    with pytest.raises(SettingError, match="no table '99'"):
        chosen(["99"])


def test_published_tables_name_the_same_models() -> None:
    """The same rows in all tables of one data set, and 12's nDCG is 13's where both printed the one-week run."""
    by_label = {line.label: line.paper for line in paper13.ONE_WEEK}
    assert set(paper13.BINS_ONE_WEEK) == set(by_label)
    assert {line.label for line in paper13.HALF_YEAR} == set(paper13.BINS_HALF_YEAR)
    for label, figures in paper13.ONE_WEEK_12.items():
        assert figures[1:] == by_label[label]
    assert {len(figures) for figures in paper13.BINS_ONE_WEEK.values()} == {12}
    assert [line.label for line in paper11m.WEB] == [line.label for line in paper11m.ENTERPRISE]


def small_data(graph: ClickGraph) -> Data:
    lists = [
        ResultList("1", "ny pizza", ["rome", "pizza", "ny"], [0.0, 4.0, 2.0]),
        ResultList("2", "eternal city", ["ny", "rome"], [0.0, 3.0]),
    ]
    new = [ResultList("3", "a slice of pizza", ["rome", "pizza"], [0.0, 4.0])]
    return Data("small", "five documents", graph, {"seen": lists, "unseen": new}, settings={"dim": 4})


def test_models_that_are_not_there_or_cannot_say_so(small_graph: ClickGraph) -> None:
    data = small_data(small_graph)
    lines = [
        Line("BM25", "bm25", (0.6, 0.6, 0.6)),
        Line("RW", "walk", (0.5, 0.5, 0.5)),
        Line("New", "nosuch", (0.4,) * 3),
    ]
    table = relevance_table("13-2", "t", data, lines, with_map=True)
    assert table.columns == ("MAP", "nDCG@1", "nDCG@3", "nDCG@5", "unseen nDCG@5", "p vs BM25", "fit CPU s")
    bm25, walk, absent = table.rows
    assert bm25.ours[0] == 1.0
    assert isinstance(bm25.ours[4], float)
    assert walk.ours[4] == NO_SCORE
    assert absent.ours[0] == NOT_HERE
    assert [row.ours[5] for row in table.rows] == [None, ".500", None]
    bins = bins_table("13-6", "t", data, [Line("BM25", "bm25", (0.5,) * 12)])
    assert bins.notes == ["queries by clicks: <=10: 2, <=100: 0, <=1000: 0, >1000: 0"]
    assert bins.rows[0].ours[3:] == (None,) * 9


def test_significance_stands_beside_the_figures(small_graph: ClickGraph) -> None:
    """BM25 has five lists right, the given order one of them. Of two equal p-values Holm doubles both."""
    lists = [ResultList(str(n), "pizza", ["bagel", "pizza"], [0.0, 4.0]) for n in range(5)]
    lists[0] = ResultList("0", "bagels", ["bagel", "pizza"], [4.0, 0.0])
    data = Data("small", "", small_graph, {"seen": lists, "unseen": lists})
    lines = [Line("Given", "given", ()), Line("Again", "given", ()), Line("BM25", "bm25", ())]
    found = relevance_table("13-2", "t", data, lines, with_map=False)
    loss = np.array([0.0, *[1 / np.log2(3) - 1] * 4])
    p = min(1.0, 2 * ttest_1samp(loss, 0.0).pvalue)
    assert found.columns[3] == "p vs BM25"
    assert [row.ours[3] for row in found.rows] == [f"{p:.3f}".removeprefix("0") + " ▼"] * 2 + [None]
    alone = relevance_table("13-4", "t", data, [Line("None", "nosuch", ()), *lines[:1]], with_map=False)
    assert alone.columns[3] == "p vs None"
    assert [row.ours[3] for row in alone.rows] == [None, None]
    (_, bm25) = relevance_table("13-4", "t", data, [lines[0], Line("B", "vsm", ())], with_map=False).rows
    assert str(bm25.ours[3]).endswith("▲")


def test_a_model_is_fitted_once(small_graph: ClickGraph) -> None:
    data = small_data(small_graph)
    first = data.fit("pls", {"views": "word"})
    assert data.fit("pls", {"views": "word"}) is first
    assert data.fit("pls", {"views": "word,click"}) is not first
    no_text = ClickGraph.build([Impression("a", ["x", "y"], ["x"])])
    assert "text" in Data("bare", "", no_text, {}).fit("bm25").why


def test_rows_as_printed_have_no_limit(small_graph: ClickGraph, tmp_path: Path) -> None:
    """13 tuned the number of passes of SSI and SVDFeature: only our rows have a limit. A quick run limits both."""
    data = replace(small_data(small_graph), limits={"ssi.epochs": 2})
    ours, printed = (data.fit("ssi", own).model for own in ({}, {"as_printed": True}))
    assert ours is not None
    assert printed is not None
    assert ours.settings.epochs == 2
    assert printed.settings.epochs == SSI().settings.epochs
    full, quick = (Lab(tmp_path, 0.1, 100, quick=short) for short in (False, True))
    assert set(full.limits) == {"ssi.epochs", "svdfeature.epochs"}
    assert full.limits.keys().isdisjoint(full.sizes)
    assert full.limits.keys() <= quick.sizes.keys()
    assert not quick.limits
    assert full.run["limits"] == full.limits


def test_learning_is_timed_without_tuning(small_graph: ClickGraph) -> None:
    """13 gives the time to learn the best model, not the time to find it."""
    data = small_data(small_graph)
    rmls, fitted = data.trial("rmls", {"as_printed": True}), data.fit("rmls", {"as_printed": True})
    assert 0 < rmls.learning <= rmls.seconds
    assert (fitted.learning, fitted.seconds) == (rmls.learning, rmls.seconds)
    trials = {"rmls": Trial(9.0, {"seen": "x"}, learning=1.0), "pls": Trial(30.0, {"seen": "x"}, learning=30.0)}
    data.trial = lambda spec, settings: trials[spec]  # type: ignore[method-assign, assignment]
    rule = claims_of_13.seconds(claims_of_13.WEEK, claims_of_13.OWN, "")
    found = rule(data, False)
    assert found.word == "holds"
    assert found.figures.startswith("1.0 s and 30.0 s of processor time, with tuning 9.0 s and 30.0 s")
    trials["pls"] = Trial(3.0, {"seen": "x"}, learning=3.0)
    assert rule(data, False).word == "fails", "three times is not far less"


def test_threads_are_timed_after_compilation(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run of all takes an hour here, every other a second: no number of threads may show the hour."""
    clock, hours = [0.0], [3600.0]
    chosen = rmls_runs.RMLSChoices(field_weights={}, groups=(), iterations=1)

    def learn(model: Any, study: Any, choices: Any) -> None:
        clock[0] += hours.pop() if hours else 1.0

    monkeypatch.setattr(rmls_runs.RMLS, "learn", learn)
    monkeypatch.setattr(rmls_runs.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(rmls_runs, "_chosen", lambda data, settings: (RMLS(), chosen))
    assert {timed.wall for timed in rmls_runs._timed(lab.simulated("one-week"), {}).values()} == {1.0}


def test_threads_are_not_compared_on_a_busy_machine() -> None:
    """One thread that waits seven seconds of eight says nothing of two threads."""
    two = rmls_runs.Timed(1.0, 1.8)
    assert claims_of_13._speed_up({1: rmls_runs.Timed(8.0, 1.0), 2: two}).word == "not tested"
    assert claims_of_13._speed_up({1: rmls_runs.Timed(1.8, 1.7), 2: two}).word == "holds"
    assert claims_of_13._speed_up({1: rmls_runs.Timed(1.1, 1.1), 2: two}).word == "fails"
    assert claims_of_13._speed_up({1: rmls_runs.Timed(1.1, 1.1)}).word == "not tested"


def test_models_go_and_what_they_measured_stays(
    small_graph: ClickGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that goes on reads the figures of the models it had; another run, of other settings, does not."""

    def data(**run: object) -> Data:
        return replace(small_data(small_graph), shelf=Shelf(tmp_path, run))

    first = data(dim=2)
    found = first.trial("bm25", {})
    for spec in ("vsm", "given", "lmir"):
        first.trial(spec)
    assert len(first._fits) == KEPT_FITS
    assert first.trial("nosuch").why == first.values("nosuch") == NOT_HERE
    monkeypatch.setattr(Data, "_fit", lambda *_: pytest.fail("fitted again"))
    assert first.trial("bm25") is found
    assert data(dim=2).trial("bm25") == found
    assert data(dim=2).values("nosuch") == NOT_HERE
    with pytest.raises(pytest.fail.Exception, match="fitted again"):
        data(dim=3).trial("bm25")


def test_settings_go_where_they_fit() -> None:
    wanted = {"dim": 5, "pls.views": "word", "rmls.views": "word", "weights": "1,2", "nonsense": 1}
    assert taken(parse_spec("bm25"), wanted) == {}
    assert taken(parse_spec("pls"), wanted) == {"dim": 5, "pls.views": "word"}
    assert taken(parse_spec("bm25+pls"), wanted) == {"dim": 5, "pls.views": "word", "weights": "1,2"}


def test_tables_on_a_small_simulated_log(lab: Lab) -> None:
    """Figures are figures, the published ones stand beside, and a second run gives the same."""
    found = {t.key: t for t in reproduce(["13-2", "13-6", "11M-2", "11M-F4", "11M-F5"], lab)}
    models = {row.label: row for row in found["13-2"].rows}
    for label in ("PLS, as printed", "PLS, ours", "RW", "LSI_qd", "LSI_dt, as printed", "BM25, ours"):
        assert 0 < float(str(models[label].ours[0])) <= 1
    assert models["PLS, as printed"].paper == (0.676, 0.728, 0.736)
    assert models["PLS, ours"].paper == ()
    assert "Kendall tau" in found["13-2"].notes[0]
    assert found["11M-F4"].svg is not None
    assert "<svg" in found["11M-F4"].svg
    for row in found["11M-F5"].rows:
        assert sum(float(str(share)) for share in row.ours[:3]) == pytest.approx(1.0, abs=1e-3)
    again = Lab(lab.folder / "again", **SMALL)
    first, tests, claims = reproduce(["13-2"], again)
    assert [row.ours[:4] for row in first.rows] == [row.ours[:4] for row in found["13-2"].rows]
    assert tests.columns == ("RMLS, as printed", "RMLS, ours", "PLS, as printed", "PLS, ours")
    own = dict(zip(tests.columns, tests.rows[0].ours, strict=True))
    assert tests.rows[0].label == "RMLS, as printed"
    assert own["RMLS, as printed"] is None
    gain = np.mean([*again.simulated("one-week").values("pls", {"as_printed": True})["nDCG@5"].values()])  # type: ignore[index]
    gain -= float(str(first.rows[0].ours[2]))
    assert str(own["PLS, as printed"]).startswith(f"{gain:+.3f}, p ")
    assert {row.ours[1] for row in claims.rows} <= {"holds", "fails", "not significant", "not tested"}
    assert any(row.label.startswith("13 Table 2: RMLS is as good as PLS") for row in claims.rows)


def test_threads_and_passes_of_rmls(lab: Lab) -> None:
    """13's Figure 2 and its passes, with the claims that belong to them."""
    found = {t.key: t for t in reproduce(["13-F2", "13-passes"], lab)}
    one, *_, twenty = found["13-F2"].rows
    assert all(float(str(seconds)) > 0 for seconds in one.ours)
    assert (one.paper, twenty.paper) == ((1380,), (277,))
    labels = [row.label for row in found["13-passes"].rows]
    assert "as printed, pass 1" in labels
    assert "ours, pass 2" in labels
    assert any(row.label.startswith("13 6.2: RMLS needs few passes") for row in found["claims"].rows)


@pytest.mark.parametrize("key", sorted(TABLES))
def test_every_table_can_be_made(lab: Lab, key: str) -> None:
    """On a small log: it has figures, and its claims have verdicts."""
    first, *rest = reproduce([key], lab)
    assert first.key == key
    assert any(cell not in (None, "") for row in first.rows for cell in row.ours)
    words = {row.ours[1] for table in rest if table.key == "claims" for row in table.rows}
    assert words <= {"holds", "fails", "not significant", "not tested"}
    if key != "13-F2":  # threads are compared where the machine has nothing else to do
        assert bool(words) == any(claim.table == key for claim in CLAIMS)


def test_real_data_joins_where_it_is(lab: Lab, tmp_path: Path) -> None:
    assert lab.msrd is None
    assert lab.clara2 is None
    assert [d.name for d in lab.relevance_sets("one-week")] == ["one-week"]
    assert Lab(tmp_path, **SMALL, real=tmp_path).bestbuy is None
