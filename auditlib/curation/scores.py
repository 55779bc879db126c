"""Scores of models before and after curation: source means, capability means, benchmark and macro average."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.curation.clustered import codes, group_means, mean_covariance, score_interval
from auditlib.curation.data import CurationPool, Draws
from auditlib.errors import AuditError

NAN = float("nan")
#: names of the averages, in the order of the tables
AVERAGES = ("item mean", "benchmark average", "macro average", "macro average (source means)")


@dataclass(frozen=True)
class Averages:
    """Averages of each model, shape (models,) each; NaN where a model lacks a whole source or capability.

    Attributes
    ----------
    item : mean over items. benchmark : mean of source means. macro : mean of capability means, each over its items.
    macro_source : mean of capability means, each the mean of its sources' means. Both macro averages are NaN where
        no capability is known.
    """

    item: NDArray[np.float64]
    benchmark: NDArray[np.float64]
    macro: NDArray[np.float64]
    macro_source: NDArray[np.float64]

    def of(self, name: str) -> NDArray[np.float64]:
        """One of :data:`AVERAGES` by its name."""
        return dict(zip(AVERAGES, (self.item, self.benchmark, self.macro, self.macro_source), strict=True))[name]


def rates(draws: Draws) -> NDArray[np.float64]:
    """Share of correct draws, shape (items, models); NaN for a cell without a draw."""
    hits, trials = draws.hits.astype(float), draws.trials.astype(float)
    return np.divide(hits, trials, out=np.full(hits.shape, NAN), where=trials > 0)


def averages(rate: ArrayLike, source: ArrayLike, capability: ArrayLike | None = None) -> Averages:
    """All averages of each model.

    Parameters
    ----------
    rate : float array, shape (items, models)
        Share of correct draws of each item (:func:`rates`).
    source, capability : arrays, shape (items,)

    Notes
    -----
    A source or capability without an item here counts for nobody; one that a single model lacks leaves that model
    without the average. Each item weighs 1 inside its source, whatever the number of draws.

    Examples
    --------
    >>> a = averages([[1.0], [0.0], [0.5]], ["x", "x", "y"], ["p", "q", "q"])
    >>> [float(a.of(name)[0]) for name in AVERAGES]
    [0.5, 0.5, 0.625, 0.625]
    """
    x = np.asarray(rate, float)
    n, models = x.shape
    nothing = np.full(models, NAN)
    if not n:
        return Averages(nothing, nothing, nothing, nothing)
    one, _ = codes(None, n)
    s, sources = codes(source, n)
    item = group_means(x, one, 1)[0]
    benchmark = group_means(x, s, len(sources)).mean(axis=0)
    if capability is None:
        return Averages(item, benchmark, nothing, nothing)
    c, names = codes(capability, n)
    macro = group_means(x, c, len(names)).mean(axis=0)
    cell, weights = _cells(capability, source)
    return Averages(item, benchmark, macro, weights @ group_means(x, cell, len(weights)))


def _cells(capability: ArrayLike, source: ArrayLike) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Code of each item's capability and source, and the weight of each such cell in the average of source means."""
    c, names = codes(capability, len(np.asarray(capability)))
    s, sources = codes(source, len(c))
    cell, code = np.unique(c * len(sources) + s, return_inverse=True)
    owner = cell // len(sources)
    return code.ravel(), 1 / (len(names) * np.bincount(owner, minlength=len(names)))[owner]


def kept_mask(kept: ArrayLike, items: int) -> NDArray[np.bool_]:
    """``kept`` as a boolean per item.

    Raises
    ------
    AuditError
        It has another length, or keeps nothing.
    """
    mask = np.asarray(kept)
    if mask.dtype != bool or mask.shape != (items,):
        raise AuditError(f"the kept items are {mask.dtype} of shape {mask.shape}, not a yes or no for each of {items}",
                         mend="give a boolean per item of the pool")  # fmt: skip
    if not mask.any():
        raise AuditError("no item is left after curation", mend="loosen the thresholds, or check the panels")
    return mask


def item_clusters(items: pd.DataFrame) -> NDArray | None:
    """Cluster of each item: its ``cluster``, or ``image_key``; None where no two items share one.

    An item without a cluster is one of its own.
    """
    for column in ("cluster", "image_key"):
        if column not in items:
            continue
        given = items[column].astype(object)
        known = given.notna() & given.astype(str).ne("")
        if known.any():
            label = np.where(known, "=" + given.astype(str), "item " + items["item"].astype(str))
            if len(np.unique(label)) < len(items):
                return label
    return None


def score_table(pool: CurationPool, kept: ArrayLike, *, level: float = 0.95) -> pd.DataFrame:
    """Every score of every evaluated model, on all items and on the kept ones.

    Parameters
    ----------
    pool : CurationPool
    kept : bool array, shape (items,)

    Returns
    -------
    DataFrame
        Columns set (``raw``, ``curated``), model, kind (``average``, ``source``, ``capability``), name, items (those
        with a draw), draws, score, low, high. Shares in [0, 1]; intervals are Wilson's at the effective number of
        draws, items or image clusters being what was sampled.

    Raises
    ------
    AuditError
        ``kept`` does not fit the pool, or no model is evaluated.
    """
    mask = kept_mask(kept, len(pool.items))
    if not len(pool.evaluated):
        raise AuditError("no model is evaluated", mend="name models as curation.evaluated")
    draws = pool.full.of(pool.evaluated)
    rate, made = rates(draws), draws.trials / draws.unit
    names = pool.models["model"].to_numpy(object)[pool.evaluated]
    cluster, out = item_clusters(pool.items), []
    for what, rows in (("raw", np.ones(len(mask), bool)), ("curated", mask)):
        at = _Slice(rate[rows], made[rows], names, None if cluster is None else cluster[rows], what, level)
        source = pool.source[rows]
        capability = None if pool.capability is None else pool.capability[rows]
        out += [at.rows("average", "item mean", None), at.rows("average", "benchmark average", source)]
        if capability is not None:
            out.append(at.rows("average", "macro average", capability))
            out.append(at.rows("average", AVERAGES[3], *_cells(capability, source)))
        for kind, label in (("source", source), ("capability", capability)):
            if label is not None:
                text = label.astype(str)
                out += [at.rows(kind, g, None, where=text == g) for g in np.unique(text).tolist()]
    return pd.concat(out, ignore_index=True)


@dataclass(frozen=True)
class _Slice:
    """Rates of one set of items, and what the rows of the table say about it."""

    rate: NDArray
    made: NDArray
    models: NDArray
    cluster: NDArray | None
    name: str
    level: float

    def rows(
        self,
        kind: str,
        name: str,
        stratum: NDArray | None,
        weights: NDArray | None = None,
        where: NDArray | None = None,
    ) -> pd.DataFrame:
        x, made, cluster = self.rate, self.made, self.cluster
        if where is not None:
            x, made, cluster = x[where], made[where], None if cluster is None else cluster[where]
        fit, total = mean_covariance(x, stratum, cluster, weights), made.sum(axis=0)
        low, high = score_interval(fit.mean, np.diag(fit.cov), fit.df, fit.units, total, self.level)
        return pd.DataFrame({"set": self.name, "model": self.models, "kind": kind, "name": name,
                             "items": (made > 0).sum(axis=0), "draws": total, "score": fit.mean, "low": low,
                             "high": high})  # fmt: skip
