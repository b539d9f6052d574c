"""The input of every target: the model, its GRAPH if there is one, and sample queries to check the result with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from clickbridge.errors import MissingPart
from clickbridge.export.folder import write_json
from clickbridge.export.maps import Maps
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.people import names_a_person
from clickbridge.models.fitted import Array, Fitted
from clickbridge.types import text_of_key

SAMPLES, SHOWN = 5, 10


@dataclass(frozen=True)
class Request:
    """A search request, and how to get our score from the engine's: `score = (engine's - constant) / scale`."""

    body: Any
    scale: float = 1.0
    constant: float = 0.0


@dataclass(frozen=True, eq=False)
class Source:
    fitted: Fitted
    target: str
    graph: ClickGraph | None = None
    min_users: int = 2
    """If the log has users, queries of fewer people are not written."""

    @cached_property
    def maps(self) -> Maps:
        return Maps.of(self.fitted, self.target)

    @property
    def log(self) -> ClickGraph:
        """The GRAPH, for a target that needs clicks."""
        if self.graph is None:
            raise MissingPart(f"export --to {self.target} is made of clicks: give the GRAPH, --graph GRAPH")
        return self.graph

    @cached_property
    def shown_queries(self) -> Array:
        """The numbers of the GRAPH's queries that have text, name no person, and were typed and clicked by enough
        people."""
        graph = self.log
        clicked = np.bincount(graph.pairs.query, graph.pairs.clicks, minlength=graph.n_queries) > 0
        if graph.pairs.users is not None and self.min_users > 1:
            most = np.zeros(graph.n_queries, dtype=np.int64)
            np.maximum.at(most, graph.pairs.query, graph.pairs.users)
            clicked &= most >= self.min_users
        has_text = np.array([bool(text) for text in graph.query_texts], dtype=bool)
        return np.flatnonzero(clicked & has_text & ~names_a_person(graph))

    @cached_property
    def samples(self) -> list[str]:
        """The most clicked queries that may be shown and that the model can answer; if there are too few, also
        titles."""
        known = self.fitted.queries
        order = np.argsort(-np.asarray(known.clicks), kind="stable")
        shown = known.may_be_shown()
        queries = (known.keys[i] for i in order.tolist() if shown[i])
        texts = (text_of_key(key) for key in queries if not self._hides(key))
        out: list[str] = []
        for text in chain(texts, self.fitted.catalogue.titles):
            if text and text not in out and len(self.fitted.rank(text, 1)):
                out.append(text)
            if len(out) == SAMPLES:
                break
        return out

    @cached_property
    def _hides(self) -> Callable[[str], bool]:
        """Whether a query must not be written, according to the GRAPH or, without one, the MODEL."""
        if self.graph is None:
            return self.fitted.display.hides(self.min_users)
        allowed = {self.graph.query_keys[i] for i in self.shown_queries}
        return lambda key: key not in allowed

    def write_samples(self, folder: Path, ask: Callable[[str], Request], query_file: bool = True) -> list[Request]:
        """Writes `expected.json`, the samples with their requests and expected answers, and `query.json`, the first of
        them."""
        requests = [ask(query) for query in self.samples]
        write_json(
            folder / "expected.json",
            [
                {
                    "query": query, "request": asked.body, "scale": asked.scale, "constant": asked.constant,
                    "results": self.expected(query, asked.scale, asked.constant),
                }
                for query, asked in zip(self.samples, requests, strict=True)
            ],
        )  # fmt: skip
        if query_file and requests:
            write_json(folder / "query.json", requests[0].body)
        return requests

    def expected(self, query: str, scale: float = 1.0, constant: float = 0.0) -> list[dict[str, Any]]:
        """Our first ten results, which the engine should return."""
        ranking = self.fitted.rank(query, SHOWN)
        return [
            {"rank": rank, "doc_id": hit.doc_id, "score": hit.score, "engine_score": hit.score * scale + constant}
            for rank, hit in enumerate(ranking, 1)
        ]
