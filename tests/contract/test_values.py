"""A fitted model is a value, on a GRAPH of some hundred pages: trees grow, weights are tuned, blends are chosen."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clickbridge
from clickbridge import ClickGraph, build_model
from clickbridge.errors import ClickbridgeError, MissingPart
from clickbridge.models.model import Model
from clickbridge.models.study import Study
from clickbridge.types import Document, Impression
from contract.specs import SPECS

QUERIES = ["old river", "stream", "bright rock", "round violin", "loaf", "never heard of", "quiet glass things"]
every_spec = pytest.mark.parametrize("spec", SPECS)
UPDATE = [
    Impression("Old Stream", ["010", "011", "new"], ["new"], user="u1", time=1.71e9),
    Impression("heavy motor", ["073", "070"], ["073"], user="u2", time=1.71e9),
]


def pickled(model: Any) -> Any:
    return pickle.loads(pickle.dumps(model))  # noqa: S301 - our own bytes


def plain(value: Any) -> Any:
    """A value in terms that can be compared."""
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if dataclasses.is_dataclass(value):
        return [plain(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init]
    if isinstance(value, dict):
        return [(key, plain(item)) for key, item in value.items()]
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def answers(model: Any, ids: list[str]) -> list[Any]:
    """All that a model says: scores, orders, searches, similarities and explanations."""
    out: list[Any] = [model.score(query, ids).tobytes() for query in QUERIES]
    out += [model.rerank(query, ids[:9]).doc_ids for query in QUERIES]
    fitted = getattr(model, "fitted", model)
    if "search" in fitted.abilities:
        out += [list(model.rank(query, 5)) for query in QUERIES]
    if "similar queries" in fitted.abilities:
        out += [model.similar_queries(query, 3) for query in QUERIES]
    if "similar documents" in fitted.abilities:
        out += [list(model.similar_documents(doc_id, 3)) for doc_id in ids[:3]]
    if "explain" in fitted.abilities:
        for query in QUERIES[:2]:
            try:
                out.append(model.explain(query, ids[6]))
            except (MissingPart, ClickbridgeError) as refusal:
                out.append(str(refusal))
    return out


@pytest.fixture(scope="module")
def ids(large_graph: ClickGraph) -> list[str]:
    return large_graph.doc_ids


def test_the_large_graph_reaches_the_tuned_code(tuned: Callable[[str], Model]) -> None:
    assert len({*tuned("bm25+pls").fitted.weights.tolist()}) == 2, "weights are learned, and differ"
    assert tuned("mart:bm25").fitted.grown, "trees grow"
    assert any("blend" in note and "too few" not in note for note in tuned("online:bm25").notes_)
    assert not any("are needed" in note for note in tuned("robust:bm25").notes_)


@every_spec
def test_saved_it_says_the_same_to_the_bit(
    spec: str, tuned: Callable[[str], Model], saved: Callable[[str], Path], ids: list[str]
) -> None:
    again = clickbridge.load(saved(spec))
    assert answers(again, ids) == answers(tuned(spec), ids)
    assert plain(again.fitted.choices) == plain(tuned(spec).fitted.choices)


@every_spec
@pytest.mark.parametrize("copied", [pickled, copy.deepcopy, copy.copy])
def test_a_copy_says_the_same(
    spec: str, copied: Callable[[Model], Model], tuned: Callable[[str], Model], ids: list[str]
) -> None:
    model = tuned(spec)
    assert answers(copied(model), ids) == answers(model, ids)
    assert answers(copied(model.fitted), ids) == answers(model, ids)  # type: ignore[arg-type]


@every_spec
def test_scikit_learn_clones_it(spec: str, tuned: Callable[[str], Model]) -> None:
    base = pytest.importorskip("sklearn.base")
    model = tuned(spec)
    clone = base.clone(model)
    assert type(clone) is type(model)
    assert not hasattr(clone, "doc_ids_")
    assert repr(clone) == repr(model)
    assert " object at 0x" not in repr(model)


@every_spec
def test_a_fitted_model_cannot_be_changed(spec: str, tuned: Callable[[str], Model]) -> None:
    fitted = tuned(spec).fitted
    for field in dataclasses.fields(fitted):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(fitted, field.name, None)


@every_spec
def test_choices_serve_to_learn_again(
    spec: str, large_graph: ClickGraph, tuned: Callable[[str], Model], ids: list[str]
) -> None:
    model = tuned(spec)
    again = build_model(spec).fit_on(Study(large_graph), model.fitted.choices)
    assert [again.score(q, ids).tobytes() for q in QUERIES] == [model.score(q, ids).tobytes() for q in QUERIES]


@every_spec
def test_a_refused_fit_changes_nothing(spec: str, saved: Callable[[str], Path], ids: list[str]) -> None:
    """A second GRAPH that the model refuses, or breaks on half-way."""
    model = clickbridge.load(saved(spec))
    before = answers(model, ids)
    no_clicks = ClickGraph.build([Impression("salt", ["a", "b"], [])], [Document("a", {}), Document("b", {})])
    try:
        model.fit(no_clicks)
    except ClickbridgeError:
        assert answers(model, ids) == before
    model = clickbridge.load(saved(spec))
    broken = copy.copy(no_clicks)
    broken.pairs = None  # type: ignore[assignment]
    with pytest.raises((AttributeError, TypeError, ClickbridgeError)):
        build_model(spec).fit(broken).rank("salt")
    with pytest.raises((AttributeError, TypeError, ClickbridgeError)):
        model.fit(broken).rank("salt")
    if spec != "given":
        assert answers(model, ids) == before


@every_spec
def test_a_second_fit_is_a_first_fit(spec: str, saved: Callable[[str], Path], rival_graph: ClickGraph) -> None:
    model, fresh = clickbridge.load(saved(spec)), build_model(spec)
    try:
        fresh.fit(rival_graph)
    except ClickbridgeError as refusal:
        with pytest.raises(type(refusal)):
            model.fit(rival_graph)
        return
    model.fit(rival_graph)
    for query in ("salt", "boat", "old river"):
        shown = ["000", "001", "002", "113"]
        assert model.score(query, shown).tobytes() == fresh.score(query, shown).tobytes()
    assert model.doc_ids_ == rival_graph.doc_ids


@every_spec
def test_an_update_is_a_new_value(spec: str, saved: Callable[[str], Path], ids: list[str]) -> None:
    model = clickbridge.load(saved(spec))
    old, before = model.fitted, answers(model, ids)
    documents = [Document("new", {"title": "old stream", "body": "river"})]
    model.update(UPDATE, documents, ["000"])
    assert model.fitted is not old
    assert answers(old, ids) == before, "who kept the old value still has it"
    assert "new" in model.doc_ids_
    assert "000" not in model.doc_ids_
    assert model.title("new") == "old stream"
    model.save(saved(spec).with_name(f"updated-{saved(spec).name}"))
    again = clickbridge.load(saved(spec).with_name(f"updated-{saved(spec).name}"))
    there = [doc_id for doc_id in ids if doc_id != "000"]
    assert answers(again, there) == answers(model, there)


@every_spec
def test_what_learns_again_equals_a_refit_on_the_joint_log(
    spec: str, saved: Callable[[str], Path], large_graph: ClickGraph, ids: list[str]
) -> None:
    """A model that has no step for one more click keeps its log and learns from both, under its first choices."""
    model = clickbridge.load(saved(spec))
    assert (model.fitted.log is None) == ("update" in model.fitted.abilities)
    if model.fitted.log is None:
        return
    assert "users" not in model.fitted.log.graph.parts
    documents = [Document("new", {"title": "old stream", "body": "river"})]
    before, whole = model.fitted, large_graph.merge(ClickGraph.build(UPDATE, documents, secret=large_graph.secret))
    twin = clickbridge.load(saved(spec)).refit(whole)
    model.update(UPDATE, documents)
    assert answers(model, ids) == answers(twin, ids)
    assert model.fitted.choices is before.choices
    model.update(UPDATE)
    twin.refit(whole.merge(ClickGraph.build(UPDATE, secret=large_graph.secret)))
    assert answers(model, ids) == answers(twin, ids), "and once more"


@every_spec
def test_threads_rank_while_updates_are_swapped_in(spec: str, saved: Callable[[str], Path], ids: list[str]) -> None:
    """Every answer is that of some published model, whole."""
    model = clickbridge.load(saved(spec))
    query, shown = "old river", ids[:12]
    states = [model.rerank(query, shown)]
    clicks = [[Impression(query, shown, [shown[n % 12]], time=1.72e9 + n)] for n in range(4)]
    twin = clickbridge.load(saved(spec))
    for page in clicks:
        states.append(twin.update(page).rerank(query, shown))
    seen: list[Any] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.append(model.rerank(query, shown))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for page in clicks:
        model.update(page)
    stop.set()
    for thread in threads:
        thread.join()
    assert seen
    assert all(ranking in states for ranking in seen)
    assert model.rerank(query, shown) == states[-1]


@every_spec
def test_one_query_at_a_time_equals_all_at_once(spec: str, tuned: Callable[[str], Model], ids: list[str]) -> None:
    model = tuned(spec)
    if "search" not in model.fitted.abilities:
        pytest.skip(f"{spec} cannot search")
    many = model.rank_many(QUERIES * 4, 5)  # enough that a model may take them as a block
    for query, ranking in zip(QUERIES * 4, many, strict=True):
        alone = model.rank(query, 5)
        np.testing.assert_allclose([h.score for h in alone], [h.score for h in ranking], rtol=1e-4, atol=1e-6)


@every_spec
def test_memory_does_not_grow_with_queries(spec: str, tuned: Callable[[str], Model], ids: list[str]) -> None:
    """What is remembered of queries and their words has a limit. Counted, not weighed: in entries of every container
    that the fitted model holds."""
    fitted = copy.deepcopy(tuned(spec).fitted)
    for n in range(3_000):
        fitted.score(f"word{n}x y{n}z", ids[:2])
    counts = container_sizes(fitted)
    for n in range(3_000, 9_000):
        fitted.score(f"word{n}x y{n}z", ids[:2])
    assert container_sizes(fitted) <= counts + 6_000


def container_sizes(root: Any) -> int:
    """Entries of all dicts, lists and sets that can be reached."""
    total, seen, waiting = 0, set(), [root]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, str | bytes | int | float | np.ndarray | type):
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            total += len(value)
            if len(value) < 200:
                waiting += value.values()
        elif isinstance(value, list | tuple | set | frozenset):
            total += len(value)
            if len(value) < 200:
                waiting += value
        if hasattr(value, "__dict__"):
            waiting.append(vars(value))
    return total
