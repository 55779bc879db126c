"""What a rank correlation between a curated set and its pool is worth: random subsets, and the removed items.

A subset correlates with the whole that contains it, whatever it holds. Beside the curated set therefore stand random
subsets of the same size and source mix, the part-whole correction, and the items that it left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.curation.clustered import codes, group_sums, mean_covariance
from auditlib.curation.ranking import correlation, kendall, spearman
from auditlib.curation.resolvable import count_resolvable
from auditlib.curation.scores import kept_mask
from auditlib.threads import single_threaded

NAN = float("nan")
#: statistics of the band, in the order of its table
STATISTICS = ("spearman", "kendall", "pearson", "spearman_rest", "pearson_rest", "mean", "sd", "cv", "gap",
              "resolvable")  # fmt: skip


@dataclass(frozen=True)
class SubsetBand:
    """The curated set among random subsets of the same size and source mix.

    ``table`` has one row per statistic: statistic, observed, low, median, high (the central ``level`` of the random
    subsets), below and above (shares of random subsets with a smaller and a larger value), draws. ``values`` holds the
    statistics of each subset, shape (draws,).
    """

    draws: int
    items: int
    table: pd.DataFrame
    values: dict[str, NDArray[np.float64]] = field(repr=False, compare=False)


@dataclass(frozen=True)
class PartWhole:
    """Correlation of the curated scores with the raw ones, and what is left of it without the shared items.

    Attributes
    ----------
    pearson, spearman : kept items against all items. corrected, spearman_corrected : kept items against all items
        less their own part in the average. removed, spearman_removed : kept against removed items, each set averaged
        by itself; NaN where nothing was removed.
    by_chance : Pearson correlation that containment alone gives when all models are equally good.
    """

    pearson: float
    spearman: float
    corrected: float
    spearman_corrected: float
    removed: float
    spearman_removed: float
    by_chance: float

    def as_row(self) -> dict[str, Any]:
        return dict(vars(self))


def random_subset_band(
    rate: ArrayLike,
    source: ArrayLike,
    kept: ArrayLike,
    *,
    rng: np.random.Generator,
    cluster: ArrayLike | None = None,
    draws: int = 200,
    ends: int = 5,
    alpha: float = 0.05,
    level: float = 0.95,
) -> SubsetBand:
    """Compare a curated set with random subsets of the same number of items from each source.

    Parameters
    ----------
    rate : float array, shape (items, models)
        Share of correct draws of the evaluated models.
    source, kept : arrays, shape (items,)
    rng : numpy Generator
    cluster : array, shape (items,), optional
        For the resolvable pairs.
    draws : random subsets.
    ends : models at each end of the gap. alpha : false discovery rate of the resolvable pairs.

    Returns
    -------
    SubsetBand
        Scores are benchmark averages. ``spearman``, ``kendall`` and ``pearson`` compare the subset with the whole pool,
        ``spearman_rest`` and ``pearson_rest`` with the items it leaves out.
    """
    x = np.asarray(rate, float)
    mask = kept_mask(kept, len(x))
    source = codes(source, len(x))[0]
    cluster = None if cluster is None else codes(cluster, len(x))[0]
    chosen = np.vstack([mask, same_mix(source, mask, draws, rng)])
    whole = subset_averages(x, source, np.ones((1, len(x)), bool))[0]
    part, rest = subset_averages(x, source, chosen), subset_averages(x, source, ~chosen)
    some = ~(np.isnan(whole) | np.isnan(part).any(axis=0))
    part, rest, whole = part[:, some], rest[:, some], np.broadcast_to(whole[some], part[:, some].shape)
    ordered = np.sort(part, axis=1)
    few = min(ends, part.shape[1] // 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = part.mean(axis=1)
        sd = part.std(axis=1, ddof=1) if part.shape[1] > 1 else np.full(len(part), NAN)
        gap = ordered[:, -few:].mean(axis=1) - ordered[:, :few].mean(axis=1) if few else np.full(len(part), NAN)
        values = {
            "spearman": spearman(part, whole),
            "kendall": kendall(part, whole),
            "pearson": correlation(part, whole),
            "spearman_rest": spearman(part, rest),
            "pearson_rest": correlation(part, rest),
            "mean": mean,
            "sd": sd,
            "cv": np.where(mean > 0, sd / mean, NAN),
            "gap": gap,
            "resolvable": _pairs(x, source, cluster, chosen, alpha),
        }
    rows = [_band_row(name, values[name][0], values[name][1:], level) for name in STATISTICS]
    return SubsetBand(draws, int(mask.sum()), pd.DataFrame(rows), {name: v[1:] for name, v in values.items()})


def part_whole(rate: ArrayLike, source: ArrayLike, kept: ArrayLike) -> PartWhole:
    """Correlate the curated benchmark average with the raw one, corrected for the items they share.

    Notes
    -----
    The raw average is the kept items' part plus the rest, ``W = P + R``, where source s gives ``f_s kept_s / S`` to P
    and f_s is the share of it that was kept. ``corrected`` correlates the curated average with R, as an item-rest
    correlation does; for one source R is the removed items' mean but for its scale. By chance alone, with equally good
    models and equal variances in all sources, the correlation is ``sqrt(sum 1 / n_s / sum 1 / k_s)`` where all sources
    keep an item (less where some keep none).
    """
    x = np.asarray(rate, float)
    mask = kept_mask(kept, len(x))
    s, names = codes(source, len(x))
    groups = len(names)
    whole, part = (subset_averages(x, source, m[None])[0] for m in (np.ones(len(x), bool), mask))
    removed = subset_averages(x, source, ~mask[None])[0]
    seen = (~np.isnan(x)).astype(float)
    count = group_sums(seen, s, groups)
    own = group_sums(np.where(mask[:, None], x, NAN), s, groups)
    share = np.divide(own, count, out=np.full(count.shape, NAN), where=count > 0).mean(axis=0)
    rest = whole - share
    some = ~(np.isnan(whole) | np.isnan(part))
    n, k = np.bincount(s, minlength=groups), np.bincount(s[mask], minlength=groups)
    here = k > 0
    inverse = (1 / k[here]).sum() / here.sum() ** 2
    shared = (1 / n[here]).sum() / here.sum() / groups
    total = (1 / n).sum() / groups**2
    nothing_left = bool(mask.all())
    return PartWhole(
        pearson=float(correlation(part[some], whole[some])),
        spearman=float(spearman(part[some], whole[some])),
        corrected=NAN if nothing_left else float(correlation(part[some], rest[some])),
        spearman_corrected=NAN if nothing_left else float(spearman(part[some], rest[some])),
        removed=_where_both(correlation, part, removed),
        spearman_removed=_where_both(spearman, part, removed),
        by_chance=float(shared / np.sqrt(inverse * total)),
    )


def subset_averages(rate: ArrayLike, source: ArrayLike, chosen: ArrayLike) -> NDArray[np.float64]:
    """Benchmark average of each model on many subsets at once, shape (subsets, models).

    ``chosen`` is boolean, shape (subsets, items). A source without a chosen item counts for nobody; a model that
    lacks all draws of a chosen source has no average (NaN).
    """
    x = np.asarray(rate, float)
    pick = np.asarray(chosen, bool)
    s, names = codes(source, len(x))
    seen = ~np.isnan(x)
    filled = np.where(seen, x, 0.0)
    complete = bool(seen.all())
    total, sources = np.zeros((len(pick), x.shape[1])), np.zeros(len(pick))
    for g in range(len(names)):
        here = np.flatnonzero(s == g)
        w = pick[:, here].astype(float)
        size = w.sum(axis=1)
        there = size > 0
        count = size[:, None] if complete else w @ seen[here].astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = (w @ filled[here]) / count
        total += np.where(there[:, None], mean, 0.0)
        sources += there
    with np.errstate(divide="ignore", invalid="ignore"):
        return total / sources[:, None]


def same_mix(source: ArrayLike, kept: ArrayLike, draws: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Random subsets with the kept number of items of each source, without replacement, shape (draws, items)."""
    mask = np.asarray(kept, bool)
    s, names = codes(source, len(mask))
    out = np.zeros((draws, len(mask)), bool)
    for g in range(len(names)):
        here = np.flatnonzero(s == g)
        few = int(mask[here].sum())
        if few == len(here):
            out[:, here] = True
        elif few:
            first = np.argpartition(rng.random((draws, len(here))), few - 1, axis=1)[:, :few]
            out[np.arange(draws)[:, None], here[first]] = True
    return out


def _pairs(x: NDArray, source: NDArray, cluster: NDArray | None, chosen: NDArray, alpha: float) -> NDArray:
    """Resolvable pairs of each subset; small products, so threads would only wait for one another."""
    out = np.empty(len(chosen))
    with single_threaded():
        for i, rows in enumerate(chosen):
            at = np.flatnonzero(rows)
            fit = mean_covariance(x[at], source[at], None if cluster is None else cluster[at])
            out[i] = count_resolvable(fit, alpha)
    return out


def _band_row(name: str, observed: float, values: NDArray, level: float) -> dict[str, Any]:
    known = values[~np.isnan(values)]
    if not len(known):
        return {"statistic": name, "observed": observed, "low": NAN, "median": NAN, "high": NAN, "below": NAN,
                "above": NAN, "draws": 0}  # fmt: skip
    low, median, high = np.quantile(known, [0.5 - level / 2, 0.5, 0.5 + level / 2])
    below = NAN if np.isnan(observed) else float((known < observed - 1e-12).mean())
    over = NAN if np.isnan(observed) else float((known > observed + 1e-12).mean())
    return {"statistic": name, "observed": float(observed), "low": low, "median": median, "high": high,
            "below": below, "above": over, "draws": len(known)}  # fmt: skip


def _where_both(measure: Any, a: NDArray, b: NDArray) -> float:
    both = ~(np.isnan(a) | np.isnan(b))
    return float(measure(a[both], b[both])) if both.sum() > 1 else NAN
