"""Base of the values of this package: read-only arrays, and pickling by the constructor's arguments.

Compiled loops are compiled for one type of array; a memory-mapped, a writable and a read-only array are three types.
Here all arrays are plain, contiguous and read-only, wherever they come from.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from clickbridge.errors import ArtifactError

Array = np.ndarray[Any, Any]


def check(fits: bool, what: str) -> None:
    if not fits:
        raise ArtifactError(f"the features of the model are damaged ({what}): fit it again")


def frozen(values: Any, kind: Any) -> Array:
    """The same numbers as a read-only array of the given type; copied only if they have another type."""
    try:
        out = np.asarray(values, dtype=kind, order="C").view()
    except (TypeError, ValueError):
        raise ArtifactError("the arrays of the model are damaged (not made of numbers): fit it again") from None
    out.flags.writeable = False
    return out


class Value:
    """A frozen dataclass that is pickled as its constructor arguments, so that a copy is checked and frozen, too."""

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        made_from = (field.name for field in fields(self) if field.init)  # type: ignore[arg-type]
        return type(self), tuple(getattr(self, name) for name in made_from)
