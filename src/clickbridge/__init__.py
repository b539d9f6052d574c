"""clickbridge learns from a search click log what people mean by the words they type.

The names below load on first use, so that `import clickbridge` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from clickbridge.models.registry import SHORT_FOR, provide

__version__ = "0.1.0"

_MODELS = {
    "auto": "clickbridge.models.auto:Auto",
    "given": "clickbridge.models.given:Given",
    "vsm": "clickbridge.models.lexical:VSM",
    "bm25": "clickbridge.models.lexical:BM25",
    "lmir": "clickbridge.models.lexical:LMIR",
    "cos-word": "clickbridge.models.lexical:CosWord",
    "cos-click": "clickbridge.models.cos_click:CosClick",
    "lsi-dt": "clickbridge.models.lsi:LSIDocTerm",
    "lsi-qd": "clickbridge.models.lsi:LSIQueryDoc",
    "walk": "clickbridge.models.walk:Walk",
    "pls": "clickbridge.models.pls:PLS",
    "mpls": "clickbridge.models.mpls:MPLS",
    "rmls": "clickbridge.models.rmls:RMLS",
    "expansion": "clickbridge.models.expansion:Expansion",
    "pairwise": "clickbridge.skernel.pairwise:Pairwise",
    "ssi": "clickbridge.models.ssi:SSI",
    "bltm": "clickbridge.models.bltm:BLTM",
    "svdfeature": "clickbridge.models.svdfeature:SVDFeature",
}
_SUMS = {"sum": "clickbridge.models.algebra:Sum", "linear": "clickbridge.fusion.linear:LinearSum"}
_WRAPPERS = {
    "robust": "clickbridge.skernel.robust:Robust",
    "online": "clickbridge.online.online:Online",
    "rrf": "clickbridge.fusion.rrf:RRF",
    "mart": "clickbridge.fusion.mart:Mart",
}
# They are listed here, above all packages: no package names one that stands on it.
for _kind, _homes in (("model", _MODELS), ("sum", _SUMS), ("wrapper", _WRAPPERS)):
    provide(_kind, _homes)
SHORT_FOR.update({"robust-bm25": "robust:bm25", "mart": "mart:bm25+pls+rmls", "online": "online:given"})

_HOME = {
    "ClickGraph": "clickbridge.graph.clickgraph",
    "example_graph": "clickbridge.graph.example",
    "HoldBack": "clickbridge.graph.hold_back",
    "Impression": "clickbridge.types",
    "PairCount": "clickbridge.types",
    "Document": "clickbridge.types",
    "ResultList": "clickbridge.types",
    "Ranking": "clickbridge.types",
    "Hit": "clickbridge.types",
    "Explanation": "clickbridge.types",
    "read_log": "clickbridge.log.readers",
    "read_docs": "clickbridge.log.documents",
    "normalise_query": "clickbridge.log.clean",
    "read_lists": "clickbridge.io.lists",
    "write_lists": "clickbridge.io.lists",
    "read_qrels": "clickbridge.io.trec",
    "read_run": "clickbridge.io.trec",
    "read_topics": "clickbridge.io.topics",
    "lists_of_run": "clickbridge.io.topics",
    "write_run": "clickbridge.io.trec",
    "Model": "clickbridge.models.model",
    "Fitted": "clickbridge.models.fitted",
    "load": "clickbridge.models.model_folder",
    "register": "clickbridge.models.registry",
    "build_model": "clickbridge.models.specs",
    "Learner": "clickbridge.online.learner",
    "Journal": "clickbridge.online.journal",
    "Client": "clickbridge.serve.client",
    "ServedRanking": "clickbridge.serve.client",
    "ServiceError": "clickbridge.serve.client",
    "Local": "clickbridge.engines.local",
    "Ray": "clickbridge.engines.ray",
    "Gpu": "clickbridge.engines.gpu",
    "evaluate": "clickbridge.evaluate.single",
    "Evaluation": "clickbridge.evaluate.single",
    "stats": "clickbridge.evaluate.statistics",
    "compare": "clickbridge.evaluate.compare",
    "Comparison": "clickbridge.evaluate.results",
    "ClickbridgeError": "clickbridge.errors",
    "InputError": "clickbridge.errors",
    "ArtifactError": "clickbridge.errors",
    "MissingPart": "clickbridge.errors",
    "NotFitted": "clickbridge.errors",
    "NotSupported": "clickbridge.errors",
    "SettingError": "clickbridge.errors",
    "EngineError": "clickbridge.errors",
    **{home.partition(":")[2]: home.partition(":")[0] for home in (_MODELS | _SUMS | _WRAPPERS).values()},
}
"""Where each public name lives."""

__all__ = ["__version__", *_HOME]

if TYPE_CHECKING:
    from clickbridge.engines.gpu import Gpu as Gpu
    from clickbridge.engines.local import Local as Local
    from clickbridge.engines.ray import Ray as Ray
    from clickbridge.errors import ArtifactError as ArtifactError
    from clickbridge.errors import ClickbridgeError as ClickbridgeError
    from clickbridge.errors import EngineError as EngineError
    from clickbridge.errors import InputError as InputError
    from clickbridge.errors import MissingPart as MissingPart
    from clickbridge.errors import NotFitted as NotFitted
    from clickbridge.errors import NotSupported as NotSupported
    from clickbridge.errors import SettingError as SettingError
    from clickbridge.evaluate.compare import compare as compare
    from clickbridge.evaluate.results import Comparison as Comparison
    from clickbridge.evaluate.single import Evaluation as Evaluation
    from clickbridge.evaluate.single import evaluate as evaluate
    from clickbridge.evaluate.statistics import stats as stats
    from clickbridge.fusion.linear import LinearSum as LinearSum
    from clickbridge.fusion.mart import Mart as Mart
    from clickbridge.fusion.rrf import RRF as RRF
    from clickbridge.graph.clickgraph import ClickGraph as ClickGraph
    from clickbridge.graph.example import example_graph as example_graph
    from clickbridge.graph.hold_back import HoldBack as HoldBack
    from clickbridge.io.lists import read_lists as read_lists
    from clickbridge.io.lists import write_lists as write_lists
    from clickbridge.io.topics import lists_of_run as lists_of_run
    from clickbridge.io.topics import read_topics as read_topics
    from clickbridge.io.trec import read_qrels as read_qrels
    from clickbridge.io.trec import read_run as read_run
    from clickbridge.io.trec import write_run as write_run
    from clickbridge.log.clean import normalise_query as normalise_query
    from clickbridge.log.documents import read_docs as read_docs
    from clickbridge.log.readers import read_log as read_log
    from clickbridge.models.algebra import Sum as Sum
    from clickbridge.models.auto import Auto as Auto
    from clickbridge.models.bltm import BLTM as BLTM
    from clickbridge.models.cos_click import CosClick as CosClick
    from clickbridge.models.expansion import Expansion as Expansion
    from clickbridge.models.fitted import Fitted as Fitted
    from clickbridge.models.given import Given as Given
    from clickbridge.models.lexical import BM25 as BM25
    from clickbridge.models.lexical import LMIR as LMIR
    from clickbridge.models.lexical import VSM as VSM
    from clickbridge.models.lexical import CosWord as CosWord
    from clickbridge.models.lsi import LSIDocTerm as LSIDocTerm
    from clickbridge.models.lsi import LSIQueryDoc as LSIQueryDoc
    from clickbridge.models.model import Model as Model
    from clickbridge.models.model_folder import load as load
    from clickbridge.models.mpls import MPLS as MPLS
    from clickbridge.models.pls import PLS as PLS
    from clickbridge.models.registry import register as register
    from clickbridge.models.rmls import RMLS as RMLS
    from clickbridge.models.specs import build_model as build_model
    from clickbridge.models.ssi import SSI as SSI
    from clickbridge.models.svdfeature import SVDFeature as SVDFeature
    from clickbridge.models.walk import Walk as Walk
    from clickbridge.online.journal import Journal as Journal
    from clickbridge.online.learner import Learner as Learner
    from clickbridge.online.online import Online as Online
    from clickbridge.serve.client import Client as Client
    from clickbridge.serve.client import ServedRanking as ServedRanking
    from clickbridge.serve.client import ServiceError as ServiceError
    from clickbridge.skernel.pairwise import Pairwise as Pairwise
    from clickbridge.skernel.robust import Robust as Robust
    from clickbridge.types import Document as Document
    from clickbridge.types import Explanation as Explanation
    from clickbridge.types import Hit as Hit
    from clickbridge.types import Impression as Impression
    from clickbridge.types import PairCount as PairCount
    from clickbridge.types import Ranking as Ranking
    from clickbridge.types import ResultList as ResultList


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'clickbridge' has no attribute {name!r}")
    module = import_module(_HOME[name])
    if name == "evaluate":  # the package of that name, which can be called: importing it has put it here
        return globals()[name]
    found = globals()[name] = getattr(module, name)
    return found


def __dir__() -> list[str]:
    """What there is to use, loaded or not."""
    return sorted(__all__)
