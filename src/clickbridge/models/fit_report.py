"""The report of a fit, with its time, memory and results: `fit --json`, and the manifest of a MODEL."""

from __future__ import annotations

import resource

from clickbridge.models.fitted import Fitted


def fit_report(fitted: Fitted, seconds: float) -> dict[str, object]:
    """The same entries for every model; None for entries that this kind of model does not have."""
    return {
        "spec": fitted.spec,
        "dim": None,
        "seconds": round(seconds, 3),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "density": None,
        "weights": None,
        "views": None,
        **fitted.describe(),
        "notes": list(map(str, fitted.notes)),
    }
