"""The verb that takes new clicks and documents into a model: update."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clickbridge.cli.console import Json, ModelPath, keep_apart, print_json, print_table, progress_bar, say
from clickbridge.cli.fitting import WhereToWork
from clickbridge.cli.inputs import MaxRejects, Reading, guesses_told, tell_about
from clickbridge.cli.options import with_options
from clickbridge.engines.base import Engine
from clickbridge.errors import InputError, SettingError
from clickbridge.wording import agree, count_of

if TYPE_CHECKING:
    from clickbridge.models.model import Model


@with_options
def update(
    model: ModelPath,
    logs: Annotated[list[str] | None, typer.Argument(help="New log files.", show_default=False)] = None,
    docs: Annotated[list[str], typer.Option(help="New or changed documents.")] = [],  # noqa: B006
    remove_docs: Annotated[Path | None, typer.Option(help="Ids of documents to remove, one per line.")] = None,
    *,
    reading: Reading,
    max_rejects: MaxRejects = "1%",
    again: Annotated[bool, typer.Option("--again", help="Add a log that was added before.")] = False,
    store: Annotated[str | None, typer.Option("--from", help="Take in the events of a service's store.")] = None,
    where: WhereToWork,
    json: Json = False,
) -> None:
    """Add new clicks and documents to a model without learning from scratch."""
    from clickbridge.io.artifact import kept_for_writing
    from clickbridge.log.rejects import RejectLog
    from clickbridge.models.known_words import unknown_words
    from clickbridge.models.model_folder import KIND, load

    runs_on = where.start()
    if store is not None:
        if logs or docs or remove_docs:
            raise SettingError("update takes either a store (--from) or files, not both")
        update_from(model, store, runs_on, json)
        return
    logs = logs or []
    check_given(logs, docs, remove_docs)
    # From reading to writing: if two updates ran at once, one would lose what the other has added.
    with kept_for_writing(model, KIND):
        opened = load(model)
        hashes = new_logs(logs, opened, model, again)
        log, documents = reading.log_and_docs(logs, docs, RejectLog(max_rejects), RejectLog(max_rejects))
        gone = ids_to_remove(remove_docs, opened, model)
        with guesses_told(json, log, documents), progress_bar() as progress:
            progress(f"updating {opened.spec}")
            new = list(documents)
            before = {*opened.doc_ids_}
            strange = unknown_words(opened.fitted, new)
            opened.update(log, new, gone, engine=runs_on, applied=hashes)
            opened.save(model)
    tell_about(None, log, documents, None)
    ids = {document.doc_id for document in new}
    added = len(ids - before)
    if new:
        say(f"{count_of(added, 'document')} added, {len(ids) - added:,} changed{words_to_learn(len(strange))}")
    summary = {"model": opened.spec, "documents": len(opened.doc_ids_), "added": added}
    print_summary(model, {**summary, "unknown_words": len(strange), "logs_taken_in": len(opened.applied_)}, json)


def check_given(logs: list[str], docs: list[str], remove_docs: Path | None) -> None:
    if not (logs or docs or remove_docs):
        raise SettingError("update needs a log, --docs, --remove-docs or --from")
    keep_apart([], docs)
    if "-" in logs:
        raise SettingError("update remembers each log by its checksum: give a file, not standard input")
    for path in logs:
        if not Path(path).is_file():
            raise InputError(f"no file {path}: check the path")


def new_logs(logs: list[str], opened: Model, model: Path, again: bool) -> list[str]:
    """The checksums of the logs. One that was added before is refused."""
    from clickbridge.io.artifact import file_sha256

    hashes = [file_sha256(Path(path)) for path in logs]
    for path, digest in zip(logs, hashes, strict=True):
        if digest in opened.applied_ and not again:
            raise InputError(f"{path} was already added to {model}: give a new log, or --again")
    return hashes


def ids_to_remove(path: Path | None, opened: Model, model: Path) -> list[str]:
    gone = path.read_text(encoding="utf8", errors="replace").split() if path else []
    if set(opened.doc_ids_) <= {*gone}:
        raise InputError(f"{path} names every document of {model}: a model needs at least one")
    unknown = len({*gone} - {*opened.doc_ids_})
    if unknown:
        say(f"{path} has {count_of(unknown, 'id')} that {agree(unknown, 'are')} not in the model")
    return gone


def words_to_learn(n: int) -> str:
    return f"; {count_of(n, 'word')} in them {agree(n, 'are')} unknown until the next fit" if n else ""


def print_summary(model: Path, summary: dict[str, Any], json: bool) -> None:
    if json:
        print_json(summary)
    else:
        print_table(f"{model}", ("", "value"), [(name.replace("_", " "), value) for name, value in summary.items()])


def update_from(model: Path, store: str, engine: Engine, json: bool) -> None:
    """Takes in what a service has kept."""
    from clickbridge.cli.serving import serving_extra

    with serving_extra():
        from clickbridge.serve.folding import fold
        from clickbridge.serve.store import Store

    with progress_bar() as progress:
        progress(f"updating {model}")
        with closing(Store(store, new=False)) as events:
            folded = fold(model, events, engine)
    summary = {"model": folded.spec, "events_read": folded.events, "pages_taken_in": folded.pages}
    print_summary(model, summary, json)
