"""Where the keys sit among the option letters, against keys placed uniformly over the options shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

NAN = float("nan")
#: most compositions that are enumerated for an exact p
MAX_OUTCOMES = 300_000


@dataclass(frozen=True)
class KeyPositions:
    """Key letters of ``n`` items: observed and expected counts per letter code, and the p of :func:`key_positions`."""

    n: int
    observed: NDArray[np.int64]
    expected: NDArray[np.float64]
    statistic: float
    p: float
    p_method: str

    def as_row(self) -> dict[str, Any]:
        return {"n": self.n, "estimate": self.statistic, "p": self.p, "p_method": self.p_method}


def key_positions(
    key: ArrayLike, options: ArrayLike, *, rng: np.random.Generator | None = None, draws: int = 9_999
) -> KeyPositions:
    """Test whether key letters are uniform over the options that each item shows.

    Parameters
    ----------
    key : int array, shape (items,)
        Option code of the key; items without a key (negative) or with one outside their options are left out.
    options : int or int array, shape (items,)
        Options shown by each item.
    rng, draws
        For the Monte-Carlo p where no exact one is enumerable.

    Notes
    -----
    Expected count of letter l is the sum of ``1/k_i`` over items that show it; counts follow a Poisson-multinomial.
    Statistic: Pearson's ``sum (o - e)^2 / e``.  One k for all items: exact multinomial test, the sum of the
    probabilities of all outcomes at most as probable as the observed one (``exact``), where at most 300,000 outcomes
    exist (k = 2 has n + 1); else ``tables``: each group of equal k drawn as a multinomial, Pearson's statistic,
    ``(g + 1) / (draws + 1)``.
    """
    y = np.asarray(key, np.int64)
    k = np.broadcast_to(np.asarray(options, np.int64), y.shape)
    used = (y >= 0) & (y < k)
    y, k = y[used], k[used]
    n = len(y)
    if not n:
        return KeyPositions(0, np.zeros(0, np.int64), np.zeros(0), NAN, NAN, "")
    sizes, items = np.unique(k, return_counts=True)
    letters = int(sizes.max())
    observed = np.bincount(y, minlength=letters)
    expected = np.array([(items / sizes)[sizes > j].sum() for j in range(letters)])
    statistic = float(_pearson(observed, expected))
    if len(sizes) == 1 and letters == 1:
        return KeyPositions(n, observed, expected, statistic, NAN, "")
    if len(sizes) == 1 and math.comb(n + letters - 1, letters - 1) <= MAX_OUTCOMES:
        return KeyPositions(n, observed, expected, statistic, _exact(observed), "exact")
    if rng is None:
        return KeyPositions(n, observed, expected, statistic, NAN, "")
    drawn = np.zeros((draws, letters), np.int64)
    for size, count in zip(sizes.tolist(), items.tolist(), strict=True):
        drawn[:, :size] += rng.multinomial(count, np.full(size, 1 / size), size=draws)
    # equal statistics may differ in the last float digit
    g = int((_pearson(drawn, expected) >= statistic * (1 - 1e-9)).sum())
    return KeyPositions(n, observed, expected, statistic, (g + 1) / (draws + 1), "tables")


def letter_counts(codes: ArrayLike, letters: int) -> NDArray[np.int64]:
    """How often each option letter was answered; negative codes (no letter) are left out.  Shape (letters,)."""
    c = np.asarray(codes, np.int64).ravel()
    return np.bincount(c[(c >= 0) & (c < letters)], minlength=letters)


def always_letter_accuracy(key: ArrayLike, letters: int) -> NDArray[np.float64]:
    """Accuracy of answering one letter to every item with a key, for each letter."""
    y = np.asarray(key, np.int64)
    n = int((y >= 0).sum())
    return letter_counts(y, letters) / n if n else np.full(letters, NAN)


def chance_accuracy(options: ArrayLike) -> float:
    """Expected accuracy of a uniform guess over the options shown, the mean of ``1/k_i``."""
    k = np.asarray(options, float)
    k = k[k > 0]
    return float((1 / k).mean()) if k.size else NAN


def _pearson(observed: NDArray, expected: NDArray) -> NDArray:
    return ((observed - expected) ** 2 / expected).sum(-1)


def _exact(observed: NDArray[np.int64]) -> float:
    """Probability of all outcomes no more probable than the observed, under equal cell probabilities."""
    n, k = int(observed.sum()), len(observed)
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    # partial compositions: what is left for the letters to come, and the log weight so far
    left, weight = np.array([n]), np.zeros(1)
    for _ in range(k - 1):
        reps = left + 1
        start = np.repeat(np.cumsum(reps) - reps, reps)
        here = np.arange(reps.sum()) - start
        weight = np.repeat(weight, reps) - log_factorial[here]
        left = np.repeat(left, reps) - here
    weight = weight - log_factorial[left]
    seen = -log_factorial[observed].sum()
    log_p = weight[weight <= seen + 1e-9 * max(1.0, abs(seen))] + log_factorial[n] - n * math.log(k)
    return float(min(1.0, np.exp(log_p).sum()))
