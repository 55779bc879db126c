"""One audit of one pool: gate, detectors, statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from auditlib.counts import count, why_not
from auditlib.frames import SEVERITIES, coverage_row, frame
from auditlib.params import CAPABILITIES, AuditParams, Params
from auditlib.pool import Pool


@dataclass(frozen=True, repr=False)
class Audit:
    """What an audit found. Frames follow the contracts in :mod:`auditlib.frames`.

    ``counts`` has one row per item and arm, ``draws`` the Monte-Carlo null of the headline share, ``detectors`` one
    row per detector with its state, ``steps`` the counts of the pipeline. ``responses`` and ``judgements`` are read
    from disk when first asked for, where the audit was loaded from there.
    """

    pool_name: str
    benchmark: str
    params: Params | None
    items: pd.DataFrame
    models: pd.DataFrame
    findings: pd.DataFrame
    statistics: pd.DataFrame
    counts: pd.DataFrame
    draws: pd.DataFrame
    coverage: pd.DataFrame
    detectors: pd.DataFrame
    steps: dict[str, Any]
    provenance: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[Path, ...] = ()
    texts: Callable[[str], pd.DataFrame | None] = field(default=lambda name: None, repr=False)
    studies: Callable[[str], Any] = field(default=lambda name: None, repr=False)

    @cached_property
    def responses(self) -> pd.DataFrame | None:
        """Replies with letter, rule and status; None for a pool of bare hits."""
        return self.texts("responses")

    @cached_property
    def judgements(self) -> pd.DataFrame | None:
        return self.texts("judgements")

    def study(self, name: str) -> Any:
        """The result of a capability's study of this pool (curation ...); None where its notebook has not been run."""
        return self.studies(name)

    @cached_property
    def all_findings(self) -> pd.DataFrame:
        """The audit's findings, and those of every study of this pool."""
        results = [r for name in CAPABILITIES if (r := self.study(name)) is not None]
        more = [r.frames["findings"] for r in results if "findings" in r.frames]
        return pd.concat([self.findings, *more], ignore_index=True) if more else self.findings

    @property
    def settings(self) -> AuditParams:
        return self.params.audit if self.params else AuditParams()

    @property
    def arm(self) -> str:
        """The headline arm."""
        return self.steps["arms"][0] if self.steps["arms"] else ""

    @property
    def has_blind(self) -> bool:
        return bool(self.steps["has_blind"])

    def statistic(self, metric: str, **where: str) -> pd.DataFrame:
        """Rows of one metric; ``where`` filters columns, which default to the headline (all models, all strata)."""
        table = self.statistics[self.statistics["metric"] == metric]
        for column, value in ({"models": "all", "stratum": "all"} | where).items():
            table = table[table[column] == value]
        return table

    def summary(self) -> pd.DataFrame:
        """The headline numbers as a small frame."""
        from auditlib.summary import headline

        return headline(self)

    def item(self, item: str | int) -> Any:
        """Everything about one item: image, options, votes, replies, reasons.

        Raises
        ------
        AuditError
            When the pool has no such item; the nearest ids are named.
        """
        from auditlib.item_view import item_view

        return item_view(self, str(item))

    def __repr__(self) -> str:
        lines = self.summary().apply(lambda r: "  ".join(filter(None, r)), axis=1)
        return "\n  ".join([f"Audit of {self.benchmark}, pool {self.pool_name}", *lines])

    def _repr_html_(self) -> str:
        from auditlib.summary import card

        return card(self)


def audit(pool: Pool, *, limit: int | None = None) -> Audit:
    """Audit a pool: integrity gate, detectors, statistics.

    Parameters
    ----------
    pool : Pool
    limit : first items only, for a quick look.

    Returns
    -------
    Audit
        Deterministic given the pool, its params and seed.
    """
    from auditlib.detectors import DETECTORS, run_detectors
    from auditlib.extensions import extensions_of
    from auditlib.integrity import check_items, check_runs
    from auditlib.metrics import statistics
    from auditlib.threads import single_threaded

    if limit is not None:
        pool = pool.head(limit)
    own = extensions_of(pool.params).detectors
    with single_threaded():
        gate = check_items(pool)
        findings, states = run_detectors(pool, pool.settings, DETECTORS | own)
        stats, draws = statistics(pool)
    findings = _in_order(pd.concat([gate, findings], ignore_index=True), pool.items["item"])
    missed = [
        coverage_row("not run", n=0, reason=f"{d}: {r}")
        for d, r in states.loc[states["state"] == "not run", ["detector", "reason"]].itertuples(index=False)
    ]
    coverage = pd.concat([pool.coverage, check_runs(pool), frame("coverage", missed)], ignore_index=True)
    frames = {"responses": pool.responses, "judgements": pool.judgements}
    return Audit(
        pool_name=pool.name,
        benchmark=pool.benchmark,
        params=pool.params,
        items=pool.items,
        models=pool.models,
        findings=findings,
        statistics=stats,
        counts=_counts_frame(pool),
        draws=draws,
        coverage=coverage.reindex(columns=frame("coverage").columns).fillna({"item": "", "reason": ""}),
        detectors=states,
        steps=_steps(pool, findings, states, limit),
        provenance=pool.provenance,
        inputs=pool.inputs,
        texts=frames.get,
    )


def _in_order(findings: pd.DataFrame, ids: pd.Series) -> pd.DataFrame:
    place = pd.Series(np.arange(len(ids)), index=ids.to_numpy())
    order = ["integrity", *dict.fromkeys(findings["detector"])]
    rank = findings["detector"].map({d: i for i, d in reversed(list(enumerate(order)))})
    keys = pd.DataFrame(
        {"d": rank.to_numpy(), "a": findings["arm"].to_numpy(), "i": findings["item"].map(place).to_numpy()}
    )
    out = findings.iloc[np.lexsort((keys["i"], keys["a"].astype(str), keys["d"]))].reset_index(drop=True)
    out["score"] = pd.to_numeric(out["score"]).astype(float)
    out["flag"] = out["flag"].astype(bool)
    return out


def _counts_frame(pool: Pool) -> pd.DataFrame:
    """F, B, category per item and arm, in the contract of counts.parquet."""
    from auditlib.metrics.shares import design_labels
    from auditlib.stats.categories import CATEGORIES, boundary, categories

    parts = []
    labels = design_labels(pool)
    k = pool.k if pool.k is not None else np.full(len(pool.items), np.nan)
    for arm in pool.arm_names:
        if why_not(pool, pool.arms[arm]):
            continue
        c = count(pool, arm)
        code = categories(c.F, c.B, c.total)
        strata = (
            pool.items["stratum"].to_numpy(dtype=object) if "stratum" in pool.items else np.full(len(pool.items), None)
        )
        part = pd.DataFrame(
            {
                "item": pool.items["item"].to_numpy()[c.keep],
                "stratum": strata[c.keep],
                "k": k[c.keep],
                "arm": arm,
                "F": c.F,
                "B": c.B,
                "n": c.total // c.draws,
                "R": c.draws,
                "category": pd.Categorical.from_codes(code, CATEGORIES),
                "zero_gain": c.F == c.B,
                "boundary": boundary(c.F, c.B, c.total),
            }
        )
        part["design"] = None if labels is None else labels[c.keep]
        parts.append(part)
    columns = ["item", "stratum", "k", "arm", "F", "B", "n", "R", "category", "zero_gain", "boundary", "design"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _steps(pool: Pool, findings: pd.DataFrame, states: pd.DataFrame, limit: int | None) -> dict[str, Any]:
    from auditlib.detectors.contract import of_headline_arm

    arms = pool.arm_names
    scored = {
        c: int(sum(pool.arms[a].scored_models(c).any() and pool.arms[a].scored_models(c).sum() for a in arms[:1]))
        for c in ("full", "blind")
    }
    shown = of_headline_arm(findings, arms[0])
    flagged = shown[shown["flag"]]
    return {
        "models": len(pool.models),
        "items": len(pool.items),
        "arms": arms,
        "has_blind": pool.has_blind,
        "full_runs": scored["full"],
        "blind_runs": scored["blind"] if pool.has_blind else 0,
        "limit": limit,
        "counted": {a: count(pool, a).n for a in arms if not why_not(pool, pool.arms[a])},
        "counted_models": {a: list(count(pool, a).models) for a in arms if not why_not(pool, pool.arms[a])},
        "not_counted": {a: why_not(pool, pool.arms[a]) for a in arms if why_not(pool, pool.arms[a])},
        "detectors_run": int((states["state"] == "run").sum()),
        "detectors": len(states),
        "severities": {s: int(flagged.loc[flagged["severity"] == s, "item"].nunique()) for s in SEVERITIES},
        "strata": 0 if pool.strata is None else len(set(pool.strata)),
        "clusters": pool.cluster is not None,
    }
