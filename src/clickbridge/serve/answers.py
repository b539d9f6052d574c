"""Answers a request with one model. All protocols use this."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import numpy as np

from clickbridge.errors import ClickbridgeError, InputError, NotSupported
from clickbridge.log.plain_text import field_text
from clickbridge.models.fitted import Fitted
from clickbridge.online.fitted_online import FittedOnline
from clickbridge.serve.limits import MAX_TEXT
from clickbridge.serve.refusals import Refused
from clickbridge.serve.schemas import DocumentIn, RankRequest
from clickbridge.types import Document

EXPLAINED = 10
"""The most results of one answer that are explained."""
REASONS = 6
Array = np.ndarray[Any, Any]
Given = Sequence[Document | str]
Ordered = list[tuple[str, float | None]]
"""Ids with their scores, best first."""


def new_query_id() -> str:
    return secrets.token_urlsafe(12)


def documents_of(request: RankRequest) -> list[Document | str]:
    """The documents of a request, each id once."""
    out: dict[str, Document | str] = {}
    for given in request.documents:
        if isinstance(given, DocumentIn):
            doc_id = str(given.doc_id)
            out.setdefault(doc_id, Document(doc_id, texts_of(given.given)))
        else:
            out.setdefault(str(given), str(given))
    return list(out.values())


def texts_of(fields: dict[str, Any]) -> dict[str, str]:
    """The text by field. Values that are not text are left out, as in documents files."""
    out = {}
    for name, value in fields.items():
        text = field_text(name, value)
        if text:
            out[name.lower()] = text[:MAX_TEXT]
    return out


def text_document(number: int, text: str, fitted: Fitted) -> Document:
    """A document from a text without an id and field names. The text is put into the most informative fields."""
    return Document(f"\x1f{number}", dict.fromkeys(fitted.text_fields or ("text",), text[:MAX_TEXT]))


def ranked(fitted: Fitted, query: str, documents: Given, user: int = 0) -> Ordered:
    """All documents, sorted by score. Equal scores keep their order; documents without a score come last. `user` is a
    hash, for models with weights for each user."""
    if user and isinstance(fitted, FittedOnline) and fitted.settings.per_user > 0:
        scores = fitted.score_for(user, query, documents)
    else:
        scores = fitted.score_documents(query, documents)
    ids = [d if isinstance(d, str) else d.doc_id for d in documents]
    return [(ids[i], known(scores[i])) for i in np.argsort(-scores, kind="stable").tolist()]


def known(score: float) -> float | None:
    """A score for JSON; null if there is none."""
    return float(score) if np.isfinite(score) else None


def scores_or_lowest(ordered: Ordered) -> list[tuple[str, float]]:
    """For protocols without missing scores: a document without a score gets the lowest one."""
    lowest = min((score for _, score in ordered if score is not None), default=0.0)
    return [(doc_id, min(lowest, 0.0) if score is None else score) for doc_id, score in ordered]


def found(fitted: Fitted, query: str, k: int, allowed: Array | None = None, user: int = 0) -> Ordered:
    """The k best documents of the collection; with `allowed`, only of the documents that it marks."""
    if user and isinstance(fitted, FittedOnline) and fitted.settings.per_user > 0:
        depth = max(k, fitted.settings.list_length)
        return ranked(fitted, query, [d for d, _ in found(fitted, query, depth, allowed)], user)[:k]
    asked, ids = fitted.query(query), fitted.catalogue.doc_ids
    depth = k if allowed is None else max(100, 4 * k)
    while True:
        items, scores = fitted.search(asked, depth)
        enough = len(items) < depth or depth >= len(ids)
        if allowed is not None:
            passed = allowed[items]
            items, scores = items[passed], scores[passed]
        if allowed is None or enough or len(items) >= k:
            return [(ids[i], known(s)) for i, s in zip(items[:k].tolist(), scores[:k].tolist(), strict=True)]
        depth *= 8


def answer(model: str, version: str, query_id: str, started: float, ordered: Ordered) -> dict[str, Any]:
    return {
        "query_id": query_id,
        "model": model,
        "version": version,
        "took_ms": round((time.perf_counter() - started) * 1e3, 3),
        "results": [{"doc_id": d, "score": s, "rank": rank} for rank, (d, s) in enumerate(ordered, 1)],
    }


def explanation(fitted: Fitted, query: str, doc_id: str) -> dict[str, Any]:
    out = asdict(fitted.explain(query, doc_id, REASONS))
    for pair in out["pairs"]:
        pair["taught_by"] = list(pair["taught_by"])
    return out


def explanations(fitted: Fitted, query: str, doc_ids: Sequence[str]) -> list[dict[str, Any] | None]:
    """Explanations for the first documents, if the model can explain."""
    out: list[dict[str, Any] | None] = [None] * len(doc_ids)
    for place, doc_id in enumerate(doc_ids[:EXPLAINED]):
        with suppress(NotSupported, InputError):
            out[place] = explanation(fitted, query, doc_id)
    return out


def translated(error: ClickbridgeError) -> Refused:
    """Translates errors of the library into answers."""
    if isinstance(error, NotSupported):
        return Refused(422, "not_supported", str(error))
    if isinstance(error, InputError) and str(error).startswith("no document"):
        return Refused(404, "unknown_document", str(error), "doc_id")
    return Refused(422, "invalid", str(error))
