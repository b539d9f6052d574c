"""The stemmer is chosen from the text, with one line said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., Any]
TEXT = "Die Lieferung ist nicht angekommen und der Kunde möchte sein Geld zurück, aber es ist noch nicht da"
LINE = "the text looks German, so language=german is used; set language=english for the English stemmer\n"


def test_a_german_collection(call: Run, tmp_path: Path) -> None:
    docs = ({"doc_id": str(i), "body": f"{TEXT} {word}"} for i, word in enumerate(["Häuser", "Wagen", "Katzen"] * 3))
    (tmp_path / "docs.jsonl").write_text("\n".join(map(json.dumps, docs)))
    graph, model = tmp_path / "g", tmp_path / "m"
    call("ingest", "--docs", tmp_path / "docs.jsonl", "--out", graph)
    assert LINE in call("fit", graph, "--model", "bm25", "--out", model).err
    assert call("search", model, "Haus", "-k", "1", "--json").json["hits"][0]["doc_id"] == "0"
    chosen = call(
        "fit", graph, "--model", "bm25", "--out", model, "--set", "language=english", "--set", "unknown_words=drop"
    )
    assert "looks" not in chosen.err
    assert call("search", model, "Haus", "--json").json["hits"] == []
