"""Text into terms."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clickbridge import normalise_query
from clickbridge.errors import SettingError
from clickbridge.settings import LANGUAGES
from clickbridge.views.stopwords import STOP_WORDS
from clickbridge.views.text import Analyzer, bigrams, char_ngrams, fold_accents, tokens_of, url_words

PLAIN = Analyzer("none")
ENGLISH = Analyzer("english", "keep")
DROPPING = Analyzer("english", "drop")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \t\n", []),
        ("?!... --- ___", []),
        ("New York, NY 10001", ["New", "York", "NY", "10001"]),
        ("snake_case_name", ["snake", "case", "name"]),
        ("don't rock'n'roll 'quoted'", ["don't", "rock'n'roll", "quoted"]),
        ("it’s", ["it’s"]),
        ("3.14 and C++", ["3", "14", "and", "C"]),
        ("ﬁne Ⅷ ½", ["fine", "VIII", "1", "2"]),  # NFKC
        ("cafe\u0301", ["café"]),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert tokens_of(text) == tokens


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("running pages", ["run", "page"]),
        ("The Server's page", ["the", "server", "page"]),
        ("The server’s page", ["the", "server", "page"]),
        ("servers' pages", ["server", "page"]),
        ("naïve Café RÉSUMÉ", ["naiv", "cafe", "resum"]),
        ("naive cafe resume", ["naiv", "cafe", "resum"]),
        ("pizza pizza Pizza", ["pizza"] * 3),
    ],
)
def test_english_terms(text: str, terms: list[str]) -> None:
    assert ENGLISH.terms(text) == terms


@pytest.mark.parametrize(
    ("token", "terms"),
    [
        ("OrderedDict", ["ordereddict", "ordered", "dict"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("camelCase", ["camelcase", "camel", "case"]),
        ("iOS17Beta", ["ios17beta", "i", "os", "17", "beta"]),
        ("NASA", ["nasa"]),
        ("Word", ["word"]),
        ("plain", ["plain"]),
        ("utf8", ["utf8"]),
    ],
)
def test_camel_case_gives_the_whole_and_the_humps(token: str, terms: list[str]) -> None:
    assert PLAIN.terms(token) == terms


def test_stop_words_go_where_asked() -> None:
    text = "The history of the city and its bridges"
    assert DROPPING.terms(text) == ENGLISH.terms("history city bridges")
    assert "the" in ENGLISH.terms(text)


@pytest.mark.parametrize("text", ["the who", "It", "to be or not to be, that is what", "don’t", "THE"])
def test_a_text_of_stop_words_alone_keeps_them(text: str) -> None:
    alone = " ".join(word for word in text.split() if word not in ("not", "be,"))
    assert DROPPING.terms(alone) == ENGLISH.terms(alone) != []


def test_no_stop_words_without_language() -> None:
    assert Analyzer("none", "drop").terms("the city") == ["the", "city"]


@pytest.mark.parametrize("language", sorted(STOP_WORDS))
def test_stop_words_of_every_language_are_found_by_their_own_tokens(language: str) -> None:
    analyzer = Analyzer(language, "drop")
    words = sorted(STOP_WORDS[language])
    assert language in LANGUAGES
    assert analyzer.terms(" ".join([*words, *(w.upper() for w in words), "xylophon"])) == analyzer.terms("xylophon")


STEMMED = {
    "arabic": "المكتبات", "danish": "bøgerne", "dutch": "boeken", "english": "books", "finnish": "kirjoissa",
    "french": "livres", "german": "Büchern", "hungarian": "könyvek", "italian": "libri", "norwegian": "bøkene",
    "portuguese": "livros", "romanian": "cărțile", "russian": "книгами", "spanish": "libros",
    "swedish": "böckerna", "turkish": "kitaplar",
}  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_stems_something(language: str) -> None:
    analyzer = Analyzer(language)
    word = STEMMED.get(language, "books")
    (term,) = analyzer.terms(word)
    if language == "none":
        assert term == word
    else:
        assert len(term) < len(word)
    assert analyzer.terms(word.upper()) == [term]


def test_an_unknown_language_is_named() -> None:
    with pytest.raises(SettingError, match=r"language must be one of arabic, .*; got 'klingon'"):
        Analyzer("klingon")


def test_elisions_are_undone() -> None:
    assert Analyzer("french").terms("l'avion l’avion") == Analyzer("french").terms("avion avion")


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("東京都", ["東京", "京都", "東", "京", "都"]),
        ("本", ["本"]),
        ("東京 大阪", ["東京", "東", "京", "大阪", "大", "阪"]),
        ("ひらがな", ["ひら", "らが", "がな"]),
        ("한국어", ["한국", "국어"]),
        ("iPhone手机壳", ["iphone", "i", "phone", "手机", "机壳", "手", "机", "壳"]),
        ("Python3教程", ["python3", "教程", "教", "程"]),
    ],
)
def test_scripts_without_blanks_become_bigrams_and_han_characters(text: str, terms: list[str]) -> None:
    assert PLAIN.terms(text) == terms


def test_mixed_script_is_found_by_the_normalised_query() -> None:
    assert set(PLAIN.terms(normalise_query("iPhone手机"))) <= set(PLAIN.terms("iPhone手机"))


@pytest.mark.parametrize("language", ["turkish", "english", "none"])
def test_the_turkish_capital_i_survives_normalisation(language: str) -> None:
    analyzer = Analyzer(language)
    assert analyzer.terms(normalise_query("İstanbul")) == analyzer.terms("İstanbul")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (
            "http://www.new-york.org/BestPizza.html?id=7",
            ["new", "york", "org", "bestpizza", "best", "pizza", "id", "7"],
        ),
        ("https://example.com/a%20b/caf%C3%A9", ["example", "com", "a", "b", "cafe"]),
        ("www2.example.com/index.php", ["example", "com", "index"]),
        ("example.com/page.aspx#top", ["example", "com", "page", "top"]),
        ("ftp://host/readme.txt", ["host", "readme", "txt"]),
        ("  http://x.y/ ", ["x", "y"]),
        ("http://broken/%zz%", ["broken", "zz"]),
        ("", []),
    ],
)
def test_url_words(url: str, words: list[str]) -> None:
    assert PLAIN.terms(url, url=True) == words


def test_html_is_dropped_only_at_the_end_of_a_page_name() -> None:
    assert url_words("http://a/html.htmlx/x.html") == "a/html.htmlx/x"


def test_accents() -> None:
    assert fold_accents("plain") == "plain"
    assert fold_accents("ÀÉîõüç") == "AEiouc"


def test_bigrams() -> None:
    assert list(bigrams(["new", "york", "pizza"])) == ["new york", "york pizza"]
    assert list(bigrams(["one"])) == list(bigrams([])) == []


def test_character_ngrams() -> None:
    assert list(char_ngrams(["cat"], 3, 4)) == ["#ca", "cat", "at#", "#cat", "cat#"]
    assert list(char_ngrams(["a"], 4, 5)) == ["#a#"]
    assert list(char_ngrams([])) == []


@given(st.lists(st.text("abcdef", min_size=1, max_size=9)), st.integers(2, 4), st.integers(0, 3))
def test_character_ngrams_are_all_windows(words: list[str], low: int, more: int) -> None:
    expected = [
        f"#{word}#"[i : i + n] for word in words for n in range(low, low + more + 1) for i in range(len(word) + 3 - n)
    ]
    found = list(char_ngrams(words, low, low + more))
    assert [g for g in found if len(g) >= low] == expected
    assert [g for g in found if len(g) < low] == [f"#{w}#" for w in words if len(w) + 2 < low]


@given(st.text(), st.sampled_from(LANGUAGES), st.sampled_from(["keep", "drop"]), st.booleans())
@example("\ud800 lone surrogate", "english", "drop", True)
@example("\x00\x1f", "none", "keep", False)
@example("%F0%9F%92%A9'’'", "english", "drop", True)
@example("''''s a’’b", "english", "drop", False)
def test_any_text_gives_terms(text: str, language: str, stop_words: str, url: bool) -> None:
    terms = Analyzer(language, stop_words).terms(text, url)
    assert all(isinstance(term, str) and term and not any(c.isspace() for c in term) for term in terms)
    assert [bigram.split(" ") for bigram in bigrams(terms)] == [list(p) for p in pairwise(terms)]
    list(char_ngrams(tokens_of(text)))


LETTERS = st.characters(categories=["Lu", "Ll", "Lo", "Nd"])


@given(st.lists(st.text(LETTERS, min_size=1, max_size=8), max_size=4))
@example(["İI", "ΐ", "ẞß", "Σς", "ŉ", "ﬃ", "手A", "Ǆ"])
def test_a_normalised_query_finds_the_words_as_documents_write_them(words: list[str]) -> None:
    """Queries are case-folded on the way in, documents are not: the terms must meet."""
    text = " ".join(words)
    assert set(PLAIN.terms(normalise_query(text))) <= set(PLAIN.terms(text))


@given(st.text())
def test_composed_or_not_makes_no_difference(text: str) -> None:
    assert tokens_of(unicodedata.normalize("NFD", text)) == tokens_of(unicodedata.normalize("NFC", text))


@given(st.text(), st.text())
def test_analysis_does_not_depend_on_what_came_before(first: str, second: str) -> None:
    used = Analyzer("english", "drop")
    used.terms(first)
    assert used.terms(second) == Analyzer("english", "drop").terms(second)
