"""A GRAPH with enough words, people and slips to learn from, and models on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clickbridge import ClickGraph, build_model
from clickbridge.types import Document, Impression

PLACES = ["new york", "rome", "paris", "berlin", "tokyo", "lima"]
FOODS = ["pizza", "bagel", "pasta", "sushi", "bread", "soup", "salad"]


def shop() -> ClickGraph:
    docs = [
        Document(f"{p.replace(' ', '-')}-{f}", {"title": f"{p.title()} {f}", "body": f"{f} as people eat it in {p}"})
        for p in PLACES
        for f in FOODS
    ]
    rng = np.random.default_rng(7)
    pages = []
    for number in range(600):
        place, food = PLACES[rng.integers(len(PLACES))], FOODS[rng.integers(len(FOODS))]
        wanted = f"{place.replace(' ', '-')}-{food}"
        words = [place if rng.random() < 0.5 or place != "new york" else "ny", food]
        if food == "sushi" and rng.random() < 0.5:
            words[1] = "sushii"
        results = [wanted, *(docs[i].doc_id for i in rng.choice(len(docs), 6, replace=False).tolist())]
        results = list(dict.fromkeys(np.array(results)[rng.permutation(len(results))].tolist()))
        pages.append(Impression(" ".join(words), results, [wanted], user=f"u{number % 50}", time=float(number)))
    return ClickGraph.build(pages, docs)


@pytest.fixture(scope="session")
def graph() -> ClickGraph:
    return shop()


@pytest.fixture(scope="session")
def models(graph: ClickGraph) -> dict[str, Any]:
    """A sparse one, a dense one, a sum, one with signed sparse maps."""
    specs = ("bm25", "pls", "bm25+pls", "lmir", "rmls")
    return {spec: build_model(spec, {"dim": 8} if "pls" in spec or spec == "rmls" else {}).fit(graph) for spec in specs}


@pytest.fixture(scope="session")
def pg_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pg")
