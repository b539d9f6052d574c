"""What was learned from clicks, as a value: the weights and evidence of every cluster, what each query's own clicks
taught, and the pages that were first seen after the projection was computed.

A state never changes. `WorkingState` (working.py) adds up events and gives out states.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from clickbridge.io.values import expect, stored
from clickbridge.numerics.feedback import Layout, latent_scores, own_scores, read_only
from clickbridge.numerics.hash_table import empty_table, packed, unpacked
from clickbridge.online.projection import Projection

Array = np.ndarray[Any, Any]
KINDS = {
    **dict.fromkeys(("weights", "evidence", "values", "clock", "user.weights", "later.z", "later.z_tilde"), "f"),
    **dict.fromkeys(("keys", "user.keys"), "u"),
    **dict.fromkeys(("user.components", "user.start", "later.component", "later.start"), "i"),
}
"""Of the numbers of each stored array: compiled loops take no others."""
Users = Mapping[tuple[int, int], Array]
"""By (user, component): a weight vector with its evidence last. The vectors are never written to."""


@dataclass(frozen=True, eq=False)
class LaterPages:
    """Pages that the projection does not know, in the order in which they were first seen. Their numbers follow those
    of the projection. A page that could not be folded in has component -1; one whose document was removed has no id."""

    ids: tuple[str, ...] = ()
    component: Array = field(default_factory=lambda: Layout._field_defaults["later_component"])
    start: Array = field(default_factory=lambda: Layout._field_defaults["later_start"])
    z: Array = field(default_factory=lambda: Layout._field_defaults["later_z"])
    z_tilde: Array = field(default_factory=lambda: Layout._field_defaults["later_z_tilde"])

    def __len__(self) -> int:
        return len(self.ids)

    def behind(self, layout: Layout) -> Layout:
        """The layout of a projection with these pages added at the end."""
        return layout._replace(
            later_component=self.component, later_start=self.start, later_z=self.z, later_z_tilde=self.z_tilde
        )


@stored
@dataclass(frozen=True, eq=False)
class State:
    """The learned numbers. Multiply them by `scale` to read them: with decay, all of them fade by the same factor."""

    weights: Array
    evidence: Array
    keys: Array
    values: Array
    """A table (numerics/hash_table.py): by query, and by query and page."""
    scale: float
    events: int
    """How many events came; the number of the last one."""
    forgotten: int = 0
    """Nothing is left of the events up to this one."""
    later: LaterPages = field(default_factory=LaterPages)
    users: Users = field(default_factory=dict)

    @classmethod
    def empty(cls, projection: Projection) -> State:
        """Nothing learned yet."""
        n = projection.layout.n_clusters
        weights, evidence = np.zeros(int((n * projection.layout.dims).sum())), np.zeros(int(n.sum()))
        return cls.of(weights, evidence, *empty_table(), scale=1.0, events=0)

    @classmethod
    def of(cls, weights: Array, evidence: Array, keys: Array, values: Array, **more: Any) -> State:
        """Makes a state from arrays that are not written to any more."""
        return cls(read_only(weights), read_only(evidence), read_only(keys), read_only(values), **more)

    # --- what it says ----------------------------------------------------------------------------

    def latent(self, layout: Layout, indptr: Array, pages: Array, top: int, shrink: float) -> Array:
        """The latent part of the score for each result of many lists, one after the other."""
        out = np.zeros(len(pages))
        if len(layout.dims):
            latent_scores(indptr, pages, top, layout, self.weights, self.evidence, self.scale, shrink, out)
        return out

    def own(self, indptr: Array, pages: Array, queries: Array, shrink: float) -> Array:
        """What the same query taught about each result."""
        out = np.zeros(len(pages))
        own_scores(indptr, pages, queries, self.keys, self.values, self.scale, shrink, out)
        return out

    def of_user(self, layout: Layout, user: int, pages: Array, shrink: float) -> Array:
        """The part of the score learned from this user's own clicks."""
        out = np.zeros(len(pages))
        for c, members in by_component(layout, pages):
            own = self.users.get((user, c))
            if own is not None:
                rows = rows_of(layout, pages[members], len(own) - 1)
                out[members] = rows @ own[:-1] * self.scale / (max(own[-1], 0.0) * self.scale + shrink)
        return out

    # --- files -----------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Array]:
        """Everything except ids as plain arrays. The same events in the same order give the same bits."""
        keys, values = packed(self.keys, self.values)
        there = sorted(self.users)
        rows = [self.users[key] for key in there]
        return {
            "weights": self.weights,
            "evidence": self.evidence,
            "keys": keys,
            "values": values,
            "clock": np.array([self.scale, self.events, self.forgotten]),
            "user.keys": np.array([user for user, _ in there], dtype=np.uint64),
            "user.components": np.array([c for _, c in there], dtype=np.int64),
            "user.start": np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)]),
            "user.weights": np.concatenate([np.empty(0), *rows]),
            "later.component": self.later.component,
            "later.start": self.later.start,
            "later.z": self.later.z,
            "later.z_tilde": self.later.z_tilde,
        }

    def digest(self) -> str:
        """The SHA-256 checksum of the whole state."""
        out = hashlib.sha256("\n".join(self.later.ids).encode("utf8", "surrogatepass"))
        for name, values in self.arrays().items():
            out.update(f"{name} {values.dtype} {values.shape}".encode())
            out.update(np.ascontiguousarray(values).data)
        return out.hexdigest()

    def to_stored(self) -> dict[str, Any]:
        return {"arrays": self.arrays(), "ids": self.later.ids}

    @classmethod
    def from_stored(cls, value: Mapping[str, Any]) -> State:
        a, ids = value["arrays"], tuple(value["ids"])
        for name, kind in KINDS.items():
            expect(name, a[name], (None,), kind)
        scale, events, forgotten = a["clock"]
        start = a["user.start"]
        users = {
            (int(u), int(c)): np.array(a["user.weights"][start[i] : start[i + 1]])
            for i, (u, c) in enumerate(zip(a["user.keys"], a["user.components"], strict=True))
        }
        later = LaterPages(ids, *(read_only(a[f"later.{name}"]) for name in ("component", "start", "z", "z_tilde")))
        table = unpacked(a["keys"], a["values"])
        numbers = {"events": int(events), "forgotten": int(forgotten)}
        more: dict[str, Any] = {"scale": float(scale), "later": later, "users": users, **numbers}
        return cls.of(a["weights"], a["evidence"], *table, **more)

    def check(self, projection: Projection) -> None:
        """Checks that the state fits its projection, since compiled loops do not check bounds."""
        layout, later = projection.layout, self.later
        placed = later.component >= 0
        sound = (
            len(self.weights) == int((layout.n_clusters * layout.dims).sum())
            and len(self.evidence) == int(layout.n_clusters.sum())
            and len(later.ids) == len(later.component) == len(later.start)
            and len(later.z) == len(later.z_tilde)
            and bool((later.component < len(layout.dims)).all() and (later.start >= 0).all())
            and bool((later.start[placed] + layout.dims[later.component[placed]] <= len(later.z)).all())
            and all(c < len(layout.dims) and len(row) == layout.dims[c] + 1 for (_, c), row in self.users.items())
            and 0 < self.scale <= 1
        )
        if not sound:
            raise ValueError("a state that does not fit its projection")


# --- users' weights in NumPy: few, and seldom asked ------------------------------------------------


def by_component(layout: Layout, pages: Array) -> list[tuple[int, Array]]:
    """The components of a list, and the positions of their pages in it."""
    n = len(layout.component)
    component = np.full(len(pages), -1)
    known, later = (pages >= 0) & (pages < n), pages >= n
    component[known], component[later] = layout.component[pages[known]], layout.later_component[pages[later] - n]
    return [(int(c), np.flatnonzero(component == c)) for c in np.unique(component) if c >= 0]


def rows_of(layout: Layout, pages: Array, d: int, turned: bool = False) -> Array:
    """z (or z~) of pages of one component, one row each."""
    n = len(layout.component)
    base, more = (layout.z_tilde, layout.later_z_tilde) if turned else (layout.z, layout.later_z)
    out = np.empty((len(pages), d), dtype=np.float32)
    known = pages < n
    columns = np.arange(d)
    out[known] = base[layout.start[pages[known]][:, None] + columns]
    out[~known] = more[layout.later_start[pages[~known] - n][:, None] + columns]
    return out
