"""The dashboard of benchmarks/quality.py: its page, its regrets, and the row of sentence vectors."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from clickbridge import ClickGraph
from clickbridge.types import ResultList


@pytest.fixture(scope="module")
def quality() -> ModuleType:
    path = Path(__file__).resolve().parents[1] / "benchmarks" / "quality.py"
    spec = importlib.util.spec_from_file_location("quality_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_table_goes_between_the_marks_of_a_page(quality: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "quality.md"
    page.write_text(f"# Quality\n\n{quality.BEGIN}\n\nold\n\n{quality.END}\n\n## After\n")
    for table in (["| a |", "|---|"], ["| b |", "|---|", "| 1 |"]):
        quality.write_page(page, table)
        body = "\n".join(table)
        assert page.read_text() == f"# Quality\n\n{quality.BEGIN}\n\n{body}\n\n{quality.END}\n\n## After\n"
    quality.write_page(tmp_path / "new.md", ["| c |"])
    assert (tmp_path / "new.md").read_text() == "| c |\n"


def test_regret_is_what_the_best_in_hindsight_has_more(quality: ModuleType) -> None:
    found = {"bm25": {"1": 0.5, "2": 0.7}, "mart": {"1": 0.9, "2": 0.9}, "auto": {"1": 0.8, "2": 0.9}}
    (line,) = quality.regrets("demo", found, {"auto": "bm25+pls"})
    assert line == "| demo | **auto took bm25+pls** | best in hindsight mart | regret 0.0500 | |"


def test_every_model_has_a_row_and_what_cannot_be_fitted_says_why(quality: ModuleType, small_graph: ClickGraph) -> None:
    def measured(model: object) -> dict[str, dict[str, float]]:
        return {"small": {"1": float(len(model.rank_many(["ny pizza"], 2)[0])), "2": 0.0}}  # type: ignore[attr-defined]

    lines = list(quality.rows(quality.Task(small_graph, measured), ["bm25", "given", "auto"], ["1s", "2s"]))
    assert [line.split("|")[2].strip() for line in lines] == [
        "bm25", "given", "auto, 1s", "auto, 2s", "**auto, 1s took bm25**", "**auto, 2s took bm25**",
    ]  # fmt: skip
    assert "cannot search" in lines[1]
    assert "regret 0.0000" in lines[-1]


def test_sentence_vectors_rank_by_their_cosine(quality: ModuleType, small_graph: ClickGraph) -> None:
    def encode(texts: list[str]) -> np.ndarray:
        return np.array([[text.lower().count("pizza"), text.lower().count("rome"), 0.01] for text in texts])

    model = quality.Sentences(small_graph, encode)
    best = model.rank_many(["pizza"], 1)[0].doc_ids
    assert (
        "pizza"
        in " ".join(
            small_graph.field(name)[small_graph.doc_ids.index(best[0])] for name in small_graph.field_names
        ).lower()
    )
    shown = small_graph.doc_ids[:3]
    (ranking,) = model.rerank_lists([ResultList("1", "pizza", shown)])
    assert sorted(ranking.doc_ids) == sorted(shown)
