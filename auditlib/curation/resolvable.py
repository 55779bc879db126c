"""How many pairs of models a set of items can tell apart: paired, clustered tests with the false discovery rate held.

Fewer items mean wider errors, so a curated set may separate fewer models than the raw one, however far the scores
spread; beside the number of pairs stands what it cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.curation.clustered import MeanCovariance, mean_covariance, t_interval, t_test
from auditlib.errors import AuditError
from auditlib.stats.multiplicity import bh

NAN = float("nan")


@dataclass(frozen=True)
class ResolvablePairs:
    """Pairs of models whose difference is significant.

    Attributes
    ----------
    pairs : pairs tested. resolvable : those with an adjusted p of at most ``alpha``. share : their share.
    items, units : items, and independent units (clusters) among them. calls : draws of all models on these items.
    per_1000_calls : resolvable pairs per 1,000 calls; NaN where the draws are not known.
    table : one row per pair: a (the better), b, difference, se, low, high (without adjustment), p, q, resolvable.
    """

    pairs: int
    resolvable: int
    share: float
    items: int
    units: int
    calls: float
    per_1000_calls: float
    alpha: float
    note: str
    table: pd.DataFrame = field(repr=False, compare=False)

    def as_row(self) -> dict[str, Any]:
        names = ("pairs", "resolvable", "share", "items", "units", "calls", "per_1000_calls", "alpha", "note")
        return {name: getattr(self, name) for name in names}


def resolvable_pairs(
    rate: ArrayLike,
    models: ArrayLike,
    *,
    stratum: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    calls: float = NAN,
    alpha: float = 0.05,
    level: float = 0.95,
) -> ResolvablePairs:
    """Test every pair of models on the same items.

    Parameters
    ----------
    rate : float array, shape (items, models)
        Share of correct draws, NaN without a draw.
    models : names, shape (models,)
    stratum : array, shape (items,), optional
        Sources: the difference of benchmark averages is tested; capabilities: that of macro averages; none: that of
        item means.
    cluster : array, shape (items,), optional
        Items that share an image.
    calls : draws made for these scores, all models together.
    alpha : false discovery rate.

    Returns
    -------
    ResolvablePairs

    Raises
    ------
    AuditError
        Fewer than two models.

    Notes
    -----
    The difference tested is the one the score tables show, its standard error that of
    :func:`~auditlib.curation.clustered.mean_covariance`; for complete draws, one stratum and independent items it is
    the paired t test. P-values of all pairs are adjusted together (Benjamini and Hochberg 1995). Repeated draws of an
    item are averaged first: they never count as items.
    """
    names = np.asarray(models, object)
    if len(names) < 2:
        raise AuditError("fewer than two models are evaluated", mend="name models as curation.evaluated")
    fit = mean_covariance(rate, stratum, cluster)
    a, b = np.triu_indices(len(names), 1)
    difference, se = _differences(fit, a, b)
    worse = difference < 0
    a, b, difference = np.where(worse, b, a), np.where(worse, a, b), np.abs(difference)
    p = t_test(difference, se, fit.df, fit.units)
    q = bh(p)
    low, high = t_interval(difference, se, fit.df, level)
    found = q <= alpha
    table = pd.DataFrame({"a": names[a], "b": names[b], "difference": difference, "se": se, "low": low, "high": high,
                          "p": p, "q": q, "resolvable": found})  # fmt: skip
    tested = int((~np.isnan(p)).sum())
    count = int(found.sum())
    notes = (
        [f"{fit.lonely} of {fit.strata} sources or capabilities have a single item or cluster"] if fit.lonely else []
    )
    if tested < len(p):
        notes.append(f"{len(p) - tested} pairs not tested: a model lacks a whole source, or there are too few items")
    return ResolvablePairs(
        pairs=tested,
        resolvable=count,
        share=count / tested if tested else NAN,
        items=len(np.asarray(rate)),
        units=fit.units,
        calls=float(calls),
        per_1000_calls=1000 * count / calls if calls > 0 else NAN,
        alpha=alpha,
        note="; ".join(notes),
        table=table,
    )


def count_resolvable(fit: MeanCovariance, alpha: float = 0.05) -> int:
    """Number of resolvable pairs of one set of items, without the table."""
    a, b = np.triu_indices(len(fit.mean), 1)
    p = np.sort(t_test(*_differences(fit, a, b), fit.df, fit.units))
    p = p[~np.isnan(p)]
    passing = np.flatnonzero(p <= alpha * np.arange(1, len(p) + 1) / max(len(p), 1))
    return int(passing[-1]) + 1 if len(passing) else 0


def compare_resolvable(raw: ResolvablePairs, curated: ResolvablePairs) -> dict[str, Any]:
    """Pairs resolved on both sets, on one only, and in opposite directions.

    ``per_call_ratio`` is the ratio of resolvable pairs per call; above 1, the curated set tells more for its cost.
    """
    sides = []
    for found in (raw, curated):
        rows = found.table[found.table["resolvable"]]
        sides.append(set(zip(rows["a"], rows["b"], strict=True)))
    before, after = sides
    turned = {(b, a) for a, b in after} & before
    both = before & after
    per_call = curated.per_1000_calls / raw.per_1000_calls if raw.per_1000_calls > 0 else NAN
    return {"raw": raw.resolvable, "curated": curated.resolvable, "both": len(both), "reversed": len(turned),
            "lost": len(before) - len(both) - len(turned), "gained": len(after) - len(both) - len(turned),
            "per_call_ratio": per_call}  # fmt: skip


def _differences(fit: MeanCovariance, a: NDArray, b: NDArray) -> tuple[NDArray, NDArray]:
    own = np.diag(fit.cov)
    variance = own[a] + own[b] - 2 * fit.cov[a, b]
    return fit.mean[a] - fit.mean[b], np.sqrt(np.maximum(variance, 0))
