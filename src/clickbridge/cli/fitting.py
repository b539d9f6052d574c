"""The options of fitting and of where it runs, which verbs share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from clickbridge.errors import EngineError, SettingError
from clickbridge.settings import Counting, declared_in, parse_assignments
from clickbridge.settings import Fields as FieldSettings

COUNTING = declared_in(Counting)
Dim = Annotated[int | None, typer.Option(help="dimensions of the latent space; at most the rank of the data is used")]
Fields = Annotated[str | None, typer.Option(help=declared_in(FieldSettings)["fields"].help)]
MinClicks = Annotated[int | None, typer.Option(help=COUNTING["min_clicks"].help)]
MinUsers = Annotated[int | None, typer.Option(help=COUNTING["min_users"].help)]
Response = Annotated[str | None, typer.Option(help=COUNTING["response"].help)]
HalfLife = Annotated[float | None, typer.Option(help=COUNTING["half_life"].help)]
EngineName = Annotated[str, typer.Option("--engine", help="Where to work: local, ray, ray://HOST:PORT or gpu.")]
Threads = Annotated[int, typer.Option(min=0, max=1024, help="Threads; 0 is one for each core.")]
Memory = Annotated[str, typer.Option(help="Memory for working arrays, e.g. 12GiB; 0 is half of the machine's.")]
UNITS = {
    "": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
    "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
}  # fmt: skip
Assignments = Annotated[list[str], typer.Option(help="key=value, for every part that has it; bm25.k1=2 for one.")]


def engine_of(name: str, threads: int, memory: str) -> Any:
    """The engine that the options ask for."""
    from clickbridge.engines.named import engine_named

    return engine_named(name, threads, bytes_of(memory))


@dataclass(frozen=True, kw_only=True)
class WhereToWork:
    """The options that choose an engine."""

    engine: EngineName = "local"
    threads: Threads = 0
    memory: Memory = "0"

    def start(self) -> Any:
        return engine_of(self.engine, self.threads, self.memory)

    def for_plan(self) -> tuple[Any, str]:
        """The same for a plan, which is arithmetic: without a card it is one for a card with so much memory, and a note
        to go with the plan says so."""
        from clickbridge.engines.gpu import Gpu, SizeOfCard

        try:
            return self.start(), ""
        except EngineError as error:
            if self.engine != "gpu":
                raise
            engine = Gpu(self.threads, bytes_of(self.memory), card=SizeOfCard(0))
            note = f"{error}; this plan is for a card with {engine.memory / UNITS['GIB']:.3g} GiB, as --memory says"
            return Gpu(self.threads, engine.memory, card=SizeOfCard(engine.memory)), note


@dataclass(frozen=True, kw_only=True)
class HowToCount:
    """The options that say how clicks count."""

    min_clicks: MinClicks = None
    min_users: MinUsers = None
    response: Response = None
    half_life: HalfLife = None


def bytes_of(text: str) -> int:
    """`12GiB` as a number of bytes; a number alone is bytes."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
    unit = UNITS.get(found[2].upper()) if found else None
    if found is None or unit is None:
        raise SettingError(f"--memory is a size, such as 12GiB or 800MiB; got {text!r}")
    return int(float(found[1]) * unit)


def checked_counting(**values: Any) -> dict[str, Any]:
    """Settings of counting that were given, each within its limits."""
    return {name: COUNTING[name].check(value) for name, value in given(values).items()}


def fit_settings(assignments: list[str], **options: Any) -> dict[str, Any]:
    """Settings of --set and of the options that were given, which count more."""
    return {**parse_assignments(assignments), **given(options)}


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
