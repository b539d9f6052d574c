"""09 after its own questions: does the tail that the projection drops matter, and one number for alpha and tau.

The scores of 09 are f = V [I - a Lambda - (1 - a)/N 11']^-1 V' G y up to a factor, with the single number
a = alpha / (alpha + tau (1 - alpha)) (docs/errata.md, 12). So alpha and tau need one grid, which is searched here by
the reciprocal rank of the first clicked result. The truncation to R eigenvectors drops what V does not span; with a
tail it is kept as a multiple of the identity, K ~ V Lambda V' + t (I - V V'), t the mean of the eigenvalues dropped.

`clara2`: real pages in time; `pages`: simulated pages of 20, one connected graph. The first 56% teach, the next 14%
choose a and the weight beside the rank shown, the last 30% are the test.

    python benchmarks/future_work_online.py DATA --sets clara2,pages
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from clickbridge import read_log
from clickbridge.numerics.ragged import Ragged
from clickbridge.online.clusters import query_vectors, soft_k_means
from clickbridge.online.eigen import Lists, ListSpace, decompose, scales
from clickbridge.online.weights import latent
from clickbridge.simulate.scale import write_log
from clickbridge.types import Impression

Array = np.ndarray[Any, Any]
PRESENT = 0.95 / (0.95 + 10 * 0.05)
"""What alpha = .95 and tau = 10, the defaults of `online`, come to."""
GRID = (0.05, 0.2, 0.4, PRESENT, 0.8, 0.9, 0.97, 0.99)
WEIGHTS = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 1e6)
CLUSTERS, HARDNESS, MOST_PAGES = 50, 10.0, 30_000


@dataclass(frozen=True)
class Page:
    query: str
    shown: Array
    clicked: Array

    @property
    def wins(self) -> Array:
        """G y of this page: for each result, its won less its lost pairs."""
        return np.where(self.clicked, (~self.clicked).sum(), -self.clicked.sum()).astype(float)


def numbered(log: Sequence[Impression]) -> tuple[list[Page], int]:
    numbers: dict[str, int] = {}
    pages = []
    for page in log:
        shown = list(dict.fromkeys(page.results or ()))
        clicked = {*page.clicks}
        if clicked & {*shown} and len(shown) > 1:
            rows = np.array([numbers.setdefault(d, len(numbers)) for d in shown])
            pages.append(Page(page.query_id or page.query, rows, np.array([d in clicked for d in shown])))
    return pages, len(numbers)


def clara2(data: Path) -> tuple[list[Page], int]:
    log = [r for r in read_log(str(data / "clara2/log.jsonl.gz")) if isinstance(r, Impression)]
    return numbered(sorted(log, key=lambda p: p.time or 0.0)[-MOST_PAGES:])


def simulated(data: Path) -> tuple[list[Page], int]:
    with tempfile.TemporaryDirectory() as folder:
        write_log("one-week", Path(folder), fraction=0.02, clicks="pbm", impressions=MOST_PAGES, results=20)
        return numbered([r for r in read_log(str(Path(folder) / "log.jsonl.gz")) if isinstance(r, Impression)])


class Learned:
    """The spaces of the lists that teach, the clusters of their queries, and G y of each cluster."""

    def __init__(self, pages: Sequence[Page], n: int, rank: int) -> None:
        lists = Lists(Ragged.of_lengths(np.array([len(p.shown) for p in pages])), _end_to_end(pages), n)
        spectrum = decompose(lists, rank)
        scale, _, _ = scales(lists)
        self.rank, self.spaces, self.of_page = rank, spectrum.spaces, np.full(n, -1)
        counts = np.bincount(lists.pages, minlength=n)
        self.own = scale**2 * counts  # the diagonal of K: its trace, with the eigenvalues kept, gives the tail
        self.place, self.z = np.zeros(n, dtype=np.int64), [latent(s.values, s.vectors, 0.95) for s in self.spaces]
        for number, space in enumerate(self.spaces):
            self.of_page[space.pages], self.place[space.pages] = number, np.arange(len(space.pages))
        self.centres = [self._clustered(number, pages) for number in range(len(self.spaces))]
        self.y = [np.zeros((len(s.pages), len(c[0]))) for s, c in zip(self.spaces, self.centres, strict=True)]
        for page in pages:
            number, rows = self.where(page.shown)
            np.add.at(self.y[number], rows, page.wins[:, None] * self.shares(number, rows))

    def where(self, shown: Array) -> tuple[int, Array]:
        """The component that the first known result is in, and the places of all in it."""
        number = int(self.of_page[shown].max())
        return number, self.place[shown]

    def _clustered(self, number: int, pages: Sequence[Page]) -> tuple[Array, float]:
        space = self.spaces[number]
        if len(space.pages) <= self.rank:
            return np.zeros((1, self.z[number].shape[1])), 0.0
        mine = [self.place[p.shown] for p in pages if self.of_page[p.shown[0]] == number]
        ends = np.concatenate([[0], np.cumsum([len(p) for p in mine])])
        points = query_vectors(ends, np.concatenate(mine).astype(np.int32), self.z[number].astype(np.float32))
        return soft_k_means(points, CLUSTERS, HARDNESS)

    def shares(self, number: int, rows: Array) -> Array:
        """P(cluster | list), eq. (26)."""
        centres, beta = self.centres[number]
        distance = ((self.z[number][rows].mean(axis=0) - centres) ** 2).sum(axis=1)
        share: Array = np.exp(-beta * (distance - distance.min()))
        return share / share.sum()

    def scores(self, a: float, tail: bool) -> list[Array]:
        return [self._of_space(s, y, a, tail) for s, y in zip(self.spaces, self.y, strict=True)]

    def _of_space(self, space: ListSpace, y: Array, a: float, tail: bool) -> Array:
        values, v = space.values.astype(np.float64), space.vectors.astype(np.float64)
        inside, sums, n = v.T @ y, v.sum(axis=0), len(v)
        bracket = np.diag(1.0 - a * values) - (1.0 - a) / n * np.outer(sums, sums)
        f = v @ (np.linalg.pinv(bracket, rcond=1e-7) @ inside)
        if tail and n > len(values):
            dropped = max(float(self.own[space.pages].sum() - values.sum()), 0.0) / (n - len(values))
            f += (y - v @ inside) / (1.0 - a * min(dropped, 1.0))
        return f

    def on(self, pages: Sequence[Page], scores: list[Array]) -> list[Array]:
        """The score of each shown result, 0 for one that no list that teaches shows, in units of their spread."""
        out = []
        for page in pages:
            number, rows = self.where(page.shown)
            found, known = np.zeros(len(rows)), (self.of_page[page.shown] == number) & (number >= 0)
            if known.any():
                found[known] = scores[number][rows[known]] @ self.shares(number, rows[known])
            out.append(found)
        spread = np.std(np.concatenate(out))
        return [o / max(spread, 1e-12) for o in out]


def own(taught: Sequence[Page], pages: Sequence[Page]) -> list[Array]:
    """What the very same query taught about the very same result: a diagonal of its own for each query."""
    won: dict[tuple[str, int], float] = defaultdict(float)
    for page in taught:
        for row, win in zip(page.shown.tolist(), page.wins.tolist(), strict=True):
            won[page.query, row] += win
    out = [np.array([won.get((p.query, row), 0.0) for row in p.shown.tolist()]) for p in pages]
    return [o / max(np.std(np.concatenate(out)), 1e-12) for o in out]


def _end_to_end(pages: Sequence[Page]) -> Array:
    return np.concatenate([p.shown for p in pages]).astype(np.int32)


def reciprocal_ranks(pages: Sequence[Page], scores: Sequence[Array], weight: float) -> Array:
    """1 / rank of the first clicked result, by weight * score less the logarithm of the rank it was shown at."""
    out = []
    for page, found in zip(pages, scores, strict=True):
        order = np.argsort(-(weight * found - np.log1p(np.arange(len(found)))), kind="stable")
        out.append(1.0 / (1 + np.flatnonzero(page.clicked[order])[0]))
    return np.array(out)


def measure(pages: list[Page], n: int) -> None:
    ends = [int(share * len(pages)) for share in (0.56, 0.70)]
    taught, tune, test = pages[: ends[0]], pages[ends[0] : ends[1]], pages[ends[1] :]
    shown = reciprocal_ranks(test, [np.zeros(len(p.shown)) for p in test], 0.0)
    print(f"{len(taught):,} pages teach, {len(tune):,} choose, {len(test):,} test; as shown: MRR {shown.mean():.4f}")
    alone = max(WEIGHTS, key=lambda w: float(reciprocal_ranks(tune, own(taught, tune), w).mean()))
    tell("what the same query taught", reciprocal_ranks(test, own(taught, test), alone), shown, f"weight {alone:g}")
    for rank in (20, 200):
        learned = Learned(taught, n, rank)
        largest = max(len(s.pages) for s in learned.spaces)
        print(f"R = {rank}: {len(learned.spaces):,} components, the largest of {largest:,} pages")
        for tail in (False, True):
            name = "with a tail" if tail else "cut off"
            for said, a, weight in choices(learned, tail, tune):
                values = reciprocal_ranks(test, learned.on(test, learned.scores(a, tail)), weight)
                tell(f"{name:12} {said}", values, shown, f"a {a:.3f} weight {weight:g}")
            both = [
                [f + o for f, o in zip(learned.on(part, learned.scores(PRESENT, tail)), own(taught, part), strict=True)]
                for part in (tune, test)
            ]
            weight = max(WEIGHTS, key=lambda w: float(reciprocal_ranks(tune, both[0], w).mean()))
            values = reciprocal_ranks(test, both[1], weight)
            tell(f"{name:12} and what the same query taught", values, shown, f"a {PRESENT:.3f} weight {weight:g}")


def tell(name: str, values: Array, shown: Array, said: str) -> None:
    gap = values - shown
    p = stats.ttest_1samp(gap, 0).pvalue if gap.any() else 1.0
    print(f"  {name:44} {said:22} MRR {values.mean():.4f} {gap.mean():+.4f} p {p:.2g}", flush=True)


def choices(learned: Learned, tail: bool, tune: Sequence[Page]) -> list[tuple[str, float, float]]:
    """What is compared: the present a with all weight on f, beside the rank shown, and a chosen together with it."""
    reached = {}
    for a in GRID:
        scored = learned.on(tune, learned.scores(a, tail))
        reached |= {(a, w): float(reciprocal_ranks(tune, scored, w).mean()) for w in WEIGHTS}
    weight = max(WEIGHTS, key=lambda w: reached[PRESENT, w])
    return [
        ("f alone", PRESENT, WEIGHTS[-1]),
        ("beside the rank", PRESENT, weight),
        ("beside the rank, a chosen", *max(reached, key=lambda at: reached[at])),
    ]


SETS = {"clara2": clara2, "pages": simulated}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with clara2")
    parser.add_argument("--sets", default=",".join(SETS))
    options = parser.parse_args()
    for chosen_set in options.sets.split(","):
        print(f"\n{chosen_set}")
        measure(*SETS[chosen_set](options.data))
