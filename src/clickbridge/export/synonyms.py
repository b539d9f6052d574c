"""Synonyms learned from clicks, for Solr, Elasticsearch and OpenSearch, and a table for review."""

from __future__ import annotations

from pathlib import Path

from clickbridge.export.folder import write_json
from clickbridge.export.recipe import Recipe
from clickbridge.export.source import Source
from clickbridge.insight.synonym_files import solr_lines, write_csv
from clickbridge.insight.synonyms import learn_synonyms
from clickbridge.models.known_words import language_of
from clickbridge.wording import count_of


def write(source: Source, folder: Path) -> None:
    found = learn_synonyms(source.log, min_users=source.min_users, language=language_of(source.fitted))
    (folder / "synonyms.txt").write_text("".join(f"{line}\n" for line in solr_lines(found)), encoding="utf8")
    write_csv(folder / "synonyms.csv", found)
    analysis = {
        "filter": {
            "clickbridge_synonyms": {"type": "synonym_graph", "synonyms_path": "synonyms.txt", "updateable": True}
        },
        "analyzer": {
            "clickbridge_query": {"tokenizer": "standard", "filter": ["lowercase", "clickbridge_synonyms"]},
        },
    }
    write_json(folder / "analysis.json", {"settings": {"analysis": analysis}})
    write_json(folder / "expected.json", [{"query": q, "results": source.expected(q)} for q in source.samples])
    kinds = sorted({s.kind for s in found})
    counts = ", ".join(f"{sum(s.kind == kind for s in found):,} {kind}" for kind in kinds) or "none found"
    Recipe(
        "Synonyms learned from clicks",
        f"{count_of(len(found), 'pair')} ({counts}), the most certain first. Each comes from at least "
        f"{source.min_users} people or, if the log has no users, from that many clicks.",
        {
            "synonyms.txt": "Solr's format, which Elasticsearch and OpenSearch read too",
            "synonyms.csv": "the same with kind, weight, clicks, people and example queries: review this first",
            "analysis.json": "an analyzer for queries that uses them",
            "expected.json": "the first ten results of the model for a few queries",
        },
        [
            ("Review.", "less synonyms.csv"),
            ("Elasticsearch, OpenSearch: put the file into the `config` folder of every node and make an index with "
             "`analysis.json`; give the text fields `\"search_analyzer\": \"clickbridge_query\"`.",
             'cp synonyms.txt $CONFIG/\ncurl -s -H "Content-Type: application/json" -X PUT $HOST/my-index -d '
             '@analysis.json'),
            ("Solr: put it into the configuration, and name it in a `SynonymGraphFilterFactory` of the query analyzer.",
             "cp synonyms.txt $SOLR_CONFIG/"),
        ],
        "`a => b` replaces a misspelling by the word; `a => a, b` keeps both. The file cannot have weights: they are "
        "in the table, and a model uses them.",
        "The file is parsed with Lucene's own reader of synonyms by the tests.",
    ).write(folder)  # fmt: skip
