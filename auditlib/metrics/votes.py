"""Statistics of the letters: label-conflict tiers, agreement, same wrong option."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from auditlib.counts import smaller_pools
from auditlib.detectors.consensus_error import consensus
from auditlib.detectors.consensus_error import needs as consensus_needs
from auditlib.detectors.fleiss_kappa_agreement import needs as kappa_needs
from auditlib.metrics.rows import interval_fields, row, share_fields
from auditlib.pool import Pool
from auditlib.stats.agreement import fleiss_kappa, krippendorff_alpha
from auditlib.stats.wrong_options import same_wrong_option

#: pairs of models beyond which only the mean over pairs is reported
MAX_PAIRS = 300
#: tiers, then any of them
TIERS = ("unanimous", "high", "medium", "consensus")
BASELINES = {
    "shuffled": "null: wrong letters shuffled over items with their own wrongness",
    "rejudged": "null: the second model's letters shuffled over items, wrongness judged again on the new item",
}


def vote_rows(pool: Pool) -> list[dict[str, Any]]:
    """Tier shares by stratum, kappa, alpha, and the same-wrong-option rate of each pair of models."""
    rows: list[dict[str, Any]] = []
    if not consensus_needs(pool):
        rows += tier_rows(pool) + _same_wrong(pool) + _backfill(pool)
    if not kappa_needs(pool):
        rows += kappa_rows(pool)
    return rows + _smaller(pool)


def _smaller(pool: Pool) -> list[dict[str, Any]]:
    """Tier shares and kappa of the pools without one model or family."""
    if "full" not in pool.letters:
        return []
    letters, key = pool.letters["full"], pool.key_codes
    keyed, rows, ran = key >= 0, [], pool.ran("full")
    cluster = None if pool.cluster is None else pool.cluster[keyed]
    for label, kept in smaller_pools(pool, pool.model_names):
        part = letters[:, [pool.model_names.index(m) for m in kept]]
        common = {"arm": "exact", "models": label, "family": "sensitivity"}
        c = consensus(part, key)
        if c.keep.any():
            tier = _tier_of(pool, c)
            for metric in TIERS:
                rows.append(row(f"{metric}_share", share_fields(_hit(tier, metric)[keyed], cluster), **common))
        if len(kept) >= 2 and not kappa_needs(pool):
            kappa = fleiss_kappa(part[:, ran[[pool.model_names.index(m) for m in kept]]])
            rows.append(row("fleiss_kappa", **common, n=kappa.n, estimate=kappa.estimate, note=kappa.note))
    return rows


def _tier_of(pool: Pool, c: Any) -> np.ndarray:
    """Tier of every item, "" where the consensus has none."""
    tier = np.full(len(pool.items), "", dtype=object)
    tier[c.keep] = c.tier
    return tier


def _hit(tier: np.ndarray, metric: str) -> np.ndarray:
    return (tier != "") & (tier != "none") if metric == "consensus" else tier == metric


def tier_rows(pool: Pool) -> list[dict[str, Any]]:
    """Shares of items by tier of agreement on an option that is not the key, over all items and by stratum."""
    c = consensus(pool.letters["full"], pool.key_codes)
    tier, cluster = _tier_of(pool, c), pool.cluster
    keyed = pool.key_codes >= 0
    rows = []
    strata = pool.strata
    groups = [("all", keyed)] + ([] if strata is None else [(s, keyed & (strata == s)) for s in sorted(set(strata))])
    for name, here in groups:
        if not here.any():
            continue
        mine = None if cluster is None else cluster[here]
        for metric in TIERS:
            rows.append(row(f"{metric}_share", share_fields(_hit(tier, metric)[here], mine), arm="exact", stratum=name))
    voters_of = np.zeros(len(pool.items), int)
    voters_of[c.keep] = np.where(c.tier == "unanimous", c.voters, 0)
    mine = None if cluster is None else cluster[keyed]
    for voters in sorted(set(voters_of[voters_of > 0].tolist())):
        rows.append(
            row(
                "unanimous_share",
                share_fields((voters_of == voters)[keyed], mine),
                arm="exact",
                level=f"{voters}/{voters}",
                note=f"{voters} voters, all for one option that is not the key",
            )
        )
    return rows


def _backfill(pool: Pool) -> list[dict[str, Any]]:
    """What writing the key into every reply that the judge accepted would do to the unanimous items.

    The audit never does so; the row shows what the temptation would have hidden.
    """
    if "judged" not in pool.arms or "full" not in pool.arms["judged"].hits:
        return []
    letters, key = pool.letters["full"], pool.key_codes
    accepted = (pool.arms["judged"].hits["full"] > 0) & (key >= 0)[:, None]
    filled = np.where(accepted, key[:, None], letters)
    honest, tempted = (int((consensus(x, key).tier == "unanimous").sum()) for x in (letters, filled))
    n = int((key >= 0).sum())
    return [
        row(
            "backfill_unanimous",
            arm="exact",
            n=tempted,
            estimate=tempted / n,
            null=honest / n,
            note=f"unanimous items if judged hits were written back as the key: {tempted} instead of {honest}",
        )
    ]


def kappa_rows(pool: Pool) -> list[dict[str, Any]]:
    """Fleiss' kappa over complete cases, what it leaves out, and Krippendorff's alpha; of models with a full run."""
    ran = pool.ran("full")
    letters = pool.letters["full"][:, ran]
    complete = (letters >= 0).all(axis=1)
    rows = []
    if complete.sum() >= 2:
        k = fleiss_kappa(
            letters[complete],
            draws=pool.settings.bootstrap,
            rng=pool.rng("kappa"),
            cluster=None if pool.cluster is None else pool.cluster[complete],
        )
        rows.append(
            row(
                "fleiss_kappa",
                interval_fields(k.interval),
                arm="exact",
                n=k.n,
                estimate=k.estimate,
                note=f"complete cases: {k.n} of {len(letters)} items",
            )
        )
    excluded = (letters < 0).sum(axis=0)
    for name, n in zip([m for m, r in zip(pool.model_names, ran) if r], excluded.tolist()):
        if n:
            rows.append(
                row(
                    "kappa_excluded_items",
                    arm="exact",
                    models=name,
                    n=n,
                    estimate=n / len(letters),
                    note="items left out of the complete cases because this model names no option",
                )
            )
    alpha = krippendorff_alpha(letters)
    two = int(((letters >= 0).sum(axis=1) >= 2).sum())
    rows.append(
        row("krippendorff_alpha", arm="exact", n=two, estimate=alpha.estimate, note="items with two letters or more")
    )
    return rows


def _same_wrong(pool: Pool) -> list[dict[str, Any]]:
    letters, key, names = pool.letters["full"], pool.key_codes, pool.model_names
    keyed = key >= 0
    rows = []
    pairs = list(combinations(range(len(names)), 2))
    cluster = None if pool.cluster is None else pool.cluster[keyed]
    results = [
        (a, b, same_wrong_option(letters[keyed, a], letters[keyed, b], key[keyed], cluster=cluster)) for a, b in pairs
    ]
    results = [(a, b, r) for a, b, r in results if r.n]
    if not results:
        return rows
    for a, b, r in results if len(pairs) <= MAX_PAIRS else []:
        for kind in BASELINES:
            rows.append(
                row(
                    "same_wrong_option",
                    r.as_row(kind),
                    arm="exact",
                    models=f"{names[a]} | {names[b]}",
                    note=BASELINES[kind],
                )
            )
    n = sum(r.n for *_, r in results)
    for kind, words in BASELINES.items():
        share, null = (sum(r.n * getattr(r, f) for *_, r in results) / n for f in ("estimate", kind))
        rows.append(
            row(
                "same_wrong_option",
                arm="exact",
                models="all pairs",
                n=n,
                null_kind=kind,
                estimate=share,
                null=null,
                excess=share - null,
                note=f"over all pairs together; {words}",
            )
        )
    return rows
