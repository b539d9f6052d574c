"""LETOR files: the scores of a model's parts as features of the documents that were shown, with grades from clicks."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from clickbridge.errors import MissingPart
from clickbridge.export.folder import write_json
from clickbridge.export.grades import graded_queries
from clickbridge.export.recipe import Recipe
from clickbridge.export.source import Source
from clickbridge.fusion.mart import FittedMart
from clickbridge.io.letor import LetorRow, write_letor
from clickbridge.models.composite import FittedComposite
from clickbridge.models.fitted import Array, Fitted
from clickbridge.types import ResultList
from clickbridge.wording import count_of

LISTS_AT_ONCE = 500


def features(fitted: Fitted, lists: list[ResultList]) -> tuple[list[str], Array]:
    """One column for each part; for boosted trees, all their features."""
    if isinstance(fitted, FittedMart):
        return fitted.columns(lists)
    parts = list(fitted.parts) if isinstance(fitted, FittedComposite) else [fitted]
    columns = [np.concatenate([np.empty(0), *part.score_lists(lists)]) for part in parts]
    return [part.spec for part in parts], np.stack(columns, axis=1)


def write(source: Source, folder: Path) -> None:
    if source.log.impressions is None:
        raise MissingPart(
            "letor files need shown results: build the GRAPH from a log with pages, or export --to judgments"
        )
    lists = [g.as_list(str(number)) for number, g in enumerate(graded_queries(source), 1)]
    names: list[str] = []
    rows: list[LetorRow] = []
    for start in range(0, len(lists), LISTS_AT_ONCE):
        some = lists[start : start + LISTS_AT_ONCE]
        names, values = features(source.fitted, some)
        cells = ((r.query_id, d, g) for r in some for d, g in zip(r.results, r.labels or (), strict=True))
        rows += [LetorRow(grade, q, d, v) for (q, d, grade), v in zip(cells, values, strict=True)]
    write_letor(folder / "features.letor", names, rows)
    with (folder / "queries.tsv").open("w", encoding="utf8") as file:
        file.writelines(f"{result.query_id}\t{result.query}\n" for result in lists)
    write_json(folder / "features.json", [{"number": n, "name": name} for n, name in enumerate(names, 1)])
    write_json(folder / "expected.json", [{"query": q, "results": source.expected(q)} for q in source.samples])
    Recipe(
        f"Features of {source.fitted.spec} as LETOR",
        f"{count_of(len(lists), 'query')}, {count_of(len(rows), 'document')} shown for them, "
        f"{count_of(len(names), 'feature')}.",
        {
            "features.letor": "`grade qid:N 1:value … # doc ID`, rows of a query together",
            "queries.tsv": "the queries by number",
            "features.json": "the features' names",
            "expected.json": "the first ten results of a few queries",
        },
        [
            (
                "Learn from them with LightGBM.",
                'pip install lightgbm scikit-learn\npython -c "\n'
                "import lightgbm, numpy as np\nfrom sklearn.datasets import load_svmlight_file\n"
                "x, y, qid = load_svmlight_file('features.letor', query_id=True)\n"
                "ranker = lightgbm.LGBMRanker().fit(x, y.round().astype(int), group=np.unique(qid, "
                "return_counts=True)[1])\n"
                "print(ranker.booster_.num_trees(), 'trees')\"",
            )
        ],
        "A feature that a document does not have is left out of its line. The model has learned from these clicks, "
        "so its "
        "scores look better here than they are: fit it on an earlier part of the log (`clickbridge split`), ingest "
        "the later "
        "one as the GRAPH, and export with both.",
        "Read with scikit-learn and learned from with LightGBM by the tests.",
    ).write(folder)
