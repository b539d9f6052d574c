"""The form of all errors: `{"error": {"code", "message", "field"?}, "request_id"}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import ValidationError
from starlette.responses import Response

JSON = "application/json"
SHOWN = 200
"""The most characters of a value that a message repeats."""


class Refused(Exception):
    """An error to answer a request with."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.field = status, code, message, field
        self.headers = dict(headers or {})


def busy(message: str, code: str = "busy", seconds: int = 1) -> Refused:
    """The request is fine, but should be sent again later."""
    return Refused(503, code, message, headers={"Retry-After": str(seconds)})


def invalid(error: ValidationError) -> Refused:
    """The error for a body that does not fit its schema: the first problem, and its field."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or None
    more = error.error_count() - 1
    message = str(first["msg"])[:SHOWN] + (f" (and {more} more)" if more else "")
    return Refused(422, "invalid", message, field)


def refusal(error: Refused, request_id: str) -> Response:
    what: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.field is not None:
        what["field"] = error.field
    body = orjson.dumps({"error": what, "request_id": request_id})
    return Response(body, error.status, headers=error.headers, media_type=JSON)
