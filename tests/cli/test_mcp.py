"""The Model Context Protocol over stdio, asked by the official SDK's client."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

pytestmark = pytest.mark.filterwarnings("ignore")


def ask(model: Path, *calls: tuple[str, dict[str, Any]]) -> tuple[list[str], list[Any]]:
    """Names of the tools, and what each call gave: its value, or the text of its error."""

    async def talk() -> tuple[list[str], list[Any]]:
        command = StdioServerParameters(
            command=sys.executable, args=["-P", "-m", "clickbridge", "mcp", str(model)], env={**os.environ}
        )
        async with Client(command) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            return tools, [_value(await client.call_tool(name, arguments)) for name, arguments in calls]

    return asyncio.run(asyncio.wait_for(talk(), 120))


def _value(result: Any) -> Any:
    if result.is_error:
        return result.content[0].text
    given = result.structured_content
    return given.get("result", given) if given is not None else json.loads(result.content[0].text)


def test_the_tools_of_a_model(built: Path) -> None:
    tools, (found, ordered, none, refused) = ask(
        built / "model",
        ("search", {"query": "ny pizza", "k": 2}),
        ("rerank", {"query": "pizza", "doc_ids": ["unknown", "pizza"]}),
        ("explain", {"query": "pizza", "doc_id": "pizza"}),
        ("search", {"query": "pizza", "k": 0}),
    )
    assert tools == ["search", "rerank", "similar_queries", "explain"]
    assert [row["doc_id"] for row in found] == ["pizza", "ny"] or len(found) == 2
    assert [(row["doc_id"], row["score"] is None) for row in ordered] == [("pizza", False), ("unknown", True)]
    assert none["doc_id"] == "pizza"
    assert "k must be from 1 to 100; got 0" in refused


def test_a_model_that_is_not_there(call: Any, tmp_path: Path) -> None:
    assert call("mcp", tmp_path / "none").code == 1
