"""Reads the records of an OpenSearch or Elasticsearch index over HTTP: opens a point in time, and reads page after
page.

    https://host:9200/ubi_events            an index by its address, where a file could be
    https://user:password@host:9200/ubi_events

The records are written to a file, and the position to another file next to it, so that an interrupted pull can
continue.
"""

from __future__ import annotations

import base64
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import orjson

from clickbridge.errors import InputError
from clickbridge.io.json_text import parse_json

PAGE, KEEP, TIMEOUT = 1_000, "5m", 60.0
MOST_BYTES = 1 << 28


@dataclass
class Index:
    """An index by its address. Elasticsearch and OpenSearch have different addresses for opening a point in time."""

    url: str
    page: int = PAGE
    headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        name = parts.path.strip("/")
        if parts.scheme not in ("http", "https") or not parts.hostname or not name or "/" in name:
            raise InputError(f"an index is given as https://host:9200/INDEX; got {hidden(self.url)}")
        if parts.username:
            pair = f"{parts.username}:{parts.password or ''}".encode()
            self.headers["Authorization"] = "Basic " + base64.b64encode(pair).decode()
        host = parts.hostname + (f":{parts.port}" if parts.port else "")
        self.base, self.name = urlunsplit((parts.scheme, host, "", "", "")), quote(name, safe="*,-_.")

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else orjson.dumps(body)
        headers = {"Content-Type": "application/json", **self.headers}
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                return parse_json(answer.read(MOST_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                reason = " ".join(error.read(500).decode("utf8", "replace").split())[:200]
            raise Refused(error.code, f"{self.base}{path} answers {error.code}: {reason}") from None
        except (OSError, orjson.JSONDecodeError) as error:
            raise InputError(f"cannot read {self.base}{path}: {getattr(error, 'reason', error)}") from None

    def open_point(self) -> tuple[str, str]:
        """The id of a point in time, and the field for closing it. Tries OpenSearch first, then Elasticsearch."""
        try:
            return str(self.ask("POST", f"/{self.name}/_search/point_in_time?keep_alive={KEEP}")["pit_id"]), "pit_id"
        except Refused as error:
            if error.code not in (400, 404, 405):
                raise
        return str(self.ask("POST", f"/{self.name}/_pit?keep_alive={KEEP}")["id"]), "id"

    def close_point(self, point: str, field: str) -> None:
        path, body = ("/_search/point_in_time", {"pit_id": [point]}) if field == "pit_id" else ("/_pit", {"id": point})
        try:
            self.ask("DELETE", path, body)
        except InputError:
            return  # it ends by itself after a while

    def pages(self, after: list[Any] | None = None) -> Iterator[list[dict[str, Any]]]:
        """Pages of hits, sorted by time, starting after `after`."""
        point, name = self.open_point()
        try:
            while True:
                body: dict[str, Any] = {
                    "size": self.page, "pit": {"id": point, "keep_alive": KEEP}, "track_total_hits": False,
                    # The time first: it stays where it is when another point in time is opened.
                    "sort": [{"timestamp": {"order": "asc", "unmapped_type": "date"}}, {"_shard_doc": "asc"}],
                }  # fmt: skip
                if after is not None:
                    body["search_after"] = after
                answer = self.ask("POST", "/_search", body)
                point = answer.get("pit_id", point)
                hits = answer["hits"]["hits"]
                if not hits:
                    return
                after = hits[-1]["sort"]
                yield hits
        finally:
            self.close_point(point, name)


class Refused(InputError):
    """The server answered, with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def pull(url: str, out: str | Path, page: int = PAGE) -> int:
    """Appends the records of an index to an NDJSON file. Returns their number. `OUT.state` stores the position: an
    interrupted pull, or one on another day, continues after it."""
    target = Path(out)
    state = target.with_name(target.name + ".state")
    place = _place(state, target, url)
    count = 0
    with target.open("ab") as file:
        file.truncate(place.bytes)  # what came after the last place that was written down comes again
        # Within another point in time only the time holds: those of the last moment come again, and are known by id.
        for hits in Index(url, page).pages(None if place.time is None else [place.time, -1]):
            fresh = [hit for hit in hits if hit["sort"][0] != place.time or hit["_id"] not in place.ids]
            file.write(b"".join(orjson.dumps(hit["_source"]) + b"\n" for hit in fresh))
            file.flush()
            os.fsync(file.fileno())
            count += len(fresh)
            place = place.behind(hits, file.tell())
            _remember(state, {"url": hidden(url), **asdict(place)})
    return count


@dataclass
class Place:
    """The position of a pull: the last time, the ids of the records with that time, and the size of the file."""

    time: Any = None
    ids: list[str] = field(default_factory=list)
    bytes: int = 0

    def behind(self, hits: list[dict[str, Any]], size: int) -> Place:
        last = hits[-1]["sort"][0]
        same = [hit["_id"] for hit in hits if hit["sort"][0] == last]
        return Place(last, [*(self.ids if last == self.time else []), *same], size)


def _place(state: Path, target: Path, url: str) -> Place:
    if not state.is_file():
        if target.exists():
            raise InputError(f"{target} exists and is not a pull: choose another --out, or remove it")
        return Place()
    try:
        kept = orjson.loads(state.read_bytes())
        place, whose = Place(kept["time"], list(kept["ids"]), int(kept["bytes"])), kept["url"]
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        raise InputError(f"{state} is damaged: remove it and {target}, and pull again") from None
    if whose != hidden(url):
        raise InputError(f"{target} was pulled from {whose}: choose another --out")
    if not target.is_file() or target.stat().st_size < place.bytes:
        raise InputError(f"{target} is shorter than when it was pulled: remove it and {state}, and pull again")
    return place


def _remember(state: Path, value: dict[str, Any]) -> None:
    aside = state.with_name(f".{state.name}.new")
    aside.write_bytes(orjson.dumps(value))
    os.replace(aside, state)


def hidden(url: str) -> str:
    """An address without its password."""
    parts = urlsplit(url)
    if not parts.username:
        return url
    host = (parts.hostname or "") + (f":{parts.port}" if parts.port else "")
    return urlunsplit((parts.scheme, f"***@{host}", parts.path, "", ""))
