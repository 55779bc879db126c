"""The same block of the objective in one compiled pass; used where numba is installed, never required.

Values equal those of the array code to rounding.  The exponential is a polynomial of our own, so that the compiler can
work on several items at once: without a vector library, calls to ``exp`` cannot be.
"""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Callable
from functools import lru_cache

import numpy as np

#: set to 1 to do without, as for comparisons
SWITCH = "AUDITLIB_NO_NUMBA"
#: ln 2 in two parts, the first exact in 32 bits, so that the reduction of the argument loses nothing
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
_COEFFICIENTS = tuple(1 / math.factorial(k) for k in range(13, -1, -1))


@lru_cache(1)
def _compiled() -> Callable | None:
    if importlib.util.find_spec("numba") is None:
        return None
    from numba import njit

    c13, c12, c11, c10, c9, c8, c7, c6, c5, c4, c3, c2, c1, c0 = _COEFFICIENTS
    ln2_high, ln2_low = _LN2_HIGH, _LN2_LOW
    # sums may be reordered; infinities and NaN do not occur, as logits are bounded
    loose = {"reassoc", "contract", "nsz", "arcp"}

    # compiled with its own flags: the reduction of the argument must keep its order
    @njit(fastmath={"contract"}, cache=True)
    def exponential(z):
        """Taylor series on [-ln 2 / 2, ln 2 / 2], relative error below 1e-15; for |z| < 700."""
        # adding 1.5 * 2**52 rounds, and leaves the integer in the last bits of the sum
        rounded = z * 1.4426950408889634 + 6755399441055744.0
        k = rounded - 6755399441055744.0
        y = (z - k * ln2_high) - k * ln2_low
        s = c13 * y + c12
        s = s * y + c11
        s = s * y + c10
        s = s * y + c9
        s = s * y + c8
        s = s * y + c7
        s = s * y + c6
        s = s * y + c5
        s = s * y + c4
        s = s * y + c3
        s = s * y + c2
        s = s * y + c1
        s = s * y + c0
        return s * np.int64((np.float64(rounded).view(np.int64) + 1023) << 52).view(np.float64)

    @njit(fastmath=loose, error_model="numpy", cache=True)
    def forward(theta, a, b, hits, misses, trials, plain, single, p, q):
        m, n = theta.shape[0], a.shape[1]
        f = 0.0
        product = np.ones(n)
        for c in range(4):
            for i in range(n):
                q[c, i] = 0.0
        for j in range(m):
            t0, t1, t2, t3 = theta[j, 0], theta[j, 1], theta[j, 2], theta[j, 3]
            for c in range(4):
                visual = 1.0 if c == 1 or c == 3 else 0.0
                textual = 1.0 if c >= 2 else 0.0
                joint = visual * textual
                base, row, seen, lost = c * n, p[j, c], hits[j], misses[j]
                for i in range(n):
                    eta = a[0, i] * t0 - b[0, i] + visual * (a[1, i] * t1 - b[1, i])
                    eta += textual * (a[2, i] * t2 - b[2, i]) + joint * (a[3, i] * t3 - b[3, i])
                    row[i] = eta
                for i in range(n):
                    f += lost[base + i] * row[i]
                for i in range(n):
                    row[i] = 1.0 + exponential(-row[i])
                if plain:
                    for i in range(n):
                        product[i] *= row[i]
                elif single:
                    for i in range(n):
                        product[i] *= row[i] if trials[j, base + i] > 0 else 1.0
                else:
                    for i in range(n):
                        f += trials[j, base + i] * math.log(row[i])
                for i in range(n):
                    row[i] = 1.0 / row[i]
                    q[c, i] += row[i]
            if j % 4 == 3 or j == m - 1:
                for i in range(n):
                    f += math.log(product[i])
                    product[i] = 1.0
        return f

    @njit(fastmath=loose, error_model="numpy", cache=True)
    def backward(theta, a, hits, trials, plain, dq, p, g_a, g_b, g_theta):
        m, n = theta.shape[0], a.shape[1]
        for k in range(4):
            for i in range(n):
                g_a[k, i] = 0.0
                g_b[k, i] = 0.0
        for j in range(m):
            t0, t1, t2, t3 = theta[j, 0], theta[j, 1], theta[j, 2], theta[j, 3]
            x0 = x1 = x2 = x3 = 0.0
            for i in range(n):
                p0, p1, p2, p3 = p[j, 0, i], p[j, 1, i], p[j, 2, i], p[j, 3, i]
                r0, r1, r2, r3 = p0, p1, p2, p3
                if not plain:
                    r0 *= trials[j, i]
                    r1 *= trials[j, n + i]
                    r2 *= trials[j, 2 * n + i]
                    r3 *= trials[j, 3 * n + i]
                r0 += dq[0, i] * p0 * (1 - p0) - hits[j, i]
                r1 += dq[1, i] * p1 * (1 - p1) - hits[j, n + i]
                r2 += dq[2, i] * p2 * (1 - p2) - hits[j, 2 * n + i]
                r3 += dq[3, i] * p3 * (1 - p3) - hits[j, 3 * n + i]
                h1 = r1 + r3
                h2 = r2 + r3
                h0 = r0 + r1 + h2
                g_a[0, i] += h0 * t0
                g_a[1, i] += h1 * t1
                g_a[2, i] += h2 * t2
                g_a[3, i] += r3 * t3
                g_b[0, i] -= h0
                g_b[1, i] -= h1
                g_b[2, i] -= h2
                g_b[3, i] -= r3
                x0 += h0 * a[0, i]
                x1 += h1 * a[1, i]
                x2 += h2 * a[2, i]
                x3 += r3 * a[3, i]
            g_theta[j, 0] += x0
            g_theta[j, 1] += x1
            g_theta[j, 2] += x2
            g_theta[j, 3] += x3

    return forward, backward


def compiled() -> Callable | None:
    """The pair (forward, backward) of compiled passes over a block, or None where numba is absent or switched off."""
    return None if os.environ.get(SWITCH) == "1" else _compiled()
