"""Judgments from clicks, for tools that tune a search engine: OpenSearch's Search Relevance Workbench, and Quepid."""

from __future__ import annotations

import csv
from pathlib import Path

from clickbridge.export.folder import packed, write_json
from clickbridge.export.grades import graded_queries
from clickbridge.export.recipe import Recipe
from clickbridge.export.source import SHOWN, Source
from clickbridge.io.files import plain_cell
from clickbridge.wording import count_of

NAME = "clickbridge clicks"


def write(source: Source, folder: Path) -> None:
    graded = list(graded_queries(source))
    ratings = [
        {
            "query": g.query,
            "ratings": [
                {"docId": doc_id, "rating": f"{grade:.3f}"} for doc_id, grade in zip(g.doc_ids, g.grades, strict=True)
            ],
        }
        for g in graded
    ]
    about = f"Grades 0 to 3 from clicks, {count_of(len(graded), 'query')}"
    body = {"name": NAME, "description": about, "type": "IMPORT_JUDGMENT", "judgmentRatings": ratings}
    write_json(folder / "workbench.json", body)
    (folder / "queryset.ndjson").write_bytes(b"".join(packed({"queryText": g.query}) + b"\n" for g in graded))
    with (folder / "quepid.csv").open("w", encoding="utf8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("query", "docid", "rating"))
        for g in graded:
            # Quepid's grades are integers.
            rows.writerows((plain_cell(g.query), d, round(v)) for d, v in zip(g.doc_ids, g.grades, strict=True))
    write_json(folder / "expected.json", [{"query": q, "results": source.expected(q)} for q in source.samples])
    Recipe(
        "Judgments from clicks",
        f"{count_of(len(graded), 'query')}, {count_of(sum(len(g.doc_ids) for g in graded), 'graded document')}.",
        {
            "workbench.json": "judgments for the Search Relevance Workbench (OpenSearch 3.1 and later)",
            "queryset.ndjson": "its queries",
            "quepid.csv": "the same for Quepid, grades rounded to whole ones",
            "expected.json": f"the first {SHOWN} results of the model `{source.fitted.spec}` for a few queries",
        },
        [
            ("Load them into the workbench.",
             'curl -s -H "Content-Type: application/json" -X PUT $HOST/_plugins/_search_relevance/judgments '
             "--data-binary @workbench.json"),
            ("For Quepid: open a case, *Import*, *Ratings*, and choose the file.", "ls -l quepid.csv"),
        ],
        "The most clicked document of a query has grade 3, the others are in proportion, and documents that were "
        "shown and "
        "never clicked have 0. Where the log has result pages, clicks are weighed against the rank they came from. "
        "These are "
        "clicks, not the opinion of a judge: rare queries rest on few.",
        "Written to the published schema; not run against a server.",
    ).write(folder)  # fmt: skip
