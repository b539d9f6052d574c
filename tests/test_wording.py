"""Counts in messages: the noun and the verb go with the number."""

import pytest

from clickbridge.graph.hold_back import few_held
from clickbridge.wording import agree, count_of, with_s


@pytest.mark.parametrize(
    ("one", "more"),
    [
        ("query", "queries"),
        ("day", "days"),
        ("search", "searches"),
        ("person", "people"),
        ("click", "clicks"),
        ("index", "indexes"),
    ],
)
def test_nouns_in_the_plural(one: str, more: str) -> None:
    assert with_s(one) == more
    assert [count_of(n, one) for n in (0, 1, 2)] == [f"0 {more}", f"1 {one}", f"2 {more}"]


@pytest.mark.parametrize(
    ("more", "one"), [("are", "is"), ("were", "was"), ("have", "has"), ("go", "goes"), ("say", "says"), ("lie", "lies")]
)
def test_verbs_go_with_the_count(more: str, one: str) -> None:
    assert [agree(n, more) for n in (0, 1, 2)] == [more, one, more]


def test_the_last_word_of_a_phrase_changes() -> None:
    assert count_of(1234, "result page", "are") == "1,234 result pages are"


def test_of_several_the_noun_goes_with_all_and_the_verb_with_the_part() -> None:
    assert count_of(1, "click", "are", of=20) == "1 of 20 clicks is"
    assert count_of(0, "click", "are", of=1) == "0 of 1 click are"


def test_too_few_held_back() -> None:
    assert few_held(1) == "1 query can be held back, 50 are needed"
    assert few_held(49, "list") == "49 lists can be held back, 50 are needed"
