"""Settings: declared beside the model that has them, checked once, then frozen.

    @settings
    class PLSSettings(Counting, Text):
        dim: int = setting(600, "dimensions of the latent space", 1, 100_000)

A class of settings is a frozen dataclass. Making one checks every value; the command line, the docs and the
constructors read the same declarations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

from clickbridge.errors import SettingError

LANGUAGES = (
    "arabic", "danish", "dutch", "english", "finnish", "french", "german", "hungarian", "italian",
    "norwegian", "portuguese", "romanian", "russian", "spanish", "swedish", "turkish", "none",
)  # fmt: skip
Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Setting:
    """One declared setting: its default (whose type is the setting's), its limits, and one line of help."""

    name: str
    default: Any
    help: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def limits(self) -> str:
        if self.choices:
            return ", ".join(self.choices)
        if isinstance(self.default, bool):
            return "true, false"
        if self.low is None and self.high is None:
            return "text"
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        if self.high is None:
            return f"{kind}, at least {self.low:g}"
        return f"{kind}, {self.low:g} to {self.high:g}"

    @property
    def line(self) -> str:
        """For `help`: name, default, meaning, limits."""
        return f"    {self.name} = {self.default!r}\n        {self.help} ({self.limits})"

    def check(self, value: Any) -> Any:
        """The value, converted to the default's type; one clear line where it does not fit."""
        kind = type(self.default)
        try:
            if kind is bool:
                value = {"true": True, "1": True, "false": False, "0": False}[str(value).lower()]
            elif kind in (int, float):
                if kind is int and not isinstance(value, str) and (isinstance(value, bool) or int(value) != value):
                    raise ValueError
                value = kind(value)
            elif not isinstance(value, str):
                value = _written(value)
        except (ValueError, KeyError, TypeError, OverflowError):
            raise SettingError(f"{self.name} must be {self.limits}; got {value!r}") from None
        outside = (self.low is not None and not value >= self.low) or (self.high is not None and not value <= self.high)
        if outside or (self.choices and value not in self.choices):
            raise SettingError(f"{self.name} must be {self.limits}; got {value!r}")
        return value


def _written(value: Any) -> str:
    """A dict or a list as a setting of text writes it: `{"title": 3}` is `title:3`, `[1, 0.5]` is `1,0.5`."""
    if isinstance(value, Mapping):
        return ",".join(f"{name}:{number}" for name, number in value.items())
    if isinstance(value, list | tuple):
        return ",".join(str(item) for item in value)
    raise ValueError


def setting(
    default: Any, help: str, low: float | None = None, high: float | None = None, choices: tuple[str, ...] = ()
) -> Any:
    """A field of a class of settings."""
    return field(default=default, metadata={"setting": (help, low, high, choices)})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(setting,))
def settings(kind: type[Kind]) -> type[Kind]:
    """Makes a class of declared settings a frozen dataclass."""
    return dataclass(frozen=True, kw_only=True)(kind)


@settings
class Settings:
    """Base of all settings. What is made has been checked and never changes."""

    min_users: int = setting(
        1, "queries and pairs of fewer different users are neither learned nor kept (needs users in the log)", 1, 1e9
    )

    def __post_init__(self) -> None:
        for name, declared in declared_in(type(self)).items():
            object.__setattr__(self, name, declared.check(getattr(self, name)))


def declared_in(kind: type[Settings]) -> dict[str, Setting]:
    """The settings that a class declares, by name, those of its bases first."""
    return {f.name: Setting(f.name, f.default, *f.metadata["setting"]) for f in fields(kind)}


@settings
class Seeded(Settings):
    seed: int = setting(0, "seed of everything random", 0, 2**31 - 1)


@settings
class Counting(Settings):
    """What of the log counts."""

    min_clicks: int = setting(1, "a query-document pair counts from this many clicks on", 1, 1e9)
    response: str = setting(
        "clicks",
        "what a pair's clicks are worth: the count, log(1 + count), or the count less what the rank did: coec, pbm or "
        "ips (need result pages); debiased is another name of pbm",
        choices=("clicks", "log", "coec", "pbm", "ips", "debiased"),
    )
    half_life: float = setting(0.0, "days after which a click counts half; 0 is never (needs times in the log)", 0, 1e6)
    max_clicks_per_user: int = setting(
        0,
        "users with more clicks than this are taken for robots and left out; 0 keeps everyone (needs users in the log)",
        0,
        1e9,
    )


@settings
class Text(Settings):
    """How text becomes words."""

    language: str = setting("english", "stemmer and stop words; none switches both off", choices=LANGUAGES)
    stop_words: str = setting(
        "keep", "keep words like the and of (their idf makes them light), or drop them", choices=("keep", "drop")
    )


@settings
class Fields(Text):
    """Text of documents with several fields."""

    fields: str = setting("auto", "field weights, as title:3,overview; auto learns them through hold_back")


@settings
class Searching(Settings):
    """How dense images are searched."""

    search: str = setting(
        "exact",
        "how the collection is searched: exactly, or in the nearest cells alone (needs FAISS)",
        choices=("exact", "ann"),
    )
    probe: float = setting(0.05, "search=ann: share of the cells that a search looks into; 1 is exact search", 1e-4, 1)


def addressed(key: str, owner: str, names: Iterable[str]) -> str | None:
    """The setting that `key` names for the model `owner`: `dim`, or `pls.dim` for pls alone; None for another's."""
    who, _, name = key.rpartition(".")
    return name if name in names and who in ("", owner) else None


def parse_assignments(pairs: Iterable[str]) -> dict[str, str]:
    """`key=value` words of `--set`; keys may be addressed to one part of a spec (`bm25.k1=2`)."""
    out: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise SettingError(f"--set takes key=value; got {pair!r}")
        out[key] = value
    return out
