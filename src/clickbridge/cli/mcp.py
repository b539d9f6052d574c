"""`clickbridge mcp`: a model as tools of the Model Context Protocol, over standard input and output."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from clickbridge.cli.console import ModelPath
from clickbridge.errors import ClickbridgeError, InputError, MissingPart
from clickbridge.wording import count_of

MOST = 100


def mcp(model: ModelPath) -> None:
    """Serve a model to assistants: search, rerank, similar queries and explain, over stdio."""
    from clickbridge.models.model_folder import load

    make_server(load(model)).run("stdio")


def make_server(model: Any) -> Any:
    """The tools of a model. What is wrong with a call is the text of its error."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError:
        raise MissingPart("mcp needs the protocol's SDK: pip install 'clickbridge[mcp]'") from None

    server = MCPServer(
        "clickbridge",
        instructions=f"Search learned from clicks ({model.spec}, {count_of(len(model.doc_ids_), 'document')}).",
    )

    def told(work: Any) -> Any:
        try:
            return work()
        except ClickbridgeError as error:
            raise ToolError(str(error)) from None

    @server.tool()
    def search(query: str, k: int = 10) -> list[dict[str, Any]]:
        """Searches the collection: the best documents for a query, with rank, doc_id, score and title."""
        return told(lambda: model.rank(query, _few(k)).rows())

    @server.tool()
    def rerank(query: str, doc_ids: list[str]) -> list[dict[str, Any]]:
        """Re-ranks the given documents, best first. Documents that the model cannot score come last, without a score,
        in the order given."""
        return told(lambda: [_plain(row) for row in model.rerank(query, doc_ids).rows()])

    @server.tool()
    def similar_queries(query: str, k: int = 5) -> list[dict[str, Any]]:
        """Queries of the log with nearly the same meaning, and their similarity."""
        return told(lambda: [{"query": text, "similarity": s} for text, s in model.similar_queries(query, _few(k))])

    @server.tool()
    def explain(query: str, doc_id: str) -> dict[str, Any]:
        """Explains a score: which words of the query and of the document it comes from, and the clicks this was learned
        from."""
        return told(lambda: asdict(model.explain(query, doc_id, 6)))

    return server


def _few(k: int) -> int:
    if not 1 <= k <= MOST:
        raise InputError(f"k must be from 1 to {MOST}; got {k}")
    return k


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row for JSON, which has no infinity: a missing score becomes null."""
    return row | {"score": None} if row["score"] == float("-inf") else row
