"""The application: routes, the checks before them, OpenAPI, and the search page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import FileResponse, HTMLResponse
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from clickbridge import __version__
from clickbridge.errors import ClickbridgeError
from clickbridge.serve.access import Keys, Rates
from clickbridge.serve.bodies import ERRORS, SCHEMAS
from clickbridge.serve.config import Config
from clickbridge.serve.feedback import feedback_routes
from clickbridge.serve.gate import Gate, refused_for
from clickbridge.serve.learned import learned_routes
from clickbridge.serve.native import native_routes
from clickbridge.serve.protocols.embeddings import embeddings_routes
from clickbridge.serve.protocols.metarank import metarank_routes
from clickbridge.serve.protocols.rerank import rerank_routes
from clickbridge.serve.protocols.ubi import ubi_routes
from clickbridge.serve.reference import reference_page
from clickbridge.serve.refusals import Refused, refusal
from clickbridge.serve.service import Service

PAGE = Path(__file__).parent / "page"
ABOUT = "Ranking, search and learning over HTTP."


def create_app(config: Config) -> ASGIApp:
    """The service as an ASGI application."""
    config.check()
    keys = Keys(config.key_file)
    service = Service(config)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        service.close()

    app = FastAPI(
        title="clickbridge", version=__version__, description=ABOUT, lifespan=life, responses=ERRORS,
        openapi_url=None, docs_url=None, redoc_url=None,
    )  # fmt: skip
    app.state.service = service
    _refuse_in_one_shape(app)
    own = (native_routes, feedback_routes, learned_routes)
    for routes in (*own, rerank_routes, embeddings_routes, metarank_routes, ubi_routes):
        app.include_router(routes(service))
    _describe(app)
    if config.page and (PAGE / "index.html").is_file():
        _serve_page(app)
    gate: ASGIApp = Gate(app, keys, Rates(config.rate), service.metrics, config.log_requests, config.page)
    if config.cors:
        gate = CORSMiddleware(gate, allow_origins=list(config.cors), allow_methods=["GET", "POST"], allow_headers=["*"])
    return gate


def from_environment() -> ASGIApp:
    """The application for a worker process, configured from the environment."""
    return create_app(Config.from_environment())


def _refuse_in_one_shape(app: FastAPI) -> None:
    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        codes = {404: "not_found", 405: "method_not_allowed"}
        code = codes.get(error.status_code, "refused")
        refused = Refused(error.status_code, code, str(error.detail), headers=error.headers)
        return refusal(refused, request.state.request_id)

    @app.exception_handler(RequestValidationError)
    async def parameters(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        field = str(first["loc"][-1]) if first.get("loc") else None
        return refusal(Refused(422, "invalid", str(first["msg"]), field), request.state.request_id)

    async def refused(request: Request, error: Exception) -> Response:
        request_id = request.state.request_id
        return refusal(refused_for(error, request_id), request_id)

    for kind in (Refused, ClickbridgeError, Exception):
        app.add_exception_handler(kind, refused)


def _describe(app: FastAPI) -> None:
    """Adds `/openapi.json`, and `/docs`, a single page made from it."""

    def schema() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = get_openapi(title=app.title, version=app.version, description=ABOUT, routes=app.routes)
            found.setdefault("components", {}).setdefault("schemas", {}).update(SCHEMAS)
            app.openapi_schema = found
        return app.openapi_schema

    app.openapi = schema  # type: ignore[method-assign]

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        return Response(orjson.dumps(schema()), media_type="application/json")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(reference_page(schema()))


def _serve_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(PAGE / "index.html")

    app.mount("/page", StaticFiles(directory=PAGE), name="page")
