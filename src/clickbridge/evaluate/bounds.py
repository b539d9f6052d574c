"""Bounds on the gap between training alignment and alignment on new data: Theorems 1-5 of Wu, Lu, Li (2013), 4.1-4.5
in 12.

A sample S has n^x queries x_i, each with n_i^y documents y_ij and responses r_ij. For maps (Lx, Ly),
alignment = (1/n^x) sum_i (1/n_i^y) sum_j r_ij x_i' Lx Ly' y_ij, and D(S) is the largest distance between it
and its expectation over all maps of a family. The theorems bound D(S) where |x|, |y| <= 1 and r <= R.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.engines.base import Engine, default_engine
from clickbridge.errors import InputError, NotSupported, SettingError
from clickbridge.models.latent import Space
from clickbridge.models.model import Model
from clickbridge.models.pls import FittedPLS
from clickbridge.models.rmls import FittedRMLS
from clickbridge.numerics.csr import csr_times_dense
from clickbridge.numerics.rows import Maps, SparseRows
from clickbridge.numerics.svd import ProductOperator, randomised_svd
from clickbridge.wording import count_of

Array = np.ndarray[Any, Any]
Learned = FittedPLS | FittedRMLS
"""Models whose spaces can be learned from some of their queries."""
HELD = 0.1
"""The share of a model's queries that `measure` holds back."""
LEAST_HELD = 10
CHUNK = 1 << 16


@dataclass(frozen=True)
class Constants:
    """B bounds |Lx'x| |Ly'y|, C bounds |vec(Lx Ly')|, over all x, y and all maps of a family."""

    B: float
    C: float


@dataclass(frozen=True)
class Sample:
    """The sizes of S that the theorems use. `n_y` is the harmonic mean of the n_i^y."""

    n_x: int
    n_y: float
    R: float
    m_x: int
    m_y: int
    d_x: int
    d_y: int


def theorem_1(sample: Sample, constants: Constants, delta: float) -> float:
    """The bound of D_1(S), the part due to few documents per query. It holds with probability 1 - delta."""
    return _numerator(sample, constants, delta) / math.sqrt(sample.n_x * sample.n_y)


def theorem_2(sample: Sample, constants: Constants, delta: float) -> float:
    """The bound of D_2, the part due to few queries. It holds with probability 1 - delta."""
    return _numerator(sample, constants, delta) / math.sqrt(sample.n_x)


def theorem_3(sample: Sample, constants: Constants, delta: float) -> float:
    """The bound of D(S) <= D_1 + D_2. Both bounds must hold, so it holds with probability 1 - 2 delta."""
    return theorem_1(sample, constants, delta) + theorem_2(sample, constants, delta)


def _numerator(sample: Sample, constants: Constants, delta: float) -> float:
    if not 0 < delta < 1:
        raise SettingError(f"delta must be between 0 and 1; got {delta}")
    return sample.R * (2 * constants.C + constants.B * math.sqrt(2 * math.log(1 / delta)))


def pls_constants(d: int) -> Constants:
    """Theorem 4: maps with orthonormal columns never lengthen a vector, and |vec(Lx Ly')|^2 = trace(I_d)."""
    return Constants(1.0, math.sqrt(d))


def rmls_constants(
    sample: Sample, d: int, theta_x: float, theta_y: float, lambda_x: float = math.inf, lambda_y: float = math.inf
) -> Constants:
    """Theorem 5: rows of the maps with l1 norm <= lambda and l2 norm <= theta. The penalised problem (4) has
    no lambda. The factor d at lambda is loose: since l2 <= l1, theta may be lowered to lambda without it."""
    lambdas, thetas = lambda_x * lambda_y, theta_x * theta_y
    return Constants(
        math.sqrt(sample.m_x * sample.m_y) * min(d * lambdas, thetas),
        math.sqrt(sample.d_x * sample.d_y) * min(lambdas, thetas),
    )


def describe(x: sparse.csr_array, r: sparse.csr_array, y: sparse.csr_array) -> Sample:
    """The sample of queries x, documents y and responses r, a row per query; queries without response do not count."""
    counts = np.diff(r.indptr)
    there = counts[counts > 0]
    if not len(there):
        raise InputError("no response to learn from: the bound needs clicks")
    return Sample(
        len(there),
        len(there) / float(np.sum(1 / there)),
        float(r.data.max()),
        int(np.diff(x.indptr).max()),
        int(np.diff(y.indptr).max()),
        x.shape[1],
        y.shape[1],
    )


def within_unit_ball(features: sparse.csr_array) -> sparse.csr_array:
    """All rows divided by the norm of the longest, so that |x| <= 1: two unit views side by side have norm sqrt(2).
    Since the divisor is the same for all rows, the learned maps are still singular vectors of the same W."""
    squares = np.asarray(features.multiply(features).sum(axis=1)).ravel()
    longest = math.sqrt(float(squares.max(initial=0.0)))
    return sparse.csr_array(features / longest) if longest > 0 else features


def averaged(r: sparse.csr_array) -> sparse.csr_array:
    """r_ij / (n^x n_i^y), n^x counting the queries that have a response."""
    counts = np.diff(r.indptr)
    return sparse.csr_array(sparse.diags_array(1 / np.maximum(counts, 1) / max(np.count_nonzero(counts), 1)) @ r)


def alignment(x: sparse.csr_array, r: sparse.csr_array, y: sparse.csr_array, l_x: Maps, l_y: Maps) -> float:
    """(1/n^x) sum_i (1/n_i^y) sum_j r_ij x_i' Lx Ly' y_ij."""
    of_x, of_y = _images(x, l_x), _images(y, l_y)
    weights = averaged(r).tocoo()
    total = 0.0
    for start in range(0, weights.nnz, CHUNK):
        part = slice(start, start + CHUNK)
        rows, columns = (index[part] for index in weights.coords)
        total += float(weights.data[part] @ _dots(of_x[rows], of_y[columns]))
    return total


def _images(features: sparse.csr_array, maps: Maps) -> Any:
    """The images; sparse if the maps are."""
    if isinstance(maps, SparseRows):
        return sparse.csr_array(features @ maps.csr)
    return csr_times_dense(features, np.ascontiguousarray(maps))


def _dots(one: Any, two: Any) -> Array:
    """Dot products row by row."""
    if sparse.issparse(one):
        return np.asarray(one.multiply(two).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", one, two, dtype=np.float64)


def largest_gap(
    x: sparse.csr_array,
    r: sparse.csr_array,
    other: sparse.csr_array,
    y: sparse.csr_array,
    d: int,
    seed: int = 0,
    engine: Engine | None = None,
) -> float:
    """The largest difference of alignment between two sets of responses, over all orthonormal maps with d columns:
    sup |trace(Ly' (W - W')' Lx)| is the sum of the first d singular values of W - W'."""
    difference = sparse.csr_array(averaged(r) - averaged(other))
    operator = ProductOperator(x, difference, y, np.float64, engine)
    return float(randomised_svd(operator, d, seed=seed, dtype=np.float64).s.sum())


def rows_of(matrix: sparse.csr_array, keep: Array) -> sparse.csr_array:
    """The same matrix with the other rows empty."""
    out = sparse.csr_array(sparse.diags_array(keep.astype(matrix.dtype)) @ matrix)
    out.eliminate_zeros()
    return out


@dataclass(frozen=True)
class Bound:
    """The result for one latent space: its sample, constants and bound, and the measured gap."""

    model: str
    dim: int
    sample: Sample
    constants: Constants
    delta: float
    d1: float
    d2: float
    bound: float
    training: float
    held_back: float
    largest_gap: float | None
    n_held: int

    @property
    def gap(self) -> float:
        return self.training - self.held_back

    @property
    def says_nothing(self) -> bool:
        """Whether the bound is useless: it allows an expected alignment of zero, or is above 2 R B, the largest
        possible gap."""
        return self.bound >= min(self.training, 2 * self.sample.R * self.constants.B)

    @property
    def queries_needed(self) -> float:
        """The number of queries at which the bound would equal the training alignment."""
        return self.sample.n_x * (self.bound / self.training) ** 2 if self.training > 0 else math.inf

    def as_dict(self) -> dict[str, Any]:
        return {
            **{k: v for k, v in asdict(self).items() if k not in ("sample", "constants")},
            **asdict(self.sample), **asdict(self.constants),
            "gap": self.gap, "says_nothing": self.says_nothing,
            "queries_needed": self.queries_needed if math.isfinite(self.queries_needed) else None,
        }  # fmt: skip


def bounds(model: Model, delta: float = 0.05, seed: int = 0, engine: Engine | None = None) -> list[Bound]:
    """The bound of every latent space of a fitted model, and of every part of a sum that has some."""
    where = engine or default_engine()
    found = [bound for part in _latent_parts(model.fitted) for bound in _of_model(part, delta, seed, where)]
    if not found:
        raise NotSupported(f"{model.spec} learns no linear maps: bounds are for pls, mpls and rmls")
    return found


def _latent_parts(fitted: Any) -> Iterator[Learned]:
    if isinstance(fitted, FittedPLS | FittedRMLS):
        yield fitted
    for part in getattr(fitted, "parts", ()):
        yield from _latent_parts(part)


def _of_model(model: Learned, delta: float, seed: int, engine: Engine) -> Iterator[Bound]:
    held = held_queries(model.queries.keys, seed) & (np.diff(model.responses.indptr) > 0)
    if held.sum() < LEAST_HELD:
        raise InputError(
            f"{count_of(int(held.sum()), 'query')} can be held back, and the measured gap needs {LEAST_HELD}: "
            f"fit a model of about {round(LEAST_HELD / HELD)} queries"
        )
    for number, space in enumerate(model.spaces):
        name = f"{model.spec} {number + 1}/{len(model.spaces)}" if len(model.spaces) > 1 else model.spec
        yield measure(model, space, held, delta, name, engine)


def held_queries(keys: list[str], seed: int) -> Array:
    """The tenth of the queries that is held back, chosen by a hash of the text, so that it is always the same."""
    salt = seed.to_bytes(4, "little")
    return np.array([zlib.crc32(salt + key.encode()) < HELD * 2**32 for key in keys], dtype=bool)


def measure(model: Learned, space: Space, held: Array, delta: float, name: str, engine: Engine) -> Bound:
    """Learns the maps again without the held-back queries, with the features of `fit`, and measures their alignment on
    both parts."""
    x = within_unit_ball(sparse.csr_array(model.query_features[:, space.q_columns]))
    y = within_unit_ball(sparse.csr_array(model.doc_features[:, space.d_columns]))
    train, aside = (rows_of(model.responses, keep) for keep in (~held, held))
    learned = _relearn(model, space, ~held, engine)
    sample = describe(x, train, y)
    # RMLS has rows of norm theta; the others have orthonormal columns.
    theta_x, theta_y = getattr(model.settings, "theta_x", None), getattr(model.settings, "theta_y", None)
    orthonormal = theta_x is None or theta_y is None
    constants = pls_constants(learned.dim)
    if theta_x is not None and theta_y is not None:
        constants = rmls_constants(sample, learned.dim, theta_x, theta_y)
    return Bound(
        name, learned.dim, sample, constants, delta,
        theorem_1(sample, constants, delta), theorem_2(sample, constants, delta), theorem_3(sample, constants, delta),
        alignment(x, train, y, learned.l_x, learned.l_y), alignment(x, aside, y, learned.l_x, learned.l_y),
        largest_gap(x, train, aside, y, learned.dim, model.settings.seed, engine) if orthonormal else None,
        int(held.sum()),
    )  # fmt: skip


def _relearn(model: Learned, space: Space, rows: Array, engine: Engine) -> Space:
    """The space learned from some of the model's queries, before scaling."""
    some = replace(
        model.features,
        query_features=sparse.csr_array(model.query_features[rows]),
        responses=sparse.csr_array(model.responses[rows]),
    )
    return model.relearned(some, space, space.dim, engine)
