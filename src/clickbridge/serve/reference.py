"""`/docs`: the endpoints as one plain page, made from the OpenAPI schema. The page loads no other files."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

HEAD = "<!doctype html><html lang='en'><meta charset='utf-8'><title>clickbridge</title><h1>clickbridge</h1>"


def reference_page(schema: dict[str, Any]) -> str:
    lines = [HEAD, f"<p>{escape(str(schema['info']['description']))} <a href='openapi.json'>openapi.json</a></p>"]
    for path, methods in schema["paths"].items():
        for method, what in methods.items():
            lines.append(f"<h2>{method.upper()} {escape(path)}</h2><p>{escape(what.get('description', ''))}</p>")
            lines += ["<ul>", *_parameters(what), *_fields(schema, what), "</ul>"]
    return "\n".join([*lines, "</html>"])


def _parameters(what: dict[str, Any]) -> Iterator[str]:
    for given in what.get("parameters", ()):
        about = " ".join(part for part in (_kind(given["schema"]), given.get("description", "")) if part)
        yield _line(given["name"], given.get("required", False), about)


def _fields(schema: dict[str, Any], what: dict[str, Any]) -> Iterator[str]:
    """The fields of a body."""
    body = what.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    for option in body.get("anyOf", [body]):
        name = option.get("$ref", "").rpartition("/")[2]
        found = schema["components"]["schemas"].get(name, {})
        for field, about in found.get("properties", {}).items():
            yield _line(field, field in found.get("required", ()), _kind(about))


def _kind(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(option) for option in schema["anyOf"]))
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(schema.get("type", "anything"))


def _line(name: str, required: bool, about: str) -> str:
    return f"<li><code>{escape(name)}</code>{'' if required else ' (optional)'}: {escape(about)}</li>"
