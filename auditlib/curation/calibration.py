"""Thresholds of the anomaly rules, chosen on planted defects: enough of them found, as few items as possible flagged.

Functions take a pool in which defects were planted and the labels of what was planted where; planting is not done here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.curation.data import CurationPool
from auditlib.curation.rules import RULES, RuleResult, RuleSettings, rules
from auditlib.errors import AuditError
from auditlib.stats.intervals import wilson

#: thresholds tried per rule, "never" among them
LEVELS = 16
#: the least recall of each planted defect
WANTED = {"key_error": 0.95}


@dataclass(frozen=True)
class Calibration:
    """Cutoffs and what they do on planted defects, those that they were chosen on unless measured on others.

    Attributes
    ----------
    settings : the rules with these ``cutoffs`` (scores; a rule that is not needed has the cutoff infinity).
    flagged, share : items flagged, summed over the plantings, and their share of all.
    recall, precision : tables of :func:`recall_table` and :func:`precision_table`.
    tried : combinations of thresholds compared; the choice is the best of all of them.
    """

    settings: RuleSettings
    flagged: int
    share: float
    recall: pd.DataFrame
    precision: pd.DataFrame
    tried: int


def calibrate(
    plantings: Sequence[tuple[CurationPool, ArrayLike]],
    settings: RuleSettings | None = None,
    wanted: Mapping[str, float] | None = None,
    *,
    sure: bool = False,
) -> Calibration:
    """Choose cutoffs of the five rules' scores: the wanted recalls with the fewest items flagged.

    Parameters
    ----------
    plantings : pools with planted defects, and the label planted in each item, "" for none, shape (items,). Several
        plantings in one small pool count together, so that the choice rests on more planted items.
    settings : what the scores are made with; their scale follows the thresholds in it.
    wanted : label -> least recall, by default 95% of the key errors.
    sure : the lower end of the 95% Wilson interval of the recall must reach it, not the recall itself. The smallest set
        is chosen because it just suffices for these planted items, so that others are found less often; this makes up
        for it.

    Raises
    ------
    AuditError
        A wanted label that was not planted; a recall that no combination reaches.

    Notes
    -----
    Per rule 15 scores are tried (0.5, which is the rule's own threshold, and quantiles of the planted items' scores)
    and "never". All 16**5 combinations are compared at once by cumulated counts over the five scores, so that the
    choice is the best one on this grid. Among equals the one with the highest cutoffs is taken.
    """
    planted = np.concatenate([np.asarray(p, dtype=object) for _, p in plantings])
    wanted = dict(WANTED if wanted is None else wanted)
    for label in wanted:
        if not (planted == label).any():
            raise AuditError(f"no {label} is planted", mend="plant some, or leave it out of the wanted recalls")
    score = np.concatenate([np.nan_to_num(_run(pool, settings).score, nan=-1.0) for pool, _ in plantings])
    aim = np.isin(planted, list(wanted))
    edges = [_edges(score[aim, r]) for r in range(len(RULES))]
    place = np.stack([np.searchsorted(e, score[:, r], side="right") for r, e in enumerate(edges)], axis=1)
    passed = _passed(place)
    flagged = len(score) - passed
    enough = np.ones(flagged.shape, bool)
    reached = {}
    for label, least in wanted.items():
        mine = planted == label
        found = mine.sum() - _passed(place[mine])
        reached[label] = found.max() / mine.sum()
        enough &= found >= _needed(int(mine.sum()), least, sure)
    if not enough.any():
        label = min(reached, key=lambda x: reached[x] - wanted[x])
        what = f"no thresholds find {wanted[label]:.0%} of the planted {label} (at most {reached[label]:.1%})"
        what += ", by the lower end of the interval" if sure else ""
        raise AuditError(what, mend="lower the wanted recall, plant more, or use a larger panel")
    best = flagged[enough].min()
    # the last in this order has the highest cutoffs
    at = np.argwhere(enough & (flagged == best))[-1]
    cutoffs = tuple(float(e[t]) if t < len(e) else float("inf") for e, t in zip(edges, at))
    chosen = replace(settings or RuleSettings(), cutoffs=cutoffs, budget=None)
    return replace(measure(plantings, chosen), tried=int(enough.size))


def measure(plantings: Sequence[tuple[CurationPool, ArrayLike]], settings: RuleSettings | None = None) -> Calibration:
    """What given thresholds do on planted defects: of other plantings, or the default thresholds."""
    planted = np.concatenate([np.asarray(p, dtype=object) for _, p in plantings])
    results = [_run(pool, settings) for pool, _ in plantings]
    flag, candidates = (np.concatenate([getattr(r, name) for r in results]) for name in ("flag", "candidates"))
    return Calibration(settings or RuleSettings(), int(candidates.sum()), float(candidates.mean()),
                       recall_table(candidates, planted), precision_table(flag, candidates, planted), 1)  # fmt: skip


def recall_table(candidates: NDArray[np.bool_], planted: ArrayLike) -> pd.DataFrame:
    """Found of each planted label: columns label, planted, found, recall, low, high (Wilson, 95%)."""
    planted = np.asarray(planted, dtype=object)
    rows = []
    for label in sorted({p for p in planted if p}):
        mine = planted == label
        n, found = int(mine.sum()), int((mine & candidates).sum())
        interval = wilson(found, n)
        rows.append((label, n, found, found / n, interval.low, interval.high))
    return pd.DataFrame(rows, columns=["label", "planted", "found", "recall", "low", "high"])


def precision_table(flags: NDArray[np.bool_], candidates: NDArray[np.bool_], planted: ArrayLike) -> pd.DataFrame:
    """What each rule flags (``flags``, shape (items, 5)), and ``any`` for the candidates of all of them.

    Returns
    -------
    frame : rule, name, flagged, a count for each planted label,
        planted (of any label), precision, low, high (Wilson, 95%), alone (planted items that no other rule flags).
        Items whose own defects nobody planted count as false, so that a precision is a lower bound.
    """
    planted = np.asarray(planted, dtype=object)
    labels = sorted({p for p in planted if p})
    several = flags.sum(axis=1)
    rows = []
    for r, (rule, name) in enumerate([*RULES.items(), ("any", "any rule")]):
        flag = flags[:, r] if rule != "any" else candidates
        hit = flag & (planted != "")
        n, right = int(flag.sum()), int(hit.sum())
        interval = wilson(right, n) if n else None
        rows.append({
            "rule": rule, "name": name, "flagged": n, **{x: int((flag & (planted == x)).sum()) for x in labels},
            "planted": right, "precision": right / n if n else float("nan"),
            "low": interval.low if interval else float("nan"), "high": interval.high if interval else float("nan"),
            "alone": int((hit & (several == 1)).sum()) if rule != "any" else right,
        })  # fmt: skip
    return pd.DataFrame(rows)


def _run(pool: CurationPool, settings: RuleSettings | None) -> RuleResult:
    answers = None if pool.answers is None else pool.answers.of(pool.panel)
    settings = settings or RuleSettings()
    families = list(pool.providers[pool.panel]) if settings.family_aware else None
    known = np.ones(len(pool.items), bool) if pool.answers is None else pool.answers.key != -2
    if "key" in pool.items:
        known = pool.items["key"].notna().to_numpy() & pool.items["key"].astype(str).ne("").to_numpy()
    return rules(answers, pool.full.of(pool.panel), pool.k, pool.source, settings, families, known)


def _needed(n: int, least: float, sure: bool) -> int:
    """How many of ``n`` planted items must be found; ``n + 1`` where even all are too few to be sure."""
    if not sure:
        return int(np.ceil(least * n - 1e-9))
    return next((k for k in range(n + 1) if wilson(k, n).low >= least), n + 1)


def _edges(score: NDArray) -> NDArray[np.float64]:
    """Scores to try as a cutoff, rising: 0.5 and quantiles of the scores of the planted items above 0."""
    above = score[score > 0]
    tried = np.quantile(above, np.linspace(0, 1, LEVELS - 2), method="lower") if len(above) else np.array([])
    return np.unique(np.append(tried, 0.5))


def _passed(place: NDArray) -> NDArray:
    """Items that no rule flags, for every combination of cutoffs.

    Parameters
    ----------
    place : number of tried cutoffs that each score reaches, shape (items, 5).

    Returns
    -------
    array of shape (LEVELS,) * 5: at ``t``, items with ``place < t + 1`` under every rule.
    """
    cells = np.zeros((LEVELS,) * place.shape[1], np.int32)
    np.add.at(cells, tuple(place.T), 1)
    for axis in range(cells.ndim):
        np.cumsum(cells, axis=axis, out=cells)
    return cells
