"""Does the key carry information for this pool? Agreement of models' letters with the key, by stratum.

Three numbers, each with an interval over whole items (clusters where known): kappa of the pooled votes against the
key, the share of items whose most frequent letter is the key, and the mean item-rest correlation. A key that models
agree with no more than chance says nothing *for this pool*: it may be wrong, or the pool may lack the skill.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib.metrics.rows import interval_fields, row
from auditlib.pool import Pool
from auditlib.stats.agreement import category_counts
from auditlib.stats.intervals import Interval, percentile
from auditlib.stats.items import item_rest_correlation
from auditlib.stats.resample import distinct_rows, weighted_totals

#: strata with fewer items get no row: their intervals would include everything
FEWEST = 10
#: items from which on totals are drawn from their normal limit
LIMIT = 500
#: models that a pool needs, else "the pool" is one model's skill
MODELS = 2
NAN = float("nan")


def key_information_rows(pool: Pool) -> list[dict[str, Any]]:
    """``key_kappa``, ``key_majority`` and ``key_item_rest`` overall and by stratum, over letters with the image.

    Items take part that have a letter as key, a known number of options and a vote. ``null`` is chance: 0 for kappa
    and correlation, the mean of 1/k for the majority. Ties for the most frequent letter count in parts.
    """
    if "full" not in pool.letters or len(pool.model_names) < MODELS:
        return []
    letters, key = pool.letters["full"], pool.key_codes.astype(int)
    counts = category_counts(letters, max(int(letters.max(initial=0)), int(key.max(initial=0))) + 1)
    k = np.full(len(key), np.nan) if pool.k is None else pool.k
    used = (key >= 0) & (counts.sum(1) > 0)
    if not used.any():
        return []
    rest = _item_rest(letters, key, used)
    clusters = pool.cluster
    strata = pool.strata
    names = [] if strata is None else sorted(set(strata))
    groups = [("all", used), *((s, used & (strata == s)) for s in names)]
    tested = sum(int(here.sum()) >= FEWEST for s, here in groups if s != "all")
    rows = []
    for name, here in groups:
        if here.sum() < FEWEST:
            continue
        note = f"one of {tested} strata tested" if name != "all" and tested > 1 else ""
        part = _Part(counts[here], key[here], k[here], rest[here], None if clusters is None else clusters[here])
        rows += _rows(pool, name, part, note)
    return rows


class _Part:
    """Items of one stratum: votes by letter, keys, options shown, item-rest correlation, clusters."""

    def __init__(self, counts: NDArray, key: NDArray, k: NDArray, rest: NDArray, cluster: NDArray | None):
        self.counts, self.key, self.k, self.rest, self.cluster = counts, key, k, rest, cluster
        self.votes = counts.sum(1)
        self.hits = counts[np.arange(len(key)), key]
        top = counts.max(1)
        self.majority = np.where(self.hits == top, 1.0 / (counts == top[:, None]).sum(1), 0.0)


def _rows(pool: Pool, name: str, part: _Part, note: str) -> list[dict[str, Any]]:
    n, side = len(part.key), part.counts.shape[1]
    keyed = np.zeros_like(part.counts)
    keyed[np.arange(n), part.key] = part.votes
    known = ~np.isnan(part.rest)
    rest = np.column_stack([known, np.where(known, part.rest, 0.0)])
    stats = np.column_stack([part.votes, part.hits, part.counts, keyed, np.ones(n), part.majority, rest]).astype(float)
    wide = 2 + 2 * side
    functions = {
        "key_kappa": lambda t: _kappa(t[:, :wide], side),
        "key_majority": lambda t: _mean(t[:, wide : wide + 2]),
        "key_item_rest": lambda t: _mean(t[:, wide + 2 :]),
    }
    chance = float(np.mean(1 / part.k)) if (part.k > 1).all() else NAN
    rows = []
    for metric, (estimate, ends) in _intervals(pool, stats, part.cluster, functions, name).items():
        if metric == "key_item_rest" and known.sum() < FEWEST:
            continue
        null = chance if metric == "key_majority" else 0.0
        rows.append(
            row(
                metric,
                interval_fields(ends),
                arm="exact",
                stratum=name,
                n=int(known.sum()) if metric == "key_item_rest" else n,
                estimate=estimate,
                null=null,
                excess=estimate - null,
                note=note,
            )
        )
    return rows


def _kappa(t: NDArray, side: int) -> NDArray:
    votes = t[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = t[:, 1] / votes
        expected = (t[:, 2 : 2 + side] * t[:, 2 + side :]).sum(1) / votes**2
        return np.where(expected > 1 - 1e-12, NAN, (observed - expected) / (1 - expected))


def _mean(t: NDArray) -> NDArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return t[:, 1] / t[:, 0]


def _intervals(
    pool: Pool, stats: NDArray, cluster: NDArray | None, functions: Mapping[str, Any], name: str
) -> dict[str, tuple[float, Interval]]:
    """Each function of the totals with its percentile interval, all from the same draws of items or clusters."""
    total = stats.sum(0, keepdims=True)
    if cluster is not None:
        stats = pd.DataFrame(stats).groupby(cluster, sort=True).sum().to_numpy()
    rows, freq = distinct_rows(stats)
    mode = "normal" if len(stats) >= LIMIT else "weights"
    draws = list(weighted_totals(rows, freq, pool.settings.bootstrap, pool.rng("key information", name), mode))
    what = f"percentile bootstrap over {'items' if cluster is None else 'clusters'}"
    out = {}
    for metric, function in functions.items():
        values = np.concatenate([function(t) for t in draws])
        out[metric] = float(function(total)[0]), percentile(values, 0.95, what)
    return out


def _item_rest(letters: NDArray, key: NDArray, used: NDArray) -> NDArray:
    """Item-rest correlation of letters equal to the key, an abstention counting as wrong."""
    out = np.full(len(key), NAN)
    hits = ((letters == key[:, None]) & (letters >= 0))[used]
    given = (letters[used] > -2).astype(np.uint8)
    out[used] = item_rest_correlation(hits.astype(np.uint8), given)
    return out


def uninformative(statistics: pd.DataFrame) -> pd.DataFrame:
    """Strata whose key carries no measurable information for the pool.

    Those whose kappa interval holds 0 and whose majority interval holds chance. It is never said that a key is wrong.

    Returns
    -------
    frame with columns ``stratum``, ``n``, ``kappa``, ``kappa_low``, ``kappa_high``, ``majority``, ``majority_low``,
    ``majority_high``, ``chance``, ``item_rest`` and ``tested`` (strata tested).
    """
    parts = {m: statistics[statistics["metric"] == m].set_index("stratum") for m in ("key_kappa", "key_majority")}
    named = [table.add_suffix(metric.removeprefix("key")) for metric, table in parts.items()]
    both = named[0].join(named[1], how="inner")
    rest = statistics[statistics["metric"] == "key_item_rest"].set_index("stratum")["estimate"]
    tested = int((both.index != "all").sum()) or 1
    zero = (both["low_kappa"] <= 0) & (both["high_kappa"] >= 0)
    chance = both["null_majority"]
    silent = both[zero & (both["low_majority"] <= chance) & (both["high_majority"] >= chance)]
    return pd.DataFrame(
        {
            "stratum": silent.index,
            "n": silent["n_kappa"].to_numpy(),
            "kappa": silent["estimate_kappa"].to_numpy(),
            "kappa_low": silent["low_kappa"].to_numpy(),
            "kappa_high": silent["high_kappa"].to_numpy(),
            "majority": silent["estimate_majority"].to_numpy(),
            "majority_low": silent["low_majority"].to_numpy(),
            "majority_high": silent["high_majority"].to_numpy(),
            "chance": silent["null_majority"].to_numpy(),
            "item_rest": rest.reindex(silent.index).to_numpy(),
            "tested": tested,
        }
    )
