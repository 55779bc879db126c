"""How the curated set and its ranking depend on the three thresholds: a grid over all their combinations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.curation.clustered import codes, mean_covariance
from auditlib.curation.ranking import kendall, spearman, spread
from auditlib.curation.resolvable import count_resolvable
from auditlib.curation.subsets import subset_averages
from auditlib.errors import AuditError
from auditlib.threads import single_threaded

NAN = float("nan")
BINARY = ("0.70", "0.75", "0.80", "0.85", "0.90")
OTHER = ("0.40", "0.45", "0.50", "0.55", "0.60")
SATURATION = ("0.85", "0.875", "0.90", "0.925", "0.95")
COLUMNS = ("binary", "other", "saturation", "base", "items", "share", "spearman", "kendall", "spearman_base", "mean",
           "cv", "resolvable", "per_1000_calls", "wrong_removals")  # fmt: skip


@dataclass(frozen=True)
class Thresholds:
    """Thresholds as text, so that 0.80 stays four fifths: text ablation of binary and other items, saturation."""

    binary: str = "0.80"
    other: str = "0.50"
    saturation: str = "0.90"


def threshold_grid(
    decide: Callable[[Thresholds], ArrayLike],
    rate: ArrayLike,
    source: ArrayLike,
    *,
    binary: Sequence[str] = BINARY,
    other: Sequence[str] = OTHER,
    saturation: Sequence[str] = SATURATION,
    base: Thresholds | None = None,
    wrong_removals: Callable[[Thresholds], float] | None = None,
    cluster: ArrayLike | None = None,
    calls: ArrayLike | None = None,
    alpha: float = 0.05,
) -> pd.DataFrame:
    """Curate at every combination of thresholds and score the result.

    Parameters
    ----------
    decide : function
        Takes :class:`Thresholds` and returns the kept items, bool (items,).
    rate : float array, shape (items, evaluated models)
    source : array, shape (items,)
    binary, other, saturation : values of the grid, as text.
    base : the thresholds in use, the default ones unless given; their row is marked and the others compared with it.
    wrong_removals : function, optional
        Takes :class:`Thresholds` and returns the expected number of items removed that need the image.
    cluster : array, shape (items,), optional
    calls : float array, shape (items,), optional
        Draws of an item over all evaluated models, for pairs per 1,000 calls.
    alpha : false discovery rate of the resolvable pairs.

    Returns
    -------
    DataFrame
        binary, other, saturation (text), base (bool), items, share, spearman, kendall (with the raw benchmark
        average), spearman_base (with the average at the base thresholds), mean, cv, resolvable, per_1000_calls,
        wrong_removals. A combination that keeps nothing has 0 items and no other number.

    Raises
    ------
    AuditError
        A threshold that is no number in [0, 1], or a decision of another shape.
    """
    base = base or Thresholds()
    points = [Thresholds(*p) for p in product(binary, other, saturation)]
    same = {_key(p) for p in points}
    if _key(base) not in same:
        points.append(base)
    x, n = np.asarray(rate, float), len(np.asarray(rate))
    s = codes(source, n)[0]
    c = None if cluster is None else codes(cluster, n)[0]
    sets = [_decision(decide(p), n, p) for p in points]
    scores = subset_averages(x, s, np.vstack([np.ones((1, n), bool), *[k[None] for k in sets]]))
    raw, usual = scores[0], scores[1 + [_key(p) for p in points].index(_key(base))]
    rows = []
    with single_threaded():
        for point, kept, score in zip(points, sets, scores[1:], strict=True):
            at = np.flatnonzero(kept)
            wrong = NAN if wrong_removals is None else float(wrong_removals(point))
            row = {"binary": point.binary, "other": point.other, "saturation": point.saturation,
                   "base": _key(point) == _key(base), "items": len(at), "share": len(at) / n,
                   "wrong_removals": wrong}  # fmt: skip
            if len(at):
                found = count_resolvable(mean_covariance(x[at], s[at], None if c is None else c[at]), alpha)
                made = NAN if calls is None else float(np.asarray(calls, float)[at].sum())
                size = spread(score)
                row |= {"spearman": _both(spearman, score, raw), "kendall": _both(kendall, score, raw),
                        "spearman_base": _both(spearman, score, usual), "mean": size.mean, "cv": size.cv,
                        "resolvable": found, "per_1000_calls": 1000 * found / made if made > 0 else NAN}  # fmt: skip
            rows.append(row)
    return pd.DataFrame(rows).reindex(columns=list(COLUMNS))


def one_at_a_time(grid: pd.DataFrame) -> pd.DataFrame:
    """Rows of a grid that differ from the base thresholds in one threshold at most; ``moved`` names it."""
    base = grid[grid["base"]].iloc[0]
    differs = {name: grid[name].map(Fraction) != Fraction(base[name]) for name in ("binary", "other", "saturation")}
    table = pd.DataFrame(differs)
    few = table.sum(axis=1) <= 1
    moved = table.idxmax(axis=1).where(table.any(axis=1), "")
    return grid.assign(moved=moved)[few].reset_index(drop=True)


def _key(point: Thresholds) -> tuple[Fraction, ...]:
    out = []
    for name, text in vars(point).items():
        try:
            value = Fraction(text)
        except (ValueError, TypeError, ZeroDivisionError):
            value = Fraction(-1)
        if not 0 <= value <= 1:
            raise AuditError(f"the {name} threshold {text!r} is no number between 0 and 1", mend="write it like '0.80'")
        out.append(value)
    return tuple(out)


def _decision(kept: ArrayLike, n: int, point: Thresholds) -> NDArray[np.bool_]:
    mask = np.asarray(kept)
    if mask.dtype != bool or mask.shape != (n,):
        raise AuditError(f"the decision at {tuple(vars(point).values())} is {mask.dtype} of shape {mask.shape}",
                         mend=f"return a boolean for each of {n} items")  # fmt: skip
    return mask


def _both(measure: Callable, a: NDArray, b: NDArray) -> float:
    known = ~(np.isnan(a) | np.isnan(b))
    return float(measure(a[known], b[known])) if known.sum() > 1 else NAN
