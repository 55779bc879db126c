"""Closed, large-open and small-open models: their averages and gaps by capability; how jagged a model's profile is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.curation.clustered import codes, group_means, mean_covariance, t_interval
from auditlib.curation.data import CurationPool
from auditlib.curation.scores import item_clusters, kept_mask, rates
from auditlib.errors import AuditError

NAN = float("nan")
#: groups of models, in the order of the tables
GROUPS = ("closed", "large-open", "small-open")


def model_groups(models: pd.DataFrame, large_b: float = 30.0) -> NDArray:
    """Group of each model, shape (models,), empty where the table does not tell.

    Parameters
    ----------
    models : frame with columns open and params_b; a column tier that holds one of :data:`GROUPS` decides first.
    large_b : billions of parameters from which an open model is large.

    Examples
    --------
    >>> model_groups(pd.DataFrame({"open": [False, True, True], "params_b": [None, 72, 7]})).tolist()
    ['closed', 'large-open', 'small-open']
    """
    n = len(models)
    tier = models["tier"].astype(object).tolist() if "tier" in models else [""] * n
    free = models["open"].astype(object).tolist() if "open" in models else [None] * n
    size = pd.to_numeric(models["params_b"], errors="coerce").to_numpy(float) if "params_b" in models else [NAN] * n
    out = []
    for t, o, b in zip(tier, free, size, strict=True):
        if t in GROUPS:
            out.append(t)
        elif o is None or pd.isna(o):
            out.append("")
        elif not bool(o):
            out.append("closed")
        else:
            out.append("" if np.isnan(b) else "large-open" if b >= large_b else "small-open")
    return np.array(out, object)


def group_table(pool: CurationPool, kept: ArrayLike, groups: ArrayLike, *, level: float = 0.95) -> pd.DataFrame:
    """Averages of groups of evaluated models, and the gaps between them, by capability.

    Parameters
    ----------
    pool : CurationPool
    kept : bool array, shape (items,)
    groups : array of text, shape (models,)
        Group of every model of the pool (:func:`model_groups`); models without one are in no average.

    Returns
    -------
    DataFrame
        set (``raw``, ``curated``), capability (or ``benchmark average``, ``macro average``), kind (``average``,
        ``gap``), name (the group, or ``closed - large-open``), models, items, value, low, high. Intervals take the
        models as given and the items (clusters) as sampled.
    """
    mask = kept_mask(kept, len(pool.items))
    member = np.asarray(groups, object)[pool.evaluated]
    named = [g for g in dict.fromkeys([*GROUPS, *sorted(set(member))]) if g and (member == g).any()]
    if not named:
        raise AuditError("no evaluated model is known to be open or closed",
                         mend="give models 'open' and 'params_b', or a tier")  # fmt: skip
    weights = {g: (member == g) / (member == g).sum() for g in named}
    rate, cluster, rows = rates(pool.full.of(pool.evaluated)), item_clusters(pool.items), []
    for what, here in (("raw", np.ones(len(mask), bool)), ("curated", mask)):
        for name, stratum, where in _views(pool, here):
            fit = mean_covariance(rate[where], stratum, None if cluster is None else cluster[where])

            lines = [("average", g, weights[g], [g]) for g in named]
            lines += [("gap", f"{a} - {b}", weights[a] - weights[b], [a, b]) for a, b in combinations(named, 2)]
            for kind, label, w, used in lines:
                value, se = fit.contrast(w)
                low, high = t_interval(value, se, fit.df, level)
                rows.append({"set": what, "capability": name, "kind": kind, "name": label,
                             "models": int(np.isin(member, used).sum()), "items": int(where.sum()), "value": value,
                             "low": float(low), "high": float(high)})  # fmt: skip
    return pd.DataFrame(rows)


def jagged_profiles(
    pool: CurationPool, kept: ArrayLike, *, rng: np.random.Generator, worlds: int = 2000
) -> pd.DataFrame:
    """Largest minus smallest capability mean of each evaluated model, before and after curation.

    Parameters
    ----------
    rng : numpy Generator
    worlds : simulated profiles for the range that noise alone would show.

    Returns
    -------
    DataFrame
        set, model, range, best, worst (capabilities), best_score, worst_score, noise: the mean range of a model that is
        equally good at all capabilities, given the standard errors of its means. The range of noisy means is never 0;
        compare it with ``noise``.

    Raises
    ------
    AuditError
        The pool knows no capabilities.
    """
    if pool.capability is None:
        raise AuditError("the items have no capability", mend="give the items a column 'capability'")
    mask = kept_mask(kept, len(pool.items))
    rate, cluster = rates(pool.full.of(pool.evaluated)), item_clusters(pool.items)
    models, out = pool.models["model"].to_numpy(object)[pool.evaluated], []
    for what, here in (("raw", np.ones(len(mask), bool)), ("curated", mask)):
        code, names = codes(pool.capability[here], int(here.sum()))
        x, c = rate[here], None if cluster is None else cluster[here]
        means = group_means(x, code, len(names))
        fits = [mean_covariance(x[code == g], None, None if c is None else c[code == g]) for g in range(len(names))]
        se = np.sqrt(np.stack([np.diag(f.cov) for f in fits]))
        noise = np.ptp(rng.standard_normal((worlds, *se.shape)) * se, axis=1).mean(axis=0)
        safe = ~np.isnan(means).any(axis=0)
        filled = np.where(safe, means, 0.0)
        best, worst = filled.argmax(axis=0), filled.argmin(axis=0)
        at = np.arange(means.shape[1])
        out.append(pd.DataFrame({
            "set": what, "model": models, "range": np.where(safe, means[best, at] - means[worst, at], NAN),
            "best": np.where(safe, names[best], ""), "worst": np.where(safe, names[worst], ""),
            "best_score": np.where(safe, means[best, at], NAN), "worst_score": np.where(safe, means[worst, at], NAN),
            "noise": noise}))  # fmt: skip
    return pd.concat(out, ignore_index=True)


def _views(pool: CurationPool, here: NDArray) -> Iterator[tuple[str, NDArray | None, NDArray]]:
    """Name, strata and items of each line: the capabilities, then the two averages."""
    if pool.capability is not None:
        label = pool.capability.astype(str)
        for name in np.unique(label[here]).tolist():
            yield name, None, here & (label == name)
        yield "macro average", label[here], here
    yield "benchmark average", pool.source[here], here
