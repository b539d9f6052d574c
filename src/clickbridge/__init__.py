"""clickbridge learns from a search click log what people mean by the words they type.

The names below load on first use, so that `import clickbridge` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "ClickGraph": "clickbridge.graph.clickgraph",
    "read_log": "clickbridge.log.readers",
    "read_docs": "clickbridge.log.documents",
    "normalise_query": "clickbridge.log.clean",
    "load": "clickbridge.models.base",
    "build_model": "clickbridge.models.specs",
    "VSM": "clickbridge.models.lexical",
    "BM25": "clickbridge.models.lexical",
    "LMIR": "clickbridge.models.lexical",
    "Given": "clickbridge.models.given",
    "CosWord": "clickbridge.models.cosine",
    "CosClick": "clickbridge.models.cosine",
    "LSIDocTerm": "clickbridge.models.lsi",
    "LSIQueryDoc": "clickbridge.models.lsi",
    "Walk": "clickbridge.models.walk",
    "PLS": "clickbridge.models.pls",
    "MPLS": "clickbridge.models.mpls",
    "Scaled": "clickbridge.models.algebra",
    "Sum": "clickbridge.models.algebra",
    "Product": "clickbridge.models.algebra",
    "compare": "clickbridge.evaluate.compare",
}

__all__ = ["__version__", *_HOME]

if TYPE_CHECKING:
    from clickbridge.evaluate.compare import compare as compare
    from clickbridge.graph.clickgraph import ClickGraph as ClickGraph
    from clickbridge.log.clean import normalise_query as normalise_query
    from clickbridge.log.documents import read_docs as read_docs
    from clickbridge.log.readers import read_log as read_log
    from clickbridge.models.algebra import Product as Product
    from clickbridge.models.algebra import Scaled as Scaled
    from clickbridge.models.algebra import Sum as Sum
    from clickbridge.models.base import load as load
    from clickbridge.models.cosine import CosClick as CosClick
    from clickbridge.models.cosine import CosWord as CosWord
    from clickbridge.models.given import Given as Given
    from clickbridge.models.lexical import BM25 as BM25
    from clickbridge.models.lexical import LMIR as LMIR
    from clickbridge.models.lexical import VSM as VSM
    from clickbridge.models.lsi import LSIDocTerm as LSIDocTerm
    from clickbridge.models.lsi import LSIQueryDoc as LSIQueryDoc
    from clickbridge.models.mpls import MPLS as MPLS
    from clickbridge.models.pls import PLS as PLS
    from clickbridge.models.specs import build_model as build_model
    from clickbridge.models.walk import Walk as Walk


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'clickbridge' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
