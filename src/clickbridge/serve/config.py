"""The options of the service. Workers are separate processes, and read them from the environment."""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from clickbridge.errors import SettingError

VARIABLE = "CLICKBRIDGE_SERVE"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, kw_only=True)
class Config:
    models: dict[str, str]
    """Folders by name. The first one is the default."""
    store: str
    host: str = "127.0.0.1"
    port: int = 8765
    workers: int = 1
    key_file: str | None = None
    min_users: int = 2
    page: bool = True
    update_every: float = 0.0
    """Seconds between two updates from the store. 0 means never."""
    keep: float = 0.0
    """Seconds for which an event is kept. 0 means forever."""
    click_window: float = 1800.0
    """Seconds during which a click may refer to an answer by its `query_id`."""
    pins: str | None = None
    experiment: tuple[str, str] | None = None
    cors: tuple[str, ...] = ()
    rate: float = 0.0
    """Requests per second of one caller. 0 means no limit."""
    queue: int = 20_000
    """The most events that may wait to be written."""
    log_requests: bool = True
    log_queries: bool = False

    def to_json(self) -> str:
        return orjson.dumps(asdict(self)).decode()

    def to_environment(self) -> None:
        os.environ[VARIABLE] = self.to_json()

    @classmethod
    def from_environment(cls) -> Config:
        values = orjson.loads(os.environ[VARIABLE])
        experiment = values.pop("experiment")
        return cls(**values | {"cors": tuple(values["cors"])}, experiment=tuple(experiment) if experiment else None)

    def check(self) -> None:
        """Checks the options, as far as possible without loading anything."""
        if self.host not in LOOPBACK and self.key_file is None:
            raise SettingError(f"{self.host} can be reached from other machines: give --key-file, or --host 127.0.0.1")
        for name in self.experiment or ():
            if name not in self.models:
                raise SettingError(f"--experiment compares two of the models {', '.join(self.models)}; got {name!r}")


def named_models(given: list[str]) -> dict[str, str]:
    """The models by name. `MODEL` gets the name of its folder; `NAME=MODEL` sets the name."""
    out: dict[str, str] = {}
    for text in given:
        name, equals, folder = text.partition("=")
        if not equals or "/" in name:
            folder, name = text, Path(os.path.abspath(text)).name
        if not NAME.fullmatch(name):
            raise SettingError(f"a model's name has letters, digits, - . and _; give it another name, NAME={folder}")
        if name in out:
            raise SettingError(f"two models are called {name}: give one another name, NAME={folder}")
        out[name] = os.path.abspath(folder)
    return out


def seconds_of(text: str, option: str) -> float:
    """Seconds from text such as `90d`, `1h`, `30m` or `10s`; 0 means never."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip())
    if not found or (not found[2] and float(found[1])):
        raise SettingError(f"{option} is a time, such as 90d, 1h, 30m or 10s; got {text!r}")
    return float(found[1]) * UNITS.get(found[2], 1)


def two_names(text: str) -> tuple[str, str]:
    """The two names in `a,b` of `--experiment`."""
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or names[0] == names[1]:
        raise SettingError(f"--experiment names two models, such as a,b; got {text!r}")
    return names[0], names[1]


def default_store(models: dict[str, str]) -> str:
    """The default store: next to the first model."""
    first = next(iter(models.values()))
    return f"sqlite:///{first}.events.db"
