"""What a GRAPH holds, and how it is read: numbers and ids of queries and documents, texts, pairs as a matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse

from clickbridge.errors import MissingPart
from clickbridge.graph.dense import Vectors
from clickbridge.graph.parts import Array, Clicks, Impressions, Pairs
from clickbridge.graph.storage import parts_present
from clickbridge.io.secret import Secret
from clickbridge.log.clean import find_query
from clickbridge.types import OPAQUE, edge_name, text_of_key
from clickbridge.wording import count_of

if TYPE_CHECKING:
    import pyarrow as pa

NO_SECRET = Secret()


class Contents:
    """The parts of a GRAPH, and the ways to read them."""

    def __init__(
        self,
        queries: Sequence[str],
        docs: pa.Table,
        pairs: Pairs,
        impressions: Impressions | None = None,
        clicks: Clicks | None = None,
        defaults: Mapping[str, object] | None = None,
        summary: Mapping[str, object] | None = None,
        vectors: Vectors | None = None,
        secret: Secret | None = NO_SECRET,
        redact: str = "shown",
    ) -> None:
        self.query_keys = queries
        self.docs = docs
        self.pairs = pairs
        self.impressions = impressions
        self.clicks = clicks
        self.defaults: dict[str, Any] = dict(defaults or {})
        self.summary: dict[str, Any] = dict(summary or {})
        self.vectors = dict(vectors or {})
        self.secret = secret
        self.redact = redact

    def __repr__(self) -> str:
        counts = {"query": self.n_queries, "document": self.n_docs, "pair": len(self.pairs)}
        return f"{type(self).__name__}({', '.join(count_of(n, noun) for noun, n in counts.items())})"

    # --- who is who ------------------------------------------------------------------------------

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return len(self.query_keys)

    @property
    def n_docs(self) -> int:
        """The number of documents."""
        return int(self.docs.num_rows)

    @property
    def parts(self) -> list[str]:
        """The names of the parts that the GRAPH has, as in its manifest."""

        def has(part: str, column: str) -> bool:
            return getattr(getattr(self, part), column, None) is not None

        return parts_present(has, bool(self.field_names))

    @property
    def has_times(self) -> bool:
        """Whether at least one event of the log has a time."""
        return any(part is not None and part.time is not None for part in (self.impressions, self.clicks))

    @property
    def field_names(self) -> list[str]:
        """The names of the documents' text fields."""
        return [name for name in self.docs.column_names if name != "doc_id"]

    @cached_property
    def doc_ids(self) -> list[str]:
        """The ids of all documents. A document's position in this list is its number."""
        ids: list[str] = self.docs["doc_id"].to_pylist()
        return ids

    @cached_property
    def _doc_numbers(self) -> dict[str, int]:
        return {doc_id: number for number, doc_id in enumerate(self.doc_ids)}

    @cached_property
    def _query_numbers(self) -> dict[str, int]:
        return {key: number for number, key in enumerate(self.query_keys)}

    def doc_idx(self, doc_id: str) -> int | None:
        """The number of a document.

        Parameters
        ----------
        doc_id : str
            The id of the document.

        Returns
        -------
        int or None
            Its position in `doc_ids`; None if it is unknown.
        """
        return self._doc_numbers.get(doc_id)

    def query_idx(self, query: str, query_id: str | None = None) -> int | None:
        """The number of a query.

        Parameters
        ----------
        query : str
            Its text, which is normalised first. If no query has that text, it is taken for an id, exactly as written.
        query_id : str, optional
            The id of a query without text.

        Returns
        -------
        int or None
            Its position in `query_keys`; None if it is unknown.
        """
        return find_query(self._query_numbers, query if query.strip() else OPAQUE + (query_id or ""))

    @cached_property
    def query_texts(self) -> list[str]:
        """The text of every query; empty for a query that has only an id."""
        return [text_of_key(key) for key in self.query_keys]

    @cached_property
    def query_names(self) -> list[str]:
        """The name of every query: its text, or its id if it has no text. In `query_keys` such ids are marked."""
        return [edge_name(key) for key in self.query_keys]

    def field(self, name: str) -> list[str]:
        """The text of one field.

        Parameters
        ----------
        name : str
            One of `field_names`, such as "title".

        Returns
        -------
        list of str
            The text for every document; empty for documents without it.
        """
        if name not in self.field_names:
            raise MissingPart(f"the GRAPH's documents have no field {name!r}; they have {self._fields_in_words()}")
        return [text or "" for text in self.docs[name].to_pylist()]

    def _fields_in_words(self) -> str:
        return ", ".join(self.field_names) or "none: ingest with --docs"

    def matrix(self, *, rows: Literal["queries", "documents"], values: Array | None = None) -> sparse.csr_array:
        """The query-document pairs as a sparse matrix.

        Parameters
        ----------
        rows : str
            What its rows are: "queries" or "documents".
        values : array, optional
            A number for each pair. By default its clicks.

        Returns
        -------
        scipy.sparse.csr_array
        """
        data = (self.pairs.clicks if values is None else values).astype(np.float64)
        shape = (self.n_queries, self.n_docs)
        out = sparse.coo_array((data, (self.pairs.query, self.pairs.doc)), shape=shape).tocsr()
        out.eliminate_zeros()
        if rows == "queries":
            return out
        if rows == "documents":
            return sparse.csr_array(out.T)
        raise ValueError(f"rows must be 'queries' or 'documents', got {rows!r}")

    def vectors_of(self, side: Literal["query", "doc"], rows: Array | None) -> dict[str, Array]:
        """The dense vectors of one side.

        Parameters
        ----------
        side : str
            "query" or "doc".
        rows : array of int, or None
            The numbers of some queries or documents; None for all.

        Returns
        -------
        dict of str to array
            A row for each item under each name; NaN for an item without a vector.
        """
        found = {name: sides[side] for name, sides in self.vectors.items() if side in sides}
        return found if rows is None else {name: values[rows] for name, values in found.items()}
