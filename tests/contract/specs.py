"""Every spec that the contract runs on. A model that is registered is here by itself."""

from __future__ import annotations

import clickbridge  # noqa: F401 - registers the models
from clickbridge.models.registry import MODELS
from clickbridge.models.specs import build_model

COMPOSITES = [
    "bm25+lmir",
    "bm25+pls",
    "rrf:bm25+lmir",
    "mart:bm25",
    "mart:bm25+lmir",
    "bm25+walk",
    "given+bm25",
    "robust:bm25",
    "robust:pls",
    "online:given",
    "online:bm25",
]
CHOOSERS = {"auto"}
"""Once fitted they are the model that they chose, which is in this suite by itself: tests/models/test_auto.py."""
SPECS = [*(name for name in MODELS if name not in CHOOSERS), *COMPOSITES]
GIVES_ORDER = {"given", "given+bm25", "online:given"}
"""Models whose score is the incoming order itself."""
PER_LIST = {"bm25+walk", "rrf:bm25+lmir", "mart:bm25", "mart:bm25+lmir", "given+bm25", "online:bm25"}
"""Models that look at a list as a whole: a document's score depends on the others."""
S_FUNCTIONS = [spec for spec in SPECS if "maps" in build_model(spec).abilities()]
