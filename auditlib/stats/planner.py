"""How much is enough: models for a list, items for an excess, reviews for an interval, samples for each item."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from auditlib.stats.equivalence import excess_values
from auditlib.stats.intervals import NAN
from auditlib.stats.multiplicity import bayes_fdr
from auditlib.stats.tables import joint_table, moments, tie_region

#: numbers of models of a planning curve
SIZES = (3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)


@dataclass(frozen=True)
class ListPlan:
    """What a list of items with small gain would be with more models.

    ``curve``: one row per number of models: ``models, listed`` (expected items on the list), ``precision`` (expected
    share of true ones, NaN for an empty list), ``recall`` (share of the true ones that are listed). ``needed`` is the
    smallest number of models of the curve that lists ``least`` items, None where none does.
    """

    curve: pd.DataFrame
    needed: int | None
    q: float
    least: int

    def sentence(self) -> str:
        most = int(self.curve["models"].max())
        if self.needed is None:
            return (
                f"No list of {self.least} items at an error share of {self.q:g} is in sight with up to {most} models."
            )
        return f"A list of {self.least} items at an error share of {self.q:g} takes about {self.needed} models."


def models_for_list(
    law: ArrayLike,
    inside: ArrayLike,
    chances: ArrayLike,
    items: int,
    *,
    q: float = 0.1,
    least: int = 10,
    sizes: Sequence[int] = SIZES,
) -> ListPlan:
    """Models needed before items can be listed by posterior with a controlled share of errors.

    Parameters
    ----------
    law : shape (nodes, nodes)
        Weights of (chance with the image, chance without), as :class:`auditlib.stats.gain_mixture.GainMixture` has.
    inside : shape (nodes, nodes)
        1 where a pair of chances has the property that is listed.
    chances : shape (nodes,)
    items : int
        Items of the benchmark.
    q, least : share of errors allowed on the list; items it must have.

    Notes
    -----
    The law is taken as known and models as independent draws, so that counts are binomial given the item: a forecast
    that holds under the fitted model, and errs on the hopeful side where models share errors.
    """
    from scipy.stats import binom

    mass, property_, p = (np.asarray(x, float) for x in (law, inside, chances))
    mass = mass / mass.sum()
    rows = []
    for n in sizes:
        counts = binom.pmf(np.arange(n + 1)[None], n, p[:, None])
        told, true = counts.T @ mass @ counts, counts.T @ (mass * property_) @ counts
        cells = told.ravel() > 1e-14
        posterior = np.clip(true.ravel()[cells] / told.ravel()[cells], 0, 1)
        rows.append({"models": n} | _listed(posterior, told.ravel()[cells], items, q, float(true.sum())))
    curve = pd.DataFrame(rows)
    enough = curve.loc[curve["listed"] >= least, "models"]
    return ListPlan(curve, int(enough.iloc[0]) if len(enough) else None, q, least)


def _listed(posterior: NDArray, weight: NDArray, items: int, q: float, share: float) -> dict[str, float]:
    """Longest prefix of cells, most probable first, whose expected share of errors is at most q."""
    order = np.argsort(-posterior, kind="stable")
    w, hit = weight[order], (weight * posterior)[order]
    error = 1 - np.cumsum(hit) / np.cumsum(w)
    # cells of one posterior are listed together or not at all
    last = np.append(np.diff(posterior[order]) < -1e-9, True)
    fits = np.flatnonzero((error <= q + 1e-12) & last)
    if not len(fits):
        return {"listed": 0.0, "precision": NAN, "recall": 0.0}
    end = fits[-1] + 1
    return {
        "listed": items * float(w[:end].sum()),
        "precision": float(1 - error[end - 1]),
        "recall": float(hit[:end].sum()) / share if share > 0 else NAN,
    }


def list_now(posterior: ArrayLike, plan: ListPlan) -> str:
    """What this pool's posteriors support today; the refusal names the models needed."""
    found = bayes_fdr(posterior, plan.q)
    if 0 < len(found.order) < plan.least:
        return f"{found.sentence()} {plan.sentence()}"
    return found.sentence(plan.needed if plan.needed is not None else f"more than {int(plan.curve['models'].max())}")


def smallest_excess(
    full: ArrayLike,
    blind: ArrayLike,
    *,
    stratum: ArrayLike | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
    items: int | None = None,
) -> float:
    """Smallest excess share of exact ties that a pool with these margins finds with a given power.

    Parameters
    ----------
    full, blind : int arrays, shape (items,)
        Counts of right models.
    stratum : shape (items,), optional
    items : int, optional
        Another number of items of the same kind; that of the arrays by default.

    Notes
    -----
    ``z_alpha sd_null + z_power sd``, with the permutation law's standard deviation for the test (one-sided) and that of
    the linearised excess for the alternative; both shrink with the square root of the number of items.
    """
    f, b = np.asarray(full, np.int64), np.asarray(blind, np.int64)
    n, levels = len(f), int(max(f.max(), b.max())) + 1
    codes = np.zeros(n, int) if stratum is None else np.unique(np.asarray(stratum), return_inverse=True)[1].ravel()
    region = tie_region(levels)
    variance = 0.0
    for s in range(int(codes.max()) + 1):
        rows = codes == s
        variance += moments(joint_table(f[rows], b[rows], levels - 1), region)[1]
    spread = float(np.std(excess_values(f, b, stratum), ddof=1)) / math.sqrt(n)
    value = -float(ndtri(alpha)) * math.sqrt(variance) / n + float(ndtri(power)) * spread
    return value * math.sqrt(n / (items or n))


def reviews_needed(share: float, half_width: float, *, items: int | None = None, level: float = 0.95) -> int:
    """Items to review at random so that the interval of a share is at most ``half_width`` either side.

    Parameters
    ----------
    share : float
        Expected share; 0.5 is the worst case.
    half_width : float
    items : int, optional
        Size of the benchmark: reviewing a good part of it needs fewer (finite population).

    Raises
    ------
    ValueError
        A share outside [0, 1] or a half-width that is not positive.

    Notes
    -----
    Smallest n whose Wilson interval at the expected count is narrow enough; for N items ``n / (1 + (n - 1) / N)``.

    Examples
    --------
    >>> reviews_needed(0.5, 0.1), reviews_needed(0.05, 0.05), reviews_needed(0.5, 0.1, items=200)
    (93, 83, 64)
    """
    if not (0 <= share <= 1 and half_width > 0):
        raise ValueError("a share in [0, 1] and a positive half-width are needed")
    low, high = 0, 1
    while _half(share, high, level) > half_width:
        low, high = high, 2 * high
    while high - low > 1:
        mid = (low + high) // 2
        low, high = (mid, high) if _half(share, mid, level) > half_width else (low, mid)
    return high if items is None else min(items, math.ceil(high / (1 + (high - 1) / items)))


def _half(share: float, n: int, level: float) -> float:
    """Half-width of Wilson's interval at the expected (fractional) count, which falls with n."""
    z2 = float(ndtri(0.5 + level / 2)) ** 2
    return math.sqrt(z2) * math.sqrt(n * share * (1 - share) + z2 / 4) / (n + z2)


@dataclass(frozen=True)
class SamplePlan:
    """Variance of a score between items and within (between draws of one item), and what more draws would do."""

    between: float
    within: float
    items: int

    def se(self, samples: int, items: int | None = None) -> float:
        """Standard error of the mean over items with so many draws of each."""
        return math.sqrt((self.between + self.within / samples) / (items or self.items))

    def samples_for(self, se: float) -> int | None:
        """Draws of each item for a standard error; None where no number of draws is enough (more items are needed)."""
        room = se**2 * self.items - self.between
        if room <= 0:
            return 1 if self.within == 0 and room == 0 else None
        return max(1, math.ceil(self.within / room - 1e-9))

    def best(self, item_cost: float = 0.0) -> int:
        """Draws that give the smallest error for the money, an item costing ``item_cost`` draws before its first."""
        if self.between <= 0:
            return 1 if item_cost <= 0 else max(1, round(item_cost))
        return max(1, round(math.sqrt(item_cost * self.within / self.between)))

    def table(self, samples: Sequence[int] = (1, 2, 4, 8, 16, 32)) -> pd.DataFrame:
        rows: list[dict[str, Any]] = [
            {"samples": r, "se": self.se(r), "gain": 1 - self.se(r) / self.se(1)} for r in samples
        ]
        return pd.DataFrame(rows)


def sample_plan(hits: ArrayLike, trials: ArrayLike) -> SamplePlan:
    """Variance parts of one model's score from repeated draws.

    Parameters
    ----------
    hits, trials : int arrays, shape (items,)
        Right draws and draws; at least two draws of some items.

    Raises
    ------
    ValueError
        No item with two draws.

    Notes
    -----
    Within: mean of the unbiased ``p (1 - p) r / (r - 1)`` over items of two draws or more; between: variance of the
    item means less their mean within variance, not below 0.

    Examples
    --------
    >>> plan = sample_plan([4, 0, 2, 2], [4, 4, 4, 4])
    >>> round(plan.within, 4), round(plan.between, 4)
    (0.1667, 0.125)
    """
    h, r = np.asarray(hits, float), np.asarray(trials, float)
    h, r = h[r > 0], r[r > 0]
    more = r > 1
    if not more.any():
        raise ValueError("no item was asked twice: draws cannot be told from items")
    p = h / r
    within = float((p[more] * (1 - p[more]) * r[more] / (r[more] - 1)).mean())
    between = float(p.var(ddof=1)) - within * float((1 / r).mean()) if len(p) > 1 else 0.0
    return SamplePlan(max(between, 0.0), within, len(p))
