"""One table: setting, default, limits, help. The command line, the docs and the models all read it.

A model's constructor repeats the default for the reader's sake; a test keeps the two equal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from clickbridge.errors import SettingError

LANGUAGES = (
    "arabic", "danish", "dutch", "english", "finnish", "french", "german", "hungarian", "italian",
    "norwegian", "portuguese", "romanian", "russian", "spanish", "swedish", "turkish", "none",
)  # fmt: skip


@dataclass(frozen=True)
class Setting:
    name: str
    default: Any
    help: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def limits(self) -> str:
        if self.choices:
            return ", ".join(self.choices)
        if isinstance(self.default, bool):
            return "true, false"
        if self.low is None and self.high is None:
            return "text"
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        if self.high is None:
            return f"{kind}, at least {self.low:g}"
        return f"{kind}, {self.low:g} to {self.high:g}"

    def check(self, value: Any) -> Any:
        """The value, converted to the default's type; one clear line where it does not fit."""
        kind = type(self.default)
        try:
            if kind is bool:
                value = {"true": True, "1": True, "false": False, "0": False}[str(value).lower()]
            elif kind in (int, float):
                if kind is int and not isinstance(value, str) and (isinstance(value, bool) or int(value) != value):
                    raise ValueError
                value = kind(value)
            elif not isinstance(value, str):
                raise ValueError
        except (ValueError, KeyError, TypeError, OverflowError):
            raise SettingError(f"{self.name} must be {self.limits}; got {value!r}") from None
        outside = (self.low is not None and not value >= self.low) or (self.high is not None and not value <= self.high)
        if outside or (self.choices and value not in self.choices):
            raise SettingError(f"{self.name} must be {self.limits}; got {value!r}")
        return value


_TABLE: Iterable[Setting] = (
    # what of the log counts
    Setting("min_clicks", 1, "a query-document pair counts from this many clicks on", 1, 1e9),
    Setting("min_users", 1, "a pair counts from this many different users on (needs users in the log)", 1, 1e9),
    Setting("response", "clicks", "what a pair's clicks are worth: the count, log(1 + count), or debiased: a click "
            "counts more at ranks that are seldom looked at (needs result pages)",
            choices=("clicks", "log", "debiased")),
    Setting("half_life", 0.0, "days after which a click counts half; 0 is never (needs times in the log)", 0, 1e6),
    Setting("max_clicks_per_user", 0, "users with more clicks than this are taken for robots and left out; "
            "0 keeps everyone (needs users in the log)", 0, 1e9),
    # text
    Setting("language", "english", "stemmer and stop words; none switches both off", choices=LANGUAGES),
    Setting("stop_words", "keep", "keep words like the and of (their idf makes them light), or drop them",
            choices=("keep", "drop")),
    Setting("fields", "auto", "field weights, as title:3,overview; auto learns them through hold_back"),
    # lexical models
    Setting("k1", 1.2, "BM25: how fast repeated words saturate", 0, 1000),
    Setting("b", 0.75, "BM25: how much long fields are discounted", 0, 1),
    Setting("k3", 8.0, "BM25: saturation of words repeated in the query", 0, 1000),
    Setting("idf", "lucene", "BM25: which inverse document frequency", choices=("lucene", "robertson", "atire")),
    Setting("smoothing", "dirichlet", "LMIR: how a document's word probabilities are smoothed",
            choices=("dirichlet", "jelinek-mercer")),
    Setting("mu", 200.0, "LMIR: Dirichlet prior, in words", 1e-6, 1e9),
    Setting("lam", 0.5, "LMIR: Jelinek-Mercer weight of the collection", 1e-6, 1 - 1e-6),
    Setting("weights", "auto", "weights of a sum's parts, as 1,0.5; auto learns them through hold_back"),
    # latent models
    Setting("dim", 600, "dimensions of the latent space; above the rank it is clipped", 1, 100_000),
    Setting("dims", "", "M-PLS: dimensions of each view's space, as 600,300; empty gives each `dim`"),
    Setting("views", "auto", "features, as word,char:title,click; auto is all that the GRAPH supports"),
    Setting("mean", True, "average over a query's clicked documents (13), so that no query counts twice; "
            "false sums over them (11M)"),
    Setting("sv_power", 0.25, "power of the singular values in the score; the papers have 0, textbook LSI 1", -1, 2),
    Setting("centre", "none", "centre x and y' over queries (pairs), or X and Y over their own items (sides)",
            choices=("none", "pairs", "sides")),
    Setting("precision", "float32", "arithmetic of the decomposition", choices=("float32", "float64")),
    Setting("combine", "tuned", "M-PLS: weights of the views through hold_back, or by eq. (5) of 11M",
            choices=("tuned", "closed")),
    Setting("search", "exact", "how the collection is searched: exactly, or in the nearest cells alone (needs FAISS)",
            choices=("exact", "ann")),
    Setting("probe", 0.05, "search=ann: share of the cells that a search looks into; 1 is exact search", 1e-4, 1),
    # RMLS
    Setting("iterations", 3, "RMLS: passes over both sides, the papers' T and one; BLTM: most rounds of EM (20 there)",
            1, 10_000),
    Setting("early_stop", False, "RMLS: choose the number of iterations, up to `iterations`, through hold_back"),
    Setting("shrink", "density", "RMLS: thresholds by the share of a row to keep, by its root mean square, or "
            "absolute (the papers)", choices=("density", "relative", "absolute")),
    Setting("density", 0.02, "RMLS: share of a row that is kept (shrink=density)", 1e-6, 1),
    Setting("beta", 0.1, "RMLS: threshold of query rows (shrink=absolute), or multiple of the row's root mean "
            "square (relative)", 0, 1e9),
    Setting("gamma", 0.1, "RMLS: the same for document rows", 0, 1e9),
    Setting("theta_x", 1.0, "RMLS: length of the longest query row", 1e-6, 1e6),
    Setting("theta_y", 1.0, "RMLS: length of the longest document row", 1e-6, 1e6),
    Setting("balance", 0.0, "RMLS: power of the row and column sums that W is divided by", 0, 1),
    Setting("decorrelate", 0.8, "RMLS: how far the latent dimensions are decorrelated before each threshold; "
            "the papers have 0, 1 is fully", 0, 1),
    Setting("norm_power", 0.5, "RMLS: a row's length is this power of its covariance; the papers have 0, all "
            "rows alike", 0, 1),
    Setting("start", "random", "RMLS: the first map at random, or from a decomposition", choices=("random", "svd")),
    Setting("tolerance", 1e-4, "RMLS: stops when the objective changes by less, relatively", 0, 1),
    Setting("plan", "auto", "RMLS: how products are done; auto takes the cheapest that fits in memory",
            choices=("auto", "w-sparse", "w-dense", "factors")),
    Setting("memory", 0.0, "GiB that RMLS may use; 0 is half of what is free", 0, 1e6),
    # random walk
    Setting("steps", 5, "random walk: number of steps", 1, 100),
    Setting("self_transition", 0.9, "random walk: probability to stay", 0, 0.999999),
    Setting("threshold", 1e-6, "random walk: smaller probabilities are dropped", 0, 1),
    # kernels and preferences
    Setting("preference", "auto", "which shown document was preferred to which: auto looks at whether clicks care for "
            "the place", choices=("auto", "skip-above", "skip-next", "last-click", "clicked", "counts")),
    Setting("query_kernel", "auto", "k_Q: weights of click, word, char, latent, as click:1,word:1; auto: hold_back"),
    Setting("click_kernel", "pearson", "k_Q: how clicks of two queries are compared",
            choices=("pearson", "cosine", "jaccard", "jensen-shannon")),
    Setting("doc_kernel", "auto", "k_D: titles, words, base (the base model's images) or views, as word:title,char; "
            "auto: hold_back"),
    Setting("family", "auto", "robust: the family of the S-kernel; product is eq. (8); auto: hold_back",
            choices=("auto", "product", "linear", "exponential", "geometric")),
    Setting("rho", "auto", "robust: how much likeness counts against the base itself; auto: hold_back"),
    Setting("prior", "auto", "robust: how much of the base the learned function corrects; 0 is the paper's; "
            "auto: hold_back"),
    Setting("epsilon", "auto", "robust: what a score of 0 counts, in mean scores; auto: hold_back"),
    Setting("ridge", "auto", "kernel models: lambda, the weight of the norm; auto: hold_back"),
    Setting("loss", "hinge", "kernel models: the loss of a preference", choices=("hinge", "squared", "logistic")),
    Setting("n_neighbours", "auto", "kernel models: how many similar queries teach; auto: hold_back"),
    Setting("n_pairs", 200, "kernel models: how many of their preferences", 1, 10_000),
    # query expansion
    Setting("expansion_weight", "auto", "expansion: what added words count; auto: hold_back"),
    # online learner
    Setting("diffusion", 0.95, "online: alpha of the diffusion kernel, how far a click spreads", 0, 0.999999),
    Setting("list_length", 20, "online: results of a list that count, the paper's top T", 1, 1000),
    Setting("min_lists", 1, "online: pages on fewer lists keep the incoming order; the paper has 11", 1, 1e9),
    Setting("clusters", 100, "online: query clusters of a large component", 1, 100_000),
    Setting("hardness", 10.0, "online: beta of the soft k-means, in mean squared distances to the nearest centre",
            1e-6, 1e9),
    Setting("closed_form", "weighted", "online: unlabelled pairs weighted, all at 1 (corrected), or as printed",
            choices=("weighted", "corrected", "printed")),
    Setting("unlabelled", 10.0, "online: tau, the weight of all unlabelled pairs of a page together", 1e-6, 1e9),
    Setting("smoothness", True, "online: with the smoothness term, or without (Appendix B)"),
    Setting("pairs", "auto", "online: pairs of a page: all clicked over unclicked (the paper), skip-above, or all "
            "less what the ranks foretell (residual)", choices=("auto", "all", "skip-above", "residual")),
    Setting("kappa", 1.0, "online: what is left of the learned at each event; 1 forgets nothing", 1e-3, 1),
    Setting("blend", "auto", "online: latent,own,shrink, as 0.1,0.2,4; auto learns them through hold_back"),
    Setting("per_user", 0.0, "online: weight of a user's own clicks next to everyone's; 0 keeps no user", 0, 1000),
    # learned by gradient descent
    Setting("epochs", 30, "SSI, SVDFeature: most passes over the preferences; hold_back says when to stop", 1, 10_000),
    Setting("negatives", 4, "SSI, SVDFeature: unclicked documents drawn for each clicked one", 1, 1000),
    Setting("training", "pairwise", "SVDFeature: logistic loss over pairs, or squared or logistic over documents",
            choices=("pairwise", "squared", "logistic")),
    Setting("global_features", "match", "SVDFeature: features of the pair: matches of equal features, or none",
            choices=("match", "none")),
    Setting("decay", 0.0, "SVDFeature: how strongly factors are drawn to 0", 0, 1000),
    # topics
    Setting("tie", 1.0, "BLTM: how strongly a pair's two sides are drawn to the same topics; 0 is not at all", 0, 1e6),
    Setting("topic_prior", 1.01, "BLTM: Dirichlet prior of a pair's topics", 1, 1000),
    Setting("word_prior", 1.01, "BLTM: Dirichlet prior of a topic's words", 1, 1000),
    Setting("topic_weight", "auto", "BLTM: weight of the topics beside the unigram model, 0 to 1; auto learns it"),
    # fusion
    Setting("rrf_k", 60.0, "RRF: added to every rank; the smaller, the more the first places count", 0, 1e6),
    Setting("objective", "lambdarank", "MART: trees for the order of lists, or pointwise regression (13)",
            choices=("lambdarank", "regression")),
    Setting("trees", 200, "MART: number of trees", 1, 100_000),
    Setting("learning_rate", 0.1, "length of a step of gradient descent; MART: how much of each tree is taken",
            1e-6, 10),
    Setting("leaves", 7, "MART: leaves of a tree", 2, 100_000),
    Setting("leaf_rows", 20, "MART: documents that a leaf must have", 1, 1e9),
    Setting("feature_share", 0.3, "MART: share of the features that each tree may look at", 0.001, 1),
    Setting("monotone", False, "MART: whether a higher score of a part may never lower the result"),
    Setting("folds", 5, "MART: parts for cross-fitting", 2, 100),
    Setting("max_lists", 20_000, "MART: most lists that trees learn from; above, they are drawn at random", 50, 1e9),
    # the machine
    Setting("threads", 0, "threads; 0 is one for each core", 0, 1024),
    Setting("seed", 0, "seed of everything random", 0, 2**31 - 1),
)  # fmt: skip

SETTINGS: dict[str, Setting] = {setting.name: setting for setting in _TABLE}


def parse_assignments(pairs: Iterable[str]) -> dict[str, str]:
    """`key=value` words of `--set`; keys may be addressed to one part of a spec (`bm25.k1=2`)."""
    out: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise SettingError(f"--set takes key=value; got {pair!r}")
        name = key.rpartition(".")[2]
        if name not in SETTINGS:
            raise SettingError(f"no setting {name!r}; there are {', '.join(sorted(SETTINGS))}")
        out[key] = value
    return out
