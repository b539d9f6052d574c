"""`clickbridge export`: a model for other engines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clickbridge.cli.console import Json, ModelPath, print_json, print_table, progress_bar


def export(
    model: ModelPath,
    to: Annotated[str, typer.Option(help="The target, e.g. opensearch; see the page.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The folder to write.", show_default=False)],
    graph: Annotated[Path | None, typer.Option(help="The GRAPH, for targets that are made of clicks.")] = None,
    min_users: Annotated[int, typer.Option(min=1, help="Leave out queries of fewer people, if the log has users.")] = 2,
    json: Json = False,
) -> None:
    """Write what another engine needs to rank as the model does."""
    from clickbridge.export.folder import check_folder
    from clickbridge.export.targets import export as write
    from clickbridge.graph.clickgraph import ClickGraph
    from clickbridge.models.model_folder import load

    check_folder(out)
    with progress_bar() as progress:
        progress("opening")
        opened = load(model)
        log = None if graph is None else ClickGraph.open(graph)
        progress(f"writing for {to}")
        write(opened, to, out, log, min_users)
    files = [
        {"file": f.relative_to(out).as_posix(), "bytes": f.stat().st_size}
        for f in sorted(out.rglob("*"))
        if f.is_file()
    ]
    if json:
        print_json({"model": opened.spec, "target": to, "out": str(out), "files": files})
    else:
        print_table(
            f"{out}: {opened.spec} for {to}, start with README.md", ("file", "bytes"), [(*f.values(),) for f in files]
        )
