"""The claims at the head of docs/reproduction.md are those that `reproduce` wrote, word for word."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_reproduction", DOCS / "make_reproduction.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_claims_of_the_runs(maker: ModuleType) -> None:
    text = maker.PAGE.read_text(encoding="utf8")
    assert maker.page(text) == text, "run docs/make_reproduction.py"


def test_claims_are_of_the_papers(maker: ModuleType) -> None:
    found = list(maker.rows())
    assert {row.paper for row in found} <= set(maker.PAPERS)
    assert {row.printed for row in found} <= {*maker.WORDS, "not tested"}


def test_every_run_counts_and_one_row_stands_for_a_claim_on_a_kind_of_data(maker: ModuleType) -> None:
    folders = {path.parent.name for path in DOCS.glob("reproduction/*/claims.csv")}
    assert folders <= {*maker.RUNS}
    found = [(row.claim, row.kind) for row in maker.rows()]
    assert len(found) == len({*found})
