"""Does the online learner improve a search page, why did the paper's lose on ranks 1-5, and what does it cost?

online.py clara2       learn from the first 70% of impressions, re-rank the rest
online.py bestbuy      lists of bm25+pls, clicks fed in the order of time; writes a plot
online.py ablation     clara2 over R, pages kept and tau
online.py speed        CPU microseconds of a click, a ranking and a publication, and events a second through a journal
online.py projection   simulated lists at the paper's size times --fraction
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from clickbridge import ClickGraph, build_model, read_docs
from clickbridge.log.bias import expected_clicks
from clickbridge.measures import evaluate_run, parse_measures
from clickbridge.models.catalogue import Catalogue
from clickbridge.models.fitted import Choices
from clickbridge.models.given import FittedGiven
from clickbridge.models.model import Model
from clickbridge.numerics.diffusion import spread
from clickbridge.numerics.ragged import Ragged
from clickbridge.online.blend import Blend
from clickbridge.online.choices import OnlineChoices, OnlineSettings
from clickbridge.online.clusters import query_vectors, soft_k_means
from clickbridge.online.eigen import Lists, leading, scales
from clickbridge.online.fitted_online import FittedOnline
from clickbridge.online.groups import Move, moves, rank_groups
from clickbridge.online.journal import Journal
from clickbridge.online.learner import Learner
from clickbridge.online.online import Online
from clickbridge.online.projection import Projection, Shape, project
from clickbridge.online.state import State
from clickbridge.settings import Settings
from clickbridge.types import Impression, PairCount, ResultList

Array = np.ndarray[Any, Any]
Ranker = Callable[[Impression], Sequence[str]]
DATA = Path(os.environ.get("CLICKBRIDGE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
PAPER_PAGES, PAPER_QUERIES, PAPER_LIST = 627_819, 3_875_427, 20


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(f"{v:.4f}" if isinstance(v, float) else str(v) for v in row) + " |")


# --- clara2 ------------------------------------------------------------------------------------------


def clara2() -> tuple[list[Impression], list[Impression], dict[str, dict[str, float]]]:
    """Training pages, each query's last later page with a click, grades."""
    with gzip.open(DATA / "clara2/log.jsonl.gz", "rt") as f:
        log = sorted((json.loads(line) for line in f), key=lambda r: r["time"])
    pages = [Impression("", list(dict.fromkeys(r["results"])), r["clicks"], r["query_id"], time=r["time"]) for r in log]
    cut = int(0.7 * len(pages))
    test = {p.query_id: p for p in pages[cut:] if set(p.clicks) & set(p.results or ())}
    grades: dict[str, dict[str, float]] = defaultdict(dict)
    with gzip.open(DATA / "clara2/qrels.dev.txt.gz", "rt") as f:
        for line in f:
            query, _, doc, grade = line.split()
            grades[query][doc] = float(grade)
    return pages[:cut], list(test.values()), grades


def by_score(score: Callable[[Impression, str], float]) -> Ranker:
    return lambda page: sorted(page.results or (), key=lambda d: -score(page, d))


def judged(test: Sequence[Impression], rank: Ranker, grades: dict[str, dict[str, float]]) -> tuple[float, float]:
    """Mean rank of clicks and nDCG@10."""
    found = [m.after for page in test for m in moves(page.results or [], list(rank(page)), page.clicks)]
    run = {str(p.query_id): list(rank(p)) for p in test if p.query_id in grades}
    of = {str(p.query_id): {d: grades[str(p.query_id)].get(d, 0.0) for d in p.results or ()} for p in test}
    values = evaluate_run(run, {q: g for q, g in of.items() if q in run}, parse_measures("nDCG@10"))["nDCG@10"]
    return float(np.mean(found)), float(np.mean(list(values.values())))


def count_rankers(train: Sequence[Impression]) -> dict[str, Ranker]:
    """Clicks per query, and clicks over those that the ranks foretold."""
    ends = np.cumsum([0, *(len(p.results or ()) for p in train)])
    flags = np.array([d in set(p.clicks) for p in train for d in p.results or ()], dtype=float)
    foretold = expected_clicks(ends, flags, 10)
    clicks: Counter[tuple[str | None, str]] = Counter()
    expected: Counter[tuple[str | None, str]] = Counter()
    shown = [(p.query_id, d) for p in train for d in p.results or ()]
    for key, c, e in zip(shown, flags.tolist(), foretold.tolist(), strict=True):
        clicks[key] += c
        expected[key] += e
    return {
        "click counts": by_score(lambda p, d: clicks[p.query_id, d]),
        "debiased counts": by_score(lambda p, d: (clicks[p.query_id, d] + 1) / (expected[p.query_id, d] + 1)),
    }


def model_ranker(model: Model) -> Ranker:
    return lambda page: model.rerank_lists([ResultList(str(page.query_id), "", list(page.results or ()))])[0].doc_ids


def fitted(graph: ClickGraph, spec: str, **settings: Any) -> Online:
    model = build_model(spec, settings).fit(graph)
    assert isinstance(model, Online)
    return model


def click_models(graph: ClickGraph) -> dict[str, Ranker]:
    """Models of clicks alone, by plain and by debiased clicks."""
    out: dict[str, Ranker] = {}
    for spec in ("cos-click", "walk", "lsi-qd"):
        for response in ("clicks", "debiased"):
            out[f"{spec}, {response}"] = model_ranker(build_model(spec, {"response": response}).fit(graph))
    return out


def run_clara2(_: argparse.Namespace) -> None:
    train, test, grades = clara2()
    graph = ClickGraph.build(train)
    model = fitted(graph, "online")
    print(*model.notes_, sep="\n")
    rankers: dict[str, Ranker] = {"log order": lambda p: p.results or (), **count_rankers(train)}
    rankers |= click_models(graph)
    rankers["online"] = model_ranker(model)
    table(("order", "mean rank of clicks", "nDCG@10"), ((n, *judged(test, r, grades)) for n, r in rankers.items()))
    print_groups([m for page in test for m in moves(page.results or [], list(rankers["online"](page)), page.clicks)])


def print_groups(found: Sequence[Move]) -> None:
    print()
    columns = ("given rank", "clicks", "improvement", "better", "worse", "random: improvement", "better", "worse")
    table(columns, rank_groups(found))


def run_ablation(_: argparse.Namespace) -> None:
    """The latent part alone, at the weight that serves the held-back clicks best: what the projection knows."""
    train, test, grades = clara2()
    graph = ClickGraph.build(train)
    rows: list[tuple[Any, ...]] = [("log order", *judged(test, lambda p: p.results or (), grades), "", "")]
    paper = {"pairs": "all", "closed_form": "printed", "blend": "1e9,0,1"}
    trials = {
        "equation (19) as printed, R = 200, f alone": paper,
        **{f"R = {r}, f alone": {**paper, "dim": r, "closed_form": "weighted"} for r in (2, 5, 20, 200)},
        **{f"pages on {k} lists or more, f alone": {**paper, "min_lists": k} for k in (2, 5)},
        **{f"tau {t:g}, f alone": {**paper, "closed_form": "weighted", "unlabelled": t} for t in (0.1, 1, 10, 100)},
        "all pairs, blended": {"pairs": "all"},
        "skip-above, blended": {"pairs": "skip-above"},
        "residual pairs, blended": {"pairs": "residual"},
        "default: pairs and blend through hold_back": {},
    }
    for name, settings in trials.items():
        rank = model_ranker(fitted(graph, "online", **settings))
        found = [m for page in test for m in moves(page.results or [], list(rank(page)), page.clicks)]
        groups = {row.group: row.improvement for row in rank_groups(found)}
        rows.append((name, *judged(test, rank, grades), groups["1-5"], groups["6-20"]))
    table(("what", "mean rank of clicks", "nDCG@10", "improvement 1-5", "6-20"), rows)


# --- bestbuy -----------------------------------------------------------------------------------------


def run_bestbuy(options: argparse.Namespace) -> None:
    """bm25+pls fitted on the first half, then every click ranked first and learned afterwards."""
    with gzip.open(DATA / "bestbuy/clicks.tsv.gz", "rt") as f:
        header, *lines = (line.rstrip("\n").split("\t") for line in f)
    at = {name: header.index(name) for name in ("query", "doc_id", "click_time")}
    rows = [(line[at["query"]].lower().strip(), line[at["doc_id"]]) for line in lines]
    rows = [(" ".join(query.split()), doc) for query, doc in rows if query]
    cut = len(rows) // 2
    first = [PairCount(query, doc, time=float(i)) for i, (query, doc) in enumerate(rows[:cut])]
    graph = ClickGraph.build(first, read_docs(str(DATA / "bestbuy/docs.jsonl.gz")))
    model = fitted(graph, "online:bm25+pls", **{"pls.dim": options.dim})
    print(*model.notes_, sep="\n")
    inner, curve, found = model.fitted.inner, [], []
    for begin in range(cut, len(rows), options.chunk):
        chunk = rows[begin : begin + options.chunk]
        lists = [ranking.doc_ids for ranking in inner.rank_many([q for q, _ in chunk], model.list_length)]
        gains = []
        for (query, doc), listed in zip(chunk, lists, strict=True):
            after = model.rerank(query, listed).doc_ids
            gains.append([1 / (order.index(doc) + 1) if doc in order else 0.0 for order in (listed, after)])
            found += moves(listed, after, [doc])
            model.learn(Impression(query, listed if doc in listed else [*listed, doc], [doc]))
        curve.append((begin - cut + len(chunk), *np.mean(gains, axis=0)))
    table(
        ("clicks seen since the fit", "bm25+pls MRR@20", "online MRR@20"),
        ((n, float(a), float(b)) for n, a, b in curve),
    )
    print_groups(found)
    plot(curve, Path(options.svg))


def plot(curve: Sequence[tuple[Any, ...]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    for column, name in ((1, "bm25+pls"), (2, "online:bm25+pls")):
        axes.plot([row[0] for row in curve], [row[column] for row in curve], marker="o", label=name)
    axes.set(xlabel="clicks seen since the fit", ylabel="MRR@20 of the next clicks", title="bestbuy, by time")
    axes.legend(frameon=False)
    figure.savefig(path)
    print(f"plot: {path}")


# --- cost --------------------------------------------------------------------------------------------


def simulated_lists(
    n_pages: int, n_lists: int, length: int, topic_pages: int = 300, alike: bool = False, seed: int = 0
) -> Lists:
    """Lists about topics: pages of a topic by a power law, and some results from anywhere: from one in twenty to
    one in two, by topic, or with `alike` one in five for all. Then the topics' eigenvalues are all but equal, and
    which 200 of them lead is hardly defined: the hard case."""
    rng = np.random.default_rng(seed)
    topics = max(n_pages // topic_pages, 1)
    size = n_pages // topics
    topic = rng.integers(topics, size=(n_lists, 1))
    within = (size * rng.random((n_lists, length)) ** 2).astype(np.int64)
    pages = topic * size + within
    share = np.full(topics, 0.2) if alike else rng.uniform(0.05, 0.5, topics)
    strays = rng.random((n_lists, length)) < share[topic]
    pages[strays] = (n_pages * rng.random(int(strays.sum())) ** 2).astype(np.int64)
    pages.sort(axis=1)
    fresh = np.ones(pages.shape, dtype=bool)
    fresh[:, 1:] = pages[:, 1:] != pages[:, :-1]
    return Lists(Ragged.of_lengths(fresh.sum(axis=1)), pages[fresh].astype(np.int32), n_pages)


def run_projection(options: argparse.Namespace) -> None:
    n, m = int(PAPER_PAGES * options.fraction), int(PAPER_QUERIES * options.fraction)
    print(f"{n:,} pages, {m:,} lists of {PAPER_LIST}, R = {options.rank}, {options.clusters} clusters")
    lists = simulated_lists(n, m, PAPER_LIST, options.topic_pages, options.alike)
    warm = simulated_lists(900, 900, 5)
    leading(warm, scales(warm)[0], 20)
    query_vectors(warm.indptr, warm.pages, np.ones((900, 4), np.float32))
    rows = []
    clock, cpu = time.perf_counter(), time.process_time()

    def lap(name: str, note: str) -> None:
        nonlocal clock, cpu
        now = time.perf_counter(), time.process_time()
        rows.append((name, round(now[0] - clock, 1), round(now[1] - cpu, 1), note))
        clock, cpu = now

    values, vectors, residual = leading(lists, scales(lists)[0], options.rank, tolerance=options.tolerance)
    lap("eigenvectors", f"residual {residual:.1e}, eigenvalues 2 and R {values[1]:.3f}, {values[-1]:.3f}")
    some = np.linspace(0, options.rank - 1, 16).astype(int)
    off = spread(lists.indptr, lists.pages, scales(lists)[0], vectors[:, some]) - vectors[:, some] * values[some]
    lap("16 of them multiplied again", f"residual {np.linalg.norm(off, axis=0).max():.1e}")
    z = (vectors / np.sqrt(1 - 0.95 * values)).astype(np.float32)
    del vectors
    points = query_vectors(lists.indptr, lists.pages, z)
    lap("query vectors", f"{points.nbytes / 2**30:.2f} GiB")
    soft_k_means(points, options.clusters, 10.0)
    lap("clusters", "until the free energy falls by less than 1e-4, at most 50 rounds")
    table(("step", "seconds", "CPU seconds", ""), rows)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


def unfitted(lists: Lists, projection: Projection, blend: Blend) -> FittedOnline:
    """A model over `given` that has learned nothing."""
    catalogue = Catalogue([str(i) for i in range(lists.n_pages)], [""] * lists.n_pages)
    given = FittedGiven(model="given", settings=Settings(), catalogue=catalogue, choices=Choices())
    return FittedOnline(
        model="online",
        settings=OnlineSettings(list_length=PAPER_LIST),
        catalogue=catalogue,
        choices=OnlineChoices(parts=(Choices(),), blend=blend, pairs="all"),
        parts=(given,),
        projection=projection,
        rates=1 / np.arange(1.0, PAPER_LIST + 1),
        pages=np.arange(lists.n_pages),
        reach=lists.n_pages,
        state=State.empty(projection),
    )


def cpu_us(work: Callable[[int], Any], n: int) -> float:
    """CPU microseconds of a call, the first one left out."""
    work(0)
    start = time.process_time()
    for i in range(n):
        work(i)
    return (time.process_time() - start) / n * 1e6


def events_per_second(fitted: FittedOnline, pages: Sequence[Impression], threads: int) -> float:
    """Through a journal on this disk."""
    with TemporaryDirectory(dir=".") as folder, Journal(Path(folder) / "state", Online.from_fitted(fitted)) as journal:
        journal.learn(pages[0])
        start = time.perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(journal.learn, pages))
        return len(pages) / (time.perf_counter() - start)


def run_speed(options: argparse.Namespace) -> None:
    lists = simulated_lists(20_000, 60_000, PAPER_LIST)
    rows, journals = [], []
    for rank, clusters in ((50, 20), (options.rank, options.clusters)):
        projection = project(lists, Shape(rank, 0.95, clusters, 10.0, "weighted", 10.0, True))
        rng = np.random.default_rng(1)
        pages = []
        for k in rng.integers(len(lists), size=options.events):
            shown = [str(d) for d in rng.permutation(lists.pages[lists.indptr[k] : lists.indptr[k + 1]])]
            pages.append(Impression(f"query {k % 997}", shown, [shown[3]]))
        n = len(pages)
        fitted = unfitted(lists, projection, Blend(1.0, 0.2, 4.0))
        learner = Learner(fitted)
        learn = cpu_us(lambda i, to=learner, of=pages: to.learn(of[i]), n)  # type: ignore[misc]
        value = learner.fitted
        own = replace(value, choices=replace(value.choices, blend=Blend(0.0, 0.2, 4.0)))
        times = [
            cpu_us(lambda i, by=by, of=pages: by.rerank(of[i].query, of[i].results), n)  # type: ignore[misc]
            for by in (value, own, value.inner)
        ]
        known = int(np.count_nonzero(value.state.keys))
        publish = cpu_us(lambda i, by=value, to=learner: by.with_state(to._working.state()), 1000)  # type: ignore[misc]
        rows.append((rank, clusters, *(round(t) for t in (learn, *times)), known, round(publish)))
        journals += [(rank, threads, round(events_per_second(fitted, pages[:2000], threads))) for threads in (1, 8)]
    columns = ("R", "clusters", "us a click", "us a ranking of 20", "with latent 0", "inner model alone")
    table((*columns, "known pairs", "us to publish"), rows)
    print()
    table(("R", "threads", "events a second through a journal"), journals)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = {"clara2": run_clara2, "bestbuy": run_bestbuy, "ablation": run_ablation, "speed": run_speed}
    what["projection"] = run_projection
    parser.add_argument("what", choices=what, nargs="?", default="speed")
    parser.add_argument("--fraction", type=float, default=0.02, help="of the paper's pages and queries")
    parser.add_argument("--topic-pages", type=int, default=300, help="pages of a simulated topic")
    parser.add_argument("--rank", type=int, default=200)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--alike", action="store_true", help="topics that hold together equally well")
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("--events", type=int, default=5000)
    parser.add_argument("--dim", type=int, default=600, help="bestbuy: dimensions of pls")
    parser.add_argument("--chunk", type=int, default=1500, help="bestbuy: clicks between two points of the plot")
    parser.add_argument("--svg", default="online-bestbuy.svg")
    options = parser.parse_args()
    what[options.what](options)


if __name__ == "__main__":
    main()
