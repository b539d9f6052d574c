"""Are the learned baselines as good and as fast as other implementations of the same thing?

SVDFeature with nothing but the items' own numbers (`views=id`) and the pairwise loss is Bayesian personalised
ranking: next to implicit's BPR, and its ALS, on the Best Buy clicks, split by time. BLTM with one empty side and
no tie is a topic model of one language: next to scikit-learn's LDA on the movies' overviews, by the perplexity
of the second half of unseen texts given their first. Speeds are in pairs or tokens a second, threads 1 and 2.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge import ClickGraph, build_model, read_docs, read_log
from clickbridge.engines.local import Local
from clickbridge.models.factor_training import Training
from clickbridge.models.factors import FactorChoices, FactorModel
from clickbridge.models.study import Study
from clickbridge.numerics.bltm import em_step, fold_in, normalised
from clickbridge.views.text import Analyzer
from clickbridge.views.word import Vocabulary, WordCounter

Array = np.ndarray[Any, Any]
DATA = Path(os.environ.get("CLICKBRIDGE_DATA", "../shared/data"))


def line(name: str, threads: int, seconds: float, rest: str) -> None:
    print(f"{name:22s} threads {threads}  {seconds:6.1f} s  {rest}", flush=True)


def map5(ranked: list[list[int]], rows: Array, held: sparse.csr_array) -> float:
    """Mean reciprocal rank within five of every held-back click."""
    gains, clicks = 0.0, 0.0
    for row, docs in zip(rows, ranked, strict=True):
        for doc, count in zip(held[[row]].indices, held[[row]].data, strict=True):
            gains += count / (docs.index(doc) + 1) if doc in docs[:5] else 0.0
            clicks += count
    return gains / clicks


def clock() -> Array:
    """Seconds by the wall, and of this process on all cores."""
    return np.array([time.perf_counter(), time.process_time()])


def per_pair(seconds: Array, pairs: int) -> str:
    return f"{pairs / seconds[0]:,.0f} pairs/s, {1e9 * seconds[1] / pairs:,.0f} ns of processor time a pair"


def factorisations(dim: int, epochs: int, seeds: int, repeats: int) -> None:
    """Speeds are the best of `repeats`, ours and BPR's by turns; MAP@5 is the mean over seeds, and its spread."""
    from implicit.als import AlternatingLeastSquares
    from implicit.bpr import BayesianPersonalizedRanking

    path = str(DATA / "bestbuy" / "clicks.tsv.gz")
    log = read_log(path, format="triples", columns={"time": "click_time"})
    graph = ClickGraph.build(log, read_docs(str(DATA / "bestbuy" / "docs.jsonl.gz")))
    held = graph.hold_back(0.2, by="time")
    train = sparse.csr_matrix(held.graph.matrix(rows="queries"), dtype=np.float32)
    future = graph.with_pairs(held.clicked).matrix(rows="queries")
    rows = np.flatnonzero((np.diff(future.indptr) > 0) & (np.diff(train.indptr) > 0))
    print(
        f"{train.shape[0]:,} queries, {train.shape[1]:,} documents, {train.nnz:,} pairs; {len(rows):,} queries to test"
    )
    queries, numbers = [graph.query_keys[int(r)] for r in rows], {d: n for n, d in enumerate(graph.doc_ids)}
    settings = {"views": "id", "dim": dim, "epochs": epochs, "negatives": 4, "global_features": "none"}
    settings |= {"learning_rate": 0.1, "decay": 0.0}  # a number occurs seldom: it needs long steps
    choices = FactorChoices(field_weights={}, groups=("id",), epochs=epochs)

    def bpr(threads: int, seed: int) -> tuple[Array, int, float]:
        model = BayesianPersonalizedRanking(dim, iterations=epochs * 4, num_threads=threads, random_state=seed)
        start = clock()
        model.fit(train, show_progress=False)
        return clock() - start, train.nnz * epochs * 4, quality(model)

    def ours(threads: int, seed: int) -> tuple[Array, int, float]:
        model: Any = build_model("svdfeature", settings | {"seed": seed})
        study = Study(held.graph, Local(threads))
        seconds, pairs = descend(model, study, choices)
        model.fit_on(study, choices)
        found = [[numbers[d] for d in ranking.doc_ids] for ranking in model.rank_many(queries, 5)]
        return seconds, pairs, map5(found, rows, future)

    def quality(model: Any) -> float:
        found, _ = model.recommend(rows, train[rows], N=5, filter_already_liked_items=False)
        return map5(found.tolist(), rows, future)

    for threads in (1, 2):
        ways = {"implicit BPR": bpr, "svdfeature views=id": ours}
        best = {name: np.full(2, np.inf) for name in ways}
        values: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(max(repeats, seeds)):
            for name, way in ways.items():
                seconds, pairs, value = way(threads, turn % seeds)
                best[name] = np.minimum(best[name], seconds / pairs)
                values[name] += [value] if turn < seeds else []
        for name, seconds in best.items():
            found = f"MAP@5 {np.mean(values[name]):.3f} +- {np.std(values[name]):.3f}"
            print(f"{name:22s} threads {threads}  {found}  {per_pair(seconds, 1)}", flush=True)
        als = AlternatingLeastSquares(dim, iterations=15, num_threads=threads, random_state=0)
        als.fit(train, show_progress=False)
        print(f"{'implicit ALS':22s} threads {threads}  MAP@5 {quality(als):.3f}", flush=True)


def descend(model: FactorModel, study: Study, choices: FactorChoices) -> tuple[Array, int]:
    """Seconds of all passes, the drawing of samples included as in implicit, and how many pairs they went over."""
    known, features, _ = model.learn_features(study, choices.groups, choices)
    trainings = [Training(study.graph, known, features, model.objective(), study.engine) for _ in range(2)]
    trainings[0].run(1)  # compiles
    start = clock()
    while trainings[1].epochs < choices.epochs:
        trainings[1].run(choices.epochs, at_once=True)
    seconds = clock() - start
    return seconds, sum(len(trainings[1].samples(epoch)) for epoch in range(choices.epochs))


def perplexity(phi: Array, theta: Array, texts: sparse.csr_array) -> float:
    """exp of minus the mean log probability of a token."""
    coo = texts.tocoo()
    rows, words = coo.coords
    chance = np.einsum("ij,ij->i", theta[rows], phi[words])
    return float(np.exp(-(coo.data @ np.log(np.maximum(chance, 1e-12))) / coo.data.sum()))


def topics(dim: int, rounds: int) -> None:
    from sklearn.decomposition import LatentDirichletAllocation

    texts = [d.fields.get("overview", "") for d in read_docs(str(DATA / "msrd" / "docs.jsonl.gz"))]
    vocabulary = Vocabulary()
    counts = WordCounter(Analyzer("english", "drop"), vocabulary).count(texts)
    frequent = np.flatnonzero(np.bincount(counts.indices, minlength=counts.shape[1]) >= 5)
    counts = sparse.csr_array(counts[:, frequent])
    rng = np.random.default_rng(0)
    train, test = counts[: len(texts) * 9 // 10], counts[len(texts) * 9 // 10 :]
    first = test.copy()
    first.data = rng.binomial(test.data.astype(int), 0.5).astype(np.float32)
    second = sparse.csr_array(test - first)
    tokens = train.sum() * rounds
    empty = sparse.csr_array(train.shape)
    print(f"{train.shape[0]:,} texts, {int(train.sum()):,} tokens, {dim} topics, {rounds} rounds")
    first_phi = normalised(rng.random((train.shape[1], dim)) + 0.5)
    for threads in (1, 2):
        phi, weight = first_phi, np.ones(train.shape[0])
        theta, dual = np.full((train.shape[0], dim), 1 / dim), np.zeros((train.shape[0], dim))
        em_step(
            train, empty, weight, theta.copy(), phi, phi, dual.copy(), 0.0, 1.1, 1.1, engine=Local(threads)
        )  # compiles
        start = time.perf_counter()
        for _ in range(rounds):
            _, phi, _ = em_step(train, empty, weight, theta, phi, phi, dual, 0.0, 1.1, 1.1, engine=Local(threads))
        seconds = time.perf_counter() - start
        value = perplexity(phi, fold_in(first, phi, theta.mean(axis=0), 1.1), second)
        line("bltm, one side", threads, seconds, f"{tokens / seconds:,.0f} tokens/s  perplexity {value:,.0f}")
        lda = LatentDirichletAllocation(
            dim,
            learning_method="batch",
            max_iter=rounds,
            n_jobs=threads,
            random_state=0,
            doc_topic_prior=0.1,
            topic_word_prior=0.1,
        )
        start = time.perf_counter()
        lda.fit(train)
        seconds = time.perf_counter() - start
        words = (lda.components_ / lda.components_.sum(axis=1, keepdims=True)).T
        value = perplexity(words, lda.transform(first), second)
        line("scikit-learn LDA", threads, seconds, f"{tokens / seconds:,.0f} tokens/s  perplexity {value:,.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--part", nargs="+", choices=("clicks", "topics"), default=["clicks", "topics"])
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    if "clicks" in options.part:
        factorisations(options.dim, options.epochs, options.seeds, options.repeats)
    if "topics" in options.part:
        topics(options.topics, options.rounds)


if __name__ == "__main__":
    main()
