"""What a person at the prompt tries first."""

from __future__ import annotations

import inspect
import logging
from pathlib import Path

import pytest

import clickbridge
from clickbridge import (
    BM25,
    PLS,
    RMLS,
    VSM,
    ClickGraph,
    Document,
    InputError,
    LinearSum,
    SettingError,
    Sum,
    Walk,
    build_model,
)
from clickbridge.models.registry import TABLES, model_class


def test_models_add_up(small_graph: ClickGraph) -> None:
    both = BM25(k1=2.0) + PLS(dim=2)
    assert isinstance(both, Sum)
    assert both.spec == "bm25+pls"
    assert [type(part) for part in (both + VSM()).parts] == [BM25, PLS, VSM]
    assert [type(part) for part in (VSM() + both).parts] == [VSM, BM25, PLS]
    assert isinstance(BM25() + Walk(), LinearSum)
    fixed = Sum([BM25(), VSM()], weights="1,0.5") + PLS(dim=2)
    assert [part.spec for part in fixed.parts] == ["bm25+vsm", "pls"]
    assert both.fit(small_graph).rank("pizza", 1).doc_ids == ["pizza"]
    with pytest.raises(TypeError):
        BM25() + 1  # type: ignore[operator]


def test_settings_as_python_has_them(small_graph: ClickGraph) -> None:
    by_dict, by_text = BM25(fields={"title": 3, "body": 0.5}), BM25(fields="title:3,body:0.5")
    assert by_dict.settings == by_text.settings
    assert by_dict.fit(small_graph).rank("pizza", 3) == by_text.fit(small_graph).rank("pizza", 3)
    assert Sum([BM25(), VSM()], weights=[1, 0.5]).settings.weights == "1,0.5"
    with pytest.raises(SettingError, match="no field '3' in the documents"):
        BM25(fields=3).fit(small_graph)
    assert build_model("pls", dim=10).dim == 10


def test_ids_may_be_whole_numbers_and_are_a_list() -> None:
    log = [clickbridge.PairCount("pizza", "1"), clickbridge.PairCount("pizza", "2")]
    docs = [clickbridge.Document("1", {"title": "Pizza"}), clickbridge.Document("2", {"title": "Rome"})]
    model = BM25().fit(ClickGraph.build(log, docs))
    assert model.rerank("pizza", [2, 1]).doc_ids == ["1", "2"]  # type: ignore[list-item]
    with pytest.raises(InputError, match=r"doc_ids must be a list of document ids, such as \['1'\]; got the text '1'"):
        model.score("pizza", "1")


@pytest.mark.parametrize("name", [name for table in TABLES.values() for name in table])
def test_help_names_every_setting(name: str) -> None:
    kind = model_class(name)
    text = inspect.getdoc(kind) or ""
    signature = inspect.signature(kind)
    for setting in kind.declared().values():
        assert f"{setting.name} : {type(setting.default).__name__}, default {setting.default!r}" in text
        assert f"{setting.heading}\n---" in text
        assert setting.help[1:] in " ".join(text.split())
        assert signature.parameters[setting.name].annotation is type(setting.default)
    assert kind.about in text


def test_progress_is_logged_by_default(small_graph: ClickGraph, caplog: pytest.LogCaptureFixture) -> None:
    lines: list[str] = []
    with caplog.at_level(logging.INFO, logger="clickbridge"):
        RMLS(dim=2).fit(small_graph, progress=lines.append)
        assert lines
        assert not caplog.records
        RMLS(dim=2).fit(small_graph)
    assert [record.getMessage() for record in caplog.records] == lines
    assert {record.name for record in caplog.records} == {"clickbridge"}


@pytest.mark.parametrize("spec", ["bm25", "pls", "bm25+pls", "rrf:bm25+pls", "online:bm25"])
def test_a_fitted_value_prints_as_one_line(spec: str, small_graph: ClickGraph) -> None:
    """It holds all arrays of a model; nobody wants to see these in a notebook."""
    fitted = build_model(spec).fit(small_graph).fitted
    words = f"{fitted.spec}: {len(fitted.queries.keys)} queries, {len(fitted.doc_ids)} documents"
    assert repr(fitted) == f"{type(fitted).__name__}({words})"


@pytest.mark.parametrize("wrong", ["graph", Path("graph"), None, [1]])
def test_fit_says_that_it_needs_a_graph(wrong: object) -> None:
    with pytest.raises(InputError, match=r"fit needs a ClickGraph, such as ClickGraph\.open\('folder'\); got "):
        PLS().fit(wrong)  # type: ignore[arg-type]


def test_fit_says_what_an_engine_and_progress_are(small_graph: ClickGraph) -> None:
    with pytest.raises(
        SettingError, match=r"engine is an object, such as Local\(threads=2\) or Ray\(\); got the text 'ray'"
    ):
        VSM().fit(small_graph, engine="ray")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="progress is a function of one line of text, such as print; got True"):
        VSM().fit(small_graph, progress=True)  # type: ignore[arg-type]


def test_titles_come_with_rankings(small_graph: ClickGraph) -> None:
    model = PLS(dim=2).fit(small_graph)
    assert model.rank("pizza", 1).titles == ["Pizza"]
    assert model.rerank("pizza", ["nobody", "rome"]).titles == ["Rome", ""]
    assert model.similar_documents("pizza", 1).titles != [""]
    assert [doc_id for doc_id, score in model.rank("pizza", 2)] == model.rank("pizza", 2).doc_ids


def test_documents_suffice_for_models_of_text_and_others_say_what_they_need() -> None:
    graph = ClickGraph.build(docs=[Document("d1", {"title": "New York"}), Document("d2", {"title": "Pizza"})])
    assert BM25().fit(graph).rank("pizza").doc_ids == ["d2"]
    with pytest.raises(InputError, match="build the GRAPH from a log with clicks") as refused:
        PLS().fit(graph)
    assert "ingest" not in str(refused.value), "that is a word of the command line"


def test_similar_queries_are_a_list_that_a_notebook_shows_as_a_table(small_graph: ClickGraph) -> None:
    found = PLS(dim=2).fit(small_graph).similar_queries("ny pizza", k=1)
    assert found == [tuple(found[0])]
    assert isinstance(found, list)
    assert f"<td>{found[0][0]}</td>" in found._repr_html_()  # type: ignore[attr-defined]
    assert Walk().fit(small_graph).similar_queries("unheard of")._repr_html_() == "<p>no similar queries</p>"  # type: ignore[attr-defined]
