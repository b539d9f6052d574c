"""The contract of every model on a GRAPH small enough to check by hand. A registered model is in this suite by itself;
nothing here names one."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clickbridge
from clickbridge import ClickGraph, build_model
from clickbridge.errors import ArtifactError, InputError, MissingPart, NotFitted, NotSupported, SettingError
from clickbridge.models.fitted import ABILITIES
from clickbridge.models.model import Model
from clickbridge.models.registry import MODELS, model_class
from clickbridge.types import Document, Impression, PairCount, ResultList
from contract.specs import GIVES_ORDER, PER_LIST, S_FUNCTIONS, SPECS
from forgery import changed
from oracles.arrays import dense

QUERIES = ["ny pizza", "big apple", "pizza in rome", "eternal bagels unheardof"]
NOBODY_KNOWS = "zzzqqq xxyyzz"
ODD_QUERIES = ["", " ", "?!", "\x00", "🍕", "ΐİſ", "a" * 5000, "pizza " * 2000, "东京 pizza", "\x1fid-7"]
REPORTED = {"spec", "dim", "seconds", "peak_mb", "density", "weights", "views", "notes"}

every_spec = pytest.mark.parametrize("spec", SPECS)
every_name = pytest.mark.parametrize("name", list(MODELS))


def unscored_stay_behind(ids: list[str], scores: np.ndarray[Any, Any]) -> list[str]:
    """The order of the contract, spelt out."""
    scored = [i for i in range(len(ids)) if scores[i] > -np.inf]
    scored.sort(key=lambda i: -scores[i])
    return [ids[i] for i in scored] + [ids[i] for i in range(len(ids)) if scores[i] == -np.inf]


@every_spec
@pytest.mark.parametrize(
    "use", ["score", "rank", "rank_many", "rerank", "similar_queries", "similar_documents", "explain", "save"]
)
def test_before_fit_one_line_says_to_fit(spec: str, use: str, tmp_path: Path) -> None:
    model = build_model(spec)
    arguments = {
        "score": ("a", ["b"]), "rerank": ("a", ["b"]), "explain": ("a", "b"), "rank_many": (["a"],),
        "save": (tmp_path / "model",),
    }  # fmt: skip
    with pytest.raises(NotFitted, match=f"{spec.replace('+', '[+]')} has learned nothing yet: fit it first"):
        getattr(model, use)(*arguments.get(use, ("a",)))
    assert list(tmp_path.iterdir()) == []
    assert not hasattr(model, "doc_ids_")


@every_spec
def test_a_manifest_that_lacks_something_is_refused(spec: str, fitted: Callable[[str], Model], tmp_path: Path) -> None:
    fitted(spec).save(tmp_path / "model")
    file = tmp_path / "model" / "manifest.json"
    sound = file.read_bytes()
    needed = ["params", "report", "values", *(["parts"] if "+" in spec or ":" in spec else [])]
    for key in needed:
        changed(tmp_path / "model", lambda m, key=key: m.pop(key))
        with pytest.raises(ArtifactError, match=f"the manifest of {tmp_path}/model has no {key}: fit the model again"):
            clickbridge.load(tmp_path / "model")
        file.write_bytes(sound)


# --- settings ----------------------------------------------------------------------------------------


@every_name
def test_the_constructor_only_stores(name: str) -> None:
    kind = model_class(name)
    parameters = {p.name: p for p in inspect.signature(kind).parameters.values()}
    assert {*kind.declared()} <= {*parameters}
    assert all(p.default is not p.empty for p in parameters.values()), "every setting has a default"
    model = kind()
    stored = {name: value for name, value in vars(model).items() if name != "_given"}
    assert stored == {p.name: p.default for p in parameters.values()}
    with pytest.raises(TypeError, match="has no setting no_such_setting"):
        kind(no_such_setting=1)
    assert model.get_params() == {name: s.default for name, s in kind.declared().items()}


@every_name
def test_settings_are_checked_and_frozen(name: str) -> None:
    kind = model_class(name)
    for setting, declared in kind.declared().items():
        assert declared.check(declared.default) == declared.default
        assert declared.help, setting
    settings = kind().settings
    for setting in kind.declared():
        with pytest.raises(AttributeError):
            setattr(settings, setting, 1)


@every_name
def test_models_describe_themselves(name: str) -> None:
    kind = model_class(name)
    assert kind.name == name
    assert kind.about
    assert kind.paper
    assert kind.__doc__


@every_spec
def test_params_come_and_go(spec: str) -> None:
    model = build_model(spec)
    params = model.get_params()
    other = build_model(spec)
    own = {name: value for name, value in params.items() if name != "parts"}
    assert other.set_params(**own) is other
    assert {n: v for n, v in other.get_params().items() if n != "parts"} == own
    if "seed" in params:
        assert model.set_params(seed="7").get_params()["seed"] == 7
    with pytest.raises(SettingError, match="no_such_setting"):
        model.set_params(no_such_setting=1)


# --- learning ----------------------------------------------------------------------------------------


@every_spec
def test_fit_returns_self_and_leaves_the_graph_alone(spec: str, small_graph: ClickGraph) -> None:
    before = small_graph.pairs.clicks.tobytes(), small_graph.docs.to_pydict(), list(small_graph.query_keys)
    model = build_model(spec)
    params = model.get_params()
    assert model.fit(small_graph) is model
    assert model.get_params() == params
    assert {*vars(model)} - {*model.setting_names()} <= {"fitted_", "_given", "_source", "parts", "encode"}, (
        "all that is learned is in one place"
    )
    assert (small_graph.pairs.clicks.tobytes(), small_graph.docs.to_pydict(), list(small_graph.query_keys)) == before


@every_spec
def test_one_seed_gives_one_model(spec: str, small_graph: ClickGraph) -> None:
    one, two = (build_model(spec).fit(small_graph) for _ in range(2))
    for query in QUERIES:
        assert one.score(query, small_graph.doc_ids).tobytes() == two.score(query, small_graph.doc_ids).tobytes()


@every_spec
def test_a_second_fit_forgets_the_first(spec: str, small_graph: ClickGraph) -> None:
    docs = [Document("x", {"title": "salt river"}), Document("y", {"title": "stone river salt"})]
    graph = ClickGraph.build([Impression("salt", ["x", "y"], ["y"])], docs)
    model = build_model(spec).fit(small_graph)
    model.rerank("ny pizza", small_graph.doc_ids)
    model.fit(graph)
    fresh = build_model(spec).fit(graph)
    for query in ("salt river", "ny pizza"):
        ids = ["x", "nowhere", "y", "ny"]
        assert model.score(query, ids).tolist() == fresh.score(query, ids).tolist()
    assert model.title("x") == "salt river"
    assert model.title("ny") == ""


@every_spec
def test_the_report(spec: str, fitted: Callable[[str], Model]) -> None:
    model = fitted(spec)
    report = model.report_
    assert set(report) >= REPORTED
    assert report["spec"] == model.spec == spec
    assert report["seconds"] >= 0
    assert report["peak_mb"] > 0
    assert report["density"] is None or 0 <= report["density"] <= 1
    assert report["notes"] == list(model.notes_)
    assert model.fitted.abilities <= {*ABILITIES}
    assert all(isinstance(note, str) and note and "\n" not in note for note in report["notes"])
    assert json.loads(json.dumps(report)) == report


# --- scores ------------------------------------------------------------------------------------------


@every_spec
@pytest.mark.parametrize("query", [*QUERIES, NOBODY_KNOWS])
def test_scores_stand_in_the_order_asked(spec: str, query: str, fitted: Callable[[str], Model]) -> None:
    model = fitted(spec)
    ids = ["rome", "nowhere", "ny", "pizza", "blank"]
    scores = model.score(query, ids)
    assert isinstance(scores, np.ndarray)
    assert scores.shape == (5,)
    assert scores.dtype == np.float64
    assert not np.isnan(scores).any()
    assert not (scores == np.inf).any()
    assert model.score(query, []).shape == (0,)
    if spec not in GIVES_ORDER:
        assert scores[1] == -np.inf, "a document nobody knows"
        if spec in PER_LIST:
            return
        assert model.score(query, ids[::-1]).tolist() == scores[::-1].tolist()
        assert [model.score(query, [one])[0] for one in ids] == scores.tolist()


@every_spec
def test_lists_at_once_equal_one_by_one(spec: str, fitted: Callable[[str], Model]) -> None:
    model = fitted(spec)
    lists = [
        ResultList("1", "ny pizza", ["rome", "ny"]),
        ResultList("2", NOBODY_KNOWS, ["ny"]),
        ResultList("3", "big apple", []),
        ResultList("4", "big apple", ["bagel", "nowhere", "ny"]),
    ]
    for result, scores, ranking in zip(lists, model.score_lists(lists), model.rerank_lists(lists), strict=True):
        assert scores.tolist() == model.score(result.query, result.results).tolist()
        assert ranking == model.rerank(result.query, result.results)
    assert model.score_lists([]) == []
    assert model.rerank_lists([]) == []


@every_spec
def test_a_query_is_its_normalised_text(spec: str, fitted: Callable[[str], Model]) -> None:
    model = fitted(spec)
    ids = ["rome", "ny", "pizza"]
    assert model.score("  NY\tPizza ", ids).tolist() == model.score("ny pizza", ids).tolist()


@every_spec
@pytest.mark.parametrize("query", [*QUERIES, NOBODY_KNOWS])
def test_rerank_gives_every_id_once(spec: str, query: str, fitted: Callable[[str], Model]) -> None:
    model = fitted(spec)
    for ids in (["nowhere", "rome", "ny", "blank", "pizza", "no-one", "bagel"], ["bagel", "blank", "ny"], ["ny"], []):
        ranking = model.rerank(query, ids)
        scores = model.score(query, ids)
        assert ranking.doc_ids == unscored_stay_behind(ids, scores)
        assert sorted(ranking.doc_ids) == sorted(ids)
        assert [hit.score for hit in ranking] == sorted(scores, reverse=True)


@every_spec
def test_a_query_of_unknown_words_keeps_the_incoming_order(spec: str, fitted: Callable[[str], Model]) -> None:
    model = fitted(spec)
    for ids in (["rome", "nowhere", "ny", "bagel"], ["bagel", "ny", "rome", "blank"]):
        assert model.rerank(NOBODY_KNOWS, ids).doc_ids == ids
    if spec not in GIVES_ORDER:
        assert (model.score(NOBODY_KNOWS, ["ny", "rome"]) == -np.inf).all()


@every_spec
def test_documents_that_tie_keep_their_order(spec: str) -> None:
    docs = [Document(f"d{i}", {"title": "salt river", "body": "stone"}) for i in range(6)]
    model = build_model(spec).fit(ClickGraph.build([Impression("salt", [d.doc_id for d in docs], ["d1"])], docs))
    ids = ["d3", "d5", "d0", "d4", "d2"]
    scores = model.score("salt river", ids)
    assert model.rerank("salt river", ids).doc_ids == unscored_stay_behind(ids, scores)
    if len(set(scores.tolist())) == 1:
        assert model.rerank("salt river", ids).doc_ids == ids


@every_spec
@pytest.mark.parametrize("query", ODD_QUERIES, ids=range(len(ODD_QUERIES)))
def test_any_query_is_answered(spec: str, query: str, fitted: Callable[[str], Model]) -> None:
    model = fitted(spec)
    assert sorted(model.rerank(query, ["rome", "ny"]).doc_ids) == ["ny", "rome"]
    with suppress(NotSupported):
        model.rank(query)


# --- search ------------------------------------------------------------------------------------------


@every_spec
@pytest.mark.parametrize("query", [*QUERIES, NOBODY_KNOWS])
def test_rank_is_sorted_known_and_distinct_or_refused(spec: str, query: str, fitted: Callable[[str], Model]) -> None:
    model = fitted(spec)
    if "search" not in model.fitted.abilities:
        with pytest.raises(NotSupported, match=f"{spec} re-ranks given lists; it cannot search"):
            model.rank(query)
        return
    ranking = model.rank(query, k=10)
    assert len(set(ranking.doc_ids)) == len(ranking) <= 10
    assert set(ranking.doc_ids) <= set(model.doc_ids_)
    scores = [hit.score for hit in ranking]
    assert scores == sorted(scores, reverse=True)
    assert np.isfinite(scores).all()
    if spec not in PER_LIST:
        np.testing.assert_allclose(scores, model.score(query, ranking.doc_ids), rtol=1e-5, atol=1e-6)
    with pytest.raises(SettingError, match="k must be at least 1; got 0"):
        model.rank(query, k=0)
    for k in (1, 2):
        assert list(model.rank(query, k=k)) == list(ranking)[:k]
    if query == NOBODY_KNOWS:
        assert len(ranking) == 0


@every_spec
def test_threads_may_share_a_model(spec: str, small_graph: ClickGraph) -> None:
    model = build_model(spec).fit(small_graph)
    queries = [*QUERIES, NOBODY_KNOWS] * 8
    with ThreadPoolExecutor(4) as pool:
        at_once = list(pool.map(lambda query: model.rerank(query, small_graph.doc_ids), queries))
    assert at_once == [model.rerank(query, small_graph.doc_ids) for query in queries]


@pytest.mark.parametrize("spec", S_FUNCTIONS)
def test_the_maps_of_an_s_function_multiply_to_its_scores(spec: str, fitted: Callable[[str], Model]) -> None:
    model = fitted(spec)
    queries = dense(model.map_queries([*QUERIES, NOBODY_KNOWS]))
    images = dense(model.map_documents(model.doc_ids_))
    assert queries.shape == (5, images.shape[1])
    assert not queries[-1].any()
    np.testing.assert_allclose(images, dense(model.images_), rtol=1e-6)
    for row, query in enumerate(QUERIES):
        scores = model.score(query, model.doc_ids_)
        known = np.isfinite(scores)
        assert known.any() == queries[row].any()
        np.testing.assert_allclose((queries[row] @ images.T)[known], scores[known], rtol=1e-5, atol=1e-6)


# --- files -------------------------------------------------------------------------------------------


@every_spec
def test_saved_and_loaded_it_is_the_same(spec: str, small_graph: ClickGraph, tmp_path: Path) -> None:
    model = build_model(spec).fit(small_graph)
    for _ in range(2):  # new, then replaced
        model.save(tmp_path / "model")
    again = clickbridge.load(tmp_path / "model")
    assert type(again) is type(model)
    assert again.spec == spec
    one, two = (
        {name: value for name, value in m.get_params().items() if name != "parts" and not name.endswith("language")}
        for m in (model, again)
    )
    assert one == two
    # A language that was left open is known once a model is fitted.
    languages = [value for name, value in again.get_params().items() if name.endswith("language")]
    assert "auto" not in languages
    assert again.report_ == model.report_
    assert again.notes_ == model.notes_
    assert again.doc_ids_ == model.doc_ids_
    assert [again.title(d) for d in again.doc_ids_] == [model.title(d) for d in model.doc_ids_]
    for query in [*QUERIES, NOBODY_KNOWS, "an unseen pizza city"]:
        ids = [*small_graph.doc_ids, "nowhere"]
        assert again.score(query, ids).tobytes() == model.score(query, ids).tobytes()
        assert again.rerank(query, ids) == model.rerank(query, ids)
        if "search" in model.fitted.abilities:
            assert again.rank(query) == model.rank(query)
    again.save(tmp_path / "copy")
    assert (
        clickbridge.load(tmp_path / "copy").score("ny pizza", ["ny"]).tolist()
        == model.score("ny pizza", ["ny"]).tolist()
    )


# --- graphs that have little -------------------------------------------------------------------------


@every_spec
@pytest.mark.parametrize("pages", [True, False], ids=["pages", "pairs"])
def test_one_document_and_one_query(spec: str, pages: bool) -> None:
    log = [Impression("river", ["d"], ["d"])] if pages else [PairCount("river", "d", 1)]
    model = build_model(spec).fit(ClickGraph.build(log, [Document("d", {"title": "salt river", "body": "salt"})]))
    assert model.score("river", ["d"]).shape == (1,)
    assert np.isfinite(model.score("river", ["d"])).all()
    keeps_order = spec in GIVES_ORDER
    assert model.rerank("river", ["nowhere", "d"]).doc_ids == (["nowhere", "d"] if keeps_order else ["d", "nowhere"])
    assert model.rerank(NOBODY_KNOWS, ["nowhere", "d"]).doc_ids == ["nowhere", "d"]


@every_spec
def test_a_graph_without_clicks(spec: str) -> None:
    docs = [Document("a", {"title": "river"}), Document("b", {"title": "stone"})]
    graph = ClickGraph.build([Impression("river", ["a", "b"], [])], docs)
    fit_or_say_what_is_missing(spec, graph)


@every_spec
def test_a_graph_without_text(spec: str) -> None:
    fit_or_say_what_is_missing(spec, ClickGraph.build([PairCount("river", "a", 2), PairCount("stone", "b", 1)]))


@every_spec
def test_a_graph_of_queries_known_by_id_alone(spec: str) -> None:
    docs = [Document("a", {"title": "river"}), Document("b", {"title": "stone"})]
    log = [PairCount("", "a", 2, query_id="7"), PairCount("", "b", 1, query_id="8")]
    fit_or_say_what_is_missing(spec, ClickGraph.build(log, docs))


def fit_or_say_what_is_missing(spec: str, graph: ClickGraph) -> None:
    model = build_model(spec)
    message = ""
    try:
        model.fit(graph)
    except (MissingPart, InputError) as refusal:
        message = str(refusal)
    if message.startswith("no click is left to learn from"):
        assert "from a log with clicks" in message
        return
    if message:
        assert message.split()[0] in spec, "the message starts with the model's name"
        assert "needs" in message
        assert "ingest" in message or "use" in message, "the message names the remedy"
        assert "\n" not in message
        return
    for key in graph.query_keys:
        assert sorted(model.rerank(key, ["a", "nowhere", "b"]).doc_ids) == ["a", "b", "nowhere"]
