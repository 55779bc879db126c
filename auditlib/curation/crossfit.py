"""Items chosen with some providers' models, scores of the others: how much the choice itself moves the scores.

A model that took part in choosing the items lost exactly the items that it solves. Its score on the curated set falls
for that reason alone, and more than that of a model that took no part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.curation.clustered import codes
from auditlib.curation.data import CurationPool
from auditlib.curation.ranking import spearman
from auditlib.curation.scores import kept_mask, rates
from auditlib.curation.subsets import subset_averages
from auditlib.errors import AuditError

NAN = float("nan")


@dataclass(frozen=True)
class CrossFit:
    """Scores of models on items that others chose, beside those on items they helped to choose.

    Attributes
    ----------
    effect : panel-membership effect: the change of the benchmark average that taking part in the choice makes, the
        sets' difficulty taken out; negative = members look worse. Of models on the panel; mean over splits.
    low, high : central 95% over splits, a spread and no confidence interval.
    splits : splits of the providers. exhaustive : whether they are all there are.
    rank_spearman : correlation of the models' mean scores on sets of their own half and on sets of the other half.
    table : one row per model: model, provider, panel (whether it chooses at all), raw, member, outside (mean scores on
        items chosen with and without its provider's models), drop_member, drop_outside, sets_member, sets_outside
        (sets it was scored on, each way).
    halves : one row per split and half: split, half, providers, panel models, items kept, effect of the split.
    """

    effect: float
    low: float
    high: float
    splits: int
    exhaustive: bool
    rank_spearman: float
    table: pd.DataFrame = field(repr=False, compare=False)
    halves: pd.DataFrame = field(repr=False, compare=False)

    def as_row(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in
                ("effect", "low", "high", "splits", "exhaustive", "rank_spearman")}  # fmt: skip


def cross_fit(
    pool: CurationPool,
    select: Callable[[NDArray[np.intp]], ArrayLike],
    *,
    rng: np.random.Generator,
    splits: int = 20,
) -> CrossFit:
    """Choose items with one half of the providers, score the other half's models, and swap.

    Parameters
    ----------
    pool : CurationPool
        Models of ``pool.panel`` choose, those of ``pool.evaluated`` are scored; providers are split whole.
    select : function
        Takes the places of the panel's models (columns of the pool) and returns the kept items, bool (items,).
    rng : numpy Generator
    splits : splits of the panel's providers; all of them where there are no more.

    Raises
    ------
    AuditError
        Fewer than two providers on the panel, or a choice that keeps nothing.

    Notes
    -----
    With A and B the halves, ``s_h(S)`` the mean score of the panel's evaluated models of half h on the items S: the
    effect is ``((s_A(A) - s_A(B)) - (s_B(A) - s_B(B))) / 2``. A harder set lowers both halves and cancels. A model off
    the panel does not enter the effect; in the table it counts as a member where its provider's models choose.
    """
    provider = pool.providers
    chooser = sorted(set(provider[pool.panel]))
    if len(chooser) < 2:
        raise AuditError(f"the panel's models all come from {chooser[0] if chooser else 'nobody'}",
                         mend="name panel models of two providers at least")  # fmt: skip
    rate, models = rates(pool.full.of(pool.evaluated)), pool.evaluated
    chooses = np.isin(models, pool.panel)
    source = codes(pool.source, len(pool.items))[0]
    sides, exhaustive = _provider_halves(chooser, provider[pool.panel], splits, rng)
    scores, member, halves, effects = [], [], [], []
    for k, first in enumerate(sides):
        for half, side in enumerate((first, set(chooser) - first), 1):
            panel = pool.panel[np.isin(provider[pool.panel], list(side))]
            kept = kept_mask(select(panel), len(pool.items))
            scores.append(subset_averages(rate, source, kept[None])[0])
            member.append(np.isin(provider[models], list(side)))
            halves.append({"split": k, "half": half, "providers": ", ".join(sorted(side)),
                           "panel": len(panel), "items": int(kept.sum())})  # fmt: skip
        change = scores[-2] - scores[-1]
        a, b = (change[m & chooses & ~np.isnan(change)] for m in member[-2:])
        effects.append((a.mean() - b.mean()) / 2 if len(a) and len(b) else NAN)
        halves[-1]["effect"] = halves[-2]["effect"] = effects[-1]
    raw = subset_averages(rate, source, np.ones((1, len(source)), bool))[0]
    inside, times_in = _mean_where(np.array(scores), np.array(member))
    outside, times_out = _mean_where(np.array(scores), ~np.array(member))
    both = ~(np.isnan(inside) | np.isnan(outside))
    known = np.array(effects)[~np.isnan(effects)]
    low, high = np.quantile(known, [0.025, 0.975]) if len(known) else (NAN, NAN)
    table = pd.DataFrame({"model": pool.models["model"].to_numpy(object)[models], "provider": provider[models],
                          "panel": chooses, "raw": raw, "member": inside, "outside": outside,
                          "drop_member": raw - inside, "drop_outside": raw - outside, "sets_member": times_in,
                          "sets_outside": times_out})  # fmt: skip
    return CrossFit(
        effect=float(known.mean()) if len(known) else NAN,
        low=float(low),
        high=float(high),
        splits=len(sides),
        exhaustive=exhaustive,
        rank_spearman=float(spearman(inside[both], outside[both])) if both.sum() > 1 else NAN,
        table=table,
        halves=pd.DataFrame(halves),
    )


def membership_drop(rate: ArrayLike, source: ArrayLike, kept: ArrayLike, member: ArrayLike) -> dict[str, float]:
    """Mean fall of the benchmark average for members of the panel and for the others, on the set as it is.

    The difference mixes the effect of taking part with whatever else sets the panel's models apart; :func:`cross_fit`
    tells them apart.
    """
    x, mask, inside = np.asarray(rate, float), np.asarray(kept, bool), np.asarray(member, bool)
    raw, curated = subset_averages(x, source, np.vstack([np.ones(len(x), bool), mask]))
    fall = raw - curated
    known = ~np.isnan(fall)
    a, b = (float(fall[known & m].mean()) if (known & m).any() else NAN for m in (inside, ~inside))
    return {"members": int((known & inside).sum()), "others": int((known & ~inside).sum()), "drop_members": a,
            "drop_others": b, "difference": a - b}  # fmt: skip


def _mean_where(values: NDArray, where: NDArray) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Column means over the marked values that exist, and how many there are."""
    here = where & ~np.isnan(values)
    count = here.sum(axis=0)
    total = np.where(here, values, 0.0).sum(axis=0)
    return np.divide(total, count, out=np.full(len(total), NAN), where=count > 0), count


def _provider_halves(
    providers: list[str], panel: NDArray, splits: int, rng: np.random.Generator
) -> tuple[list[set[str]], bool]:
    """First halves of the splits: the most even ones by number of panel models where they can be listed.

    Up to 16 providers every split into two is listed; those that differ least in models come first, in random order
    among equals. Beyond that, random splits of half of the providers.
    """
    size = {p: int((panel == p).sum()) for p in providers}
    if len(providers) > 16:
        found: dict[frozenset[str], None] = {}
        while len(found) < splits:
            found[frozenset(rng.permutation(providers)[: len(providers) // 2].tolist())] = None
        return [set(f) for f in found], False
    anchor, others = providers[0], providers[1:]
    every = [{anchor, *c} for k in range(len(others)) for c in combinations(others, k)]
    total = sum(size.values())
    uneven = np.array([abs(2 * sum(size[p] for p in side) - total) for side in every])
    order = np.lexsort((rng.random(len(every)), uneven))
    return [every[i] for i in order[:splits]], len(every) <= splits
