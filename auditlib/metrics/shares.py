"""Shares of items by full and blind counts, each with its null, excess, intervals and p."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from auditlib.counts import Counts, count, smaller_pools, why_not
from auditlib.metrics.blocks import Blocks, blocks_of, strata_labels
from auditlib.metrics.rows import interval_fields, noted, row, share_fields
from auditlib.pool import Arm, Pool
from auditlib.stats.intervals import cluster_excess_interval, excess_interval
from auditlib.stats.null import NullResult, region_null
from auditlib.stats.rates import share_interval
from auditlib.stats.shuffle import cluster_shuffle

#: shares by the name of their region
SHARES = (
    "zero_gain", "text_only", "visual_dependent", "visual_supplement", "conflicting", "visual_dependent_majority",
)  # fmt: skip
HEADLINE = "zero_gain"


@dataclass(frozen=True)
class Draws:
    """Monte-Carlo draws of one share's null, as columns of the draws frame."""

    metric: str
    arm: str
    models: str
    stratum: str
    null_kind: str
    shares: np.ndarray

    def as_frame(self) -> pd.DataFrame:
        names = {k: getattr(self, k) for k in ("metric", "arm", "models", "stratum", "null_kind")}
        return pd.DataFrame(names | {"draw": np.arange(len(self.shares)), "share": self.shares})


def share_rows(pool: Pool) -> tuple[list[dict[str, Any]], list[Draws]]:
    """All share rows of a pool: arms x (all, strata, design labels, pools without a model or family).

    Returns
    -------
    rows : statistics rows; each region with an exact p also has its Monte-Carlo twin (``p_method`` tables).
    draws : the null draws of the headline share in each arm.
    """
    rows: list[dict[str, Any]] = []
    draws: list[Draws] = []
    labels, words = strata_labels(pool)
    for arm in pool.arm_names:
        if why_not(pool, pool.arms[arm]):
            continue
        whole = count(pool, arm)
        for share in SHARES:
            rows += null_rows(pool, share, whole, "all", labels, words, draws, intervals=share == HEADLINE)
        rows += _cluster_shuffle(pool, whole, labels, words)
        rows += _strata_rows(pool, whole, labels)
        for name, kept in smaller_pools(pool, whole.models):
            counts = count(pool, arm, kept)
            for share in SHARES:
                rows += null_rows(pool, share, counts, name, labels, words, None, intervals=False)
        rows += _other_failure_policy(pool, arm, labels, words)
    return rows, draws


def _other_failure_policy(pool: Pool, arm: str, labels: np.ndarray | None, words: str) -> list[dict[str, Any]]:
    """The headline share when failed calls count the other way, where any call failed."""
    failed = {c: f for c in ("full", "blind") if (f := pool.failed.get(c)) is not None and f.any()}
    old = pool.arms[arm]
    if not failed or old.trials is None:
        return []
    as_wrong = pool.settings.failed == "missing"
    trials = {c: np.where(failed[c], as_wrong, t).astype(t.dtype) if c in failed else t for c, t in old.trials.items()}
    other = replace(pool, arms={arm: Arm(arm, old.hits, trials)})
    if why_not(other, other.arms[arm]):
        return []
    policy = "failed_wrong" if as_wrong else "failed_missing"
    rows = null_rows(other, HEADLINE, count(other, arm), "all", labels, words, None, intervals=False)
    return [r | {"policy": policy, "family": "sensitivity"} for r in rows]


def _cluster_shuffle(pool: Pool, counts: Counts, labels: np.ndarray | None, words: str) -> list[dict[str, Any]]:
    """The headline share when whole clusters of items change places, beside the law that moves items one by one."""
    cluster = pool.cluster
    if cluster is None:
        return []
    out = []
    kinds = [("pooled", "", blocks_of(counts))]
    if labels is not None:
        kinds.append(("within", f" inside {words}", blocks_of(counts, labels)))
    for kind, where, blocks in kinds:
        if len(np.unique(cluster[blocks.rows])) == blocks.n or not blocks.n:
            continue
        rng = pool.rng("cluster shuffle", counts.arm, kind)
        s = cluster_shuffle(blocks.F, blocks.B, blocks.code, cluster[blocks.rows], blocks.regions(HEADLINE), rng=rng,
                            draws=pool.settings.permutations)  # fmt: skip
        note = f"whole clusters ({s.clusters}) change places with clusters of as many items{where}"
        note += f"; {s.fixed} items in clusters without a like stay" if s.fixed else ""
        out.append(
            row(f"{HEADLINE}_share", s.as_row(), arm=counts.arm, null_kind=kind, family="sensitivity", note=note)
        )
    return out


def null_rows(
    pool: Pool,
    share: str,
    counts: Counts,
    models: str,
    labels: np.ndarray | None,
    words: str,
    draws: list[Draws] | None,
    *,
    intervals: bool,
) -> list[dict[str, Any]]:
    """Rows of one share over all items: pooled null and, where there are strata, within-stratum null."""
    out = []
    kinds = [("pooled", blocks_of(counts))]
    if labels is not None:
        kinds.append(("within", blocks_of(counts, labels)))
    excess = {}
    for kind, blocks in kinds:
        note = "; ".join(filter(None, [counts.note, _permuted(blocks, words) if kind == "within" else ""]))
        place = {"arm": counts.arm, "models": models, "stratum": "all", "null_kind": kind, "note": note}
        claim = models == "all" and share == HEADLINE and counts.arm == pool.arm_names[0] and kind == kinds[-1][0]
        family = "headline" if claim else "sensitivity"
        made, result = measure(pool, share, blocks, place, family=family, intervals=intervals)
        out += made
        excess[kind] = result.excess
        if draws is not None and share == HEADLINE:
            draws.append(Draws(f"{share}_share", counts.arm, models, "all", kind, result.draws))
    if "within" in excess and share == HEADLINE:
        out.append(
            row(
                "zero_gain_between_strata",
                arm=counts.arm,
                models=models,
                n=counts.n,
                estimate=excess["pooled"] - excess["within"],
                note="pooled excess minus within-stratum excess",
            )
        )
    return out


def _permuted(blocks: Blocks, words: str) -> str:
    """Inside what blind results are permuted, and how many items have nobody to change places with."""
    alone = sum(int(t.sum() == 1) for t in blocks.tables)
    return f"permuted inside {words}" + (
        f"; {alone} items are alone in their block and can add no excess" if alone else ""
    )


def measure(
    pool: Pool, share: str, blocks: Blocks, place: dict[str, Any], *, family: str, intervals: bool
) -> tuple[list[dict[str, Any]], NullResult]:
    """One share of some items against the null that permutes inside ``blocks``: its row, and the Monte-Carlo twin."""
    settings = pool.settings
    regions = blocks.regions(share)
    names = (share, place["arm"], place["models"], place["stratum"], place["null_kind"])
    # of a pool without a model only the headline share is drawn; the others keep their closed-form null
    full = share == HEADLINE or place["models"] == "all"
    result = region_null(
        blocks.tables,
        regions,
        draws=settings.permutations if full else 0,
        exact="auto" if full else "never",
        rng=pool.rng("null", *names),
    )
    cluster = None if pool.cluster is None else pool.cluster[blocks.rows]
    ends: dict[str, Any] = noted(share_interval(blocks.inside(share), cluster)) if result.n else {}
    place = place | {"note": "; ".join(filter(None, [place.get("note", ""), ends.pop("note", "")]))}
    if intervals and result.n:
        ends |= interval_fields(_excess_interval(pool, blocks, regions, names), "excess_")
    # null, sd and excess are always the closed forms, whatever the law that p comes from
    closed = {"null": result.null, "null_sd": result.sd / result.n if result.n else result.sd, "excess": result.excess}
    main = row(f"{share}_share", result.as_row() | closed | {"p_lower": result.p_lower}, **place, **ends, family=family)
    if result.p_method == "tables" or not full:
        return [main], result
    twin = row(f"{share}_share", result.as_row("tables"), **place, family="sensitivity")
    return [main, twin], result


def _excess_interval(pool: Pool, blocks: Blocks, regions: list[np.ndarray], names: tuple[str, ...]):
    rng = pool.rng("bootstrap", *names)
    draws = pool.settings.bootstrap
    if pool.cluster is None:
        return excess_interval(blocks.tables, regions, rng=rng, draws=draws)
    cluster = pool.cluster[blocks.rows]
    return cluster_excess_interval(blocks.F, blocks.B, blocks.code, cluster, regions, rng=rng, draws=draws)


def _strata_rows(pool: Pool, counts: Counts, labels: np.ndarray | None) -> list[dict[str, Any]]:
    """The headline share in each stratum, and in each design label where the items carry one."""
    out = []
    groups = [("", pool.strata, "strata")] if pool.strata is not None else []
    design = design_labels(pool)
    if design is not None:
        groups.append(("design:", design, "design"))
    # inside one stratum only the number of options shown is left to hold fixed
    for prefix, values, family in groups:
        for name in sorted(set(values)):
            within = values == name
            blocks = blocks_of(counts, labels if family == "strata" else None, within)
            if not blocks.n:
                continue
            place = {"arm": counts.arm, "models": "all", "stratum": f"{prefix}{name}"}
            place["null_kind"] = "within" if family == "strata" else "pooled"
            full_family = f"{family}:{HEADLINE}_share:{counts.arm}"
            if family == "design" and pool.settings.design.column == "stratum":
                full_family = "sensitivity"  # the strata's own tests, printed again under their design names
            out += measure(pool, HEADLINE, blocks, place, family=full_family, intervals=True)[0]
            out += [_plain_share(pool, s, blocks, place, family) for s in SHARES if s != HEADLINE]
    return out


def _plain_share(pool: Pool, share: str, blocks: Blocks, place: dict[str, Any], family: str) -> dict[str, Any]:
    cluster = None if pool.cluster is None else pool.cluster[blocks.rows]
    return row(f"{share}_share", share_fields(blocks.inside(share), cluster), **place)


def design_labels(pool: Pool) -> np.ndarray | None:
    """The items' design labels, as the params name them."""
    design = pool.settings.design
    if design is None or design.column not in pool.items:
        return None
    return pool.items[design.column].astype(object).where(pool.items[design.column].notna(), "").astype(str).to_numpy()
