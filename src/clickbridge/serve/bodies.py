"""Reads request bodies up to a limit, and describes them in OpenAPI."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import Request, Response
from pydantic import BaseModel, TypeAdapter
from starlette.requests import ClientDisconnect

from clickbridge.serve.limits import DRAINED, MAX_BODY
from clickbridge.serve.refusals import JSON, Refused
from clickbridge.serve.schemas import ErrorAnswer

REF = "#/components/schemas/{model}"


async def read_body(request: Request) -> bytes:
    """The body, up to the size limit. Some more is read and dropped, so that the client receives the error."""
    parts: list[bytes] = []
    size = 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size <= MAX_BODY:
                parts.append(chunk)
            elif size > DRAINED:
                break
    except ClientDisconnect:
        raise Refused(400, "disconnected", "the body did not arrive") from None
    if size > MAX_BODY:
        raise Refused(413, "too_large", f"a body has at most {MAX_BODY >> 20} MiB")
    return b"".join(parts) if len(parts) != 1 else parts[0]


def reply(value: Any, status: int = 200) -> Response:
    """A JSON response. NumPy arrays become lists."""
    return Response(orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY), status, media_type=JSON)


SCHEMAS: dict[str, Any] = {}
"""Schemas of bodies, by name, for OpenAPI."""


def taking(body: Any, answer: Any, about: str = "") -> dict[str, Any]:
    """The OpenAPI description of the body, for a route that reads it itself."""
    schema = TypeAdapter(body).json_schema(ref_template=REF)
    SCHEMAS.update(schema.pop("$defs", {}))
    if isinstance(body, type) and issubclass(body, BaseModel):
        SCHEMAS[body.__name__] = schema
        schema = {"$ref": REF.format(model=body.__name__)}
    content = {"application/json": {"schema": schema}}
    return {
        "response_model": answer,
        "openapi_extra": {"requestBody": {"required": True, "content": content}},
    }


ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorAnswer, "description": "Refused"},
    503: {"model": ErrorAnswer, "description": "Try again later"},
}
