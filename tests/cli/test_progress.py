"""Long work says how far it is: a callback in Python, a bar with the time left on a terminal."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console
from rich.progress import Progress

import clickbridge
from clickbridge import BM25, ClickGraph, Document, Impression, ResultList, build_model, compare, read_log
from clickbridge.cli.console import STEP, Steps, TimeLeftColumn, progress_columns
from clickbridge.models.registry import MODELS, WRAPPERS
from clickbridge.progress import logged


@pytest.fixture
def bars() -> Iterator[Progress]:
    with Progress(console=Console(file=StringIO(), force_terminal=True)) as shown:
        yield shown


def test_a_line_with_steps_has_a_bar(bars: Progress) -> None:
    steps = Steps(bars)
    steps.show("reading")
    assert bars.tasks[0].total is None
    for number in (1, 2, 3):
        steps.show(f"fold {number} of 5")
        (task,) = bars.tasks
        assert (task.total, task.completed) == (5, number - 1)
    steps.show("log, 1,200 of 3,000 MB, lines 40,000")
    (task,) = bars.tasks
    assert (task.total, task.completed, task.description) == (3000, 1199, "log, 1,200 of 3,000 MB, lines 40,000")
    steps.show("writing")
    assert bars.tasks[0].total is None


LATENT = ["pls", "mpls", "rmls", "ssi", "svdfeature", "bltm"]


@pytest.fixture(scope="module")
def graph() -> ClickGraph:
    """Enough queries to hold some back."""
    words = [f"word{i}" for i in range(40)]
    docs = [
        Document(f"d{i}", {"title": f"{words[i % 40]} {words[i * 7 % 40]}", "body": words[i * 3 % 40]})
        for i in range(80)
    ]
    log = []
    for i in range(1500):
        page = [f"d{(i * step + i // 7) % 80}" for step in (1, 3, 7, 11)]
        log.append(
            Impression(f"{words[i % 40]} {words[i * 7 % 33]}", page, [page[i % 3]], user=f"u{i % 50}", time=1e9 + i)
        )
    return ClickGraph.build(log, docs)


COUNTS_ONLY = {"given", "cos-click", "walk"}
"""These count clicks once and have learned: there are no steps to tell of, only that they have begun."""
BY_WRAPPER = {"robust": "robust:bm25", "online": "online:bm25", "rrf": "rrf:bm25+pls", "mart": "mart:bm25+pls"}


@pytest.mark.parametrize("name", [*MODELS, *WRAPPERS])
def test_every_fit_reports_progress(name: str, graph: ClickGraph) -> None:
    lines: list[str] = []
    settings = {"dim": 5} if name in LATENT else {"budget": "5s"} if name == "auto" else {}
    spec = BY_WRAPPER.get(name, name)
    build_model(spec, settings).fit(graph, progress=lines.append)
    assert lines[0] == f"fitting {spec} on {graph.n_queries:,} queries and 80 documents"
    stepwise = any(STEP.search(line) or re.search(r"iteration \d", line) for line in lines)
    assert stepwise == (name not in COUNTS_ONLY), lines


def test_choosing_the_weight_of_added_words_is_told(graph: ClickGraph) -> None:
    lines: list[str] = []
    build_model("expansion").fit(graph, progress=lines.append)
    assert lines[-1] == "expansion: choosing the weight of added words on held-back clicks"


def test_reading_a_log_says_how_much_of_it(tmp_path: Path) -> None:
    rows = ({"query": f"q{i % 50} {i * 2654435761 % 2**64:x}" * 3, "clicks": [f"d{i % 7}"]} for i in range(90_000))
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    told: list[str] = []
    ClickGraph.build(read_log(tmp_path / "log.jsonl"), progress=told.append)
    steps = [tuple(map(int, found.groups())) for what in told if (found := STEP.search(what))]
    assert len(steps) >= 2
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert all(done <= total for done, total in steps)


def test_the_time_left_is_told_once_it_is_known() -> None:
    now = [0.0]
    bars = Progress(TimeLeftColumn(), console=Console(file=StringIO()), get_time=lambda: now[0])
    steps = Steps(bars)
    steps.show("fold 1 of 5")
    assert TimeLeftColumn().render(bars.tasks[0]).plain == ""
    for number in (2, 3):
        now[0] += 10
        steps.show(f"fold {number} of 5")
    assert TimeLeftColumn().render(bars.tasks[0]).plain == "about 0:00:30 left"


@pytest.mark.parametrize("width", [50, 80, 120])
def test_a_long_line_of_progress_stays_on_one_line(width: int) -> None:
    now = [0.0]
    console = Console(file=StringIO(), width=width)
    bars = Progress(*progress_columns(width), console=console, get_time=lambda: now[0])
    steps = Steps(bars)
    for number in (1, 2, 3):
        now[0] += 10
        steps.show(f"rmls: learning its factors on held-back clicks, density 0.01, iteration {number} of 5 " * 2)
    console.print(bars.get_renderable())
    (line,) = console.file.getvalue().splitlines()
    assert len(line) <= width
    assert "… ━" in line
    assert line.rstrip().endswith("0:00:20 about 0:00:30 left")


def test_one_function_suits_all_long_work(tmp_path: Path) -> None:
    """Users write one function of a line of text, such as print."""
    lines: list[str] = []
    docs = [Document("a", {"title": "first"}), Document("b", {"title": "second"})]
    built = ClickGraph.build([Impression("first", ["a", "b"], ["a"])], docs, progress=lines.append)
    assert lines == ["merging"]
    BM25().fit(built, progress=lines.append)
    assert lines[1] == "fitting bm25 on 1 query and 2 documents"
    lists = [ResultList("1", "first", ["b", "a"], [0, 1])]
    compare(built, lists, {"words": BM25()}, measures="nDCG@1", progress=lines.append)
    assert "fitting words (2 of 2)" in lines
    assert lines[-1] == "measuring"
    frame = pa.table({"query": ["first"], "doc_id": ["a"], "clicks": [2]})
    lines.clear()
    ClickGraph.from_frame(frame, progress=lines.append)
    assert lines == ["merging"]


def test_progress_has_one_name_and_one_kind() -> None:
    names = {"watch", "on_progress", "callback", "tell", "say"}
    found = {}
    for public in clickbridge.__all__:
        thing = getattr(clickbridge, public)
        members = inspect.getmembers(thing, callable) if inspect.isclass(thing) else []
        methods = [member for name, member in members if not name.startswith("_")]
        for function in [thing, *methods]:
            try:
                parameters = inspect.signature(function).parameters
            except (TypeError, ValueError):
                continue
            assert not names & set(parameters), f"{public}: {function}"
            if "progress" in parameters:
                found[f"{public}.{function.__name__}"] = parameters["progress"]
    assert {"ClickGraph.build", "ClickGraph.from_frame", "PLS.fit", "compare.compare"} <= set(found)
    assert {str(parameter.annotation) for parameter in found.values()} == {"Progress"}
    assert {parameter.default for parameter in found.values()} == {logged}
