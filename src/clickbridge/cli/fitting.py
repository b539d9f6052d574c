"""The options of fitting, which `fit` and `compare` share."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from clickbridge.settings import SETTINGS, parse_assignments

Dim = Annotated[int | None, typer.Option(help=SETTINGS["dim"].help)]
Fields = Annotated[str | None, typer.Option(help=SETTINGS["fields"].help)]
MinClicks = Annotated[int | None, typer.Option(help=SETTINGS["min_clicks"].help)]
MinUsers = Annotated[int | None, typer.Option(help=SETTINGS["min_users"].help)]
Response = Annotated[str | None, typer.Option(help=SETTINGS["response"].help)]
HalfLife = Annotated[float | None, typer.Option(help=SETTINGS["half_life"].help)]
Assignments = Annotated[list[str], typer.Option(help="key=value, for every part that has it; bm25.k1=2 for one.")]


def fit_settings(assignments: list[str], **options: Any) -> dict[str, Any]:
    """Settings of --set and of the options that were given, which count more."""
    return {**parse_assignments(assignments), **{name: v for name, v in options.items() if v is not None}}
