"""Degradation curves: drop, share of the visual gain lost, area under the curve, first level that costs half.

With mean correctness A under a condition, A0 on the items as they are and Ab without the image, the drop is
``D = A0 - A`` and the share lost ``L = (A0 - A) / (A0 - Ab)``. L has no meaning where the image does not help: it is
undefined unless the interval of ``A0 - Ab`` lies above 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression

from auditlib.sensitivity.conditions import CURVES
from auditlib.sensitivity.contrasts import equal, mcnemar_or_flips
from auditlib.sensitivity.pairing import item_means
from auditlib.stats.paired import Estimate, bootstrap, cluster_totals, equivalence, mean_interval

NAN = float("nan")
#: largest change that counts as none: of accuracy, and of the share of the gain
MARGIN_DROP, MARGIN_LOST = 0.02, 0.2
#: why a share of the gain is not given
NO_BLIND, ZERO, NEGATIVE = "no blind run", "interval of the gain holds 0", "the image lowers accuracy"


@dataclass(frozen=True)
class Gain:
    """The visual gain ``A0 - Ab`` and whether a share of it has a meaning (``state`` is ``""``)."""

    estimate: Estimate
    state: str


def share_lost(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """``(full - changed) / (full - blind)`` of totals with the columns full, changed, blind."""
    gain = totals[:, 0] - totals[:, 2]
    return np.divide(totals[:, 0] - totals[:, 1], gain, out=np.full(len(totals), NAN), where=np.abs(gain) > 1e-12)


def visual_gain(
    full: ArrayLike, blind: ArrayLike, image: ArrayLike, *, rng: np.random.Generator, draws: int = 2_000
) -> Gain:
    """Gain with intervals over images; undefined unless the percentile interval lies above 0."""
    seen = mean_interval(np.asarray(full, float) - np.asarray(blind, float), image, rng=rng, draws=draws)
    low, high = seen.interval.low, seen.interval.high
    if not len(np.asarray(full)):
        return Gain(seen, NO_BLIND)
    if np.isnan(low):
        return Gain(seen, "too few images")
    return Gain(seen, "" if low > 0 else (NEGATIVE if high < 0 else ZERO))


def curve_area(levels: ArrayLike, lost: ArrayLike) -> NDArray[np.float64]:
    """Integral of the share lost over the level axis scaled to [0, 1], by trapezoids from 0 lost at level 0.

    Parameters
    ----------
    levels : shape (levels,), rising, above 0. lost : shape (..., levels).

    Examples
    --------
    >>> round(float(curve_area([1, 2, 4], [0.25, 0.5, 1.0])), 3)
    0.5
    """
    x = np.concatenate([[0.0], np.asarray(levels, float)])
    y = np.asarray(lost, float)
    y = np.concatenate([np.zeros((*y.shape[:-1], 1)), y], axis=-1)
    return np.trapezoid(y, x / x[-1], axis=-1)


def half_level(levels: ArrayLike, lost: ArrayLike) -> float:
    """First level whose share lost, made non-decreasing by isotonic regression, is at least one half; NaN if none is.

    Examples
    --------
    >>> half_level([1, 2, 4, 8], [0.1, 0.6, 0.4, 0.9])
    2.0
    """
    y = np.asarray(lost, float)
    if np.isnan(y).any():
        return NAN
    fit = isotonic_regression(y).x
    reached = np.flatnonzero(fit >= 0.5 - 1e-12)
    return float(np.asarray(levels, float)[reached[0]]) if len(reached) else NAN


def condition_table(
    calls: pd.DataFrame, *, rng: np.random.Generator, draws: int = 2_000, margin_drop: float = MARGIN_DROP,
    margin_lost: float = MARGIN_LOST,
) -> pd.DataFrame:  # fmt: skip
    """Accuracy, drop and share of the gain lost by model and condition of the image.

    Parameters
    ----------
    calls : see :mod:`auditlib.sensitivity.records`; several seeds and samples of an item are averaged.

    Returns
    -------
    DataFrame
        ``n`` items and ``images`` that were asked as they are and changed; ``full``, ``accuracy``, ``drop`` with
        intervals (percentile and BCa) over images and ``p``; ``gain``, ``lost`` on the items that were also asked blind
        (``n_blind``), with ``undefined`` saying why there is none; ``p_same_drop`` and ``p_same_lost`` of the
        equivalence tests at margins of ``margin_drop`` and ``margin_lost``.
    """
    rows: list[dict[str, Any]] = []
    means = item_means(calls)
    for model, own in means.groupby("model", sort=False):
        wide = {key: part.set_index("item") for key, part in own.groupby(["family", "variant", "level"], sort=False)}
        full, blind = wide.get(("full", "", 0.0)), wide.get(("blind", "", 0.0))
        if full is None:
            continue
        gains: dict[Any, Gain] = {}
        for (family, variant, level), part in wide.items():
            if family in ("full", "occlude_grid"):
                continue
            both = full.index.intersection(part.index, sort=False)
            if not len(both):
                continue
            image, f, c = full.loc[both, "image"].to_numpy(), full.loc[both, "hit"], part.loc[both, "hit"]
            drop = mean_interval(f - c, image, rng=rng, draws=draws)
            test = mcnemar_or_flips(f, c, image, rng=rng, draws=5 * draws)
            row = {"model": model, "family": family, "variant": variant, "level": level, "n": len(both),
                   "images": drop.clusters, "full": float(f.mean()), "accuracy": float(c.mean()), "drop": drop.value,
                   "low": drop.interval.low, "high": drop.interval.high, "bca_low": drop.bca.low,
                   "bca_high": drop.bca.high, **test,
                   "p_same_drop": equal(f - c, margin_drop, image)}  # fmt: skip
            rows.append(row | _lost(full, part, blind, both, gains, margin_lost, rng, draws))
    return pd.DataFrame(rows)


def _lost(full: pd.DataFrame, part: pd.DataFrame, blind: pd.DataFrame | None, both: pd.Index, gains: dict[Any, Gain],
          margin: float, rng: np.random.Generator, draws: int) -> dict[str, Any]:  # fmt: skip
    items = both[:0] if blind is None else both.intersection(blind.index, sort=False)
    known = hash(tuple(items))
    f = full.loc[items, "hit"].to_numpy(float)
    b = blind.loc[items, "hit"].to_numpy(float) if blind is not None else f
    image = full.loc[items, "image"].to_numpy()
    if known not in gains:
        gains[known] = visual_gain(f, b, image, rng=rng, draws=draws)
    gain = gains[known]
    g = gain.estimate
    out = {"n_blind": len(items), "gain": g.value, "gain_low": g.interval.low, "gain_high": g.interval.high,
           "undefined": gain.state, "lost": NAN, "lost_low": NAN, "lost_high": NAN, "p_same_lost": NAN}  # fmt: skip
    if gain.state:
        return out
    c = part.loc[items, "hit"].to_numpy(float)
    seen = bootstrap(cluster_totals(np.column_stack([f, c, b]), image), share_lost, rng=rng, draws=draws)
    return out | {"lost": seen.value, "lost_low": seen.interval.low, "lost_high": seen.interval.high,
                  "p_same_lost": equivalence(seen.draws, margin)}  # fmt: skip


def curve_table(calls: pd.DataFrame, *, rng: np.random.Generator, draws: int = 2_000) -> pd.DataFrame:
    """Area under the curve of the share lost and half-level, by model and family, on items asked at every level.

    Returns
    -------
    DataFrame
        ``levels``, ``n``, ``undefined``, ``area`` with interval over images, ``half`` and ``half_low``, ``half_high``
        (central 95% of the draws that reach one half), ``reached``: share of the draws that do.
    """
    rows = []
    means = item_means(calls)
    for (model, family, variant), part in means[means["family"].isin(CURVES)].groupby(
        ["model", "family", "variant"], sort=False
    ):
        own = means[means["model"].eq(model)]
        wide = part.pivot(index="item", columns="level", values="hit").dropna()
        levels = [float(v) for v in wide.columns if v > 0]
        if len(levels) < 2:
            continue
        ends = {w: own[own["family"].eq(w)].set_index("item") for w in ("full", "blind")}
        items = wide.index.intersection(ends["full"].index).intersection(ends["blind"].index)
        f, b = (ends[w]["hit"].reindex(items).to_numpy(float) for w in ("full", "blind"))
        image = ends["full"]["image"].reindex(items).to_numpy()
        gain = visual_gain(f, b, image, rng=rng, draws=draws)
        row = {"model": model, "family": family, "variant": variant, "levels": len(levels), "least": levels[0],
               "most": levels[-1], "n": len(items), "gain": gain.estimate.value, "undefined": gain.state,
               "area": NAN, "low": NAN, "high": NAN, "half": NAN, "half_low": NAN, "half_high": NAN,
               "reached": NAN}  # fmt: skip
        if not gain.state:
            row |= _curve(levels, f, wide.loc[items, levels].to_numpy(float), b, image, rng, draws)
        rows.append(row)
    return pd.DataFrame(rows)


def _curve(levels: list[float], f: NDArray, c: NDArray, b: NDArray, image: NDArray, rng: np.random.Generator,
           draws: int) -> dict[str, float]:  # fmt: skip
    totals = cluster_totals(np.column_stack([f, b, c]), image)
    kept: list[NDArray] = []

    def area(t: NDArray) -> NDArray:
        gain = t[:, 0] - t[:, 1]
        lost = (t[:, :1] - t[:, 2:]) / np.where(np.abs(gain) > 1e-12, gain, NAN)[:, None]
        kept.append(lost)
        return curve_area(levels, lost)

    seen = bootstrap(totals, area, rng=rng, draws=draws)
    half = half_level(levels, kept[0][0])
    drawn = kept[1:-1] if len(kept) > 2 else []  # the first call is the estimate, the last one the jackknife
    halves = np.array([half_level(levels, r) for lost in drawn for r in lost])
    got = halves[~np.isnan(halves)]
    low, high = np.quantile(got, (0.025, 0.975), method="inverted_cdf") if len(got) else (NAN, NAN)
    return {"area": seen.value, "low": seen.interval.low, "high": seen.interval.high, "half": half,
            "half_low": float(low), "half_high": float(high),
            "reached": len(got) / len(halves) if len(halves) else NAN}  # fmt: skip
