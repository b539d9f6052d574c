"""VSM, BM25F and LMIR against loops written from their formulas."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from clickbridge import BM25, LMIR, VSM, ClickGraph
from clickbridge.errors import InputError, MissingPart, SettingError
from clickbridge.models.lexical import LexicalModel
from clickbridge.models.study import Study
from clickbridge.types import Document, Impression, PairCount
from oracles.arrays import dense
from oracles.graphs import WORDS, graph_of, random_docs
from oracles.lexical import Collection, bm25, log_likelihood, plain_bm25, vsm

DOCS = random_docs(seed=4, n_docs=25)
QUERIES = [
    "apple",
    "apple river",
    "apple apple apple river stone",
    "apple unheardof river",
    " ".join(WORDS),
    "GREEN Tower, tower",
]
WEIGHTS = [{"body": 1.0}, {"title": 1.0, "body": 1.0}, {"title": 3.0, "body": 0.5}, {"title": 1.0, "body": 0.0}]
Oracle = Callable[[list[str], Mapping[str, list[str]], Collection], float]


def in_words(weights: Mapping[str, float]) -> str:
    return ",".join(f"{name}:{weight}" for name, weight in weights.items())


def split(fields: Mapping[str, str], weights: Mapping[str, float]) -> dict[str, list[str]]:
    return {name: fields[name].split() for name in weights}


def compare(model: LexicalModel, oracle: Oracle, weights: dict[str, float]) -> None:
    """Scores, maps and maps of new documents all equal the oracle; what has no word has no score."""
    model.set_params(language="none", fields=in_words(weights)).fit(graph_of(DOCS))
    collection = Collection({d: split(fields, weights) for d, fields in DOCS.items()}, weights)
    ids = list(DOCS)
    scorable = [any(weights[name] and text for name, text in split(DOCS[d], weights).items()) for d in ids]
    assert 0 < sum(scorable) < len(ids)
    maps = dense(model.map_queries(QUERIES)) @ dense(model.map_documents(ids)).T
    new = dense(model.map_queries(QUERIES)) @ dense(model.map_documents([Document("x", DOCS[d]) for d in ids])).T
    for row, query in enumerate(QUERIES):
        terms = query.lower().replace(",", "").split()
        expected = np.array([oracle(terms, split(DOCS[d], weights), collection) if s else -np.inf
                             for d, s in zip(ids, scorable, strict=True)])  # fmt: skip
        np.testing.assert_allclose(model.score(query, ids), expected, rtol=2e-6, atol=2e-6)
        np.testing.assert_allclose(maps[row], np.where(scorable, expected, 0.0), rtol=2e-6, atol=2e-6)
        np.testing.assert_allclose(new[row], maps[row], rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("weights", WEIGHTS, ids=in_words)
def test_vsm(weights: dict[str, float]) -> None:
    compare(VSM(), vsm, weights)


@pytest.mark.parametrize("weights", WEIGHTS, ids=in_words)
@pytest.mark.parametrize("idf", ["lucene", "robertson", "atire"])
@pytest.mark.parametrize(("k1", "b", "k3"), [(1.2, 0.75, 8), (0, 0.75, 8), (2, 0, 0), (0.5, 1, 1000)])
def test_bm25(k1: float, b: float, k3: float, idf: str, weights: dict[str, float]) -> None:
    def oracle(query: list[str], fields: Mapping[str, list[str]], collection: Collection) -> float:
        return bm25(query, fields, collection, k1, b, k3, idf)

    compare(BM25(k1=k1, b=b, k3=k3, idf=idf), oracle, weights)


@pytest.mark.parametrize(("k1", "b", "k3"), [(1.2, 0.75, 8), (2, 0.3, 0)])
def test_bm25_of_one_field_is_the_paper_s_equation(k1: float, b: float, k3: float) -> None:
    compare(BM25(k1=k1, b=b, k3=k3), lambda q, d, c: plain_bm25(q, d["body"], c, k1, b, k3), {"body": 1.0})


def test_bm25_as_printed_is_equation_1_of_the_whole_document() -> None:
    """len(d) and avgDocLen count all fields together (11R, 3.3.2), and a word that nothing has finds nothing."""
    texts = {d: [word for text in fields.values() for word in text.split()] for d, fields in DOCS.items()}
    collection = Collection({d: {"all": words} for d, words in texts.items()}, {"all": 1.0})
    model = BM25(as_printed=True, language="none").fit(graph_of(DOCS))
    written = [Document("x", fields) for fields in DOCS.values()]
    for query in QUERIES:
        terms = query.lower().replace(",", "").split()
        expected = [plain_bm25(terms, words, collection, 1.2, 0.75, 8.0) if words else -np.inf
                    for words in texts.values()]  # fmt: skip
        np.testing.assert_allclose(model.score(query, list(DOCS)), expected, rtol=2e-6, atol=2e-6)
        new = dense(model.map_queries([query])) @ dense(model.map_documents(written)).T
        np.testing.assert_allclose(new[0], np.maximum(expected, 0.0), rtol=2e-6, atol=2e-6)
    assert np.isneginf(model.score("aple", list(DOCS))).all()
    assert np.isfinite(BM25(language="none").fit(graph_of(DOCS)).score("aple", list(DOCS))).any()


@pytest.mark.parametrize("weights", WEIGHTS, ids=in_words)
@pytest.mark.parametrize(
    ("smoothing", "parameter"),
    [("dirichlet", 200.0), ("dirichlet", 3.0), ("jelinek-mercer", 0.5), ("jelinek-mercer", 0.1)],
)
def test_lmir(smoothing: str, parameter: float, weights: dict[str, float]) -> None:
    setting = "mu" if smoothing == "dirichlet" else "lam"
    model = LMIR(smoothing=smoothing, **{setting: parameter})  # type: ignore[arg-type]
    compare(model, lambda q, d, c: log_likelihood(q, d, c, smoothing, parameter), weights)


def test_lmir_s_extra_coordinate() -> None:
    """len(q) of known words on one side, log(mu / (len(d) + mu)) on the other (11R, 3.3.3)."""
    model = LMIR(mu=10, fields="body", language="none").fit(graph_of(DOCS))
    width = len(model.vocabulary_)
    queries = dense(model.map_queries(["apple apple river unheardof", "unheardof"]))
    assert queries.shape[1] == width + 1
    assert queries[:, width].tolist() == [3.0, 0.0]
    images = dense(model.map_documents(list(DOCS)))
    lengths = np.array([len(fields["body"].split()) for fields in DOCS.values()])
    np.testing.assert_allclose(images[:, width], np.log(10 / (lengths + 10)), rtol=1e-6)
    assert (images[:, width] <= 0).all()


def test_robertson_s_idf_stops_at_zero() -> None:
    docs = {f"d{i}": {"body": "common" + (" rare" if i == 0 else "")} for i in range(5)}
    model = BM25(idf="robertson").fit(graph_of(docs))
    assert model.score("common", ["d0", "d1"]).tolist() == [0, 0]
    assert (model.score("rare", ["d0"]) > 0).all()


MODELS: dict[str, Callable[..., Any]] = {"vsm": VSM, "bm25": BM25, "lmir": LMIR}
each = pytest.mark.parametrize("kind", MODELS.values(), ids=MODELS)


@each
def test_unknown_documents_and_queries_have_no_score(kind: Callable[..., Any], small_graph: ClickGraph) -> None:
    model = kind(fields="title,body").fit(small_graph)
    scores = model.score("pizza", ["ny", "nowhere", "blank", "rome"])
    assert np.isfinite(scores).tolist() == [True, False, False, True]
    for query in ("zzzz qqqq", "", "?!"):
        assert (model.score(query, ["ny", "rome"]) == -np.inf).all()
        assert model.rank(query).doc_ids == []
        assert model.rerank(query, ["rome", "ny", "nowhere"]).doc_ids == ["rome", "ny", "nowhere"]


@each
def test_new_documents_by_their_text(kind: Callable[..., Any], small_graph: ClickGraph) -> None:
    model = kind(fields="title:3,body").fit(small_graph)
    ids = ["rome", "ny"]
    fields = {d: {n: small_graph.field(n)[small_graph.doc_ids.index(d)] for n in ("title", "body")} for d in ids}
    mixed = dense(model.map_documents(["ny", Document("new", fields["rome"]), "rome", Document("new", fields["ny"])]))
    np.testing.assert_allclose(mixed[[0, 2]], mixed[[3, 1]], rtol=1e-6)
    blank = dense(
        model.map_documents([Document("new", {}), Document("new", {"title": "zzzz", "other": "pizza"}), "blank"])
    )
    assert not blank.any()
    assert dense(model.map_documents([])).shape == (0, mixed.shape[1])


@each
def test_an_id_nobody_knows_cannot_be_mapped(kind: Callable[..., Any], small_graph: ClickGraph) -> None:
    model = kind(fields="title").fit(small_graph)
    with pytest.raises(
        InputError, match="no document 'nowhere' in the model: check the id, or give a Document with its text"
    ):
        model.map_documents(["ny", "nowhere"])


@each
def test_a_field_of_weight_zero_makes_nothing_findable(kind: Callable[..., Any]) -> None:
    docs = {"a": {"title": "river", "body": "stone"}, "b": {"title": "stone", "body": "river"}, "c": {"body": "river"}}
    model = kind(fields="title,body:0").fit(graph_of(docs))
    found = model.rank("river")
    assert found[0].doc_id == "a"
    assert "c" not in found.doc_ids
    assert model.score("river", ["c"]).tolist() == [-np.inf]
    for hit in found:
        assert hit.score == pytest.approx(model.score("river", [hit.doc_id])[0])


@each
def test_search_equals_scoring_everything(kind: Callable[..., Any]) -> None:
    model = kind(language="none", fields="title:2,body").fit(graph_of(DOCS))
    for query in QUERIES:
        scores = dict(zip(DOCS, model.score(query, list(DOCS)), strict=True))
        for hit in (ranking := model.rank(query, k=6)):
            assert hit.score == pytest.approx(scores[hit.doc_id], rel=1e-9)
        best = sorted(scores.values(), reverse=True)[: len(ranking)]
        np.testing.assert_allclose([hit.score for hit in ranking], best, rtol=1e-9)


@each
def test_document_text_is_needed(kind: Callable[..., Any]) -> None:
    bare = ClickGraph.build([PairCount("q", "d", 1)])
    with pytest.raises(MissingPart, match="needs document text: ingest documents with docs"):
        kind().fit(bare)
    wordless = graph_of({"a": {"title": "?!"}})
    with pytest.raises(MissingPart, match="the fields title hold no word"):
        kind().fit(wordless)


@each
def test_wrong_settings_are_refused_at_fit(kind: Callable[..., Any], small_graph: ClickGraph) -> None:
    for settings, message in [({"fields": "titel"}, "no field 'titel'"), ({"language": "klingon"}, "language must be")]:
        with pytest.raises(SettingError, match=message):
            kind(**settings).fit(small_graph)


@pytest.mark.parametrize(
    ("setting", "value"), [("k1", -1), ("b", 2), ("k3", "x"), ("idf", "none"), ("k1", float("nan"))]
)
def test_bm25_s_limits(setting: str, value: Any, small_graph: ClickGraph) -> None:
    with pytest.raises(SettingError, match=f"{setting} must be"):
        BM25(**{setting: value}).fit(small_graph)


def test_stop_words_and_stems_reach_the_model(small_graph: ClickGraph) -> None:
    dropping = BM25(fields="body", stop_words="drop").fit(small_graph)
    assert "the" not in dropping.vocabulary_
    assert np.isfinite(dropping.score("baking", ["bagel"])).all()
    assert not np.isfinite(BM25(fields="body", language="none").fit(small_graph).score("baking", ["bagel"])).any()


def test_refitting_forgets_the_old_collection(small_graph: ClickGraph) -> None:
    model = BM25(fields="title").fit(small_graph)
    model.score("pizza", ["pizza"])
    model.rank("pizza")
    model.fit(graph_of({"x": {"title": "salt and pepper"}, "y": {"title": "salt"}}))
    assert model.score("pizza", ["pizza", "x"]).tolist() == [-np.inf, -np.inf]
    assert model.rank("salt").doc_ids == ["y", "x"]
    model.set_params(language="none", unknown_words="drop").fit(small_graph)
    assert not np.isfinite(model.score("bagel", ["bagel"])).any()


def test_a_query_known_by_id_alone_has_no_words() -> None:
    graph = ClickGraph.build([PairCount("", "d0", 1, query_id="river")], [Document("d0", {"title": "river"})])
    model = BM25(fields="title").fit(graph)
    assert (model.score(graph.query_keys[0], ["d0"]) == -np.inf).all()


def test_longer_documents_score_lower_and_repeats_higher() -> None:
    docs = {"short": {"body": "river"}, "long": {"body": "river" + " stone" * 20}, "twice": {"body": "river river"}}
    for model in (BM25(fields="body"), LMIR(fields="body", mu=5)):
        model.fit(graph_of(docs))
        short, long, twice = model.score("river", ["short", "long", "twice"])
        assert long < short < twice, model.name


@pytest.mark.parametrize("pair", list(itertools.pairwise([0.0, 0.25, 0.5, 0.75, 1.0])))
def test_b_discounts_long_documents_more(pair: tuple[float, float]) -> None:
    docs = {"long": {"body": "river" + " stone" * 20}, "short": {"body": "salt"}}
    low, high = (BM25(fields="body", b=b).fit(graph_of(docs)).score("river", ["long"])[0] for b in pair)
    assert high < low


def test_models_over_the_same_counts_leave_them_alone() -> None:
    """A weight of 0 drops words from the images of one model, not from the counts that others share."""
    docs = [Document("a", {"title": "salt river", "body": "stone"}), Document("b", {"title": "stone", "body": "salt"})]
    study = Study(ClickGraph.build([Impression("salt", ["a", "b"], ["a"])], docs))
    VSM(fields="title,body:0").fit_on(study)
    second = BM25(fields="title,body").fit_on(study)
    alone = BM25(fields="title,body").fit(study.graph)
    assert second.score("stone salt", ["a", "b"]).tolist() == alone.score("stone salt", ["a", "b"]).tolist()
