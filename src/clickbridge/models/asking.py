"""What users ask of a fitted model: scores, rankings, reasons. Each question goes to the fitted value."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from clickbridge.engines.base import Engine
from clickbridge.models.fitted import Fitted, Mapped
from clickbridge.types import Document, Explanation, Ranking, ResultList, SimilarQueries, as_id

Array = np.ndarray[Any, Any]


class Asking:
    """The part of `Model` that answers."""

    @property
    def fitted(self) -> Fitted:
        raise NotImplementedError

    def score(self, query: str, doc_ids: Sequence[str]) -> Array:
        """Scores documents for a query.

        Parameters
        ----------
        query : str
            What was typed.
        doc_ids : sequence of str
            Ids of the documents. Integers are accepted, too.

        Returns
        -------
        array of float
            One score per document, in the same order; -inf for documents that the model cannot score.
        """
        return self.fitted.score(query, doc_ids)

    def score_lists(self, lists: Sequence[ResultList]) -> list[Array]:
        """Scores many lists at once.

        Parameters
        ----------
        lists : sequence of ResultList
            Queries with the documents to score.

        Returns
        -------
        list of array of float
            For each list, one score per document, as `score` gives them.
        """
        return self.fitted.score_lists(lists)

    def rerank(self, query: str, doc_ids: Sequence[str], scores: Sequence[float] | None = None) -> Ranking:
        """Sorts the given documents by their score for a query.

        Parameters
        ----------
        query : str
            What was typed.
        doc_ids : sequence of str
            Ids of the documents, in the order of your search engine.
        scores : sequence of float, optional
            The scores of your search engine, for models that use them.

        Returns
        -------
        Ranking
            Every given id exactly once, highest score first. Documents with equal scores keep their order. Those
            without a score come last, also in the order given.
        """
        return self.fitted.rerank(query, doc_ids, scores)

    def rerank_lists(self, lists: Sequence[ResultList], *, engine: Engine | None = None) -> list[Ranking]:
        """Like `rerank`, for many lists at once.

        Parameters
        ----------
        lists : sequence of ResultList
            Queries with the documents to sort.
        engine : Engine, optional
            Where to compute, such as `Local(threads=2)`.

        Returns
        -------
        list of Ranking
            One for each list, in the same order.
        """
        return self.fitted.rerank_lists(lists, engine=engine)

    def rank(self, query: str, k: int = 10) -> Ranking:
        """Searches the whole collection.

        Parameters
        ----------
        query : str
            What was typed. It need not be in the log.
        k : int
            The largest number of documents to return.

        Returns
        -------
        Ranking
            The best documents, best first. Empty if the model has no score for this query.
        """
        return self.fitted.rank(query, k)

    def rank_many(self, queries: Sequence[str], k: int = 10, *, engine: Engine | None = None) -> list[Ranking]:
        """Like `rank`, for many queries at once.

        Parameters
        ----------
        queries : sequence of str
            What was typed.
        k : int
            The largest number of documents for each.
        engine : Engine, optional
            Where to compute, such as `Local(threads=2)`.

        Returns
        -------
        list of Ranking
            One for each query, in the same order.
        """
        return self.fitted.rank_many(queries, k, engine=engine)

    def falls_back(self, query: str) -> bool:
        """Whether the model knows nothing about this query and gives the answer of a simpler model.

        Parameters
        ----------
        query : str
            What was typed.

        Returns
        -------
        bool
            False for models that have no simpler one inside.
        """
        return self.fitted.falls_back(query)

    def similar_queries(self, query: str, k: int = 3, min_clicks: int = 1) -> SimilarQueries:
        """Finds the queries of the log that are most similar to this one. The query itself is left out.

        Parameters
        ----------
        query : str
            What was typed. It need not be in the log.
        k : int
            The largest number of queries to return.
        min_clicks : int
            Queries with fewer clicks are left out.

        Returns
        -------
        SimilarQueries
            A list of (query, similarity), most similar first. It is a table in a notebook, and has `to_frame`.
        """
        return SimilarQueries(self.fitted.similar_queries(query, k, min_clicks))

    def similar_documents(self, doc_id: str, k: int = 3) -> Ranking:
        """Finds the documents that are most similar to this one. The document itself is left out.

        Parameters
        ----------
        doc_id : str
            The id of a document of the model.
        k : int
            The largest number of documents to return.

        Returns
        -------
        Ranking
            Documents and their similarity, most similar first.
        """
        return self.fitted.similar_documents(as_id(doc_id), k)

    def explain(self, query: str, doc_id: str, k: int = 10) -> Explanation:
        """Explains a score: which words or other features it comes from, and which clicks they were learned from.

        Parameters
        ----------
        query : str
            What was typed.
        doc_id : str
            The id of the document.
        k : int
            The number of pairs of features to list.

        Returns
        -------
        Explanation
            It prints as a table. Models that are not S-functions raise `NotSupported`.
        """
        return self.fitted.explain(query, as_id(doc_id), k)

    def map_queries(self, queries: Sequence[str]) -> Mapped:
        """Maps queries into the space of the S-function, where a score is a dot product.

        Parameters
        ----------
        queries : sequence of str
            What was typed. They need not be in the log, if the model can score new queries.

        Returns
        -------
        array or sparse array
            One row per query, in the same order.
        """
        return self.fitted.map_queries(queries)

    def map_documents(self, documents: Sequence[Document | str]) -> Mapped:
        """Maps documents into the space of the S-function, where a score is a dot product.

        Parameters
        ----------
        documents : sequence of str or Document
            Ids of documents of the model, or new documents with their text.

        Returns
        -------
        array or sparse array
            One row per document, in the same order.
        """
        return self.fitted.map_documents(documents)

    def title(self, doc_id: str) -> str:
        """The title to show next to a document's id.

        Parameters
        ----------
        doc_id : str
            The id of a document.

        Returns
        -------
        str
            Empty if the model has no title of it.
        """
        return self.fitted.title(doc_id)

    def save(self, path: str | Path) -> None:
        """Writes the fitted model to a folder, which `load` opens.

        Parameters
        ----------
        path : str or Path
            The folder. If a MODEL is there already, it is replaced in one step. A folder with anything else in it is
            refused.
        """
        from clickbridge.models.model_folder import save

        save(self.fitted, path)
