"""The store: once, in one order, durable, on every kind of database."""

from __future__ import annotations

import gc
import threading
import time
from pathlib import Path

import pytest

from clickbridge.errors import ArtifactError, SettingError
from clickbridge.io.secret import Secret
from clickbridge.serve.events import Event, page_event, undo_event
from clickbridge.serve.store import Shown, Store, StoreError, credits, meta

KEY = Secret.new()


def event(event_id: str, **more: object) -> Event:
    record = {"query": "NY pizza", "results": ["a", "b", "c"], "clicks": ["b"], "user": "u1", "time": 5.0, **more}
    return page_event(event_id, record, KEY)


def test_events_come_back_as_they_went_in(store_url: str) -> None:
    store = Store(store_url)
    first, second = event("e1"), event("e2", results=None, user=None)
    stored = store.append([first, second])
    assert [e.seq for e in stored if e] == [1, 2]
    assert store.after(0) == stored
    assert store.after(1) == stored[1:]
    assert store.find("e1") == stored[0]
    assert store.find("nope") is None
    assert stored[0] is not None
    assert (stored[0].query, stored[0].user) == ("ny pizza", first.user)
    store.close()


def test_an_id_counts_once_and_numbers_have_no_gaps(store_url: str) -> None:
    store = Store(store_url)
    assert [e and e.seq for e in store.append([event("a"), event("a"), event("b")])] == [1, None, 2]
    assert [e and e.seq for e in store.append([event("b"), event("c", query="other")])] == [None, 3]
    undone = store.append([undo_event("a"), undo_event("a"), undo_event("never")])
    assert [e and e.seq for e in undone] == [4, None, None]
    assert store.last() == 4
    assert [e.event_id for e in store.pages_after(0)] == ["b", "c"]
    store.close()


def test_writers_at_once_get_one_order(store_url: str) -> None:
    """Whoever reads up to a number has everything up to it, while several write."""
    stores = [Store(store_url) for _ in range(3)]
    seen: list[int] = []

    def write(store: Store, name: int) -> None:
        for n in range(20):
            store.append([event(f"{name}-{n}-{i}") for i in range(3)])

    threads = [threading.Thread(target=write, args=(store, i)) for i, store in enumerate(stores)]
    for thread in threads:
        thread.start()
    reader = Store(store_url)
    while len(seen) < 180:
        seen += [e.seq for e in reader.after(seen[-1] if seen else 0)]
    for thread in threads:
        thread.join()
    assert seen == list(range(1, 181))
    for store in (*stores, reader):
        store.close()


def test_retention_keeps_numbers(store_url: str) -> None:
    store = Store(store_url)
    store.append([event(f"e{n}") for n in range(5)])
    later = time.time() + 1
    assert store.purge(time.time() - 100, 5) == 0
    assert store.purge(later, 3) == 3
    assert store.first() == 4
    assert store.purge(later, 5) == 1, "the last one stays, for its number"
    assert [e.seq for e in store.append([event("e9")]) if e] == [6]
    store.close()


def test_answers_are_kept_for_a_while(store_url: str) -> None:
    store = Store(store_url)
    page = Shown("q1", "ny pizza", ("a", "b"), (0, 1), "x")
    store.append([], [page, page])
    assert store.shown(["q1", "q2"]) == {"q1": page}
    assert store.purge_shown(time.time() + 1) == 1
    assert store.shown(["q1"]) == {}
    store.close()


def test_the_first_click_decides_a_page_of_an_experiment(store_url: str) -> None:
    store = Store(store_url)
    pages = [Shown(f"q{n}", "ny pizza", ("a", "b", "c"), (0, 1, 0), "x") for n in range(4)]
    clicks = [("a", "c"), ("b",), ("a", "b"), ()]
    events = [page_event(f"e{n}", {"query": "q", "clicks": list(c)}, KEY, f"q{n}") for n, c in enumerate(clicks)]
    store.append(events, pages)
    store.append([page_event("late", {"query": "q", "clicks": ["b"]}, KEY, "q0")])
    assert store.outcomes("x") == {1: 1, -1: 1, 0: 1}
    assert store.outcomes("y") == {}
    store.close()


def test_people_by_query(store_url: str) -> None:
    store = Store(store_url)
    store.append([event(f"e{n}", user=f"u{n % 3}") for n in range(9)])
    store.append([event("alone", query="my own secret"), event("nobody", query="untold", user=None)])
    assert store.users_by_query(2) == {"ny pizza": 3}
    store.close()


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    for url in ("nonsense", "mysql://x/y"):
        with pytest.raises(SettingError):
            Store(url)
    with pytest.raises(StoreError, match="does not answer"):
        Store("sqlite:////nowhere/at/all/events.db")
    (tmp_path / "text.db").write_text("this is not a database, whatever its name says" * 100)
    with pytest.raises(StoreError):
        Store(f"sqlite:///{tmp_path}/text.db")


def test_a_store_of_another_format_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/e.db"
    store = Store(url)
    with store.engine.connect() as c:
        c.execute(meta.update().where(meta.c.name == "format").values(value="99"))
    store.close()
    with pytest.raises(ArtifactError, match="format 99"):
        Store(url)


def test_the_database_never_repeats_what_people_typed(tmp_path: Path) -> None:
    """The line of an error is shown and logged: it must not hold the values of a statement."""
    store = Store(f"sqlite:///{tmp_path}/e.db")
    with store.engine.connect() as c:
        c.exec_driver_sql(f"DROP TABLE {credits.name}")
        c.exec_driver_sql("DROP TABLE clickbridge_events")
    with pytest.raises(StoreError) as caught:
        store.append([event("e1", query="a very personal question")])
    assert "personal" not in str(caught.value)
    assert caught.value.__cause__ is None
    store.close()


def test_one_that_is_dropped_leaves_no_connection_behind(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/e.db")
    engine, pool = store.engine, store.engine.pool
    assert pool.checkedin() == 1  # type: ignore[attr-defined]
    del store
    gc.collect()
    assert engine.pool is not pool
    assert pool.checkedin() == 0  # type: ignore[attr-defined]
