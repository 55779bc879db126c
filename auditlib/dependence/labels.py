"""Predicted labels against human ones: accuracy and macro-F1, and paired tests of two methods on the same items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.dependence.profile import LABELS
from auditlib.errors import AuditError
from auditlib.stats.intervals import Interval
from auditlib.stats.multiplicity import holm

#: fewer discordant items than this are tested exactly
EXACT_BELOW = 25
METRICS = ("accuracy", "macro-F1")


@dataclass(frozen=True)
class LabelScore:
    """Accuracy, macro-F1 over the four classes, each class's F1, counts ``confusion[truth, predicted]``, items."""

    accuracy: float
    macro_f1: float
    f1: NDArray[np.float64]
    confusion: NDArray[np.int64]
    n: int


@dataclass(frozen=True)
class McNemar:
    """Items that only the first (``first``), only the second (``second``) labels rightly; p, and how it was found."""

    first: int
    second: int
    p: float
    method: str


@dataclass(frozen=True)
class PairedComparison:
    """First method minus second on the same items.

    Attributes
    ----------
    difference : of accuracy and of macro-F1, by :data:`METRICS`. interval : percentile bootstrap, likewise.
    p : approximate randomisation, likewise, not corrected. mcnemar : on accuracy. n : items. draws : of each kind.
    """

    difference: dict[str, float]
    interval: dict[str, Interval]
    p: dict[str, float]
    mcnemar: McNemar
    n: int
    draws: int


def label_codes(labels: ArrayLike) -> NDArray[np.int64]:
    """Places 0..3 of letters R, V, T, S; codes 0..3 pass. Anything else raises an AuditError."""
    x = np.asarray(labels)
    if x.ndim != 1:
        raise AuditError(f"labels have shape {x.shape}", mend="give one label per item")
    if x.dtype.kind in "iu":
        known = (x >= 0) & (x < 4)
        codes = x.astype(np.int64)
    else:
        place = {name: j for j, name in enumerate(LABELS)}
        codes = np.array([place.get(str(v), -1) for v in x], np.int64)
        known = codes >= 0
    if not known.all():
        at = int((~known).argmax())
        raise AuditError(f"unknown label {x[at]!r}", row=at + 1, mend="use R, V, T, S or 0..3, and leave others out")
    return codes


def _scores(confusion: NDArray) -> NDArray[np.float64]:
    """Accuracy and macro-F1 of confusion counts (..., 4, 4), shape (..., 2)."""
    right = np.einsum("...ii->...i", confusion)
    size = confusion.sum(-1) + confusion.sum(-2)
    f1 = np.divide(2.0 * right, size, out=np.zeros(right.shape), where=size > 0)
    return np.stack([right.sum(-1) / confusion.sum((-1, -2)), f1.mean(-1)], axis=-1)


def evaluate_labels(truth: ArrayLike, predicted: ArrayLike) -> LabelScore:
    """Accuracy and macro-F1 over four fixed classes.

    Parameters
    ----------
    truth, predicted : shape (items,), letters R, V, T, S or codes 0..3

    Notes
    -----
    A class that is neither true nor predicted has F1 0, and the mean is always over four: benchmarks compare.

    Examples
    --------
    >>> score = evaluate_labels(list("RVTS"), list("RVTT"))
    >>> score.accuracy, round(score.macro_f1, 4)
    (0.75, 0.6667)
    """
    t, p = label_codes(truth), label_codes(predicted)
    if len(t) != len(p) or not len(t):
        raise AuditError(f"{len(t)} true and {len(p)} predicted labels", mend="give one of each per item")
    confusion = np.bincount(4 * t + p, minlength=16).reshape(4, 4)
    right = np.diag(confusion)
    size = confusion.sum(0) + confusion.sum(1)
    f1 = np.divide(2.0 * right, size, out=np.zeros(4), where=size > 0)
    return LabelScore(float(right.sum() / len(t)), float(f1.mean()), f1, confusion, len(t))


def mcnemar(first: int, second: int) -> McNemar:
    """Test that two methods are right equally often, from the two discordant counts.

    Notes
    -----
    Exact binomial below 25 discordant items, else chi-square of ``(|b - c| - 1)^2 / (b + c)`` (Edwards 1948).
    """
    from scipy.stats import binom, chi2

    total = first + second
    if total < EXACT_BELOW:
        p = min(1.0, 2 * float(binom.cdf(min(first, second), total, 0.5)))
        return McNemar(first, second, p, "exact")
    statistic = max(abs(first - second) - 1, 0) ** 2 / total
    return McNemar(first, second, float(chi2.sf(statistic, 1)), "chi-square, corrected")


def _differences(cells: NDArray) -> NDArray[np.float64]:
    """Metric of the first method less the second's, from counts (..., truth, first, second); shape (..., 2)."""
    return _scores(cells.sum(-1)) - _scores(cells.sum(-2))


def compare_paired(
    truth: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    *,
    rng: np.random.Generator,
    strata: ArrayLike | None = None,
    draws: int = 10_000,
    level: float = 0.95,
) -> PairedComparison:
    """Two methods on the same items: bootstrap intervals, randomisation p-values, McNemar's test.

    Parameters
    ----------
    truth, first, second : shape (items,), letters or codes
    strata : shape (items,), such as the benchmark; items are resampled within
    draws : of the bootstrap and of the randomisation

    Notes
    -----
    Both work on the 64 counts of (truth, first, second): a bootstrap draw is one multinomial per stratum, a
    randomisation draw one binomial per cell (items whose two predictions change places).
    ``p = (1 + #{|D*| >= |D|}) / (draws + 1)`` (Noreen 1989).
    """
    t, a, b = (label_codes(x) for x in (truth, first, second))
    if not len(t) == len(a) == len(b) or not len(t):
        raise AuditError(f"{len(t)} true labels for {len(a)} and {len(b)} predictions", mend="give one each per item")
    if draws < 1:
        raise ValueError("draws must be at least 1")
    group = (
        np.zeros(len(t), int) if strata is None else np.unique(np.asarray(strata).astype(str), return_inverse=True)[1]
    )
    if len(group) != len(t):
        raise AuditError(f"{len(group)} strata for {len(t)} items", mend="give one per item")
    code = 16 * t + 4 * a + b
    counts = np.bincount(64 * group + code, minlength=64 * (int(group.max()) + 1)).reshape(-1, 64)
    cells = counts.sum(0).reshape(4, 4, 4)
    seen = _differences(cells)
    resampled = np.zeros((draws, 64), np.int64)
    for c in counts:
        resampled += rng.multinomial(c.sum(), c / c.sum(), size=draws)
    drawn = _differences(resampled.reshape(-1, 4, 4, 4))
    ends = np.quantile(drawn, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    swapped = rng.binomial(cells, 0.5, size=(draws, 4, 4, 4))
    null = _differences(cells - swapped + swapped.swapaxes(-1, -2))
    p = (1 + (np.abs(null) >= np.abs(seen) - 1e-12).sum(0)) / (draws + 1)
    right_a, right_b = a == t, b == t
    return PairedComparison(
        dict(zip(METRICS, seen.tolist())),
        {m: Interval(float(ends[0, j]), float(ends[1, j]), level, "paired bootstrap") for j, m in enumerate(METRICS)},
        dict(zip(METRICS, p.tolist())),
        mcnemar(int((right_a & ~right_b).sum()), int((right_b & ~right_a).sum())),
        len(t),
        draws,
    )


def compare_benchmarks(
    benchmarks: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]],
    *,
    rng: np.random.Generator,
    draws: int = 10_000,
    level: float = 0.95,
) -> pd.DataFrame:
    """One row per benchmark and metric, with Holm's correction over all of them.

    Parameters
    ----------
    benchmarks : name -> (truth, first, second)

    Returns
    -------
    DataFrame with benchmark, metric, n, first, second, difference, low, high, p, p_holm, p_mcnemar.
    """
    rows: list[dict[str, Any]] = []
    for name, (truth, first, second) in benchmarks.items():
        c = compare_paired(truth, first, second, rng=rng, draws=draws, level=level)
        a, b = evaluate_labels(truth, first), evaluate_labels(truth, second)
        for metric, values in zip(METRICS, ((a.accuracy, b.accuracy), (a.macro_f1, b.macro_f1))):
            interval = c.interval[metric]
            rows.append({
                "benchmark": name, "metric": metric, "n": c.n, "first": values[0], "second": values[1],
                "difference": c.difference[metric], "low": interval.low, "high": interval.high, "p": c.p[metric],
                "p_mcnemar": c.mcnemar.p if metric == METRICS[0] else np.nan,
            })  # fmt: skip
    table = pd.DataFrame(rows)
    table["p_holm"] = holm(table["p"]) if len(table) else []
    return table
