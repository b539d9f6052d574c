"""Creates engines by name, for options and trials."""

from __future__ import annotations

from typing import Any

from clickbridge.engines.base import Engine
from clickbridge.errors import SettingError


def engine_named(name: str, threads: int = 0, memory: int = 0, **more: Any) -> Any:
    """The engine with this name, as in `--engine`. Only its own file is loaded."""
    if name == "local":
        from clickbridge.engines.local import Local

        return Local(threads, memory)
    if name == "ray" or name.startswith("ray://"):
        from clickbridge.engines.ray import Ray

        return Ray(threads, memory, address=name.removeprefix("ray") and name)
    if name == "gpu":
        from clickbridge.engines.gpu import Gpu

        return Gpu(threads, memory, **more)
    raise SettingError(f"--engine is local, ray, ray://HOST:PORT or gpu; got {name!r}")


def in_plain_values(engine: Engine) -> dict[str, Any]:
    """The arguments with which `engine_named` creates the same engine in another process."""
    name = getattr(engine, "address", "") or engine.name
    more = {"store": getattr(engine, "store")} if hasattr(engine, "store") else {}  # noqa: B009
    return {"name": name, "threads": engine.threads, "memory": engine.memory, **more}
