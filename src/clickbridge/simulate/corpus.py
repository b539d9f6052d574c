"""The demo's documents: the docstrings of the standard library of the running Python."""

from __future__ import annotations

import builtins
import importlib
import inspect
import pkgutil
import sys
import warnings
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from clickbridge.types import Document

SHORTEST, LONGEST = 20, 3000
_SKIPPED = {
    "antigravity", "this", "idlelib", "lib2to3", "turtledemo", "turtle", "tkinter", "test", "ensurepip", "distutils",
    "encodings", "pydoc_data", "nt", "ntpath", "posix", "posixpath", "genericpath", "nturl2path", "msvcrt", "winreg",
    "winsound", "msilib", "sre_compile", "sre_constants", "sre_parse", "opcode", "crypt", "nis", "ossaudiodev",
    "spwd", "imp", "xxlimited", "xxsubtype", "has_key",
}  # fmt: skip


_ORIGINALS = {"sys.excepthook": "sys.__excepthook__", "sys.displayhook": "sys.__displayhook__"}
"""Hooks that programs replace by their own: the original keeps the documentation."""


def standard_library(extra: Iterable[str] = ()) -> list[Document]:
    """Modules, classes, functions and methods with a docstring; `extra` names are added if they were missed."""
    found: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, text in _walk():
            found.setdefault(name, text)
        for name in extra:
            if name not in found and (text := _docstring(resolve(name))):
                found[name] = text
    return [_document(name, text) for name, text in sorted(found.items())]


def resolve(name: str) -> Any:
    """The object with this dotted name. Names without a module are built-ins."""
    parts = _ORIGINALS.get(name, name).split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing: Any = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        rest = parts[cut:]
        break
    else:
        thing, rest = builtins, parts
    for part in rest:
        thing = getattr(thing, part, None)
    return thing


def _walk() -> Iterator[tuple[str, str]]:
    seen: set[int] = set()
    for prefix, module in _modules():
        if prefix and (text := _docstring(module)):
            yield prefix, text
        for name, thing in _public(module, prefix):
            full = f"{prefix}.{name}" if prefix else name
            if id(thing) in seen:
                continue
            seen.add(id(thing))
            if text := _docstring(thing):
                yield full, text
            if inspect.isclass(thing):
                yield from _methods(full, thing)


def _modules() -> Iterator[tuple[str, ModuleType]]:
    """Top-level modules first, so that an object gets its shortest name."""
    yield "", builtins
    names = sorted(n for n in sys.stdlib_module_names if not n.startswith("_") and n not in _SKIPPED)
    packages: list[tuple[str, ModuleType]] = []
    for name in [*names, "os.path"]:
        if module := _import(name):
            yield name, module
            if hasattr(module, "__path__"):
                packages.append((name, module))
    for name, package in packages:
        for info in pkgutil.iter_modules(package.__path__):
            child = f"{name}.{info.name}"
            if not info.name.startswith("_") and info.name not in _SKIPPED and (module := _import(child)):
                yield child, module


def _import(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:  # not built for this platform
        return None


def _public(module: ModuleType, prefix: str) -> Iterator[tuple[str, Any]]:
    listed = getattr(module, "__all__", None)
    for name in sorted(listed if listed is not None else vars(module)):
        thing = getattr(module, name, None)
        if name.startswith("_") or not (inspect.isclass(thing) or inspect.isroutine(thing)):
            continue
        home = getattr(thing, "__module__", None) or ""
        if listed is not None or home in (prefix, "builtins", "_" + prefix) or not prefix:
            yield name, thing


def _methods(full: str, kind: type) -> Iterator[tuple[str, str]]:
    inherited = {name for base in kind.__mro__[1:] if not base.__name__.startswith("_") for name in vars(base)}
    for name, thing in sorted(vars(kind).items()):
        if name.startswith("_") or not (inspect.isroutine(thing) or isinstance(thing, property | classmethod)):
            continue
        text = _docstring(thing)
        if text and not (name in inherited and text == _docstring(getattr(kind.__mro__[1], name, None))):
            yield f"{full}.{name}", text


def _docstring(thing: Any) -> str:
    text = inspect.getdoc(thing) if thing is not None else None
    return text[:LONGEST] if text and len(text) >= SHORTEST else ""


def _document(name: str, text: str) -> Document:
    summary, _, body = text.partition("\n\n")
    return Document(
        name,
        {"title": name, "summary": summary, "body": body} if body else {"title": name, "summary": summary},
    )
