"""Logs whose truth is known: what each query means, and how well each document answers it.

Meanings are *concepts*; what people type are *forms* of them. An intent is a few concepts, and intents
that are related share a topic. A document answers one intent with some quality, in correct words, some of them
synonyms; a query asks for one intent in words that may be synonyms or misspelled, as one abbreviation, or
run together. That is term mismatch, with the truth known.

    grade 4, 3, 2  same intent, by the document's quality;  1  the related intent;  0  all others

An engine of shared forms, an opinion of each pair, noise and several sources shows pages; some of what it shows is of
another topic and shares a word, so that the lists of all topics hang together. Users click by a click model, their
liking given by the grade. Some queries of each intent never enter the log. Sizes are those of `calibration.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa

from clickbridge.io.lists import write_lists
from clickbridge.simulate.clicks import Array, check_click_model, draw_clicks
from clickbridge.simulate.words import Ints, JsonLines, joined, offsets, pasted, pseudo_words, quoted
from clickbridge.types import ResultList

INTENTS_PER_TOPIC = 8
CONCEPTS = 6  # of an intent; half of them belong to the topic
CANONICAL, SYNONYM, MISSPELT = 0, 1, 2
IN_DOCUMENTS = (0.7, 1.0)  # cumulative: canonical, synonym
IN_QUERIES = (0.65, 0.85, 1.0)  # and misspelled
ABBREVIATED, RUN_TOGETHER = 0.06, 0.12  # cumulative: queries typed as one token
OFF_INTENT = 0.15  # share of words about anything
UNSEEN = 0.2  # share of queries kept out of the log
LIKING = (0.02, 0.08, 0.3, 0.55, 0.85)  # P(click | look) by grade
OWN, RELATED, TOPICAL, ALIKE = 10, 6, 14, 4  # candidates of a query, by intent
POPULARITY = 0.7  # searches of the r-th query fall as r^-POPULARITY
OVERLAP, SETTLED, SPREAD = 1.2, 2.5, 0.4  # the engine's score: shared forms, its opinion of a pair, and noise
JUDGED_SHARE, MOST_JUDGED = 0.25, 4_445
LIST = (5, 3, 4, 0)  # a judged list, by intent as above; the papers judged 11.34 documents a query
CHUNK = 20_000
EPOCH, DAY = 1_325_376_000, 86_400  # 2012-01-01


@dataclass(frozen=True)
class World:
    """Rows are in the order of their intents. `*_forms` hold concept * 3 + form, -1 beyond a row's length."""

    doc_intents: Ints
    doc_grades: Ints
    doc_forms: Array
    query_intents: Ints
    query_forms: Array
    query_texts: Array
    doc_texts: Array
    doc_ids: Array
    popularity: Array
    seen: Array
    look_alikes: Ints
    salt: int

    @property
    def n_docs(self) -> int:
        return len(self.doc_intents)


def draw_world(
    n_queries: int,
    n_docs: int,
    n_words: int,
    words_per_row: tuple[float, float],
    rng: np.random.Generator,
    *,
    queries_per_intent: float = 4.0,
) -> World:
    """Intents are wanted by some and by many: queries and documents of an intent are as many as a weight with an
    exponential distribution says. Queries whose text repeats an earlier one are dropped, so there are a few less."""
    n_intents = max(INTENTS_PER_TOPIC, round(n_queries / queries_per_intent))
    n_concepts = max(n_words // 2, CONCEPTS)
    concepts = _intent_concepts(rng, n_intents, n_concepts)
    wanted = np.cumsum(rng.exponential(size=n_intents))
    doc_intents, query_intents = (
        np.searchsorted(wanted, np.sort(rng.random(n)) * wanted[-1], side="right") for n in (n_docs, n_queries)
    )
    doc_forms = _forms(rng, concepts[doc_intents], words_per_row[1], IN_DOCUMENTS, n_concepts)
    query_forms = _forms(rng, concepts[query_intents], words_per_row[0], IN_QUERIES, n_concepts)
    words = _spellings(n_concepts)
    texts = np.array([" ".join(words[f] for f in row if f >= 0) for row in query_forms])
    kind = rng.random(n_queries)
    for row in np.flatnonzero(kind < RUN_TOGETHER):
        short = kind[row] < ABBREVIATED
        texts[row] = _abbreviation(words, concepts[query_intents[row]]) if short else texts[row].replace(" ", "")
        query_forms[row] = -1
    _, first = np.unique(texts, return_index=True)
    first.sort()
    n = len(first)
    return World(
        doc_intents,
        2 + np.searchsorted([0.5, 0.8], rng.random(n_docs)),
        doc_forms,
        query_intents[first],
        query_forms[first],
        texts[first],
        np.array([" ".join(words[f] for f in row if f >= 0) for row in doc_forms]),
        np.array([f"d{number}" for number in rng.permutation(n_docs)]),
        (1.0 + rng.permutation(n)) ** -POPULARITY,
        rng.random(n) >= UNSEEN,
        _look_alikes(rng, concepts),
        int(rng.integers(2**63)),
    )


def _intent_concepts(rng: np.random.Generator, n_intents: int, n_concepts: int) -> Ints:
    """Half of an intent's concepts are the topic's, half its own; frequent concepts occur in many."""
    n_topics = -(-n_intents // INTENTS_PER_TOPIC)
    shift = max(n_concepts / 50, 1.0)

    def draw(n: int) -> Ints:
        # Zipf-Mandelbrot by inverting its integral.
        rank = shift * (np.power(n_concepts / shift + 1.0, rng.random((n, CONCEPTS // 2))) - 1.0)
        return np.minimum(rank, n_concepts - 1).astype(np.int64)

    return np.concatenate([draw(n_topics)[np.arange(n_intents) // INTENTS_PER_TOPIC], draw(n_intents)], axis=1)


def _look_alikes(rng: np.random.Generator, concepts: Ints) -> Ints:
    """For each intent another that shares one of its concepts, mostly of another topic; itself where none does."""
    order = np.argsort(concepts, axis=None, kind="stable")
    shared = np.take_along_axis(concepts, rng.integers(0, CONCEPTS, (len(concepts), 1)), axis=1)[:, 0]
    start, stop = (np.searchsorted(concepts.ravel()[order], shared, side=side) for side in ("left", "right"))
    picked: Ints = order[start + (rng.random(len(concepts)) * (stop - start)).astype(np.int64)] // CONCEPTS
    return picked


def _forms(rng: np.random.Generator, concepts: Ints, mean: float, spelt: tuple[float, ...], n_concepts: int) -> Array:
    """Forms of each row, at most CONCEPTS, distinct concepts of its intent with some others among them."""
    n = len(concepts)
    lengths = 1 + rng.binomial(CONCEPTS - 1, (mean - 1) / (CONCEPTS - 1), n)
    chosen = np.take_along_axis(concepts, np.argsort(rng.random((n, CONCEPTS)), axis=1), axis=1)
    stray = rng.random((n, CONCEPTS)) < OFF_INTENT
    chosen = np.where(stray, rng.integers(0, n_concepts, (n, CONCEPTS)), chosen)
    forms = chosen * 3 + np.searchsorted(spelt, rng.random((n, CONCEPTS)))
    return np.where(np.arange(CONCEPTS) < lengths[:, None], forms, -1)


def _spellings(n_concepts: int) -> list[str]:
    """The text of form f at place f: a word, another word, the first with two letters exchanged."""
    words = pseudo_words(2 * n_concepts).tolist()
    out = []
    for concept in range(n_concepts):
        word = words[concept]
        # Consonants side by side: no pseudo-word looks like it.
        out += [word, words[n_concepts + concept], word[0] + word[2] + word[1] + word[3:]]
    return out


def _abbreviation(words: list[str], concepts: Ints) -> str:
    """The consonants of the first words of an intent: no word looks like it."""
    return "".join(words[3 * c][0] + words[3 * c][2] for c in concepts[: CONCEPTS // 2 + 1])


def candidates(world: World, queries: Ints, sizes: tuple[int, int, int, int], rng: np.random.Generator) -> Array:
    """Documents for each query: of its intent, of the related one, of the topic, and of an intent that shares a word
    with it; -1 where there are not enough. The last kind joins topics, so that result lists are one graph."""
    intents = world.query_intents[queries]
    related, topic, alike = intents ^ 1, intents - intents % INTENTS_PER_TOPIC, world.look_alikes[intents]
    spans = ((intents, intents + 1), (related, related + 1), (topic, topic + INTENTS_PER_TOPIC), (alike, alike + 1))
    blocks = []
    for (low, high), size in zip(spans, sizes, strict=True):
        start, stop = (np.searchsorted(world.doc_intents, edge)[:, None] for edge in (low, high))
        there = stop - start
        # A random run, wrapping round at the end, so that no document comes twice.
        shift = (rng.random((len(queries), 1)) * there).astype(np.int64)
        column = np.arange(size)
        blocks.append(np.where(column < there, start + (shift + column) % np.maximum(there, 1), -1))
    own = world.doc_intents[blocks[2]]
    blocks[2][(own == intents[:, None]) | (own == related[:, None])] = -1
    blocks[3][world.doc_intents[blocks[3]] // INTENTS_PER_TOPIC == intents[:, None] // INTENTS_PER_TOPIC] = -1
    return np.concatenate(blocks, axis=1)


def grades(world: World, queries: Ints, docs: Array) -> Array:
    """The truth, by query row and document; 0 where there is none (-1)."""
    intents = world.query_intents[queries][:, None]
    of_docs = world.doc_intents[docs]
    found = np.where(of_docs == intents, world.doc_grades[docs], (of_docs == intents ^ 1).astype(np.int64))
    return np.where(docs >= 0, found, 0)


def _opinion(salt: int, queries: Ints, docs: Array) -> Array:
    """What the engine thinks of each pair, the same at every search: Gumbel noise from a hash (splitmix64)."""
    mixed = (queries[:, None].astype(np.uint64) << np.uint64(32)) + docs.astype(np.uint64) + np.uint64(salt)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    share = ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    opinion: Array = -np.log(-np.log(np.clip(share, 1e-12, 1 - 1e-12)))
    return opinion


def draw_pages(
    world: World, queries: Ints, n_results: int, clicks: str, rng: np.random.Generator
) -> tuple[Array, Array]:
    """For each search, the documents shown (-1 beyond the end) and which were clicked."""
    pool = candidates(world, queries, (OWN, RELATED, TOPICAL, ALIKE), rng)
    shared = _overlap(world.query_forms[queries], world.doc_forms[pool])
    score = OVERLAP * shared + SETTLED * _opinion(world.salt, queries, pool) + SPREAD * rng.gumbel(size=pool.shape)
    score[pool < 0] = -np.inf
    order = np.argsort(-score, axis=1, kind="stable")[:, :n_results]
    shown = np.take_along_axis(pool, order, axis=1)
    liking = np.where(shown >= 0, np.take(LIKING, grades(world, queries, shown)), 0.0)
    return shown, draw_clicks(clicks, liking, rng)


def _overlap(typed: Array, written: Array) -> Array:
    """How many words of each document its query has; by columns, since reductions over a few places are slow."""
    shared = np.zeros(written.shape[:2], dtype=np.int64)
    for word in np.moveaxis(written, 2, 0):
        found = np.zeros(word.shape, dtype=bool)
        for own in typed.T[:, :, None]:
            found |= (word == own) & (own >= 0)
        shared += found
    return shared


def judged_lists(world: World, queries: Ints, prefix: str, rng: np.random.Generator) -> Iterator[ResultList]:
    """Lists in no order, labelled with the truth."""
    pool = candidates(world, queries, LIST, rng)
    labels = grades(world, queries, pool)
    for row, query in enumerate(queries):
        order = rng.permutation(pool.shape[1])
        order = order[pool[row, order] >= 0]
        results = [str(d) for d in world.doc_ids[pool[row, order]]]
        yield ResultList(
            f"{prefix}-{query}", str(world.query_texts[query]), results, labels[row, order].astype(float).tolist()
        )


def write_world(
    world: World, out: Path, *, searches: int, days: int, clicks: str, n_results: int, rng: np.random.Generator
) -> dict[str, int]:
    """docs.jsonl.gz, log.jsonl.gz, the truth as seen.lists.jsonl and unseen.lists.jsonl, and intents.jsonl."""
    check_click_model(clicks)
    out.mkdir(parents=True, exist_ok=True)
    with JsonLines(out / "docs.jsonl.gz") as file:
        for start in range(0, world.n_docs, CHUNK):
            part = slice(start, start + CHUNK)
            file.add(doc_id=quoted(pa.array(world.doc_ids[part])), title=quoted(pa.array(world.doc_texts[part])))
    n_clicks = _write_searches(world, out / "log.jsonl.gz", searches, days, clicks, n_results, rng)
    counts = {"queries": len(world.query_texts), "docs": world.n_docs, "searches": searches, "clicks": n_clicks}
    for name, rows in (("seen", np.flatnonzero(world.seen)), ("unseen", np.flatnonzero(~world.seen))):
        # Judged queries are sampled as people search, so that frequent ones are among them.
        weight = world.popularity[rows] / world.popularity[rows].sum()
        n_judged = min(MOST_JUDGED, max(1, round(JUDGED_SHARE * len(rows))))
        picked = np.sort(rng.choice(rows, n_judged, replace=False, p=0.5 * weight + 0.5 / len(rows)))
        write_lists(out / f"{name}.lists.jsonl", judged_lists(world, picked, name, rng))
        counts[f"{name} judged"] = n_judged
    with (out / "intents.jsonl").open("wb") as intents:
        for text, intent in zip(world.query_texts.tolist(), world.query_intents.tolist(), strict=True):
            intents.write(orjson.dumps({"query": text, "intent": str(intent)}, option=orjson.OPT_APPEND_NEWLINE))
    return counts


def _write_searches(
    world: World, path: Path, n: int, days: int, clicks: str, n_results: int, rng: np.random.Generator
) -> int:
    weight = world.popularity * world.seen
    names, texts = pa.array([f'"{d}"' for d in world.doc_ids]), pa.array(world.query_texts.tolist())
    cumulated, n_clicks = np.cumsum(weight), 0
    with JsonLines(path) as file:
        for start in range(0, n, CHUNK):
            m = min(CHUNK, n - start)
            rows = np.searchsorted(cumulated, rng.random(m) * cumulated[-1], side="right")
            shown, clicked = draw_pages(world, rows, n_results, clicks, rng)
            begin, end = (EPOCH + days * DAY * i // n for i in (start, start + m))
            there = shown >= 0
            n_clicks += int(clicked.sum())
            file.add(
                query=quoted(texts.take(pa.array(rows))),
                user=quoted("u", rng.integers(0, max(1, n // 5), m)),
                time=pasted(np.sort(rng.integers(begin, max(end, begin + 1), m))),
                results=_listed(names, shown[there], there.sum(axis=1)),
                clicks=_listed(names, shown[clicked], clicked.sum(axis=1)),
            )
    return n_clicks


def _listed(names: pa.StringArray, docs: Array, lengths: Ints) -> pa.StringArray:
    return pasted("[", joined(names.take(pa.array(docs)), offsets(lengths), ","), "]")
