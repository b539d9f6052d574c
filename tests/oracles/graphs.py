"""Small graphs made in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from clickbridge import ClickGraph
from clickbridge.graph.parts import Pairs
from clickbridge.types import Document, Impression, PairCount

WORDS = ("apple", "river", "stone", "cloud", "horse", "lamp", "paper", "green", "tower", "salt", "wind", "mirror")


def graph_of(docs: Mapping[str, Mapping[str, str]], query: str = "nothing in particular") -> ClickGraph:
    """A GRAPH of these documents with one click on the first of them, made without reading a log."""
    names = dict.fromkeys(name for fields in docs.values() for name in fields)
    columns = {name: [fields.get(name) for fields in docs.values()] for name in names}
    zero, one = np.zeros(1, dtype=np.int32), np.ones(1, dtype=np.int32)
    return ClickGraph([query], pa.table({"doc_id": list(docs), **columns}), Pairs(zero, zero, one, zero))


def random_docs(seed: int, n_docs: int, fields: Sequence[str] = ("title", "body")) -> dict[str, dict[str, str]]:
    """Documents of a dozen words, some fields empty, the last document wholly."""
    rng = np.random.default_rng(seed)
    lengths = {name: 3 if name == "title" else 12 for name in fields}
    docs = {
        f"d{i}": {name: " ".join(rng.choice(WORDS, rng.integers(lengths[name] + 1))) for name in fields}
        for i in range(n_docs - 1)
    }
    return docs | {f"d{n_docs - 1}": dict.fromkeys(fields, "")}


def noisy_field_graph(n_queries: int, seed: int = 0, pages: bool = True) -> ClickGraph:
    """What a query asks for stands in `good`; `noise` holds words of other queries, more often."""
    rng = np.random.default_rng(seed)
    words = [f"w{i}x" for i in range(n_queries)]
    documents = [
        Document(f"d{i}", {"noise": " ".join([words[j] for j in rng.permutation(n_queries)[:6]] * 2), "good": words[i]})
        for i in range(n_queries)
    ]
    log: list[Impression | PairCount] = []
    for i, word in enumerate(words):
        if pages:
            shown = [
                f"d{j}" for j in rng.permutation([i, *((i + 1 + rng.permutation(n_queries - 1)[:30]) % n_queries)])
            ]
            log.append(Impression(word, shown, [f"d{i}"], time=float(i)))
        else:
            log.append(PairCount(word, f"d{i}", 1))
    return ClickGraph.build(log, documents)
