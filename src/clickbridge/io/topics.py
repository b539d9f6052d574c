"""Topics: the queries of a test collection by their ids. The file is TSV, JSONL, or in TREC's own format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import orjson

from clickbridge.errors import InputError, shown
from clickbridge.io.json_text import parse_json
from clickbridge.io.streams import lines, open_stream
from clickbridge.io.trec import read_qrels, read_run
from clickbridge.types import ResultList

HEADERS = {"query_id", "qid", "id", "topic", "query-id", "_id", "num"}
_TOP = re.compile(r"<top>(.*?)(?=<top>|\Z)", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"<num>\s*(?:Number:)?\s*([^\s<]+)", re.IGNORECASE)
_TITLE = re.compile(r"<title>\s*(?:Topic:)?\s*([^<]+)", re.IGNORECASE)


def read_topics(path: str | Path) -> dict[str, str]:
    """Reads topics: the text of each query by its id, in the order of the file.

    Parameters
    ----------
    path : str or Path
        Lines of `query_id TAB text` (a header is skipped), or of JSON with `query_id` and `query` (or `_id` and
        `text`), or a TREC topic file with `<top>`, `<num>` and `<title>`.

    Returns
    -------
    dict of str to str
        Query texts by query id.

    Examples
    --------
    >>> from clickbridge import read_topics
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
    ...     print("q1\\tny pizza", file=file, flush=True)
    ...     read_topics(file.name)
    {'q1': 'ny pizza'}
    """
    name, out = str(path), dict[str, str]()
    for number, query_id, text in _topics(name):
        if not query_id or query_id.split() != [query_id] or not text.strip():
            raise InputError(f"{name}, line {number}: a topic is an id without blanks, a tab and a text")
        if query_id in out:
            raise InputError(f"{name}, line {number}: topic {shown(query_id)} occurs twice; give each once")
        out[query_id] = text.strip()
    if not out:
        raise InputError(f"{name} holds no topic: expected lines of an id, a tab and a text")
    return out


def _topics(path: str) -> Iterator[tuple[int, str, str]]:
    with open_stream(path) as stream:
        found = [line.decode("utf-8", "replace") for line in lines(stream, path)]
    if any(line.lower().lstrip().startswith("<top>") for line in found[:50]):
        for number, match in enumerate(_TOP.finditer("\n".join(found)), 1):
            name, title = _NUMBER.search(match[1]), _TITLE.search(match[1])
            yield number, name[1] if name else "", " ".join(title[1].split()) if title else ""
        return
    for number, line in enumerate(found, 1):
        if line.strip():
            query_id, text = _json(path, number, line) if line.startswith("{") else _cells(line)
            if number > 1 or query_id.lower() not in HEADERS:
                yield number, query_id, text


def _cells(line: str) -> tuple[str, str]:
    query_id, _, text = line.partition("\t")
    return query_id.strip(), text.split("\t")[0]


def _json(path: str, number: int, line: str) -> tuple[str, str]:
    try:
        record = parse_json(line)
    except orjson.JSONDecodeError as error:
        raise InputError(f"{path}, line {number}: not JSON: {error.msg}") from None
    query_id = next((record[name] for name in ("query_id", "_id", "id", "qid") if name in record), "")
    return str(query_id), str(next((record[name] for name in ("query", "text", "title") if name in record), ""))


def lists_of_run(
    run: Mapping[str, list[str]] | str | Path,
    topics: Mapping[str, str] | str | Path | None = None,
    grades: Mapping[str, Mapping[str, float]] | str | Path | None = None,
    depth: int | None = None,
) -> list[ResultList]:
    """Turns a run into lists to re-rank, in the order of the run.

    Parameters
    ----------
    run : mapping of str to list of str, str or Path
        Document ids by query id, as `read_run` gives them, or the file of a run.
    topics : mapping of str to str, str or Path, optional
        The texts of the queries, as `read_topics` gives them, or their file.
    grades : mapping of str to mapping of str to float, str or Path, optional
        Judgments, as `read_qrels` gives them, or their file. They become the labels of the results; an unjudged
        document gets 0.
    depth : int, optional
        Use only the first `depth` documents of each query.

    Returns
    -------
    list of ResultList

    Examples
    --------
    >>> from clickbridge import lists_of_run
    >>> lists_of_run({"q1": ["d1", "d2"]}, {"q1": "ny pizza"}, {"q1": {"d2": 2.0}})[0].labels
    [0.0, 2.0]
    """
    run = read_run(run) if isinstance(run, str | Path) else run
    topics = read_topics(topics) if isinstance(topics, str | Path) else topics
    grades = read_qrels(grades) if isinstance(grades, str | Path) else grades
    out = []
    for query_id, ranked in run.items():
        results = ranked[:depth]
        if topics is not None and query_id not in topics:
            raise InputError(
                f"no topic has the query id {shown(query_id)} of the run; ids are like {next(iter(topics))!r}"
            )
        labels = None if grades is None else [grades.get(query_id, {}).get(doc_id, 0.0) for doc_id in results]
        out.append(ResultList(query_id, "" if topics is None else topics[query_id], results, labels))
    return out


def labelled_by(lists: list[ResultList], grades: Mapping[str, Mapping[str, float]]) -> list[ResultList]:
    """The lists with labels from judgments instead of their own. A query without judgments has no labels."""
    judged = {result.query_id for result in lists} & set(grades)
    if not judged:
        raise InputError(
            f"no list is judged: query ids of the lists are like {lists[0].query_id!r}, those of the judgments like "
            f"{next(iter(grades))!r}"
        )
    for result in lists:
        own = grades.get(result.query_id)
        result.labels = None if own is None else [own.get(doc_id, 0.0) for doc_id in result.results]
    return lists
