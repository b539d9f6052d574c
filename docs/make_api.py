"""Writes docs/api.md from the docstrings: `python docs/make_api.py`. A test compares the page with what this gives."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import clickbridge
from clickbridge.graph.contents import Contents
from clickbridge.models.asking import Asking
from clickbridge.models.registry import MODELS, SUMS, WRAPPERS, model_class
from clickbridge.online.takes_clicks import TakesClicks

PAGE = Path(__file__).with_name("api.md")
SECTIONS = {
    "Data": "ClickGraph example_graph HoldBack Impression PairCount Document ResultList read_log read_docs read_lists "
    "write_lists read_qrels read_run read_topics lists_of_run write_run normalise_query stats",
    "Using models": "Model Fitted Ranking Hit Explanation load build_model register Local Ray Gpu",
    "Evaluation": "evaluate Evaluation compare Comparison",
    "Learning online": "Learner Journal",
    "The service": "Client ServedRanking ServiceError",
    "Errors": "ClickbridgeError InputError SettingError ArtifactError MissingPart NotFitted NotSupported EngineError",
}
PAGES = {"sum": "sums", "linear": "sums", "robust": "robust-bm25"}


def render() -> str:
    parts = [
        "# The library",
        "Everything here is imported from `clickbridge`. `docs/make_api.py` writes this page from the docstrings; "
        "at the prompt, `help(clickbridge.PLS)` and the like show the same, with every setting of a model.",
    ]
    for title, names in SECTIONS.items():
        parts += [f"## {title}", *(_entry(name) for name in names.split())]
    return "\n\n".join([*parts, "## Models", _models()]) + "\n"


def _models() -> str:
    rows = ["| class | in a spec | what it is |", "|---|---|---|"]
    for name in (*MODELS, *SUMS, *WRAPPERS):
        kind = model_class(name)
        page = f"models/{PAGES.get(name, name)}.md"
        rows.append(f"| `{kind.__name__}` | [{name}]({page}) | {kind.about} |")
    return (
        "Settings are keywords of the constructor: `PLS(dim=100)`. Sums and wrappers take a list of models first: "
        "`Mart([BM25(), PLS()])`. Models add up: `BM25() + PLS()`.\n\n" + "\n".join(rows)
    )


ABOVE: dict[type[Any], type[Any]] = {
    clickbridge.Model: Asking,
    clickbridge.ClickGraph: Contents,
    clickbridge.Learner: TakesClicks,
    clickbridge.Journal: TakesClicks,
}
"""What users ask of a model, read in a GRAPH or teach has a class of its own, above theirs."""


def _entry(name: str) -> str:
    found = getattr(clickbridge, name)
    if inspect.ismodule(found):  # its text shows how it is called
        return f"### {name}\n\n{_text(found)}"
    if not inspect.isclass(found):
        return f"### {name}\n\n    {name}{_signature(found)}\n\n{_text(found)}"
    lines = [line for member in _members(found) if (line := _member(found, member))]
    return "\n\n".join([f"### {name}", _text(found), *(["\n".join(lines)] if lines else [])])


def _members(kind: type[Any]) -> list[str]:
    own = {**vars(kind), **vars(ABOVE.get(kind, object))}
    return [name for name in own if not name.startswith("_")]


def _member(kind: type[Any], name: str) -> str:
    """One line for a method or property: its call and its first sentence."""
    value = inspect.getattr_static(kind, name)
    if isinstance(value, classmethod | staticmethod):
        value = value.__func__
    if isinstance(value, property) or hasattr(value, "func"):
        said = inspect.getdoc(value.fget if isinstance(value, property) else value.func)
        return f"- `{name}`: {_first(said)}" if said else ""
    if not inspect.isfunction(value) or not value.__doc__:
        return ""
    return f"- `{name}{_signature(value)}`: {_first(inspect.getdoc(value))}"


def _signature(function: Any) -> str:
    """As it is called: without types, which the source has, and without self."""
    found = inspect.signature(function)
    kept = [p.replace(annotation=p.empty) for p in found.parameters.values() if p.name not in ("self", "cls")]
    shown = str(found.replace(parameters=kept, return_annotation=found.empty))
    return re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", shown)


def _first(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())


SECTION = re.compile(r"^(Parameters|Returns|Examples|Settings)\n-+\n", re.MULTILINE)


def _text(found: Any) -> str:
    """The docstring: its sections as lists, its examples as code."""
    head, *sections = SECTION.split(inspect.getdoc(found) or "")
    parts = [_prose(head)]
    for name, body in zip(sections[::2], sections[1::2], strict=True):
        parts.append(_prose(body) if name == "Examples" else f"**{name}**\n\n{_listed(body, name)}")
    return "\n\n".join(part for part in parts if part)


def _prose(text: str) -> str:
    blocks = text.strip("\n").split("\n\n")
    out: list[str] = []
    for block in blocks:  # an example may have an empty line within
        if out and out[-1].startswith("```pycon") and block.startswith((">>>", "...")):
            out[-1] = f"{out[-1].removesuffix('```')}\n{block}\n```"
        else:
            out.append(f"```pycon\n{block}\n```" if block.startswith(">>>") else block)
    return "\n\n".join(out)


def _listed(body: str, name: str) -> str:
    """`name : type`, and below it what it is."""
    lines: list[str] = []
    for line in body.strip("\n").splitlines():
        if not line.startswith(" "):
            term, _, kind = line.partition(" : ")
            lines.append(f"- `{term}`" + (f", {kind}" if kind else "") if name != "Returns" else f"- {line}")
        else:
            lines[-1] += f"{' ' if ': ' in lines[-1] else ': '}{line.strip()}"
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf8")
