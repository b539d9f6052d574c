"""The steps for every request: its id, key, rate limit and timing, the log line, and the headers of the answer."""

from __future__ import annotations

import re
import secrets
import sys
import time
import traceback
from typing import Any

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clickbridge.errors import ClickbridgeError
from clickbridge.serve.access import Keys, Rates
from clickbridge.serve.answers import translated
from clickbridge.serve.metrics import Metrics
from clickbridge.serve.refusals import Refused, busy, refusal
from clickbridge.serve.store import StoreError

REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
OPEN = frozenset({"/health", "/favicon.ico"})
FEEDBACK = ("/feedback", "/ubi_queries", "/ubi_events")
ADMIN = re.compile(r"/models/[^/]+/(reload|rollback)|/experiments|/metrics")
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"),
    (b"cache-control", b"no-store"),
]


class Gate:
    def __init__(self, app: ASGIApp, keys: Keys, rates: Rates, metrics: Metrics, log: bool, public: bool) -> None:
        self.app, self.keys, self.rates, self.metrics, self.log = app, keys, rates, metrics, log
        self.open = OPEN | ({"/"} if public else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = dict(scope["headers"])
        request_id = _request_id(headers)
        state: dict[str, Any] = scope.setdefault("state", {})
        state["request_id"], state["notes"] = request_id, {}
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *HEADERS, (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            self._admit(scope, headers)
            await self.app(scope, receive, answer)
        except Refused as error:
            await refusal(error, request_id)(scope, receive, answer)
        except Exception:
            # The application has already answered, and raises the error again for servers that log it themselves.
            if not status:
                raise
        finally:
            self._note(scope, status, time.perf_counter() - started, request_id)

    def _admit(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        path = scope["path"]
        caller = None
        if path not in self.open and not path.startswith("/page/") and scope["method"] != "OPTIONS":
            caller = self.keys.check(_given_key(headers), needed(path))
        if path not in OPEN:
            self.rates.check(caller or (scope.get("client") or ("",))[0])

    def _note(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        route = getattr(scope.get("route"), "path", "other")
        self.metrics.requests.labels(route, str(status)).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        if self.log and route != "/health":
            line = {
                "at": round(time.time(), 3),
                "request_id": request_id,
                "method": scope["method"],
                "route": route,
                "status": status,
                "ms": round(seconds * 1e3, 2),
                **scope["state"]["notes"],
            }
            write_log(line)


def needed(path: str) -> str:
    """The scope that a path needs."""
    if path.startswith(FEEDBACK):
        return "feedback"
    return "admin" if ADMIN.fullmatch(path) else "rank"


def write_log(line: dict[str, Any]) -> None:
    sys.stderr.buffer.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
    sys.stderr.buffer.flush()


def _request_id(headers: dict[bytes, bytes]) -> str:
    given = headers.get(b"x-request-id", b"")
    return given.decode() if REQUEST_ID.fullmatch(given) else secrets.token_hex(8)


def _given_key(headers: dict[bytes, bytes]) -> str | None:
    bearer = headers.get(b"authorization", b"").decode("latin1")
    if bearer[:7].lower() == "bearer ":
        return bearer[7:].strip()
    plain = headers.get(b"x-api-key")
    return None if plain is None else plain.decode("latin1")


def refused_for(error: Exception, request_id: str) -> Refused:
    """The answer for an error. Unexpected errors are written to the log, with the id of the request."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, StoreError):
        return busy(str(error), "store_unavailable", 5)
    if isinstance(error, ClickbridgeError):
        return translated(error)
    trace = "".join(traceback.format_exception(error))
    write_log({"at": round(time.time(), 3), "request_id": request_id, "error": trace})
    return Refused(500, "internal", "the service failed; its log says how, by the request id")
