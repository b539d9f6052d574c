"""The demo's documents, intents and simulated log."""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest

from clickbridge import normalise_query
from clickbridge.io.lists import read_lists
from clickbridge.simulate import demo
from clickbridge.simulate.corpus import LONGEST, SHORTEST, resolve, standard_library
from clickbridge.simulate.demo import PAGE, Intent, KeywordEngine, read_intents, write_demo
from clickbridge.types import Document

FEW = 60
FILES = ("docs.jsonl.gz", "log.jsonl.gz", "seen.lists.jsonl", "unseen.lists.jsonl")
REMOVED_BY_3_13 = {
    "aifc", "asynchat", "asyncore", "audioop", "cgi", "cgitb", "chunk", "crypt", "distutils", "imghdr", "imp",
    "lib2to3", "mailcap", "msilib", "nis", "nntplib", "ossaudiodev", "pipes", "smtpd", "sndhdr", "spwd", "sunau",
    "telnetlib", "uu", "xdrlib",
}  # fmt: skip


@pytest.fixture(scope="module")
def intents() -> list[Intent]:
    return read_intents()


@pytest.fixture(scope="module")
def documents(intents: list[Intent]) -> list[Document]:
    return standard_library(extra=[target for intent in intents for target in intent.grades])


# --- intents -----------------------------------------------------------------------------------------


def test_there_are_enough_intents_and_phrasings(intents: list[Intent]) -> None:
    assert len(intents) >= 300
    assert min(len(intent.phrasings) for intent in intents) >= 6


def test_no_phrasing_occurs_twice(intents: list[Intent]) -> None:
    counts = Counter(normalise_query(phrasing) for intent in intents for phrasing in intent.phrasings)
    assert [phrasing for phrasing, count in counts.items() if count > 1] == []
    assert all(phrasing == phrasing.strip() and phrasing for phrasing in counts)
    assert not any("\t" in phrasing or "|" in phrasing for phrasing in counts)


def test_the_first_target_is_best(intents: list[Intent]) -> None:
    for intent in intents:
        assert list(intent.grades.values()) == [2] + [1] * (len(intent.grades) - 1)


def test_no_intent_needs_a_module_that_newer_pythons_lack(intents: list[Intent]) -> None:
    targets = {target for intent in intents for target in intent.grades}
    assert {target for target in targets if target.split(".")[0] in REMOVED_BY_3_13} == set()


# --- documents ---------------------------------------------------------------------------------------


def test_several_thousand_documents(documents: list[Document]) -> None:
    assert 3000 < len(documents) < 20_000
    ids = [d.doc_id for d in documents]
    assert ids == sorted(set(ids))
    assert all(d.doc_id.split() == [d.doc_id] for d in documents)
    for document in documents:
        assert document.fields["title"] == document.doc_id
        text = "\n\n".join(value for name, value in document.fields.items() if name != "title")
        assert SHORTEST <= len(text) <= LONGEST


def test_every_target_is_a_document(intents: list[Intent], documents: list[Document]) -> None:
    known = {d.doc_id for d in documents}
    assert [t for intent in intents for t in intent.grades if t not in known] == []


def test_walking_the_library_twice_gives_the_same(intents: list[Intent], documents: list[Document]) -> None:
    again = standard_library(extra=[target for intent in intents for target in intent.grades])
    assert again == documents


def test_names_resolve_to_objects() -> None:
    assert resolve("json.loads").__name__ == "loads"
    assert resolve("os.path.join").__name__ == "join"
    assert resolve("str.split") is str.split
    assert resolve("print") is print
    assert resolve("no.such.thing") is None


# --- engine ------------------------------------------------------------------------------------------


def test_the_keyword_engine_sums_idf() -> None:
    texts = {"bb": "river stone", "a": "river", "ccc": "stone salt river", "d": "salt salt", "e": "wind"}
    engine = KeywordEngine([Document(d, {"body": text}) for d, text in texts.items()])

    def score(query: str, text: str) -> float:
        words = sorted(set(re.findall("[a-z0-9]+", query)) & set(text.split()))
        return sum(math.log(1 + len(texts) / sum(w in t.split() for t in texts.values())) for w in words)

    for query in ("river", "stone salt", "river salt stone", "unheardof"):
        scores = {d: score(query, text) for d, text in texts.items()}
        expected = sorted((d for d in texts if scores[d] > 0), key=lambda d: (-scores[d], len(d)))
        assert engine.search(query, 10) == expected
        assert engine.search(query, 1) == expected[:1]


def test_a_page_may_be_changed_by_who_asked_for_it() -> None:
    engine = KeywordEngine([Document("a", {"body": "river"})])
    engine.search("river", 3).append("changed")
    assert engine.search("river", 3) == ["a"]


# --- the written files -------------------------------------------------------------------------------


def lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path) as file:
        return [orjson.loads(line) for line in file]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The demo of a few intents, seed 0."""
    folder = tmp_path_factory.mktemp("demo")
    few = read_intents()[:FEW]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "read_intents", lambda: few)
        return folder, write_demo(folder, seed=0)


def test_half_of_the_phrasings_never_appear_in_the_log(written: tuple[Path, dict[str, Any]]) -> None:
    folder, summary = written
    log = lines(folder / "log.jsonl.gz")
    seen, unseen = (read_lists(str(folder / f"{kind}.lists.jsonl")) for kind in ("seen", "unseen"))
    searched = {record["query"] for record in log}
    assert searched == {result.query for result in seen}
    assert searched.isdisjoint(result.query for result in unseen)
    phrasings = {phrasing for intent in read_intents()[:FEW] for phrasing in intent.phrasings}
    assert {result.query for result in [*seen, *unseen]} == phrasings
    assert 0.4 < len(unseen) / len(phrasings) <= 0.5
    assert summary["seen phrasings"] == len(seen)
    assert summary["unseen phrasings"] == len(unseen)
    assert summary["simulated searches"] == len(log)
    assert summary["simulated clicks"] == sum(len(record["clicks"]) for record in log) > 0


def test_pages_and_judged_lists_are_sound(written: tuple[Path, dict[str, Any]]) -> None:
    folder, summary = written
    known = {record["doc_id"] for record in lines(folder / "docs.jsonl.gz")}
    assert len(known) == summary["documents"]
    for record in lines(folder / "log.jsonl.gz"):
        assert len(set(record["results"])) == len(record["results"]) == PAGE
        assert set(record["clicks"]) <= set(record["results"]) <= known
        assert record["user"].startswith("simulated-")
    grades = {phrasing: intent.grades for intent in read_intents()[:FEW] for phrasing in intent.phrasings}
    for kind in ("seen", "unseen"):
        for result in read_lists(str(folder / f"{kind}.lists.jsonl")):
            assert result.labels is not None
            judged = dict(zip(result.results, result.labels, strict=True))
            assert {d: g for d, g in judged.items() if g} == grades[result.query]
            assert set(judged) <= known


CODE = """
import sys
from pathlib import Path
from clickbridge.simulate import demo
few = demo.read_intents()[:int(sys.argv[2])]
demo.read_intents = lambda: few
demo.write_demo(Path(sys.argv[1]), seed=int(sys.argv[3]))
"""


def digests(folder: Path) -> dict[str, str]:
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES}


def test_a_seed_gives_the_same_bytes_in_any_process(tmp_path: Path) -> None:
    """In processes of their own: pytest puts functions of its own into the standard library."""
    runs = {}
    for name, hash_seed, seed in (("one", "1", "0"), ("two", "2", "0"), ("other", "1", "1")):
        command = [sys.executable, "-c", CODE, str(tmp_path / name), str(FEW), seed]
        runs[name] = subprocess.Popen(command, env=os.environ | {"PYTHONHASHSEED": hash_seed})
    assert [run.wait(120) for run in runs.values()] == [0, 0, 0]
    one, two, other = (digests(tmp_path / name) for name in runs)
    assert one == two
    assert other["docs.jsonl.gz"] == one["docs.jsonl.gz"]
    assert other["log.jsonl.gz"] != one["log.jsonl.gz"]
