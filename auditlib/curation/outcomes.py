"""All outcome tables of a curated set, by name, ready for CSV."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from auditlib.curation.composition import composition, source_table
from auditlib.curation.cost import cost_table
from auditlib.curation.data import CurationPool
from auditlib.curation.groups import GROUPS, group_table, jagged_profiles, model_groups
from auditlib.curation.halves import split_half
from auditlib.curation.ranking import compare_ranks, spread_change
from auditlib.curation.resolvable import compare_resolvable, resolvable_pairs
from auditlib.curation.scores import AVERAGES, averages, item_clusters, kept_mask, rates, score_table
from auditlib.curation.subsets import part_whole, random_subset_band
from auditlib.errors import AuditError
from auditlib.seeds import generator


def outcome_tables(
    pool: CurationPool,
    kept: ArrayLike,
    *,
    seed: int,
    large_b: float = 30.0,
    subsets: int = 200,
    splits: int = 200,
    alpha: float = 0.05,
    tokens: ArrayLike | None = None,
    price: float | None = None,
) -> dict[str, pd.DataFrame]:
    """Every table that needs no more than the pool and the kept items.

    Parameters
    ----------
    pool : CurationPool
    kept : bool array, shape (items,)
    seed : seed of the run; each random table has a generator of its own.
    large_b : billions of parameters from which an open model is large.
    subsets, splits : random subsets, and random halves.
    alpha : false discovery rate of the resolvable pairs.
    tokens, price : see :func:`~auditlib.curation.cost.cost_table`.

    Returns
    -------
    dict of DataFrames
        ``scores``, ``ranks`` (one row per average and model), ``ranking`` (one row per average: correlations, shifts,
        spread), ``subsets``, ``part_whole``, ``reliability``, ``resolvable``, ``resolvable_change``, ``pairs``,
        ``sources``, ``capabilities`` and ``profiles`` (only with capabilities), ``groups`` (only where models are known
        to be open or closed), ``cost``.

    Raises
    ------
    AuditError
        ``kept`` does not fit, or fewer than two models are evaluated.
    """
    mask = kept_mask(kept, len(pool.items))
    if len(pool.evaluated) < 2:
        raise AuditError("fewer than two models are evaluated", mend="name models as curation.evaluated")
    draws = pool.full.of(pool.evaluated)
    rate, made = rates(draws), draws.trials / draws.unit
    models = pool.models["model"].to_numpy(object)[pool.evaluated]
    source, capability, cluster = pool.source, pool.capability, item_clusters(pool.items)
    sets = {"raw": np.ones(len(mask), bool), "curated": mask}
    out = {"scores": score_table(pool, mask)}
    out["ranks"], out["ranking"] = _ranking(rate, source, capability, mask, models)
    band = random_subset_band(rate, source, mask, rng=generator(seed, pool.name, "random subsets"), cluster=cluster,
                              draws=subsets, alpha=alpha)  # fmt: skip
    out["subsets"] = band.table
    out["part_whole"] = pd.DataFrame([part_whole(rate, source, mask).as_row()])
    reliability, found = [], {}
    for name, rows in sets.items():
        c = None if cluster is None else cluster[rows]
        rng = generator(seed, pool.name, "split halves", name)
        reliability.append({"set": name} | split_half(rate[rows], source[rows], rng=rng, cluster=c,
                                                      splits=splits).as_row())  # fmt: skip
        found[name] = resolvable_pairs(rate[rows], models, stratum=source[rows], cluster=c,
                                       calls=float(made[rows].sum()), alpha=alpha)  # fmt: skip
    out["reliability"] = pd.DataFrame(reliability)
    out["resolvable"] = pd.DataFrame([{"set": name} | f.as_row() for name, f in found.items()])
    out["resolvable_change"] = pd.DataFrame([compare_resolvable(found["raw"], found["curated"])])
    out["pairs"] = pd.concat([f.table.assign(set=name) for name, f in found.items()], ignore_index=True)
    out["sources"] = source_table(pool, mask)
    if capability is not None:
        out["capabilities"] = composition(capability, mask, cluster)
        out["profiles"] = jagged_profiles(pool, mask, rng=generator(seed, pool.name, "jagged profiles"))
    groups = model_groups(pool.models, large_b)
    if set(groups[pool.evaluated]) & set(GROUPS):
        out["groups"] = group_table(pool, mask, groups)
    out["cost"] = cost_table(pool, mask, tokens=tokens, price=price)
    return out


def _ranking(rate: np.ndarray, source: ArrayLike, capability: ArrayLike | None, mask: np.ndarray, models: np.ndarray
             ) -> tuple[pd.DataFrame, pd.DataFrame]:  # fmt: skip
    """Ranks of each model and one summary row, under every average that models have on both sides."""
    raw = averages(rate, source, capability)
    curated = averages(rate[mask], np.asarray(source)[mask], None if capability is None else capability[mask])
    tables, rows = [], []
    for name in AVERAGES:
        a, b = raw.of(name), curated.of(name)
        if (~np.isnan(a) & ~np.isnan(b)).sum() < 2:
            continue
        compared = compare_ranks(a, b, models)
        row: dict[str, Any] = {"average": name} | compared.as_row()
        row |= {k: v for k, v in spread_change(a, b).as_row().items() if k != "models"}
        rows.append(row | {"left_out": ", ".join(compared.left_out)})
        tables.append(compared.table.assign(average=name))
    if not rows:
        raise AuditError("no two models have a score before and after curation", mend="evaluate models on all sources")
    return pd.concat(tables, ignore_index=True), pd.DataFrame(rows)
