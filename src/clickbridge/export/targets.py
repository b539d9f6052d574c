"""All targets of `clickbridge export`. Each has one line here and a file of its own in this folder."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from clickbridge import __version__
from clickbridge.errors import NotSupported, SettingError
from clickbridge.export.folder import check_folder, export_folder
from clickbridge.export.source import Source
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.models.fitted import Fitted
from clickbridge.models.model import Model

TARGETS = {
    "opensearch": "an index with features and vectors, and its searches",
    "elasticsearch": "the same for Elasticsearch 8.15 and later",
    "qdrant": "a collection of dense or sparse vectors",
    "pgvector": "a PostgreSQL table with vectors",
    "faiss": "flat indexes with ids",
    "parquet": "the document map as a table",
    "vespa": "an application with tensors and a rank profile",
    "synonyms": "synonyms learned from clicks, for Solr, Elasticsearch and OpenSearch",
    "judgments": "grades from clicks, for the Search Relevance Workbench and Quepid",
    "letor": "features and grades of shown results, for other learners",
    "trec": "topics, judgments from clicks, and a run",
    "elasticsearch-ltr": "a feature set and a model for the Learning to Rank plugin",
}


def export(
    model: Model | Fitted, target: str, out: str | Path, graph: ClickGraph | None = None, min_users: int = 2
) -> Path:
    """Writes the folder of a target. Targets that consist of clicks need the GRAPH."""
    source, module = _source(model, target, graph, min_users)
    about = {"kind": "clickbridge export", "target": target, "model": source.fitted.spec, "clickbridge": __version__}
    check_folder(Path(out))
    with export_folder(Path(out), about) as folder:
        module.write(source, folder)
    return Path(out)


def request(model: Model | Fitted, target: str, query: str, k: int = 10) -> Any:
    """The request to the engine for a query: a JSON body or SQL, with the query's numbers."""
    source, module = _source(model, target, None, 1)
    if not hasattr(module, "request"):
        raise NotSupported(f"{target} is not an engine that can be asked")
    return module.request(source, query, k)


def _source(model: Model | Fitted, target: str, graph: ClickGraph | None, users: int) -> tuple[Source, ModuleType]:
    if target not in TARGETS:
        raise SettingError(f"--to must be one of {', '.join(TARGETS)}; got {target!r}")
    fitted = model.fitted if isinstance(model, Model) else model
    home = f"{__name__.rpartition('.')[0]}.{target.replace('-', '_')}"
    return Source(fitted, target, graph, users), import_module(home)
