"""The verb that answers over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from clickbridge.cli.console import say
from clickbridge.errors import InputError, SettingError


@contextmanager
def serving_extra() -> Iterator[None]:
    """Says which extra is missing, where one is."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise SettingError(f"this needs {error.name}: pip install 'clickbridge[serve]'") from None


def check_serving() -> None:
    """Refuses at the start what would be missed at the end, after minutes of work."""
    with serving_extra():
        import clickbridge.serve.run  # noqa: F401


def serve(
    models: Annotated[list[str], typer.Argument(help="MODEL folders, or NAME=MODEL.", show_default=False)],
    host: Annotated[str, typer.Option(help="Address to listen on; all but loopback need a key file.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8765,
    store: Annotated[str | None, typer.Option(help="Database of events: sqlite:///FILE or postgresql://…")] = None,
    key_file: Annotated[Path | None, typer.Option(help="Keys and their scopes, one per line.")] = None,
    min_users: Annotated[int, typer.Option(min=1, help="People who must have typed a query before others see it.")] = 2,
    no_page: Annotated[bool, typer.Option("--no-page", help="Leave out the search page.")] = False,
    update_every: Annotated[str, typer.Option(help="Retrain from the store this often, e.g. 1h; 0 is never.")] = "0",
    keep: Annotated[str, typer.Option(help="Keep events this long, e.g. 90d; 0 is forever.")] = "0",
    click_window: Annotated[str, typer.Option(help="How long after an answer a click may refer to it.")] = "30m",
    pins: Annotated[Path | None, typer.Option(help="Pinned and blocked documents, one rule per line.")] = None,
    experiment: Annotated[str | None, typer.Option(help="Compare two models, e.g. a,b, on interleaved pages.")] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that answer.")] = 1,
    cors: Annotated[list[str], typer.Option(help="Origin of web pages that may ask.")] = [],  # noqa: B006
    rate: Annotated[float, typer.Option(min=0, help="Requests per second of one caller; 0 is without limit.")] = 0,
    log_queries: Annotated[bool, typer.Option("--log-queries", help="Write queries into the log.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No log line for each request.")] = False,
) -> None:
    """Rank, search and learn over HTTP."""
    with serving_extra():
        from clickbridge.serve.run import run
    from clickbridge.serve.config import Config, default_store, named_models, seconds_of, two_names

    named = named_models(models)
    for folder in named.values():
        if not (Path(folder) / "manifest.json").is_file():
            raise InputError(f"no model at {folder}: give the folder that it was saved to")
    config = Config(
        models=named,
        store=store or default_store(named),
        host=host,
        port=port,
        workers=workers,
        key_file=None if key_file is None else str(key_file.absolute()),
        min_users=min_users,
        page=not no_page,
        pins=None if pins is None else str(pins.absolute()),
        experiment=two_names(experiment) if experiment else None,
        update_every=seconds_of(update_every, "--update-every"),
        keep=seconds_of(keep, "--keep"),
        click_window=seconds_of(click_window, "--click-window"),
        cors=tuple(cors),
        rate=rate,
        log_requests=not quiet,
        log_queries=log_queries,
    )
    say(f"serving {', '.join(named)} on http://{host}:{port}")
    run(config)
