"""Synonyms from clicks: which letters may be the same word, and which pairs clicks confirm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from clickbridge import ClickGraph, read_docs, read_log
from clickbridge.insight.synonym_files import solr_lines
from clickbridge.insight.synonyms import learn_synonyms
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
        ("50", "fifty", "number"),
        ("3rd", "third", "number"),
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


def found(graph: ClickGraph, **options: float) -> dict[str, tuple[str, str]]:
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


def test_words_run_together_are_found_where_most_people_type_them_apart() -> None:
    graph = log(("duty 2", "cod", 9), ("duty2", "cod", 3))  # no document has a 2
    assert found(graph)["duty2"] == ("duty 2", "run together")
    graph = log(("duty 2", "cod", 3), ("duty2", "cod", 9))
    assert "duty2" not in found(graph)


def test_two_words_with_a_slip_are_put_right() -> None:
    graph = log(("battlefild 4", "bf", 9), ("battlefild4", "bf", 3), ("battlefield", "bf", 30))
    assert found(graph)["battlefild4"] == ("battlefield 4", "run together")


def test_a_number_is_not_doubted_for_documents_that_write_it_as_typed() -> None:
    docs = [
        Document("ii", {"title": "Rocky II"}),
        Document("2", {"title": "Alien 2"}),
        Document("o", {"title": "Other"}),
    ]
    clicks = [("rocky ii", "ii", 20), ("alien ii", "2", 3), ("aliens ii", "2", 3), ("the alien ii", "2", 3)]
    pages = [Impression(query, None, [doc], user=f"{query}{n}") for query, doc, count in clicks for n in range(count)]
    pages += [Impression("other", None, ["o"], user=f"o{n}") for n in range(60)]
    assert found(ClickGraph.build(pages, docs))["ii"] == ("2", "number")


def test_less_strict_finds_more_but_no_fewer_people() -> None:
    graph = log(("abc", "sofa", 2), ("abc", "sofa2", 2), ("abc", "sofa3", 2))
    assert "abc" not in found(graph)
    assert found(graph, strictness=0.3)["abc"] == ("sofa", "same use")
    assert "abc" not in found(graph, strictness=0.3, min_users=3)


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


def right_of_the_first_hundred(name: str, graph: ClickGraph, **options: float) -> int:
    """How many of the first hundred pairs are among those that a person found right."""
    lines = (Path(__file__).parent / "judged" / f"{name}.tsv").read_text().splitlines()[1:]
    right = {tuple(line.split("\t")[:2]) for line in lines if line.endswith("right")}
    pairs = learn_synonyms(graph, **options)[:100]  # type: ignore[arg-type]
    assert len(pairs) == 100
    return sum((s.typed, s.means) in right for s in pairs)


@pytest.mark.data
def test_precision_on_a_shop(real_data: Callable[[str], Path]) -> None:
    home = real_data("bestbuy")
    log = read_log(str(home / "clicks.tsv.gz"), columns={"time": "click_time"})
    assert right_of_the_first_hundred("bestbuy", ClickGraph.build(log, read_docs(str(home / "docs.jsonl.gz")))) >= 80


@pytest.mark.data
def test_precision_on_movies(real_data: Callable[[str], Path]) -> None:
    """Every query was asked once, so a hundred pairs take less evidence."""
    home = real_data("msrd")
    graph = ClickGraph.build(read_log(str(home / "train.log.jsonl.gz")), read_docs(str(home / "docs.jsonl.gz")))
    assert right_of_the_first_hundred("msrd", graph, min_users=1, strictness=0.25) >= 80


def test_a_slip_of_one_person_is_for_those_who_may_see_it() -> None:
    graph = log(("battlefield", "bf", 5), ("battlefild", "bf", 1))
    assert found(graph, min_users=1)["battlefild"] == ("battlefield", "misspelling")
    assert "battlefild" not in found(graph, min_users=2)
