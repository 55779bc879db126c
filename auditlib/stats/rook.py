"""The exact law of a region count under permutation, by rook polynomials in integer arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Tail:
    """Exact probabilities of a count T at ``t``: ``upper = P(T >= t)``, ``equal = P(T = t)``, ``lower = P(T <= t)``."""

    upper: float
    equal: float
    lower: float


def blocks(table: NDArray, region: NDArray) -> list[tuple[int, int]] | None:
    """Sizes (items in rows, items in columns) of the region's blocks, or None when it is no union of disjoint blocks.

    ``table`` and ``region`` are lumped (:func:`auditlib.stats.tables.lump`): there a union of disjoint blocks (row set
    x column set) has at most one cell in each row and column.
    """
    if region.size and max(region.sum(0).max(), region.sum(1).max()) > 1:
        return None
    f, b = table.sum(1).tolist(), table.sum(0).tolist()
    return [(f[i], b[j]) for i, j in np.argwhere(region).tolist()]


def exact_tail(parts: Sequence[tuple[int, Iterable[tuple[int, int]]]], t: int) -> Tail:
    """Exact tail of the sum of independent region counts.

    Parameters
    ----------
    parts : sequence of (N, [(a, b), ...])
        Items of each permutation block and the sizes of its region's disjoint blocks.
    t : int
        Observed count.

    Notes
    -----
    A block of ``a x b`` cells has rook polynomial ``sum_j C(a,j) C(b,j) j! x^j``; the product over disjoint blocks
    counts ways R_r to place r rooks, and ``E C(T,r) = R_r (N-r)! / N!`` are the factorial moments of one permutation
    block (Riordan 1958, ch. 7).  Independent blocks multiply their factorial-moment polynomials.  Inclusion and
    exclusion then gives ``P(T >= t) = sum_{r>=t} (-1)^(r-t) C(r-1,t-1) E C(T,r)``.  All in integers over one common
    denominator, so cancellation costs nothing.
    """
    from flint import fmpz, fmpz_poly

    polys, denominator = [], fmpz(1)
    for n, sizes in parts:
        rooks = _product([_rook(a, b) for a, b in sizes]).coeffs()
        scaled, falling = _scale(rooks, n)
        polys.append(fmpz_poly(scaled))
        denominator *= falling
    m = _product(polys).coeffs()
    if t > len(m) - 1:
        return Tail(0.0, 0.0, 1.0)
    if t > 0:
        upper, equal = _alternating(m, t)
    else:
        upper, equal = denominator, (_at_zero(m) if t == 0 else fmpz(0))
    divide = int(denominator)
    return Tail(int(upper) / divide, int(equal) / divide, int(denominator - upper + equal) / divide)


def _rook(a: int, b: int) -> Any:
    from flint import fmpz, fmpz_poly

    value = fmpz(1)
    coeffs = [value]
    for j in range(min(a, b)):
        value = value * ((a - j) * (b - j)) // (j + 1)
        coeffs.append(value)
    return fmpz_poly(coeffs)


def _product(polys: list[Any]) -> Any:
    """Balanced product: factors of like degree are multiplied first."""
    from flint import fmpz_poly

    if not polys:
        return fmpz_poly([1])
    while len(polys) > 1:
        polys = sorted(polys, key=lambda p: p.degree())
        polys = [polys[0] * polys[1], *polys[2:]]
    return polys[0]


def _scale(rooks: list[Any], n: int) -> tuple[list[Any], Any]:
    """``R_r (n - r)!`` for all r, and ``n!``, both divided by ``(n - top)!`` to keep the integers short."""
    from flint import fmpz

    top, falling = len(rooks) - 1, fmpz(1)
    out = [None] * (top + 1)
    for r in range(top, -1, -1):
        out[r] = rooks[r] * falling
        falling *= n - r + 1
    return out, falling // (n + 1)


def _alternating(m: list[Any], t: int) -> tuple[Any, Any]:
    """``sum_{r>=t} (-1)^(r-t) C(r-1,t-1) m_r`` and the same with ``C(r,t) = C(r-1,t-1) r/t``, for t >= 1."""
    from flint import fmpz

    upper, weighted, binomial = fmpz(0), fmpz(0), fmpz(1)
    for r in range(t, len(m)):
        term = binomial * m[r]
        if (r - t) % 2:
            term = -term
        upper += term
        weighted += term * r
        binomial = binomial * r // (r + 1 - t)
    return upper, weighted // t


def _at_zero(m: list[Any]) -> Any:
    """``P(T = 0)``: the alternating sum of all moments."""
    return sum(m[0::2]) - sum(m[1::2])
