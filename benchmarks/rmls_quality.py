"""Does RMLS hold its quality over iterations? The printed algorithm, the repairs that were tried, the default.

For each: quality on held-back clicks after passes 1 to 10, density, effective rank and cosine to one direction.
`msrd`: nDCG@5 of the pages of a tenth of the queries (no time in that log). `bestbuy`: MAP@5 of the clicked
product over the last tenth of the clicks by time.

    python benchmarks/rmls_quality.py DATA --figure rmls.svg
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clickbridge import RMLS, ClickGraph, read_docs, read_log
from clickbridge.models.ascent import labelled
from clickbridge.models.candidates import without_gaps
from clickbridge.models.fitted import Fitted
from clickbridge.models.rmls_passes import passes
from clickbridge.models.study import Study

PLAIN: dict[str, Any] = {"decorrelate": 0.0, "norm_power": 0.0, "balance": 0.0, "tolerance": 0.0, "density": 0.02}
WAYS: dict[str, dict[str, Any]] = {
    "printed, no threshold": {"shrink": "relative", "beta": 0.0, "gamma": 0.0},
    "printed, threshold 2 x rms": {"shrink": "relative", "beta": 2.0, "gamma": 2.0},
    "density .02": {"shrink": "density"},
    "density, balance .5": {"shrink": "density", "balance": 0.5},
    "density, balance 1": {"shrink": "density", "balance": 1.0},
    "density, start from SVD": {"shrink": "density", "start": "svd"},
    "density, decorrelate .8": {"shrink": "density", "decorrelate": 0.8},
    "default": {"shrink": "density", "decorrelate": 0.8, "norm_power": 0.5},
}
PASSES = 10
Quality = Callable[[Fitted], float]


def msrd(data: Path) -> tuple[Study, Quality]:
    graph = ClickGraph.build(
        read_log(str(data / "msrd/train.log.jsonl.gz")), read_docs(str(data / "msrd/docs.jsonl.gz"))
    )
    study = Study(graph)
    held, rest = study.hold_back()
    lists = labelled(study, held.lists())

    def quality(fitted: Fitted) -> float:
        return lists.ndcg(without_gaps(fitted.scores(lists.candidates), -1e9))

    return rest, quality


def bestbuy(data: Path) -> tuple[Study, Quality]:
    log = read_log(str(data / "bestbuy/clicks.tsv.gz"), columns={"time": "click_time"})
    held, rest = Study(ClickGraph.build(log, read_docs(str(data / "bestbuy/docs.jsonl.gz")))).hold_back()
    pairs, keys, ids = held.clicked, held.graph.query_keys, held.graph.doc_ids
    assert pairs is not None

    def quality(fitted: Fitted) -> float:
        queries = sorted({int(q) for q in pairs.query})
        found = dict(zip(queries, (r.doc_ids for r in fitted.rank_many([keys[q] for q in queries], 5)), strict=True))
        total = 0.0
        for q, d, clicks in zip(pairs.query, pairs.doc, pairs.clicks, strict=True):
            top = found[int(q)]
            total += clicks / (top.index(ids[d]) + 1) if ids[d] in top else 0.0
        return total / float(pairs.clicks.sum())

    return rest, quality


def run(study: Study, quality: Quality, ways: list[str]) -> dict[str, list[float]]:
    model = RMLS()
    choices = model.choose(study)
    known, features, (columns,) = model.learn_features(study, ["&".join(choices.groups)], choices)
    out: dict[str, list[float]] = {}
    for name in ways:
        s = model.set_params(**PLAIN | {"start": "random"} | WAYS[name]).settings
        out[name] = []
        for now in passes(features, *columns, s.dim, s, PASSES, study.engine):
            more: dict[str, Any] = {"plan": now.plan, "trace": [now.report]}
            fitted = model.finish(study, choices, known, features, [now.space], (), exact=True, **more)
            out[name].append(quality(fitted))
            last = now.report
        values = " ".join(f"{value:.3f}" for value in out[name])
        print(
            f"{name:26} {values}  density {last['density']:.4f}, effective rank {last['effective_rank']:.0f}, "
            f"cosine {last['cosine_to_constant']:.2f}",
            flush=True,
        )
    return out


def plot(found: dict[str, dict[str, list[float]]], figure: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, len(found), figsize=(5 * len(found), 4), squeeze=False)
    for axis, (name, ways) in zip(axes[0], found.items(), strict=True):
        for way, values in ways.items():
            width = 2.5 if way == "default" else 1
            axis.plot(range(1, PASSES + 1), values, marker="o", markersize=3, linewidth=width, label=way)
        axis.set(title=name, xlabel="passes", ylabel="nDCG@5" if name == "msrd" else "MAP@5", ylim=(0, 1))
    axes[0][0].legend(fontsize=6)
    fig.tight_layout()
    fig.savefig(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with msrd and bestbuy")
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--sets", default="bestbuy,msrd")
    parser.add_argument("--ways", default="", help="separated by semicolons; all of them by default")
    options = parser.parse_args()
    results = {}
    for make in (bestbuy, msrd):
        if make.__name__ in options.sets.split(","):
            print(make.__name__)
            results[make.__name__] = run(*make(options.data), options.ways.split(";") if options.ways else list(WAYS))
    if options.figure:
        plot(results, options.figure)
