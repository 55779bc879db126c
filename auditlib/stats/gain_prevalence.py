"""Share of items whose gain through the image is small for a model drawn from the pool's population: identified set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, linprog
from scipy.special import ndtr, ndtri, stdtrit

from auditlib.stats.gain_kernel import (
    Changes,
    Floats,
    Thinned,
    cell_of,
    changes,
    item_cells,
    thinned,
    thinning,
    trinomial,
)
from auditlib.stats.gain_windows import window_nodes
from auditlib.stats.intervals import NAN

#: models used at once, directions of the table used, items that the design counts on at most
MOST_MODELS, DIRECTIONS, DESIGN_ITEMS = 24, 28, 5_000
#: largest margin of the scattered set, whose windows have to fit
LARGEST = 0.4


@dataclass(frozen=True)
class PrevalenceSet:
    """Shares that the pool cannot tell apart, with sampling margin at both ends.

    ``low_point`` and ``high_point`` are the ends without margin, ``low_se`` and ``high_se`` their standard errors over
    items and models. ``scattered`` tells the set over scattered laws from that over all. ``models`` are those of the
    item that has fewest, ``degree`` how many of them enter at once.
    """

    low: float
    high: float
    level: float
    margin: float
    scattered: bool
    items: int
    models: int
    degree: int
    low_point: float
    high_point: float
    low_se: float
    high_se: float
    note: str = ""

    @property
    def width(self) -> float:
        return self.high - self.low

    @property
    def informative(self) -> bool:
        """Whether anything between 0 and 1 is ruled out."""
        return self.width < 1

    def __contains__(self, share: float) -> bool:
        return self.low <= share <= self.high

    def as_row(self) -> dict[str, Any]:
        names = (
            "low",
            "high",
            "level",
            "margin",
            "scattered",
            "items",
            "models",
            "degree",
            "low_se",
            "high_se",
            "note",
        )
        return {name: getattr(self, name) for name in names} | {"width": self.width}


def prevalence_set(
    full: ArrayLike,
    blind: ArrayLike,
    *,
    margin: float = 0.1,
    scattered: bool = False,
    level: float = 0.95,
    observed: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    degree: int | None = None,
) -> PrevalenceSet:
    """Identified set of the share of items with \\|gain\\| <= margin, for a model drawn from the pool's population.

    Parameters
    ----------
    full, blind : 0/1 arrays, shape (items, models)
        One draw of each model with and without the image.
    margin : float
        Largest gain (difference of two probabilities) that counts as none.
    scattered : bool
        Gains beyond three quarters of the margin scatter: their law is some mixture of uniform windows 2.5 margins
        wide (:mod:`auditlib.stats.gain_windows`); smaller gains are free, a spike at 0 included. False: every mixing
        law is allowed.
    level : float
        Coverage of the share.
    observed : boolean array, optional
        Cells with both runs.
    cluster : shape (items,), optional
        Items that share an image or a base item.
    degree : int, optional
        Models that enter at once; one fewer than the pool has, at most 24, by default.

    Returns
    -------
    PrevalenceSet

    Raises
    ------
    ValueError
        Arrays that are no hits, a margin outside (0, 1), or above .4 for scattered laws.

    Notes
    -----
    Given an item, models are independent draws from a population, so the numbers of ``d`` models that are right with
    the image only and without it only are trinomial with parameters (a, b), and the item's gain is a - b. This holds
    whatever the link between the two runs of one model. The set is the range of the mass of \\|a - b\\| <= margin
    over the mixing laws of (a, b) whose table is compatible with the pool's. By duality of linear programs its upper
    end is ``min w.T`` over weights w of the table's cells whose polynomial ``E[w | a, b]`` is nowhere below the
    band's indicator; the lower end likewise. Any such w gives an unbiased estimate of a bound, so the sampling margin
    is that of one linear statistic. w is chosen to minimise bound and margin together on a smooth law fitted to the
    table (linear programs with cutting planes, HiGHS), then checked on a finer grid, and lifted by what it misses
    there. The variance is that over items (clusters), plus the jackknife variance over models beyond what items that
    scatter independently cause; quantiles are Student's with Satterthwaite's degrees of freedom, at the level that
    covers the share (:func:`one_sided`). Exactly 0 gain is never identified, since mass may always lie a hair off.

    The scattered set assumes that no gain beyond three quarters of the margin is so common that items heap there: it
    takes mixtures of :func:`auditlib.stats.gain_windows.window_nodes` for the single gains of the other set. What it
    leaves out is a heap just inside or just beyond the margin.

    The windows' width was chosen after some 25 restrictions had been tried, by the width on the 24 models of MMMU and
    by ten worlds of the mixture's own kind; the worlds below have other seeds.

    Coverage and widths by kind of world are measured in ``tests/calibrate/prevalence.py``. With 24 models and 800
    items, in nine kinds of worlds of which eight break the mixture's model and one this assumption outright, the
    scattered set held the truth in all of 93 pools (one-sided 95% lower limit of the coverage: .968) and was .10 to
    .35 wide (means by kind; .29 over kinds, above .30 in seven of nine); over all laws widths are .10 to .82. On the 24
    models of MMMU they are .28 and .65; .19 and .55 of that would be left without sampling margin. Smaller
    pools pin the share down less: on MMMU .44, .39 and .98 with 12, 6 and 3 models; with 6
    models it held the truth in 19 of 20 simulated pools.
    """
    if not 0 < margin < 1:
        raise ValueError("the margin must lie between 0 and 1")
    if scattered and margin > LARGEST:
        raise ValueError(f"scattered laws take a margin of at most {LARGEST}")
    c = changes(full, blind, observed)
    size = min(c.least - 1, MOST_MODELS if degree is None else degree)
    facts = (level, margin, scattered, c.items, c.least)
    if size < 1:
        return PrevalenceSet(0.0, 1.0, *facts, 0, 0.0, 1.0, NAN, NAN, "one model cannot tell gain from chance")
    table = thinned(c, size)
    design = _Design(table, min(c.items, DESIGN_ITEMS), size, margin, scattered)
    codes = None if cluster is None else np.unique(np.asarray(cluster), return_inverse=True)[1]
    ends = []
    for upper in (False, True):
        w = design.weights(upper, level)
        ends.append(estimate(w, c, size, table, codes))
    (low, low_se, low_df), (high, high_se, high_df) = ends
    tail = one_sided(high - low, max(low_se, high_se), level)
    ends = [(low, low_se * float(stdtrit(low_df, tail))), (high, high_se * float(stdtrit(high_df, tail)))]
    note = ""
    if low > high:  # two noisy ends may cross, the more so where the law is at odds with the restriction
        ends, note = ends[::-1], "ends crossed: the pool may not meet the restriction"
    inside = (min(max(ends[0][0] - ends[0][1], 0.0), 1.0), min(max(ends[1][0] + ends[1][1], 0.0), 1.0))
    return PrevalenceSet(*inside, *facts, size, low, high, low_se, high_se, note)


def one_sided(width: float, se: float, level: float) -> float:
    """Probability whose quantile is the margin at either end of a set of some width, so that the share is covered.

    A wide set errs at one end only: from ``(1 + level) / 2`` at width 0 to ``level`` (Imbens and Manski 2004).
    """
    if se <= 0:
        return level
    ratio = max(width, 0.0) / se
    c = brentq(lambda c: ndtr(c + ratio) - ndtr(-c) - level, 0, 10)
    return float(ndtr(c))


def estimate(w: Floats, c: Changes, size: int, table: Thinned, cluster: NDArray | None) -> tuple[float, float, float]:
    """Mean of a statistic over items, its standard error, and the degrees of freedom of that."""
    value, (gained, lost) = np.empty(c.items), item_cells(c)
    for n, rows in c.group.items():
        value[rows] = (thinning(n, size) @ w)[cell_of(gained[rows], lost[rows], n)]
    mean = float(value.mean())
    spread = value - mean if cluster is None else np.bincount(cluster, value - mean)
    units = len(spread)
    by_item = float(spread @ spread) / c.items**2 * units / max(units - 1, 1)
    by_model = max(float(((table.without @ w) ** 2).sum() - w @ table.shared @ w), 0.0)
    variance = by_item + by_model
    if variance <= 1e-18:
        return mean, 0.0, 1e9
    freedom = variance**2 / (by_item**2 / max(units - 1, 1) + by_model**2 / max(c.models - 1, 1))
    return mean, math.sqrt(variance), max(freedom, 1.0)


class _Design:
    """Weights of the table's cells for the two ends; what both share is computed once."""

    def __init__(self, table: Thinned, items: int, size: int, margin: float, scattered: bool = False):
        self.size, self.margin, self.scattered = size, margin, scattered
        pilot, law, kernel = smooth_table(table.mean, size)
        pilot = 0.99 * pilot + 0.01 / len(pilot)
        # orthonormal directions, best seen through the kernel first, behind the constant
        seen = np.sqrt(law)[:, None] * kernel / np.sqrt(pilot)
        _, _, v = np.linalg.svd(seen, full_matrices=False)
        self.basis = np.c_[np.ones(len(pilot)), (v[: DIRECTIONS - 1] / np.sqrt(pilot)).T]
        by_item = 0.9 * table.covariance + 0.1 * (np.diag(pilot) - np.outer(pilot, pilot))
        by_model = table.without.T @ table.without - table.shared
        self.spread = self.basis.T @ by_item @ self.basis / items + _positive(self.basis.T @ by_model @ self.basis)
        self.centre = pilot @ self.basis
        self.coarse, self.fine = self._rows(1, 10), self._rows(5, 30)

    def _rows(self, parts: int, height: int) -> tuple[Floats, Floats, Floats]:
        """Polynomials at nodes, and the indicator without and with the band's edges."""
        if self.scattered:
            laws, inside = window_nodes(self.size, self.margin, parts, height)
            return laws @ self.basis, inside, inside
        gain, bands = band_nodes(self.margin, parts)
        rise = (1 - np.cos(np.pi * np.linspace(0, 1, height))) / 2
        g = np.repeat(gain, height)
        total = np.abs(g) + (1 - np.abs(g)) * np.tile(rise, len(gain))
        kernel = trinomial(self.size, (total + g) / 2, (total - g) / 2) @ self.basis
        return kernel, *(np.repeat(x, height, axis=0) for x in (bands[:, 1], bands[:, 0]))

    def weights(self, upper: bool, level: float, rounds: int = 12, tolerance: float = 0.004) -> Floats:
        """Weights whose polynomial bounds the indicator from above (or below) everywhere."""
        sign, z = (1.0 if upper else -1.0), float(ndtri(0.5 + level / 2))
        at, over, under = self.coarse
        fine_at, fine_over, fine_under = self.fine
        target, fine_target = (over, fine_over) if upper else (under, fine_under)
        k = at.shape[1]

        # sign (at.c) >= sign target;  least sign (centre.c) + z s,  s >= every tangent of the standard error
        rows = [np.c_[-sign * at, np.zeros(len(at))]]
        limit = [-sign * target]
        cost = np.r_[sign * self.centre, z]
        bounds = [(-50, 50)] * k + [(0, None)]
        best, found = math.inf, None
        for _ in range(rounds):
            r = linprog(cost, A_ub=np.vstack(rows), b_ub=np.concatenate(limit), bounds=bounds, method="highs-ds")
            if r.status:
                break
            c = r.x[:k]
            miss = sign * fine_target - sign * (fine_at @ c)
            short = max(float(miss.max()), 0.0)
            se = math.sqrt(max(float(c @ self.spread @ c), 1e-30))
            value = sign * float(self.centre @ c) + z * se + short
            if value < best:
                best, found = value, self.basis @ c + sign * short
            if value - r.fun < tolerance:
                break
            rows.append(np.r_[self.spread @ c / se, -1.0][None])
            limit.append(np.zeros(1))
            worst = np.argsort(-miss)[:40]
            worst = worst[miss[worst] > tolerance / 3]
            rows.append(np.c_[-sign * fine_at[worst], np.zeros(len(worst))])
            limit.append(-sign * fine_target[worst])
        trivial = np.full(len(self.basis), 1.0 if upper else 0.0)
        return trivial if found is None or best >= (1.0 if upper else 0.0) else found


def _positive(matrix: Floats) -> Floats:
    """Nearest positive semi-definite matrix."""
    value, vector = np.linalg.eigh(matrix)
    return (vector * np.clip(value, 0, None)) @ vector.T


def band_nodes(margin: float, parts: int) -> tuple[Floats, Floats]:
    """Gains at which a bound over all laws is checked.

    Returns
    -------
    gain : shape (nodes,)
    inside : shape (nodes, 2)
        Indicator of the band at a node, without and with its two edges.
    """
    step, bands = margin / 2, 4
    near = np.concatenate([step * (j + np.linspace(0, 1, 2 * parts + 1)) for j in range(bands)])
    far = bands * step + (1 - bands * step) * (1 - np.cos(np.pi / 2 * np.linspace(0, 1, 8 * parts + 1)))
    side = np.unique(np.round(np.r_[near, far], 12))
    gain = np.r_[side, -side]
    return gain, np.column_stack([np.abs(gain) < margin - 1e-9, np.abs(gain) <= margin + 1e-9]).astype(float)


def smooth_table(mean: ArrayLike, size: int, rounds: int = 60) -> tuple[Floats, Floats, Floats]:
    """A smooth law of the table: few steps of EM over a coarse grid of (gain, loss), from the uniform law.

    Returns
    -------
    table, law : shapes (cells,), (nodes,)
    kernel : shape (nodes, cells)
    """
    t = np.asarray(mean, float)
    u = (1 - np.cos(np.pi * np.linspace(0, 1, 15))) / 2
    total, part = (v.ravel() for v in np.meshgrid(u[1:], u, indexing="ij"))
    kernel = trinomial(size, np.r_[0.0, total * part], np.r_[0.0, total * (1 - part)])
    law = np.full(len(kernel), 1 / len(kernel))
    for _ in range(rounds):
        law = law * (kernel @ (t / np.maximum(law @ kernel, 1e-300)))
    return law @ kernel, law, kernel
