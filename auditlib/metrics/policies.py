"""What the numbers would be if replies without an answer were not counted wrong: left out, at chance, or bounded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from auditlib.counts import count, steps, why_not
from auditlib.metrics.blocks import strata_labels
from auditlib.metrics.rows import noted, row
from auditlib.metrics.shares import SHARES, null_rows
from auditlib.pool import Arm, Pool
from auditlib.stats.bounds import attainable_bounds, merge
from auditlib.stats.categories import category_region
from auditlib.stats.rates import rate_interval

EXCLUDED = "model-item pairs in which a reply, full or blind, gives no answer and is no hit leave both counts"


def policy_rows(pool: Pool) -> list[dict[str, Any]]:
    """Sensitivity rows by policy of abstention, only where replies without an answer are known.

    ``excluded``: the pair leaves both counts. ``chance``: accuracies with 1/k for an abstention, never compared for
    equality. ``bounds`` and ``bounds_both``: what any answers in their place could make of a share.
    """
    rows: list[dict[str, Any]] = []
    for name in pool.arm_names:
        arm = pool.arms[name]
        mute = {c: silent(pool, arm, c) for c in ("full", "blind") if c in pool.abstained and c in arm.hits}
        if not any(m.any() for m in mute.values()):
            continue
        rows += _accuracy(pool, arm, mute)
        if len(mute) == 2 and not why_not(pool, arm):
            rows += _excluded(pool, arm, mute) + _bounds(pool, name)
    return rows


def silent(pool: Pool, arm: Arm, condition: str) -> np.ndarray:
    """Scored cells with a reply that gives no answer and no hit: what the judge accepts is no abstention."""
    mute = pool.abstained[condition] & (arm.hits[condition] == 0)
    seen = arm.observed(condition)
    return mute if seen is None else mute & seen


def _excluded(pool: Pool, arm: Arm, mute: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Every share with abstained pairs left out, as missing cells are."""
    gone = mute["full"] | mute["blind"]
    old = arm.trials or {c: np.ones(h.shape, np.uint8) for c, h in arm.hits.items()}
    trials = {c: np.where(gone, 0, old[c]).astype(old[c].dtype) for c in ("full", "blind")}
    hits = {c: np.where(gone, 0, arm.hits[c]).astype(arm.hits[c].dtype) for c in ("full", "blind")}
    other = replace(pool, arms={arm.name: Arm(arm.name, hits, trials, arm.unit)})
    if why_not(other, other.arms[arm.name]):
        return []
    counts = count(other, arm.name, pairwise=True)
    labels, words = strata_labels(pool)
    rows = []
    for share in SHARES:
        rows += null_rows(other, share, counts, "all", labels, words, None, intervals=False)
    rows = [r for r in rows if r["metric"] != "zero_gain_between_strata"]
    return [
        r | {"policy": "excluded", "family": "sensitivity", "note": "; ".join(filter(None, [EXCLUDED, r["note"]]))}
        for r in rows
    ]


def _accuracy(pool: Pool, arm: Arm, mute: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Accuracy with abstentions left out, and at one in k; the expected gain where both runs have it."""
    rows = []
    chance = _chance(pool)
    cluster = pool.cluster
    for j, model in enumerate(pool.model_names):
        means = {}
        for c, table in mute.items():
            h = arm.hits[c][:, j].astype(float)
            t = np.ones(len(h)) if arm.trials is None else arm.trials[c][:, j].astype(float)
            none = table[:, j]
            if not none.any():
                if t.sum():
                    means[c] = h.sum() / t.sum()
                continue
            common = {"arm": arm.name, "models": model, "level": c, "family": "sensitivity"}
            rest = np.where(none, 0, t)
            if rest.sum():
                ends = noted(rate_interval(h, rest, cluster, unit=arm.unit))
                n, note = int((rest > 0).sum()), f"{int(none.sum())} items without an answer left out"
                share = float(h.sum() / rest.sum())
                rows.append(row("accuracy", ends, **common, policy="excluded", n=n, estimate=share, note=note))
            if np.isnan(chance[none]).any() or (t[none] != arm.unit).any():
                continue  # options unknown, or repeated draws of which only some abstain
            lucky = np.where(none, arm.unit * chance, h)
            ends = noted(rate_interval(lucky, t, cluster, unit=arm.unit))
            note = f"{int(none.sum())} items without an answer count one over the options shown"
            means[c] = float(lucky.sum() / t.sum())
            n = int((t > 0).sum())
            rows.append(row("accuracy", ends, **common, policy="chance", n=n, estimate=means[c], note=note))
        rows += _gain_excluded(arm, mute, j, model)
        if len(means) == 2 and any(table[:, j].any() for table in mute.values()):
            rows.append(
                row("multimodal_gain", arm=arm.name, models=model, policy="chance", family="sensitivity",
                    estimate=means["full"] - means["blind"], note="expected gain, abstentions at chance")
            )  # fmt: skip
    return rows


def _gain_excluded(arm: Arm, mute: dict[str, np.ndarray], j: int, model: str) -> list[dict[str, Any]]:
    """Gain of a model over the items that it answers both with and without the image."""
    gone = np.logical_or.reduce([table[:, j] for table in mute.values()])
    if len(mute) < 2 or not gone.any():
        return []
    trials = {c: np.ones(len(gone)) if arm.trials is None else arm.trials[c][:, j].astype(float) for c in mute}
    used = ~gone & (trials["full"] > 0) & (trials["blind"] > 0)
    if not used.any():
        return []
    full, blind = (float(arm.hits[c][used, j].sum() / trials[c][used].sum()) for c in ("full", "blind"))
    note = f"{int(gone.sum())} items without an answer, full or blind, left out"
    return [
        row("multimodal_gain", arm=arm.name, models=model, policy="excluded", family="sensitivity",
            n=int(used.sum()), estimate=full - blind, note=note)
    ]  # fmt: skip


def _chance(pool: Pool) -> np.ndarray:
    """One over the options shown, per item; a half for yes/no, NaN where unknown."""
    k = np.full(len(pool.items), np.nan) if pool.k is None else pool.k.copy()
    if "answer_type" in pool.items:
        k[pool.items["answer_type"].eq("yesno").to_numpy() & np.isnan(k)] = 2
    return 1 / np.where(k > 0, k, np.nan)


def _bounds(pool: Pool, arm_name: str) -> list[dict[str, Any]]:
    """Bounds of each share when every reply without an answer could be right or wrong.

    Policy ``bounds`` frees blind replies only (a model that sees the image and names no option has failed the item);
    ``bounds_both`` frees those of full runs too. A graded verdict may then take any step; of repeated draws of which
    some give no answer, all that are no hit are freed: both bounds are then safe, not sharp.
    """
    arm, counts = pool.arms[arm_name], count(pool, arm_name)
    columns = np.array([pool.model_names.index(m) for m in counts.models])
    _, factor, tops = steps(arm, columns)
    free, loose = {}, False
    for c in ("full", "blind"):
        hits = arm.hits[c][np.ix_(counts.keep, columns)].astype(np.int64)
        mute = pool.abstained[c][np.ix_(counts.keep, columns)]
        # a reply in which the judge found the right option is no abstention, whatever the parser says
        mute &= (hits == 0) | (tops[c] > arm.unit)
        mute = mute if counts.cells is None else mute & counts.cells
        free[c] = np.where(mute, (tops[c] - hits) * factor[c], 0).sum(axis=1)
        loose |= bool((tops[c] > 1).any())
    if not (free["full"].any() or free["blind"].any()):
        return []
    rows = []
    words = "in which the parser finds no answer, and which is no hit, may be right or wrong"
    words += "; safe bounds: any grade or number of draws" if loose else ""
    notes = {"bounds": f"each blind reply {words}", "bounds_both": f"each reply, full or blind, {words}"}
    for policy, note in notes.items():
        full = free["full"] if policy == "bounds_both" else np.zeros_like(free["full"])
        for share in SHARES:
            parts = []
            for total in sorted(set(counts.total.tolist())):
                at = counts.total == total
                region = category_region(share, int(total))
                parts.append(attainable_bounds(counts.F[at], full[at], counts.B[at], free["blind"][at], region))
            b = merge(parts)
            rows.append(
                row(f"{share}_share", arm=arm_name, policy=policy, n=counts.n, low=b.low, high=b.high, note=note)
            )
    return rows
