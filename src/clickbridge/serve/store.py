"""The store: every event once, in one order for all workers.

It is SQLite in WAL mode, or PostgreSQL if the URL says so. Writers take turns (`BEGIN IMMEDIATE`, or an advisory lock),
so events are numbered in the order of commits, without gaps. A reader that has seen number n has seen everything up to
n.

    events   what people did; `seq` is the order, `event_id` makes a repeated event harmless
    shown    answers of the last while, so that a click can refer to one by its id
    credits  which side won a page of an experiment
    meta     the store's own id and format
"""

from __future__ import annotations

import os
import time
import uuid
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from clickbridge.errors import ArtifactError, ClickbridgeError, InputError, SettingError
from clickbridge.io.secret import Secret
from clickbridge.serve.events import Event

FORMAT = "1"
LOCK = 0x636C6B62
"""The advisory lock of PostgreSQL for writing events."""
AT_ONCE = 500
"""The most ids in one statement."""
SQLITE_VACUUM = ("PRAGMA temp_store=FILE", "VACUUM", "PRAGMA temp_store=MEMORY", "PRAGMA wal_checkpoint(TRUNCATE)")
"""Rewrites the file without deleted data. The temporary copy is as large as the store, so it is not kept in memory."""

tables = sa.MetaData()
meta = sa.Table("clickbridge_meta", tables, sa.Column("name", sa.Text, primary_key=True), sa.Column("value", sa.Text))
events = sa.Table(
    "clickbridge_events",
    tables,
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("event_id", sa.Text, nullable=False, unique=True),
    sa.Column("undoes", sa.BigInteger, unique=True),
    sa.Column("query", sa.Text, nullable=False),
    sa.Column("who", sa.BigInteger, nullable=False),
    sa.Column("received", sa.Float, nullable=False, index=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
shown = sa.Table(
    "clickbridge_shown",
    tables,
    sa.Column("query_id", sa.Text, primary_key=True),
    sa.Column("received", sa.Float, nullable=False, index=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
credits = sa.Table(
    "clickbridge_credits",
    tables,
    sa.Column("experiment", sa.Text, primary_key=True),
    sa.Column("query_id", sa.Text, primary_key=True),
    sa.Column("outcome", sa.Integer, nullable=False),
)


ROW = (events.c.seq, events.c.event_id, events.c.query, events.c.who, events.c.body)
"""The columns that an event is read from."""


class StoreError(ClickbridgeError):
    """The database does not answer, or reports an error."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An answer of the service, with the results that a click on it refers to."""

    query_id: str
    query: str
    results: tuple[str, ...]
    teams: tuple[int, ...] = ()
    """For each result, the side of the experiment that it came from."""
    experiment: str = ""

    def to_json(self) -> bytes:
        return orjson.dumps([self.query, self.results, self.teams, self.experiment])

    @classmethod
    def from_json(cls, query_id: str, body: bytes) -> Shown:
        query, results, teams, experiment = orjson.loads(body)
        return cls(query_id, query, tuple(results), tuple(teams), experiment)


class Store:
    """`Store("sqlite:///events.db")`. Any number of threads and processes may use one database."""

    def __init__(self, url: str, new: bool = True) -> None:
        """Opens a store, or creates it. With `new=False` it must exist."""
        self.url = url
        try:
            parsed = sa.make_url(url)
        except SQLAlchemyError:
            hint = "sqlite:///events.db or postgresql://user@host/name"
            raise SettingError(f"a store is a database URL, such as {hint}; got {url!r}") from None
        if parsed.get_backend_name() not in ("sqlite", "postgresql"):
            raise SettingError(f"a store is SQLite or PostgreSQL; got {parsed.get_backend_name()}")
        self._sqlite = parsed.get_backend_name() == "sqlite"
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        try:
            self.engine = sa.create_engine(parsed, isolation_level="AUTOCOMMIT", pool_pre_ping=not self._sqlite)
        except ImportError:
            raise SettingError("PostgreSQL needs psycopg: pip install 'clickbridge[postgres]'") from None
        # A store that is deleted without `close` leaves no connection open, either.
        weakref.finalize(self, self.engine.dispose).atexit = False
        if self._sqlite:
            self._sqlite_file(parsed.database, new)
            sa.event.listen(self.engine, "connect", _prepare_sqlite)
        try:
            found = self._opened(new)
        except BaseException:  # if the store is refused, no connection stays open
            self.close()
            raise
        self.id = str(found["id"])
        self.secret = Secret(bytes.fromhex(str(found["secret"])))
        """The key for hashing users."""

    def _opened(self, new: bool) -> dict[str, str]:
        """The id, format and secret of the store. Creates the tables if there are none."""
        with self._translated():
            if not new and not sa.inspect(self.engine).has_table(meta.name):
                raise InputError(f"{self.engine.url!r} holds no events of a service: check the URL")
        with self._translated(), self._writing() as c:
            tables.create_all(c)
            found = {str(name): str(value) for name, value in c.execute(sa.select(meta.c.name, meta.c.value)).all()}
            if not found:
                found = {"id": uuid.uuid4().hex, "format": FORMAT, "secret": Secret.new().key.hex()}
                c.execute(sa.insert(meta), [{"name": name, "value": value} for name, value in found.items()])
        if found.get("format") != FORMAT:
            has = found.get("format")
            raise ArtifactError(f"{self.engine.url!r} has format {has}; this clickbridge reads {FORMAT}")
        return found

    def close(self) -> None:
        self.engine.dispose()

    @staticmethod
    def _sqlite_file(name: str | None, new: bool) -> None:
        """Creates a new file that only its owner can read, since it has queries and the key of the hashes."""
        if not name or name == ":memory:":
            return
        if not new and not Path(name).is_file():
            raise InputError(f"no store at {name}: check the URL")
        with suppress(OSError):  # the file exists, or SQLite will report what is wrong
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))

    def share_secret(self, secret: Secret) -> None:
        """Takes over the secret of a model with user hashes, if the store has no event yet. The model then recognises
        the users of its log."""
        with self._translated(), self._writing() as c:
            mine = sa.select(meta.c.value).where(meta.c.name == "secret")
            if secret and not self._last(c):
                c.execute(sa.update(meta).where(meta.c.name == "secret").values(value=secret.key.hex()))
            self.secret = Secret(bytes.fromhex(str(c.execute(mine).scalar_one())))

    # --- transactions ----------------------------------------------------------------------------

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Translates errors of the database into one line, without the values of a statement, which may be queries."""
        try:
            yield
        except SQLAlchemyError as error:
            cause = getattr(error, "orig", None) or error
            line = str(cause).strip().splitlines()[0][:200] if str(cause).strip() else type(cause).__name__
            raise StoreError(f"the store does not answer: {line}") from None

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """One transaction at a time, over all processes."""
        with self.engine.connect() as c:
            c.exec_driver_sql("BEGIN IMMEDIATE" if self._sqlite else "BEGIN")
            try:
                if not self._sqlite:
                    c.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
                yield c
            except BaseException:
                c.exec_driver_sql("ROLLBACK")
                raise
            c.exec_driver_sql("COMMIT")

    # --- events ----------------------------------------------------------------------------------

    def append(self, new: Sequence[Event], shown_pages: Sequence[Shown] = ()) -> list[Event | None]:
        """Stores events with one commit. Returns each event with its number, or None if its id is already stored. For
        an undo, None also means that there is no such event, or that it was undone before."""
        with self._translated(), self._writing() as c:
            known = self._find(c, {e.event_id for e in new} | {e.undoes for e in new if e.undoes})
            last = self._last(c)
            out: list[Event | None] = []
            rows: list[dict[str, Any]] = []
            received = time.time()
            for event in new:
                if event.event_id in known or (event.undoes is not None and event.undoes not in known):
                    out.append(None)
                    continue
                last += 1
                known[event.event_id] = last
                rows.append(_row(event, last, received, known))
                out.append(replace(event, seq=last))
            if rows:
                c.execute(sa.insert(events), rows)
            self._write_shown(c, shown_pages, received)
            self._credit(c, [e for e in out if e is not None and e.page and e.clicks])
        return out

    def _write_shown(self, c: sa.Connection, pages: Sequence[Shown], received: float) -> None:
        if pages:
            rows = [{"query_id": p.query_id, "received": received, "body": p.to_json()} for p in pages]
            c.execute(self._insert_new(shown), rows)

    def _insert_new(self, table: sa.Table) -> Any:
        """An insert that skips rows that already exist."""
        from sqlalchemy.dialects import postgresql, sqlite

        return (sqlite if self._sqlite else postgresql).insert(table).on_conflict_do_nothing()

    def _credit(self, c: sa.Connection, clicked: Sequence[Event]) -> None:
        """Credits pages of an experiment. The first event with a click decides a page, and later ones change nothing,
        so that the counts are valid at any time."""
        if not clicked:
            return
        pages = {page.query_id: page for page in self._shown(c, [e.page for e in clicked if e.page])}
        for event in clicked:
            page = pages.get(event.page or "")
            if page is None or not page.experiment:
                continue
            team = dict(zip(page.results, page.teams, strict=True))
            won = [sum(team.get(d) == side for d in event.clicks) for side in (0, 1)]
            row = {
                "experiment": page.experiment,
                "query_id": page.query_id,
                "outcome": (won[0] > won[1]) - (won[0] < won[1]),
            }
            c.execute(self._insert_new(credits), [row])

    def _find(self, c: sa.Connection, ids: set[str]) -> dict[str, int]:
        """The numbers of those events that are stored."""
        out: dict[str, int] = {}
        asked = list(ids)
        for start in range(0, len(asked), AT_ONCE):
            chosen = events.c.event_id.in_(asked[start : start + AT_ONCE])
            out.update(c.execute(sa.select(events.c.event_id, events.c.seq).where(chosen)).all())
        return out

    @staticmethod
    def _last(c: sa.Connection) -> int:
        return int(c.execute(sa.select(sa.func.max(events.c.seq))).scalar() or 0)

    def last(self) -> int:
        """The number of the last event, which is how many there were in all."""
        with self._translated(), self.engine.connect() as c:
            return self._last(c)

    def first(self) -> int:
        """The number of the first event that is still kept. If there is none, one more than the last number."""
        with self._translated(), self.engine.connect() as c:
            return int(c.execute(sa.select(sa.func.min(events.c.seq))).scalar() or self._last(c) + 1)

    def knows(self, event_id: str) -> bool:
        with self._translated(), self.engine.connect() as c:
            return bool(self._find(c, {event_id}))

    def after(self, seq: int, most: int = 5_000) -> list[Event]:
        """The events after number `seq`, in order."""
        asked = sa.select(*ROW).where(events.c.seq > seq).order_by(events.c.seq).limit(most)
        with self._translated(), self.engine.connect() as c:
            return [Event.from_row(*row) for row in c.execute(asked).all()]

    def pages_after(self, seq: int, upto: int | None = None) -> Iterator[Event]:
        """Pages after number `seq`, in order, without those that were undone."""
        undone = self._undone()
        while batch := self.after(seq):
            for event in batch:
                if upto is not None and event.seq > upto:
                    return
                seq = event.seq
                if event.undoes is None and event.seq not in undone:
                    yield event

    def _undone(self) -> set[int]:
        with self._translated(), self.engine.connect() as c:
            return set(c.execute(sa.select(events.c.undoes).where(events.c.undoes.is_not(None))).scalars().all())

    def find(self, event_id: str) -> Event | None:
        """An event by its id, if it is still kept."""
        with self._translated(), self.engine.connect() as c:
            row = c.execute(sa.select(*ROW).where(events.c.event_id == event_id)).first()
        return None if row is None else Event.from_row(*row)

    # --- answers that were shown -----------------------------------------------------------------

    def shown(self, query_ids: Sequence[str]) -> dict[str, Shown]:
        """Answers by their ids, if they are still kept."""
        with self._translated(), self.engine.connect() as c:
            return {page.query_id: page for page in self._shown(c, query_ids)}

    @staticmethod
    def _shown(c: sa.Connection, query_ids: Sequence[str]) -> list[Shown]:
        out = []
        for start in range(0, len(query_ids), AT_ONCE):
            chosen = shown.c.query_id.in_(query_ids[start : start + AT_ONCE])
            rows = c.execute(sa.select(shown.c.query_id, shown.c.body).where(chosen)).all()
            out += [Shown.from_json(query_id, body) for query_id, body in rows]
        return out

    # --- what the events say ---------------------------------------------------------------------

    def users_by_query(self, at_least: int) -> dict[str, int]:
        """Queries that at least this many different people typed, with the number of people."""
        people = sa.func.count(sa.distinct(events.c.who))
        asked = (
            sa.select(events.c.query, people)
            .where(events.c.who != 0, events.c.query != "")
            .group_by(events.c.query)
            .having(people >= at_least)
        )
        with self._translated(), self.engine.connect() as c:
            return dict(c.execute(asked).all())

    def outcomes(self, experiment: str) -> dict[int, int]:
        """The number of pages that the first side won (1), the second side won (-1), or neither (0)."""
        asked = (
            sa.select(credits.c.outcome, sa.func.count())
            .where(credits.c.experiment == experiment)
            .group_by(credits.c.outcome)
        )
        with self._translated(), self.engine.connect() as c:
            return dict(c.execute(asked).all())

    # --- retention -------------------------------------------------------------------------------

    def purge(self, before: float, upto: int) -> int:
        """Deletes events up to number `upto` that are older than a time. The last event always stays, for its
        number."""
        with self._translated(), self._writing() as c:
            old = sa.and_(events.c.received < before, events.c.seq <= upto, events.c.seq < self._last(c))
            return int(c.execute(sa.delete(events).where(old)).rowcount)

    def purge_shown(self, before: float) -> int:
        with self._translated(), self._writing() as c:
            return int(c.execute(sa.delete(shown).where(shown.c.received < before)).rowcount)

    def last_before(self, before: float) -> int:
        """The number of the last event before a time; 0 if there is none."""
        asked = sa.select(sa.func.max(events.c.seq)).where(events.c.received < before)
        with self._translated(), self.engine.connect() as c:
            return int(c.execute(asked).scalar() or 0)

    # --- one person ------------------------------------------------------------------------------

    def events_of(self, user: int) -> int:
        """The number of events of a user."""
        asked = sa.select(sa.func.count()).where(events.c.who == _signed(user))
        with self._translated(), self.engine.connect() as c:
            return int(c.execute(asked).scalar_one())

    def forget(self, user: int) -> tuple[int, int]:
        """Empties the events of a user, which keep only their numbers and ids, and deletes the answers they clicked.
        Returns how many of each. Nothing of them remains in the files of SQLite, or in live rows of PostgreSQL."""
        mine = events.c.who == _signed(user)
        with self._translated(), self._writing() as c:
            bodies = c.execute(sa.select(events.c.body).where(mine)).scalars().all()
            pages = [page for body in bodies if (page := orjson.loads(body).get("p"))]
            blank = {"query": "", "who": 0, "body": Event(event_id="").to_json()}
            c.execute(sa.update(events).where(mine).values(blank))
            answers = 0
            for start in range(0, len(pages), AT_ONCE):
                chosen = shown.c.query_id.in_(pages[start : start + AT_ONCE])
                answers += int(c.execute(sa.delete(shown).where(chosen)).rowcount)
        with self._translated(), self.engine.connect() as c:
            for statement in SQLITE_VACUUM if self._sqlite else [f"VACUUM {events.name}, {shown.name}"]:
                c.exec_driver_sql(statement)
        return len(bodies), answers


def _row(event: Event, seq: int, received: float, known: dict[str, int]) -> dict[str, Any]:
    return {
        "seq": seq,
        "event_id": event.event_id,
        "undoes": None if event.undoes is None else known[event.undoes],
        "query": event.query,
        "who": _signed(event.user),
        "received": received,
        "body": event.to_json(),
    }


def _signed(user: int) -> int:
    """A 64-bit hash as a signed integer, since databases have no unsigned ones."""
    return user - (1 << 64) if user >= 1 << 63 else user


def _prepare_sqlite(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=15000", "temp_store=MEMORY"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
