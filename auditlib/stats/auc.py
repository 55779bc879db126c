"""AUC of a score against a label, with a bootstrap interval over items or clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditlib.stats.intervals import Interval, no_interval, percentile
from auditlib.stats.resample import BATCH

NAN = float("nan")


@dataclass(frozen=True)
class Auc:
    """``P(x_positive > x_negative) + P(equal) / 2``, its interval, and the numbers of items of both classes."""

    estimate: float
    interval: Interval
    positives: int
    negatives: int

    def as_row(self) -> dict[str, Any]:
        return {"n": self.positives + self.negatives, "estimate": self.estimate, "low": self.interval.low,
                "high": self.interval.high}  # fmt: skip


def auc(
    score: ArrayLike,
    positive: ArrayLike,
    *,
    rng: np.random.Generator | None = None,
    cluster: ArrayLike | None = None,
    draws: int = 20_000,
    level: float = 0.95,
) -> Auc:
    """Area under the ROC curve.

    Parameters
    ----------
    score : array, shape (items,)
        Larger should mean positive; integers where equality matters.
    positive : bool array, shape (items,)
    rng : numpy Generator, optional
        Without it there is no interval.
    cluster : array, shape (items,), optional
        Whole clusters are resampled; otherwise items are, inside each class.

    Notes
    -----
    The Mann-Whitney statistic over the product of class sizes, ties half (Bamber 1975).
    """
    x, pos = np.asarray(score), np.asarray(positive, bool)
    if x.dtype.kind == "f" and np.isnan(x).any():
        raise ValueError("a score is NaN")
    values, at = np.unique(x, return_inverse=True)
    width = len(values)
    table = np.stack([np.bincount(at[pos], minlength=width), np.bincount(at[~pos], minlength=width)])
    n_pos, n_neg = (int(v) for v in table.sum(1))
    if not n_pos or not n_neg:
        return Auc(NAN, no_interval("one class only", level), n_pos, n_neg)
    estimate = float(_area(table[:1].astype(float), table[1:].astype(float))[0])
    if rng is None:
        return Auc(estimate, no_interval("not asked for", level), n_pos, n_neg)
    if cluster is None:
        interval = percentile(_draw_items(table, draws, rng), level, "percentile bootstrap within classes")
    else:
        found = _draw_clusters(at, pos, np.asarray(cluster), width, draws, rng)
        interval = percentile(found, level, "percentile cluster bootstrap")
    return Auc(estimate, interval, n_pos, n_neg)


def roc_curve(score: ArrayLike, positive: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """False and true positive rates from (0, 0) to (1, 1), one step for each distinct score, highest first."""
    x, pos = np.asarray(score), np.asarray(positive, bool)
    values, at = np.unique(x, return_inverse=True)
    p = np.bincount(at[pos], minlength=len(values))[::-1].cumsum() / max(1, int(pos.sum()))
    n = np.bincount(at[~pos], minlength=len(values))[::-1].cumsum() / max(1, int((~pos).sum()))
    return np.concatenate([[0.0], n]), np.concatenate([[0.0], p])


def _area(pos: NDArray, neg: NDArray) -> NDArray[np.float64]:
    """AUC of each row of weights per value in rising order."""
    below = np.cumsum(neg, 1) - neg / 2
    size = pos.sum(1) * neg.sum(1)
    return np.divide((pos * below).sum(1), size, out=np.full(len(pos), NAN), where=size > 0)


def _draw_items(table: NDArray, draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
    totals = table.sum(1)
    step = max(1, BATCH // table.shape[1])
    out = []
    for start in range(0, draws, step):
        size = min(step, draws - start)
        pos, neg = (rng.multinomial(int(t), row / t, size=size).astype(float) for t, row in zip(totals, table))
        out.append(_area(pos, neg))
    return np.concatenate(out)


def _draw_clusters(at: NDArray, pos: NDArray, cluster: NDArray, width: int, draws: int, rng: np.random.Generator
                   ) -> NDArray[np.float64]:  # fmt: skip
    from scipy import sparse

    _, c = np.unique(cluster, return_inverse=True)
    n = int(c.max()) + 1
    member = sparse.csr_array((np.ones(len(at)), (c, at + np.where(pos, 0, width))), shape=(n, 2 * width))
    step = max(1, BATCH // max(n, 2 * width))
    out = []
    for start in range(0, draws, step):
        w = rng.multinomial(n, np.full(n, 1 / n), size=min(step, draws - start))
        both = w.astype(float) @ member
        out.append(_area(both[:, :width], both[:, width:]))
    return np.concatenate(out)
