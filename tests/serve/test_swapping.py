"""Models that change while they answer: swaps, refusals, updates from the store, promotion, rollback, retention."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import clickbridge
from clickbridge import ClickGraph, build_model
from clickbridge.cli.app import app
from clickbridge.models.model_folder import save
from clickbridge.serve import promotion
from clickbridge.serve.folding import fold
from clickbridge.serve.promotion import Verdict, previous_of, retrain
from clickbridge.serve.store import Store
from clickbridge.types import Impression
from running import Running, eventually

IDS = ["bagel", "rome", "ny", "pizza", "blank"]


@pytest.fixture
def a_store(tmp_path: Path) -> Iterator[Store]:
    """Where the service of a test keeps its events, too; closed at the end, as Python 3.13 demands of a database."""
    with closing(Store(f"sqlite:///{tmp_path}/events.db")) as store:
        yield store


@pytest.fixture
def copy(models: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """A MODEL that a test may change."""

    def copied(spec: str) -> Path:
        return Path(shutil.copytree(models(spec), tmp_path / "model"))

    return copied


def page(number: int, query: str, results: list[str], click: str, user: str | None = None) -> dict[str, Any]:
    return {"event_id": f"e{number}", "query": query, "results": results, "clicks": [click], "user": user}


# --- hot swap --------------------------------------------------------------------------------------


def test_a_changed_folder_is_swapped_in_and_no_request_is_dropped(
    serve: Callable[..., Running], copy: Callable[[str], Path], small_graph: ClickGraph
) -> None:
    path = copy("bm25")
    live = serve(path)
    before = live.get("/models").json()["models"][0]["version"]
    codes: list[int] = []
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            codes.append(live.post("/rank", {"query": "pizza", "documents": IDS}).status_code)

    thread = threading.Thread(target=ask)
    thread.start()
    build_model("bm25", {"k1": 0.4}).fit(small_graph).save(path)
    eventually(lambda: live.get("/models").json()["models"][0]["version"] != before)
    stop.set()
    thread.join()
    assert set(codes) == {200}
    model = clickbridge.load(path)
    scores = [r["score"] for r in live.post("/rank", {"query": "pizza", "documents": ["pizza"]}).json()["results"]]
    assert scores == list(model.score("pizza", ["pizza"]))


def test_a_model_that_does_not_verify_is_refused_and_the_old_one_stays(
    serve: Callable[..., Running], copy: Callable[[str], Path]
) -> None:
    path = copy("bm25")
    live = serve(path)
    before = live.post("/rank", {"query": "pizza", "documents": IDS}).json()
    victim = next(path.glob("*.npy"))
    victim.write_bytes(victim.read_bytes()[:-1] + b"\x00")
    answer = live.post("/models/model/reload")
    assert answer.status_code == 409
    assert "the old model stays" in answer.json()["error"]["message"]
    after = live.post("/rank", {"query": "pizza", "documents": IDS}).json()
    assert (after["version"], after["results"]) == (before["version"], before["results"])
    assert live.post("/models/nope/reload").status_code == 404


def test_the_same_content_has_the_same_version(copy: Callable[[str], Path], tmp_path: Path) -> None:
    from clickbridge.serve.served import version_of

    path = copy("bm25+pls")
    before = version_of(path)
    clickbridge.load(path).save(path)
    assert version_of(path) == before


# --- events over HTTP and through Python ------------------------------------------------------------


def events(n: int) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(0)
    for number in range(n):
        order = [IDS[i] for i in rng.permutation(4)]
        query = str(rng.choice(["ny pizza", "big apple", "a new question"]))
        yield page(number, query, order, str(rng.choice(order)), user=f"u{number % 7}")


def state_of(model: Any) -> Any:
    state = model.fitted.state
    return (
        state.weights,
        state.evidence,
        dict(zip(state.keys.tolist(), state.values.tolist(), strict=True)),
        state.events,
    )


def same(one: Any, two: Any) -> bool:
    return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b for a, b in zip(one, two, strict=True))


def test_the_state_equals_that_of_the_python_api(serve: Callable[..., Running], models: Callable[[str], Path]) -> None:
    live = serve("online:bm25")
    model = clickbridge.load(models("online:bm25"))
    for event in events(200):
        live.feedback(event)
        model.learn(Impression(event["query"], event["results"], event["clicks"], user=event["user"]))
    assert same(state_of(live.service.live.get(None).model), state_of(model))


def test_two_services_on_one_store_come_to_the_same_state(
    serve: Callable[..., Running], store_url: str, models: Callable[[str], Path]
) -> None:
    one, two = serve("online:bm25", store=store_url), serve("online:bm25", store=store_url)
    for number, event in enumerate(events(60)):
        (one if number % 2 else two).feedback(event)
        if number % 10 == 9:
            (one if number % 4 else two).post("/feedback/undo", {"event_id": f"e{number - 3}"})
    eventually(lambda: all(s.get("/health").json()["models"][0]["events"] == 66 for s in (one, two)))
    states = [state_of(s.service.live.get(None).model) for s in (one, two)]
    assert same(*states)
    assert one.rank("ny pizza", IDS) == two.rank("ny pizza", IDS)


def test_a_restart_learns_again_what_was_stored(serve: Callable[..., Running], tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/kept.db"
    first = serve("online:bm25", store=store)
    first.feedback(*events(50))
    again = serve("online:bm25", store=store)
    assert same(state_of(first.service.live.get(None).model), state_of(again.service.live.get(None).model))


# --- update --from ----------------------------------------------------------------------------------


def test_update_from_a_store_equals_an_update_from_a_log(
    serve: Callable[..., Running], copy: Callable[[str], Path], models: Callable[[str], Path], tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path}/kept.db"
    live = serve("bm25+cos-click", store=store)
    given = list(events(40))
    live.feedback(*given)
    live.post("/feedback/undo", {"event_id": "e3"})
    path = copy("bm25+cos-click")
    done = CliRunner().invoke(app, ["update", str(path), "--from", store, "--json"])
    assert done.exit_code == 0, done.output
    assert '"pages_taken_in": 39' in done.output
    log = [Impression(e["query"], e["results"], e["clicks"]) for e in given if e["event_id"] != "e3"]
    expected = clickbridge.load(models("bm25+cos-click")).update(log)
    updated = clickbridge.load(path)
    for query in ("ny pizza", "big apple", "a new question"):
        np.testing.assert_array_equal(updated.score(query, IDS), expected.score(query, IDS))
    again = CliRunner().invoke(app, ["update", str(path), "--from", store, "--json"])
    assert '"pages_taken_in": 0' in again.output, "nothing is taken in twice"


def test_an_online_model_folds_in_what_it_has_learned(
    serve: Callable[..., Running], copy: Callable[[str], Path], tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path}/kept.db"
    path = copy("online:bm25")
    live = serve(path, store=store)
    live.feedback(*events(30))
    expected = state_of(live.service.live.get(None).model)
    version = live.get("/models").json()["models"][0]["version"]
    with closing(Store(store)) as opened:
        assert fold(path, opened).pages == 30
    assert same(state_of(clickbridge.load(path)), expected)
    eventually(lambda: live.get("/models").json()["models"][0]["version"] != version)
    assert same(state_of(live.service.live.get(None).model), expected)
    live.feedback(page(99, "ny pizza", IDS, "rome"))
    assert live.get("/health").json()["models"][0]["events"] == 31


def test_update_refuses_a_store_and_files_at_once(copy: Callable[[str], Path], tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["update", str(copy("bm25")), "log.jsonl", "--from", f"sqlite:///{tmp_path}/e.db"])
    assert done.exit_code != 0
    assert "either a store (from) or files" in str(done.exception)


# --- promotion and rollback -------------------------------------------------------------------------


def fill(store: Store, n: int, click: Callable[[int], str]) -> None:
    from clickbridge.serve.events import page_event

    order = ["ny", "rome", "bagel", "pizza"]
    records = [{"query": "ny pizza", "results": order, "clicks": [click(i)]} for i in range(n)]
    store.append([page_event(f"p{store.last()}-{i}", record, store.secret) for i, record in enumerate(records)])


def test_a_better_model_is_promoted_and_rolled_back_by_one_call(
    serve: Callable[..., Running], copy: Callable[[str], Path], tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/kept.db"
    path = copy("cos-click")
    live = serve(path, store=url)
    old = live.get("/models").json()["models"][0]["version"]
    assert live.rank("ny pizza", IDS)[0] == "pizza"
    assert live.post("/models/model/rollback").status_code == 409, "there is nothing to go back to"
    fill(live.service.store, 200, lambda i: "rome")
    verdict = live.service.upkeep.retrain("model")
    assert verdict["outcome"] == "promoted"
    assert verdict["candidate"] > verdict["live"]
    eventually(lambda: live.get("/models").json()["models"][0]["version"] != old)
    new = live.get("/models").json()["models"][0]["version"]
    assert live.rank("ny pizza", IDS)[0] == "rome"
    assert live.post("/models/model/rollback").json()["version"] == old
    answer = live.post("/rank", {"query": "ny pizza", "documents": IDS}).json()
    assert (answer["version"], answer["results"][0]["doc_id"]) == (old, "pizza"), "at the next request"
    assert live.service.upkeep.retrain("model")["outcome"] == "rolled back"
    assert live.post("/models/model/rollback").json()["version"] == new, "and back again"


def test_a_worse_model_is_not_promoted(copy: Callable[[str], Path], a_store: Store) -> None:
    """Most of the new clicks teach what the latest ones do not want."""
    path, store = copy("cos-click"), a_store
    before = clickbridge.load(path).score("ny pizza", IDS)
    fill(store, 400, lambda i: "rome" if i < 320 else "pizza")
    verdict = retrain(path, store)
    assert verdict.outcome == "worse"
    assert verdict.live is not None
    assert verdict.candidate is not None
    assert verdict.candidate < verdict.live
    np.testing.assert_array_equal(clickbridge.load(path).score("ny pizza", IDS), before)
    assert not previous_of(path).exists()


def test_few_pages_judge_nothing(copy: Callable[[str], Path], a_store: Store) -> None:
    path, store = copy("cos-click"), a_store
    assert retrain(path, store) == Verdict("nothing new")
    fill(store, 5 * promotion.FEWEST - 10, lambda i: "rome")
    assert retrain(path, store).outcome == "too few"


def test_a_model_that_learns_again_is_retrained(serve: Callable[..., Running]) -> None:
    """It has no step for one more click: the log that it keeps and the store's pages are learned together."""
    live = serve("rrf:bm25+pls")
    fill(live.service.store, 200, lambda i: "rome")
    verdict = live.service.upkeep.retrain("rrf-bm25-pls")
    assert verdict["outcome"] in ("promoted", "worse"), verdict
    assert verdict["pages"] >= promotion.FEWEST


def test_a_model_that_cannot_be_updated_stays(serve: Callable[..., Running]) -> None:
    """One of an earlier version, which kept no log."""
    live = serve("rrf:bm25+pls")
    path = Path(live.service.config.models["rrf-bm25-pls"])
    save(clickbridge.load(path).fitted._with(log=None), path)
    fill(live.service.store, 200, lambda i: "rome")
    assert "cannot be updated" in live.service.upkeep.retrain("rrf-bm25-pls")["error"]


# --- retention --------------------------------------------------------------------------------------


def test_old_events_go_once_an_online_model_has_them(
    serve: Callable[..., Running], copy: Callable[[str], Path], tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path}/kept.db"
    path = copy("online:bm25")
    live = serve(path, store=store, keep=0.2, click_window=0.1)
    live.feedback(*events(30))
    expected = state_of(live.service.live.get(None).model)
    time.sleep(0.3)
    live.service.upkeep.sweep()  # or the service has done it by itself meanwhile
    eventually(lambda: live.service.store.first() == 30)
    eventually(lambda: live.service.live.get(None).folded == 30)
    assert live.get("/health").json()["models"][0]["events"] == 30
    again = serve(path, store=store)
    assert same(state_of(again.service.live.get(None).model), expected)


def test_a_model_older_than_the_store_is_refused(
    serve: Callable[..., Running], copy: Callable[[str], Path], a_store: Store
) -> None:
    """Events between what the folder holds and what the store still has are lost: better no answer than a wrong one."""
    path, store = copy("online:bm25"), a_store
    fill(store, 10, lambda i: "rome")
    fold(path, store)
    fill(store, 10, lambda i: "rome")
    store.purge(time.time() + 1, 15)
    with pytest.raises(AssertionError, match="too old"):
        serve(path)
