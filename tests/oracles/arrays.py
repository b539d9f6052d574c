"""Images may be sparse or dense: tests look at them through `dense`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse


def dense(matrix: Any) -> np.ndarray[Any, Any]:
    """A matrix of maps as a plain float64 array."""
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=np.float64)
