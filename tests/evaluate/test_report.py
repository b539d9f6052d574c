"""The page: what it says, what it must not hold, and that it is sound HTML and SVG."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from clickbridge.evaluate import plots
from clickbridge.evaluate.report import MEASURE_WORDS, examples, leaders, render, signed, verdict
from clickbridge.evaluate.results import Comparison
from clickbridge.evaluate.significance import p_in_words
from clickbridge.evaluate.similar import PairedPreference
from clickbridge.evaluate.slices import Cell
from clickbridge.measures import MEASURES

SIMILAR = [PairedPreference("pls", "cos-word", 40, 50, 10, 0.0001), PairedPreference("walk", "cos-word", 0, 9, 1, 1.0)]
VOID = {"meta", "link", "br", "path", "use", "rect"}


class Page(HTMLParser):
    """Tables by id, and whether tags close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.open: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.rows = self.tables.setdefault(dict(attrs)["id"] or "", [])
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data.strip()


@pytest.fixture(scope="module")
def page(made: Comparison) -> str:
    return render(made, SIMILAR)


def test_looks_by_rank_are_drawn_where_the_log_has_pages(made: Comparison, page: str) -> None:
    assert 'id="plot-by_rank"' in page
    assert "1,234 pages" in page
    without = render(replace(made, pages=None))
    assert 'id="plot-by_rank"' not in without
    assert "has no result pages" in without


def test_it_stands_alone(page: str) -> None:
    assert len(page) < 2_000_000
    assert page.count("<svg") >= 3
    assert not re.search(r"""(src|href)=["']?(https?:)?//|@import|url\((?!#)|<script|<iframe|<img""", page)
    assert set(re.findall(r"https?://[^\"' <)]+", page)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page


def test_queries_and_notes_are_text_not_markup(page: str) -> None:
    assert "<script>" not in page
    assert "<b>made" not in page
    assert "&lt;b&gt;made&lt;/b&gt; by hand" in page


def test_tables(made: Comparison, page: str) -> None:
    tables = Page(page).tables
    results = tables["table-results"]
    assert results[0][:5] == ["model", "nDCG@1", "nDCG@5", "AP(rel=2)", "no score"]
    assert [row[0] for row in results[1:]] == [m.spec for m in made.ordered]
    best = made["bm25+pls+lmir+cos-click"]
    assert results[1] == [
        best.spec, *(f"{best.mean(name):.3f}{best.paired[name].mark}" for name in made.measures), "–", "1.50", "0.25",
        "300",
    ]  # fmt: skip
    assert next(row for row in results if row[0] == "walk")[4] == "12"
    tests = {row[0]: row for row in tables["table-tests"][1:]}
    assert set(tests) == {m.spec for m in made.models} - {"given"}
    own = best.paired["nDCG@5"]
    assert tests[best.spec][1:3] == [f"{own.difference:+.3f}", f"{own.low:+.3f} to {own.high:+.3f}"]
    assert tests[best.spec][6:] == [str(own.wins), str(own.ties), str(own.losses)]
    assert tables["table-clicks"][0] == ["model", "unseen", "≤10", "≤100", "≤1,000", ">1,000"]
    assert tables["table-clicks"][1] == ["queries", *["12"] * 5]
    assert tables["table-words"][0] == ["model", "no text", "1", "3", "5+"]
    assert tables["table-tail"][1] == ["queries", "36", "24"]
    assert tables["table-dims"] == [["model", "100", "300"], ["pls", "0.500", "0.600"]]
    assert tables["table-similar"][1] == ["pls", "cos-word", "40", "50", "10", "<.001"]
    assert [row[0] for row in tables["table-made"]] == ["command", "date", "note", "nDCG@1, nDCG@5", "AP(rel=2)"]
    assert "lmir is left out: lmir needs document text" in page


def test_every_measure_is_explained() -> None:
    assert set(MEASURE_WORDS) == set(MEASURES)


def test_every_pair_once_in_each_direction(made: Comparison, page: str) -> None:
    head, *rows = Page(page).tables["table-pairs"]
    assert head[1:] == [row[0] for row in rows]
    for i, row in enumerate(rows):
        assert row[i + 1] == "–"
        for j in range(i):
            assert {row[j + 1][0], rows[j][i + 1][0]} <= set("+-0")
            assert row[j + 1].lstrip("+-") == rows[j][i + 1].lstrip("+-")


def test_the_verdict_says_who_and_how_sure(made: Comparison) -> None:
    lines = verdict(made)
    best = made["bm25+pls+lmir+cos-click"]
    assert lines[0] == f"{best.spec} ranks best: nDCG@5 {best.mean('nDCG@5'):.3f} over 60 judged queries."
    assert "a significant difference" in lines[1]
    assert lines[-1] == "No score for some queries, which keep their incoming order: walk for 12."


def test_a_difference_by_chance_is_called_that(made: Comparison) -> None:
    given, best = made["given"], made["bm25+pls+lmir+cos-click"]
    weak = replace(best, paired={"nDCG@5": replace(best.paired["nDCG@5"], p_value=0.4)})
    lines = verdict(replace(made, models=[given, weak]))
    assert "a difference that may be chance" in lines[1]


def test_what_is_close_is_said_to_be(made: Comparison) -> None:
    best = made["bm25+pls+lmir+cos-click"]
    twin = replace(best, spec="twin")
    lines = verdict(replace(made, models=[*made.models, twin]))
    assert any(line.startswith("It is also significantly better than pls") and "twin" not in line for line in lines)
    assert "Its difference from twin may be chance." in lines
    twins = [replace(best, spec=name) for name in ("twin", "second", "third")]
    lines = verdict(replace(made, models=[*made.models, *twins]))
    assert "Its difference from twin, second and third may be chance." in lines


def test_a_baseline_that_is_best_is_marked_as_both(made: Comparison) -> None:
    own = made["bm25+pls+lmir+cos-click"]
    found = replace(made, baseline=own.spec, models=[replace(own, paired={}), made["pls"]])
    assert f'<tr class="best baseline"><td>{own.spec}</td>' in render(found)
    assert verdict(found)[1] == "It is significantly better than pls."


def test_examples_are_where_the_two_differ_most(made: Comparison) -> None:
    best, reference = leaders(made)
    assert (best.spec, reference.spec) == ("bm25+pls+lmir+cos-click", "bm25")
    ours, theirs = best.values["nDCG@5"], reference.values["nDCG@5"]
    gains = sorted((ours[q] - theirs[q] for q in ours), reverse=True)
    found = examples(made, best, reference)
    shown = [e.sides[0].value - e.sides[1].value for e in found["better"]]
    assert shown == pytest.approx(gains[:4])
    assert [e.sides[0].value - e.sides[1].value for e in found["worse"]] == pytest.approx(
        gains[::-1][: len(found["worse"])]
    )
    example = found["better"][0]
    assert [side.spec for side in example.sides] == ["bm25+pls+lmir+cos-click", "bm25", "pls"]
    assert example.n_relevant == 2
    assert all(len(side.hits) == 5 for side in example.sides)


def test_a_named_baseline_is_the_one_examples_go_against(made: Comparison) -> None:
    assert leaders(replace(made, baseline="pls"))[1].spec == "pls"
    only = replace(made, models=[made["given"], made["pls"]])
    assert [m.spec for m in leaders(only)] == ["pls", "given"]


def test_without_dimensions_the_page_says_how_to_get_them(made: Comparison) -> None:
    page = render(replace(made, by_dim={}))
    assert "--dims 100,300,600" in page
    assert 'id="similar"' not in page
    Page(page)


def test_one_group_is_a_sentence_not_a_table(made: Comparison) -> None:
    unseen = {q: replace(own, clicks=0) for q, own in made.queries.items()}
    page = render(replace(made, queries=unseen))
    assert not {"table-clicks", "table-seen", "table-tail"} & set(Page(page).tables)
    assert "all 60 queries are <strong>unseen</strong>" in page
    assert "all 60 queries are <strong>tail</strong>" in page


def test_a_model_without_any_score(made: Comparison) -> None:
    silent = replace(made["walk"], no_score=frozenset(made.counted), paired={})
    found = replace(made, models=[made["given"], made["pls"], silent])
    results = Page(render(found)).tables["table-results"]
    assert results[-1][:5] == ["walk", "no score", "no score", "no score", "60"]


def test_written_whole(made: Comparison, tmp_path: Path) -> None:
    made.write_report(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text().rstrip().endswith("</html>")
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


PICTURES: dict[str, Callable[[], str]] = {
    "spans": lambda: plots.spans([("a & b", 0.5, 0.4, 0.6), ("<c>", 1.0, 1.0, 1.0)], "nDCG@5", 'alt "text" <here>'),
    "gains": lambda: plots.spans([("a", 0.0, -1.0, 1.0)], "gain", "alt", zero=True),
    "groups": lambda: plots.groups(["≤10"], [1], {"a": [Cell(1, 0.5)], "b": [Cell(1, None)]}, "alt"),
    "curves": lambda: plots.curves({"a": {100: Cell(5, 0.5), 300: Cell(5, None)}}, "alt"),
    "by rank": lambda: plots.by_rank({"clicks": [0.5, 0.2], "looks": [1.0, 0.6]}, "alt"),
    "costs": lambda: plots.costs(["a"], {"seconds": [0.0], "ms": [1234.5]}, "alt"),
    "preferences": lambda: plots.preferences(SIMILAR, "alt"),
}


@pytest.mark.parametrize("draw", PICTURES.values(), ids=PICTURES)
def test_pictures_are_sound_and_take_the_page_s_colours(draw: Callable[[], str]) -> None:
    picture = draw()
    root = ET.fromstring(picture)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "viewBox" in root.attrib
    assert not {"width", "height"} & set(root.attrib)
    assert "var(--ink)" in picture
    assert not set(re.findall(r"#[0-9a-f]{6}", picture)) & {plots.INK, plots.MUTED, plots.LINE, *plots.SERIES}
    assert any(node.text for node in root.iter("{http://www.w3.org/2000/svg}text"))


@pytest.mark.parametrize("title", ["a & b", "<long> " * 20])
def test_a_picture_can_stand_alone(title: str) -> None:
    picture = plots.preferences(SIMILAR[:1], title)
    root = ET.fromstring(plots.alone(picture, title))
    left, top, width, height = (float(n) for n in root.attrib["viewBox"].split())
    assert (left, top) == (0, -plots.TITLE)
    assert (root.attrib["width"], root.attrib["height"]) == (f"{width:g}pt", f"{height:g}pt")
    assert "var(--" not in plots.alone(picture, title)
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == title
    assert {"cos-word", "pls against each", "40", "50", "10"} <= set(texts)


def test_shares_stand_where_the_axis_says() -> None:
    root = ET.fromstring(plots.preferences(SIMILAR[:1], "alt"))  # 40 better, 50 comparable, 10 worse
    at = {node.text: float(node.attrib["x"]) for node in root.iter("{http://www.w3.org/2000/svg}text")}
    left, right = at["0"], at["100% of the queries"]
    places = [(at[text] - left) / (right - left) for text in ("50%", "40", "50", "10")]
    assert places == pytest.approx([0.5, 0.2, 0.65, 0.95], abs=0.01)


def test_names_on_a_logarithmic_axis_do_not_touch() -> None:
    assert plots.apart([25, 50, 100, 200, 400, 600, 800, 1000]) == [1000, 600, 400, 200, 100, 50, 25]
    assert plots.apart([100]) == [100]
    assert plots.apart([]) == []


def test_a_long_spec_is_folded_and_leaves_room() -> None:
    spec = "mart:bm25+pls+rmls+cos-click+walk+mpls+lmir+svdfeature"
    assert plots.folded(spec).split("\n") == ["mart:bm25+pls+rmls+", "cos-click+walk+mpls+", "lmir+svdfeature"]
    assert plots.folded("bm25") == "bm25"
    panels = {"fit, s": [1.0, 2.0], "list, ms": [1.0, 2.0], "peak, MB": [1.0, 2.0]}
    folded, plain = (
        float(ET.fromstring(plots.costs([name, "bm25"], panels, "alt")).attrib["viewBox"].split()[3])
        for name in (spec, "pls")
    )
    assert folded > 1.3 * plain


def test_numbers_in_words() -> None:
    assert [p_in_words(p) for p in (0.0, 0.0009, 0.0123, 1.0)] == ["<.001", "<.001", ".012", "1.000"]
    assert [signed(v) for v in (0.1, -0.1, -0.0001)] == ["+0.100", "-0.100", "0.000"]
    assert [plots.in_short(v) for v in (0, 0.001, 0.01234, 1.5, 12.345, 1234.5)] == [
        "0",
        "<0.01",
        "0.01",
        "1.50",
        "12.3",
        "1,234",
    ]
