"""The gate before every audit: what the files themselves prove to be wrong, before any model is counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from auditlib.counts import count, why_not
from auditlib.detectors.contract import empty_findings, findings
from auditlib.frames import LETTERS, coverage_row, evidence, frame, option_name
from auditlib.pool import Pool

#: long replies that are equal with and without the image in this share of cells are the same run twice
SAME_RUN_SHARE = 0.9
#: words that a reply needs before its equality says anything
LONG_REPLY = 30

NAME = "integrity"


def check_items(pool: Pool) -> pd.DataFrame:
    """Findings about keys and options: one row per item and defect, score 1, severity high.

    Checks: key outside the options shown; key option without text; option text of the dataset that the models never
    saw (a lost "None").
    """
    if "key" not in pool.items or "options" not in pool.items:
        return empty_findings()
    found = [
        (item, *defect) for item, *facts in _item_rows(pool.items) for check in CHECKS if (defect := check(*facts))
    ]
    return findings(
        NAME,
        "",
        item=[f[0] for f in found],
        score=1.0,
        flag=True,
        severity="high",
        evidence=[evidence(check=f[1], **f[3]) for f in found],
        message=[f[2] for f in found],
    )


def _item_rows(items: pd.DataFrame):
    written = items["options_written"] if "options_written" in items else [None] * len(items)
    for item, key, options, wrote in zip(items["item"], items["key"], items["options"], written):
        if isinstance(key, str) and len(key) == 1 and key in LETTERS and _known(options):
            yield item, key, [str(t) for t in options], [str(t) for t in wrote] if _known(wrote) else None


def _known(options: Any) -> bool:
    return isinstance(options, list | tuple | np.ndarray) and any(str(t) for t in options)


Defect = tuple[str, str, dict[str, Any]]


def _key_outside(key: str, options: list[str], written: list[str] | None) -> Defect | None:
    last = max(i for i, t in enumerate(options) if t)
    if LETTERS.index(key) <= last:
        return None
    if written is not None and LETTERS.index(key) < len(written) and written[LETTERS.index(key)]:
        return None
    return (
        "key_outside_options",
        f"the key is {key}, the options end at {option_name(last)}",
        {"key": key, "options": options},
    )


def _key_without_text(key: str, options: list[str], written: list[str] | None) -> Defect | None:
    place = LETTERS.index(key)
    if written is not None and place < len(written) and written[place]:
        return None  # a lost option, said as such
    if place >= len(options) or options[place] or place > max(i for i, t in enumerate(options) if t):
        return None
    return "key_without_text", f"option {key}, the key, has no text in the runs", {"key": key, "options": options}


def _lost_option(key: str, options: list[str], written: list[str] | None) -> Defect | None:
    if written is None:
        return None
    lost = [i for i, t in enumerate(written) if t and not (options[i] if i < len(options) else "")]
    if not lost:
        return None
    names = ", ".join(f"{option_name(i)} {written[i]!r}" for i in lost)
    return (
        "lost_option",
        f"option {names} of the dataset never reached the models"
        + (" and is the key" if LETTERS.index(key) in lost else ""),
        {"key": key, "lost": [option_name(i) for i in lost], "written": written},
    )


CHECKS: tuple[Callable[..., Defect | None], ...] = (_key_outside, _key_without_text, _lost_option)


def check_runs(pool: Pool) -> pd.DataFrame:
    """Coverage rows that warn about runs: same run twice, blind above full, no image in the full run, chance."""
    rows = _not_counted(pool) + _same_run(pool) + _blind_above_full(pool) + _full_without_image(pool)
    rows += _below_chance(pool)
    return frame("coverage", rows)


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
