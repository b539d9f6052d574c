"""Settings: declared together with their model, checked once, then frozen.

    @settings
    class PLSSettings(Counting, Text):
        dim: int = setting(600, "dimensions of the latent space", 1, 100_000)

A class of settings is a frozen dataclass. Creating an object checks every value. The command line, the docs and the
constructors use the same declarations.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar, dataclass_transform

from clickbridge.errors import SettingError

AUTO_LANGUAGE = "auto"
"""The language that `fit` finds in the text; `Model.in_language_of` puts it in its place."""
LANGUAGES = (
    "arabic", "danish", "dutch", "english", "finnish", "french", "german", "hungarian", "italian",
    "norwegian", "portuguese", "romanian", "russian", "spanish", "swedish", "turkish", "none",
)  # fmt: skip
Kind = TypeVar("Kind")
ADVANCED = "advanced"
UNBOUNDED = 1e6
"""From here on an upper limit only keeps out what cannot be meant, and is not worth telling."""


@dataclass(frozen=True)
class Setting:
    """One setting: its default (which also gives its type), its limits, and one line of help."""

    name: str
    default: Any
    help: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    group: str = ""
    """Where it is shown: with those that matter (""), under "advanced", or under the code of the paper whose formula
    it is there to reproduce, as "13"."""

    @property
    def limits(self) -> str:
        """The allowed values, in words."""
        if self.choices:
            return ", ".join(self.choices)
        if isinstance(self.default, bool):
            return "true, false"
        if self.low is None and self.high is None:
            return "text"
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        tiny = self.low is not None and 0 < self.low <= 1e-6
        if self.high is None or self.high >= UNBOUNDED:
            return f"{kind} above 0" if tiny else f"{kind}, at least {self.low:g}"
        above = "above 0, up to" if tiny else f"{self.low:g} to"
        return f"{kind}, {above} {_plainly(self.high)}"

    @property
    def heading(self) -> str:
        """The heading of its group, as in `help` and the docs."""
        if not self.group:
            return "Settings"
        return "Advanced settings" if self.group == ADVANCED else f"To follow the paper ({self.group})"

    @property
    def lines(self) -> str:
        """For `help`: name, type, default; then meaning and limits."""
        limits = f" One of {self.limits}." if self.choices else f" {self.limits[:1].upper()}{self.limits[1:]}."
        told = self.choices or (isinstance(self.default, int | float) and not isinstance(self.default, bool))
        sentence = f"{self.help[:1].upper()}{self.help[1:]}.{limits if told else ''}"
        said = textwrap.fill(sentence, 100, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
        return f"{self.name} : {type(self.default).__name__}, default {self.default!r}\n{said}"

    def check(self, value: Any) -> Any:
        """The value, converted to the type of the default. Raises a SettingError if it does not fit."""
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
            raise self._refusal(value) from None
        outside = (self.low is not None and not value >= self.low) or (self.high is not None and not value <= self.high)
        if outside or (self.choices and value not in self.choices):
            raise self._refusal(value)
        return value

    def _refusal(self, value: Any) -> SettingError:
        listed = self.choices or isinstance(self.default, bool)
        return SettingError(f"{self.name} must be {'one of ' if listed else ''}{self.limits}; got {value!r}")


def _written(value: Any) -> str:
    """A value as a setting of text writes it: `{"title": 3}` is `title:3`, `[1, 0.5]` is `1,0.5`, .1 is `0.1`."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, Mapping):
        return ",".join(f"{name}:{number}" for name, number in value.items())
    if isinstance(value, list | tuple):
        return ",".join(str(item) for item in value)
    raise ValueError


def _plainly(number: float) -> str:
    """A number as `100,000` or `0.999999`, without powers of ten."""
    return f"{number:,.0f}" if number == int(number) else f"{number:g}"


def setting(
    default: Any,
    help: str,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    *,
    group: str = "",
) -> Any:
    """A field of a class of settings. At most a dozen settings of a model have no `group`: those that people change."""
    return field(default=default, metadata={"setting": (help, low, high, choices, group)})


def language_setting() -> Any:
    """The language of text, which models with and without the other settings of text have."""
    help = "stemmer and stop words; auto is the language of the documents, none switches both off"
    return setting(AUTO_LANGUAGE, help, choices=(AUTO_LANGUAGE, *LANGUAGES))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(setting, language_setting))
def settings(kind: type[Kind]) -> type[Kind]:
    """Makes a class of declared settings a frozen dataclass."""
    return dataclass(frozen=True, kw_only=True)(kind)


@settings
class Settings:
    """Base of all settings. An object has been checked and never changes."""

    min_users: int = setting(
        1, "minimum different users of a query and of a pair; others are not learned (needs users in the log)", 1, 1e9
    )

    def __post_init__(self) -> None:
        for name, own in declared_in(type(self)).items():
            object.__setattr__(self, name, own.check(getattr(self, name)))

    printed: ClassVar[Mapping[str, Any]] = {}
    """What a paper has instead of our defaults: a model takes these with `as_printed`, where nothing else is given."""


def declared_in(kind: type[Settings]) -> dict[str, Setting]:
    """The settings of a class, by name; those of its base classes come first."""
    return {f.name: Setting(f.name, f.default, *f.metadata["setting"]) for f in fields(kind)}


def own_first(declared: Iterable[Setting]) -> list[Setting]:
    """Settings by group, and in a group the model's own before those that many models have."""
    shared = {f.name for kind in (Counting, Fields, Searching, Seeded) for f in fields(kind)}
    return sorted(declared, key=lambda s: (s.group != "", s.group != ADVANCED, s.group, s.name in shared))


def grouped(declared: Iterable[Setting]) -> list[str]:
    """Settings for `help`, each group under its heading. In a group, the model's own come first."""
    groups: dict[str, list[Setting]] = {}
    for found in own_first(declared):
        groups.setdefault(found.heading, []).append(found)
    return ["\n".join([name, "-" * len(name), *(s.lines for s in own)]) for name, own in groups.items()]


@settings
class Printed(Settings):
    """Settings of models from a paper that differ here from the printed version."""

    as_printed: bool = setting(
        False,
        "the algorithm, features and constants of the paper, without our changes; a setting that you change still "
        "applies",
        group="09, 11M, 11R, 12, 13",
    )


@settings
class Seeded(Settings):
    seed: int = setting(0, "seed of everything random", 0, 2**31 - 1)


@settings
class Counting(Settings):
    """Which parts of the log count, and how much."""

    min_clicks: int = setting(1, "minimum clicks of a query-document pair; pairs with fewer are left out", 1, 1e9)
    response: str = setting(
        "clicks",
        "what a pair's clicks are worth: the count, log(1 + count), log(count) as in 11M (log-t: one click "
        "counts 0), or the count corrected for rank: coec, pbm or ips (need result pages); debiased is another name "
        "for pbm",
        choices=("clicks", "log", "log-t", "coec", "pbm", "ips", "debiased"),
    )
    half_life: float = setting(
        0.0, "days after which a click counts half; 0 means never (needs times in the log)", 0, 1e6
    )
    max_clicks_per_user: int = setting(
        0,
        "users with more clicks are treated as robots and left out; 0 keeps everyone (needs users in the log)",
        0,
        1e9,
        group=ADVANCED,
    )


@settings
class Text(Settings):
    """How text becomes words."""

    language: str = language_setting()
    stop_words: str = setting(
        "keep",
        "keep words like the and of (their low idf gives them little weight), or drop them",
        choices=("keep", "drop"),
        group=ADVANCED,
    )


@settings
class Fields(Text):
    """Text of documents with several fields."""

    fields: str = setting(
        "auto", "field weights, e.g. title:3,overview; equal gives each 1; auto learns them from held-back clicks"
    )


@settings
class Comparing(Settings):
    """How two queries, or two documents, are compared by their images."""

    similarity: str = setting(
        "cosine",
        "how two queries, or two documents, are compared: the cosine of their images, or the dot product (11M)",
        choices=("cosine", "dot"),
        group="11M",
    )


@settings
class Searching(Settings):
    """How dense images are searched."""

    search: str = setting(
        "exact",
        "how the collection is searched: exactly, or only in the nearest cells (needs FAISS)",
        choices=("exact", "ann"),
    )
    probe: float = setting(
        0.05, "share of the cells that a search looks into (search=ann); 1 is exact search", 1e-4, 1, group=ADVANCED
    )


def addressed(key: str, owner: str, names: Iterable[str]) -> str | None:
    """The name of the setting that `key` addresses in the model `owner`: `dim`, or `pls.dim` for pls only. None if the
    key is for another model."""
    who, _, name = key.rpartition(".")
    return name if name in names and who in ("", owner) else None


def parse_assignments(pairs: Iterable[str]) -> dict[str, str]:
    """Parses the `key=value` arguments of `--set`. A key can be for one part of a spec (`bm25.k1=2`)."""
    out: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise SettingError(f"--set takes key=value; got {pair!r}")
        out[key] = value
    return out
