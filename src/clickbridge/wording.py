"""Words of messages: counts, such as "1 query is" and "2,178 queries are", and what a misspelt name may mean."""

from collections.abc import Iterable
from difflib import get_close_matches

IRREGULAR = {"person": "people", "are": "is", "were": "was", "have": "has"}
HISSING = ("s", "x", "z", "ch", "sh", "go")


def with_s(word: str) -> str:
    """The plural of a noun, or what a verb in the plural is in the singular: an *s* makes both."""
    if word in IRREGULAR:
        return IRREGULAR[word]
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return word + ("es" if word.endswith(HISSING) else "s")


def agree(n: int, verb: str) -> str:
    """The verb, given in the plural, as it goes with a count."""
    return with_s(verb) if n == 1 else verb


def count_of(n: int, noun: str, verb: str = "", of: int | None = None) -> str:
    """A count and what is counted. The noun is given in the singular, and its last word changes; the verb is given in
    the plural.

    >>> count_of(1, "result page"), count_of(2178, "query", "have"), count_of(1, "click", "are", of=20)
    ('1 result page', '2,178 queries have', '1 of 20 clicks is')
    """
    if (n if of is None else of) != 1:
        *first, last = noun.split(" ")
        noun = " ".join([*first, with_s(last)])
    words = [f"{n:,}", noun] if of is None else [f"{n:,}", "of", f"{of:,}", noun]
    return " ".join([*words, agree(n, verb)] if verb else words)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Words to put after a name that is not known. They are empty if no known name is similar.

    >>> did_you_mean("BM26", ["bm25", "pls"]), did_you_mean("popular", ["bm25", "pls"])
    (' (did you mean bm25?)', '')
    """
    found = get_close_matches(name.casefold(), list(known), 1, 0.7)
    return f" (did you mean {found[0]}?)" if found else ""
