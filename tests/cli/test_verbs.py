"""Every verb through the real command: exit 0, JSON alone on stdout, nothing worse than notes on stderr."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clickbridge import ClickGraph, __version__
from clickbridge.models.fitted import ABILITIES
from clickbridge.models.registry import MODELS, WRAPPERS

Run = Callable[..., Any]
GOOD = '{"query":"a b","results":["1","2"],"clicks":["1"]}\n{"query":"c d","results":["1","2"],"clicks":["2"]}\n'


def test_a_three_line_log_goes_through_on_defaults(command: Run, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(GOOD + GOOD.splitlines()[0] + "\n")
    (tmp_path / "docs.jsonl").write_text('{"doc_id":"1","title":"a b"}\n{"doc_id":"2","title":"c d"}\n')
    ingested = command("ingest", "log.jsonl", "--docs", "docs.jsonl", "--out", "g", cwd=tmp_path)
    assert (ingested.code, ingested.err) == (0, "")
    assert "result pages" in ingested.out
    fitted = command("fit", "g", "--model", "bm25", "--out", "m", cwd=tmp_path)
    assert (fitted.code, fitted.err) == (0, "bm25: one field, title\n")
    found = command("search", "m", "C  d", cwd=tmp_path)
    assert found.code == 0
    assert found.out.splitlines()[1].split()[2:] == ["2", "c", "d"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["docs.jsonl", "g", "log.jsonl", "m"]


def test_ingest_from_standard_input(command: Run, tmp_path: Path) -> None:
    result = command("ingest", "-", "--out", "g", "--json", stdin=GOOD.encode(), cwd=tmp_path)
    assert (result.code, result.err) == (0, "")
    assert result.json["impressions"] == 2
    assert result.json["rejected_lines"] == 0
    assert ClickGraph.open(tmp_path / "g").doc_ids == ["1", "2"]


@pytest.mark.parametrize("words", ["ingest - --docs - --out g", "ingest - - --out g", "update g --docs - --docs -"])
def test_standard_input_is_read_once(command: Run, tmp_path: Path, words: str) -> None:
    result = command(*words.split(), stdin=GOOD.encode(), cwd=tmp_path)
    line = "clickbridge: standard input can be read once: give - for one input and files for the others\n"
    assert (result.code, result.out, result.err) == (2, "", line)
    assert list(tmp_path.iterdir()) == []


def test_ingest_says_what_it_left_out(command: Run, tiny: Path) -> None:
    (tiny / "more.jsonl").write_text("bad line\n")
    line = (
        "ingest",
        "log.jsonl",
        "more.jsonl",
        "--docs",
        "docs.jsonl",
        "--out",
        "graph",
        "--max-rejects",
        "20%",
        "--json",
    )
    result = command(*line, cwd=tiny)
    assert result.code == 0
    assert result.json["rejected_lines"] == 1
    assert result.json["documents"] == 5
    notes = result.err.splitlines()
    assert notes[0] == "fields that are not text were left out: nested"
    assert notes[1].startswith("1 of 6 lines left out (not JSON")
    assert list((tiny / "graph").glob("rejects*.jsonl"))


def test_stats(command: Run, built: Path) -> None:
    result = command("stats", built / "graph", "--json")
    assert (result.code, result.err) == (0, "")
    assert result.json["queries"] == 4
    assert result.json["clicks"] == 6
    assert result.json["pairs"] == 5
    assert result.json["queries_by_clicks"] == {"<=10": 4, "<=100": 0, "<=1000": 0, ">1000": 0}


def test_fit_reports(command: Run, tiny: Path) -> None:
    result = command(
        "fit", tiny / "graph", "--model", "bm25+lmir", "--out", tiny / "sum", "--set", "bm25.k1=2", "--json"
    )
    assert result.code == 0
    report = result.json
    assert {"spec", "dim", "seconds", "peak_mb", "density", "weights", "views", "notes"} <= set(report)
    assert report["spec"] == "bm25+lmir"
    assert report["weights"] == {"bm25": 1.0, "lmir": 1.0}
    manifest = json.loads((tiny / "sum" / "manifest.json").read_text())
    assert manifest["report"]["spec"] == "bm25+lmir"
    assert manifest["parts"]["0"]["params"]["k1"] == 2.0
    assert all((tiny / "sum" / "parts" / n / "manifest.json").is_file() for n in "01")
    found = command("search", tiny / "sum", "eternal pizza", "-k", "2", "--json")
    assert (found.code, found.err) == (0, "")
    assert [hit["doc_id"] for hit in found.json["hits"]] == ["rome", "pizza"]


def test_rank_and_evaluate(command: Run, tiny: Path) -> None:
    ranked = command("rank", tiny / "model", "--lists", tiny / "lists.jsonl", "--out", tiny / "bm25.run", "--json")
    assert (ranked.code, ranked.err) == (0, "")
    counts = {"lists": 3, "no_score": 1, "results": 8, "unknown_results": 0}
    assert ranked.json == {"run": str(tiny / "bm25.run"), "model": "bm25", **counts}
    rows = [line.split() for line in (tiny / "bm25.run").read_text().splitlines()]
    assert [(r[0], r[2], r[3]) for r in rows] == [
        ("1", "pizza", "1"), ("1", "rome", "2"), ("1", "bagel", "3"),
        ("2", "rome", "1"), ("2", "ny", "2"),
        ("3", "ny", "1"), ("3", "rome", "2"), ("3", "pizza", "3"),
    ]  # fmt: skip
    result = command("evaluate", tiny / "bm25.run", "--lists", tiny / "lists.jsonl", "--json")
    assert (result.code, result.err) == (0, "")
    assert result.json == [
        {"run": "bm25", "queries": 3, "answered": 3, "nDCG@1": 1.0, "nDCG@3": 1.0, "nDCG@5": 1.0, "AP": 1.0}
    ]


def test_evaluate_against_a_baseline(command: Run, tiny: Path) -> None:
    (tiny / "good.run.gz").write_bytes(
        gzip.compress(b"1 Q0 pizza 1 9 x\n1 Q0 rome 2 8 x\n2 Q0 rome 1 9 x\n3 Q0 ny 1 9 x\n")
    )
    (tiny / "bad.run").write_text("1 Q0 rome 1 9 x\n1 Q0 pizza 2 8 x\n2 Q0 ny 1 9 x\n2 Q0 rome 2 8 x\n3 Q0 ny 1 9 x\n")
    line = ("evaluate", tiny / "good.run.gz", tiny / "bad.run", "--qrels", tiny / "qrels", "--baseline", "bad")
    result = command(*line, "--measures", "P@1,AP", "--json")
    assert (result.code, result.err) == (0, "")
    good, bad = result.json
    assert bad == {"run": "bad", "queries": 3, "answered": 3, "P@1": pytest.approx(2 / 3), "AP": pytest.approx(2.5 / 3)}
    assert good == {
        "run": "good", "queries": 3, "answered": 3, "P@1": 1.0, "AP": 1.0,
        "gain": pytest.approx(0.5 / 3), "low": pytest.approx(-0.5504421), "high": pytest.approx(0.8837755),
        "p_t_test": pytest.approx(0.42264973), "p_random": 1.0, "p_sign": 1.0, "won_tied_lost": "1/2/0",
    }  # fmt: skip
    table = command(*line)
    assert table.code == 0
    quality, tests = table.out.split("\n\n\n")
    columns, good = ("  ".join(lines) for lines in zip(quality.splitlines()[:2], tests.splitlines()[:2], strict=True))
    for name in ("nDCG@5 gain", "p t test", "p random", "p sign", "won tied lost"):
        columns = columns.replace(name, name.replace(" ", "-"))
    row = dict(zip(columns.split(), good.split(), strict=True))
    assert row.pop("low").startswith("-")
    assert row == {
        "run": "good", "queries": "3", "answered": "3", "nDCG@1": "1.0000", "nDCG@3": "1.0000", "nDCG@5": "1.0000",
        "AP": "1.0000",
        "nDCG@5-gain": "0.1908", "high": row["high"], "p-t-test": "0.2157", "p-random": "0.5000", "p-sign": "0.5000",
        "won-tied-lost": "2/1/0",
    }  # fmt: skip
    assert table.err == "1 judged query has no relevant document: not counted\n"


def test_a_run_that_answers_no_judged_query_is_refused(call: Run, tiny: Path) -> None:
    (tiny / "other.run").write_text("q-1 Q0 pizza 1 9 x\n")
    result = call("evaluate", tiny / "other.run", "--lists", tiny / "lists.jsonl")
    assert (result.code, result.out) == (1, "")
    assert result.err == (
        f"clickbridge: {tiny / 'other.run'} answers none of the 3 judged queries: its query ids are like 'q-1', "
        "those of the judgments like '1'\n"
    )


def test_split(command: Run, tiny: Path) -> None:
    line = ("split", "log.jsonl", "--at", "60%", "--train", "train.jsonl.gz", "--lists", "held.jsonl", "--json")
    result = command(*line, cwd=tiny)
    assert (result.code, result.err) == (0, "")
    assert (result.json["train_lines"], result.json["held_lines"], result.json["lists"]) == (3, 2, 2)
    held = [json.loads(text) for text in (tiny / "held.jsonl").read_text().splitlines()]
    assert [(r["query"], r["results"], r["labels"]) for r in held] == [
        ("pizza slice", ["pizza", "rome"], [1.0, 0.0]),
        ("eternal city", ["rome", "ny", "bagel"], [1.0, 0.0, 0.0]),
    ]


def test_simulate_feeds_ingest(command: Run, tmp_path: Path) -> None:
    result = command("simulate", "--scale", "enterprise", "--fraction", "0.01", "--out", tmp_path / "s", "--json")
    assert (result.code, result.err) == (0, "")
    assert result.json["queries"] == 517
    found = command(
        "ingest", tmp_path / "s/log.parquet", "--docs", tmp_path / "s/docs.jsonl.gz", "--out", tmp_path / "g", "--json"
    )
    assert found.code == 0
    assert found.json["pairs"] == result.json["pairs"]


def test_models(command: Run) -> None:
    result = command("models", "--json")
    assert (result.code, result.err) == (0, "")
    assert [row["name"] for row in result.json] == [*MODELS, *(f"{name}:SPEC" for name in WRAPPERS)]
    assert all(row["about"] and row["paper"] for row in result.json)
    can = {row["name"]: row["can"] for row in result.json}
    assert can["given"] == ["new queries", "update"]
    assert can["bm25"] == list(ABILITIES), "all there is, in the order of the declarations"
    assert "new queries" not in can["walk"]
    assert can["rrf:SPEC"] == ["search", "new queries"]
    assert {ability for row in can.values() for ability in row} <= set(ABILITIES)
    table = command("models")
    assert table.code == 0
    head, *rows = table.out.splitlines()
    assert re.split("  +", head.strip()) == ["name", "what it is", "what it can do", "paper", "settings"]
    assert "  search, new queries  " in next(row for row in rows if row.startswith("rrf:SPEC"))


def test_models_explains_one(command: Run) -> None:
    said = command("models", "rmls")
    assert (said.code, said.err) == (0, "")
    plain, advanced, *papers = (
        said.out.index(t) for t in ("Settings\n--", "Advanced settings\n--", "To follow the paper (12, 13)")
    )
    assert plain < said.out.index("dim : int, default 1000") < advanced < said.out.index("plan : str") < papers[0]
    (row,) = command("models", "mart:SPEC", "--json").json
    assert "trees" in row["settings"]
    assert "folds" in row["more_settings"]
    refused = command("models", "nonsense")
    assert refused.code == 2
    assert "there are" in refused.err


def test_version_and_typos(command: Run, tmp_path: Path) -> None:
    assert command("--version") == (0, f"{__version__}\n", "")
    typo = command("ingest", "log.jsonl", "--ouut", "g", cwd=tmp_path)
    assert typo.code == 2
    assert "--ouut" in typo.err
    assert list(tmp_path.iterdir()) == []


# --- the long tail, in this process ----------------------------------------------------------------------


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["fit", "--help"]])
def test_help(call: Run, words: list[str]) -> None:
    result = call(*words)
    assert result.code == 0
    assert "Usage" in result.out


@pytest.mark.parametrize(
    "words",
    [
        ["fitt"],
        ["fit"],
        ["fit", "g"],
        ["search", "m"],
        ["search", "m", "q", "-k", "0"],
        ["search", "m", "q", "-k", "x"],
        ["rank", "m"],
    ],
)
def test_wrong_usage_exits_2(call: Run, words: list[str]) -> None:
    result = call(*words)
    assert result.code == 2
    assert result.out == ""
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--set", "k1"], "--set takes key=value; got 'k1'"),
        (["--set", "k9=1"], "bm25 has no setting 'k9'"),
        (["--set", "k1=fast"], "k1 must be a number, 0 to 1,000; got 'fast'"),
        (["--set", "lmir.mu=3"], "bm25 has no setting 'lmir.mu'"),
        (["--min-clicks", "0"], "min_clicks must be a whole number, at least 1; got 0"),
        (["--half-life", "nan"], "half_life must be a number, at least 0; got nan"),
        (["--response", "sqrt"], "response must be one of clicks, log, log-t, coec, pbm, ips, debiased; got 'sqrt'"),
        (["--fields", "titel"], "no field 'titel' in the documents; they have body, title, year"),
        (["--model", "bm26"], "no model 'bm26' (did you mean bm25?); there are auto, given, vsm, bm25, lmir"),
        (["--model", "bm25+bm25"], "'bm25+bm25' names a model twice"),
        (["--model", "magic:bm25"], "no wrapper 'magic' in 'magic:bm25'"),
    ],
)
def test_settings_outside_their_range_exit_2(call: Run, tiny: Path, words: list[str], line: str) -> None:
    result = call("fit", tiny / "graph", "--model", "bm25", "--out", tiny / "new", *words)
    assert result.code == 2
    assert result.err.startswith(f"clickbridge: {line}")
    assert result.err.count("\n") == 1
    assert not (tiny / "new").exists()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "evaluate needs either --qrels or --lists"),
        (["--qrels", "qrels", "--lists", "lists.jsonl"], "evaluate needs either --qrels or --lists"),
        (
            ["--qrels", "qrels", "--measures", "nDGC@5"],
            "no measure 'nDGC@5'; there are nDCG, AP (or MAP), RR (or MRR), P and R",
        ),
        (["--qrels", "qrels", "--baseline", "bm25"], "--baseline must be one of a; got 'bm25'"),
        (["--qrels", "qrels", "other/a.txt"], "two runs share a name (a, a): rename one file"),
    ],
)
def test_evaluate_wrong_usage(
    call: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], line: str
) -> None:
    monkeypatch.chdir(tiny)
    (tiny / "a.run").write_text("1 Q0 pizza 1 9 x\n")
    result = call("evaluate", "a.run", *words)
    assert result.code == 2
    assert result.err.startswith(f"clickbridge: {line}")


def test_seed_reaches_models_that_have_one(call: Run, tiny: Path) -> None:
    assert call("fit", tiny / "graph", "--model", "given", "--seed", "3", "--out", tiny / "given").code == 0
    assert call("fit", tiny / "graph", "--model", "bm25", "--seed", "3", "--out", tiny / "model").code == 0
    assert json.loads((tiny / "model" / "manifest.json").read_text())["params"]["seed"] == 3
    for verb in (
        ("fit", tiny / "graph", "--model", "bm25", "--out", tiny / "model"),
        ("split", tiny / "log.jsonl", "--at", "50%", "--by", "query", "--train", "t", "--lists", "l"),
        ("simulate", "--scale", "enterprise", "--out", tiny / "s"),
    ):
        assert call(*verb, "--seed", "-1").code == 2


def test_text_is_printed_as_it_is(call: Run, tiny: Path) -> None:
    result = call("search", tiny / "model", "cat brackets")
    assert result.code == 0
    assert "[bold]" in result.out
    assert "A :cat: in [red] brackets" in result.out
    nothing = call("search", tiny / "model", "[zzz]")
    assert (nothing.code, nothing.out) == (0, "")
    assert nothing.err == "bm25 finds nothing for '[zzz]'\n"
    assert call("search", tiny / "model", "\udcff", "--json").json["hits"] == []
    assert call("stats", tiny / "[bold]").err.startswith("clickbridge: no graph at ")
    assert "tiny/[bold]: give" in call("stats", tiny / "[bold]").err


def test_long_ids_survive_a_narrow_pipe(command: Run, call: Run, tmp_path: Path) -> None:
    long = "http://example.org/" + "a" * 200
    (tmp_path / "log.jsonl").write_text(json.dumps({"query": "words", "clicks": [long]}) + "\n")
    (tmp_path / "docs.jsonl").write_text(json.dumps({"doc_id": long, "title": "words " * 15}) + "\n")
    line = ("ingest", tmp_path / "log.jsonl", "--docs", tmp_path / "docs.jsonl", "--out", tmp_path / "g")
    assert call(*line).code == 0
    assert call("fit", tmp_path / "g", "--model", "vsm", "--out", tmp_path / "m").code == 0
    assert long in command("search", "m", "words", cwd=tmp_path).out


def test_thresholds_stored_at_ingest_are_defaults_of_fit(call: Run, tiny: Path) -> None:
    line = ("ingest", tiny / "log.jsonl", "--docs", tiny / "docs.jsonl", "--out", tiny / "graph", "--min-clicks", "2")
    assert call(*line).code == 0
    fitted = call("fit", tiny / "graph", "--model", "bm25", "--out", tiny / "model")
    assert fitted.code == 0
    assert fitted.err.splitlines()[0] == "min_clicks 2 drops 4 of 6 clicks"
    assert call("stats", tiny / "graph", "--json").json["pairs"] == 1
    for words in (("--min-clicks", "1"), ("--set", "min_clicks=1"), ("--set", "min_clicks=9", "--min-clicks", "1")):
        again = call("fit", tiny / "graph", "--model", "bm25", "--out", tiny / "model", *words)
        assert again.code == 0
        assert "drops" not in again.err
    line = ("fit", tiny / "graph", "--model", "bm25", "--out", tiny / "model")
    robots = call(*line, "--set", "max_clicks_per_user=1", "--set", "half_life=2", "--min-clicks", "1")
    assert (robots.code, robots.err.splitlines()[0]) == (0, "left out as robots: 2 users with more than 1 click")


def test_columns_are_renamed(call: Run, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text('q,sku,when\n"a ""b"", c",007,2026-01-31T12:00:00Z\n')
    line = ("ingest", tmp_path / "log.csv", "--columns", "query=q,doc_id=sku", "--columns", "time=when", "--json")
    assert call(*line, "--out", tmp_path / "g").json["has_times"] is True
    graph = ClickGraph.open(tmp_path / "g")
    assert (list(graph.query_keys), graph.doc_ids) == (['a "b", c'], ["007"])
    for wrong in ("query", "=q", "query="):
        refused = call("ingest", tmp_path / "log.csv", "--columns", wrong, "--out", tmp_path / "g2")
        assert refused.code == 2
        assert "--columns takes ours=theirs, such as time=click_time" in refused.err


def test_rejects_file_is_kept(call: Run, tiny: Path) -> None:
    (tiny / "more.jsonl").write_text("bad line\n")
    line = ("ingest", tiny / "log.jsonl", tiny / "more.jsonl", "--out", tiny / "graph", "--rejects", tiny / "rejects")
    refused = call(*line)
    assert refused.code == 1
    assert "1 of 6 lines is unusable" in refused.err
    expected = {"source": str(tiny / "more.jsonl"), "line": 1}
    assert json.loads((tiny / "rejects").read_text()).items() >= expected.items()
    (tiny / "rejects").unlink()
    assert call(*line, "--max-rejects", "0.5").code == 0
    assert json.loads((tiny / "rejects").read_text()).items() >= expected.items()
