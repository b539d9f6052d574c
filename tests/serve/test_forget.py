"""A person is taken out of a store, by the verb, also while a service uses it; and the proof is true."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from clickbridge import ClickGraph, build_model, load
from clickbridge.cli.app import app
from clickbridge.errors import ClickbridgeError, InputError
from clickbridge.serve.events import Event, page_event
from clickbridge.serve.folding import fold
from clickbridge.serve.forget import forget_user
from clickbridge.serve.store import Shown, Store, tables
from clickbridge.types import Document, Impression
from running import Running

PERSON, ALONE, SEEN = "user-4711-secret", "my private one person query", "a-document-that-only-they-saw"


def of(store: Store, event_id: str, user: str, query: str, page: str | None = None) -> Event:
    record = {"query": query, "results": ["a", SEEN if user == PERSON else "b"], "clicks": ["a"], "user": user}
    return page_event(event_id, record, store.secret, page)


def filled(url: str, n: int = 400) -> None:
    """Pages of many people, one of a person among each ten: enough that the database splits and reuses its pages."""
    with closing(Store(url)) as store:
        for start in range(0, n, 50):
            store.append(
                [of(store, f"e{i}", f"u{i % 9}", f"word{i % 7} thing") for i in range(start, start + 50)]
                + [of(store, f"p{i}", PERSON, f"{ALONE} {i}", f"page{i}") for i in range(start, start + 50, 10)],
                [Shown(f"page{i}", f"{ALONE} {i}", ("a", SEEN)) for i in range(start, start + 50, 10)]
                + [Shown(f"other{start}", "word1 thing", ("a",))],
            )


def everything(url: str) -> str:
    """All live rows of all tables."""
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with closing(engine.connect()) as c:
        rows = [tuple(row) for table in tables.tables.values() for row in c.execute(sa.select(table))]
    engine.dispose()
    return " ".join(str(bytes(value) if isinstance(value, memoryview) else value) for row in rows for value in row)


def run(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["forget", *words])
    error = done.exception if isinstance(done.exception, ClickbridgeError) else None
    return done.exit_code, done.stdout, str(error or done.stderr)


def test_a_person_is_forgotten(store_url: str, tmp_path: Path) -> None:
    filled(store_url)
    assert ALONE in everything(store_url)
    code, out, err = run(store_url, "--user", PERSON)
    assert code == 0, err
    assert "forgotten: 40 events and 40 answers that they clicked" in err
    assert "checked: 0 events of this user are left" in err
    assert PERSON not in out + err
    with closing(Store(store_url)) as store:
        mine = store.secret.user(PERSON)
        assert store.events_of(mine) == 0
        assert store.last() == 440, "numbers stay: readers follow them"
        assert len([e for e in store.after(0) if e.query]) == 400, "what others did stays"
        assert store.append([of(store, "p10", "u1", "again")]) == [None], "an event that comes again is known"
    said = everything(store_url)
    for planted in (PERSON, ALONE, SEEN, str(mine), str(mine - (1 << 64))):
        assert planted not in said
    if store_url.startswith("sqlite"):
        files = b"".join(path.read_bytes() for path in tmp_path.glob("events.db*"))
        assert b"word1 thing" in files
        for planted in (ALONE, SEEN):
            assert planted.encode() not in files, "in no free page and no log of the database"
    code, out, err = run(store_url, "--user", PERSON, "--json")
    assert json.loads(out) == {"kind": "store", "events": 0, "answers": 0, "left": 0}


def test_while_a_service_uses_the_store(serve: Callable[..., Running], store_url: str) -> None:
    live = serve("bm25", store=store_url)
    answer = live.get("/search", q=ALONE, k=3, user=PERSON).json()
    clicked = answer["results"][0]["doc_id"] if answer["results"] else "a"
    page = {"query": ALONE, "results": [clicked, SEEN], "clicks": [clicked], "user": PERSON}
    live.feedback({"event_id": "1", **page}, {"event_id": "2", **page, "query": "word thing", "user": "another"})
    with closing(Store(store_url, new=False)) as store:
        done = forget_user(store, PERSON)
    assert (done.events, done.left) == (1, 0)
    assert live.feedback({"event_id": "1", **page}) == {"accepted": 0, "duplicates": 1}
    assert live.feedback({"event_id": "3", **page, "user": "another"})["accepted"] == 1


@pytest.mark.parametrize("spec", ["bm25+pls", "online:bm25+pls"])
def test_what_was_learned_names_no_person(serve: Callable[..., Running], tmp_path: Path, spec: str) -> None:
    """Neither a query of one person, however often it was asked, nor one with an address shows in pairs of words."""
    titles = [Document("a", {"title": "pizza of rome"}), Document("b", {"title": "bagels of york"})]
    asked = [("pizzza", f"u{n}") for n in range(9)] + [("pie jo.doe@example.org", f"u{n}") for n in range(9)]
    asked += [(f"snack {ALONE}", PERSON)] * 30
    pages = [Impression(text, ["a", "b"], ["a"], user=user) for text, user in asked]
    settings = {"dim": 2} | ({"blend": "1,8,4"} if spec.startswith("online") else {})
    build_model(spec, settings).fit(ClickGraph.build(pages, titles)).save(tmp_path / "m")
    said = serve(tmp_path / "m").get("/learned").text
    assert "pizzza" in said
    for planted in (PERSON, "jo.doe", "doe", "snack", "private"):
        assert planted not in said


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    code, _, err = run(f"sqlite:///{tmp_path}/typo.db", "--user", PERSON)
    assert (code, err) == (1, f"no store at {tmp_path}/typo.db: check the URL")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "empty.db").touch()
    with pytest.raises(InputError, match="holds no events of a service"):
        Store(f"sqlite:///{tmp_path}/empty.db", new=False)
    code, _, err = run(f"sqlite:///{tmp_path}/empty.db", "--user", PERSON, "--refit")
    assert err == "refit and graph are for a MODEL; this is a STORE"


def test_a_new_store_is_for_its_owner_alone(tmp_path: Path) -> None:
    """It holds the key of the hashes, which may be that of a GRAPH."""
    filled(f"sqlite:///{tmp_path}/events.db", 50)
    with closing(Store(f"sqlite:///{tmp_path}/events.db")) as store:
        store.append([of(store, "one more", "u", "q")])
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("events.db*")}
    assert set(modes.values()) == {0o600}, modes


def test_a_model_that_learned_from_the_store_is_fitted_again(tmp_path: Path) -> None:
    """The store forgets, the MODEL is fitted from the GRAPH that forgot, and learns what others did once more."""
    url, model, graph = f"sqlite:///{tmp_path}/events.db", tmp_path / "model", tmp_path / "graph"
    titles = [Document(name, {"title": "word thing"}) for name in ("a", "b", SEEN)]
    pages = [Impression(f"word{i % 7} thing", ["a", "b"], ["ab"[i % 2]], user=f"u{i % 9}") for i in range(60)]
    built = ClickGraph.build(pages, titles, out=graph)
    build_model("online:bm25", {"per_user": 0.5, "blend": "1,8,4"}).fit(built).save(model)
    with closing(Store(url)) as store:
        store.share_secret(load(model).fitted.secret)
    filled(url, 50)
    with closing(Store(url)) as store:
        mine = store.secret.user(PERSON)
        assert fold(model, store).events == 55
    assert mine in {user for user, *_ in load(model).fitted.state.users}
    assert run(url, "--user", PERSON)[0] == 0
    assert run(str(model), "--user", PERSON, "--refit", "--graph", str(graph))[0] == 0
    with closing(Store(url)) as store:
        assert fold(model, store).events == 55
    people = {user for user, *_ in load(model).fitted.state.users}
    assert people
    assert mine not in people
