"""Side effects of what a judge returns, such as stereotype ratings, against a random return."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib import seeds
from auditlib.errors import AuditError
from auditlib.judges.decision_data import Prompts
from auditlib.judges.decisions import expected
from auditlib.stats.multiplicity import holm
from auditlib.stats.paired import cluster_totals, mean_interval, sign_flip

NAN = float("nan")
#: quantiles of a two-sided 5 % test and of 80 % power
_POWER = 1.959964 + 0.841621


def side_effects(
    prompts: Prompts, decisions: Mapping[str, NDArray], *, seed: int = 0, draws: int = 2_000
) -> pd.DataFrame:
    """Mean side effect of what is returned minus that of a random candidate, by decision rule and group.

    Parameters
    ----------
    decisions : name (a judge's aggregation, a baseline) -> chances of shape (P, N).

    Returns
    -------
    DataFrame
        ``decision, group, estimate, low, high, sim_low, sim_high, detectable, p, q, n, note``. ``estimate`` is the mean
        difference; ``sim_low`` and ``sim_high`` hold for all groups of a decision at once; ``detectable`` is the
        smallest difference that a two-sided 5 % test finds in 80 % of the cases, ``2.8`` standard errors; ``p`` from
        sign flips over clusters, ``q`` Holm over all rows. The group ``all`` is every prompt.

    Notes
    -----
    Simultaneous intervals: bootstrap over clusters, the 95 % quantile of the largest ``|d* - d| / se`` over the groups.
    "No longer detectable" is not "absent": read the interval and the smallest detectable difference.

    Raises
    ------
    AuditError
        The candidates have no side effect ratings.
    """
    if prompts.side is None:
        raise AuditError("the candidates have no side effect ratings", mend="give the column 'side'")
    random = np.nansum(prompts.side, axis=1) / prompts.n
    group = prompts.group
    names = ["all", *(np.unique(group.astype(str)).tolist() if group is not None else [])]
    rows = []
    for name, weights in decisions.items():
        difference = expected(weights, prompts.side) - random
        known = ~np.isnan(difference)
        masks = np.column_stack([known if g == "all" else known & (group.astype(str) == g) for g in names])
        rng = seeds.generator(seed, "judges", "side", name)
        estimate, drawn = _grouped(np.where(known, difference, 0.0), masks, prompts.cluster, rng, draws)
        se = drawn.std(axis=0, ddof=1)
        far = np.abs(drawn - estimate) / np.where(se > 0, se, np.inf)
        reach = float(np.nanquantile(np.nanmax(far, axis=1), 0.95)) if known.any() else NAN
        for g, label in enumerate(names):
            mine = masks[:, g]
            ends = mean_interval(difference[mine], prompts.cluster[mine], rng=rng, draws=draws)
            test = sign_flip(difference[mine], prompts.cluster[mine], rng=rng, draws=draws)
            zero = ends.interval.low <= 0 <= ends.interval.high
            note = "not detectable here; a difference below 'detectable' may be there" if zero else ""
            rows.append({"decision": name, "group": label, "estimate": ends.value, "low": ends.interval.low,
                         "high": ends.interval.high, "sim_low": ends.value - reach * se[g],
                         "sim_high": ends.value + reach * se[g], "detectable": _POWER * se[g], "p": test.p,
                         "n": int(mine.sum()), "note": note})  # fmt: skip
    table = pd.DataFrame(rows)
    table.insert(9, "q", holm(table["p"]))
    return table


def _grouped(difference: NDArray, masks: NDArray, cluster: NDArray, rng: np.random.Generator, draws: int
             ) -> tuple[NDArray, NDArray]:  # fmt: skip
    """Mean of each group, and in every draw of clusters."""
    totals = cluster_totals(np.concatenate([difference[:, None] * masks, masks], axis=1), cluster)
    n, k = len(totals), masks.shape[1]
    at = rng.integers(n, size=(draws, n)) + n * np.arange(draws)[:, None]
    drawn = np.bincount(at.ravel(), minlength=draws * n).reshape(draws, n) @ totals
    sums = np.concatenate([totals.sum(axis=0)[None], drawn])
    means = np.divide(sums[:, :k], sums[:, k:], out=np.full((len(sums), k), NAN), where=sums[:, k:] > 0)
    return means[0], means[1:]
