"""How many items text ablation removes by luck: purely visual items whose inspectors guess right too often.

An inspector that guesses anew at each draw is hardly ever right often enough; one that repeats its guess is. What
decides is therefore the correlation between one inspector's draws of one item.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.curation.ablation import Ablation, AblationSettings, thresholds, whole_k
from auditlib.curation.data import Draws
from auditlib.stats.intervals import Interval, no_interval

#: groups of items behind the interval of the correlation
_GROUPS = 40
#: places of the lattice of mean rates beyond which unequal draws are pooled
_LATTICE = 1_000_000


@dataclass(frozen=True)
class Correlation:
    """Correlation between draws of one model on one item.

    Attributes
    ----------
    within : between two draws of a model beyond what all models share on an item, 0 to 1; nan where not estimable.
        interval : of ``within``. plain : the beta-binomial correlation, to which items that differ in difficulty add.
    same : share of items and models with at least two draws that are all right or all wrong. n : items behind it.
    """

    within: float
    interval: Interval
    plain: float
    same: float
    n: int


@dataclass(frozen=True)
class WrongRemoval:
    """Expected wrong removals: ``table`` by number of valid answers, totals over it.

    Attributes
    ----------
    table : columns k (nan for open answers), items, removed, threshold; ``chance_redrawn``, ``chance``,
        ``chance_repeated`` = probability that a purely visual item is removed when guesses are redrawn, correlated as
        estimated, or repeated; visual_items = estimated number of purely visual items; expected = of them removed;
        expected_at_most = were all items purely visual.
    """

    correlation: Correlation
    table: pd.DataFrame
    expected: float
    expected_at_most: float
    removed: int

    @property
    def sentence(self) -> str:
        c = self.correlation
        if not np.isfinite(self.expected):
            return "Wrong removals are not estimated: " + c.interval.method.removeprefix("none: ")
        return (
            f"Of {self.removed:,} items removed by text ablation about {self.expected:,.1f} are expected to be purely "
            f"visual (at most {self.expected_at_most:,.1f}, were every item so), "
            + ("at one draw of each inspector." if np.isnan(c.within) else
               f"at a correlation of {c.within:.2f} between draws of one inspector.")
        )  # fmt: skip


def correlation(draws: Draws) -> Correlation:
    """Estimate the correlation between draws of one model on one item.

    Parameters
    ----------
    draws : counts of one condition, shape (items, models)

    Notes
    -----
    With p_m a model's accuracy, ``w`` the mean over models of E[y y'] - p_m^2 for two draws of a model on an item,
    ``b`` the mean over pairs of models of the covariance of their rates, and ``v`` the mean of p_m (1 - p_m): the
    moment estimate of the beta-binomial correlation is w / v, and (w - b) / (v - b) once what models share on an item
    is taken out. The interval is a jackknife over groups of items. Graded verdicts have no such correlation.
    """
    if draws.unit != 1:
        return _none("verdicts are graded", 0)
    ran = (draws.trials > 0).any(axis=0)
    h, n = draws.hits[:, ran].astype(float), draws.trials[:, ran].astype(float)
    used = (n >= 2).all(axis=1)
    h, n = h[used], n[used]
    items, models = h.shape
    if models == 0 or items < 2:
        return _none("fewer than two items with two draws of every inspector", items)
    rate = h / n
    # per item: rates, E[y y'] of each model, and the mean product of two models' rates
    pairs = (rate.sum(axis=1) ** 2 - (rate**2).sum(axis=1)) / max(models * (models - 1), 1)
    parts = np.column_stack([rate, (h * (h - 1) / (n * (n - 1))).mean(axis=1), pairs])
    group = np.arange(items) * _GROUPS // items if items >= 2 * _GROUPS else np.arange(items)
    sums = np.stack([np.bincount(group, c) for c in parts.T], axis=1)
    sizes = np.bincount(group)
    within, plain = _moments(parts.mean(axis=0), models)
    same = float(((h == 0) | (h == n)).mean())
    if not np.isfinite(within):
        return _none("every draw is right, or every draw is wrong", items)
    left = (sums.sum(axis=0) - sums) / (items - sizes)[:, None]
    without = np.array([_moments(row, models)[0] for row in left])
    return Correlation(
        float(np.clip(within, 0, 1)), _jackknife(within, without), float(np.clip(plain, 0, 1)), same, items
    )


def _none(why: str, items: int) -> Correlation:
    return Correlation(np.nan, no_interval(why), np.nan, np.nan, items)


def _moments(mean: NDArray, models: int) -> tuple[float, float]:
    """Correlation without and with what models share on an item, from means over items."""
    p, own, cross = mean[:models], mean[models], mean[models + 1]
    spread, within = float((p * (1 - p)).mean()), float(own - (p**2).mean())
    products = (p.sum() ** 2 - (p**2).sum()) / max(models * (models - 1), 1)
    shared = max(float(cross - products), 0.0) if models > 1 else 0.0
    net = (within - shared) / (spread - shared) if spread - shared > 1e-12 else np.nan
    return net, within / spread if spread > 1e-12 else np.nan


def _jackknife(estimate: float, without: NDArray, level: float = 0.95) -> Interval:
    from scipy.special import stdtrit

    groups = len(without)
    if not np.isfinite(without).all():
        return no_interval("a group of items decides all", level)
    half = float(stdtrit(groups - 1, 0.5 + level / 2)) * float(
        np.sqrt((groups - 1) / groups * ((without - without.mean()) ** 2).sum())
    )
    return Interval(max(0.0, estimate - half), min(1.0, estimate + half), level, f"jackknife over {groups} groups")


def guess_distribution(n: int, p: float, rho: float) -> NDArray[np.float64]:
    """Probabilities of 0 to n right guesses among n draws of one inspector.

    Parameters
    ----------
    p : chance of a right guess
    rho : correlation between two draws: 0 redraws each guess (binomial), 1 repeats the first, between: beta-binomial
    """
    from scipy.stats import betabinom, binom

    at = np.arange(n + 1)
    if rho <= 0 or n < 2:
        return binom.pmf(at, n, p)
    if rho >= 1:
        return np.where(at == n, p, np.where(at == 0, 1 - p, 0.0))
    return betabinom.pmf(at, n, p * (1 / rho - 1), (1 - p) * (1 / rho - 1))


@lru_cache(maxsize=65_536)
def _rate_tail(draws: tuple[int, ...], k: int, rho: float, num: int, den: int, upper: bool) -> float:
    """P(mean of the inspectors' rates > num/den), or <= num/den, where inspectors guess among k."""
    seen = [n for n in draws if n > 0]
    common = math.lcm(*seen)
    if common * len(seen) > _LATTICE:
        seen, common = [sum(seen) // len(seen)] * len(seen), sum(seen) // len(seen)
    p = np.ones(1)
    for n in seen:
        step, out = common // n, np.zeros(len(p) + common)
        for x, q in enumerate(guess_distribution(n, 1 / k, rho)):
            out[x * step : x * step + len(p)] += q * p
        p = out
    over = np.arange(len(p)) * den > num * common * len(seen)
    return float(p[over].sum() if upper else p[~over].sum())


def chance_removed(k: int, draws: tuple[int, ...], rho: float, settings: AblationSettings | None = None) -> float:
    """Probability that a purely visual item is removed by text ablation, exactly.

    Parameters
    ----------
    k : number of valid answers among which inspectors guess
    draws : draws of each inspector
    rho : correlation between two draws of an inspector on an item

    Examples
    --------
    >>> round(100 * chance_removed(4, (8,) * 5, 1.0), 1), round(100 * chance_removed(3, (8,) * 5, 0.0), 2)
    (10.4, 0.96)
    """
    num, den = thresholds(np.array([float(k)]), settings or AblationSettings())
    return _rate_tail(tuple(sorted(int(n) for n in draws)), int(k), float(rho), int(num[0]), int(den[0]), True)


def wrong_removal(
    blind: Draws, k: ArrayLike, decided: Ablation, settings: AblationSettings | None = None
) -> WrongRemoval:
    """Expected number of purely visual items that text ablation removed.

    Parameters
    ----------
    blind : counts of the inspectors without the image, shape (items, inspectors)
    k : floats, shape (items,)
        Distinct valid answers, nan for open answers (which nobody guesses right).
    decided : the ablation of the same items

    Notes
    -----
    A purely visual item is one whose inspectors can only guess, each 1/k. Their number is estimated from the items at
    or below chance, ``#(t <= 1/k) / P(t <= 1/k)``, at most all items (Storey's estimate of true nulls): inspectors that
    decline more often than they guess make it too large, never too small.
    """
    settings = settings or AblationSettings()
    found, options = correlation(blind), whole_k(k)
    # with one draw each there is nothing to correlate, and the chance does not depend on it
    rho = 0.0 if blind.unit == 1 and blind.trials.max(initial=0) <= 1 else found.within
    rows = [_row(blind, int(v), (options == v) & decided.judged, rho, decided, settings) for v in np.unique(options)]
    table = pd.DataFrame([r for r in rows if r["items"]], columns=list(_row_columns()))
    totals = [float(table[c].sum(skipna=False)) if len(table) else 0.0 for c in ("expected", "expected_at_most")]
    return WrongRemoval(found, table, *totals, int(decided.removed.sum()))


def _row_columns() -> tuple[str, ...]:
    return ("k", "items", "removed", "threshold", "chance_redrawn", "chance", "chance_repeated", "visual_items",
            "expected", "expected_at_most")  # fmt: skip


def _row(blind: Draws, k: int, here: NDArray, rho: float, decided: Ablation, settings: AblationSettings) -> dict:
    """One line of the table: items with k valid answers, 0 for open answers."""
    n = int(here.sum())
    row = {"k": float(k) if k else np.nan, "items": n, "removed": int(decided.removed[here].sum()),
           "threshold": float(decided.threshold[here][0]) if n else np.nan}  # fmt: skip
    if not n or not k:
        return row | dict.fromkeys(_row_columns()[4:], 0.0)
    made = np.sort(blind.trials[here] // blind.unit, axis=1)
    patterns, times = np.unique(made, axis=0, return_counts=True)
    keys, weight = [tuple(int(x) for x in p) for p in patterns], times / n

    def mean(share: float) -> float:
        return float(sum(w * chance_removed(k, key, share, settings) for key, w in zip(keys, weight, strict=True)))

    redrawn, repeated = mean(0.0), mean(1.0)
    if not np.isfinite(rho):
        return row | {"chance_redrawn": redrawn, "chance": np.nan, "chance_repeated": repeated,
                      "visual_items": np.nan, "expected": np.nan, "expected_at_most": np.nan}  # fmt: skip
    chance = mean(rho)
    low = sum(w * _rate_tail(key, k, float(rho), 1, k, False) for key, w in zip(keys, weight, strict=True))
    at_chance = int((decided.rate[here] <= 1 / k + 1e-12).sum())
    visual = min(float(n), at_chance / low) if low > 0 else float(n)
    return row | {"chance_redrawn": redrawn, "chance": chance, "chance_repeated": repeated, "visual_items": visual,
                  "expected": visual * chance, "expected_at_most": n * chance}  # fmt: skip
