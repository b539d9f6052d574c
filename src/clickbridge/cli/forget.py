"""The verb forget: a person taken out of what is stored."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from clickbridge.cli.console import Json, print_json, progress_bar, say
from clickbridge.cli.fitting import WhereToWork
from clickbridge.cli.options import with_options
from clickbridge.errors import InputError, SettingError
from clickbridge.wording import count_of


@with_options
def forget(
    place: Annotated[
        str, typer.Argument(help="A GRAPH, a learner's STATE, a MODEL, or the URL of a store.", show_default=False)
    ],
    user: Annotated[str, typer.Option(help="The user's id, as in the log.", show_default=False)],
    model: Annotated[Path | None, typer.Option(help="The MODEL that a STATE belongs to.")] = None,
    refit: Annotated[bool, typer.Option("--refit", help="Fit a MODEL again from the GRAPH that forgot.")] = False,
    graph: Annotated[Path | None, typer.Option(help="The GRAPH to fit a MODEL from again.")] = None,
    *,
    where: WhereToWork,
    json: Json = False,
) -> None:
    """Remove what a person did, and prove it."""
    from dataclasses import asdict

    kind = kind_of(place)
    if kind != "model" and (refit or graph is not None):
        raise SettingError(f"--refit and --graph are for a MODEL; this is a {kind.upper()}")
    done: Any
    if kind == "store":
        done = _from_store(place, user)
    elif kind == "model":
        done = _refitted(Path(place), user, refit, graph, where.start())
    elif kind == "graph":
        from clickbridge.graph.forget import forget_user

        done = forget_user(place, user)
    else:
        done = _from_state(Path(place), user, model)
    if json:
        print_json({"kind": kind, **asdict(done)})
    else:
        say(done.line)


def kind_of(place: str) -> str:
    """graph, model, state or store."""
    return "store" if "://" in place else _kind_of_folder(Path(place))


def _kind_of_folder(place: Path) -> str:
    from clickbridge.io.manifest import MANIFEST, read_manifest

    if (place / "events.jsonl").is_file() or (place / "snapshot").is_dir():
        return "state"
    if not (place / MANIFEST).is_file():
        raise InputError(
            f"{place} is not a GRAPH, a MODEL or a learner's STATE: give the folder of one, or a store's URL"
        )
    kind = str(read_manifest(place)["kind"])
    if kind not in ("graph", "model"):
        raise InputError(f"{place} is a {kind}: a GRAPH, a MODEL or a learner's STATE is needed here")
    return kind


def _refitted(place: Path, user: str, refit: bool, graph: Path | None, engine: Any) -> Any:
    """What a model learned of one person cannot be told apart: it is learned again without them."""
    from clickbridge.graph.clickgraph import ClickGraph
    from clickbridge.graph.forget import forget_user
    from clickbridge.io.artifact import kept_for_writing
    from clickbridge.models.model_folder import KIND, load

    if not refit or graph is None:
        raise InputError(
            f"{place} is a MODEL, which does not know who clicked: fit it again from the GRAPH, "
            "with --refit --graph GRAPH, which forgets the user there first"
        )
    with kept_for_writing(place, KIND):
        opened = load(place)
        done = forget_user(graph, user)
        if opened.applied_:
            say(f"{graph} lacks {count_of(len(opened.applied_), 'log')} that update added to {place}: update again")
        with progress_bar() as progress:
            progress(f"fitting {opened.spec}")
            opened.fit(ClickGraph.open(graph), engine=engine, progress=progress)
            opened.save(place)
    return done


def _from_state(place: Path, user: str, model: Path | None) -> Any:
    from clickbridge.models.model_folder import load
    from clickbridge.online.forget import forget_user
    from clickbridge.online.journal import Journal
    from clickbridge.online.online import Online

    if model is None:
        raise SettingError(f"{place} is a learner's STATE: name the MODEL that it belongs to, with --model")
    opened = load(model)
    if not isinstance(opened, Online):
        raise InputError(f"{model} is a {opened.spec} model: a learner's STATE belongs to an online one")
    with Journal(place, opened) as journal:
        return forget_user(journal, user)


def _from_store(url: str, user: str) -> Any:
    from clickbridge.cli.serving import serving_extra

    with serving_extra():
        from clickbridge.serve.forget import forget_user
        from clickbridge.serve.store import Store

    with closing(Store(url, new=False)) as store:
        return forget_user(store, user)
