"""Rates as whole numerators and denominators, and their comparison with thresholds: no rounding decides an item."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditlib.errors import AuditError

#: products of whole numbers stay below this in 64 bits; beyond, Python's own integers take over
_SAFE = 2**62


@dataclass(frozen=True)
class Rates:
    """Rates ``num / den`` of items, whole numbers of shape (items,); ``den`` is 0 where nothing was drawn."""

    num: NDArray
    den: NDArray

    @property
    def value(self) -> NDArray[np.float64]:
        """The rates as floats, nan without draws: to print, never to decide."""
        num, den = self.num.astype(float), self.den.astype(float)
        return np.divide(num, den, out=np.full(len(num), np.nan), where=den > 0)

    @property
    def seen(self) -> NDArray[np.bool_]:
        return self.den > 0


def fraction(value: str | float | Fraction, what: str = "threshold") -> Fraction:
    """A threshold as the exact number its text says: ``0.9`` is nine tenths.

    Raises
    ------
    AuditError
        No number, or outside 0 to 1.

    Examples
    --------
    >>> fraction(0.9), fraction("1/3")
    (Fraction(9, 10), Fraction(1, 3))
    """
    try:
        out = value if isinstance(value, Fraction) else Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise AuditError(f"{what} is {value!r}, no number", mend="give a number from 0 to 1") from None
    if not 0 <= out <= 1:
        raise AuditError(f"{what} is {value}", mend="give a number from 0 to 1")
    return out


def whole(units: NDArray, terms: int = 1) -> NDArray:
    """Whole numbers in a type that holds sums of ``terms`` values over the least common multiple of all of them."""
    common = math.lcm(*(int(n) for n in np.unique(units) if n > 0))
    return units.astype(np.int64 if common * max(terms, 1) * int(units.max(initial=1)) < _SAFE else object)


def mean_of_means(hits: ArrayLike, trials: ArrayLike) -> Rates:
    """Mean over models of each model's own rate, exactly; models without a draw are left out.

    Parameters
    ----------
    hits, trials : whole numbers, shape (items, models)

    Notes
    -----
    With ``L`` the least common multiple of an item's draws, ``sum h L/n`` over ``L`` times the models: with equal
    draws this is the pooled rate.
    """
    hits, trials = np.asarray(hits), np.asarray(trials)
    seen = trials > 0
    units = whole(np.where(seen, trials, 1), trials.shape[1])
    common = np.lcm.reduce(units, axis=1, initial=1)
    num = (np.where(seen, hits, 0).astype(units.dtype) * (common[:, None] // units)).sum(axis=1)
    return Rates(num, common * seen.sum(axis=1))


def above(rates: Rates, num: ArrayLike, den: ArrayLike = 1, *, or_equal: bool = False) -> NDArray[np.bool_]:
    """Whether a rate exceeds ``num / den`` (one threshold, or one for each item); never without draws."""
    left, right = times(rates.num, den), times(num, rates.den)
    return (rates.den > 0) & ((left >= right) if or_equal else (left > right)).astype(bool)


def times(a: ArrayLike, b: ArrayLike) -> NDArray:
    """Product of whole numbers that cannot overflow."""
    a, b = np.asarray(a), np.asarray(b)
    biggest = [max(abs(int(x.max(initial=0))), abs(int(x.min(initial=0)))) for x in (a, b)]
    kind = np.int64 if biggest[0] * biggest[1] < _SAFE else object
    return a.astype(kind) * b.astype(kind)
