"""What was guessed of files, in one line: as options for the command line, or as arguments for Python."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable

from clickbridge.errors import shown, shown_names
from clickbridge.log.recognise import Layout
from clickbridge.wording import count_of

UNSHARED = {"--encoding", "--delimiter"}


def guessed_arguments(layout: Layout) -> str:
    """What was guessed of one file or frame, as arguments in Python, and the columns that are not used."""
    found = {}
    for option, value in layout.guessed.items():
        if layout.container == "frame" and option == "--format":
            continue  # frames need not be told
        renames = option.endswith("columns")
        name = "columns" if renames and layout.container != "frame" else option.removeprefix("--").replace("-", "_")
        found[name] = layout.renamed if renames else value
    said = [f"{name}={value!r}" for name, value in found.items()]
    parts = [f"guessed of {layout.path}: {', '.join(said)}"] if said else []
    if layout.above:
        parts.append(_skipped(layout))
    if layout.unused:
        parts.append(f"not used of {layout.path}: {shown_names(layout.unused)}")
    return "; ".join(parts)


def guessed_line(*files: Collection[Layout]) -> str:
    """What was guessed, written as options; empty where nothing was. Each of `files` is what one reader read."""
    common = said_for_all(layout for layouts in files for layout in layouts)
    parts = []
    for layouts in files:
        for names, options in guesses_in_words(layouts):
            # What differs from file to file cannot be said by one option; it is found again for each.
            apart = {name.removeprefix("--"): value for name, value in options.items() if name in UNSHARED - common}
            found = [f"{name} {value}" for name, value in apart.items()]
            words = [f"{name} {shlex.quote(value)}" for name, value in options.items() if name not in UNSHARED - common]
            own = f" ({', '.join(found)})" if found else ""
            parts.append(f"{names}{own}" + (f": {' '.join(words)}" if words else ""))
    said = [f"guessed, written as options: {'; '.join(parts)}"] if parts else []
    return "; ".join([*said, *(_skipped(layout) for layouts in files for layout in layouts if layout.above)])


def guesses_in_words(layouts: Iterable[Layout]) -> list[tuple[str, dict[str, str]]]:
    """What was guessed, with the files it was guessed for. Equal guesses are listed once."""
    out: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for layout in layouts:
        if layout.guessed:
            out.setdefault(tuple(layout.guessed.items()), []).append(layout.path)
    return [(", ".join(paths[:3]) + (", …" if len(paths) > 3 else ""), dict(key)) for key, paths in out.items()]


def _skipped(layout: Layout) -> str:
    """What stands above the header of a table."""
    lines, more = count_of(len(layout.above), "line", "were"), ", …" if len(layout.above) > 1 else ""
    return f"above the header of {layout.path} {lines} skipped: {shown(layout.above[0], 40)}{more}"


def said_for_all(layouts: Iterable[Layout]) -> set[str]:
    """The options `--encoding` and `--delimiter` to report. An option applies to all files, so all must agree."""
    every = list(layouts)
    concerned = {
        "--encoding": [layout for layout in every if layout.container in ("json", "table")],
        "--delimiter": [layout for layout in every if layout.container == "table"],
    }
    return {option for option, own in concerned.items() if len({layout.guessed.get(option) for layout in own}) == 1}
