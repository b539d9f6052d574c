"""Models in PyTerrier's pipelines: a retriever and a re-ranker.

    from clickbridge.evaluate.pyterrier import Reranker, Retriever
    pipeline = Retriever(bm25, k=100) >> Reranker(pls)

Q (`qid`, `query`) goes in, R (`qid`, `query`, `docno`, `score`, `rank`, from 0) comes out; a re-ranker takes R.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyterrier as pt

from clickbridge.types import Ranking

OWN = ("docno", "score", "rank")


class Retriever(pt.Transformer):
    """A PyTerrier transformer that searches the whole collection for each query: `Retriever(model, k=100)`."""

    def __init__(self, model: Any, k: int = 1000) -> None:
        self.model, self.k = model, k

    def __repr__(self) -> str:
        return f"Retriever({self.model.spec}, k={self.k})"

    def schematic(self, *, input_columns: Any = None) -> dict[str, str]:
        return {"label": "Retriever", "help_url": ""}

    def transform(self, topics: pd.DataFrame) -> pd.DataFrame:
        pt.validate.query_frame(topics, extra_columns=["query"])
        rankings = self.model.rank_many(topics["query"].tolist(), self.k) if len(topics) else []
        return _results(topics.drop(columns=[c for c in OWN if c in topics]), rankings)


class Reranker(pt.Transformer):
    """A PyTerrier transformer that re-ranks the given documents of each query: `Reranker(model)`.

    Documents with equal scores, and those that the model cannot score, keep their order."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __repr__(self) -> str:
        return f"Reranker({self.model.spec})"

    def schematic(self, *, input_columns: Any = None) -> dict[str, str]:
        return {"label": "Reranker", "help_url": ""}

    def transform(self, results: pd.DataFrame) -> pd.DataFrame:
        pt.validate.result_frame(results, extra_columns=["query"])
        if not len(results):
            return _empty(results)
        ordered = results.sort_values(["qid", "rank"], kind="stable") if "rank" in results else results
        parts = []
        for _, group in ordered.groupby("qid", sort=False):
            ranking = self.model.rerank(group["query"].iloc[0], group["docno"].tolist())
            rows = group.set_index("docno").loc[ranking.doc_ids].reset_index()
            parts.append(_scored(rows, ranking))
        return pd.concat(parts, ignore_index=True)


def _results(topics: pd.DataFrame, rankings: list[Ranking]) -> pd.DataFrame:
    parts = []
    for (_, topic), ranking in zip(topics.iterrows(), rankings, strict=True):
        if len(ranking):
            rows = pd.DataFrame([topic] * len(ranking)).reset_index(drop=True)
            parts.append(_scored(rows.assign(docno=ranking.doc_ids), ranking))
    return pd.concat(parts, ignore_index=True) if parts else _empty(topics)


def _scored(rows: pd.DataFrame, ranking: Ranking) -> pd.DataFrame:
    """Strictly decreasing scores, so that sorting them again gives the same order."""
    from clickbridge.io.trec import falling

    return rows.assign(score=falling(ranking.scores), rank=range(len(ranking)))


def _empty(frame: pd.DataFrame) -> pd.DataFrame:
    kinds = {"docno": "object", "score": "float64", "rank": "int64"}
    return frame.head(0).assign(**{name: pd.Series(dtype=kind) for name, kind in kinds.items()})
