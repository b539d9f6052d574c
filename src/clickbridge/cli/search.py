"""Verbs that ask a model: search, similar."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clickbridge.cli.console import Json, ModelPath, keep_apart, print_json, print_table, progress_bar, say
from clickbridge.cli.fitting import WhereToWork
from clickbridge.cli.options import with_options
from clickbridge.errors import InputError, SettingError

if TYPE_CHECKING:
    from clickbridge.engines.base import Engine
    from clickbridge.models.fitted import Fitted

REASONS = 6
NOTHING = "the model has no reason to give"
CHUNK = 1024
"""Topics searched for at once."""
RUN_DEPTH = 1000
"""Documents of each topic in a run by default: what evaluation tools expect."""


@with_options
def search(
    model: ModelPath,
    query: Annotated[str | None, typer.Argument(help="What to look for.", show_default=False)] = None,
    k: Annotated[int | None, typer.Option("-k", min=1, max=10_000, help="How many documents; 1,000 in a run.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say in words why each document was found.")] = False,
    queries: Annotated[str | None, typer.Option(help="Topics to search for, one per line: id, tab, text.")] = None,
    out: Annotated[Path | None, typer.Option(help="TREC run to write for --queries.")] = None,
    *,
    where: WhereToWork,
    json: Json = False,
) -> None:
    """Search the whole collection for one query, or for a file of topics."""
    from clickbridge.insight.reasons import reasons
    from clickbridge.models.model_folder import load

    if (query is None) == (queries is None) or (queries is None) != (out is None):
        raise SettingError("search needs a query, or --queries TOPICS with --out RUN")
    if queries is not None and out is not None:
        with where.start() as runs_on:
            _search_all(model, queries, out, k or RUN_DEPTH, runs_on, json)
        return
    if where != WhereToWork():
        raise SettingError("--engine, --threads and --memory are for --queries: one query is searched for here")
    assert query is not None
    k = k or 10
    opened = load(model)
    query = readable(query)
    hits = opened.rank(query, k)
    if opened.falls_back(query):
        say(f"{opened.spec}: no known query is like {query!r}; this is its base model's answer")
    why = [reasons(opened.fitted, query, hit.doc_id, most=REASONS) for hit in hits] if explain else []
    if json:
        rows = [{"doc_id": h.doc_id, "score": h.score, "title": opened.title(h.doc_id)} for h in hits]
        for row, own in zip(rows, why, strict=False):
            row["why"] = [{"reason": reason.text, "share": reason.share} for reason in own]
            row["explanation"] = _explanation(opened.fitted, query, str(row["doc_id"]))
        print_json({"query": query, "model": opened.spec, "hits": rows})
    elif not hits:
        say(f"{opened.spec} finds nothing for {query!r}")
    else:
        table = [(rank, h.score, h.doc_id, opened.title(h.doc_id)) for rank, h in enumerate(hits, 1)]
        print_table("", ("", "score", "doc_id", "title"), table)
        for hit, own in zip(hits, why, strict=False):
            told = [(f"{reason.share:.0%}", reason.text) for reason in own] or [("", NOTHING)]
            print_table(f"\n{hit.doc_id} {opened.title(hit.doc_id)}", ("share", "why"), told)


def _explanation(fitted: Fitted, query: str, doc_id: str) -> dict[str, Any] | None:
    """The score by pairs of features, where the model has such."""
    from clickbridge.errors import ClickbridgeError

    try:
        return asdict(fitted.explain(query, doc_id, REASONS))
    except ClickbridgeError:  # the sentences come from parts of the model
        return None


def _search_all(model: Path, topics: str, out: Path, k: int, engine: Engine, json: bool) -> None:
    """A run over all topics; those without an answer are counted, and not in the run."""
    from clickbridge.io.topics import read_topics
    from clickbridge.io.trec import write_run
    from clickbridge.models.model_folder import load

    keep_apart([out], [topics, model])
    asked, opened = read_topics(topics), load(model)
    with progress_bar() as progress:
        texts, rankings = list(asked.values()), []
        for start in range(0, len(texts), CHUNK):
            progress(f"topics, {start + 1:,} of {len(texts):,}")
            rankings += opened.rank_many(texts[start : start + CHUNK], k, engine=engine)
    answered = sum(bool(ranking) for ranking in rankings)
    write_run(out, zip(asked, rankings, strict=True), opened.spec)
    summary = {"run": str(out), "model": opened.spec, "topics": len(asked), "answered": answered}
    if json:
        print_json(summary)
    else:
        print_table("", ("", "value"), list(summary.items()))
    if answered < len(asked):
        say(f"{opened.spec} answers {answered:,} of {len(asked):,} topics")


def similar(
    model: ModelPath,
    query: Annotated[str | None, typer.Option(help="Find queries like this one.")] = None,
    doc: Annotated[str | None, typer.Option(help="Find documents like the one with this id.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="How many.")] = 3,
    min_clicks: Annotated[int, typer.Option(min=1, help="Show only queries with this many clicks.")] = 1,
    by: Annotated[str, typer.Option(help="latent: in the model's own space; clicks: by clicks in common.")] = "latent",
    json: Json = False,
) -> None:
    """Find similar queries or similar documents."""
    from clickbridge.models.model_folder import load
    from clickbridge.skernel.similar_queries import similar_by_clicks

    if (query is None) == (doc is None):
        raise SettingError("similar needs either --query or --doc")
    if by not in ("latent", "clicks") or (by == "clicks" and doc is not None):
        raise SettingError(f"--by is latent, or clicks together with --query; got {by!r}")
    if query is not None and not query.strip():
        raise InputError("the query is empty")
    opened = load(model)
    if query is not None:
        asked = readable(query)
        latent = opened.similar_queries
        near = (
            latent(asked, k, min_clicks) if by == "latent" else similar_by_clicks(opened.fitted, asked, k, min_clicks)
        )
        rows = [{"query": name, "similarity": s} for name, s in near]
    else:
        assert doc is not None
        if doc not in opened.doc_ids_:
            raise InputError(f"no document {doc!r} in the model: check the id")
        hits = opened.similar_documents(doc, k)
        rows = [{"doc_id": h.doc_id, "similarity": h.score, "title": opened.title(h.doc_id)} for h in hits]
    if json:
        print_json({"query": query, "doc": doc, "model": opened.spec, "similar": rows})
    elif not rows:
        say(f"{opened.spec} knows nothing like {(query if doc is None else doc)!r}")
    else:
        print_table("", list(rows[0]), [list(row.values()) for row in rows])


def readable(query: str) -> str:
    """Bytes of the shell that are not UTF-8 become replacement marks."""
    return query.encode(errors="replace").decode()
