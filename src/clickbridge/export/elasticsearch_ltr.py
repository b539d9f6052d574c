"""Elasticsearch's and OpenSearch's Learning to Rank plugin: each part of a sum is a feature, and the sum is its linear
model.

The numbers of a query are sent with the search, as parameters of the features. The index is that of
`export --to elasticsearch`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import orjson

from clickbridge.errors import NotSupported
from clickbridge.export.elasticsearch import Index
from clickbridge.export.folder import write_json
from clickbridge.export.maps import as_row, as_vector
from clickbridge.export.recipe import Recipe
from clickbridge.export.source import SHOWN, Request, Source
from clickbridge.models.algebra import FittedSum

SET, MODEL, INDEX = "clickbridge", "clickbridge", "clickbridge"


def weights(source: Source) -> dict[str, float]:
    """The weight of each block in the sum."""
    fitted, names = source.maps.fitted, [block.name for block in source.maps.blocks]
    if not isinstance(fitted, FittedSum):
        return dict.fromkeys(names, 1.0)
    if len(fitted.parts) != len(names):
        raise NotSupported(f"{fitted.spec} is a sum of sums: fit its parts as one sum")
    return dict(zip(names, map(float, fitted.choices.weights), strict=True))


def feature_set(source: Source) -> dict[str, Any]:
    index = Index(source.maps)
    features = []
    for block in source.maps.blocks:
        numbers = f"{{{{#toJson}}}}{block.name}{{{{/toJson}}}}"
        if index.is_vector(block):
            script = f"Math.max(0, params.shift + {index.product(block.name)})"
            template = (
                f'{{"script_score": {{"query": {{"exists": {{"field": "{block.name}"}}}}, '
                f'"script": {{"source": "{script}", '
                f'"params": {{"{block.name}": {numbers}, "shift": {{{{{block.name}_shift}}}}}}}}}}}}'
            )
            params = [block.name, f"{block.name}_shift"]
        else:
            template = f'{{"sparse_vector": {{"field": "{block.name}", "query_vector": {numbers}, "prune": false}}}}'
            params = [block.name]
        features.append({"name": block.name, "params": params, "template_language": "mustache", "template": template})
    return {"featureset": {"features": features}}


def parameters(source: Source, query: str) -> tuple[dict[str, Any], float]:
    """A query's parameters, without the weights of the sum, and the constant to subtract from the plugin's score."""
    index, counts = Index(source.maps), weights(source)
    out: dict[str, Any] = {}
    constant = 0.0
    for block, values in zip(source.maps.blocks, source.maps.query(query), strict=True):
        weight = counts[block.name] or 1.0
        if index.is_vector(block):
            vector = as_vector(values, block.width) / np.float32(weight)
            shift = float(np.linalg.norm(vector)) * index._longest[block.name]
            out |= {block.name: vector, f"{block.name}_shift": shift}
            constant += counts[block.name] * shift
        else:
            tokens, extra = index.features[block.name].query(as_row(values))
            out[block.name] = {token: value / weight for token, value in tokens.items()}
            constant += extra
    return out, constant


def search(source: Source, query: str, k: int) -> Request:
    params, constant = parameters(source, query)
    names = [block.name for block in source.maps.blocks]
    body = {
        "size": k,
        "_source": ["doc_id", "title"],
        "query": {"bool": {"should": [{"exists": {"field": name}} for name in names]}},
        "rescore": {
            "window_size": 1000,
            "query": {
                "query_weight": 0,
                "rescore_query": {"sltr": {"params": params, "model": MODEL}},
            },
        },
    }
    return Request(body, constant=constant)


def write(source: Source, folder: Path) -> None:
    definition = orjson.dumps(weights(source)).decode()
    model = {"model": {"name": MODEL, "model": {"type": "model/linear", "definition": definition}}}
    write_json(folder / "featureset.json", feature_set(source))
    write_json(folder / "model.json", model)
    source.write_samples(folder, lambda query: search(source, query, SHOWN))
    curl = 'curl -s -H "Content-Type: application/json"'
    Recipe(
        f"{source.fitted.spec} for the Learning to Rank plugin",
        f"{len(source.maps.blocks)} features, the parts of `{source.fitted.spec}`, and their weights as a linear "
        f"model.",
        {
            "featureset.json": "the features: searches with parameters",
            "model.json": "the linear model",
            "query.json": "a search with the numbers of its query",
            "expected.json": "searches and the first ten results of each",
        },
        [
            ("Make and load the index.", "clickbridge export MODEL --to elasticsearch --out index   # then its README"),
            ("Turn the plugin on and give it features and model.",
             f"{curl} -X PUT $HOST/_ltr\n{curl} -X POST $HOST/_ltr/_featureset/{SET} -d @featureset.json\n"
             f"{curl} -X POST $HOST/_ltr/_featureset/{SET}/_createmodel -d @model.json"),
            ("Search.", f"{curl} -X POST $HOST/{INDEX}/_search -d @query.json"),
        ],
        "`score = plugin's score - constant`. What the plugin re-scores is what the search before it found, up to "
        "`window_size`: put your own query there. A feature of Lucene's is at most 0.2% off. To let the plugin's "
        "trees learn "
        "instead, log these features and train on them, or take `export --to letor`.",
        "Written to the plugin's published documentation; not run against a server.",
    ).write(folder)  # fmt: skip


def request(source: Source, query: str, k: int) -> dict[str, Any]:
    return dict(search(source, query, k).body)
