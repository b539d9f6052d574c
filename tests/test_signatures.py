"""Public signatures say what they take and give: no `Any` in them."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from scipy import sparse

import clickbridge
from clickbridge import ClickGraph, Gpu, Local, Model, Ray
from clickbridge.graph.hold_back import HoldBack
from clickbridge.models.asking import Asking

NAMES = {"pa": pa, "sparse": sparse, "np": np, "HoldBack": HoldBack}
"""What modules import for type checkers alone."""
EXCEPT = {
    "settings",  # every class of models has settings of its own, and gives one of those
    "finish",  # for those who write models: fields of a fitted value of their own kind
    "composed",  # the same
}


def has_any(hint: object) -> bool:
    """NumPy's own types are left alone: an array of any shape has `Any` in them."""
    origin = typing.get_origin(hint) or hint
    if getattr(origin, "__module__", "").startswith("numpy"):
        return False
    return hint is typing.Any or any(map(has_any, _inner(hint)))


def _inner(hint: object) -> Iterator[object]:
    for part in typing.get_args(hint):
        yield from part if isinstance(part, list) else [part]


def public(name: str, found: object) -> Iterator[tuple[str, Callable[..., object]]]:
    """A function, or what `help` shows of a class."""
    if not inspect.isclass(found):
        if inspect.isfunction(found):
            yield name, found
        return
    listed = dir(found) if issubclass(found, Model | Local | Ray | Gpu | ClickGraph) else vars(found)
    for member in ("__init__", *(m for m in listed if not m.startswith("_"))):
        value = inspect.getattr_static(found, member)
        if isinstance(value, classmethod | staticmethod):
            value = value.__func__
        if isinstance(value, property):
            value = value.fget
        if inspect.isfunction(value) and value.__module__.startswith("clickbridge"):
            yield value.__qualname__, value


def test_no_public_signature_has_any() -> None:
    scanned, loose = 0, []
    for name in clickbridge.__all__:
        for called, function in public(name, getattr(clickbridge, name)):
            scanned += 1
            hints = typing.get_type_hints(function, localns=NAMES)
            loose += [
                f"{called}: {part}"
                for part, hint in hints.items()
                if has_any(hint) and called.rpartition(".")[2] not in EXCEPT
            ]
    assert scanned > 200
    assert sorted(set(loose)) == []


def test_the_scan_sees_any() -> None:
    assert has_any(dict[str, typing.Any])
    assert has_any(typing.Callable[[list[typing.Any]], int])
    assert not has_any(dict[str, object] | np.ndarray[typing.Any, typing.Any])


def test_defaults_print_as_they_are_written() -> None:
    """In `help` and in an editor: no `<function … at 0x…>`."""
    riddles = []
    for name in clickbridge.__all__:
        for called, function in public(name, getattr(clickbridge, name)):
            riddles += [called for p in inspect.signature(function).parameters.values() if " at 0x" in repr(p.default)]
    assert riddles == []


CALLED = [name for name in vars(Asking) if not name.startswith("_") and name != "fitted"]
CALLED += ["fit", "refit", "update", "plans", "keep_fields"]
"""Methods of a model that users call."""


def test_what_users_call_says_what_it_takes_and_gives() -> None:
    called = [getattr(Model, name) for name in CALLED]
    taught = (ClickGraph, clickbridge.Learner, clickbridge.Comparison, clickbridge.Evaluation, clickbridge.Client)
    for kind in (*taught, clickbridge.Journal, clickbridge.HoldBack):
        own = [getattr(kind, name) for name in dir(kind) if not name.startswith("_")]
        called += [method for method in own if inspect.isfunction(method) or inspect.ismethod(method)]
    called += [
        clickbridge.Ranking.rows,
        clickbridge.Ranking.to_frame,
        clickbridge.normalise_query,
        clickbridge.write_lists,
    ]
    for function in called:
        text = inspect.getdoc(function) or ""
        taken, _, given = text.partition("Returns\n-------")
        said = {
            name for line in re.findall(r"(?m)^([a-z_*, ]+) : ", taken) for name in line.replace("*", "").split(", ")
        }
        silent = set(inspect.signature(function).parameters) - said - {"self", "cls"}
        assert not silent, f"{function.__qualname__} says nothing of {silent}"
        gives_nothing = typing.get_type_hints(function, localns=NAMES).get("return") is type(None)
        assert bool(given) != gives_nothing, function.__qualname__
