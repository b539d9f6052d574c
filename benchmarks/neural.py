"""What does a small neural encoder add to models learned from clicks, and the other way round?

msrd development lists, default settings. MiniLM-L6 alone is the plain cosine of its sentence vectors, as
trained by others (zero-shot); `bm25+MiniLM` is the same weighted sum that `bm25+pls` is, the weight learned
through `hold_back`; `dense:minilm` is the vectors as one more view of mpls. `encode.py` makes the vectors.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from clickbridge import BM25, MPLS, PLS, ClickGraph, read_docs, read_log
from clickbridge.evaluate.significance import paired
from clickbridge.fusion.mart import Mart
from clickbridge.graph.hold_back import hold_back
from clickbridge.io.lists import read_lists
from clickbridge.measures.ranking import evaluate_run, parse_measures
from clickbridge.models.algebra import Sum
from clickbridge.models.candidates import Query
from clickbridge.models.fitted import Array, Choices, Fitted
from clickbridge.models.model import Model
from clickbridge.models.sfunction import FittedImages
from clickbridge.models.specs import build_model
from clickbridge.models.study import Study
from clickbridge.types import ResultList

NAME = "minilm"
VIEWS = f"word&char:title,word,char:title,bigram:title,dense:{NAME}"
"""The views that mpls takes by itself on msrd, and the vectors."""
MEASURES = parse_measures("nDCG@1,nDCG@3,nDCG@5,AP")
Values = dict[str, dict[str, float]]


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedMiniLM(FittedImages):
    """Vectors of the log's queries by key; another query may bring its own."""

    can: ClassVar[frozenset[str]] = frozenset({"search", "maps", "new queries"})

    keys: dict[str, int]
    vectors: Array

    def image(self, query: Query) -> Array:
        known = self.vectors[self.keys[query.key]] if query.key in self.keys else None
        if known is not None and known.any():
            return known
        given = query.vectors.get(NAME)
        return np.zeros(self.vectors.shape[1], dtype=np.float32) if given is None else _unit(np.array([given]))[0]

    def map_keys(self, queries: Sequence[Query]) -> Array:
        return np.stack([self.image(query) for query in queries])


class MiniLM(Model):
    """The plain cosine of vectors that came with the data: nothing is learned."""

    name = "MiniLM"
    about = "cosine of sentence vectors"
    paper = "Reimers and Gurevych 2019"
    fitted_type: ClassVar[type[Fitted]] = FittedMiniLM

    def learn(self, study: Study, choices: Choices) -> FittedMiniLM:
        graph = study.graph
        images = _unit(graph.vectors[NAME]["doc"])
        return FittedMiniLM(
            model=self.name, settings=self.settings, catalogue=study.catalogue, choices=choices,
            queries=study.clicked().queries, images=images, scorable=images.any(axis=1),
            keys={key: number for number, key in enumerate(graph.query_keys)},
            vectors=_unit(graph.vectors[NAME]["query"]),
        )  # fmt: skip


def _unit(vectors: Array) -> Array:
    vectors = np.nan_to_num(vectors).astype(np.float32)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.where(norms > 0, norms, 1))


def contestants() -> dict[str, Model]:
    with_view = {"views": VIEWS}
    return {
        "bm25": build_model("bm25"),
        "pls": build_model("pls"),
        "mpls": build_model("mpls"),
        "MiniLM-L6 alone": MiniLM(),
        "bm25+MiniLM": Sum([BM25(), MiniLM()]),
        "bm25+pls": build_model("bm25+pls"),
        "bm25+mpls": build_model("bm25+mpls"),
        "mpls with dense:minilm": build_model("mpls", with_view),
        "bm25+mpls with dense:minilm": build_model("bm25+mpls", with_view),
        "bm25+mpls+MiniLM": Sum([BM25(), MPLS(), MiniLM()]),
        "mart:bm25+pls": build_model("mart:bm25+pls"),
        "mart:bm25+pls+MiniLM": Mart([BM25(), PLS(), MiniLM()]),
    }


def measured(model: Model, lists: Sequence[ResultList]) -> Values:
    run = {r.query_id: ranking.doc_ids for r, ranking in zip(lists, model.rerank_lists(lists), strict=True)}
    grades = {r.query_id: dict(zip(r.results, r.labels or (), strict=True)) for r in lists}
    return evaluate_run(run, grades, MEASURES)


def means(values: Values) -> str:
    return "".join(f"{np.mean(list(values[m.name].values())):>8.4f}" for m in MEASURES)


def against(values: Values, baseline: Values) -> str:
    cells = (paired(values[name], baseline[name]) for name in ("nDCG@5", "AP"))
    return "".join(f"{c.difference:>+9.4f} p {c.p_value:<7.2g}" for c in cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("CLICKBRIDGE_DATA"), help="folder with msrd/")
    parser.add_argument("--encoded", type=Path, required=True, help="what encode.py wrote")
    parser.add_argument("--training", action="store_true", help="MiniLM alone on the training pages: to choose a text")
    parser.add_argument("--only", default="", help="these rows alone, separated by commas")
    options = parser.parse_args()
    if options.data is None:
        parser.error("give --data FOLDER, or set CLICKBRIDGE_DATA: the folder that holds msrd/")
    log, docs = (options.data / "msrd" / name for name in ("train.log.jsonl.gz", "docs.jsonl.gz"))
    vectors = {NAME: str(options.encoded / "vectors.parquet")}
    graph = ClickGraph.build(read_log(str(log)), read_docs(str(docs)), vectors=vectors)
    print(f"{'model':<30}" + "".join(f"{m.name:>8}" for m in MEASURES) + f"{'CPU s':>8}", flush=True)
    if options.training:
        # Zero-shot: no training page is spoilt for it.
        pages = hold_back(graph, 0.999, by="query").lists()
        print(f"{'MiniLM-L6, training pages':<30}{means(measured(MiniLM().fit(graph), pages))}")
        return
    lists, found = read_lists(str(options.encoded / "dev.lists.jsonl.gz")), dict[str, Values]()
    for name, model in contestants().items():
        if options.only and name not in options.only.split(","):
            continue
        start = time.process_time()
        model.fit(graph)
        seconds = time.process_time() - start
        found[name] = measured(model, lists)
        print(f"{name:<30}{means(found[name])}{seconds:>8.1f}   {'; '.join(model.notes_[-2:])}", flush=True)
    for base in ("bm25", "bm25+mpls", "mart:bm25+pls"):
        for name in found if base in found else ():
            if name != base:
                print(f"{name:<30} against {base:<13} nDCG@5, AP {against(found[name], found[base])}")


if __name__ == "__main__":
    main()
