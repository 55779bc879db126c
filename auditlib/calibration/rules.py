"""When a p, an interval or a list counts as right over many worlds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

NAN = float("nan")
#: a KS test below this says that p-values are off; low, since many tests are looked at
ALPHA = 0.001
#: coverage that the exact interval of the realised coverage must reach, and that interval's level
COVERAGE, LEVEL = 0.94, 0.999


def binomial_interval(k: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Exact (Clopper-Pearson) interval of a proportion."""
    from scipy.special import betaincinv

    if not n:
        return NAN, NAN
    a = (1 - level) / 2
    low = 0.0 if k == 0 else float(betaincinv(k, n - k + 1, a))
    high = 1.0 if k == n else float(betaincinv(k + 1, n - k, 1 - a))
    return low, high


def p_row(printed: ArrayLike, randomised: ArrayLike | None, *, false_null: bool = False) -> dict[str, Any]:
    """How p-values over worlds behave.

    Parameters
    ----------
    printed : p-values as the report prints them, one for each world; nan is left out.
    randomised : the same with the probability of the observed value shared out, where an exact law knows it.
    false_null : whether the null hypothesis does not hold in these worlds, so that the test should speak.

    Returns
    -------
    dict with ``worlds``, ``rejected`` (share of printed p at or below .05), ``ks_uniform`` (two-sided KS p of the
    randomised values), ``ks_printed`` (one-sided: printed values too small?), ``expected`` and ``passed``. A test that
    should speak passes when it rejects in half of the worlds.
    """
    from scipy.stats import kstest

    p = np.asarray(printed, float)
    p = p[~np.isnan(p)]
    out: dict[str, Any] = {"worlds": len(p), "rejected": float((p <= 0.05).mean()) if len(p) else NAN}
    if false_null:
        return out | {"ks_uniform": NAN, "ks_printed": NAN, "expected": "speaks", "passed": out["rejected"] >= 0.5}
    uniform = NAN
    if randomised is not None:
        u = np.asarray(randomised, float)
        uniform = float(kstest(u[~np.isnan(u)], "uniform").pvalue)
    conservative = float(kstest(p, "uniform", alternative="greater").pvalue)
    passed = conservative > ALPHA and not uniform <= ALPHA
    return out | {"ks_uniform": uniform, "ks_printed": conservative, "expected": "silent", "passed": passed}


def coverage_row(low: ArrayLike, high: ArrayLike, truth: ArrayLike) -> dict[str, Any]:
    """Realised coverage of 95% intervals; passed when its exact 99.9% interval holds a value of .94 or more."""
    a, b = np.asarray(low, float), np.asarray(high, float)
    made = ~np.isnan(a)
    inside = (a <= truth) & (truth <= b) & made
    n, k = int(made.sum()), int(inside.sum())
    ends = binomial_interval(k, n, LEVEL)
    width = float((b - a)[made].mean()) if n else NAN
    return {"worlds": n, "coverage": k / n if n else NAN, "low": ends[0], "high": ends[1], "width": width,
            "passed": bool(n) and ends[1] >= COVERAGE}  # fmt: skip


def fdr_row(false: ArrayLike, listed: ArrayLike, nominal: float) -> dict[str, Any]:
    """Realised false discovery rate of lists; passed when at most nominal within Monte-Carlo error (3.3 sd)."""
    f, m = np.asarray(false, float), np.asarray(listed, float)
    share = np.divide(f, m, out=np.zeros(len(f)), where=m > 0)
    se = float(share.std(ddof=1) / math.sqrt(len(share))) if len(share) > 1 else NAN
    return {"worlds": len(share), "fdr": float(share.mean()), "se": se, "nominal": nominal,
            "listed": float(m.mean()), "passed": float(share.mean()) - 3.3 * se <= nominal}  # fmt: skip
