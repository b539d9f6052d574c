"""Builds the documentation as a site: `make docs`, or `python docs/make_site.py [FOLDER]`.

The pages are written to be read in the repository, too. Here they are copied aside, links between them follow their
new places, fences lose the words that only the tests read, and Zensical makes the site, strictly: a warning stops it.
`llms.txt` lists every page with its first sentence; `llms-full.txt` is all of them in one file.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
BUILD = ROOT / "build" / "docs"
ELSEWHERE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "benchmarks/README.md": "running-benchmarks.md",
    "LICENSE": "license.txt",
}
"""Files outside `docs` that are pages of the site."""
START = ["install.md", "tutorial.md", "quickstart.md", "first-ranking.md", "demo.md"]
REFERENCE = ["commands.md", "settings.md", "formats.md", "views.md", "text.md", "api.md"]
EXPLANATION = [
    "term-mismatch.md", "s-functions.md", "hold_back.md", "which-model.md", "preferences.md", "skernels.md",
    "bounds.md", "similar-queries.md", "quality.md", "benchmarks.md", "running-benchmarks.md", "reproduction.md",
    "reproduction/*/tables.md", "papers.md", "errata.md", "future-work.md", "architecture.md",
]  # fmt: skip
PROJECT = ["contributing.md", "changes.md"]
FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?P<text>!?\[[^\]]*\])\((?P<path>[^)\s#]*)(?P<anchor>#[^)\s]*)?\)")
Nav = dict[str, "list[str] | Nav"]


def places() -> dict[Path, Path]:
    """Every file of the site, and where it is there."""
    found = {ROOT / name: Path(place) for name, place in ELSEWHERE.items()}
    for path in sorted(DOCS.rglob("*")):
        if path.suffix in (".md", ".svg", ".css", ".png"):
            found[path] = path.relative_to(DOCS)
    return found


def for_the_site(text: str, page: Path, where: dict[Path, Path]) -> str:
    """A page as the site has it: its links, and its fences."""
    here = where[page].parent

    def link(match: re.Match[str]) -> str:
        target = (page.parent / match["path"]).resolve() if match["path"] else None
        if target is None or re.match(r"[a-z]+:", match["path"]):
            return match[0]
        if target not in where:
            raise SystemExit(f"{page.relative_to(ROOT)} links to {match['path']}, which is no page of the site")
        path = os.path.relpath(where[target], here)
        return f"{match['text']}({path}{match['anchor'] or ''})"

    def fence(match: re.Match[str]) -> str:
        language, _, rest = match["info"].partition(" ")
        name = re.search(r"file=(\S+)", rest)
        title = f' title="{name[1]}"' if name else ""
        return f"{match['indent']}```{language}{title}\n{match['body']}{match['indent']}```"

    parts, end = [], 0
    for match in FENCE.finditer(text):  # a link inside a fence is none
        parts += [LINK.sub(link, text[end : match.start()]), fence(match)]
        end = match.end()
    return "".join([*parts, LINK.sub(link, text[end:])])


def headed(text: str, place: Path) -> str:
    """The page with a heading; one that a verb wrote has none and is called after its folder."""
    return text if text.startswith("# ") else f"# {place.parent.name}: {place.stem}\n\n{text}"


def title(text: str) -> str:
    return text.partition("\n")[0].removeprefix("# ")


def first_sentence(text: str) -> str:
    """What a page says of itself, without marks."""
    paragraphs = FENCE.sub("", text.partition("\n")[2]).split("\n\n")
    paragraph = next((p for p in paragraphs if re.match(r"[\w`*\[]", p.strip("\n"))), "")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split())).replace("*", "")
    return re.split(r"(?<=[.!?:]) (?=[A-Z`])", plain)[0]


def navigation(pages: set[str]) -> Nav:
    """Pages by what a reader wants. One that is named nowhere is a how-to."""

    def those(*patterns: str) -> list[str]:
        return [name for pattern in patterns for name in sorted(fnmatch.filter(pages, pattern))]

    verbs, models = those("verbs/*.md"), those("models/*.md")
    sections: dict[str, list[str]] = {
        name: those(*listed)
        for name, listed in (
            ("Start", START), ("Reference", REFERENCE), ("Explanation", EXPLANATION), ("Project", PROJECT)
        )
    }  # fmt: skip
    placed = {"index.md", *verbs, *models, *(page for listed in sections.values() for page in listed)}
    return {
        "Home": ["index.md"],
        "Start": sections["Start"],
        "How to": sorted(pages - placed),
        "Reference": {"Verbs": verbs, "Models": models, "More": sections["Reference"]},
        "Explanation": sections["Explanation"],
        "Project": sections["Project"],
    }


def as_toml(nav: Nav | list[str]) -> str:
    if isinstance(nav, list):
        return "[" + ", ".join(f'"{page}"' for page in nav) + "]"
    entries = [f'{{ "{name}" = {as_toml(below)} }}' for name, below in nav.items()]
    return "[" + ", ".join(entries) + "]"


def pages_of(nav: Nav | list[str]) -> Iterator[str]:
    for below in [nav] if isinstance(nav, list) else nav.values():
        yield from below if isinstance(below, list) else pages_of(below)


def llms(nav: Nav, texts: dict[str, str]) -> tuple[str, str]:
    """The list of pages for language models, and all pages in one."""
    lines = [f"# {title(texts['index.md'])}", f"> {first_sentence(texts['index.md'])}"]
    for name, below in nav.items():
        listed = [
            f"- [{title(texts[page])}]({page}): {first_sentence(texts[page])}" for page in pages_of({name: below})
        ]
        lines.append(f"## {name}\n\n" + "\n".join(listed))
    whole = "\n\n".join(f"<!-- {page} -->\n\n{texts[page].strip()}" for page in pages_of(nav))
    return "\n\n".join(lines) + "\n", whole + "\n"


def build(site: Path) -> None:
    where = places()
    shutil.rmtree(BUILD, ignore_errors=True)
    texts: dict[str, str] = {}
    for path, place in where.items():
        target = BUILD / "pages" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".md":
            shutil.copyfile(path, target)
            continue
        texts[place.as_posix()] = headed(for_the_site(path.read_text(encoding="utf8"), path, where), place)
        # The front page is alone in its section: a column that lists it would only take room.
        hidden = "---\nhide: [navigation]\n---\n\n" if place == Path("index.md") else ""
        target.write_text(hidden + texts[place.as_posix()], encoding="utf8")
    nav = navigation(set(texts))
    settings = (DOCS / "site.toml").read_text(encoding="utf8")
    ours = f'[project]\ndocs_dir = "pages"\nsite_dir = "site"\nnav = {as_toml(nav)}\n'
    (BUILD / "zensical.toml").write_text(settings.replace("[project]\n", ours, 1), encoding="utf8")
    zensical = Path(sys.executable).with_name("zensical")
    if subprocess.run([zensical, "build", "--strict", "--clean", "--config-file", BUILD / "zensical.toml"]).returncode:
        raise SystemExit("the site was not built: see the warnings above")
    for name, text in zip(("llms.txt", "llms-full.txt"), llms(nav, texts), strict=True):
        (BUILD / "site" / name).write_text(text, encoding="utf8")
    for name, text in texts.items():  # llms.txt names the pages as they were written
        target = BUILD / "site" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf8")
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(BUILD / "site", site)
    print(f"{len(texts)} pages: {site / 'index.html'}")


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site")
