"""Synonyms from clicks: which letters may be the same word, and which pairs clicks confirm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from clickbridge import ClickGraph, read_docs, read_log
from clickbridge.insight.synonyms import learn_synonyms, solr_lines
from clickbridge.insight.word_relations import distance, relation
from clickbridge.types import Document, Impression


@pytest.mark.parametrize(
    ("typed", "phrase", "kind"),
    [
        ("arkam", "arkham", "misspelling"),
        ("teh", "the", None),
        ("pizza", "pasta", None),
        ("battelfield", "battlefield", "misspelling"),
        ("xbox360", "xbox 360", "run together"),
        ("battlefeild3", "battlefield 3", "run together"),
        ("ny", "new york", "abbreviation"),
        ("mw3", "modern warfare 3", "abbreviation"),
        ("gta4", "grand theft auto iv", "abbreviation"),
        ("three", "3", "number"),
        ("iii", "3", "number"),
        ("2k11", "2k12", None),
        ("halo3", "halo4", None),
        ("same", "same", None),
    ],
)
def test_relation(typed: str, phrase: str, kind: str | None) -> None:
    assert relation(typed, phrase.split()) == kind


def test_distance() -> None:
    assert [distance("kinect", other) for other in ("kinect", "kinnect", "knect", "kniect", "kimact")] == [
        0,
        1,
        1,
        1,
        2,
    ]
    assert distance("a", "abcdefgh") == 4


def log(*clicks: tuple[str, str, int]) -> ClickGraph:
    docs = [
        Document("cod", {"title": "Call of Duty"}),
        Document("bf", {"title": "Battlefield 3"}),
        Document("halo", {"title": "Halo Reach"}),
        Document("sofa", {"title": "Sofa bed"}),
        Document("sofa2", {"title": "Leather sofa"}),
        Document("sofa3", {"title": "Corner sofa"}),
        *(Document(f"o{i}", {"title": f"other thing {i}"}) for i in range(60)),
    ]
    pages = [Impression(query, None, [doc], user=f"{query}{n}") for query, doc, count in clicks for n in range(count)]
    pages += [Impression(f"other {i}", None, [f"o{i}"], user=f"o{n}") for i in range(60) for n in range(10)]
    return ClickGraph.build(pages, docs)


def found(graph: ClickGraph, **options: int) -> dict[str, tuple[str, str]]:
    return {s.typed: (s.means, s.kind) for s in learn_synonyms(graph, **options)}


def test_kinds() -> None:
    graph = log(
        ("cod", "cod", 5), ("battle field", "bf", 4), ("battlefild", "bf", 3), ("haloreach", "halo", 3),
        ("couch", "sofa", 4), ("couch", "sofa2", 4), ("couch", "sofa3", 4), ("blue couch", "sofa3", 3),
        ("cheap couch", "sofa3", 3),
    )  # fmt: skip
    assert found(graph) == {
        "cod": ("call of duty", "abbreviation"),
        "battle field": ("battlefield", "split apart"),
        "battlefild": ("battlefield", "misspelling"),
        "haloreach": ("halo reach", "run together"),
        "couch": ("sofa", "same use"),
    }


def test_one_person_shows_nothing() -> None:
    assert "cod" not in found(log(("cod", "cod", 1)))
    graph = log(("cod", "cod", 4))
    assert "cod" in found(graph, min_users=4)
    assert "cod" not in found(graph, min_users=5)


def test_a_word_that_leads_elsewhere_means_nothing() -> None:
    """Letters alone do not make a pair."""
    assert "hallo" not in found(log(("hallo", "bf", 9), ("hallo", "halo", 1)))


def test_a_slip_of_a_slip_is_one_of_the_word() -> None:
    graph = log(("battelfild", "bf", 3), ("battlefild", "bf", 9), ("battlefield", "bf", 30))
    assert {s.means for s in learn_synonyms(graph)} == {"battlefield"}


def test_solr_lines() -> None:
    synonyms = learn_synonyms(log(("cod", "cod", 5), ("battlefild", "bf", 3)))
    assert sorted(solr_lines(synonyms)) == ["battlefild => battlefield", "cod => cod, call of duty"]


def test_examples_are_of_enough_people() -> None:
    graph = log(("cod", "cod", 3), ("my private cod wish", "cod", 1))
    (pair,) = (s for s in learn_synonyms(graph, min_users=2) if s.typed == "cod")
    assert pair.queries == ("cod",)
    assert pair.users == 4


@pytest.mark.data
def test_precision_on_a_real_log(real_data: Callable[[str], Path]) -> None:
    """Of the first hundred pairs at least four fifths are among those that a person found right."""
    home = real_data("bestbuy")
    lines = (Path(__file__).parent / "judged" / "bestbuy.tsv").read_text().splitlines()[1:]
    right = {tuple(line.split("\t")[:2]) for line in lines if line.endswith("right")}
    log = read_log(str(home / "clicks.tsv.gz"), columns={"time": "click_time"})
    pairs = learn_synonyms(ClickGraph.build(log, read_docs(str(home / "docs.jsonl.gz"))))[:100]
    assert sum((s.typed, s.means) in right for s in pairs) >= 80


def test_a_slip_of_one_person_is_for_those_who_may_see_it() -> None:
    graph = log(("battlefield", "bf", 5), ("battlefild", "bf", 1))
    assert found(graph, min_users=1)["battlefild"] == ("battlefield", "misspelling")
    assert "battlefild" not in found(graph, min_users=2)
