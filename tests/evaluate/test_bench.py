"""Models of the reproduction: which rows share a fit, what is chosen once, and what printed sums add up."""

from __future__ import annotations

import pytest

from clickbridge import RMLS, ClickGraph
from clickbridge.evaluate.reproduction.bench import Data, key_of
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
