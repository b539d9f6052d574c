"""The candidates that `auto` tries on a GRAPH, from the cheapest to the most expensive, and the cost of each.

Costs are predicted from sizes only: characters of text, results on pages, distinct queries. Nothing is timed, so the
same log and budget give the same candidates on every machine. The rates are those of a core of 2024, within a factor of
two or three. On another machine the seconds are off by about the same factor for all candidates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.hold_back import choose
from clickbridge.models.pls import repeated_share

SOME_REPEAT = 0.1
"""Share of searches of a repeated query, from which on the memory of single queries is tried."""
HALF_LIVES = (7.0, 30.0)
"""Days after which a click of the same query counts half: tried where the log has times."""
POOLED = 60
"""Results of a list where the log has no pages."""
PASSES = 30
"""Times that a decomposition goes over the features, both ways."""
LATENT_DIM, SPARSE_DIM = 600, 1000
"""Dimensions of pls and rmls."""


@dataclass(frozen=True)
class Candidate:
    """A spec, its predicted seconds of processor time, and settings that differ from the defaults. It is skipped if
    `unless[0]` gained nothing over `unless[1]`."""

    spec: str
    seconds: float
    unless: tuple[str, str] = ("", "")
    settings: tuple[tuple[str, float], ...] = ()

    @property
    def name(self) -> str:
        """Its name among the candidates: `bm25+pls (half_life 7)`."""
        words = ", ".join(f"{key.rpartition('.')[2]} {value:g}" for key, value in self.settings)
        return f"{self.spec} ({words})" if words else self.spec


@dataclass(frozen=True)
class Sizes:
    """What costs depend on."""

    doc_chars: int
    query_chars: int
    n_queries: int
    n_docs: int
    n_fields: int
    rows: int
    """Results on all pages, or on as many lists as there are queries with clicks."""
    lists: int

    @classmethod
    def of(cls, graph: ClickGraph) -> Sizes:
        pages = graph.impressions
        lists = len(pages) if pages is not None else len(np.unique(graph.pairs.query))
        rows = len(pages.doc) if pages is not None else POOLED * lists
        return cls(
            sum(len(text) for name in graph.field_names for text in graph.field(name)),
            sum(map(len, graph.query_texts)), graph.n_queries, graph.n_docs, len(graph.field_names), rows, lists,
        )  # fmt: skip


def bm25_seconds(s: Sizes) -> float:
    """Words are counted once. Each field weight is tried on a quarter of the lists."""
    return 1e-6 * (s.doc_chars + s.query_chars) + 2e-6 * max(s.n_fields - 1, 0) * s.rows + 0.4


def latent_seconds(s: Sizes, dim: int) -> float:
    """A decomposition: passes over the features for each dimension, and orthogonalisation of the columns."""
    features = (s.doc_chars + 4 * s.query_chars) / 6
    return 4 * PASSES * dim * (features / 1.5e10 + min(features, 1e5) * dim / 6e11) + 1.0


def mart_seconds(s: Sizes, folds: int, parts: float) -> float:
    """Fitting the parts in every fold, computing the features of the lists, and growing the trees."""
    lists = min(s.rows, 20_000 * s.rows / max(s.lists, 1))
    return folds * parts + 3e-4 * lists + 20


def robust_seconds(s: Sizes) -> float:
    """About sixty trials on 300 lists, whatever the log, and the base scores of all preferences."""
    return 24 + 2e-6 * s.rows


def candidates(graph: ClickGraph) -> list[Candidate]:
    """All candidates, cheapest first; if two cost the same, the simpler one first."""
    s = Sizes.of(graph)
    texts = any(graph.query_texts)
    if graph.field_names and texts:
        found = _with_text(s, repeated_share(graph), graph.has_times)
    else:
        found = _without_text(s, texts)
    if graph.impressions is not None:
        found.append(Candidate("given", 0.0))
    return sorted(found, key=lambda candidate: (candidate.seconds, len(candidate.name)))


def _with_text(s: Sizes, repeated: float, times: bool) -> list[Candidate]:
    """Candidates for a log with text. Parts are learned twice: to weigh them, and to measure the sum. What an earlier
    candidate has learned is reused."""
    lexical, latent = bm25_seconds(s), latent_seconds(s, LATENT_DIM)
    sparse = 4 * latent_seconds(s, SPARSE_DIM)
    parts = lexical / 4 + latent
    out = [
        Candidate("bm25", lexical),
        Candidate("bm25+pls", 2 * latent + lexical),
        Candidate("robust:bm25", robust_seconds(s)),
        Candidate("mart:bm25+pls", mart_seconds(s, 6, parts)),
        Candidate("robust:bm25+pls", 2 * robust_seconds(s), ("robust:bm25", "bm25+pls")),
        Candidate("bm25+pls+rmls", 2 * sparse, ("bm25+pls", "bm25")),
        Candidate("mart:bm25+pls+rmls", mart_seconds(s, 6, parts + sparse), ("mart:bm25+pls", "bm25+pls")),
    ]
    if repeated >= SOME_REPEAT:
        spec, seconds = "bm25+pls+cos-click", 2 * latent + lexical + 0.1
        out.append(Candidate(spec, seconds))
        if times:
            # pls without half-lives was learned already; only the counts of clicks are computed again.
            out += [Candidate(spec, seconds, settings=(("cos-click.half_life", days),)) for days in HALF_LIVES]
    return out


def _without_text(s: Sizes, texts: bool) -> list[Candidate]:
    """Candidates for a log without text, where only clicks are known about documents."""
    latent = latent_seconds(s, LATENT_DIM) + 1e-5 * s.n_queries
    out = [Candidate("cos-click", 0.1), Candidate("walk", 1.0), Candidate("pls", latent)]
    return out if not texts else [*out, Candidate("pls+cos-click", 2 * latent)]


def usual(graph: ClickGraph) -> str:
    """The model for a log too small to try anything on."""
    if graph.field_names and any(graph.query_texts):
        return "bm25"
    return "online:given" if graph.impressions is not None else "cos-click"


def split_words(graph: ClickGraph) -> str:
    """How part of the log is held back, in words."""
    return {"time": "the last tenth by time", "query": "a tenth of the queries", "click": "a tenth of the clicks"}[
        choose(graph)
    ]
