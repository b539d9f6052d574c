"""Updates against a decomposition from scratch over the same frozen features."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import subspace_angles

from clickbridge import MPLS, PLS, ClickGraph, Walk, build_model, load
from clickbridge.engines.local import Local
from clickbridge.errors import InputError, MissingPart, NotFitted, NotSupported
from clickbridge.models.latent import document_images
from clickbridge.models.model import Model
from clickbridge.models.pls import FittedPLS, scaled_space, weighted_responses
from clickbridge.models.registry import MODELS, model_class
from clickbridge.numerics.svd import OVERSAMPLE
from clickbridge.types import Document, Impression, PairCount
from oracles.arrays import dense
from oracles.latent import query_rows

RNG = np.random.default_rng(5)
WORDS = [f"word{i}" for i in range(40)]
DOCS = [Document(f"d{i}", {"title": " ".join(RNG.choice(WORDS, 4))}) for i in range(30)]


def pages(start: int, stop: int) -> list[Impression]:
    rng = np.random.default_rng(9)
    out = []
    for i in range(stop):
        words = rng.choice(WORDS[:36], 2)
        clicks = [f"d{n}" for n in rng.choice(30, 2, replace=False)]
        if i >= start:
            out.append(Impression(" ".join(words), None, clicks, user=f"u{i}"))
    return out


@pytest.fixture
def graph() -> ClickGraph:
    return ClickGraph.build(pages(0, 120), DOCS)


def from_scratch(model: Model) -> FittedPLS:
    """A cold start over the model's own features."""
    fitted = model.fitted
    assert isinstance(fitted, FittedPLS)
    cold = [fitted.relearned(fitted.features, space, space.dim, Local()) for space in fitted.spaces]
    power, weights = fitted.settings.sv_power, fitted.space_weights.tolist()
    spaces = tuple(scaled_space(space, power, weight) for space, weight in zip(cold, weights, strict=True))
    images, scorable = document_images(fitted.doc_features, spaces)
    return replace(fitted, spaces=spaces, images=images, scorable=scorable)


@pytest.mark.parametrize("kind", [PLS, MPLS])
@pytest.mark.parametrize("response", ["clicks", "log"])
def test_an_update_agrees_with_a_cold_start_on_frozen_features(
    kind: type[PLS], response: str, graph: ClickGraph
) -> None:
    model = kind(dim=8, views="word,click", response=response, precision="float64").fit(graph)
    model.update(pages(120, 150))
    queries = model.queries_.keys[:25]
    warm = np.stack([model.score(q, model.doc_ids_) for q in queries])
    cold = np.stack([from_scratch(model).score(q, model.doc_ids_) for q in queries])
    np.testing.assert_allclose(warm, cold, atol=2e-3)


def topical_log(n_pages: int, n_topics: int = 12, n_docs: int = 400) -> tuple[list[Document], list[Impression]]:
    """Words and clicks that stay within topics of falling size: more directions than a decomposition looks at."""
    rng = np.random.default_rng(0)
    words = [[f"t{t}w{i}" for i in range(30)] for t in range(n_topics)]
    share = 0.8 ** np.arange(n_topics)
    topic = rng.choice(n_topics, n_docs, p=share / share.sum())
    docs = [Document(f"d{i}", {"title": " ".join(rng.choice(words[t], 5))}) for i, t in enumerate(topic)]
    log = []
    for doc in rng.integers(n_docs, size=n_pages):
        clicks = {f"d{doc}", f"d{rng.choice(np.flatnonzero(topic == topic[doc]))}"}
        log.append(Impression(" ".join(rng.choice(words[topic[doc]], 2)), None, sorted(clicks)))
    return docs, log


@pytest.mark.parametrize("spec", ["pls", "mpls"])
def test_subspaces_and_rankings_agree_where_the_decomposition_is_not_exact(spec: str) -> None:
    docs, log = topical_log(1500)
    chosen = {"dim": 10, "views": "word,click"} | ({"combine": "closed"} if spec == "mpls" else {})
    model = build_model(spec, chosen).fit(ClickGraph.build(log[:1200], docs)).update(log[1200:])
    responses = weighted_responses(model.responses_, mean=True)
    for space in model.spaces_:
        w = dense(model.query_features_[:, space.q_columns].T @ responses @ model.doc_features_[:, space.d_columns])
        u, s, vt = np.linalg.svd(w, full_matrices=False)
        assert np.count_nonzero(s > 1e-6) > 10 + OVERSAMPLE, "no block holds all directions"
        for maps, exact in ((space.l_x, u[:, :10]), (space.l_y, vt[:10].T)):
            assert subspace_angles(maps.astype(np.float64), exact).max() < 0.01
    warm = np.stack([model.score(q, model.doc_ids_) for q in model.queries_.keys[:150]])
    again = from_scratch(model)
    cold = np.stack([again.score(q, model.doc_ids_) for q in model.queries_.keys[:150]])
    np.testing.assert_allclose(warm, cold, atol=2e-3)
    best = [[set(np.argsort(-row, kind="stable")[:10]) for row in scores] for scores in (warm, cold)]
    assert np.mean([len(one & two) / 10 for one, two in zip(*best, strict=True)]) >= 0.99


def test_responses_are_those_of_the_joint_log(graph: ClickGraph) -> None:
    model = PLS(dim=8, views="word").fit(graph).update(pages(120, 150))
    both = PLS(dim=8, views="word").fit(ClickGraph.build(pages(0, 150), DOCS))
    assert sorted(model.queries_.keys) == sorted(both.queries_.keys)
    for key in both.queries_.keys:
        one = model.responses_[[model.queries_.numbers[key]]].toarray()
        two = both.responses_[[both.queries_.numbers[key]]].toarray()
        np.testing.assert_allclose(one, two)


def test_nothing_new_changes_nothing(graph: ClickGraph) -> None:
    model = PLS(dim=8, views="word,click", precision="float64").fit(graph)
    before = np.stack([model.score(q, model.doc_ids_) for q in model.queries_.keys[:20]])
    model.update()
    after = np.stack([model.score(q, model.doc_ids_) for q in model.queries_.keys[:20]])
    np.testing.assert_allclose(before, after, atol=1e-4)


LEARN_AGAIN = ["pairwise", "ssi", "bltm", "svdfeature"]
CAN = [name for name in MODELS if name not in (*LEARN_AGAIN, "given")]
TODAY = pages(120, 150)
TODAY_AND_BEFORE = [*pages(0, 120), *TODAY]
BROUGHT = [Document("new", {"title": "word1 word2"}), Document("d3", {"title": "word7 word7"})]
GONE = ["d5", "d6"]


def after(log: list[Impression]) -> ClickGraph:
    """What a fit after the update would see."""
    left = [Impression(p.query, p.results, [c for c in p.clicks if c not in GONE], user=p.user) for p in log]
    changed = {d.doc_id: d for d in [*DOCS, *BROUGHT] if d.doc_id not in GONE}
    return ClickGraph.build([p for p in left if p.clicks], changed.values())


@pytest.mark.parametrize("name", CAN)
def test_every_model_that_learns_can_be_updated(name: str) -> None:
    assert "update" in model_class(name).abilities()


@pytest.mark.parametrize("name", LEARN_AGAIN)
def test_the_others_learn_again_from_the_log_they_keep(name: str, graph: ClickGraph) -> None:
    before = build_model(name).fit(graph).fitted
    after = build_model(name).fit(graph).update(TODAY).fitted
    assert "update" not in model_class(name).abilities()
    assert before.log is not None
    assert after.log is not None
    assert after.log.graph.pairs.clicks.sum() > before.log.graph.pairs.clicks.sum()


@pytest.mark.parametrize("response", ["clicks", "log"])
@pytest.mark.parametrize(("spec", "tolerance"), [("walk", 1e-6), ("cos-click", 1e-6), ("lsi-qd", 2e-4)])
def test_models_without_features_equal_a_refit(spec: str, tolerance: float, response: str, graph: ClickGraph) -> None:
    """Nothing is frozen, so an update is a fit on all that there now is."""
    chosen = {"response": response} | ({"dim": 8, "precision": "float64"} if spec == "lsi-qd" else {})
    model = build_model(spec, chosen).fit(graph).update(TODAY, BROUGHT, GONE)
    fresh = build_model(spec, chosen).fit(after(TODAY_AND_BEFORE))
    assert sorted(model.doc_ids_) == sorted(fresh.doc_ids_)
    assert sorted(model.queries_.keys) == sorted(fresh.queries_.keys)
    ids = fresh.doc_ids_
    for key in [*fresh.queries_.keys[:40], "word1 never asked"]:
        np.testing.assert_allclose(model.score(key, ids), fresh.score(key, ids), atol=tolerance)
        likeness = [[s for _, s in m.similar_queries(key, 3)] for m in (model, fresh)]
        np.testing.assert_allclose(*likeness, atol=tolerance)
    clicks = dict(zip(model.queries_.keys, model.queries_.clicks, strict=True))
    assert clicks == pytest.approx(dict(zip(fresh.queries_.keys, fresh.queries_.clicks, strict=True)))


BEFORE = [PairCount("word1", "d1", 2), PairCount("word9", "d2", 1)]
SMALL = ClickGraph.build(BEFORE, DOCS[:3])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_logs_one_by_one_or_all_at_once(data: st.DataObject) -> None:
    """However new clicks are cut into updates, in whatever order, the same responses come of them."""
    pair = st.tuples(
        st.sampled_from(["word1", "word2 word3", "fresh", "later"]), st.sampled_from(["d1", "d2", "x", "y"])
    )
    clicks = data.draw(st.lists(st.tuples(pair, st.integers(1, 4)), max_size=8))
    cut = data.draw(st.integers(0, len(clicks)))
    how = data.draw(st.sampled_from(["clicks", "log"]))
    log = [PairCount(query, doc, n) for (query, doc), n in clicks]
    total = Counter({(p.query, p.doc_id): p.clicks for p in BEFORE})
    for p in log:
        total[p.query, p.doc_id] += p.clicks
    once = Walk(response=how).fit(SMALL).update(log)
    twice = Walk(response=how).fit(SMALL).update(log[cut:]).update(log[:cut])
    for model in (once, twice):
        found = model.responses_.tocoo()
        pairs = [(model.queries_.keys[i], model.doc_ids_[j]) for i, j in zip(*found.coords, strict=True)]
        worth = {pair: np.log1p(n) if how == "log" else n for pair, n in total.items()}
        assert dict(zip(pairs, found.data.tolist(), strict=True)) == pytest.approx(worth, rel=1e-5)
        by_query: Counter[str] = Counter()
        for (query, _), n in total.items():
            by_query[query] += n
        assert dict(zip(model.queries_.keys, model.queries_.clicks.tolist(), strict=True)) == by_query


def test_lsi_of_documents_agrees_with_a_cold_start_on_frozen_words(graph: ClickGraph) -> None:
    chosen = {"dim": 8, "precision": "float64", "fields": "title", "sv_power": 0.5}
    model = build_model("lsi-dt", chosen).fit(graph).update(TODAY, BROUGHT, GONE)
    fitted: Any = model.fitted
    # The oracle: a dense decomposition of the documents as the frozen words have them.
    there = after(TODAY_AND_BEFORE)
    ids = there.doc_ids
    a = dense(
        fitted.new_features([Document(d, {"title": t}) for d, t in zip(ids, there.field("title"), strict=True)])
    ).T
    u, s, _ = np.linalg.svd(a, full_matrices=False)
    u, s = u[:, :8], s[:8]
    for key in model.queries_.keys[:20]:
        x = dense(query_rows(model, [key]))[0]
        expected = (x @ u) * (s / s[0]) ** (0.5 - 1) / s[0] @ (u.T @ a)
        np.testing.assert_allclose(model.score(key, ids), expected, atol=1e-4)
    assert sorted(model.queries_.keys) == sorted(there.query_keys)


@pytest.mark.parametrize("spec", [*CAN, "bm25+pls", "bm25+walk", "pls+cos-click", "lsi-qd+cos-click"])
def test_documents_come_change_and_go(spec: str, graph: ClickGraph, tmp_path) -> None:  # type: ignore[no-untyped-def]
    model = build_model(spec, {"weights": "1,1"} if "+" in spec else {}).fit(graph)
    model.save(tmp_path / "before")
    model = load(tmp_path / "before")  # arrays mapped from files, which nothing may write to
    again_there = Document("d6", {"title": "word1 word2"})
    model.update([*TODAY, PairCount("word1 word2", "d6", 3)], [*BROUGHT, again_there], GONE)
    assert model.title("d3") == "word7 word7"
    assert model.title("new") == "word1 word2"
    assert len(set(model.doc_ids_)) == len(model.doc_ids_) == 29
    assert not set(GONE) & set(model.doc_ids_), "what is removed stays away, whatever else names it"
    key = TODAY[0].query
    for query in (key, "word1 word2"):
        assert not set(GONE) & set(model.rank(query, 50).doc_ids)
        assert set(model.rank(query, 50).doc_ids) <= set(model.doc_ids_)
    assert np.isfinite(model.score(key, model.doc_ids_)).any()
    if spec in ("vsm", "bm25", "lmir", "cos-word"):
        assert model.rank("word1 word2", 3).doc_ids[0] == "new"
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for query in (key, "word1"):
        np.testing.assert_array_equal(again.score(query, model.doc_ids_), model.score(query, model.doc_ids_))
    with pytest.raises(InputError, match="removes every document: a model needs at least one"):
        model.update([], [], model.doc_ids_)


def test_a_clicked_document_without_text_is_known_by_its_clicks(graph: ClickGraph) -> None:
    model = PLS(dim=8, views="word,click").fit(graph)
    key = model.queries_.keys[0]
    model.update([PairCount(key, "unheard-of", 50)])
    assert "unheard-of" in model.rank(key, 5).doc_ids


@pytest.mark.parametrize("setting", [{"half_life": 7.0}, {"min_clicks": 2}, {"response": "debiased"}])
def test_what_is_not_additive_is_refused(setting: dict[str, Any], graph: ClickGraph) -> None:
    timed = ClickGraph.build([*pages(0, 60), Impression("word1", ["d1", "d2"], ["d1"], time=1.0)] * 2, DOCS)
    model = PLS(dim=4, views="word", **setting).fit(timed)
    with pytest.raises(NotSupported, match="fit it again"):
        model.update(pages(60, 70))


def test_decomposing_again_is_stable(graph: ClickGraph) -> None:
    model = PLS(dim=8, views="word,click", precision="float64").fit(graph)
    first = model.images_.copy()
    model.update()
    np.testing.assert_allclose(np.abs(model.images_), np.abs(first), atol=1e-3)


# --- an update is a new value ----------------------------------------------------------------------

LEARNED = ["cos-click", "walk", "lsi-dt", "lsi-qd", "pls", "mpls", "rmls", "bm25", "bm25+pls", "bm25+walk"]


def answers(model: Any, queries: list[str]) -> list[Any]:
    return [model.rank(query, 8) for query in queries]


@pytest.mark.parametrize("spec", LEARNED)
def test_what_was_fitted_stays_as_it_was(spec: str, graph: ClickGraph) -> None:
    """Who keeps the fitted value goes on getting its answers."""
    model = build_model(spec, {"weights": "1,1"} if "+" in spec else {}).fit(graph)
    keys = graph.query_keys[:10]
    before = model.fitted
    told = answers(before, keys)
    model.update(TODAY, BROUGHT, GONE)
    assert model.fitted is not before
    assert answers(before, keys) == told
    assert set(GONE) <= set(before.doc_ids)


@pytest.mark.parametrize("spec", ["pls", "rmls", "walk", "bm25+pls"])
def test_threads_rank_while_updates_are_swapped_in(spec: str, graph: ClickGraph) -> None:
    """Every answer is one of the old model or of a new one, never of something between."""
    model = build_model(spec, {"weights": "1,1"} if "+" in spec else {}).fit(graph)
    queries = [*graph.query_keys[:5], "word1 word2"]
    news = [
        ([PairCount("word1 word2", f"d{n}", 2)], [Document(f"x{n}", {"title": "word1"})], [f"d{n + 10}"])
        for n in range(6)
    ]
    trial = build_model(spec, {"weights": "1,1"} if "+" in spec else {})
    trial.fitted_ = model.fitted
    states = [model.fitted, *(trial.update(*change).fitted for change in news)]
    allowed = {query: {state.rank(query, 8) for state in states} for query in queries}
    seen: list[tuple[str, Any]] = []
    done = Event()

    def ask() -> None:
        while not done.is_set():
            seen.extend((query, model.rank(query, 8)) for query in queries)

    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask) for _ in range(3)]
        for change in news:
            model.update(*change)
        done.set()
        for job in asking:
            job.result()
    assert len(seen) >= len(queries)
    assert not [(query, ranking) for query, ranking in seen if ranking not in allowed[query]]


def test_a_refused_update_of_a_sum_leaves_it_as_it_was() -> None:
    shown = [Impression(f"word{i} word{i + 1}", ["d1", "d2", f"d{i}"], [f"d{i}"]) for i in range(3, 25)]
    model = build_model("bm25+pls", {"weights": "1,1", "pls.response": "debiased"})
    model.fit(ClickGraph.build(shown, DOCS))
    before = model.fitted
    queries = ["word3 word4", "word1", "word9 word2"]
    told = answers(model, queries)
    with pytest.raises(NotSupported, match="pls fitted with response=debiased"):
        model.update(TODAY, BROUGHT, GONE)
    assert model.fitted is before
    assert answers(model, queries) == told
    assert model.fitted.parts[0].doc_ids == model.doc_ids_  # type: ignore[attr-defined]


@pytest.mark.parametrize("spec", ["pls", "mpls", "rmls", "cos-click", "walk", "lsi-qd", "bm25+pls"])
def test_a_refused_second_fit_leaves_the_model_as_it_was(spec: str, graph: ClickGraph) -> None:
    others = [Document(f"other{i}", {"title": " ".join(WORDS[:5])}) for i in range(30)]
    unclicked = ClickGraph.build([Impression("word1", ["other1", "other2"], [])], others)
    new = build_model(spec)
    with pytest.raises((MissingPart, InputError)):
        new.fit(unclicked)
    with pytest.raises(NotFitted):
        new.rank("word1")
    model = build_model(spec).fit(graph)
    keys, before = graph.query_keys[:10], model.fitted
    told, notes = answers(model, keys), model.notes_
    with pytest.raises((MissingPart, InputError)):
        model.fit(unclicked)
    assert model.fitted is before
    assert answers(model, keys) == told
    assert model.notes_ == notes


@pytest.mark.parametrize("spec", [*LEARNED, "cos-word"])
@pytest.mark.parametrize("made", [Impression, PairCount])
def test_queries_in_any_case_reach_an_update(spec: str, made: Any, graph: ClickGraph) -> None:
    """A record made by hand holds its query as somebody typed it."""

    def click(query: str) -> Any:
        return Impression(query, ["d1", "d2"], ["d2"]) if made is Impression else PairCount(query, "d2", 1)

    typed, clean = (
        build_model(spec, {"weights": "1,1"} if "+" in spec else {}).fit(graph).update([click(query)] * 5)
        for query in ("  Apple   PIE ", "apple pie")
    )
    assert "apple pie" in typed.queries_.keys
    assert typed.queries_.keys == clean.queries_.keys
    assert typed.rank("Apple Pie", 3) == clean.rank("apple pie", 3)
    if spec in ("cos-click", "walk", "lsi-qd"):
        assert typed.rank("APPLE pie", 3).doc_ids[0] == "d2"
