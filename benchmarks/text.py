"""How many MB of text a minute does one core turn into term counts, and how does that compare?

The text is what the running Python says about its own standard library, repeated. Real collections keep
bringing new words, and a word seen for the first time costs a call to the stemmer; so a second text gets a
number of its own pasted to every fiftieth word of each repetition.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import time
from collections.abc import Callable

import bm25s
import Stemmer
from sklearn.feature_extraction.text import CountVectorizer

from clickbridge.simulate.corpus import standard_library
from clickbridge.views.text import Analyzer
from clickbridge.views.word import Vocabulary, WordCounter

WORD = re.compile(r"\w+")
NEW_WORD_EVERY = 50
TARGET = 200


def standard_library_texts(megabytes: float, new_words: bool) -> list[str]:
    """Whole documents, as often as needed."""
    once = [" ".join(document.fields.values()) for document in standard_library()]
    out: list[str] = []
    size, copy = 0, 0
    while size < megabytes * 1e6:
        for text in once:
            out.append(_with_new_words(text, copy) if new_words else text)
            size += len(out[-1].encode())
            if size >= megabytes * 1e6:
                break
        copy += 1
    return out


def _with_new_words(text: str, copy: int) -> str:
    words = iter(range(len(text)))
    return WORD.sub(lambda m: m[0] if next(words) % NEW_WORD_EVERY else f"{m[0]}x{copy}", text)


def ours(texts: list[str]) -> None:
    WordCounter(Analyzer("english"), Vocabulary()).count(texts)


def scikit_learn(texts: list[str]) -> None:
    CountVectorizer().fit_transform(texts)


def bm25s_tokenize(texts: list[str]) -> None:
    bm25s.tokenize(texts, stopwords=None, stemmer=Stemmer.Stemmer("english"), show_progress=False)


PEERS: dict[str, tuple[Callable[[list[str]], None], str]] = {
    "clickbridge": (ours, "tokens, CamelCase, stems, counts"),
    "scikit-learn CountVectorizer": (scikit_learn, "tokens, counts"),
    "bm25s.tokenize + PyStemmer": (bm25s_tokenize, "tokens, stems"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=50, help="size of each text (default: 50)")
    megabytes = parser.parse_args().megabytes
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(f"{'text':<16}{'tool':<32}{'does':<36}{'MB':>7}{'wall s':>9}{'CPU s':>9}{'MB/min':>9}")
    rates = []
    for kind, new_words in (("repeated", False), ("with new words", True)):
        texts = standard_library_texts(megabytes, new_words)
        size = sum(len(text.encode()) for text in texts) / 1e6
        for name, (work, does) in PEERS.items():
            gc.collect()
            wall, cpu = time.perf_counter(), time.process_time()
            work(texts)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            rate = size / cpu * 60
            print(f"{kind:<16}{name:<32}{does:<36}{size:>7.1f}{wall:>9.1f}{cpu:>9.1f}{rate:>9.0f}", flush=True)
            if work is ours:
                rates.append(rate)
    verdict = "reached" if min(rates) >= TARGET else "MISSED"
    print(f"\nMB/min is by CPU time of one core. Target for clickbridge, {TARGET} MB a minute: {verdict}.")


if __name__ == "__main__":
    main()
