"""What clicks change: weights and evidence of every cluster, what each query taught by itself, pages folded in.

Every event is a sum into these, so for kappa = 1 their order does not matter and an event can be taken out again.
With decay (eq. 22) all that was learned is multiplied by kappa at each event; instead of touching every weight,
events are added divided by kappa^n, and `scale` = kappa^n multiplies what is read.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from clickbridge.io.artifact import Artifact, PartWriter
from clickbridge.numerics.feedback import latent_scores, learn_latent, learn_own, own_scores
from clickbridge.numerics.table import empty_table, packed, room_for, unpacked
from clickbridge.online.projection import Projection, frozen

Array = np.ndarray[Any, Any]
LEAST_SCALE = 1e-100
USER_PARTS = ("user.keys", "user.components", "user.start", "user.weights")
PIECE = 4096
"""Events between two looks at the table's room."""


class State:
    def __init__(self, projection: Projection, top: int, kappa: float) -> None:
        self.projection, self.top, self.kappa = projection, top, kappa
        self.layout = projection.layout
        n = self.layout.n_clusters
        self.weights = np.zeros(int((n * self.layout.dims).sum()))
        self.evidence = np.zeros(int(n.sum()))
        self.keys, self.values = empty_table()
        self.used = 0
        self.scale = 1.0
        self.events = 0
        self.z_end = len(self.layout.z)
        self._room: list[Array] = []
        self.folded: list[int] = []
        """Numbers of pages that were folded in, in the order of their coming."""
        self.users: dict[tuple[int, int], Array] = {}
        """(user, component): one weight vector, its evidence last."""

    # --- events ----------------------------------------------------------------------------------

    def learn(self, indptr: Array, pages: Array, labels: Array, amounts: Array, queries: Array, users: Array) -> None:
        """Events end to end. A negative amount takes one out again."""
        if self.kappa == 1.0:
            self._add(indptr, pages, labels, amounts, queries, users)
        else:
            for e in range(len(amounts)):
                self.scale *= self.kappa
                here = slice(indptr[e], indptr[e + 1])
                ends = np.array([0, indptr[e + 1] - indptr[e]])
                one = slice(e, e + 1)
                self._add(ends, pages[here], labels[here], amounts[one] / self.scale, queries[one], users[one])
                self._rescale()
        self.events += len(amounts)

    def unlearn(self, pages: Array, labels: Array, amount: float, query: Array, user: Array, ago: int) -> None:
        """Takes out an event after which `ago` others came."""
        worth = np.array([-amount * self.kappa**ago / self.scale])
        self._add(np.array([0, len(pages)]), pages, labels, worth, query, user)
        self.events += 1

    def _add(self, indptr: Array, pages: Array, labels: Array, amounts: Array, queries: Array, users: Array) -> None:
        if len(self.layout.dims):
            learn_latent(indptr, pages, self.top, labels, amounts, self.layout, self.weights, self.evidence)
        # In pieces, so that the table grows with what is new and not with what is said.
        for first in range(0, len(amounts), PIECE):
            last = min(first + PIECE, len(amounts))
            begin, end = int(indptr[first]), int(indptr[last])
            self.keys, self.values = room_for(self.keys, self.values, self.used, end - begin + last - first)
            self.used += learn_own(
                indptr[first : last + 1] - begin,
                pages[begin:end],
                labels[begin:end],
                amounts[first:last],
                queries[first:last],
                self.keys,
                self.values,
            )
        for e in np.flatnonzero(users):
            here = slice(indptr[e], indptr[e + 1])
            self._add_user(int(users[e]), pages[here], labels[here], float(amounts[e]))

    def _add_user(self, user: int, pages: Array, labels: Array, amount: float) -> None:
        for c, members in self._by_component(pages):
            d = int(self.layout.dims[c])
            own = self.users.setdefault((user, c), np.zeros(d + 1))
            rows = self.layout.z_tilde[self.layout.start[pages[members]][:, None] + np.arange(d)]
            own[:d] += amount * (labels[members] @ rows)
            own[d] += amount

    def _by_component(self, pages: Array) -> list[tuple[int, Array]]:
        known = np.flatnonzero(pages >= 0)
        component = self.layout.component[pages[known]]
        return [(int(c), known[component == c]) for c in np.unique(component) if c >= 0]

    def _rescale(self) -> None:
        if self.scale < LEAST_SCALE:
            for values in (self.weights, self.evidence, self.values, *self.users.values()):
                values *= self.scale
            self.scale = 1.0

    def fold_in(self, number: int, listed: Array) -> None:
        """Gives the new page `number` a place by the list it came with, or none."""
        found = self.projection.fold_in(listed, self.layout)
        width = 0 if found is None else len(found[1])
        component, start, z, z_tilde = self._with_room(number + 1, self.z_end + width)
        if found is not None:
            component[number], start[number] = found[0], self.z_end
            z[self.z_end : self.z_end + width], z_tilde[self.z_end : self.z_end + width] = found[1], found[2]
            self.z_end += width
            self.folded.append(number)

    def _with_room(self, n_pages: int, n_floats: int) -> list[Array]:
        """Writable arrays behind the layout, with room for that many; grown by an eighth, so seldom."""
        if not self._room or len(self._room[0]) < n_pages or len(self._room[2]) < n_floats:
            sizes = [n_pages, n_pages, n_floats, n_floats]
            self._room = [
                np.concatenate([old, np.full(max(size - len(old), 0) + len(old) // 8 + 64, fill, old.dtype)])
                for old, size, fill in zip(self.layout[:4], sizes, (-1, 0, 0, 0), strict=True)
            ]
            component, start, z, z_tilde = (frozen(values.view()) for values in self._room)
            self.layout = self.layout._replace(component=component, start=start, z=z, z_tilde=z_tilde)
        return self._room

    # --- scores ----------------------------------------------------------------------------------

    def latent(self, indptr: Array, pages: Array, shrink: float) -> Array:
        out = np.zeros(len(pages))
        if len(self.layout.dims):
            latent_scores(indptr, pages, self.top, self.layout, self.weights, self.evidence, self.scale, shrink, out)
        return out

    def own(self, indptr: Array, pages: Array, queries: Array, shrink: float) -> Array:
        out = np.zeros(len(pages))
        own_scores(indptr, pages, queries, self.keys, self.values, self.scale, shrink, out)
        return out

    def of_user(self, user: int, pages: Array, shrink: float) -> Array:
        """What this user's own clicks say."""
        out = np.zeros(len(pages))
        for c, members in self._by_component(pages):
            own = self.users.get((user, c))
            if own is not None:
                rows = self.layout.z[self.layout.start[pages[members]][:, None] + np.arange(len(own) - 1)]
                out[members] = rows @ own[:-1] * self.scale / (max(own[-1], 0.0) * self.scale + shrink)
        return out

    # --- files -----------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Array]:
        """All of it as plain arrays: the same events in the same order give the same bits."""
        keys, values = packed(self.keys, self.values)
        base = len(self.projection.layout.z)
        here = np.array(self.folded, dtype=np.int64)
        return {
            "weights": self.weights,
            "evidence": self.evidence,
            "keys": keys,
            "values": values,
            "clock": np.array([self.scale, self.events]),
            **dict(zip(USER_PARTS, self._user_arrays(), strict=True)),
            "folded": here,
            "folded.component": self.layout.component[here],
            "folded.start": self.layout.start[here],
            "folded.z": self.layout.z[base : self.z_end],
            "folded.z_tilde": self.layout.z_tilde[base : self.z_end],
        }

    def digest(self) -> str:
        """SHA-256 of it all."""
        out = hashlib.sha256()
        for name, values in self.arrays().items():
            out.update(f"{name} {values.dtype} {values.shape}".encode())
            out.update(np.ascontiguousarray(values).tobytes())
        return out.hexdigest()

    def write(self, writer: PartWriter) -> None:
        for name, values in self.arrays().items():
            writer.array(f"state.{name}", values)

    def _user_arrays(self) -> tuple[Array, ...]:
        there = sorted(self.users)
        rows = [self.users[key] for key in there]
        return (
            np.array([user for user, _ in there], dtype=np.uint64),
            np.array([c for _, c in there], dtype=np.int64),
            np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)]),
            np.concatenate([np.empty(0), *rows]),
        )

    def read(self, artifact: Artifact) -> None:
        self.weights = np.array(artifact.array("state.weights"))
        self.evidence = np.array(artifact.array("state.evidence"))
        keys = artifact.array("state.keys")
        self.keys, self.values = unpacked(keys, artifact.array("state.values"))
        self.used = len(keys)
        scale, events = artifact.array("state.clock")
        self.scale, self.events = float(scale), int(events)
        users, components, starts, flat = (artifact.array(f"state.{name}") for name in USER_PARTS)
        self.users = {
            (int(u), int(c)): np.array(flat[starts[i] : starts[i + 1]])
            for i, (u, c) in enumerate(zip(users, components, strict=True))
        }
        self._read_folded(artifact)

    def _read_folded(self, artifact: Artifact) -> None:
        here = artifact.array("state.folded")
        self.layout, self._room = self.projection.layout, []
        base = len(self.layout.z)
        more = artifact.array("state.folded.z")
        self.folded, self.z_end = [int(n) for n in here], base + len(more)
        if len(here):
            component, start, z, z_tilde = self._with_room(int(here.max()) + 1, self.z_end)
            component[here] = artifact.array("state.folded.component")
            start[here] = artifact.array("state.folded.start")
            z[base : self.z_end], z_tilde[base : self.z_end] = more, artifact.array("state.folded.z_tilde")
