"""Privacy claims are tests: a planted user and a query of one person are searched for in everything that is written,
printed or answered."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from clickbridge import ClickGraph, build_model, load
from clickbridge.errors import NotSupported
from clickbridge.export.targets import TARGETS
from clickbridge.graph.forget import forget_user
from clickbridge.io.secret import Secret
from clickbridge.online.journal import Journal
from clickbridge.types import Document, Impression
from contract.specs import SPECS

Run = Callable[..., Any]
PERSON, ALONE = "user-4711-secret", "my private one person query"
MAIL = "thing for jo.doe@example.org"
PAGES = [
    {"query": f"word{i % 7} thing", "user": f"u{i % 9}", "results": ["1", "2", "3"], "clicks": [str(1 + i % 3)],
     "time": 1.7e9 + i}
    for i in range(126)
]  # fmt: skip
MINE = {"query": ALONE, "user": PERSON, "results": ["1", "2"], "clicks": ["2"], "time": 1.7e9 + 500}
SHARED = {"query": "word1 thing", "user": PERSON, "results": ["1", "2"], "clicks": ["2"], "time": 1.7e9 + 501}


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("privacy")
    write_jsonl(folder / "log.jsonl", [*PAGES, MINE, SHARED])
    write_jsonl(folder / "docs.jsonl", [{"doc_id": str(i), "title": f"word{i} thing"} for i in (1, 2, 3)])
    return folder


@pytest.fixture
def graph(home: Path, call: Run, tmp_path: Path) -> Path:
    place = tmp_path / "graph"
    assert call("ingest", home / "log.jsonl", "--docs", home / "docs.jsonl", "--out", place).code == 0
    return place


def readable(path: Path) -> str:
    """Everything in a file that a person could make out."""
    if path.suffix == ".parquet":
        return str(pq.read_table(path).to_pylist())
    if path.suffix == ".npy":
        values = np.load(path, allow_pickle=False)
        return str(values.tolist()) if values.dtype.kind in "US" else values.tobytes().decode("latin1")
    return path.read_bytes().decode("latin1")


def found_in(folder: Path, *planted: str) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [f"{path.name}: {what}" for path in files for what in planted if what in readable(path)]


# --- users -------------------------------------------------------------------------------------------


def test_users_are_hashed_by_a_secret_of_the_graph(home: Path, graph: Path, call: Run) -> None:
    assert found_in(graph, PERSON) == []
    (key,) = graph.glob("*.key")
    assert key.stat().st_mode & 0o777 == 0o600
    first = ClickGraph.open(graph)
    assert first.secret
    assert first.impressions is not None
    assert first.impressions.user is not None
    assert first.secret.user(PERSON) in first.impressions.user
    assert Secret().user(PERSON) not in first.impressions.user, "nobody can find a user by trying ids"
    assert call("ingest", home / "log.jsonl", "--out", graph.with_name("other")).code == 0
    assert ClickGraph.open(graph.with_name("other")).secret != first.secret
    assert call("ingest", home / "log.jsonl", "--out", graph).code == 0
    assert ClickGraph.open(graph).secret == first.secret, "a GRAPH that is replaced keeps its secret"


def test_a_graph_without_users_has_no_secret(call: Run, tmp_path: Path) -> None:
    log = write_jsonl(tmp_path / "log.jsonl", [{k: v for k, v in page.items() if k != "user"} for page in PAGES])
    assert call("ingest", log, "--out", tmp_path / "g").code == 0
    assert list((tmp_path / "g").glob("*.key")) == []


@pytest.mark.parametrize("per_user", [0.0, 0.5])
def test_the_secret_goes_along_only_where_users_have_weights(graph: Path, tmp_path: Path, per_user: float) -> None:
    model: Any = build_model("online:bm25", {"blend": "0.5,0.3,4", "per_user": per_user}).fit(ClickGraph.open(graph))
    model.save(tmp_path / "m")
    keys = list((tmp_path / "m").rglob("*.key"))
    assert [key.stat().st_mode & 0o777 for key in keys] == ([0o600] if per_user else [])
    loaded: Any = load(tmp_path / "m")
    asked = PERSON, "word1 thing", ["1", "2", "3"]
    assert loaded.rerank_for(*asked) == model.rerank_for(*asked)
    with Journal(tmp_path / "state", loaded) as journal:
        journal.learn(Impression("word1 thing", ["1", "2"], ["2"], user=PERSON))
    assert found_in(tmp_path / "state", PERSON) == []


# --- queries of one person ---------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS)
def test_a_query_of_one_person_is_nowhere(spec: str, graph: Path, call: Run, tmp_path: Path) -> None:
    model = tmp_path / "m"
    fitted = call("fit", graph, "--model", spec, "--min-users", "3", "--out", model)
    assert fitted.code == 0, fitted.err
    assert found_in(model, PERSON, ALONE, ALONE.replace(" ", "_")) == []
    said = fitted.out + fitted.err
    for words in (("similar", model, "--query", "private word1 thing", "-k", "50"),
                  ("search", model, "private one person query", "--explain")):  # fmt: skip
        answer = call(*words)
        said += answer.out + answer.err
    assert ALONE not in said
    assert PERSON not in said
    opened = load(model)
    with pytest.raises(NotSupported, match="cannot be updated"):
        opened.update([Impression(ALONE, ["1", "2"], ["2"])])


def test_without_the_setting_everything_is_learned(graph: Path, call: Run, tmp_path: Path) -> None:
    assert call("fit", graph, "--model", "bm25", "--out", tmp_path / "m").code == 0
    assert found_in(tmp_path / "m", ALONE) != []


def test_a_report_names_no_query_of_one_person(graph: Path, call: Run, tmp_path: Path) -> None:
    rows = [{"query": page["query"], "results": ["1", "2", "3"], "labels": [0, 1, 0]} for page in PAGES[:7]]
    rows += [{"query": q, "results": ["1", "2", "3"], "labels": [2, 0, 1]} for q in (ALONE, MAIL)]
    lists = write_jsonl(tmp_path / "lists.jsonl", rows)
    out = tmp_path / "out"
    out.mkdir()
    for min_users, withheld in (("3", [ALONE, MAIL]), ("1", [MAIL])):
        line = ("compare", graph, "--lists", lists, "--models", "bm25,vsm", "--min-users", min_users)
        done = call(*line, "--report", out / "report.html", "--csv", out / "all.csv")
        assert done.code == 0, done.err
        assert found_in(out, *withheld, *(q.replace(" ", "_") for q in withheld)) == []
    assert found_in(out, ALONE) != [], "shown where nothing forbids it"


# --- what names a person -----------------------------------------------------------------------------


@pytest.fixture
def with_mail(call: Run, home: Path, tmp_path: Path) -> Callable[[str], Path]:
    def ingest(redact: str) -> Path:
        rows = [{**page, "query": MAIL} for page in PAGES[:20]]
        log = write_jsonl(tmp_path / "mail.jsonl", [*PAGES, *rows])
        place = tmp_path / f"g-{redact}"
        assert call("ingest", log, "--docs", home / "docs.jsonl", "--redact", redact, "--out", place).code == 0
        return place

    return ingest


@pytest.mark.parametrize("spec", ["bm25", "pls", "walk", "cos-click", "bm25+pls", "robust:bm25", "online:bm25"])
def test_what_names_a_person_is_not_shown(spec: str, with_mail: Callable[[str], Path], tmp_path: Path) -> None:
    seen = {}
    for redact in ("shown", "off"):
        model = build_model(spec).fit(ClickGraph.open(with_mail(redact)))
        model.save(tmp_path / redact)
        seen[redact] = {
            name for q in ("word1 thing", "for thing") for name, _ in load(tmp_path / redact).similar_queries(q, 50)
        }
    assert MAIL not in seen["shown"]
    assert MAIL in seen["off"]
    assert seen["off"] - {MAIL} == seen["shown"]


def test_what_names_a_person_is_not_even_learned(with_mail: Callable[[str], Path]) -> None:
    assert found_in(with_mail("shown"), MAIL) != []
    place = with_mail("learned")
    assert found_in(place, MAIL, "jo.doe") == []
    assert "thing for [e-mail]" in ClickGraph.open(place).query_keys


@pytest.fixture(scope="module")
def slips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log in which people mistype, paste an address, and one of them asks more often than all others."""
    folder = tmp_path_factory.mktemp("slips")
    foods = ["pizza", "pasta", "salad", "soup", "bread", "cheese", "sushi", "bagel", "olives", "fish", "rice", "tea"]
    docs = [Document(f"d{i}", {"title": f"{food} of rome"}) for i, food in enumerate(foods)]
    shown = [doc.doc_id for doc in docs]
    asked = [(f"{food} rome", doc, f"u{n % 9}") for n in range(90) for food, doc in zip(foods, shown, strict=True)]
    for slip in ("pizzza", "pizzza rome", "pizzza jo.doe@example.org"):
        asked += [(slip, "d0", f"u{n % 9}") for n in range(18)]
    asked += [(f"pizza {ALONE}", "d0", PERSON)] * 100
    pages = [Impression(text, shown, [doc], user=user) for text, doc, user in asked]
    graph = ClickGraph.build(pages, docs, out=folder / "graph")
    build_model("bm25+pls", {"dim": 2}).fit(graph).save(folder / "model")
    build_model("cos-click").fit(graph).save(folder / "clicks")
    return folder


def test_insights_name_no_person(slips: Path, call: Run, tmp_path: Path) -> None:
    for name in ("graph", "model"):
        assert call("insights", slips / name, "--out", tmp_path / name).code == 0
        assert found_in(tmp_path / name, "jo.doe", "example.org") == []
        assert found_in(tmp_path / name, PERSON, ALONE) == []
    assert "pizzza,pizza" in (tmp_path / "graph" / "synonyms.csv").read_text()
    pairs = (tmp_path / "model" / "word_pairs.csv").read_text()
    assert "pizzza" in pairs
    assert not {"doe", "example", *ALONE.split()} & {*re.findall(r"\w+", pairs)}


@pytest.mark.parametrize("model", ["model", "clicks"])
@pytest.mark.parametrize("target", sorted({*TARGETS} - {"faiss"}))
def test_an_export_hands_on_nothing_of_one_person(
    slips: Path, call: Run, tmp_path: Path, target: str, model: str
) -> None:
    for number, words in enumerate([["--graph", slips / "graph"], []]):
        done = call("export", slips / model, "--to", target, "--out", tmp_path / str(number), *words)
        if words:
            assert done.code == 0, done.err
        if done.code == 0:
            assert found_in(tmp_path / str(number), "jo.doe", "example.org", ALONE, PERSON) == []


def test_redact_is_one_of_three(call: Run, home: Path, tmp_path: Path) -> None:
    done = call("ingest", home / "log.jsonl", "--redact", "all", "--out", tmp_path / "g")
    assert (done.code, done.err) == (2, "clickbridge: --redact is one of shown, learned, off; got 'all'\n")


# --- forgetting --------------------------------------------------------------------------------------


def test_forget_in_a_graph(graph: Path, call: Run, home: Path, tmp_path: Path) -> None:
    secret = ClickGraph.open(graph).secret
    without = ClickGraph.build(
        [Impression(p["query"], p["results"], p["clicks"], user=p["user"], time=p["time"]) for p in PAGES],
        secret=secret,
    )
    done = call("forget", graph, "--user", PERSON)
    assert done.code == 0, done.err
    assert "2 result pages, 2 clicks, 1 pair and 1 query" in done.err
    assert "0 events of this user are left" in done.err
    assert PERSON not in done.out + done.err
    left = ClickGraph.open(graph)
    assert secret is not None
    assert list(left.query_keys) == list(without.query_keys)
    assert left.secret == secret
    for part in ("pairs", "impressions"):
        for column, values in vars(getattr(without, part)).items():
            assert np.array_equal(getattr(getattr(left, part), column), values), (part, column)
    assert found_in(graph, ALONE) == []
    assert secret.user(PERSON).to_bytes(8, "little").decode("latin1") not in "".join(map(readable, graph.glob("*.npy")))
    assert left.summary["impressions"] == len(PAGES)
    again = call("forget", graph, "--user", PERSON, "--json")
    assert again.json == {"kind": "graph", "pages": 0, "clicks": 0, "pairs": 0, "queries": 0, "left": 0}
    assert call("stats", graph).code == 0


def test_what_cannot_be_forgotten(graph: Path, call: Run, tmp_path: Path) -> None:
    only = ClickGraph.build([Impression("q", ["a", "b"], ["a"], user="me")], out=tmp_path / "only")
    before = {path: path.read_bytes() for path in (tmp_path / "only").iterdir()}
    done = call("forget", tmp_path / "only", "--user", "me")
    assert (done.code, done.err) == (1, "clickbridge: nobody else clicked anything: remove the whole GRAPH instead\n")
    assert {path: path.read_bytes() for path in (tmp_path / "only").iterdir()} == before
    assert only.secret
    ClickGraph.build([Impression("q", ["a", "b"], ["a"])], out=tmp_path / "nobody")
    done = call("forget", tmp_path / "nobody", "--user", "me")
    assert done.code == 1
    assert "holds no users: nothing in it can be attributed to one person" in done.err
    done = call("forget", tmp_path, "--user", "me")
    assert "is not a GRAPH, a MODEL or a learner's STATE" in done.err
    assert call("forget", graph, "--user", "me", "--refit").code == 2


def test_a_model_is_fitted_again(graph: Path, call: Run, tmp_path: Path) -> None:
    model = tmp_path / "m"
    assert call("fit", graph, "--model", "bm25+cos-click", "--out", model).code == 0
    refused = call("forget", model, "--user", PERSON)
    assert refused.code == 1
    assert "does not know who clicked: fit it again from the GRAPH, with --refit --graph GRAPH" in refused.err
    assert found_in(model, ALONE) != []
    done = call("forget", model, "--user", PERSON, "--refit", "--graph", graph)
    assert done.code == 0, done.err
    assert "0 events of this user are left" in done.err
    assert found_in(model, ALONE) == []
    assert found_in(graph, ALONE) == []


def test_forget_in_a_learner(graph: Path, call: Run, tmp_path: Path) -> None:
    fitted = ("fit", graph, "--model", "online:bm25", "--set", "per_user=0.5", "--set", "blend=0.5,0.3,4")
    assert call(*fitted, "--out", tmp_path / "m").code == 0
    state = tmp_path / "state"
    pages = [Impression("word1 thing", ["1", "2", "3"], [click], user=user) for click, user in
             (("1", "u1"), ("2", PERSON), ("3", "u2"), ("2", PERSON))]  # fmt: skip
    with Journal(state, load(tmp_path / "m")) as journal:  # type: ignore[arg-type]
        journal.learn_many(pages)
    mine = ClickGraph.open(graph).secret.user(PERSON)  # type: ignore[union-attr]
    assert str(mine) in (state / "events.jsonl").read_text()
    assert call("forget", state, "--user", PERSON).code == 2, "which MODEL it belongs to must be said"
    done = call("forget", state, "--user", PERSON, "--model", tmp_path / "m", "--json")
    assert done.code == 0, done.err
    assert (done.json["events"], done.json["left"]) == (2, 0)
    assert done.json["weights"] > 0
    assert (state / "events.jsonl").read_bytes() == b""
    left: Any = load(tmp_path / "m")
    with Journal(state, left):
        assert not [key for key in left.fitted.state.users if key[0] == mine]
        others = left.fitted.state
    fresh: Any = load(tmp_path / "m")
    with Journal(tmp_path / "other", fresh) as journal:
        journal.learn_many([page for page in pages if page.user != PERSON])
        assert np.allclose(fresh.fitted.state.weights, others.weights, atol=1e-9)
    again = call("forget", state, "--user", PERSON, "--model", tmp_path / "m", "--json")
    assert again.json == {"kind": "state", "events": 0, "weights": 0, "left": 0}


def test_forget_from_python(graph: Path) -> None:
    assert forget_user(graph, "nobody at all").line.startswith("forgotten: 0 result pages")
