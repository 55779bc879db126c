"""How curation moves ranks and spread: rank correlations, shifts, the coefficient of variation taken apart, the gap."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.errors import AuditError

NAN = float("nan")
#: scores that agree to so many decimals are tied: sums of the same draws in another order differ by rounding only
TIE_DECIMALS = 12


@dataclass(frozen=True)
class RankComparison:
    """Ranks before and after.

    Attributes
    ----------
    spearman, kendall, pearson : correlations over models (Kendall's tau-b); NaN where one side has no spread.
    within_one, within_two : models whose rank moved by at most 1 and 2 places. models : models compared.
    top_unchanged : leading places, from the first, held by the same model before and after without a tie.
    table : one row per model: model, raw, curated, change, rank_raw, rank_curated, shift (``rank_curated -
        rank_raw``, negative = moved up).
    left_out : models without a score on one side.
    """

    spearman: float
    kendall: float
    pearson: float
    within_one: int
    within_two: int
    models: int
    top_unchanged: int
    left_out: tuple[str, ...]
    table: pd.DataFrame = field(repr=False, compare=False)

    def as_row(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in
                ("models", "spearman", "kendall", "pearson", "within_one", "within_two", "top_unchanged")}  # fmt: skip


@dataclass(frozen=True)
class Spread:
    """Spread of models' scores.

    ``mean``, ``sd`` (sample SD), ``cv`` = sd / mean, ``top`` and ``bottom`` the means of the ``ends`` best and worst
    models, ``gap`` their difference.
    """

    models: int
    mean: float
    sd: float
    cv: float
    top: float
    bottom: float
    gap: float
    ends: int

    def as_row(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class SpreadChange:
    """The change of the coefficient of variation, taken apart: ``cv_ratio = sd_ratio / mean_ratio``.

    ``from_sd`` and ``from_mean`` are the shares of ``log(cv_ratio)`` that the wider spread and the lower mean make;
    they sum to 1. ``drop`` is the fall of the mean score.
    """

    raw: Spread
    curated: Spread
    cv_ratio: float
    sd_ratio: float
    mean_ratio: float
    gap_ratio: float
    drop: float
    from_sd: float
    from_mean: float

    def as_row(self) -> dict[str, Any]:
        sides = {f"{k}_{side}": v for side in ("raw", "curated") for k, v in getattr(self, side).as_row().items()
                 if k not in ("models", "ends")}  # fmt: skip
        own = {k: v for k, v in asdict(self).items() if k not in ("raw", "curated")}
        return {"models": self.raw.models, **sides, **own}


def ranks(scores: ArrayLike) -> NDArray[np.float64]:
    """Ranks along the last axis, 1 = the highest score, average ranks for ties; NaN where there is no score.

    Examples
    --------
    >>> ranks([0.5, 0.9, 0.5]).tolist()
    [2.5, 1.0, 2.5]
    """
    x = np.round(np.asarray(scores, float), TIE_DECIMALS)
    # models are few: counting the better and the equal ones takes no sorting and no import of scipy.stats
    better = (x[..., None, :] > x[..., :, None]).sum(axis=-1)
    equal = (x[..., None, :] == x[..., :, None]).sum(axis=-1)
    return np.where(np.isnan(x), NAN, better + (equal + 1) / 2)


def compare_ranks(raw: ArrayLike, curated: ArrayLike, models: ArrayLike) -> RankComparison:
    """Compare the scores of the same models before and after curation.

    Parameters
    ----------
    raw, curated : float arrays, shape (models,)
        Scores under one average; NaN where a model has none: it is left out on both sides, and named.
    models : array of names, shape (models,)

    Raises
    ------
    AuditError
        Fewer than two models have both scores.
    """
    a, b = np.asarray(raw, float), np.asarray(curated, float)
    names = np.asarray(models, object)
    both = ~(np.isnan(a) | np.isnan(b))
    if both.sum() < 2:
        raise AuditError("fewer than two models have a score before and after curation",
                         mend="evaluate more models, or give them all sources")  # fmt: skip
    a, b, lost = a[both], b[both], tuple(str(m) for m in names[~both])
    before, after = ranks(a), ranks(b)
    shift = after - before
    order = np.lexsort((names[both].astype(str), before))
    table = pd.DataFrame({"model": names[both], "raw": a, "curated": b, "change": b - a, "rank_raw": before,
                          "rank_curated": after, "shift": shift})  # fmt: skip
    place = np.arange(1, len(a) + 1)
    held = np.array([((before == r) & (after == r)).sum() == 1 for r in place])
    return RankComparison(
        spearman=float(correlation(before, after)),
        kendall=float(kendall(a, b)),
        pearson=float(correlation(a, b)),
        within_one=int((np.abs(shift) <= 1).sum()),
        within_two=int((np.abs(shift) <= 2).sum()),
        models=len(a),
        top_unchanged=int(np.argmin(held)) if not held.all() else len(a),
        left_out=lost,
        table=table.iloc[order].reset_index(drop=True),
    )


def spread(scores: ArrayLike, *, ends: int = 5) -> Spread:
    """Mean, sample SD, coefficient of variation and top-to-bottom gap of scores; missing ones are left out.

    Fewer than ``2 * ends`` models: the ends are half of the models, so that they share none.
    """
    x = np.asarray(scores, float)
    x = np.sort(x[~np.isnan(x)])
    n = len(x)
    few = min(ends, n // 2)
    mean = float(x.mean()) if n else NAN
    sd = float(x.std(ddof=1)) if n > 1 else NAN
    bottom, top = (float(x[:few].mean()), float(x[-few:].mean())) if few else (NAN, NAN)
    return Spread(n, mean, sd, _ratio(sd, mean), top, bottom, top - bottom, few)


def spread_change(raw: ArrayLike, curated: ArrayLike, *, ends: int = 5) -> SpreadChange:
    """Coefficient of variation before and after, split into the change of the SD and that of the mean.

    Notes
    -----
    ``CV' / CV = (SD' / SD) / (mean' / mean)``. Only models with both scores count.

    Examples
    --------
    >>> c = spread_change([0.5, 0.7], [0.2, 0.4])
    >>> round(c.cv_ratio, 6), round(c.sd_ratio, 6), round(c.mean_ratio, 6)
    (2.0, 1.0, 0.5)
    """
    a, b = np.asarray(raw, float), np.asarray(curated, float)
    both = ~(np.isnan(a) | np.isnan(b))
    before, after = spread(a[both], ends=ends), spread(b[both], ends=ends)
    sd, mean, cv = (_ratio(getattr(after, k), getattr(before, k)) for k in ("sd", "mean", "cv"))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log([sd, mean, cv])
    moved = bool(np.isfinite(logs).all() and abs(logs[2]) > 1e-12)
    return SpreadChange(
        raw=before,
        curated=after,
        cv_ratio=cv,
        sd_ratio=sd,
        mean_ratio=mean,
        gap_ratio=_ratio(after.gap, before.gap),
        drop=before.mean - after.mean,
        from_sd=float(logs[0] / logs[2]) if moved else NAN,
        from_mean=float(-logs[1] / logs[2]) if moved else NAN,
    )


def correlation(x: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
    """Pearson correlation along the last axis; NaN where one side is constant."""
    a, b = (np.asarray(v, float) for v in (x, y))
    a, b = a - a.mean(axis=-1, keepdims=True), b - b.mean(axis=-1, keepdims=True)
    size = np.sqrt((a * a).sum(axis=-1) * (b * b).sum(axis=-1))
    flat = (np.abs(a).max(axis=-1) <= 1e-12) | (np.abs(b).max(axis=-1) <= 1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        r = np.where(flat, NAN, (a * b).sum(axis=-1) / size)
    return np.clip(r, -1.0, 1.0)


def spearman(x: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
    """Spearman's rho along the last axis, average ranks for ties; NaN where one side is constant."""
    return correlation(ranks(x), ranks(y))


def kendall(x: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
    """Kendall's tau-b along the last axis; NaN where one side is constant."""
    signs = []
    for v in (x, y):
        r = ranks(v)
        signs.append(np.sign(r[..., :, None] - r[..., None, :]))
    a, b = signs
    size = np.sqrt((a * a).sum(axis=(-2, -1)) * (b * b).sum(axis=(-2, -1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(size > 0, (a * b).sum(axis=(-2, -1)) / size, NAN)


def _ratio(a: float, b: float) -> float:
    return a / b if b and not np.isnan(b) else NAN
