"""Regularised risk over a kernel, solved in the dual one coordinate at a time.

    min_f  c sum_i loss(o_i + m_i, t_i) + lam/2 |f|^2,   m_i = f(pos_i) - f(neg_i)

Without neg_i, m_i is f(pos_i). o_i are the margins of a given function, 0 in the paper.

With c = 1/N this is problem (5) of Wu et al. 2011, with c = 1 problem (10). By the representer theorem
f = 1/lam sum_i a_i (k(., pos_i) - k(., neg_i)). For the hinge loss, b_i = a_i t_i in [0, c] is the box-constrained
dual (15), with b = beta and theta = beta / lam. The values of f at the points are updated after every step. So a step
costs one row of the points' Gram matrix, and the matrix of pairs (W in the paper) is never formed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clickbridge.numerics.threads import kernel

Array = np.ndarray[Any, Any]
HINGE, SQUARED, LOGISTIC = 0, 1, 2


@kernel
def _step(loss, t, margin, a, h, c):  # type: ignore[no-untyped-def]
    """The new value of a coordinate: the exact maximum of the dual along it. h = K_ii / lam."""
    if loss == SQUARED:
        # a = 2c (t - m - (a_new - a) h)
        return a + (2 * c * (t - margin) - a) / (1 + 2 * c * h)
    if loss == HINGE:
        return t * min(max(a * t + (1 - t * margin) / h, 0.0), c)
    # b = c sigma(-t m): the root of an increasing function on (0, c), by Newton's method inside a shrinking bracket.
    low, high, b = 0.0, c, min(max(a * t, 1e-12 * c), c)
    for _ in range(50):
        s = 1 / (1 + np.exp(min(t * margin + (b - a * t) * h, 700.0)))
        value = b - c * s
        if value > 0:
            high = b
        else:
            low = b
        new = b - value / (1 + c * h * s * (1 - s))
        if not low < new < high:
            new = (low + high) / 2
        if abs(new - b) <= 1e-14 * c:
            break
        b = new
    return t * b


@kernel
def _objectives(loss, pos, neg, target, offset, c, lam, a, f):  # type: ignore[no-untyped-def]
    """(primal, dual) at the present f; |f|^2 = sum_i a_i m_i / lam."""
    risk = gain = square = 0.0
    for i in range(len(pos)):
        margin = f[pos[i]] - (f[neg[i]] if neg[i] >= 0 else 0.0)
        t = target[i]
        square += a[i] * margin / lam
        gain -= a[i] * offset[i]
        margin += offset[i]
        if loss == SQUARED:
            risk += c * (margin - t) ** 2
            gain += a[i] * t - a[i] ** 2 / (4 * c)
        elif loss == HINGE:
            risk += c * max(0.0, 1 - t * margin)
            gain += a[i] * t
        else:
            z = t * margin
            risk += c * (np.log1p(np.exp(-z)) if z > 0 else -z + np.log1p(np.exp(z)))
            p = a[i] * t / c
            if 0.0 < p < 1.0:
                gain -= c * (p * np.log(p) + (1 - p) * np.log(1 - p))
    return risk + lam / 2 * square, gain - lam / 2 * square


@kernel
def _ascend(gram, pos, neg, target, offset, loss, c, lam, passes, tolerance, a, f):  # type: ignore[no-untyped-def]
    n, n_points = len(pos), len(f)
    primal, dual = _objectives(loss, pos, neg, target, offset, c, lam, a, f)
    done = 0
    while done < passes and primal - dual > tolerance * max(abs(primal), 1e-300):
        farthest = 0.0
        for i in range(n):
            p, q = pos[i], neg[i]
            margin, h = f[p] + offset[i], gram[p, p]
            if q >= 0:
                margin -= f[q]
                h += gram[q, q] - 2 * gram[p, q]
            h = max(h / lam, 0.0)
            if h <= 1e-12 and loss == HINGE:
                # The loss of a pair of equal points does not depend on f: the dual is linear, and largest at the end c.
                a[i] = c * target[i] if target[i] * margin < 1 else 0.0
                continue
            new = _step(loss, target[i], margin, a[i], h, c)
            move = (new - a[i]) / lam
            farthest = max(farthest, abs(new - a[i]))
            a[i] = new
            if move != 0.0:
                for j in range(n_points):
                    f[j] += move * gram[p, j]
                if q >= 0:
                    for j in range(n_points):
                        f[j] -= move * gram[q, j]
        done += 1
        if farthest < 1e-12 * c:
            # If no coordinate moves, further passes change nothing. With a kernel that is not positive semi-definite
            # the gap may never close.
            passes = done
        primal, dual = _objectives(loss, pos, neg, target, offset, c, lam, a, f)
    return done, primal, dual


def coordinate_ascent_dual(
    gram: Array,
    pos: Array,
    neg: Array,
    target: Array,
    *,
    offset: Array | None = None,
    loss: int = HINGE,
    c: float = 1.0,
    lam: float = 1.0,
    passes: int = 1000,
    tolerance: float = 1e-3,
) -> tuple[Array, Array, int, float, float]:
    """Returns (a, f at the points, passes, primal, dual). Stops when the duality gap is `tolerance` times the
    primal."""
    a, f = np.zeros(len(pos)), np.zeros(len(gram))
    kernel_matrix = np.ascontiguousarray(gram, dtype=np.float64)
    one, two = (np.ascontiguousarray(rows, dtype=np.int64) for rows in (pos, neg))
    goal = np.ascontiguousarray(target, dtype=np.float64)
    start = np.zeros(len(one)) if offset is None else np.ascontiguousarray(offset, dtype=np.float64)
    done, primal, dual = _ascend(
        kernel_matrix, one, two, goal, start, loss, float(c), float(lam), passes, tolerance, a, f
    )
    return a, f, int(done), float(primal), float(dual)
