"""The verb that takes new clicks and documents into a model: update."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from clickbridge.cli.console import Json, ModelPath, keep_apart, print_json, print_table, progress_bar, say
from clickbridge.cli.fitting import EngineName, Memory, Threads, engine_of
from clickbridge.cli.inputs import MaxRejects, Reading, guesses_told, reads, tell_about
from clickbridge.engines.base import Engine
from clickbridge.errors import InputError, SettingError
from clickbridge.wording import agree, count_of


@reads
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
    engine: EngineName = "local",
    threads: Threads = 0,
    memory: Memory = "0",
    json: Json = False,
) -> None:
    """Add new clicks and documents to a model without learning from scratch."""
    from clickbridge.io.artifact import file_sha256, kept_for_writing
    from clickbridge.log.rejects import RejectLog
    from clickbridge.models.known_words import unknown_words
    from clickbridge.models.model_folder import KIND, load

    runs_on = engine_of(engine, threads, memory)
    if store is not None:
        if logs or docs or remove_docs:
            raise SettingError("update takes either a store (--from) or files, not both")
        update_from(model, store, runs_on, json)
        return
    if not (logs or docs or remove_docs):
        raise SettingError("update needs a log, --docs, --remove-docs or --from")
    keep_apart([], docs)
    if "-" in (logs or []):
        raise SettingError("update remembers each log by its checksum: give a file, not standard input")
    for path in logs or []:
        if not Path(path).is_file():
            raise InputError(f"no file {path}: check the path")
    # From reading to writing: if two updates ran at once, one would lose what the other has added.
    with kept_for_writing(model, KIND):
        opened = load(model)
        hashes = [file_sha256(Path(path)) for path in logs or []]
        for path, digest in zip(logs or [], hashes, strict=True):
            if digest in opened.applied_ and not again:
                raise InputError(f"{path} was already added to {model}: give a new log, or --again")
        lost, lost_docs = RejectLog(max_rejects), RejectLog(max_rejects)
        log, documents = reading.log_and_docs(logs or [], docs, lost, lost_docs)
        gone = remove_docs.read_text(encoding="utf8", errors="replace").split() if remove_docs else []
        if set(opened.doc_ids_) <= {*gone}:
            raise InputError(f"{remove_docs} names every document of {model}: a model needs at least one")
        unknown = len({*gone} - {*opened.doc_ids_})
        if unknown:
            say(f"{remove_docs} has {count_of(unknown, 'id')} that {agree(unknown, 'are')} not in the model")
        with guesses_told(json, log, documents), progress_bar() as progress:
            progress(f"updating {opened.spec}")
            new = list(documents)
            before = {*opened.doc_ids_}
            strange = unknown_words(opened.fitted, new)
            opened.update(log, new, gone, engine=runs_on, applied=hashes)
            opened.save(model)
    tell_about(None, log, documents, None)
    added = len({document.doc_id for document in new} - before)
    if new:
        line = f"{count_of(added, 'document')} added, {len({d.doc_id for d in new}) - added:,} changed"
        if strange:
            line += (
                f"; {count_of(len(strange), 'word')} in them {agree(len(strange), 'are')} unknown until the next fit"
            )
        say(line)
    summary: dict[str, Any] = {"model": opened.spec, "documents": len(opened.doc_ids_)}
    summary |= {"added": added, "unknown_words": len(strange), "logs_taken_in": len(opened.applied_)}
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
    if json:
        print_json(summary)
    else:
        print_table(f"{model}", ("", "value"), [(name.replace("_", " "), value) for name, value in summary.items()])
