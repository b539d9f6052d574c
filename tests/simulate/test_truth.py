"""Logs with truth: the files agree with the world they were drawn from, and with each other."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from clickbridge.errors import SettingError
from clickbridge.io.lists import read_lists
from clickbridge.simulate.scale import SCALES, write_log
from clickbridge.simulate.truth import (
    CONCEPTS,
    INTENTS_PER_TOPIC,
    LIKING,
    OWN,
    World,
    candidates,
    draw_pages,
    draw_world,
    grades,
)


def lines(path: Path) -> list[dict[str, Any]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as file:
        return [orjson.loads(line) for line in file]


@pytest.fixture(scope="module")
def world() -> World:
    return draw_world(600, 700, 400, (2.3, 4.4), np.random.default_rng(0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("truth")
    write_log("one-week", out, fraction=0.01, clicks="dbn", impressions=5_000)
    return out


def test_grades_by_hand(world: World) -> None:
    queries, docs = np.arange(40), np.random.default_rng(1).integers(-1, 700, (40, 9))
    found = grades(world, queries, docs)
    for q, d in np.ndindex(docs.shape):
        doc, intent = docs[q, d], world.query_intents[q]
        if doc < 0:
            expected = 0
        elif world.doc_intents[doc] == intent:
            expected = world.doc_grades[doc]
        else:
            related = intent + 1 if intent % 2 == 0 else intent - 1
            expected = int(world.doc_intents[doc] == related)
        assert found[q, d] == expected
    assert {*world.doc_grades} == {2, 3, 4}


def test_candidates_are_of_the_topic_and_each_once(world: World) -> None:
    queries = np.arange(len(world.query_texts))
    pool = candidates(world, queries, (OWN, 6, 14), np.random.default_rng(2))
    topics = world.query_intents // INTENTS_PER_TOPIC
    for row, docs in enumerate(pool):
        there = docs[docs >= 0]
        assert len({*there}) == len(there)
        assert (world.doc_intents[there] // INTENTS_PER_TOPIC == topics[row]).all()
        own = np.flatnonzero(world.doc_intents == world.query_intents[row])
        assert len({*docs[:OWN]} & {*own}) == min(OWN, len(own))


def test_words_say_what_is_meant_in_many_ways(world: World) -> None:
    """All three forms occur in queries, two in documents; abbreviations and run-together words share no word."""
    by_form = [Counter((forms[forms >= 0] % 3).tolist()) for forms in (world.query_forms, world.doc_forms)]
    assert set(by_form[0]) == {0, 1, 2}
    assert set(by_form[1]) == {0, 1}
    assert 0.55 < by_form[0][0] / by_form[0].total() < 0.75
    assert 0.6 < by_form[1][0] / by_form[1].total() < 0.8
    assert by_form[1].total() / world.n_docs == pytest.approx(4.4, rel=0.05)
    single = (world.query_forms < 0).all(axis=1)
    assert 0.07 < single.mean() < 0.18
    words = {word for text in world.doc_texts for word in text.split()}
    assert sum(text in words for text in world.query_texts[single]) < 0.2 * single.sum()
    assert world.query_forms.shape[1] == CONCEPTS
    assert len({*world.query_texts}) == len(world.query_texts)


def test_users_like_by_grade_and_the_engine_prefers_shared_words(world: World) -> None:
    rng = np.random.default_rng(3)
    queries = rng.integers(0, len(world.query_texts), 20_000)
    shown, clicked = draw_pages(world, queries, 10, "pbm", rng)
    of_shown = grades(world, queries, shown)
    first = shown[:, 0] >= 0
    for grade, liking in enumerate(LIKING):
        rows = first & (of_shown[:, 0] == grade)  # the first rank is looked at for certain
        assert clicked[rows, 0].mean() == pytest.approx(liking, abs=4.5 * np.sqrt(0.25 / rows.sum()))
    shared = np.array(
        [[len({*world.query_forms[q]} & {*world.doc_forms[d]} - {-1}) for d in row[[0, 5]]]
         for q, row in zip(queries[:3_000], shown, strict=False)]
    )  # fmt: skip
    assert shared[:, 0].mean() > shared[:, 1].mean()
    assert not clicked[shown < 0].any()


def test_files_agree(folder: Path) -> None:
    log, docs = lines(folder / "log.jsonl.gz"), {d["doc_id"] for d in lines(folder / "docs.jsonl.gz")}
    intents = {line["query"]: int(line["intent"]) for line in lines(folder / "intents.jsonl")}
    assert len(log) == 5_000
    typed = Counter(line["query"] for line in log)
    assert set(typed) <= set(intents)
    assert typed.most_common(1)[0][1] > 20 * np.median(list(typed.values()))  # power law
    for line in log:
        assert len(line["results"]) == len({*line["results"]}) <= 10
        assert {*line["clicks"]} <= {*line["results"]} <= docs
    times = [line["time"] for line in log]
    assert times == sorted(times)
    assert times[-1] - times[0] <= 7 * 86_400
    for kind in ("seen", "unseen"):
        lists = read_lists(str(folder / f"{kind}.lists.jsonl"))
        assert max(label for r in lists for label in r.labels or ()) == 4
        assert {r.query for r in lists} <= set(intents)
    assert not {r.query for r in lists} & set(typed)
    assert len(docs) == round(SCALES["one-week"].n_docs * 0.01)


def test_a_seed_gives_the_same_bytes(tmp_path: Path, folder: Path) -> None:
    write_log("one-week", tmp_path, fraction=0.01, clicks="dbn", impressions=5_000)
    for file in sorted(folder.iterdir()):
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()


def test_an_unknown_click_model(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="clicks must be one of"):
        write_log("one-week", tmp_path, fraction=0.01, clicks="ubm")
