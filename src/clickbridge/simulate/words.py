"""Pseudo-words and the topic model that puts them into simulated titles and queries.

The click logs of Wu, Lu, Li, "Learning Bilinear Model for Matching Queries and Documents" (JMLR 2013) are
private; known are the number of distinct words and the words per query and per document.  This file draws
word ids that meet those numbers and have the structure that makes matching hard in practice: word
popularity follows a power law, words cluster in topics, and a query shares words with the documents
clicked for it often but not always (term mismatch).

Rows (documents or queries) are ragged: row i owns the slots indptr[i]:indptr[i + 1] of a flat id array.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Ids = NDArray[np.int32]
Draw = Callable[[Ints, int], Ids]  # (row of each slot, attempt number) -> word id of each slot

# The Snowball English stemmer leaves a word of these syllables unchanged: its suffixes that end in a, i, o
# or u are "li" after a consonant or e, "logi", and "iti" with longer forms of these; none can occur where
# consonant and vowel alternate without e, g, t and y.  So distinct words have distinct stems.  No English
# stop word has this form.
CONSONANTS = "bdfhklmnprvz"
VOWELS = "aiou"

TOPIC_WORDS = 256  # vocabulary of one topic
GLOBAL_SHIFT = 5.0  # stop words are gone, so the head of the popularity law is flatter than 1 / rank
TOPIC_SHIFT = 4.0
OFF_TOPIC = 0.15  # share of words drawn from the whole language
COPIED = 0.45  # share of query words taken from a clicked document
UNIFORM_AFTER = 4  # attempts before redraws ignore popularity, which guarantees an end
ROWS_PER_CHUNK = 500_000


def pseudo_words(n: int) -> NDArray[np.str_]:
    """The first n words, shortest first, so that the popular (low) ids are short as in real text."""
    syllables = np.array([c + v for c in CONSONANTS for v in VOWELS], dtype="S2")
    parts: list[NDArray[np.str_]] = []
    length, made = 2, 0
    while made < n:
        space = len(syllables) ** length
        index = np.arange(min(space, n - made), dtype=np.int64)
        # A stride prime to the space visits every word once, with neighbours that do not look alike.
        stride = int(space * 0.618)
        while gcd(stride, space) != 1:
            stride += 1
        index = index * stride % space
        digits = np.empty((len(index), length), dtype=np.int64)
        for j in range(length):
            digits[:, j] = index % len(syllables)
            index //= len(syllables)
        parts.append(syllables[digits].view(f"S{2 * length}").ravel().astype(np.str_))
        made += len(digits)
        length += 1
    return np.concatenate(parts)


@dataclass(frozen=True)
class TopicText:
    """Word ids of all rows, spelt out only for the rows asked for."""

    indptr: Ints
    words: Ids
    vocabulary: pa.StringArray

    def of(self, rows: Ints) -> pa.StringArray:
        """All words of each row, separated by blanks."""
        slots, _ = slots_of(self.indptr, rows)
        return joined(self.at(slots), offsets(self.indptr[rows + 1] - self.indptr[rows]), " ")

    def at(self, slots: Ints) -> pa.StringArray:
        return self.vocabulary.take(self.words[slots])


# The type stubs of pyarrow know these two functions without mixtures of scalars and arrays.
_join: Any = pc.binary_join
_join_element_wise: Any = pc.binary_join_element_wise


def joined(strings: pa.StringArray, starts: Ints, by: str) -> pa.StringArray:
    """One string per row: strings[starts[i]:starts[i + 1]] joined by a separator."""
    rows: pa.StringArray = _join(pa.ListArray.from_arrays(pa.array(starts, pa.int32()), strings), by)
    return rows


def pasted(*parts: str | pa.StringArray | NDArray[np.int64]) -> pa.StringArray:
    """One string per row: the parts one after the other, constants the same in each row."""
    columns = (pa.array(p).cast(pa.string()) if isinstance(p, np.ndarray) else p for p in parts)
    rows: pa.StringArray = _join_element_wise(*columns, "")
    return rows


def quoted(*parts: str | pa.StringArray | NDArray[np.int64]) -> pa.StringArray:
    """JSON strings; the parts need no escapes, being ASCII letters, digits, blanks and slashes."""
    return pasted('"', *parts, '"')


class JsonLines(gzip.GzipFile):
    """Compressed JSON lines, written by column; without time stamp, so one seed gives the same bytes."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "wb", compresslevel=1, mtime=0)

    def add(self, **fields: pa.StringArray) -> None:
        """Write one object per row; the values are JSON."""
        parts: list[str | pa.StringArray] = []
        for name, values in fields.items():
            parts += [f'{"," if parts else "{"}"{name}":', values]
        rows = pasted(*parts, "}\n")
        whole = joined(rows, np.array([0, len(rows)]), "")
        self.write(whole[0].as_buffer())


def draw_text(
    rng: np.random.Generator,
    n_words: int,
    words_per_row: tuple[float, float],
    topics: tuple[Ids, Ids],
    links: tuple[Ints, Ids],
) -> tuple[TopicText, TopicText]:
    """Text of queries and of documents, from the mean words and the topics of both.

    links is (indptr, document ids) by query: queries borrow words from the documents clicked for them.
    """
    query_topics, doc_topics = topics
    table = _topic_table(rng, 1 + int(max(query_topics.max(), doc_topics.max())), n_words)
    vocabulary = pa.array(pseudo_words(n_words).tolist(), pa.string())
    doc_ptr = offsets(1 + rng.binomial(8, (words_per_row[1] - 1) / 8, len(doc_topics)))
    docs = TopicText(doc_ptr, _document_words(rng, doc_ptr, doc_topics, table, n_words), vocabulary)
    query_ptr = offsets(_query_lengths(rng, len(query_topics), words_per_row[0], n_words))
    words = _query_words(rng, query_ptr, query_topics, table, n_words, links, docs)
    return TopicText(query_ptr, words, vocabulary), docs


def _power_law(rng: np.random.Generator, size: int, n: int, shift: float) -> Ids:
    """Ranks 0..n-1 with P(r) proportional to 1 / (r + shift), Zipf-Mandelbrot, by inverting its integral."""
    rank = shift * (np.power(n / shift + 1.0, rng.random(size)) - 1.0)
    return np.minimum(rank, n - 1).astype(np.int32)


def _topic_table(rng: np.random.Generator, n_topics: int, n_words: int) -> Ids:
    """Word id by (topic, rank in topic): popular words occur in many topics, rare ones in few."""
    # The wide shift spreads the tables over the vocabulary; the head stays popular through OFF_TOPIC.
    flat = _power_law(rng, n_topics * TOPIC_WORDS, n_words, n_words / 4)
    return flat.reshape(n_topics, TOPIC_WORDS)


def offsets(lengths: Ints) -> Ints:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])


def slots_of(indptr: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Slot numbers of the given rows, row by row, and the row that owns each."""
    lengths = indptr[rows + 1] - indptr[rows]
    ends = np.cumsum(lengths)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - lengths, lengths)
    return np.repeat(indptr[rows], lengths) + within, np.repeat(rows, lengths)


def _query_lengths(rng: np.random.Generator, n: int, mean: float, n_words: int) -> Ints:
    """1 to 6 words.  Texts are unique, so at most a fifth of the vocabulary may be a whole query."""
    single = min(0.15, 0.2 * n_words / n)
    rest = (mean - single) / (1 - single)
    lengths: Ints = 2 + rng.binomial(4, (rest - 2) / 4, n)
    lengths[rng.random(n) < single] = 1
    return lengths


def _document_words(rng: np.random.Generator, indptr: Ints, topics: Ids, table: Ids, n_words: int) -> Ids:
    """Words of every document, distinct within it; every word of the vocabulary occurs."""

    def draw(rows: Ints, attempt: int) -> Ids:
        return _topical(rng, topics[rows], table, n_words, attempt)

    words = np.empty(int(indptr[-1]), dtype=np.int32)
    for start in range(0, len(topics), ROWS_PER_CHUNK):
        _fill(words, indptr, np.arange(start, min(start + ROWS_PER_CHUNK, len(topics))), draw)
    _cover(rng, words, n_words)
    return words


def _query_words(
    rng: np.random.Generator,
    indptr: Ints,
    topics: Ids,
    table: Ids,
    n_words: int,
    links: tuple[Ints, Ids],
    docs: TopicText,
) -> Ids:
    """Words of every query, distinct within it, no two queries with the same set of words."""
    link_ptr, link_docs = links

    def draw(rows: Ints, attempt: int) -> Ids:
        chosen = _topical(rng, topics[rows], table, n_words, attempt)
        if attempt < UNIFORM_AFTER:
            copied = np.flatnonzero(rng.random(len(rows)) < COPIED)
            doc = link_docs[_member(rng, link_ptr, rows[copied])].astype(np.int64)
            chosen[copied] = docs.words[_member(rng, docs.indptr, doc)]
        return chosen

    n = len(topics)
    words = np.empty(int(indptr[-1]), dtype=np.int32)
    # A sum of random 64-bit codes identifies a set of words; a false match only costs one redraw.
    code = rng.integers(0, 2**64, n_words, dtype=np.uint64)
    keys = np.empty(n, dtype=np.uint64)

    def redraw(rows: Ints, attempt: int) -> None:
        _fill(words, indptr, rows, draw, attempt)
        slots, _ = slots_of(indptr, rows)
        starts = offsets(indptr[rows + 1] - indptr[rows])[:-1]
        keys[rows] = np.add.reduceat(code[words[slots]], starts)

    for start in range(0, n, ROWS_PER_CHUNK):
        redraw(np.arange(start, min(start + ROWS_PER_CHUNK, n)), 0)
    attempt = 1
    while len(again := repeated(keys)):
        redraw(again, attempt)
        attempt += 1
    return words


def repeated(keys: NDArray[np.generic]) -> Ints:
    """Positions whose key equals that of an earlier position."""
    order = np.argsort(keys, kind="stable")
    ranked = keys[order]
    return np.sort(order[1:][ranked[1:] == ranked[:-1]])


def _topical(rng: np.random.Generator, topics: Ids, table: Ids, n_words: int, attempt: int) -> Ids:
    n = len(topics)
    if attempt >= UNIFORM_AFTER:
        return rng.integers(0, n_words, n, dtype=np.int32)
    words = table[topics, _power_law(rng, n, TOPIC_WORDS, TOPIC_SHIFT)]
    off = np.flatnonzero(rng.random(n) < OFF_TOPIC)
    words[off] = _power_law(rng, len(off), n_words, GLOBAL_SHIFT)
    return words


def _member(rng: np.random.Generator, indptr: Ints, rows: Ints) -> Ints:
    """One slot of each row, uniformly."""
    lengths = indptr[rows + 1] - indptr[rows]
    return indptr[rows] + (rng.random(len(rows)) * lengths).astype(np.int64)


def _fill(words: Ids, indptr: Ints, rows: Ints, draw: Draw, attempt: int = 0) -> None:
    """Draw all slots of the rows, then redraw every word that repeats an earlier one of its row."""
    slots, owner = slots_of(indptr, rows)
    words[slots] = draw(owner, attempt)
    while len(again := repeated((owner << 32) | words[slots])):
        attempt += 1
        words[slots[again]] = draw(owner[again], attempt)


def _cover(rng: np.random.Generator, words: Ids, n_words: int) -> None:
    """Put each unused word into one random slot, in place of a word that occurs often enough to spare."""
    if len(words) < 2 * n_words:
        raise ValueError(f"{len(words)} document words cannot cover a vocabulary of {n_words}")
    while True:
        counts = np.bincount(words, minlength=n_words)
        missing = np.flatnonzero(counts == 0)
        if not len(missing):
            return
        spare = np.flatnonzero(counts[words] > 2)
        take = min(len(missing), len(spare))
        words[rng.choice(spare, take, replace=False)] = missing[:take]
