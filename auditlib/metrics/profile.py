"""Statistics by model: accuracy, what replies could not be read, gain, and where the arms disagree."""

from __future__ import annotations

from typing import Any

import numpy as np

from auditlib.counts import count, why_not
from auditlib.metrics.rows import noted, row, share_fields
from auditlib.pool import Pool
from auditlib.stats.categories import CATEGORIES, categories
from auditlib.stats.rates import rate_interval


def profile_rows(pool: Pool) -> list[dict[str, Any]]:
    """Rows by model (and condition), then the flow of items between categories of the judged and the exact arm."""
    return _accuracy(pool) + _replies(pool) + _gains(pool) + _disagreements(pool) + _flow(pool)


def _accuracy(pool: Pool) -> list[dict[str, Any]]:
    rows, cluster = [], pool.cluster
    for name in pool.arm_names:
        arm = pool.arms[name]
        for condition, hits in arm.hits.items():
            for j, model in enumerate(pool.model_names):
                draws = len(hits) if arm.trials is None else int(arm.trials[condition][:, j].sum())
                k = int(hits[:, j].sum())
                if not draws:
                    continue
                # with repeated draws the items, not the draws, are the units of the interval
                t = None if arm.trials is None else arm.trials[condition][:, j]
                ends = noted(rate_interval(hits[:, j], t, cluster, unit=arm.unit))
                n = draws // arm.unit
                rows.append(row("accuracy", ends, arm=name, models=model, level=condition, n=n, estimate=k / draws))
    return rows


def _replies(pool: Pool) -> list[dict[str, Any]]:
    """Rates of replies that give no answer, that refuse, and that failed; of all replies that were asked for."""
    rows, cluster = [], pool.cluster
    arm = "exact" if "exact" in pool.arms else "exact_yesno"
    readable = pool.items["answer_type"].isin(["choice", "yesno"]).to_numpy() if "answer_type" in pool.items else None
    for condition in (c for c in ("full", "blind") if c in pool.letters):
        for j, model in enumerate(pool.model_names):
            asked = _asked(pool, condition, j)
            for kind, table in (("unparseable", pool.abstained), ("refused", pool.refused), ("failed", pool.failed)):
                if condition not in table:
                    continue
                of = asked & readable if kind == "unparseable" and readable is not None else asked
                if of.any():
                    fields = share_fields(table[condition][of, j], None if cluster is None else cluster[of])
                    rows.append(row(f"{condition}_{kind}_rate", fields, models=model, arm=arm, level=condition))
    return rows


def _asked(pool: Pool, condition: str, j: int) -> np.ndarray:
    """Items for which a reply was asked of a model: there is a row, whatever became of it."""
    replied = pool.letters[condition][:, j] > -2
    return replied | pool.failed[condition][:, j] if condition in pool.failed else replied


def _gains(pool: Pool) -> list[dict[str, Any]]:
    """Multi-modal gain and leakage (Chen et al. 2024) of each model, over the items counted in both conditions."""
    rows = []
    base = dict(zip(pool.models["model"], pool.models["text_base"])) if "text_base" in pool.models else {}
    for name in pool.arm_names:
        arm = pool.arms[name]
        if why_not(pool, arm):
            continue
        for j, model in enumerate(pool.model_names):
            both = np.ones(len(pool.items), bool)
            for c in ("full", "blind"):
                seen = arm.observed(c)
                both &= True if seen is None else seen[:, j]
            n = int(both.sum())
            if not n:
                continue
            full, blind = (_mean(arm, c, j, both) for c in ("full", "blind"))
            rows.append(row("multimodal_gain", arm=name, models=model, n=n, estimate=full - blind))
            other = base.get(model)
            if isinstance(other, str) and other in pool.model_names:
                b = pool.model_names.index(other)
                condition = "blind" if arm.scored_models("blind")[b] else "full"
                leak = max(0.0, blind - _mean(arm, condition, b, both))
                rows.append(
                    row("multimodal_leakage", arm=name, models=model, n=n, estimate=leak, note=f"text base {other}")
                )
    return rows


def _mean(arm, condition: str, j: int, items: np.ndarray) -> float:
    draws = items.sum() if arm.trials is None else arm.trials[condition][items, j].sum()
    return float(arm.hits[condition][items, j].sum() / draws) if draws else float("nan")


def _parser_arm(pool: Pool) -> str | None:
    """The arm without a judge that the judged arm is compared with, where both exist."""
    if "judged" not in pool.arms:
        return None
    return next((a for a in ("exact", "exact_yesno") if a in pool.arms), None)


def _disagreements(pool: Pool) -> list[dict[str, Any]]:
    """Model-item pairs that the judge and the parser score differently."""
    parser = _parser_arm(pool)
    if parser is None:
        return []
    judged, exact = pool.arms["judged"], pool.arms[parser]
    rows = []
    for j, model in enumerate(pool.model_names):
        total, pairs = 0, 0
        for condition in (c for c in judged.hits if c in exact.hits):
            both = judged.trials[condition][:, j].astype(bool) & exact.trials[condition][:, j].astype(bool)
            if not both.any():
                continue
            h, t = (
                [a[condition][both, j].astype(int) for a in arrays]
                for arrays in ((judged.hits, exact.hits), (judged.trials, exact.trials))
            )
            differ = int((h[0] * t[1] != h[1] * t[0]).sum())
            total, pairs = total + differ, pairs + int(both.sum())
            rows.append(
                row(
                    "judge_parser_disagreement",
                    models=model,
                    level=condition,
                    n=differ,
                    estimate=differ / int(both.sum()),
                )
            )
        if pairs:
            rows.append(row("judge_parser_disagreement", models=model, level="all", n=total, estimate=total / pairs))
    return rows


def _flow(pool: Pool) -> list[dict[str, Any]]:
    """Items by category under the judged and under the exact arm."""
    parser = _parser_arm(pool)
    if parser is None or why_not(pool, pool.arms["judged"]) or why_not(pool, pool.arms[parser]):
        return []
    a, b = count(pool, "judged"), count(pool, parser)
    both = a.keep & b.keep
    n = int(both.sum())
    if not n:
        return []
    ca = categories(a.F, a.B, a.total)[both[a.keep]]
    cb = categories(b.F, b.B, b.total)[both[b.keep]]
    rows = []
    for i, old in enumerate(CATEGORIES):
        for j, new in enumerate(CATEGORIES):
            k = int(((ca == i) & (cb == j)).sum())
            if k:
                rows.append(row("category_flow", level=f"{old}>{new}", n=k, estimate=k / n))
    cluster = None if pool.cluster is None else pool.cluster[both]
    fields = share_fields(ca != cb, cluster) | {"n": int((ca != cb).sum())}
    return [*rows, row("category_changed", fields)]
