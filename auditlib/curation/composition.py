"""What is left of each source and capability, and what is known about the sources: tables of counts and shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.curation.data import CurationPool
from auditlib.curation.exact import above, fraction, mean_of_means
from auditlib.curation.scores import item_clusters, kept_mask, rates
from auditlib.errors import AuditError
from auditlib.stats.intervals import Interval
from auditlib.stats.rates import rate_interval, share_interval

NAN = float("nan")
#: name of the row over all sources or capabilities
ALL = "all"
#: spellings of a yes, a no and a blank in the column of sensitive items; any other text names what is sensitive
YES, NO = ("true", "yes", "y", "1", "1.0"), ("false", "no", "n", "0", "0.0", "none")
UNKNOWN = ("", "unknown", "n/a", "?")
#: columns of the items that say something about their source, by the name the table gives them
ABOUT = {"licence": ("licence", "license"), "provenance": ("provenance",)}


def retention(source: ArrayLike, removed: ArrayLike, stages: Sequence[str]) -> pd.DataFrame:
    """Items that enter and leave each stage, by source.

    Parameters
    ----------
    source : array, shape (items,)
        Any grouping: sources, capabilities.
    removed : array of text, shape (items,)
        Stage that removed the item, empty for a kept one.
    stages : names of the stages in order.

    Returns
    -------
    DataFrame
        One row per source (and ``all``) and stage: source, stage, entered, removed, left, removed_share (of those that
        entered), left_share (of all items of the source).

    Raises
    ------
    AuditError
        A stage that is not among ``stages``.
    """
    group, gone = np.asarray(source).astype(str), np.asarray(removed).astype(str)
    unknown = sorted(set(gone.tolist()) - {"", *stages})
    if unknown:
        raise AuditError(f"items were removed at the unknown stage {unknown[0]!r}", mend=f"stages are {list(stages)}")
    place = np.array([list(stages).index(g) if g else len(stages) for g in gone], int)
    rows = []
    for name in [*np.unique(group).tolist(), ALL]:
        here = place if name == ALL else place[group == name]
        for k, stage in enumerate(stages):
            entered, lost = int((here >= k).sum()), int((here == k).sum())
            rows.append({"source": name, "stage": stage, "entered": entered, "removed": lost, "left": entered - lost,
                         "removed_share": _share(lost, entered),
                         "left_share": _share(entered - lost, len(here))})  # fmt: skip
    return pd.DataFrame(rows)


def reasons_by_source(source: ArrayLike, reasons: Mapping[str, ArrayLike], first: ArrayLike) -> pd.DataFrame:
    """Reasons for removal by source: exclusive (the first that applied) and overlapping (all, on the full pool).

    Parameters
    ----------
    source : array, shape (items,)
    reasons : name -> bool array, shape (items,)
        Whether the reason applies to the item when its stage is run on the full pool.
    first : array of text, shape (items,)
        The reason of the sequential run, empty for a kept item.

    Returns
    -------
    DataFrame
        source, reason, items, exclusive and exclusive_share (sequential run), any and any_share (applies), alone (no
        other applies). Reason ``any reason`` counts items with at least one.

    Raises
    ------
    AuditError
        ``first`` names a reason without an array.
    """
    group, given = np.asarray(source).astype(str), np.asarray(first).astype(str)
    unknown = sorted(set(given.tolist()) - {"", *reasons})
    if unknown:
        raise AuditError(
            f"items were removed for the unknown reason {unknown[0]!r}", mend=f"reasons are {list(reasons)}"
        )
    given_reasons = [np.asarray(r, bool) for r in reasons.values()]
    applies = np.column_stack(given_reasons) if given_reasons else np.zeros((len(group), 0), bool)  # all are kept
    number = applies.sum(axis=1)
    rows = []
    for name in [*np.unique(group).tolist(), ALL]:
        here = np.ones(len(group), bool) if name == ALL else group == name
        n = int(here.sum())
        for k, reason in enumerate(reasons):
            own = int((given[here] == reason).sum())
            every = int(applies[here, k].sum())
            rows.append({"source": name, "reason": reason, "items": n, "exclusive": own,
                         "exclusive_share": _share(own, n), "any": every, "any_share": _share(every, n),
                         "alone": int((applies[here, k] & (number[here] == 1)).sum())})  # fmt: skip
        own, every = int((given[here] != "").sum()), int((number[here] > 0).sum())
        rows.append({"source": name, "reason": "any reason", "items": n, "exclusive": own,
                     "exclusive_share": _share(own, n), "any": every, "any_share": _share(every, n),
                     "alone": int((number[here] == 1).sum())})  # fmt: skip
    return pd.DataFrame(rows)


def composition(group: ArrayLike, kept: ArrayLike, cluster: ArrayLike | None = None) -> pd.DataFrame:
    """Items of each capability (or source) before and after, and its share of the benchmark.

    Returns
    -------
    DataFrame
        name, raw, curated, raw_share, curated_share, change (of the share, in [-1, 1]), retention with its interval
        low, high (Wilson's, at the effective number of items where clusters are known).
    """
    mask = kept_mask(kept, len(np.asarray(group)))
    names = np.asarray(group).astype(str)
    total, left, rows = len(mask), int(mask.sum()), []
    for name in [*np.unique(names).tolist(), ALL]:
        here = np.ones(total, bool) if name == ALL else names == name
        n, k = int(here.sum()), int(mask[here].sum())
        ends = share_interval(mask[here], None if cluster is None else np.asarray(cluster)[here])
        before, after = n / total, k / left
        rows.append({"name": name, "raw": n, "curated": k, "raw_share": before, "curated_share": after,
                     "change": after - before, "retention": k / n, "low": ends.low, "high": ends.high})  # fmt: skip
    return pd.DataFrame(rows)


def source_table(pool: CurationPool, kept: ArrayLike, threshold: str = "0.90") -> pd.DataFrame:
    """What is known about each source.

    Parameters
    ----------
    pool : CurationPool
    kept : bool array, shape (items,)
    threshold : share of correct draws, as text, above which the panel has solved an item.

    Returns
    -------
    DataFrame
        One row per source (and ``all``): source, capabilities, items, kept, retention, licence, provenance (the
        distinct values, ``unknown`` with a count where items do not say), sensitive (items flagged: a yes, or a text
        that names what is sensitive), sensitive_kinds (these texts), sensitive_unknown (items that do not say),
        text_only (mean accuracy of the inspectors without the image) with low and high, solved (items above the
        threshold), solved_share with solved_low and solved_high. NaN where a condition was not run.
    """
    mask = kept_mask(kept, len(pool.items))
    source, cluster = pool.source.astype(str), item_clusters(pool.items)
    flag = _flags(pool.items)
    sensitive, unsaid = ~flag.isin([*NO, *UNKNOWN]).to_numpy(), flag.isin(UNKNOWN).to_numpy()
    named = sensitive & ~flag.isin(YES).to_numpy()
    blind = None
    if pool.blind is not None and len(pool.inspectors):
        blind = rates(pool.blind.of(pool.inspectors))
    panel = pool.full.of(pool.panel)
    mean, limit = mean_of_means(panel.hits, panel.trials), fraction(threshold)
    solved, tried = above(mean, limit.numerator, limit.denominator), mean.seen
    rows = []
    for name in [*np.unique(source).tolist(), ALL]:
        here = np.ones(len(source), bool) if name == ALL else source == name
        text, ends = _text_only(blind, here, cluster)
        run = here & tried
        top = share_interval(solved[run], None if cluster is None else cluster[run])
        rows.append(
            {
                "source": name,
                "capabilities": "" if pool.capability is None else _values(pd.Series(pool.capability[here])),
                "items": int(here.sum()),
                "kept": int(mask[here].sum()),
                "retention": float(mask[here].mean()),
                **{what: _about(pool.items, columns, here) for what, columns in ABOUT.items()},
                "sensitive": int(sensitive[here].sum()),
                "sensitive_kinds": _values(flag[here & named], ""),
                "sensitive_unknown": int(unsaid[here].sum()),
                "text_only": text,
                "text_only_low": ends.low,
                "text_only_high": ends.high,
                "solved": int(solved[run].sum()),
                "solved_share": _share(int(solved[run].sum()), int(run.sum())),
                "solved_low": top.low,
                "solved_high": top.high,
            }
        )
    return pd.DataFrame(rows)


def _text_only(blind: NDArray | None, here: NDArray, cluster: NDArray | None) -> tuple[float, Interval]:
    """Mean over items of the mean over inspectors, and its interval over items or clusters."""
    if blind is None:
        return NAN, rate_interval([])
    x = blind[here]
    seen = ~np.isnan(x)
    run = seen.any(axis=1)
    mean = np.where(seen, x, 0).sum(axis=1)[run] / seen.sum(axis=1)[run]
    if not len(mean):
        return NAN, rate_interval([])
    return float(mean.mean()), rate_interval(mean, cluster=None if cluster is None else cluster[here][run])


def _about(items: pd.DataFrame, columns: tuple[str, ...], here: NDArray) -> str:
    for column in columns:
        if column in items:
            return _values(items[column][here])
    return "unknown"


def _values(column: pd.Series, nothing: str = "unknown") -> str:
    """Distinct values, the commonest first, and how many items do not say."""
    text = column.astype(object).where(column.notna(), "").astype(str).str.strip()
    said = text[text != ""]
    if not len(said):
        return nothing
    count = said.value_counts()
    names = sorted(count.index, key=lambda v: (-count[v], v))
    lost = len(text) - len(said)
    return ", ".join(names) + (f" (unknown for {lost} items)" if lost else "")


def _flags(items: pd.DataFrame) -> pd.Series:
    """What the items say about being sensitive, in lower case."""
    if "sensitive" not in items:
        return pd.Series("", index=items.index)
    column = items["sensitive"]
    return column.astype(object).where(column.notna(), "").astype(str).str.strip().str.lower()


def _share(part: int, whole: int) -> float:
    return part / whole if whole else NAN
