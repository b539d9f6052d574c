"""TREC files for evaluation tools: topics, judgments from clicks, and a run of the model."""

from __future__ import annotations

import math
from pathlib import Path

from clickbridge.export.folder import write_json
from clickbridge.export.grades import graded_queries
from clickbridge.export.recipe import Recipe
from clickbridge.export.source import Source
from clickbridge.io.trec import write_run

MOST_QUERIES, DEPTH = 1_000, 100


def write(source: Source, folder: Path) -> None:
    graded = list(graded_queries(source, MOST_QUERIES))
    names = [f"q{number}" for number in range(1, len(graded) + 1)]
    queries = [g.query for g in graded]
    with (folder / "topics.tsv").open("w", encoding="utf8") as topics:
        topics.writelines(f"{name}\t{query}\n" for name, query in zip(names, queries, strict=True))
    with (folder / "qrels.txt").open("w", encoding="utf8") as qrels:
        for name, g in zip(names, graded, strict=True):
            # TREC grades are integers; a clicked document never gets 0.
            qrels.writelines(f"{name} 0 {d} {math.ceil(v)}\n" for d, v in zip(g.doc_ids, g.grades, strict=True))
    rankings = source.fitted.rank_many(queries, DEPTH)
    write_run(folder / "run.txt", zip(names, rankings, strict=True), source.fitted.spec)
    write_json(folder / "expected.json", [{"query": q, "results": source.expected(q)} for q in source.samples])
    Recipe(
        f"{source.fitted.spec} as TREC files",
        f"The {len(graded):,} most clicked queries that may be shown.",
        {
            "topics.tsv": "query_id, tab, text",
            "qrels.txt": "grades 0 to 3 from clicks, rounded up",
            "run.txt": f"the first {DEPTH} results of the model `{source.fitted.spec}`",
            "expected.json": "the first ten results of a few queries",
        },
        [
            ("Measure the run.", "pip install ir-measures\nir_measures qrels.txt run.txt nDCG@10 AP"),
            ("Or with ours.", "clickbridge evaluate run.txt --qrels qrels.txt"),
        ],
        "The model has seen these clicks: a measure here says how well it remembers them. To measure what it has "
        "learned, "
        "split the log first (`clickbridge split`).",
        "Read back with ir-measures by the tests.",
    ).write(folder)
