"""EM for the bilingual topic model with posterior regularisation, on pairs of short texts that share topics.

For one pair with topic mixture theta, words n of side s (count c_n, N_s words in all) and responsibilities q:

    F = sum_n c_n sum_k q_nk (log theta_k + log phi^s_k,w_n - log q_nk)
        - sigma/2 |m^1 - m^2|^2 + (alpha - 1) sum_k log theta_k
    m^s_k = (1 / N_s) sum_{n in s} c_n q_nk,  the share of topic k in side s

The E-step maximises F over q. Its dual has one variable lambda_k per topic: q_nk ~ theta_k phi_k,w exp(-+ lambda_k /
N_s). Lambda minimises  sum_n c_n log sum_k theta_k phi exp(-+ lambda_k / N_s) + |lambda|^2 / (2 sigma). This is
strongly convex, and its gradient is Lipschitz with constant 1/sigma + (1/N_1 + 1/N_2) / 2, so gradient descent with the
inverse of that constant as its step converges.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.engines.base import Engine, default_engine
from clickbridge.numerics.threads import kernel

Array = np.ndarray[Any, Any]
CHUNKS = 4
"""The number of parts into which pairs are split. It does not depend on the number of threads, so neither do sums."""
TINY = 1e-300
CLOSE = 1e-5
"""A pair is solved once no slope of the dual is larger: F is then within about sigma/2 CLOSE^2 of its maximum."""


@kernel
def _responsibilities(indptr, indices, data, row, weights, phi, out, shares):  # type: ignore[no-untyped-def]
    """Writes q of one side to `out` and topic shares to `shares`. Returns sum_n c_n log sum_k weights_k phi_k,w."""
    total, length = 0.0, 0.0
    shares[:] = 0.0
    for p in range(indptr[row], indptr[row + 1]):
        q, word = out[p - indptr[row]], phi[indices[p]]
        for k in range(len(weights)):
            q[k] = weights[k] * word[k]
        mass = 0.0
        for k in range(len(weights)):
            mass += q[k]
        mass = max(mass, 1e-300)
        for k in range(len(weights)):
            q[k] /= mass
            shares[k] += data[p] * q[k]
        total += data[p] * np.log(mass)
        length += data[p]
    for k in range(len(weights)):
        shares[k] /= max(length, 1.0)
    return total


@kernel
def _solve(a, b, row, theta, phi_a, phi_b, sigma, dual, length_a, length_b, steps, buffers):  # type: ignore[no-untyped-def]
    """The E-step of one pair. Changes `dual` in place and leaves the responsibilities in the buffers."""
    q_a, q_b, shares_a, shares_b, weights = buffers
    n_topics = len(theta)
    if sigma == 0.0 or length_a == 0.0 or length_b == 0.0:
        steps, sigma = 0, 0.0  # an empty side has no topic shares to agree with
        dual[:] = 0.0
    step = 1.0 / (1.0 / max(sigma, 1e-300) + 0.5 / max(length_a, 1.0) + 0.5 / max(length_b, 1.0))
    total = 0.0
    for turn in range(steps + 1):
        for k in range(n_topics):
            weights[k] = theta[k] * np.exp(-dual[k] / max(length_a, 1.0))
        total = _responsibilities(a[0], a[1], a[2], row, weights, phi_a, q_a, shares_a)
        for k in range(n_topics):
            weights[k] = theta[k] * np.exp(dual[k] / max(length_b, 1.0))
        total += _responsibilities(b[0], b[1], b[2], row, weights, phi_b, q_b, shares_b)
        if turn == steps:
            break
        largest = 0.0
        for k in range(n_topics):
            slope = dual[k] / sigma - (shares_a[k] - shares_b[k])
            dual[k] -= step * slope
            largest = max(largest, abs(slope))
        if largest < CLOSE:
            break
    # F from the value of the dual: the term of the words contains lambda, which the linear part of the penalty cancels.
    penalty = 0.0
    for k in range(n_topics):
        gap = shares_a[k] - shares_b[k]
        total += dual[k] * gap
        penalty += gap * gap
    return total - 0.5 * sigma * penalty


@kernel
def _add_counts(side, i, weight, q, counts):  # type: ignore[no-untyped-def]
    indptr, indices, data = side
    for p in range(indptr[i], indptr[i + 1]):
        count, row, share = weight * data[p], counts[indices[p]], q[p - indptr[i]]
        for k in range(len(row)):
            row[k] += count * share[k]


@kernel
def _pairs(a, b, weight, start, stop, theta, phi_a, phi_b, sigma, alpha, dual, steps, counts_a, counts_b, longest):  # type: ignore[no-untyped-def]
    """The E-step, and the M-step of the mixtures, for pairs start..stop. Adds up word counts. Returns the bound."""
    n_topics = theta.shape[1]
    q_a, q_b = np.zeros((longest, n_topics)), np.zeros((longest, n_topics))
    shares_a, shares_b, weights = np.zeros(n_topics), np.zeros(n_topics), np.zeros(n_topics)
    buffers = (q_a, q_b, shares_a, shares_b, weights)
    bound = 0.0
    for i in range(start, stop):
        length_a, length_b = 0.0, 0.0
        for p in range(a[0][i], a[0][i + 1]):
            length_a += a[2][p]
        for p in range(b[0][i], b[0][i + 1]):
            length_b += b[2][p]
        value = _solve(a, b, i, theta[i], phi_a, phi_b, sigma, dual[i], length_a, length_b, steps, buffers)
        for k in range(n_topics):
            value += (alpha - 1.0) * np.log(max(theta[i, k], 1e-300))
        bound += weight[i] * value
        mass = 0.0
        for k in range(n_topics):
            theta[i, k] = alpha - 1.0 + shares_a[k] * length_a + shares_b[k] * length_b
            mass += theta[i, k]
        for k in range(n_topics):
            theta[i, k] = theta[i, k] / mass if mass > 0 else 1.0 / n_topics
        _add_counts(a, i, weight[i], q_a, counts_a)
        _add_counts(b, i, weight[i], q_b, counts_b)
    return bound


def em_step(
    a: sparse.csr_array,
    b: sparse.csr_array,
    weight: Array,
    theta: Array,
    phi_a: Array,
    phi_b: Array,
    dual: Array,
    sigma: float,
    alpha: float,
    beta: float,
    steps: int = 200,
    engine: Engine | None = None,
) -> tuple[float, Array, Array]:
    """One round of EM over pairs (a[i], b[i]). Changes `theta` and `dual` in place. Returns the penalised bound of the
    parameters it was given (with the best q for them), and the new phi of both sides, words by topics."""
    n = a.shape[0]
    left, right = _parts(a), _parts(b)
    longest = int(max(np.diff(a.indptr).max(initial=0), np.diff(b.indptr).max(initial=0), 1))
    bounds = [n * i // CHUNKS for i in range(CHUNKS + 1)]
    counts = [(np.zeros_like(phi_a), np.zeros_like(phi_b)) for _ in range(CHUNKS)]

    def work(i: int) -> float:
        span = bounds[i], bounds[i + 1]
        state = theta, phi_a, phi_b, sigma, alpha, dual
        return float(_pairs(left, right, weight, *span, *state, steps, *counts[i], longest))

    total = sum((engine or default_engine()).map(work, range(CHUNKS)))
    prior = (beta - 1) * sum(float(np.log(np.maximum(phi, TINY)).sum()) for phi in (phi_a, phi_b)) if beta > 1 else 0.0
    new = [normalised(np.sum([c[side] for c in counts], axis=0) + (beta - 1)) for side in (0, 1)]
    return total + prior, new[0], new[1]


def normalised(counts: Array) -> Array:
    """The word probabilities of each topic; uniform for a topic without words."""
    mass = counts.sum(axis=0, keepdims=True)
    return np.where(mass > 0, counts / np.maximum(mass, TINY), 1.0 / max(len(counts), 1))


@kernel
def _fold_in(indptr, indices, data, phi, prior, alpha, rounds, start, stop, theta):  # type: ignore[no-untyped-def]
    n_topics = phi.shape[1]
    row, counts = np.zeros(n_topics), np.zeros(n_topics)
    for i in range(start, stop):
        theta[i, :] = prior
        if indptr[i] == indptr[i + 1]:
            continue
        for _ in range(rounds):
            counts[:] = alpha - 1.0
            for p in range(indptr[i], indptr[i + 1]):
                mixture, word = theta[i], phi[indices[p]]
                for k in range(n_topics):
                    row[k] = mixture[k] * word[k]
                mass = 0.0
                for k in range(n_topics):
                    mass += row[k]
                mass = max(mass, 1e-300)
                for k in range(n_topics):
                    counts[k] += data[p] * row[k] / mass
            total = counts.sum()
            for k in range(n_topics):
                theta[i, k] = counts[k] / total if total > 0 else prior[k]


def fold_in(texts: sparse.csr_array, phi: Array, prior: Array, alpha: float, rounds: int = 30) -> Array:
    """Topic mixtures of texts, with the topics fixed. Each text starts from `prior`; an empty text keeps it."""
    theta = np.zeros((texts.shape[0], phi.shape[1]))
    _fold_in(*_parts(texts), phi, prior, alpha, rounds, 0, texts.shape[0], theta)
    return theta


@kernel
def mixture(q_indptr, q_words, q_columns, q_counts, indptr, items, theta, phi, topic_weight, images, collection, out):  # type: ignore[no-untyped-def]
    """log p(query | document) for each listed item. A word of a query has its number in the topic model, its column in
    the unigram model (-1 where it has none) and its count. `images` are rows of the unigram model: indptr, columns,
    values and log a_d, so that p(w | d) = a_d P(w) exp(image_w)."""
    im_indptr, im_indices, im_data, last = images
    place = np.full(len(collection), -1)
    longest = 1
    for i in range(len(q_indptr) - 1):
        longest = max(longest, q_indptr[i + 1] - q_indptr[i])
    unigram = np.zeros(longest)
    for i in range(len(q_indptr) - 1):
        first, n = q_indptr[i], q_indptr[i + 1] - q_indptr[i]
        for w in range(n):
            if q_columns[first + w] >= 0:
                place[q_columns[first + w]] = w
        for p in range(indptr[i], indptr[i + 1]):
            item = items[p]
            common = np.exp(last[item])
            for w in range(n):
                column = q_columns[first + w]
                unigram[w] = common * (collection[column] if column >= 0 else 0.0)
            for e in range(im_indptr[item], im_indptr[item + 1]):
                if im_indices[e] < len(place) and place[im_indices[e]] >= 0:
                    unigram[place[im_indices[e]]] *= np.exp(im_data[e])
            total = 0.0
            for w in range(n):
                topic = 0.0
                if q_words[first + w] >= 0:
                    for k in range(theta.shape[1]):
                        topic += theta[item, k] * phi[q_words[first + w], k]
                chance = (1.0 - topic_weight) * unigram[w] + topic_weight * topic
                total += q_counts[first + w] * np.log(max(chance, 1e-12))
            out[p] = total
        for w in range(n):
            if q_columns[first + w] >= 0:
                place[q_columns[first + w]] = -1


def _parts(matrix: sparse.csr_array) -> tuple[Array, Array, Array]:
    return matrix.indptr, matrix.indices, matrix.data.astype(np.float64)
