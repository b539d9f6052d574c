"""Similar queries by clicks in common, for any model that keeps its clicks (Wu et al. 2011, Table 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from clickbridge.errors import NotSupported
from clickbridge.models.base import Model, as_key
from clickbridge.skernel.similarity import QueryKernel
from clickbridge.types import edge_name

WEIGHTS = {"click": 0.8, "word": 0.1, "char": 0.1}


def clicks_of(model: Model) -> tuple[list[str], sparse.csr_array]:
    """The clicked queries of a model and their clicks; a composite has those of its first part that keeps any."""
    for found in (model, *getattr(model, "parts", ())):
        keys: Sequence[str] = getattr(found, "query_keys_", ())
        for name in ("responses_", "clicks_"):
            clicks = getattr(found, name, None)
            if clicks is not None and clicks.shape[0] == len(keys):
                return list(keys), clicks
    kernel = getattr(model, "kernel_", None)
    if isinstance(kernel, QueryKernel):
        return kernel.keys, kernel.clicks
    raise NotSupported(f"{model.spec} keeps no clicks: use --by latent, or a model like pls, walk or robust-bm25")


def similar_by_clicks(
    model: Model, query: str, k: int = 3, min_clicks: int = 1, click_kernel: str = "pearson"
) -> list[tuple[str, float]]:
    """Known queries most like this one by k_Q, mostly clicks; itself left out."""
    keys, clicks = clicks_of(model)
    kernel = QueryKernel(WEIGHTS, click_kernel, getattr(model, "language", "english")).fit(keys, clicks)
    total = np.asarray(clicks.sum(axis=1)).ravel()
    near, values = kernel.neighbours(query, k + 1, None if min_clicks <= 1 else total >= min_clicks)
    own = edge_name(as_key(query))
    found = [(edge_name(keys[i]), float(v)) for i, v in zip(near, values, strict=True)]
    return [(name, value) for name, value in found if name != own][:k]
