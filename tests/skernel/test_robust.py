"""Robust BM25: the paper's three cases, its formula, fallback, the split of the log; that it is a value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clickbridge import ClickGraph, build_model
from clickbridge.errors import SettingError
from clickbridge.graph.hold_back import HoldBack
from clickbridge.models.ascent import labelled
from clickbridge.models.candidates import Query, without_gaps
from clickbridge.models.model import Model
from clickbridge.models.study import Study
from clickbridge.simulate.clicks import clicks_on_page
from clickbridge.skernel import kernel_choices
from clickbridge.skernel.robust import FittedRobust
from clickbridge.skernel.training_data import KernelTraining, water_level
from clickbridge.types import Document, Impression, PairCount

Array = np.ndarray[Any, Any]


def page(doc_id: str, title: str, url: str) -> Document:
    return Document(doc_id, {"title": title, "url": url})


def seen(query: str, shown: str, clicked: str, times: int = 1) -> list[Impression]:
    return [Impression(query, shown.split(), clicked.split())] * times


def ranked(spec: str, graph: ClickGraph, query: str, results: str) -> list[str]:
    # The paper's BM25 knows nothing of a word that no document has.
    settings = {"preference": "skip-above"} if spec != "bm25" and spec != "expansion" else {}
    if spec != "pairwise":
        settings["unknown_words"] = "drop"
    return build_model(spec, settings).fit(graph).rerank(query, results.split()).doc_ids


# --- the paper's cases (Tables 6 to 8) ---------------------------------------------------------------


def test_the_misspelled_shop() -> None:
    """Similar queries carry it: BM25 matches nothing, expansion adds the title of the wrong page."""
    docs = [
        page("stores", "Walmartstores.com", "http://www.walmartstores.com"),
        page("shop", "Walmart.com: Save money. Live better", "http://www.walmart.com"),
        page("wiki", "Wal*Mart, the free encyclopedia", "http://en.wikipedia.org/wiki/WalMart"),
        page("kmart", "Kmart.com deals", "http://www.kmart.com"),
        page("target", "Target.com expect more", "http://www.target.com"),
    ]
    log = [
        *seen("wallmart", "stores kmart target shop", "stores", 3),
        *seen("wallmart", "stores kmart target shop", "shop"),
        *seen("walmart", "stores wiki shop kmart", "shop", 3),
        *seen("wal mart", "wiki stores shop", "shop", 2),
        *seen("walmarts", "wiki stores shop", "shop", 2),
    ]
    graph, results = ClickGraph.build(log, docs), "stores kmart target wiki shop"
    assert ranked("bm25", graph, "wallmart", results) == results.split()
    assert ranked("expansion", graph, "wallmart", results)[0] == "stores"
    assert ranked("robust-bm25", graph, "wallmart", results)[0] == "shop"
    # Another slip of the pen, never seen: the text kernel finds the same neighbours.
    assert ranked("robust-bm25", graph, "walmrt", results)[0] == "shop"


def test_mens_magazines() -> None:
    """No similar query; a similar document carries it. BM25 finds the page with the word in its URL and no other."""
    docs = [
        page("list", "List of men's magazines - Wikipedia", "http://en.wikipedia.org/wiki/List_of_men's_magazines"),
        page("ask", "AskMen.com - Men's magazines", "http://www.askmen.com/links/sections/mensmagazines.html"),
        page("wear", "Clothing for men - shop", "http://www.wear.com"),
        page("news", "Daily news, the free paper", "http://www.news.com"),
        page("cars", "Cars and bikes", "http://www.cars.com"),
    ]
    log = [
        *seen("mensmagazines", "news cars ask", "ask", 2),
        *seen("used cars", "news cars", "cars"),
        *seen("morning paper", "cars news", "news"),
    ]
    graph, results = ClickGraph.build(log, docs), "news wear cars list ask"
    assert ranked("bm25", graph, "mensmagazines", results) == ["ask", "news", "wear", "cars", "list"]
    assert ranked("robust-bm25", graph, "mensmagazines", results)[:2] == ["ask", "list"]


def test_southwest_airlines() -> None:
    """The pairwise kernel follows the neighbours; Robust BM25 listens to the match as well."""
    offers = "Southwest Vacations - Vacation Packages - Cheap Airline Tickets, Hotels, Rental Cars, Attractions"
    docs = [
        page("airline", "Southwest Airlines", "http://www.southwest-airlines.net"),
        page("vacations", offers, "http://www.southwestvacations.com/index.asp"),
        page("hotels", "Cheap hotels", "http://www.hotels.com"),
        page("delta", "Delta Airlines", "http://www.delta.com"),
    ]
    log = [
        *seen("southwest vacations", "hotels vacations", "vacations", 3),
        *seen("southwest airlines tickets", "delta vacations", "vacations", 2),
        *seen("cheap airline tickets", "delta hotels vacations", "vacations", 2),
        *seen("southwest flights", "delta vacations airline", "airline"),
    ]
    graph, results = ClickGraph.build(log, docs), "delta hotels vacations airline"
    assert ranked("pairwise", graph, "southwest airlines", results)[0] == "vacations"
    assert ranked("robust-bm25", graph, "southwest airlines", results)[0] == "airline"


# --- a log with some size ----------------------------------------------------------------------------

TOPICS = ["river", "stone", "bread", "cloud", "horse", "music"]
SYNONYMS = ["stream", "rock", "loaf", "sky", "pony", "song"]


@pytest.fixture(scope="module")
def synonyms() -> ClickGraph:
    """Documents say one word, queries often another: what was clicked for the synonym is the only bridge."""
    rng = np.random.default_rng(0)
    texts = {t: {"title": f"{t} zqx", "body": t} for t in TOPICS}
    docs = [Document(f"{t}{i}", {**texts[t], "note": f"kind{i % 3}"}) for t in TOPICS for i in range(8)]
    pages = []
    for n in range(480):
        topic = n % 6
        word = SYNONYMS[topic] if rng.random() < 0.7 else TOPICS[topic]
        shown = [docs[i] for i in rng.permutation(len(docs))[:12]]
        grades = [2 * int(d.doc_id.startswith(TOPICS[topic])) for d in shown]
        clicked = [d.doc_id for d, c in zip(shown, clicks_on_page(grades, rng), strict=True) if c]
        pages.append(
            Impression(f"{word} kind{rng.integers(0, 3)} {rng.integers(0, 40)}", [d.doc_id for d in shown], clicked)
        )
    return ClickGraph.build(pages, docs)


def fit_robust(graph: ClickGraph, spec: str = "robust-bm25", **given: str) -> FittedRobust:
    fitted = build_model(spec, given).fit(graph).fitted
    assert isinstance(fitted, FittedRobust)
    return fitted


@pytest.fixture(scope="module")
def robust(synonyms: ClickGraph) -> FittedRobust:
    return fit_robust(synonyms)


def test_it_learns_synonyms(robust: FittedRobust, synonyms: ClickGraph) -> None:
    results = [f"{t}{i}" for i in range(8) for t in TOPICS]
    for topic, synonym in zip(TOPICS, SYNONYMS, strict=True):
        best = robust.rerank(f"a {synonym} please", results).doc_ids[:4]
        assert sum(d.startswith(topic) for d in best) >= 3, (synonym, best)
        assert sum(h.doc_id.startswith(topic) for h in robust.rank(f"a {synonym} please", 4)) >= 3
    assert any("preferences" in note for note in robust.notes)


def test_constants_come_from_held_back_lists(synonyms: ClickGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_choices, "MIN_USABLE", 10)
    given = {
        "rho": "1",
        "ridge": "1",
        "prior": "0.3",
        "n_neighbours": "50",
        "query_kernel": "word:0.5,char:0.5",
        "doc_kernel": "base",
    }
    model = fit_robust(synonyms, **given)
    (note,) = (note for note in model.notes if note.startswith("robust") and "held-back lists" in note)
    assert f"epsilon {model.choice.epsilon}" in note
    assert "rho" not in note, "what is given is not chosen"
    worse = {e: nd for e, nd in value_by_epsilon(model, synonyms, given).items() if nd > 0}
    best = max(worse.values())
    assert worse[model.choice.epsilon] >= best - kernel_choices.LEAST_GAIN * len(worse)
    assert model.choices.parts[0].field_weights == model.base.choices.field_weights


def value_by_epsilon(model: FittedRobust, graph: ClickGraph, given: dict[str, str]) -> dict[float, float]:
    """nDCG@5 of each epsilon, fitted on the rest alone."""
    study = Study(graph)
    held, rest = study.hold_back(seed=model.settings.seed)
    lists = labelled(study, held.lists())
    out = {}
    for epsilon in kernel_choices.GRIDS["epsilon"]:
        other = build_model("robust-bm25", {**given, "epsilon": str(epsilon)}).fit(rest.graph)
        out[epsilon] = lists.ndcg(without_gaps(other.fitted.scores(lists.candidates), -1e300))
    return out


def test_scores_are_equation_11(robust: FittedRobust) -> None:
    """f(q, d) from its parts, point by point."""
    query, docs = "pony kind1", ["horse1", "horse7", "cloud0"]
    asked, items = robust.query(query), robust.catalogue.items(docs)
    found = robust.neighbourhood(asked, items)
    assert found is not None
    model = robust.trained(found)
    assert model.n_pairs <= robust.settings.n_pairs
    out = []
    for number, g in zip(items, robust.factors(asked, items), strict=True):
        total = robust.choice.prior
        for p, weight in enumerate(model.weights):
            k_d = robust.documents.block(np.array([number]), model.docs[[model.doc_of[p]]])[0, 0]
            total += weight * model.likeness[p] * k_d
        out.append(g * total)
    np.testing.assert_allclose(robust.score(query, docs), out, rtol=1e-9)
    explained = robust.explain(query, "horse1", k=1000)
    assert explained.score == pytest.approx(out[0])


def test_without_neighbours_it_is_the_base(robust: FittedRobust) -> None:
    """Words of documents that no query ever used."""
    query, ids = "zqx", robust.doc_ids
    assert robust.falls_back(query)
    assert not robust.falls_back("pony")
    assert robust.score(query, ids).tolist() == robust.base.score(query, ids).tolist()
    assert np.isfinite(robust.score(query, ids)).all()
    assert robust.rank(query, 5) == robust.base.rank(query, 5)
    assert robust.explain(query, "horse1") == robust.base.explain(query, "horse1")


@pytest.mark.parametrize("spec", ["robust:lmir", "robust:pls", "robust:bm25+pls"])
def test_any_base(spec: str, synonyms: ClickGraph) -> None:
    given = {
        "epsilon": "0.1",
        "rho": "1",
        "ridge": "1",
        "prior": "0.3",
        "n_neighbours": "50",
        "family": "product",
        "doc_kernel": "titles",
    }
    model = fit_robust(synonyms, spec, **given, query_kernel="word:0.5,char:0.5")
    factors = model.factors(Query("pony kind1"), np.arange(len(model.doc_ids)))
    assert (factors >= model.choice.epsilon).all(), "a base that can be negative is shifted before it multiplies"
    best = model.rerank("the pony", model.doc_ids).doc_ids[:4]
    assert sum(d.startswith("horse") for d in best) >= 3


def test_a_base_must_be_an_s_function() -> None:
    with pytest.raises(SettingError, match="robust:walk is not possible: walk is not an S-function; try bm25"):
        build_model("robust:walk")


def test_clicks_that_make_neighbours_give_no_preferences(synonyms: ClickGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two halves of the log share no page."""
    halves: list[HoldBack] = []
    real = ClickGraph.hold_back

    def watched(self: ClickGraph, fraction: float = 0.1, by: str = "auto", seed: int = 0) -> HoldBack:
        found: HoldBack = real(self, fraction, by, seed)
        if by == "click":
            halves.append(found)
        return found

    monkeypatch.setattr(ClickGraph, "hold_back", watched)
    given = {
        "epsilon": "0.1",
        "rho": "1",
        "ridge": "1",
        "prior": "0.3",
        "n_neighbours": "50",
        "family": "product",
        "doc_kernel": "titles",
    }
    model = fit_robust(synonyms, **given, query_kernel="click:0.5,word:0.5")
    half = halves[-1]
    assert half.shown is not None
    assert half.graph.impressions is not None
    assert synonyms.impressions is not None
    assert len(half.shown) + len(half.graph.impressions) == len(synonyms.impressions)
    assert model.responses.sum() == half.graph.pairs.clicks.sum()
    docs_of_pairs = set(zip(model.training.point_query.tolist(), model.training.point_doc.tolist(), strict=True))
    shown = zip(np.repeat(half.shown.query, np.diff(half.shown.indptr)).tolist(), half.shown.doc.tolist(), strict=True)
    number = model.queries.number
    assert docs_of_pairs <= {(number(synonyms.query_keys[q]), d) for q, d in shown}
    assert docs_of_pairs
    assert any("rest" in note for note in model.notes)


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("epsilon", "-1", "epsilon must be auto or a number from 0; got '-1'"),
        ("prior", "-1", "prior must be auto or a number from 0; got '-1'"),
        ("n_neighbours", "0", "n_neighbours must be auto or a number above 0"),
        ("ridge", "much", "ridge must be auto or a number above 0; got 'much'"),
        ("query_kernel", "word:x", "query_kernel is auto or weights, such as"),
        ("query_kernel", "vowel:1", "query_kernel is made of weights >= 0"),
        ("doc_kernel", "vowels", "no view 'vowels'"),
    ],
)
def test_settings_that_make_no_sense(setting: str, value: str, message: str, synonyms: ClickGraph) -> None:
    given = {
        "epsilon": "0.1",
        "rho": "1",
        "ridge": "1",
        "prior": "0.3",
        "n_neighbours": "50",
        "doc_kernel": "titles",
        "query_kernel": "word",
    }
    model: Model = build_model("robust:bm25", {**given, setting: value})
    with pytest.raises(SettingError, match=message):
        model.fit(synonyms)


def test_similar_queries_and_documents(robust: FittedRobust) -> None:
    near = robust.similar_queries("pony kind1", 3)
    assert len(near) == 3
    assert all(name.startswith(("pony", "horse")) or "kind1" in name for name, _ in near)
    assert [v for _, v in near] == sorted((v for _, v in near), reverse=True)
    assert all(h.doc_id.startswith("horse") for h in robust.similar_documents("horse1", 3))


# --- sampling ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("available", "n", "level"),
    [
        ([5, 5, 100, 3], 20, 7),
        ([1, 1], 20, 1),
        ([100] * 50, 20, 1),
        ([], 20, 1),
        ([100, 100], 200, 100),
        ([0, 9], 4, 4),
    ],
)
def test_water_level(available: list[int], n: int, level: int) -> None:
    assert water_level(np.array(available, dtype=np.int64), n) == level


def test_samples_are_even() -> None:
    indptr = np.array([0, 3, 3, 20])
    training = KernelTraining(indptr, *(np.arange(20) for _ in range(4)))
    assert training.sample(np.array([2, 0]), 8).tolist() == [3, 4, 5, 6, 7, 0, 1, 2]
    assert training.sample(np.array([1]), 8).tolist() == []
    assert training.sample(np.array([2, 0]), 6, own=True).tolist() == [3, 4, 5, 0, 1, 2]
    assert training.sample(np.array([0, 2]), 10, own=True).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert training.has_pairs.tolist() == [True, False, True]


# --- never below its base ----------------------------------------------------------------------------


def shop(n: int = 400, helpful: bool = True) -> ClickGraph:
    """Clicks without pages. People type a nickname that no title has, or the title; with `helpful=False` they type
    titles and click anything until shortly before the end: what is learned from them misleads."""
    rng = np.random.default_rng(3)
    docs = [Document(f"d{i}", {"title": f"thing{i} part{i % 7}"}) for i in range(60)]
    rows = []
    for t in range(n):
        i = int(rng.integers(60))
        query = f"nick{i} part{i % 7}" if t % 2 and helpful else f"thing{i} please"
        wanted = i if helpful or t > 0.88 * n else int(rng.integers(60))
        rows.append(PairCount(query, f"d{wanted}", 1, time=1.7e9 + 3600.0 * t))
    return ClickGraph.build(rows, docs)


def test_without_pages_what_the_base_finds_is_what_was_passed_over() -> None:
    fitted: Any = build_model("robust:bm25").fit(shop(1500)).fitted
    assert any("clicked over what bm25 finds" in note for note in fitted.notes)
    assert fitted.choices.corrects
    assert fitted.rank("nick5 part5", 1).doc_ids == ["d5"], "no title has the word, similar queries know"


def test_where_nothing_can_be_learned_the_base_stays() -> None:
    graph = shop(1500, helpful=False)
    robust, base = build_model("robust:bm25").fit(graph), build_model("bm25").fit(graph)
    assert not robust.choices_.corrects
    assert any("the order of bm25 stays" in note for note in robust.notes_)
    ids = graph.doc_ids
    for query in ("thing3 please", "nick8 part1", "part2"):
        assert robust.rank(query, 9).doc_ids == base.rank(query, 9).doc_ids
        assert robust.rerank(query, ids).doc_ids == base.rerank(query, ids).doc_ids
        assert robust.falls_back(query)


def test_a_long_list_is_searched() -> None:
    """What a search would look at comes first, all else behind it in the base's order."""
    docs = [Document(f"d{i:03d}", {"title": f"thing{i} part{i % 7} all"}) for i in range(400)]
    clicks = [PairCount(f"nick{i % 80} all", f"d{i % 80:03d}", 1, time=1e9 + i) for i in range(400)]
    model = build_model("robust:bm25", n_neighbours="10", epsilon="0.1").fit(ClickGraph.build(clicks, docs))
    order = model.rerank("nick5 all", [d.doc_id for d in docs]).doc_ids
    assert len(order) == 400
    assert order[:5] == model.rank("nick5 all", 200).doc_ids[:5]
