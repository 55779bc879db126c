"""The elementwise part of the objective in two compiled passes; imported only where numba is installed, never required.

Values equal those of the array code to rounding.  The exponential is a polynomial of our own, so that the compiler can
work on several items at once: without a vector library, calls to ``exp`` cannot be.
"""

from __future__ import annotations

import math

import numba
import numpy as np

#: ln 2 in two parts, the first short enough that the reduction of the argument loses nothing
_HIGH, _LOW = 0.693147180369123816490, 1.90821492927058770002e-10
_C13, _C12, _C11, _C10, _C9, _C8, _C7 = (1 / math.factorial(k) for k in range(13, 6, -1))
_C6, _C5, _C4, _C3 = (1 / math.factorial(k) for k in range(6, 2, -1))
# no reordering of sums: the reduction of the exponential's argument lives from rounding
_LOOSE = {"contract", "nsz"}


@numba.njit(inline="always")
def exponential(z):
    """Taylor series on [-ln 2 / 2, ln 2 / 2], relative error below 1e-15; for |z| < 700."""
    # adding 1.5 * 2**52 rounds, and leaves the integer in the last bits of the sum
    rounded = z * 1.4426950408889634 + 6755399441055744.0
    k = rounded - 6755399441055744.0
    y = (z - k * _HIGH) - k * _LOW
    s = _C13 * y + _C12
    s = s * y + _C11
    s = s * y + _C10
    s = s * y + _C9
    s = s * y + _C8
    s = s * y + _C7
    s = s * y + _C6
    s = s * y + _C5
    s = s * y + _C4
    s = s * y + _C3
    s = s * y + 0.5
    s = s * y + 1.0
    s = s * y + 1.0
    return s * np.int64((np.float64(rounded).view(np.int64) + 1023) << 52).view(np.float64)


@numba.njit(fastmath=_LOOSE, error_model="numpy", cache=True)
def forward(eta, trials, plain, single, q):
    """Sum over a block of trials x log(1 + exp(-logit)); logits become probabilities, summed into ``q``.

    ``trials`` is looked at where not ``plain``; one logarithm is taken per 16 cells where ``single``.
    """
    m, n = eta.shape[0], eta.shape[1] // 4
    f = 0.0
    product = np.ones(n)
    q[:] = 0.0
    for j in range(m):
        for c in range(4):
            row, drawn, sums = eta[j, c * n : (c + 1) * n], trials[j, c * n : (c + 1) * n], q[c * n : (c + 1) * n]
            if plain:
                for i in range(n):
                    d = 1.0 + exponential(-row[i])
                    product[i] *= d
                    row[i] = 1.0 / d
                    sums[i] += row[i]
            else:
                for i in range(n):
                    d = 1.0 + exponential(-row[i])
                    if single:
                        product[i] *= d if drawn[i] > 0 else 1.0
                    else:
                        f += drawn[i] * math.log(d)
                    row[i] = 1.0 / d
                    sums[i] += row[i]
        if single and (j % 4 == 3 or j == m - 1):
            for i in range(n):
                f += math.log(product[i])
                product[i] = 1.0
    return f


@numba.njit(fastmath=_LOOSE, error_model="numpy", cache=True)
def backward(p, hits, trials, plain, dq):
    """Probabilities become the loss's derivatives by logits; ``dq`` is that by their mean, per subject."""
    for j in range(p.shape[0]):
        row, right, drawn = p[j], hits[j], trials[j]
        if plain:
            for i in range(len(row)):
                row[i] += dq[i] * row[i] * (1 - row[i]) - right[i]
        else:
            for i in range(len(row)):
                row[i] = drawn[i] * row[i] + dq[i] * row[i] * (1 - row[i]) - right[i]
