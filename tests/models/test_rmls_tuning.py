"""Thresholds and passes of RMLS by held-back clicks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from clickbridge import RMLS, load
from clickbridge.errors import SettingError
from clickbridge.models.rmls_tuning import PAPERS, TooFewLists, tune
from oracles.graphs import noisy_field_graph
from oracles.latent import random_clicks

PRINTED: Any = RMLS(as_printed=True).settings


def judge_of(values: dict[float, list[float]], asked: list[float | None]) -> Any:
    def judged(threshold: float | None) -> Iterator[float]:
        asked.append(threshold)
        yield from next((v for t, v in values.items() if threshold is not None and abs(t / threshold - 1) < 1e-9), [])

    return judged


def test_the_best_pass_of_the_best_threshold() -> None:
    asked: list[float | None] = []
    values = {0.001: [0.2, 0.3, 0.1], 1e-4: [0.5, 0.7, 0.6], 1e-5: [0.6, 0.2], 1e-6: [0.7, 0.4], 1e-7: [0.9]}
    found = tune(judge_of(values, asked), PRINTED)
    assert found.threshold == pytest.approx(1e-4)
    assert found.passes == 2
    assert [*asked[: len(PAPERS)]] == [*PAPERS]
    assert len(asked) == len(PAPERS) + 3, "two in a row that bring nothing are enough"
    assert "threshold 0.0001" in found.note
    assert "stops after 2 of 10" in found.note


def test_a_threshold_ends_after_three_passes_that_bring_nothing() -> None:
    seen = []

    def judged(threshold: float | None) -> Iterator[float]:
        for value in (0.5, 0.6, 0.4, 0.4, 0.4, 0.9):
            seen.append(value)
            yield value

    found = tune(judged, RMLS(early_stop=True, iterations=6).settings)
    assert (found.threshold, found.passes, len(seen)) == (None, 2, 5)


def test_without_an_early_stop_the_last_pass_counts() -> None:
    values = {0.1: [0.9, 0.3], 0.005: [0.1, 0.4]}
    s = RMLS(shrink="absolute", beta="auto", gamma="auto", iterations=2).settings
    found = tune(judge_of(values, []), s)
    assert (found.threshold, found.passes) == (0.005, 2)


@pytest.mark.parametrize("reason", ["few", "empty"])
def test_where_nothing_can_be_judged_it_is_said(reason: str) -> None:
    def judged(threshold: float | None) -> Iterator[float]:
        if reason == "few":
            raise TooFewLists("3 lists can be held back, 50 are needed")
        yield from ()

    found = tune(judged, PRINTED)
    assert (found.threshold, found.passes) == (0.001, 10)
    assert "are needed to choose thresholds" in found.note or "no threshold leaves anything" in found.note


def test_a_model_takes_what_was_chosen(tmp_path: Any) -> None:
    """Thresholds are on the scale of the log: those of the papers leave nothing here, smaller ones do; saved, and
    updated, it keeps them."""
    model: Any = RMLS(dim=20, as_printed=True, fields="good,noise", views="word").fit(noisy_field_graph(600))
    choices = model.fitted.choices
    assert choices.beta == choices.gamma
    assert 0 < choices.beta < 0.1
    assert len(model.trace_) <= choices.iterations
    assert model.map_density_ > 0
    by_hand: Any = RMLS(
        dim=20, as_printed=True, fields="good,noise", views="word", beta=choices.beta, gamma=choices.gamma,
        iterations=choices.iterations, early_stop=False,
    ).fit(noisy_field_graph(600))  # fmt: skip
    query = model.fitted.queries.keys[0]
    assert by_hand.score(query, model.doc_ids_).tolist() == model.score(query, model.doc_ids_).tolist()
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.fitted.choices == choices
    assert again.settings.beta == "auto"


def test_too_small_a_log_says_so() -> None:
    model = RMLS(dim=4, as_printed=True).fit(random_clicks(7))
    assert any("needed to choose thresholds" in note for note in model.notes_)


@pytest.mark.parametrize("value", ["much", "-1", "nan", "1e10"])
def test_a_threshold_is_a_number_or_auto(value: str) -> None:
    with pytest.raises(SettingError, match="beta must be a number, at least 0, or auto; got"):
        RMLS(beta=value).fit(random_clicks(7))
