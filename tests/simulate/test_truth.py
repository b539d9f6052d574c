"""Logs with truth: the files agree with the world they were drawn from, and with each other."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from scipy import sparse

from clickbridge.errors import SettingError
from clickbridge.io.lists import read_lists
from clickbridge.numerics.ragged import Ragged
from clickbridge.online.eigen import Lists, decompose
from clickbridge.online.projection import Shape, project
from clickbridge.simulate.calibration import DRAWS
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
    pool = candidates(world, queries, (OWN, 6, 14, 4), np.random.default_rng(2))
    topics = world.query_intents // INTENTS_PER_TOPIC
    for row, docs in enumerate(pool):
        there = docs[docs >= 0]
        assert len({*there}) == len(there)
        near, far = (block[block >= 0] for block in (docs[:-4], docs[-4:]))
        assert (world.doc_intents[near] // INTENTS_PER_TOPIC == topics[row]).all()
        assert (world.doc_intents[far] == world.look_alikes[world.query_intents[row]]).all()
        assert (world.doc_intents[far] // INTENTS_PER_TOPIC != topics[row]).all()
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
    assert len(docs) == round(DRAWS["one-week"].docs * round(SCALES["one-week"].n_docs * 0.01))


def test_a_seed_gives_the_same_bytes(tmp_path: Path, folder: Path) -> None:
    write_log("one-week", tmp_path, fraction=0.01, clicks="dbn", impressions=5_000)
    for file in sorted(folder.iterdir()):
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()


def drawn(scale: str, fraction: float) -> tuple[World, sparse.csr_array]:
    """A world of the scale and the clicks of as many searches as the calibration asks for."""
    size, draws, rng = SCALES[scale].shrunk(fraction), DRAWS[scale], np.random.default_rng(0)
    counts = (round(draws.queries * size.n_queries), round(draws.docs * size.n_docs), round(draws.words * size.n_words))
    per_row = (size.words_per_query, size.words_per_doc)
    world = draw_world(*counts, per_row, rng, queries_per_intent=draws.queries_per_intent)
    share = np.cumsum(world.popularity * world.seen)
    clicks = sparse.csr_array((len(world.query_texts), world.n_docs), dtype=np.int64)
    for _ in range(10):
        n = round(draws.searches * size.n_queries / 10)
        rows = np.searchsorted(share, rng.random(n) * share[-1], side="right")
        shown, clicked = draw_pages(world, rows, 10, "pbm", rng)
        at, rank = np.nonzero(clicked)
        clicks = clicks + sparse.csr_array(
            (np.ones(len(at), dtype=np.int64), (rows[at], shown[at, rank])), clicks.shape
        )
    return world, clicks


@pytest.mark.parametrize(("scale", "fraction"), [("one-week", 0.03), ("enterprise", 0.05), ("half-year", 0.0005)])
def test_the_published_size_is_left_after_the_threshold(scale: str, fraction: float) -> None:
    """Table 1 of 13 and Section 5.1 of 11M count what pairs of three clicks or fewer leave. Half a year is drawn as a
    sample: all averages are the same at every fraction."""
    published, size = SCALES[scale], SCALES[scale].shrunk(fraction)
    world, clicks = drawn(scale, fraction)
    query, doc = (clicks >= 4).nonzero()
    queries, docs = np.unique(query), np.unique(doc)
    assert len(queries) == pytest.approx(size.n_queries, rel=0.08)
    assert len(docs) == pytest.approx(size.n_docs, rel=0.08)
    assert len(query) / len(queries) == pytest.approx(published.clicked_docs_per_query, rel=0.06)
    assert len(query) / len(docs) == pytest.approx(published.clicking_queries_per_doc, rel=0.08)
    texts = (world.query_texts[queries], world.doc_texts[docs])
    words = [[{*text.split()} for text in side] for side in texts]
    for side, mean in zip(words, (published.words_per_query, published.words_per_doc), strict=True):
        assert np.mean([len(row) for row in side]) == pytest.approx(mean, rel=0.08)
    if scale != "half-year":  # see calibration.py
        assert len(set().union(*words[0], *words[1])) == pytest.approx(size.n_words, rel=0.08)


def test_result_lists_of_all_topics_are_one_graph() -> None:
    """So that 09's truncation and query clusters have something to do: before, no component exceeded a topic."""
    world, _ = drawn("one-week", 0.01)
    rng = np.random.default_rng(4)
    shown, _ = draw_pages(world, rng.integers(0, len(world.query_texts), 5_000), 20, "pbm", rng)
    pages = [row[row >= 0] for row in shown]
    lists = Lists(Ragged.of_lengths(np.array([len(p) for p in pages])), np.concatenate(pages), world.n_docs)
    spaces = decompose(lists, 50, seed=0).spaces
    largest = max(spaces, key=lambda space: len(space.pages))
    assert len(largest.pages) > 0.9 * len(np.unique(lists.pages)) > 2_000
    assert largest.vectors.shape[1] == 50  # truncated
    assert largest.values[1] < 1 - 1e-6  # one component, not several
    assert largest.values[-1] > 0.3  # and topics are still to be seen in it
    projection = project(lists, Shape(50, 0.95, 20, 10.0, "weighted", 10.0, True))
    assert projection.layout.n_clusters.max() == 20


def test_an_unknown_click_model(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="clicks must be one of"):
        write_log("one-week", tmp_path, fraction=0.01, clicks="ubm")
