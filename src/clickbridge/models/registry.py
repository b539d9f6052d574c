"""The registry of models that a spec can name. Packages register their models here; this module imports none of them.

A model is registered by its class, or by the path of its class (`package.module:Class`), which is imported when the
model is first needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from clickbridge.errors import SettingError

if TYPE_CHECKING:
    from clickbridge.models.model import Model

Kind = TypeVar("Kind", bound="type[Model]")
MODELS: dict[str, type[Model] | str] = {}
"""Models by the name that a spec calls them."""
WRAPPERS: dict[str, type[Model] | str] = {}
"""What may stand before the colon of a spec."""
SUMS: dict[str, type[Model] | str] = {}
"""What `a+b` becomes: `sum` where every part is an S-function, else `linear`."""
SHORT_FOR: dict[str, str] = {}
"""Names that stand for a longer spec."""
TABLES = {"model": MODELS, "wrapper": WRAPPERS, "sum": SUMS}


def register(model: Kind, kind: str = "model") -> Kind:
    """Adds a model of your own under its `name`, so that specs, `load` and `compare` know it.

    Parameters
    ----------
    model : type of Model
        The class. It needs a `name` of letters, digits and hyphens.
    kind : str
        "model", "sum" for a model of several summands, or "wrapper" for a model around another one.

    Returns
    -------
    type of Model
        The class itself, so that `register` may be used as a decorator.

    Examples
    --------
    >>> from clickbridge import BM25, build_model, register
    >>> @register
    ... class ShortFields(BM25):
    ...     name, about = "short-fields", "BM25 that does not discount long fields"
    ...
    ...     def __init__(self, **settings):
    ...         super().__init__(**{"b": 0.0} | settings)
    >>> build_model("short-fields+pls").spec
    'short-fields+pls'
    """
    if kind not in TABLES:
        raise SettingError(f"a model is registered as one of {', '.join(TABLES)}; got {kind!r}")
    name = getattr(model, "name", "")
    if not isinstance(name, str) or not name.replace("-", "").isalnum():
        raise SettingError(f"a model's name is letters, digits and hyphens; got {name!r}")
    known = model_home(name)
    if name in SHORT_FOR or (known is not None and known is not model and not _same(known, model)):
        raise SettingError(f"there is a model {name!r} already: choose another name")
    TABLES[kind][name] = model
    return model


def _same(known: type[Model] | str, model: type[Model]) -> bool:
    home = f"{model.__module__}:{model.__qualname__}"
    return known == home or (not isinstance(known, str) and f"{known.__module__}:{known.__qualname__}" == home)


def provide(kind: str, homes: dict[str, str]) -> None:
    """Registers models by the paths of their classes."""
    TABLES[kind].update(homes)


def model_home(name: str) -> type[Model] | str | None:
    return next((table[name] for table in TABLES.values() if name in table), None)


def model_class(name: str) -> type[Model]:
    home = model_home(name)
    if home is None:
        raise SettingError(f"no model {name!r}; there are {', '.join((*MODELS, *WRAPPERS))}")
    if not isinstance(home, str):
        return home
    module, _, attribute = home.partition(":")
    found: type[Model] = getattr(import_module(module), attribute)
    return found
