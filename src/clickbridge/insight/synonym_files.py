"""Writes synonyms as files: for a search engine, and for review."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from clickbridge.insight.synonyms import REPLACED, Synonym
from clickbridge.io.files import plain_cell


def solr_lines(synonyms: Sequence[Synonym]) -> Iterator[str]:
    """Solr's format, which Elasticsearch and OpenSearch read, too. A misspelling is replaced; other words are kept
    next to their synonyms."""
    by_word: dict[str, list[Synonym]] = {}
    for synonym in synonyms:
        by_word.setdefault(synonym.typed, []).append(synonym)
    for typed, own in by_word.items():
        keeps = [] if all(s.kind in REPLACED for s in own) else [typed]
        yield f"{typed} => {', '.join([*keeps, *(s.means for s in own)])}"


def write_csv(path: Path, synonyms: Sequence[Synonym]) -> None:
    """Writes a table for review."""
    with path.open("w", encoding="utf8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("typed", "means", "kind", "weight", "clicks", "users", "examples"))
        for s in synonyms:
            examples = plain_cell("; ".join(s.queries))
            users = "" if s.users is None else s.users
            rows.writerow((plain_cell(s.typed), plain_cell(s.means), s.kind, s.weight, s.clicks, users, examples))
