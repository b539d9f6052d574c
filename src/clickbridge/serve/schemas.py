"""The bodies of requests and answers, with their limits. The OpenAPI schema is made from these."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeVar

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from clickbridge.io.json_text import parse_json
from clickbridge.log.clean import MAX_QUERY
from clickbridge.serve.limits import (
    MAX_BATCH,
    MAX_DOCUMENTS,
    MAX_EVENTS,
    MAX_FIELDS,
    MAX_ID,
    MAX_K,
    MAX_REQUESTS,
)
from clickbridge.serve.refusals import Refused, invalid

Schema = TypeVar("Schema", bound=BaseModel)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def readable(text: str) -> str:
    """Replaces control characters, which have no meaning in a query. One of them marks ids internally."""
    return _CONTROL.sub(" ", text)


def _is_id(text: str) -> str:
    if text.split() != [text] or _CONTROL.search(text):
        raise ValueError("an id is text without white space")
    return text


def _as_id(value: str | int) -> str:
    return _is_id(str(value))


Query = Annotated[StrictStr, Field(max_length=MAX_QUERY), AfterValidator(readable)]
Id = Annotated[StrictStr, Field(min_length=1, max_length=MAX_ID), AfterValidator(_is_id)]
DocId = Annotated[Annotated[StrictStr, Field(min_length=1, max_length=MAX_ID)] | StrictInt, AfterValidator(_as_id)]
K = Annotated[StrictInt, Field(ge=1, le=MAX_K)]
Name = Annotated[StrictStr, Field(max_length=100)]


class Body(BaseModel):
    model_config = ConfigDict(extra="ignore")


class DocumentIn(BaseModel):
    """A document: its id and any fields. If the model does not know the id, the document is scored by its text."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [{"doc_id": "d7", "title": "Pizza"}]})

    doc_id: DocId

    @property
    def given(self) -> dict[str, Any]:
        """The fields given with the document."""
        fields = self.model_extra or {}
        if len(fields) > MAX_FIELDS:
            raise Refused(422, "invalid", f"a document has at most {MAX_FIELDS} fields; got {len(fields)}", "documents")
        return fields


class RankRequest(Body):
    """Documents to re-rank for a query."""

    query: Query
    documents: Annotated[list[DocId | DocumentIn], Field(max_length=MAX_DOCUMENTS)]
    k: K | None = None
    user: Id | None = None
    filter: Annotated[StrictStr, Field(max_length=1000)] | None = None
    explain: bool = False
    model: Name | None = None


class RankBatch(Body):
    """Several lists at once."""

    requests: Annotated[list[RankRequest], Field(min_length=1, max_length=MAX_REQUESTS)]


class EventIn(Body):
    """A result page and its clicks. The page is given by the `query_id` of an answer, or by its query and results."""

    event_id: Id
    query_id: Id | None = None
    query: Query | None = None
    results: Annotated[list[DocId], Field(max_length=MAX_DOCUMENTS)] | None = None
    clicks: Annotated[list[DocId], Field(max_length=MAX_DOCUMENTS)]
    user: Annotated[StrictStr, Field(max_length=MAX_ID)] | StrictInt | None = None
    time: Annotated[StrictStr, Field(max_length=64)] | float | None = None


class Feedback(Body):
    events: Annotated[list[EventIn], Field(max_length=MAX_EVENTS)]


class Undo(Body):
    event_id: Id


# --- answers ---------------------------------------------------------------------------------------


class Result(BaseModel):
    doc_id: str
    score: float | None
    rank: int
    title: str | None = None
    snippet: str | None = None
    explanation: dict[str, Any] | None = None


class RankAnswer(BaseModel):
    query_id: str
    model: str
    version: str
    took_ms: float
    results: list[Result]


class BatchAnswer(BaseModel):
    answers: list[RankAnswer]


class FeedbackAnswer(BaseModel):
    accepted: int
    duplicates: int


class ModelState(BaseModel):
    name: str
    spec: str
    version: str
    events: int


class Health(BaseModel):
    status: str
    models: list[ModelState]


class ErrorDetail(BaseModel):
    code: str
    message: str
    field: str | None = None


class ErrorAnswer(BaseModel):
    error: ErrorDetail
    request_id: str


# --- reading ---------------------------------------------------------------------------------------


def decode(body: bytes) -> Any:
    """Strict JSON: no NaN, limited nesting, valid text."""
    try:
        return parse_json(body)
    except orjson.JSONDecodeError as error:
        raise Refused(400, "not_json", f"the body is not JSON: {error.msg}") from None


def checked(schema: type[Schema], value: Any) -> Schema:
    if not isinstance(value, dict):
        raise Refused(422, "invalid", f"the body must be a JSON object; got {_kind(value)}")
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        raise invalid(error) from None


def rank_requests(value: Any) -> tuple[list[RankRequest], bool]:
    """The lists of a body of `/rank`, and whether it is a batch."""
    if not (isinstance(value, dict) and "requests" in value):
        return [checked(RankRequest, value)], False
    requests = checked(RankBatch, value).requests
    total = sum(len(request.documents) for request in requests)
    if total > MAX_BATCH:
        raise Refused(422, "invalid", f"a batch has at most {MAX_BATCH} documents; got {total}", "requests")
    return requests, True


def _kind(value: Any) -> str:
    names = {list: "a list", str: "text", bool: "true/false", type(None): "null"}
    return names.get(type(value), "a number")
