"""Re-ranking in the protocol of Cohere (v1, v2) and Jina: takes texts, and returns their indices, best first.

A document is a text, or an object with `text` and optionally an `id`. If the model knows the id, it scores its own
document; all others are scored by their text. The two protocols differ only in the additional fields of an answer, so
one answer has the fields of both. `relevance_score` is the model's score, not a probability. A document without a score
gets the lowest one.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

from clickbridge.models.fitted import Fitted
from clickbridge.serve.answers import new_query_id, ranked, scores_or_lowest, text_document, texts_of
from clickbridge.serve.bodies import read_body, reply, taking
from clickbridge.serve.limits import MAX_DOCUMENTS, MAX_FIELDS
from clickbridge.serve.refusals import Refused
from clickbridge.serve.schemas import Body, Name, Query, checked, decode
from clickbridge.serve.service import Service
from clickbridge.types import Document


class TextDocument(BaseModel):
    model_config = ConfigDict(extra="allow")


class RerankRequest(Body):
    model: Name | None = None
    query: Query
    documents: Annotated[list[StrictStr | TextDocument], Field(min_length=1, max_length=MAX_DOCUMENTS)]
    top_n: Annotated[StrictInt, Field(ge=1)] | None = None
    return_documents: bool | None = None
    rank_fields: Annotated[list[StrictStr], Field(max_length=MAX_FIELDS)] | None = None


class RerankResult(BaseModel):
    index: int
    relevance_score: float
    document: dict[str, Any] | None = None


class RerankAnswer(BaseModel):
    id: str
    model: str
    results: list[RerankResult]
    meta: dict[str, Any]
    usage: dict[str, int]


def rerank_routes(service: Service) -> APIRouter:
    routes = APIRouter()

    @routes.post("/v1/rerank", **taking(RerankRequest, RerankAnswer))
    @routes.post("/v2/rerank", **taking(RerankRequest, RerankAnswer))
    async def rerank(request: Request) -> Response:
        """Re-ranks texts for a query, for clients of Cohere and Jina."""
        service.check_ready()
        asked = checked(RerankRequest, decode(await read_body(request)))
        served = service.live.get_or_first(asked.model)
        fitted = served.fitted
        documents: dict[str, Document] = {}
        for number, given in enumerate(asked.documents):
            document = _document(number, given, asked.rank_fields, fitted)
            if document.doc_id in documents:  # a repeated id: scored separately, by its text
                document = Document(text_document(number, "", fitted).doc_id, document.fields)
            documents[document.doc_id] = document
        place = {doc_id: number for number, doc_id in enumerate(documents)}
        ordered = ranked(fitted, asked.query, list(documents.values()))
        service.note_query(served, asked.query, ordered[0][1] is not None)
        results: list[dict[str, Any]] = [
            {"index": place[doc_id], "relevance_score": score} for doc_id, score in scores_or_lowest(ordered)
        ][: asked.top_n]
        version = 2 if request.url.path.startswith("/v2") else 1
        if asked.return_documents:
            for result in results:
                result["document"] = _returned(asked.documents[result["index"]])
        body = {
            "id": new_query_id(),
            "model": served.name,
            "results": results,
            "meta": {"api_version": {"version": str(version)}, "billed_units": {"search_units": 1}},
            "usage": _usage(asked),
        }
        request.state.notes.update(model=served.name, documents=len(documents))
        return reply(body)

    return routes


def _document(number: int, given: str | TextDocument, rank_fields: list[str] | None, fitted: Fitted) -> Document:
    if isinstance(given, str):
        return text_document(number, given, fitted)
    fields = dict(given.model_extra or {})
    if len(fields) > MAX_FIELDS:
        raise Refused(422, "invalid", f"a document has at most {MAX_FIELDS} fields", f"documents.{number}")
    doc_id = fields.pop("id", None)
    texts = texts_of({name: fields[name] for name in rank_fields or fields if name in fields})
    unnamed = text_document(number, texts.pop("text", ""), fitted)
    known = isinstance(doc_id, str) and doc_id in fitted.catalogue.numbers
    named = {name: text for name, text in unnamed.fields.items() if text}
    return Document(doc_id if known and isinstance(doc_id, str) else unnamed.doc_id, {**texts, **named})


def _returned(given: str | TextDocument) -> dict[str, Any]:
    return {"text": given} if isinstance(given, str) else dict(given.model_extra or {})


def _usage(asked: RerankRequest) -> dict[str, int]:
    """Counts words as tokens, since clients only add them up."""
    words = len(asked.query.split()) + sum(len(d.split()) for d in asked.documents if isinstance(d, str))
    return {"prompt_tokens": words, "total_tokens": words}
