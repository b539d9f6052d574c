"""The docs are part of the build: what exists has a page, links lead somewhere, examples run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
import typer

from clickbridge.cli.app import app
from clickbridge.models.registry import MODELS, SHORT_FOR, SUMS, WRAPPERS, model_class
from clickbridge.settings import Setting
from sdist import is_left_out

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")])
VERBS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
FENCE = re.compile(r"^( *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^\1```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf8"))


def anchors(page: Path) -> set[str]:
    """Headings as GitHub links to them."""
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in HEADING.findall(prose(page))}


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_has_a_page_with_every_option(verb: str) -> None:
    page = DOCS / "verbs" / f"{verb}.md"
    assert page.is_file(), f"the verb {verb} has no page {page.relative_to(ROOT)}"
    text = page.read_text(encoding="utf8")
    assert f"clickbridge {verb}" in text
    written = set(re.findall(r"`(--?[a-z][a-z-]*)", text))
    options = {opt for p in VERBS[verb].params if p.param_type_name == "option" for opt in p.opts}
    missing = options - written - {"--help", "-h"}
    assert not missing, f"{page.relative_to(ROOT)} does not say what {', '.join(sorted(missing))} does"
    known = {opt for v in VERBS.values() for p in v.params for opt in (*p.opts, *p.secondary_opts)}
    invented = written - known - {"--help", "-h"}
    assert not invented, f"{page.relative_to(ROOT)} names {', '.join(sorted(invented))}, which do not exist"


def test_no_page_for_a_verb_that_is_gone() -> None:
    assert {p.stem for p in (DOCS / "verbs").glob("*.md")} <= set(VERBS)


def declared() -> dict[str, dict[str, Setting]]:
    """Every setting that some model declares, by its name and then by the model's."""
    out: dict[str, dict[str, Setting]] = {}
    for model in (*MODELS, *SUMS, *WRAPPERS):
        for setting in model_class(model).declared().values():
            out.setdefault(setting.name, {})[model] = setting
    return out


SETTINGS = declared()


def defaults_of(by_model: Mapping[str, Setting]) -> str:
    """The default, as most models have it; then the models that have another."""
    models: dict[str, list[str]] = {}
    for model, setting in by_model.items():
        models.setdefault(f"`{setting.default}`", []).append(model)
    usual = Counter({default: len(own) for default, own in models.items()}).most_common(1)[0][0]
    others = (f"{', '.join(own)} {default}" for default, own in models.items() if default != usual)
    return "; ".join([usual, *others])


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_every_setting_is_documented(name: str) -> None:
    rows = [row.split("|") for row in (DOCS / "settings.md").read_text(encoding="utf8").splitlines()]
    row = next((r for r in rows if len(r) > 5 and r[1].strip() == f"`{name}`"), None)
    assert row is not None, f"docs/settings.md has no row for {name}"
    limits = {setting.limits for setting in SETTINGS[name].values()}
    assert row[2].strip() == defaults_of(SETTINGS[name]), f"docs/settings.md gives other defaults of {name}"
    assert {row[3].strip()} == limits, f"docs/settings.md gives other limits of {name}"
    assert row[4].strip(), f"docs/settings.md does not say what {name} means"
    (group,) = {setting.group for setting in SETTINGS[name].values()}
    assert row[5].strip().removeprefix("paper ") == group, f"docs/settings.md shows {name} elsewhere"


@pytest.mark.parametrize("name", [*MODELS, *SUMS, *WRAPPERS])
def test_at_most_a_dozen_settings_are_for_every_day(name: str) -> None:
    """The rest is marked as advanced, or as there for a paper that docs/papers.md names."""
    groups = [setting.group for setting in model_class(name).declared().values()]
    assert groups.count("") <= 12
    papers = set(re.findall(r"^\| (\w+) \|", (DOCS / "papers.md").read_text(encoding="utf8"), re.MULTILINE))
    assert {code for group in groups for code in group.split(", ")} <= papers | {"", "advanced"}


@pytest.mark.parametrize("name", [*MODELS, *SUMS, *WRAPPERS])
def test_what_as_printed_sets_is_documented(name: str) -> None:
    rows = re.findall(
        r"^\| \[([\w-]+)\]\([^)]+\) \| `([^`]+)` \|$", (DOCS / "settings.md").read_text(encoding="utf8"), re.M
    )
    written = dict(rows).get(name, "")
    printed = model_class(name).Settings.printed
    values = {key: str(value).lower() if isinstance(value, bool) else value for key, value in printed.items()}
    words = (f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}" for key, value in values.items())
    assert written == " ".join(words)


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_every_setting_has_a_line_of_help(name: str) -> None:
    for model, setting in SETTINGS[name].items():
        assert setting.help.strip(), f"{model} does not say what {name} means"
        assert "\n" not in setting.help


def test_no_row_for_a_setting_that_is_gone() -> None:
    written = re.findall(r"^\| `(\w+)` \|", (DOCS / "settings.md").read_text(encoding="utf8"), re.MULTILINE)
    assert set(written) <= set(SETTINGS)
    assert len(set(written)) == len(written)


@pytest.mark.parametrize("name", sorted([*MODELS, *WRAPPERS]))
def test_every_model_has_a_page_with_its_settings(name: str) -> None:
    """A wrapper's page may be named after the spec that has a short name."""
    names = [name, *(short for short, spec in SHORT_FOR.items() if spec.startswith(f"{name}:"))]
    page = next((p for n in names if (p := DOCS / "models" / f"{n}.md").is_file()), DOCS / "models" / f"{name}.md")
    assert page.is_file(), f"the model {name} has no page {page.relative_to(ROOT)}"
    text = page.read_text(encoding="utf8")
    missing = [setting for setting in model_class(name).setting_names() if f"`{setting}`" not in text]
    assert not missing, f"{page.relative_to(ROOT)} does not mention {', '.join(missing)}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for match in LINK.finditer(prose(page)):
        path, _, anchor = match["target"].partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists() or is_left_out(target), f"{page.relative_to(ROOT)} links to {match['target']}"
        if anchor:
            assert anchor in anchors(target), f"{page.relative_to(ROOT)} links to {match['target']}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, open_pages = set(), [ROOT / "README.md"]
    while open_pages:
        page = open_pages.pop()
        if page in reached or page.suffix != ".md" or not page.is_file():
            continue
        reached.add(page)
        targets = (m["target"].partition("#")[0] for m in LINK.finditer(prose(page)))
        open_pages += [(page.parent / t).resolve() for t in targets if t and not re.match(r"[a-z]+:", t)]
    assert not [str(p.relative_to(ROOT)) for p in DOCS.rglob("*.md") if p not in reached]
