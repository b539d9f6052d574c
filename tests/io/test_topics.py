"""Topics in the forms they come in, and lists made of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from clickbridge import lists_of_run, read_topics
from clickbridge.errors import InputError
from clickbridge.io.topics import labelled_by
from clickbridge.types import ResultList

TREC = """
<top>
<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations.
</top>
<top>
<num>302</num>
<title>Poliomyelitis
 and Post-Polio</title>
</top>
"""


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        ("1\tny pizza\n2\t big apple \n", {"1": "ny pizza", "2": "big apple"}),
        ("query_id\ttext\tmore\n1\tny pizza\tx\n", {"1": "ny pizza"}),
        ('{"_id": "a", "text": "ny pizza"}\n{"query_id": 7, "query": "b"}\n', {"a": "ny pizza", "7": "b"}),
        (TREC, {"301": "International Organized Crime", "302": "Poliomyelitis and Post-Polio"}),
    ],
)
def test_topics(tmp_path: Path, text: str, topics: dict[str, str]) -> None:
    (tmp_path / "topics").write_text(text)
    assert read_topics(tmp_path / "topics") == topics


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("", "holds no topic"),
        ("just words\n", "line 1: a topic is an id without blanks, a tab and a text"),
        ("1\ta\n1\tb\n", "line 2: topic '1' occurs twice"),
        ("{broken\n", "line 1: not JSON"),
        ("1\t \n", "line 1: a topic is an id"),
    ],
)
def test_what_are_no_topics(tmp_path: Path, text: str, refusal: str) -> None:
    (tmp_path / "topics").write_text(text)
    with pytest.raises(InputError, match=refusal):
        read_topics(tmp_path / "topics")


def test_lists_of_a_run() -> None:
    run, topics = {"1": ["a", "b", "c"]}, {"1": "ny pizza", "2": "other"}
    assert lists_of_run(run, topics, {"1": {"b": 2.0}}, depth=2) == [
        ResultList("1", "ny pizza", ["a", "b"], [0.0, 2.0])
    ]
    assert lists_of_run(run) == [ResultList("1", "", ["a", "b", "c"])]
    with pytest.raises(InputError, match="no topic has the query id '1'"):
        lists_of_run(run, {"q1": "ny pizza"})


def test_labels_from_judgments() -> None:
    lists = [ResultList("1", "x", ["a", "b"], [1.0, 1.0]), ResultList("2", "y", ["a"], [1.0])]
    assert [result.labels for result in labelled_by(lists, {"1": {"b": 3.0}})] == [[0.0, 3.0], None]
    with pytest.raises(InputError, match="no list is judged: query ids of the lists are like '1'"):
        labelled_by(lists, {"q-1": {"a": 1.0}})


def test_lists_of_a_run_from_files(tmp_path: Path) -> None:
    files = {"run": "q1 Q0 d1 1 2.5 x\nq1 Q0 d2 2 1.5 x\n", "topics": "q1\tpizza\n", "qrels": "q1 0 d2 1\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (found,) = lists_of_run(str(tmp_path / "run"), tmp_path / "topics", tmp_path / "qrels")
    assert (found.query, found.results, found.labels) == ("pizza", ["d1", "d2"], [0.0, 1.0])
