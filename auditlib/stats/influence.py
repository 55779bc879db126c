"""What a statistic becomes when one cluster is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditlib.stats.paired import cluster_totals

NAN = float("nan")


def leave_one_out(
    columns: ArrayLike, cluster: ArrayLike, function: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> dict[str, Any]:
    """A statistic of totals, and its range over all sets that lack one cluster.

    Parameters
    ----------
    columns : shape (rows, columns), see :func:`~auditlib.stats.paired.cluster_totals`. cluster : shape (rows,).
    function : totals of shape (sets, columns) -> values of shape (sets,).

    Returns
    -------
    dict
        ``estimate``; ``least``, ``most`` over the sets; ``moved``, the change by leaving out the cluster that moves it
        most, with its name as ``most_moving``; ``jackknife_se``; ``clusters``. NaN with fewer than two clusters.
    """
    names = np.unique(np.asarray(cluster).astype(str))
    totals = cluster_totals(columns, cluster)
    whole = totals.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(function(whole[None])[0])
        left = np.asarray(function(whole - totals), float) if len(totals) > 1 else np.zeros(0)
    n = len(totals)
    row = {"estimate": value, "least": NAN, "most": NAN, "moved": NAN, "most_moving": "", "jackknife_se": NAN,
           "clusters": n}  # fmt: skip
    if n < 2 or np.isnan(value) or np.isnan(left).all():
        return row
    at = int(np.nanargmax(np.abs(left - value)))
    spread = float(np.sqrt((n - 1) / n * np.nansum((left - np.nanmean(left)) ** 2)))
    return row | {"least": float(np.nanmin(left)), "most": float(np.nanmax(left)), "moved": float(left[at] - value),
                  "most_moving": str(names[at]), "jackknife_se": spread}  # fmt: skip
