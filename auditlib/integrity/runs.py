"""Warnings about runs: what the files say that makes the numbers of a run doubtful."""

from __future__ import annotations

import numpy as np
import pandas as pd

from auditlib.counts import count, why_not
from auditlib.frames import coverage_row, frame
from auditlib.integrity.duplicates import duplicates
from auditlib.integrity.replies import reply_warnings
from auditlib.integrity.verdicts import verdict_warnings
from auditlib.pool import Pool

#: long replies that are equal with and without the image in this share of cells are the same run twice
SAME_RUN_SHARE = 0.9
#: words that a reply needs before its equality says anything
LONG_REPLY = 30
#: items from which on an accuracy of 0 or 1 is not believed
ENOUGH = 20


def check_runs(pool: Pool) -> pd.DataFrame:
    """Coverage rows that warn about runs.

    Same run twice (with and without the image, or under two names), blind above full, no image in the full run,
    accuracy below chance, 0 or 1, replies of another item, verdicts that no judge gave or that contradict each other.
    """
    rows = _not_counted(pool) + _same_run(pool) + _blind_above_full(pool) + _full_without_image(pool)
    rows += _below_chance(pool) + _all_or_nothing(pool) + reply_warnings(pool) + verdict_warnings(pool)
    return frame("coverage", rows + _repeated_texts(pool))


def _not_counted(pool: Pool) -> list[dict]:
    """Models and items that the full-against-blind numbers of an arm leave out."""
    rows = []
    for name in pool.arm_names:
        arm = pool.arms[name]
        if why_not(pool, arm):
            continue
        counts = count(pool, name)
        if counts.note:
            rows.append(coverage_row("excluded", n=len(pool.items) - counts.n, reason=f"{name} arm: {counts.note}"))
        for condition in ("full", "blind"):
            scored = arm.scored_models(condition)
            for j in np.flatnonzero(~scored):
                rows.append(
                    _warn(
                        len(pool.items),
                        f"no scored run ({name} arm): not in the numbers that compare with and without the image",
                        pool.model_names[j],
                        condition,
                    )
                )
            if arm.trials is not None:
                fewer = scored & (arm.trials[condition].max(axis=0) < counts.draws)
                for j in np.flatnonzero(fewer):
                    rows.append(
                        _warn(
                            len(pool.items),
                            f"{arm.trials[condition][:, j].max()} of {counts.draws} draws "
                            f"({name} arm): not counted beside models with more",
                            pool.model_names[j],
                            condition,
                        )
                    )
    return rows


def _same_run(pool: Pool) -> list[dict]:
    r = pool.responses
    if r is None or "blind" not in set(r["condition"]):
        return []
    on = ["item", "model", "sample"] if "sample" in r else ["item", "model"]
    full, blind = (r.loc[r["condition"] == c, [*on, "prediction"]] for c in ("full", "blind"))
    both = full.merge(blind, on=on, suffixes=("", "_blind"))
    rows = []
    for model, part in both.groupby("model", sort=True):
        equal = part["prediction"].eq(part["prediction_blind"])
        long = part["prediction"].str.len() >= LONG_REPLY
        if (n := int(long.sum())) >= 20 and equal[long].mean() >= SAME_RUN_SHARE:
            rows.append(
                _warn(
                    int((equal & long).sum()),
                    f"{100 * equal[long].mean():.0f}% of {n} long replies are equal with "
                    "and without the image: probably the same run twice",
                    model,
                )
            )
        elif len(part) >= 20 and equal.mean() >= 0.99:
            rows.append(
                _warn(
                    int(equal.sum()),
                    f"{100 * equal.mean():.0f}% of all replies are equal with and without the "
                    "image: possibly the same run twice",
                    model,
                )
            )
    return rows


def _warn(n: int, reason: str, model: str = "", condition: str = "") -> dict:
    return coverage_row("warning", n=n, model=model, condition=condition, reason=reason)


def _blind_above_full(pool: Pool) -> list[dict]:
    rows = []
    for name in pool.arm_names:
        arm = pool.arms[name]
        if why_not(pool, arm):
            continue
        for j in np.flatnonzero(arm.scored_models("full") & arm.scored_models("blind")):
            full, blind = _accuracy(arm, "full", j), _accuracy(arm, "blind", j)
            if blind > full:
                model = pool.model_names[j]
                said = f"{model}: accuracy without the image {blind:.3f} exceeds that with it {full:.3f} ({name} arm)"
                rows.append(_warn(len(pool.items), said, model))
    return rows


def _accuracy(arm, condition: str, j: int, rows=slice(None)) -> float:
    hits = arm.hits[condition][rows, j]
    draws = len(hits) if arm.trials is None else int(arm.trials[condition][rows, j].sum())
    return float(hits.sum()) / draws if draws else float("nan")


def _full_without_image(pool: Pool) -> list[dict]:
    """Replies of full runs that say no image was given (the reader marks them as refusals)."""
    if "full" not in pool.refused:
        return []
    counts = pool.refused["full"].sum(axis=0)
    return [
        _warn(int(n), "replies of the run with image say that none was given, or refuse", pool.model_names[j], "full")
        for j, n in enumerate(counts.tolist())
        if n
    ]


def _below_chance(pool: Pool) -> list[dict]:
    """Models below chance in every stratum of the full run."""
    if pool.k is None or not (pool.k > 1).any():
        return []
    arm, rows = pool.arm, []
    if "full" not in arm.hits:
        return rows
    strata = pool.strata if pool.strata is not None else np.zeros(len(pool.items), dtype=object)
    inverse = pd.factorize(strata)[0]
    for j, model in enumerate(pool.model_names):
        if not arm.scored_models("full")[j]:
            continue
        below = []
        for s in range(inverse.max() + 1):
            here = (inverse == s) & (pool.k > 1)
            if here.any():
                below.append(_accuracy(arm, "full", j, here) < np.mean(1 / pool.k[here]))
        if below and all(below):
            rows.append(
                _warn(len(pool.items), "accuracy with the image is below chance in every stratum", model, "full")
            )
    return rows


def _all_or_nothing(pool: Pool) -> list[dict]:
    """Models with every item right, or none, in one run."""
    rows = []
    for name in pool.arm_names:
        arm = pool.arms[name]
        for condition in arm.hits:
            for j in np.flatnonzero(arm.scored_models(condition)):
                trials = len(pool.items) if arm.trials is None else int((arm.trials[condition][:, j] > 0).sum())
                share = _accuracy(arm, condition, j)
                if trials > ENOUGH and share in (0.0, 1.0):
                    said = f"accuracy is exactly {share:.0f} on {trials} items ({name} arm)"
                    rows.append(_warn(trials, said, pool.model_names[j], condition))
    return rows


def _repeated_texts(pool: Pool) -> list[dict]:
    """A note where items share their text by the benchmark's design."""
    found = duplicates(pool.items, near=False)
    if not found.by_design:
        return []
    said = "items share question and options with another by design; without their pictures no duplicate can be told"
    return [coverage_row("note", n=found.repeats, reason=said)]
