"""`insights`: what people can learn from a log, as one folder: tables for review, a synonyms file, one HTML page."""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from clickbridge.errors import InputError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.people import has_users
from clickbridge.insight.failing_searches import BuriedDocument, DeadSearch, buried_documents, dead_searches
from clickbridge.insight.same_need import SameNeed, same_need
from clickbridge.insight.synonym_files import solr_lines, write_csv
from clickbridge.insight.synonyms import Synonym, learn_synonyms
from clickbridge.insight.word_pairs import WordPair, word_pairs
from clickbridge.io.files import aside_name, plain_cell
from clickbridge.models.fitted import Fitted
from clickbridge.settings import AUTO_LANGUAGE

MARK = "insights.html"
"""The file that identifies a folder of insights."""
SHOWN = 100
"""The number of rows of each table on the page. The CSV files have all rows."""


@dataclass(frozen=True)
class Insights:
    synonyms: list[Synonym]
    dead: list[DeadSearch]
    buried: list[BuriedDocument]
    needs: list[SameNeed]
    pairs: list[WordPair]
    notes: list[str]
    min_users: int

    @property
    def counts(self) -> dict[str, int]:
        return {
            "synonyms": len(self.synonyms),
            "dead_searches": len(self.dead),
            "buried_documents": len(self.buried),
            "same_need": len(self.needs),
            "word_pairs": len(self.pairs),
        }


def find_insights(
    graph: ClickGraph, *, min_users: int = 2, language: str = AUTO_LANGUAGE, strictness: float = 1.0
) -> Insights:
    """All insights from a GRAPH. Everything in it comes from at least `min_users` people. `strictness` is passed to
    `learn_synonyms`."""
    notes = []
    if not has_users(graph):
        notes.append(f"The log has no users: {min_users} uses of a query stand for {min_users} people.")
    if graph.impressions is None:
        notes.append("The log does not say what was shown: dead searches and buried documents cannot be found.")
    if not graph.field_names:
        notes.append("The documents have no text: there are no words to learn synonyms from.")
    synonyms = []
    if graph.field_names:
        synonyms = learn_synonyms(graph, min_users=min_users, language=language, strictness=strictness)
    return Insights(
        synonyms,
        dead_searches(graph, min_users=min_users),
        buried_documents(graph, min_users=min_users),
        same_need(graph, min_users=min_users),
        [],
        notes,
        min_users,
    )


def insights_of_model(fitted: Fitted, *, min_users: int = 2) -> Insights:
    """The insights from a MODEL alone: the pairs of words that it learned. All others need the GRAPH."""
    pairs = word_pairs(fitted, min_users=min_users)
    notes = ["A MODEL keeps words, not the log: give the GRAPH for synonyms, dead searches and buried documents."]
    if not pairs:
        notes.append(f"{fitted.spec} learned no pairs of different words.")
    return Insights([], [], [], [], pairs, notes, min_users)


# --- out ---------------------------------------------------------------------------------------------


def check_folder(out: Path) -> None:
    """Refuses to replace a folder that is not one of insights."""
    if os.path.lexists(out) and (out.is_symlink() or not (out / MARK).is_file()):
        raise InputError(f"{out} exists and holds no insights: choose another --out, or remove it")
    if not out.parent.is_dir():
        raise InputError(f"cannot write {out}: its folder does not exist")


def write_insights(found: Insights, out: Path, title: str) -> None:
    """Writes the folder. It gets its name only when it is complete."""
    check_folder(out)
    fresh = aside_name(out, "new")
    fresh.mkdir()
    try:
        write_csv(fresh / "synonyms.csv", found.synonyms)
        lines = "".join(f"{line}\n" for line in solr_lines(found.synonyms))
        (fresh / "synonyms.txt").write_text(lines, encoding="utf8")
        write_rows(fresh / "dead_searches.csv", DeadSearch, found.dead)
        write_rows(fresh / "buried_documents.csv", BuriedDocument, found.buried)
        write_rows(fresh / "same_need.csv", SameNeed, found.needs)
        write_rows(fresh / "word_pairs.csv", WordPair, found.pairs)
        (fresh / MARK).write_text(render(found, title), encoding="utf8")
        if out.exists():
            shutil.rmtree(out)
        fresh.rename(out)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def write_rows(path: Path, kind: type, rows: Iterable[Any]) -> None:
    """Writes values of one kind as a table with one column per field."""
    with path.open("w", encoding="utf8", newline="") as file:
        table = csv.writer(file)
        table.writerow(field.name for field in fields(kind))
        for row in rows:
            table.writerow(_cell(value) for value in asdict(row).values())


def _cell(value: Any) -> Any:
    if isinstance(value, tuple):
        value = "; ".join(value)
    if isinstance(value, float):
        return round(value, 4)
    return plain_cell(value) if isinstance(value, str) else value


def render(found: Insights, title: str) -> str:
    loaders: Sequence[PackageLoader] = [PackageLoader("clickbridge.insight"), PackageLoader("clickbridge.evaluate")]
    pages = Environment(
        loader=ChoiceLoader(loaders), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return pages.get_template("insights.html").render(found=found, title=title, shown=SHOWN)
