"""Models of the reproduction: which rows share a fit, what is chosen once, and what printed sums add up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from clickbridge import BM25, RMLS, ClickGraph
from clickbridge.evaluate.reproduction import paper11m, paper13
from clickbridge.evaluate.reproduction.bench import OVER_LISTS, Data, built, key_of
from clickbridge.evaluate.reproduction.lab import Lab
from clickbridge.evaluate.reproduction.paper11m import OF_QUERIES
from clickbridge.evaluate.reproduction.printed_sums import PrintedSum
from clickbridge.evaluate.reproduction.relevance_rows import EIGHT_TO_TWO, Line, variant
from clickbridge.models.algebra import Sum
from clickbridge.models.candidates import without_gaps
from clickbridge.models.composite import Composite
from clickbridge.models.fitted import Array
from clickbridge.models.model import Model
from clickbridge.models.specs import parse_spec
from clickbridge.types import ResultList


@pytest.fixture
def data(small_graph: ClickGraph) -> Data:
    lists = [ResultList("1", small_graph.query_keys[0], [*small_graph.doc_ids], [1.0] * small_graph.n_docs)]
    return Data("small", "", small_graph, {"seen": lists, "unseen": lists}, settings={"rmls.dim": 3, "pls.dim": 3})


def test_rows_that_ask_for_the_same_model_share_it(data: Data) -> None:
    """13-dims at full size, and 13-response with clicks, are the rows of 13-2 once more."""
    printed = {"as_printed": True}
    fitted = data.fit("pls", printed)
    assert data.fit("pls", {**printed, "dim": 3}) is fitted
    assert data.fit("pls", {**printed, "response": "clicks"}) is fitted
    others: list[dict[str, object]] = [{"dim": 2}, {"response": "log-t"}, {"views": "word"}]
    assert all(data.fit("pls", {**printed, **own}) is not fitted for own in others)
    keys = [key_of("pls+bm25", own) for own in ({}, {"weights": "1,2"}, {"bm25.k1": 2}, {"dim": 2}, printed)]
    assert len({*keys, key_of("bm25+pls", {})}) == 6
    assert key_of("no such", {"a": 1}) != key_of("no such", {})


def test_what_is_chosen_is_chosen_once(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    """RMLS pass by pass goes on from the thresholds of the fit, which take longer to choose than to use."""
    printed = {"as_printed": True}
    fitted = data.fit("rmls", printed)
    assert fitted.seconds >= fitted.learning > 0
    monkeypatch.setattr(RMLS, "choose", lambda *_: pytest.fail("chosen again"))
    model, choices = data.chosen("rmls", {**printed, "dim": 3})
    assert not hasattr(model, "fitted_")
    assert fitted.model is not None
    assert fitted.model.fitted.choices == choices
    data._fits.clear()
    again = data.fit("rmls", printed)
    assert again.seconds - again.learning == pytest.approx(fitted.seconds - fitted.learning), "the time stays"


def test_printed_sums_with_bm25_add_up_standardised_scores(data: Data) -> None:
    """Whether a part is an S-function makes no difference there; for similar queries, which have no lists, it does."""
    specs = ("walk+bm25", "lsi-qd+bm25", "pls+bm25")
    assert [type(built(parse_spec(spec), EIGHT_TO_TWO)) for spec in specs] == [PrintedSum] * 3
    assert type(built(parse_spec("lsi-qd+bm25"), {})) is Sum
    assert type(built(parse_spec("lsi-qd+cos-word"), OF_QUERIES)) is Sum
    assert type(built(parse_spec("bm25"), OVER_LISTS)) is BM25
    models = [data.fit(spec, EIGHT_TO_TWO).model for spec in ("lsi-qd", "bm25", "lsi-qd+bm25")]
    docs, tested = data.graph.doc_ids, 0
    for query in data.graph.query_keys:
        *parts, both = (_scores(model, query, docs) for model in models if model is not None)
        if np.isfinite(parts[0]).any() and all(np.ptp(own) > 0 for own in map(without_gaps, parts)):
            by_hand = [(own - own.mean()) / own.std() for own in map(without_gaps, parts)]
            either = np.isfinite(parts).any(axis=0)
            assert (np.isfinite(both) == either).all()
            np.testing.assert_allclose(both[either], (0.8 * by_hand[0] + 0.2 * by_hand[1])[either], atol=1e-5)
            tested += int(not np.isfinite(parts[0]).all())
    assert tested, "a known query, and documents without clicks"


def _scores(model: Model, query: str, docs: Sequence[str]) -> Array:
    found = {hit.doc_id: hit.score for hit in model.rerank(query, docs)}
    return np.array([found[doc] for doc in docs])


@pytest.mark.parametrize("line", [*paper13.ONE_WEEK, *paper13.HALF_YEAR, *paper11m.WEB], ids=lambda line: line.spec)
def test_no_row_as_printed_learns_weights_of_fields(line: Line) -> None:
    printed = variant([line], line.label, ours=False)
    model = built(parse_spec(line.spec), printed.settings)
    for part in model.parts if isinstance(model, Composite) else (model,):
        assert getattr(part.settings, "fields", "equal") == "equal"


def test_trees_as_printed_have_parts_as_printed(tmp_path: Path) -> None:
    (line, *_) = paper13.mart_lines(Lab(tmp_path, 0.01, 20), "13-4")
    model = built(parse_spec(line.spec), line.settings)
    assert isinstance(model, Composite)
    found = {part.spec: getattr(part.settings, "fields", "equal") for part in model.parts}
    assert found["bltm"] == "equal"
    assert {*found.values()} == {"equal"}
