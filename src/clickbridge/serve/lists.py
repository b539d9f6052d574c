"""Result lists: re-ranked or searched, filtered, with pins and blocks, from one model or from the two of an
experiment."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from clickbridge.errors import InputError
from clickbridge.models.display import Filter, matches, parse_filter
from clickbridge.models.fitted import Fitted
from clickbridge.serve.answers import (
    Array,
    Ordered,
    answer,
    documents_of,
    explanations,
    found,
    new_query_id,
    ranked,
)
from clickbridge.serve.schemas import RankRequest
from clickbridge.serve.served import Served
from clickbridge.serve.service import Service
from clickbridge.serve.store import Shown
from clickbridge.types import Document

SPARE = 50
"""Additional results that are fetched if some may be blocked."""


def rank_list(service: Service, request: RankRequest) -> dict[str, Any]:
    """Re-ranks the documents of a request."""
    started = time.perf_counter()
    documents, user = documents_of(request), service.user(request.user)
    asked = parse_filter(request.filter) if request.filter else None

    def make(served: Served) -> Ordered:
        fitted = served.fitted
        given = documents if asked is None else passing(fitted, documents, asked)
        return service.rules.apply(request.query, ranked(fitted, request.query, given, user))

    served, out = _answered(service, request.model, request.query, request.k, make, started)
    fitted, results = served.fitted, out["results"]
    if request.explain:
        reasons = explanations(fitted, request.query, [result["doc_id"] for result in results])
        shown = service.suggestions(served)
        for result, reason in zip(results, reasons, strict=True):
            result["explanation"] = None if reason is None else shown.hidden(reason)
    numbers = fitted.catalogue.numbers
    known = sum((d if isinstance(d, str) else d.doc_id) in numbers for d in documents)
    service.drift(served).documents(known, len(documents) - known)
    return out


def search_list(
    service: Service, query: str, k: int, model: str | None, filter: str | None, user: str | None
) -> dict[str, Any]:
    """Searches the collection. The results have titles and snippets."""
    started, who = time.perf_counter(), service.user(user)
    asked = parse_filter(filter) if filter else None

    def make(served: Served) -> Ordered:
        fitted = served.fitted
        allowed = None if asked is None else fitted.display.matching(asked, len(fitted.catalogue))
        hits = found(fitted, query, k + SPARE if service.rules else k, allowed, who)
        return service.rules.apply(query, hits, Available(fitted, allowed))[:k]

    served, out = _answered(service, model, query, k, make, started)
    fitted = served.fitted
    for result in out["results"]:
        result["title"] = fitted.title(result["doc_id"])
        result["snippet"] = fitted.display.snippet(fitted.catalogue.number(result["doc_id"]))
    return out


def _answered(
    service: Service,
    model: str | None,
    query: str,
    k: int | None,
    make: Callable[[Served], Ordered],
    started: float,
) -> tuple[Served, dict[str, Any]]:
    """The list of one model or, if the request names none and an experiment runs, of both."""
    experiment = service.experiment if model is None else None
    served = service.live.get(model if experiment is None else experiment.first)
    name, version = served.name, served.version
    teams: tuple[int, ...] = ()
    ordered = make(served)
    if experiment is not None:
        other = service.live.get(experiment.second)
        ordered, teams = experiment.interleave(ordered, make(other), k)
        name, version = experiment.name, f"{served.version}:{other.version}"
    out = answer(name, version, new_query_id(), started, ordered[:k])
    service.note_query(served, query, any(score is not None for _, score in ordered[:1]))
    ids = tuple(result["doc_id"] for result in out["results"])
    service.remember(Shown(out["query_id"], query, ids, teams, "" if experiment is None else experiment.name))
    return served, out


def passing(fitted: Fitted, documents: Sequence[Document | str], asked: Filter) -> list[Document | str]:
    """The documents that match a filter: known ones by the fields stored in the model, others by those in the
    request."""
    known = all(name in fitted.display.fields for name in asked)
    mask = fitted.display.matching(asked, len(fitted.catalogue)) if known else None
    numbers = fitted.catalogue.numbers

    def passes(document: Document | str) -> bool:
        number = numbers.get(document if isinstance(document, str) else document.doc_id)
        if number is not None and mask is not None:
            return bool(mask[number])
        return isinstance(document, Document) and matches(document.fields, asked)

    if mask is None and not any(isinstance(d, Document) and d.fields for d in documents):
        missing = next(name for name in asked if name not in fitted.display.fields)
        raise InputError(
            f"the model keeps no field {missing!r}: fit it with --filter-fields, or send it with documents"
        )
    return [document for document in documents if passes(document)]


class Available:
    """The documents that a pin may add: those of the collection that pass the filter."""

    def __init__(self, fitted: Fitted, allowed: Array | None) -> None:
        self._numbers, self._allowed = fitted.catalogue.numbers, allowed

    def __contains__(self, doc_id: object) -> bool:
        number = self._numbers.get(str(doc_id))
        return number is not None and (self._allowed is None or bool(self._allowed[number]))
