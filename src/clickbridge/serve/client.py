"""A client of the service that needs only the standard library: `Client("http://localhost:8765").rank("ny pizza",
ids)`.

A request that was refused temporarily (503, 429), or that got no answer, is sent again after a pause. The pause doubles
each time, with jitter, so that many clients do not return at once. Events have ids, so feedback can safely be repeated.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from clickbridge.errors import ClickbridgeError, SettingError
from clickbridge.types import Document

AGAIN = (429, 502, 503, 504)
"""Status codes after which the same request is sent again, a little later."""
LONGEST_PAUSE = 10.0


class ServiceError(ClickbridgeError):
    """The service refused a request, or did not answer.

    Parameters
    ----------
    message : str
        The reason.
    status : int
        The HTTP status of the answer; 0 if the service did not answer.
    code : str
        The kind of error, as the service names it, such as `invalid`.
    field : str, optional
        The field of the request that was refused.
    """

    def __init__(self, message: str, status: int = 0, code: str = "", field: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.field = status, code, field


@dataclass(frozen=True, slots=True)
class ServedHit:
    """One result. `score` is None if the model has no score for it."""

    doc_id: str
    score: float | None
    rank: int
    title: str = ""
    snippet: str = ""


@dataclass(frozen=True, slots=True)
class ServedRanking(Sequence[ServedHit]):
    """An answer of the service: a list of results, best first.

    Parameters
    ----------
    query_id : str
        The id of this answer. It is needed to report clicks; `Client.click` does that.
    model : str
        The name of the model that answered.
    version : str
        The version of that model.
    took_ms : float
        How long the service worked, in milliseconds.
    hits : tuple of ServedHit
        The results. Each has `doc_id`, `score`, `rank`, `title` and `snippet`.
    """

    query_id: str
    model: str
    version: str
    took_ms: float
    hits: tuple[ServedHit, ...]

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, i):  # type: ignore[no-untyped-def]
        return self.hits[i]

    @property
    def doc_ids(self) -> list[str]:
        """The ids of the documents, best first."""
        return [hit.doc_id for hit in self.hits]


class Client:
    """A client for a running service, `clickbridge serve MODEL`. Several threads may share one client.

    Parameters
    ----------
    url : str
        The address of the service, such as `http://localhost:8765`.
    key : str, optional
        An access key of the service, sent as a bearer token.
    timeout : float
        Seconds to wait for an answer.
    retries : int
        How often a request that failed is sent again.

    Examples
    --------
    >>> from clickbridge import Client
    >>> client = Client("http://localhost:8765")
    >>> found = client.search("ny pizza", k=3)  # doctest: +SKIP
    >>> client.click(found, found.doc_ids[0])  # doctest: +SKIP
    """

    def __init__(self, url: str, key: str | None = None, timeout: float = 5.0, retries: int = 3) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingError(f"the URL of a service is needed, such as http://localhost:8765; got {url!r}")
        self._parts, self._base = parts, parts.path.rstrip("/")
        self._headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        self.timeout, self.retries = timeout, retries
        self._own = threading.local()

    # --- asking ----------------------------------------------------------------------------------

    def rank(
        self,
        query: str,
        documents: Sequence[str | Document],
        k: int | None = None,
        *,
        user: str | None = None,
        filter: str | None = None,
        model: str | None = None,
    ) -> ServedRanking:
        """Re-ranks documents. A document that the model does not know is scored by its text.

        Parameters
        ----------
        query : str
            What was typed.
        documents : sequence of str or Document
            Ids of documents, in the order of your search engine. A `Document` that the model does not know is
            scored by its text.
        k : int, optional
            The largest number of results; by default all documents are returned.
        user : str, optional
            The id of the user, for models with weights for each user.
        filter : str, optional
            Which documents may be returned, such as `category:games|toys,groups:staff`.
        model : str, optional
            The name of the model, if the service has several.

        Returns
        -------
        ServedRanking
            The documents, best first, with the `query_id` that `click` needs.
        """
        given = [d if isinstance(d, str) else {**d.fields, "doc_id": d.doc_id} for d in documents]
        body = {"query": query, "documents": given, "k": k, "user": user, "filter": filter, "model": model}
        return _ranking(self._call("POST", "/rank", {name: v for name, v in body.items() if v is not None}))

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        user: str | None = None,
        filter: str | None = None,
        model: str | None = None,
    ) -> ServedRanking:
        """Searches the whole collection for the k best documents.

        Parameters
        ----------
        query : str
            What was typed.
        k : int
            The largest number of results.
        user : str, optional
            The id of the user, for models with weights for each user.
        filter : str, optional
            Which documents may be returned, such as `category:games|toys,groups:staff`.
        model : str, optional
            The name of the model, if the service has several.

        Returns
        -------
        ServedRanking
            The documents, best first, with the `query_id` that `click` needs.
        """
        asked = {"q": query, "k": k, "user": user, "filter": filter, "model": model}
        return _ranking(self._call("GET", "/search", asked))

    def suggest(self, typed: str, k: int = 10, *, model: str | None = None) -> list[str]:
        """Completes a query: known queries that begin with what was typed.

        Parameters
        ----------
        typed : str
            The beginning of a query.
        k : int
            The largest number of queries.
        model : str, optional
            The name of the model, if the service has several.

        Returns
        -------
        list of str
            The queries. It may be empty.
        """
        answer = self._call("GET", "/suggest", {"q": typed, "k": k, "model": model})
        return [row["query"] for row in answer["results"]]

    def feedback(self, events: Sequence[Mapping[str, object]]) -> tuple[int, int]:
        """Reports result pages and clicks. Returns how many events were new and how many were already known.

        Parameters
        ----------
        events : sequence of mapping
            Each has `clicks`, a list of ids, and either the `query_id` of an answer or its own `query` and
            `results`. `user`, `time` and `event_id` are optional. An event without an `event_id` gets one, so that
            it can be sent again without being counted twice.

        Returns
        -------
        (int, int)
            How many events were new, and how many were already known.
        """
        named = [{"event_id": uuid.uuid4().hex, **event} for event in events]
        answer = self._call("POST", "/feedback", {"events": named})
        return int(answer["accepted"]), int(answer["duplicates"])

    def click(self, ranking: ServedRanking, *doc_ids: str, user: str | None = None) -> None:
        """Reports clicks on the results of an answer.

        Parameters
        ----------
        ranking : ServedRanking
            The answer of `rank` or `search`.
        *doc_ids : str
            Ids of the documents that were clicked.
        user : str, optional
            The id of the user.
        """
        event = {"query_id": ranking.query_id, "clicks": list(doc_ids)}
        self.feedback([event if user is None else {**event, "user": user}])

    def undo(self, event_id: str) -> bool:
        """Undoes an event. Returns False if it was undone before.

        Parameters
        ----------
        event_id : str
            The id that was given to the event in `feedback`.

        Returns
        -------
        bool
            False if it was undone before.
        """
        return bool(self._call("POST", "/feedback/undo", {"event_id": event_id})["accepted"])

    def health(self) -> dict[str, object]:
        """The state of the service and its models.

        Returns
        -------
        dict
            `status`, and for each of its `models` the name, spec, version and number of events.
        """
        return self._call("GET", "/health", {})

    # --- the wire --------------------------------------------------------------------------------

    def _call(self, method: str, path: str, values: Mapping[str, Any]) -> dict[str, Any]:
        path, body = self._base + path, None
        if method == "GET":
            path += "?" + urlencode({name: v for name, v in values.items() if v is not None})
        else:
            body = json.dumps(values).encode()
        for attempt in range(self.retries + 1):
            last = attempt == self.retries
            try:
                status, headers, answer = self._send(method, path, body)
            except (OSError, http.client.HTTPException) as error:
                if last:
                    raise ServiceError(f"no answer from {self._parts.netloc}: {error}") from error
                status, headers, answer = 0, {}, {}
            if status == 200:
                return answer
            if status and (status not in AGAIN or last):
                raise _refused(status, answer)
            time.sleep(_pause(attempt, headers))
        raise AssertionError("the last attempt has returned or raised")

    def _send(self, method: str, path: str, body: bytes | None) -> tuple[int, Mapping[str, str], dict[str, Any]]:
        connection = self._connection()
        try:
            connection.request(method, path, body, self._headers)
            response = connection.getresponse()
            raw = response.read()
        except BaseException:
            connection.close()  # the next request opens it again
            raise
        try:
            answer = json.loads(raw)
        except ValueError:
            answer = {}
        return response.status, {k.lower(): v for k, v in response.getheaders()}, answer

    def _connection(self) -> http.client.HTTPConnection:
        found: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if found is None:
            kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
            found = self._own.connection = kind(self._parts.hostname or "", self._parts.port, timeout=self.timeout)
        return found

    def close(self) -> None:
        """Closes this thread's connection."""
        self._connection().close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _ranking(answer: Mapping[str, Any]) -> ServedRanking:
    hits = (
        ServedHit(r["doc_id"], r["score"], r["rank"], r.get("title") or "", r.get("snippet") or "")
        for r in answer["results"]
    )
    return ServedRanking(answer["query_id"], answer["model"], answer["version"], answer["took_ms"], tuple(hits))


def _refused(status: int, answer: Mapping[str, Any]) -> ServiceError:
    error = answer.get("error")
    if not isinstance(error, dict):
        return ServiceError(f"the service answered {status}", status)
    return ServiceError(str(error.get("message")), status, str(error.get("code")), error.get("field"))


def _pause(attempt: int, headers: Mapping[str, str]) -> float:
    """The pause before the next attempt: random, up to twice as long each time, and at least what the service asks."""
    asked = headers.get("retry-after", "")
    least = float(asked) if asked.isdigit() else 0.0
    return min(LONGEST_PAUSE, least + random.uniform(0.05, 0.1) * 2**attempt)
