"""Services and databases for the tests of serving."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from clickbridge import ClickGraph, build_model
from clickbridge.serve.config import Config
from conftest import skip_or_fail
from running import Running, running

POSTGRES = os.environ.get("CLICKBRIDGE_POSTGRES", "")
"""URL of a database that tests may create databases beside: postgresql://user@host/postgres."""


@pytest.fixture(scope="session")
def models(small_graph: ClickGraph, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`models("bm25")` is a fitted MODEL folder; do not change it."""
    folder = tmp_path_factory.mktemp("models")

    def path(spec: str) -> Path:
        found = folder / spec.replace(":", "-").replace("+", "-")
        if not found.exists():
            learning = {"blend": "1,8,4"} if spec.startswith("online:") else {}  # so small a log would not be trusted
            build_model(spec, learning).fit(small_graph).save(found)
        return found

    return path


@pytest.fixture
def serve(models: Callable[[str], Path], tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """`serve("bm25", "online:bm25", rate=5)` is a running service; options are those of `Config`."""
    with ExitStack() as stack:

        def start(*specs: str | Path, **options: Any) -> Running:
            paths = [models(spec) if isinstance(spec, str) else spec for spec in specs]
            options.setdefault("store", f"sqlite:///{tmp_path}/events.db")
            config = Config(models={p.name: str(p) for p in paths}, log_requests=False, **options)
            return stack.enter_context(running(config))

        yield start


@pytest.fixture
def postgres() -> Iterator[str]:
    """The URL of a database of its own on a real PostgreSQL server."""
    if not POSTGRES:
        skip_or_fail("no PostgreSQL: set CLICKBRIDGE_POSTGRES to the URL of a database")
    url = sa.make_url(POSTGRES).set(drivername="postgresql+psycopg")
    name = f"clickbridge_test_{os.getpid()}_{time.monotonic_ns()}"
    admin = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with admin.connect() as c:
        c.exec_driver_sql(f"CREATE DATABASE {name}")
    yield url.set(database=name, drivername="postgresql").render_as_string(hide_password=False)
    with admin.connect() as c:
        c.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    admin.dispose()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Every kind of database in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/events.db"
    found: str = request.getfixturevalue("postgres")
    return found
