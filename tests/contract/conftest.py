"""Two GRAPHs for the contract: a handful of pages to check by hand, and some hundred on which trees grow, weights of
a sum differ and a blend is chosen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from clickbridge import ClickGraph, build_model
from clickbridge.models.model import Model
from clickbridge.types import Document, Impression

TOPICS = [
    "salt",
    "river",
    "stone",
    "cloud",
    "apple",
    "bread",
    "violin",
    "engine",
    "harbour",
    "candle",
    "forest",
    "glass",
]
SLANG = {"river": "stream", "stone": "rock", "bread": "loaf", "harbour": "port", "forest": "wood", "engine": "motor"}
KINDS = ["old", "small", "bright", "heavy", "quiet", "round"]


def townhall_graph(n_pages: int = 640, seed: int = 5) -> ClickGraph:
    """Documents of a topic and a kind; people type the topic, or another word for it that no document has, and click
    what fits, more often what stands on top."""
    rng = np.random.default_rng(seed)
    docs = []
    for t, topic in enumerate(TOPICS):
        for k, kind in enumerate(KINDS):
            body = " ".join(rng.choice(TOPICS, 3)) + f" about {kind} things"
            docs.append(Document(f"{t:02d}{k}", {"title": f"{kind} {topic}", "body": body, "year": str(1990 + k)}))
    pages = []
    for n in range(n_pages):
        t, k = int(rng.integers(len(TOPICS))), int(rng.integers(len(KINDS)))
        topic = TOPICS[t]
        typed = SLANG[topic] if topic in SLANG and rng.random() < 0.5 else topic
        query = f"{KINDS[k]} {typed}" if rng.random() < 0.6 else typed
        shown = [f"{t:02d}{int(j)}" for j in rng.permutation(len(KINDS))[:4]]
        shown += [docs[int(j)].doc_id for j in rng.choice(len(docs), 5, replace=False)]
        shown = list(dict.fromkeys([*shown, f"{t:02d}{k}"]))
        rng.shuffle(shown)
        fits = [0.9 if d == f"{t:02d}{k}" else 0.3 if d[:2] == f"{t:02d}" else 0.02 for d in shown]
        clicks = [d for rank, (d, p) in enumerate(zip(shown, fits, strict=True)) if rng.random() < p / (1 + 0.1 * rank)]
        pages.append(Impression(query, shown, clicks, user=f"u{n % 37}", time=1.7e9 + 3600.0 * n))
    return ClickGraph.build(pages, docs)


@pytest.fixture(scope="session")
def large_graph() -> ClickGraph:
    return townhall_graph()


@pytest.fixture(scope="session")
def rival_graph() -> ClickGraph:
    """Other documents under ids that partly collide: what a second fit learns from."""
    docs = [Document(f"00{i}", {"title": title}) for i, title in enumerate(["salt mine", "stone river", "paper boat"])]
    return ClickGraph.build(
        [Impression("salt", ["000", "001"], ["001"]), Impression("boat", ["002", "000"], ["002"])], docs
    )


@pytest.fixture(scope="module")
def fitted(small_graph: ClickGraph) -> Callable[[str], Model]:
    """The model of a spec with default settings on the small GRAPH, fitted once."""
    return _once(small_graph)


@pytest.fixture(scope="session")
def tuned(large_graph: ClickGraph) -> Callable[[str], Model]:
    """The same on the large GRAPH. Do not fit or update it: it is shared."""
    return _once(large_graph)


@pytest.fixture(scope="session")
def saved(tuned: Callable[[str], Model], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of the large GRAPH's model."""
    home, made = tmp_path_factory.mktemp("models"), dict[str, Path]()

    def folder(spec: str) -> Path:
        if spec not in made:
            made[spec] = home / str(len(made))
            tuned(spec).save(made[spec])
        return made[spec]

    return folder


def _once(graph: ClickGraph) -> Callable[[str], Model]:
    made: dict[str, Model] = {}

    def fit(spec: str) -> Model:
        if spec not in made:
            made[spec] = build_model(spec).fit(graph)
        return made[spec]

    return fit
