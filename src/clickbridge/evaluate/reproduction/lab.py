"""The data for the reproduction: simulated logs with known truth, and real data sets if their folder is given."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from clickbridge import __version__
from clickbridge.evaluate.reproduction.bench import Data
from clickbridge.evaluate.reproduction.shelf import Shelf
from clickbridge.evaluate.similar import Judgments, read_judgments
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.io.lists import read_lists
from clickbridge.log.clean import normalise_query
from clickbridge.log.documents import read_docs
from clickbridge.log.readers import read_log
from clickbridge.models.registry import MODELS, WRAPPERS, model_class
from clickbridge.progress import Progress, silent
from clickbridge.simulate.demo import read_intents, write_demo
from clickbridge.simulate.scale import SCALES, write_log
from clickbridge.types import Document, Impression, LogRecord, PairCount

SHRINK = {"one-week": 1.0, "enterprise": 1.0, "half-year": 0.05}
"""Factors for the fraction, by scale. Half a year has 68 times the queries of a week, so with .05 it is 3.4 times as
large."""
MIN_CLICKS = 4
"""The papers drop pairs with three clicks or fewer, and judge the remaining queries."""
LONG_PAGE, SEARCHES_09 = 20, 5
EARLIER = 0.7
"""The share of a real log, its earlier pages, that 09 learns from."""
REAL = ("msrd", "bestbuy", "clara2")
DECOMPOSED = ("pls", "mpls", "rmls", "lsi-qd", "lsi-dt")
"""The models whose dimension is set. The others keep their smaller default, which already takes long."""
LIMITED = {"ssi.epochs": 8, "svdfeature.epochs": 8}
"""The most passes of our rows, which take longest. 13 tuned the number, so rows as printed choose it freely."""
WIDE, NARROWED = 200_000, {"mpls.dim": 300}
"""Documents from which on our M-PLS has fewer dimensions: it has six spaces, and 1000 in each need more than 24 GB."""
SHORTENED = {
    "ssi.dim": 20, "ssi.epochs": 4, "svdfeature.dim": 20, "svdfeature.epochs": 4, "bltm.dim": 20, "bltm.iterations": 8,
    "mart.folds": 2, "mart.trees": 40, "mart.max_lists": 200,
}  # fmt: skip
"""Settings that shorten a quick run for models that learn in many rounds. Models that this version lacks are
ignored."""


@dataclass
class Lab:
    """The data sets, each created when a table first needs it."""

    folder: Path
    fraction: float
    dim: int
    clicks: str = "pbm"
    seed: int = 0
    real: Path | None = None
    quick: bool = False
    keep: Path | None = None
    """The folder where finished parts of the run are kept, so that a later run can use them."""
    progress: Progress = silent

    def simulated(self, scale: str) -> Data:
        return self.once(scale, lambda: self._simulate(scale))

    def once(self, name: str, make: Callable[[], Data]) -> Data:
        """A data set by name, created at first use."""
        if name not in self._worlds:
            self._worlds[name] = make()
        return self._worlds[name]

    @cached_property
    def _worlds(self) -> dict[str, Data]:
        return {}

    def _simulate(self, scale: str) -> Data:
        fraction = self.fraction * SHRINK[scale]
        self.progress(f"simulating {scale}, fraction {fraction:g}")
        out = self.folder / scale
        counts = write_log(scale, out, fraction=fraction, clicks=self.clicks, seed=self.seed)
        graph = ClickGraph.build(read_log(str(out / "log.jsonl.gz")), read_docs(str(out / "docs.jsonl.gz")))
        often = graph.pairs.clicks >= MIN_CLICKS
        kept = {graph.query_keys[i] for i in graph.pairs.query[often]}
        lists = {kind: read_lists(str(out / f"{kind}.lists.jsonl")) for kind in ("seen", "unseen")}
        lists["seen"] = [r for r in lists["seen"] if r.query in kept]
        about = (
            f"simulated {scale}, fraction {fraction:.3g} ({self.clicks} clicks): {len(kept):,} queries and "
            f"{len({*graph.pairs.doc[often].tolist()}):,} documents with a pair of {MIN_CLICKS} clicks, "
            f"{counts['docs']:,} documents in all, {counts['clicks']:,} clicks; {len(lists['seen']):,} of the queries "
            "judged"
        )
        sizes = self.sizes | {"min_clicks": MIN_CLICKS}
        alike = read_judgments(str(out / "intents.jsonl"))
        limits = self.limits | (NARROWED if graph.n_docs >= WIDE and self.dim > NARROWED["mpls.dim"] else {})
        return Data(scale, about, graph, lists, alike, 3, sizes, self.shelf, limits)

    @property
    def sizes(self) -> dict[str, Any]:
        """Settings of every model."""
        return {f"{name}.dim": self.dim for name in DECOMPOSED} | (SHORTENED if self.quick else {})

    @property
    def limits(self) -> dict[str, Any]:
        """Settings of our own rows."""
        return {} if self.quick else dict(LIMITED)

    @cached_property
    def pages(self) -> tuple[str, list[Impression], list[Document]]:
        """Searches with 20 results, for 09."""
        self.progress("simulating pages of 20")
        out = self.folder / "pages"
        n = max(200, round(SEARCHES_09 * SCALES["one-week"].n_queries * self.fraction))
        options: dict[str, Any] = {"fraction": self.fraction, "clicks": self.clicks, "seed": self.seed}
        write_log("one-week", out, impressions=n, results=LONG_PAGE, **options)
        shown = [r for r in read_log(str(out / "log.jsonl.gz")) if isinstance(r, Impression)]
        about = f"simulated one-week, fraction {self.fraction:g} ({self.clicks} clicks): {n:,} searches of 20 results"
        return about, shown, list(read_docs(str(out / "docs.jsonl.gz")))

    @cached_property
    def demo(self) -> Data:
        """The documents and queries of the demo, which have real words, with simulated clicks. The intents are the
        truth."""
        self.progress("making the demo's data")
        out = self.folder / "demo"
        write_demo(out, self.seed, self.clicks)
        intent_of = {normalise_query(p): str(n) for n, i in enumerate(read_intents()) for p in i.phrasings}
        graph = ClickGraph.build(read_log(str(out / "log.jsonl.gz")), read_docs(str(out / "docs.jsonl.gz")))
        lists = {kind: read_lists(str(out / f"{kind}.lists.jsonl")) for kind in ("seen", "unseen")}
        about = (
            f"the demo: real documents and phrasings, simulated clicks; {graph.n_queries:,} queries; intents are truth"
        )
        # Five hundred intents need as many dimensions, even if the other data is small.
        sizes = replace(self, dim=max(self.dim, 600)).sizes
        return Data("demo", about, graph, lists, Judgments.of_groups(intent_of), 2, sizes, self.shelf, self.limits)

    @property
    def shelf(self) -> Shelf:
        return Shelf(self.keep, self.run)

    @property
    def run(self) -> dict[str, Any]:
        """Everything that the figures depend on."""
        real = [name for name in REAL if self.folder_of(name) is not None]
        own: dict[str, Any] = {
            "fraction": self.fraction,
            "dim": self.dim,
            "clicks": self.clicks,
            "seed": self.seed,
            "quick": self.quick,
        }
        printed = {name: dict(model_class(name).Settings.printed) for name in [*MODELS, *WRAPPERS]}
        return own | {"real": real, "version": __version__, "printed": printed, "limits": self.limits}

    def folder_of(self, name: str) -> Path | None:
        return self.real / name if self.real is not None and (self.real / name).is_dir() else None

    @cached_property
    def msrd(self) -> Data | None:
        """Judged lists of queries that the log does not have."""
        home = self.folder_of("msrd")
        if home is None:
            return None
        self.progress("reading msrd")
        graph = ClickGraph.build(read_log(str(home / "train.log.jsonl.gz")), read_docs(str(home / "docs.jsonl.gz")))
        judged = read_lists(str(home / "dev.lists.jsonl.gz"))
        about = f"msrd: real searches and marks; {graph.n_queries:,} queries; {len(judged):,} others judged"
        lists = {"seen": judged, "unseen": judged}
        return Data("msrd", about, graph, lists, None, 1, self.sizes, self.shelf, self.limits)

    @cached_property
    def bestbuy(self) -> Data | None:
        """Models learn from half of the users. The clicks of the other half show which queries are similar."""
        home = self.folder_of("bestbuy")
        if home is None:
            return None
        self.progress("reading bestbuy")
        log = list(read_log(str(home / "clicks.tsv.gz"), format="triples", columns={"time": "click_time"}))
        taught = [r for r in log if not _held(r)]
        pairs = [(r.query, r.doc_id) for r in log if isinstance(r, PairCount) and _held(r)]
        graph = ClickGraph.build(taught, read_docs(str(home / "docs.jsonl.gz")))
        about = (
            f"bestbuy: real clicks; {graph.n_queries:,} queries of one half of the users; two queries are alike where "
            "the other half clicked the same product for both"
        )
        return Data("bestbuy", about, graph, {}, Judgments.of_clicks(pairs), 1, self.sizes)

    @cached_property
    def clara2(self) -> tuple[Data, list[Impression]] | None:
        """A log without text: its earlier pages to learn from, and its later pages with a click to measure on."""
        home = self.folder_of("clara2")
        if home is None:
            return None
        self.progress("reading clara2")
        log = (r for r in read_log(str(home / "log.jsonl.gz")) if isinstance(r, Impression))
        pages = sorted(log, key=lambda p: p.time or 0.0)
        cut = int(EARLIER * len(pages))
        later = [p for p in pages[cut:] if not {*p.clicks}.isdisjoint(p.results or ())]
        about = f"clara2: real searches without text; {cut:,} pages teach, {len(later):,} later ones have a click"
        return Data("clara2", about, ClickGraph.build(pages[:cut]), {}, settings=self.sizes), later

    def relevance_sets(self, scale: str) -> Iterator[Data]:
        yield self.simulated(scale)
        if scale == "one-week" and self.msrd is not None:
            yield self.msrd

    def similarity_sets(self, scale: str) -> Iterator[Data]:
        yield self.simulated(scale)
        if scale == "one-week":
            yield self.demo
            if self.bestbuy is not None:
                yield self.bestbuy


def _held(record: LogRecord) -> bool:
    return isinstance(record, PairCount) and zlib.crc32((record.user or "").encode()) % 2 == 1


def clicks_up_to(pages: Iterable[Impression], rank: int) -> list[Impression]:
    """The same pages without the clicks below a rank."""
    return [replace(p, clicks=[c for c in p.clicks if c in (p.results or [])[:rank]]) for p in pages]
