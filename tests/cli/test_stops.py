"""Ctrl-C and SIGTERM are heard wherever they come."""

from __future__ import annotations

import sys
import time
import weakref

import duckdb
import pytest

from clickbridge.cli.stops import stops_heard
from clickbridge.log.pair_sums import database_errors


class Thing:
    pass


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_stop_in_a_callback_comes_again(stop: type[BaseException]) -> None:
    """Python drops what is raised while an object is removed."""

    def removed(_: object) -> None:
        raise stop

    hook, things = sys.unraisablehook, [Thing()]
    kept = weakref.ref(things[0], removed)

    def work() -> None:
        things.clear()
        time.sleep(600)

    with pytest.raises(stop), stops_heard():
        work()
    assert kept() is None
    assert sys.unraisablehook is hook


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_other_errors_there_are_reported_as_before() -> None:
    def removed(_: object) -> None:
        raise ValueError("of a callback")

    seen: list[object] = []
    before, sys.unraisablehook = sys.unraisablehook, lambda lost: seen.append(lost.exc_value)
    try:
        thing = Thing()
        kept = weakref.ref(thing, removed)
        with stops_heard():
            del thing
        assert kept() is None
        assert [type(error) for error in seen] == [ValueError]
    finally:
        sys.unraisablehook = before


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Query interrupted"),
        duckdb.InterruptException("INTERRUPT Error"),
        duckdb.InvalidInputException(
            "offering a filter to the Python object 'rows' failed: KeyboardInterrupt: <EMPTY>"
        ),
    ],
)
def test_an_interrupted_query_is_an_interrupt(error: Exception) -> None:
    with pytest.raises(KeyboardInterrupt), database_errors():
        raise error


def test_other_errors_of_a_query_are_not() -> None:
    with pytest.raises(OSError, match="disk is full"), database_errors():
        raise duckdb.IOException("disk is full")
    with pytest.raises(RuntimeError, match="other"), database_errors():
        raise RuntimeError("other")
