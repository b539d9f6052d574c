"""The store: every event, once, in one order that all workers share.

SQLite in WAL mode, or PostgreSQL by its URL. Writers take turns (`BEGIN IMMEDIATE`, or one advisory lock), so numbers
follow commits: whoever has read up to number n has everything up to n. Numbers have no gaps.

    events   what people did; `seq` is the order, `event_id` makes a repeated event harmless
    shown    answers that were given, for a while, so that a click can name one by its id
    credits  who won a page of an experiment
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
"""The advisory lock of PostgreSQL that writers of events take."""
AT_ONCE = 500
"""Ids that one statement asks for."""
SQLITE_VACUUM = ("PRAGMA temp_store=FILE", "VACUUM", "PRAGMA temp_store=MEMORY", "PRAGMA wal_checkpoint(TRUNCATE)")
"""Writes the file anew without what was deleted: the copy is as large as the store, so not in memory."""

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
"""What an event is made of again."""


class StoreError(ClickbridgeError):
    """The database does not answer, or says no."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An answer that was given: what a click on it means."""

    query_id: str
    query: str
    results: tuple[str, ...]
    teams: tuple[int, ...] = ()
    """Of each result, the side of the experiment that brought it."""
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
        """Makes the store where there is none; not with `new=False`, for whoever wants what is in one."""
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
        # One that is dropped without `close` leaves no connection behind either.
        weakref.finalize(self, self.engine.dispose).atexit = False
        if self._sqlite:
            self._sqlite_file(parsed.database, new)
            sa.event.listen(self.engine, "connect", _prepare_sqlite)
        try:
            found = self._opened(new)
        except BaseException:  # a store that is refused leaves no connection open
            self.close()
            raise
        self.id = str(found["id"])
        self.secret = Secret(bytes.fromhex(str(found["secret"])))
        """The key that users are hashed by."""

    def _opened(self, new: bool) -> dict[str, str]:
        """Id, format and secret of the store, which is made where there is none."""
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
        """A new file is its owner's alone: it holds queries, and the key of the hashes."""
        if not name or name == ":memory:":
            return
        if not new and not Path(name).is_file():
            raise InputError(f"no store at {name}: check the URL")
        with suppress(OSError):  # there already, or a place where SQLite will say what is wrong
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))

    def share_secret(self, secret: Secret) -> None:
        """Takes over the secret of a model that knows its users, as long as there is no event: then it knows people
        of the log again."""
        with self._translated(), self._writing() as c:
            mine = sa.select(meta.c.value).where(meta.c.name == "secret")
            if secret and not self._last(c):
                c.execute(sa.update(meta).where(meta.c.name == "secret").values(value=secret.key.hex()))
            self.secret = Secret(bytes.fromhex(str(c.execute(mine).scalar_one())))

    # --- transactions ----------------------------------------------------------------------------

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """What the database says, as one line; never with the values of a statement, which are people's queries."""
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
        """Keeps events, all with one commit; each comes back with its number, None for one whose id was there. An undo
        of what is not there, or of what was undone, is None too."""
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
        """An insert that passes over rows that are there."""
        from sqlalchemy.dialects import postgresql, sqlite

        return (sqlite if self._sqlite else postgresql).insert(table).on_conflict_do_nothing()

    def _credit(self, c: sa.Connection, clicked: Sequence[Event]) -> None:
        """The first event with a click decides a page of an experiment; later ones change nothing, so that looking at
        the counts at any time is fair."""
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
        """Numbers of the events that are there."""
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
        """The number of the last event: how many there were."""
        with self._translated(), self.engine.connect() as c:
            return self._last(c)

    def first(self) -> int:
        """The number of the first event that is still kept; one more than the last where none is."""
        with self._translated(), self.engine.connect() as c:
            return int(c.execute(sa.select(sa.func.min(events.c.seq))).scalar() or self._last(c) + 1)

    def knows(self, event_id: str) -> bool:
        with self._translated(), self.engine.connect() as c:
            return bool(self._find(c, {event_id}))

    def after(self, seq: int, most: int = 5_000) -> list[Event]:
        """The next events, in their order."""
        asked = sa.select(*ROW).where(events.c.seq > seq).order_by(events.c.seq).limit(most)
        with self._translated(), self.engine.connect() as c:
            return [Event.from_row(*row) for row in c.execute(asked).all()]

    def pages_after(self, seq: int, upto: int | None = None) -> Iterator[Event]:
        """Pages in their order, those left out that were undone."""
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
        """An event by its id, as long as it is kept."""
        with self._translated(), self.engine.connect() as c:
            row = c.execute(sa.select(*ROW).where(events.c.event_id == event_id)).first()
        return None if row is None else Event.from_row(*row)

    # --- answers that were shown -----------------------------------------------------------------

    def shown(self, query_ids: Sequence[str]) -> dict[str, Shown]:
        """Answers by their ids, as far as they are kept."""
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
        """Queries that so many different people typed, with how many did."""
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
        """Pages that the first side won (1), the second (-1), and neither (0)."""
        asked = (
            sa.select(credits.c.outcome, sa.func.count())
            .where(credits.c.experiment == experiment)
            .group_by(credits.c.outcome)
        )
        with self._translated(), self.engine.connect() as c:
            return dict(c.execute(asked).all())

    # --- retention -------------------------------------------------------------------------------

    def purge(self, before: float, upto: int) -> int:
        """Drops events up to number `upto` that came before a moment; the last event always stays, for its number."""
        with self._translated(), self._writing() as c:
            old = sa.and_(events.c.received < before, events.c.seq <= upto, events.c.seq < self._last(c))
            return int(c.execute(sa.delete(events).where(old)).rowcount)

    def purge_shown(self, before: float) -> int:
        with self._translated(), self._writing() as c:
            return int(c.execute(sa.delete(shown).where(shown.c.received < before)).rowcount)

    def last_before(self, before: float) -> int:
        """The number of the last event that came before a moment; 0 where none did."""
        asked = sa.select(sa.func.max(events.c.seq)).where(events.c.received < before)
        with self._translated(), self.engine.connect() as c:
            return int(c.execute(asked).scalar() or 0)

    # --- one person ------------------------------------------------------------------------------

    def events_of(self, user: int) -> int:
        """How many events are known to be one person's."""
        asked = sa.select(sa.func.count()).where(events.c.who == _signed(user))
        with self._translated(), self.engine.connect() as c:
            return int(c.execute(asked).scalar_one())

    def forget(self, user: int) -> tuple[int, int]:
        """Blanks a person's events, which keep their numbers and ids, and drops the answers they clicked; how many of
        each. Then nothing of them is left in the files of SQLite, or in live rows of PostgreSQL."""
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
    """64 bits as databases have them."""
    return user - (1 << 64) if user >= 1 << 63 else user


def _prepare_sqlite(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=15000", "temp_store=MEMORY"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
