"""Embeddings in OpenAI's protocol: the two maps of an S-function. `NAME:query` and `NAME:document` choose the map."""

from __future__ import annotations

import base64
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field, StrictInt, StrictStr

from clickbridge.serve.answers import text_document
from clickbridge.serve.bodies import read_body, reply, taking
from clickbridge.serve.limits import MAX_INPUTS, MAX_NUMBERS, MAX_TEXT
from clickbridge.serve.refusals import Refused
from clickbridge.serve.schemas import Body, checked, decode
from clickbridge.serve.service import Service

Text = Annotated[StrictStr, Field(min_length=1, max_length=MAX_TEXT)]
SIDES = ("query", "document")


class EmbeddingsRequest(Body):
    model: Annotated[StrictStr, Field(max_length=120)]
    input: Text | Annotated[list[Text], Field(min_length=1, max_length=MAX_INPUTS)]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[StrictInt, Field(ge=1)] | None = None


class EmbeddingsAnswer(BaseModel):
    object: str
    data: list[dict[str, Any]]
    model: str
    usage: dict[str, int]


def embeddings_routes(service: Service) -> APIRouter:
    routes = APIRouter()

    @routes.post("/v1/embeddings", **taking(EmbeddingsRequest, EmbeddingsAnswer))
    async def embeddings(request: Request) -> Response:
        """Maps texts to vectors. The model `NAME:query` maps queries, `NAME:document` documents; the dot product of the
        two is the score."""
        service.check_ready()
        asked = checked(EmbeddingsRequest, decode(await read_body(request)))
        name, _, side = asked.model.rpartition(":") if asked.model.endswith(tuple(SIDES)) else (asked.model, "", "")
        served = service.live.get_or_first(name)
        fitted = served.fitted
        texts = [asked.input] if isinstance(asked.input, str) else asked.input
        if side == "document":
            images = fitted.map_documents([text_document(i, text, fitted) for i, text in enumerate(texts)])
        else:
            images = fitted.map_queries(texts)
        _check_width(images.shape[1], len(texts), asked.dimensions)
        rows = np.asarray(images) if isinstance(images, np.ndarray) else images.toarray()
        data = [
            {"object": "embedding", "index": i, "embedding": _encoded(row, asked.encoding_format)}
            for i, row in enumerate(rows.astype(np.float32))
        ]
        words = sum(len(text.split()) for text in texts)
        body = {
            "object": "list",
            "data": data,
            "model": f"{served.name}:{side or 'query'}",
            "usage": {"prompt_tokens": words, "total_tokens": words},
        }
        request.state.notes.update(model=served.name, texts=len(texts))
        return reply(body)

    return routes


def _check_width(width: int, n_texts: int, wanted: int | None) -> None:
    if wanted is not None and wanted != width:
        raise Refused(422, "invalid", f"the model's vectors have {width} numbers; leave dimensions out", "dimensions")
    if width * n_texts > MAX_NUMBERS:
        remedy = "send fewer texts, or serve a latent model such as pls by itself"
        raise Refused(422, "too_large", f"{n_texts} vectors of {width} numbers are too many: {remedy}", "input")


def _encoded(row: Any, how: str) -> Any:
    return base64.b64encode(row.tobytes()).decode() if how == "base64" else row
