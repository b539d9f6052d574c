"""The text format of the SVDFeature toolkit (Chen et al. 2012), in and out.

    1 2 1 3 0:0.5 1:2 7:1 0:0.1 4:1 9:0.3

One line per observation: its target, how many global, user (query) and item (document) features follow, and
the features of the three kinds in that order, as number:value, numbers from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from clickbridge.errors import InputError
from clickbridge.io.files import written_aside
from clickbridge.io.streams import lines, open_stream

Features = Mapping[int, float]


@dataclass(frozen=True)
class Observation:
    target: float
    of_pair: Features
    of_query: Features
    of_document: Features


def write_observations(path: str | Path, observations: Iterable[Observation]) -> None:
    with written_aside(path) as out:
        for one in observations:
            kinds = one.of_pair, one.of_query, one.of_document
            pairs = (f"{number}:{_shortest(value)}" for kind in kinds for number, value in kind.items())
            words = [_shortest(one.target), *(str(len(kind)) for kind in kinds), *pairs]
            out.write(" ".join(words).encode() + b"\n")


def _shortest(value: float) -> str:
    """The fewest digits that read back as the same number."""
    return repr(float(value)).removesuffix(".0")


def read_observations(path: str) -> list[Observation]:
    out = []
    with open_stream(str(path)) as stream:
        for number, line in enumerate(lines(stream, str(path)), 1):
            words = line.decode("utf8", errors="replace").split()
            if not words:
                continue
            try:
                out.append(_observation(words))
            except ValueError:
                wanted = "TARGET N_GLOBAL N_QUERY N_DOCUMENT and that many NUMBER:VALUE"
                raise InputError(f"{path}, line {number}: expected {wanted}; got {' '.join(words)[:60]!r}") from None
    return out


def _observation(words: list[str]) -> Observation:
    target, *counts = float(words[0]), *(int(word) for word in words[1:4])
    pairs = [(int(number), float(value)) for number, _, value in (word.partition(":") for word in words[4:])]
    if len(counts) != 3 or min(counts) < 0 or sum(counts) != len(pairs) or any(number < 0 for number, _ in pairs):
        raise ValueError
    starts = 0, counts[0], counts[0] + counts[1], len(pairs)
    kinds = [dict(pairs[a:b]) for a, b in pairwise(starts)]
    if [len(kind) for kind in kinds] != counts:
        raise ValueError  # a number twice in one kind
    return Observation(target, *kinds)
