"""The frames behind the tables: full-precision numbers, one function per table, audit -> frame.

A function raises :class:`~auditlib.lookup.Lacking` where the pool has nothing to put in its table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from auditlib import lookup
from auditlib.flagged_rows import flagged_findings, was_read
from auditlib.frames import SEVERITIES
from auditlib.lookup import CATEGORIES, Lacking, value

NO_BLIND = "this pool has no blind run"
WRONG = ("wrong", "")


def taxonomy(audit: Any) -> pd.DataFrame:
    """Detectors with signal, pathology and whether they depend on how replies are scored."""
    return audit.detectors[["detector", "signal", "pathology", "judge_dependent"]].copy()


def detectors(audit: Any) -> pd.DataFrame:
    """State of each detector, items judged and flagged by severity; the integrity gate on top if it found any."""
    wanted = ["detector", "state", "reason", "judged", "flagged", *SEVERITIES]
    table = audit.detectors.copy()
    note = table["note"] if "note" in table else pd.Series("", index=table.index)
    table["reason"] = ["; ".join(t for t in (r, n) if isinstance(t, str) and t) for r, n in zip(table["reason"], note)]
    found = flagged_findings(audit)
    if found["detector"].eq("integrity").any():
        row = {"detector": "integrity", "state": "run", "reason": "", "judged": len(audit.items)}
        table = pd.concat([pd.DataFrame([row]), table], ignore_index=True)
    per = found.groupby(["detector", "severity"])["item"].nunique()
    for s in SEVERITIES:
        table[s] = [int(per.get((d, s), 0)) for d in table["detector"]]
    table["flagged"] = table["detector"].map(found.groupby("detector")["item"].nunique()).fillna(0)
    return table[wanted].astype(dict.fromkeys(wanted[3:], int))


def pools(audit: Any) -> pd.DataFrame:
    """Zero-gain share against its pooled null, for all models and without each; exact p beside the Monte-Carlo one."""
    if not lookup.has_blind(audit):
        raise Lacking(NO_BLIND)
    mine = lookup.rows(audit.statistics, "zero_gain_share", arm=lookup.headline_arm(audit), null_kind="pooled",
                       stratum="all", policy=WRONG)  # fmt: skip
    table = lookup.unique_p(mine, "models")
    drawn = mine[mine["p_method"] == "tables"].drop_duplicates("models").set_index("models")["p"]
    table = table.assign(p_monte_carlo=table["models"].map(drawn), models=table["models"].replace("all", "all models"))
    wanted = [
        "models",
        "n",
        "estimate",
        "null",
        "excess",
        "excess_low",
        "excess_high",
        "p",
        "p_method",
        "p_monte_carlo",
    ]
    return table.reindex(columns=wanted).reset_index(drop=True)


def headline(audit: Any) -> pd.DataFrame:
    """Every headline quantity with interval, null, excess, p, and its range over pools with one model left out."""
    s, out = audit.statistics, []
    for arm in lookup.arms(audit) if lookup.has_blind(audit) else []:
        for kind, words in (("within", "zero gain, null within categories"), ("pooled", "zero gain, null pooled")):
            row = lookup.one(s, "zero_gain_share", arm=arm, null_kind=kind, models="all", stratum="all", policy=WRONG)
            if row is not None:
                out.append(_headline(words, row, s, arm=arm, null_kind=kind))
        for name in CATEGORIES:
            row = lookup.one(s, f"{name}_share", arm=arm, models="all", stratum="all", policy=WRONG)
            if row is not None:
                out.append(_headline(name.replace("_", " "), row, s, arm=arm, null_kind=lookup.text(row, "null_kind")))
    for name in ("unanimous", "high", "medium", "consensus"):
        row = lookup.one(s, f"{name}_share", models="all", stratum="all", level="")
        if row is not None:
            words = "any consensus tier" if name == "consensus" else f"consensus against the key: {name}"
            out.append(_headline(words, row, s))
    for name, words in (("fleiss_kappa", "Fleiss' kappa of letters"), ("krippendorff_alpha", "Krippendorff's alpha")):
        row = lookup.one(s, name, models="all", stratum="all")
        if row is not None:
            out.append(_headline(words, row, s) | {"unit": "number"})
    if not out:
        raise Lacking("no headline quantity was computed")
    return pd.DataFrame(out)


def _headline(words: str, row: pd.Series, s: pd.DataFrame, **keys: str) -> dict[str, Any]:
    low, high = lookup.pool_range(s, str(row["metric"]), **keys)
    excess_low, excess_high = lookup.pool_range(s, str(row["metric"]), "excess", **keys)
    numbers = ("n", "estimate", "low", "high", "null", "excess", "excess_low", "excess_high", "p")
    return {"quantity": words, "arm": lookup.text(row, "arm"), **{c: value(row, c) for c in numbers}, "pool_low": low,
            "pool_high": high, "pool_excess_low": excess_low, "pool_excess_high": excess_high,
            "unit": "share"}  # fmt: skip


def strata(audit: Any) -> pd.DataFrame:
    """Official categories: zero gain with its null, excess and q, and the unanimous rate."""
    from auditlib.figures.strata import stratum_rows

    gain, votes = stratum_rows(audit), stratum_rows(audit, "unanimous_share")
    votes = votes[votes["level"].eq("")]
    if not len(gain) and not len(votes):
        raise Lacking("this pool has no official categories")
    gain = gain.set_index("stratum")[["n", "estimate", "null", "excess", "excess_low", "excess_high", "p", "q"]]
    votes = votes.set_index("stratum")[["n", "estimate", "low", "high"]].add_prefix("unanimous_")
    table = gain.join(votes, how="outer").rename(columns={"estimate": "zero_gain"})
    table["n"] = table["n"].fillna(table["unanimous_n"])
    table = table.drop(columns="unanimous_n").rename(columns={"unanimous_estimate": "unanimous"})
    by = "excess" if table["excess"].notna().any() else "unanimous"
    return table.reset_index().sort_values([by, "stratum"], ascending=[False, True]).reset_index(drop=True)


def categories(audit: Any) -> pd.DataFrame:
    """Shares by arm with null, excess, p, attainable bounds and range over pools."""
    if not lookup.has_blind(audit):
        raise Lacking(NO_BLIND)
    s, out = audit.statistics, []
    for name in (*CATEGORIES, "zero_gain", "visual_dependent_majority"):
        for arm in lookup.arms(audit):
            keys = {"arm": arm, "models": "all", "stratum": "all"}
            row = lookup.one(s, f"{name}_share", null_kind=("pooled", ""), policy=WRONG, **keys)
            if row is None:
                continue
            bound = lookup.one(s, f"{name}_share", policy="bounds", **keys)
            low, high = lookup.pool_range(s, f"{name}_share", arm=arm, policy=WRONG)
            numbers = ("n", "estimate", "low", "high", "null", "excess", "p")
            words = name.replace("_", " ").replace(" majority", ", majority rule")
            out.append({"category": words, "arm": arm, **{c: value(row, c) for c in numbers},
                        "bound_low": value(bound, "low"), "bound_high": value(bound, "high"), "pool_low": low,
                        "pool_high": high})  # fmt: skip
    return pd.DataFrame(out)


def abstention(audit: Any) -> pd.DataFrame:
    """Every share by arm with abstentions wrong, left out, and free to be anything."""
    from auditlib.figures.abstention import shares_by_policy

    table = shares_by_policy(audit, lookup.arms(audit))
    return table.assign(share=table["share"].str.replace("_", " ").str.replace(" majority", ", majority rule"))


def composition(audit: Any) -> pd.DataFrame:
    """Zero-gain items by the number of right models: observed, expected, difference."""
    from auditlib.figures.nulls import prepare_no_gain

    return prepare_no_gain(audit)


def profile(audit: Any) -> pd.DataFrame:
    """What became of each model's replies, by condition."""
    from auditlib.figures.profile import prepare_profile

    return prepare_profile(audit)


def accuracy(audit: Any) -> pd.DataFrame:
    """Accuracy with and without the image by model and arm, gain, and leakage where a text base is known."""
    table = lookup.rows(audit.statistics, "accuracy", level=("full", "blind"), policy=WRONG)
    if not len(table):
        raise Lacking("no model has an accuracy")
    wide = table.pivot_table(index=["models", "arm"], columns="level", values=["estimate", "low", "high"], sort=False)
    wide.columns = [f"{b}_{a}".removesuffix("_estimate") for a, b in wide.columns]
    for metric, name in (("multimodal_gain", "gain"), ("multimodal_leakage", "leakage")):
        found = lookup.rows(audit.statistics, metric, policy=WRONG).set_index(["models", "arm"])["estimate"]
        wide[name] = found.reindex(wide.index)
    wanted = ["model", "arm", "full", "full_low", "full_high", "blind", "blind_low", "blind_high", "gain", "leakage"]
    wide = wide.reset_index().rename(columns={"models": "model"}).reindex(columns=wanted)
    order = {m: i for i, m in enumerate(lookup.model_names(audit))}
    arms = {a: i for i, a in enumerate(audit.steps["arms"])}
    wide = wide.assign(a=wide["arm"].map(arms), m=wide["model"].map(order)).sort_values(["a", "m"], kind="stable")
    return wide.drop(columns=["a", "m"]).reset_index(drop=True)


def agreement(audit: Any) -> pd.DataFrame:
    """Agreement of the whole pool: kappa and alpha of letters, kappa of correctness, saturated and unsolved items."""
    names = {
        "fleiss_kappa": ("Fleiss' kappa of letters", "number"),
        "krippendorff_alpha": ("Krippendorff's alpha of letters", "number"),
        "correctness_kappa": ("kappa of correctness", "number"),
        "saturated_share": ("solved by every model", "share"),
        "never_solved_share": ("solved by no model", "share"),
    }
    out = []
    for metric, (words, unit) in names.items():
        for _, row in lookup.rows(audit.statistics, metric, models="all", stratum="all").iterrows():
            numbers = {c: value(row, c) for c in ("n", "estimate", "low", "high")}
            out.append({"quantity": words, "arm": lookup.text(row, "arm"), **numbers, "note": lookup.text(row, "note"),
                        "unit": unit})  # fmt: skip
    if not out:
        raise Lacking("agreement needs two models")
    return pd.DataFrame(out)


def wrong_options(audit: Any) -> pd.DataFrame:
    """Pairs of models: how often they pick the same wrong option, against two closed-form baselines."""
    table = lookup.rows(audit.statistics, "same_wrong_option", stratum="all")
    if not len(table):
        raise Lacking("this pool has no pair of models with letters")
    base = table.pivot_table(index="models", columns="null_kind", values="null", sort=False)
    first = table.drop_duplicates("models").set_index("models")[["n", "estimate", "low", "high"]]
    return first.join(base.reindex(columns=["shuffled", "rejudged"])).reset_index()


def disagreement(audit: Any) -> pd.DataFrame:
    """Model-item pairs that judge and parser score differently."""
    from auditlib.figures.arms import prepare_disagreements

    table = prepare_disagreements(audit)
    return table.assign(all=table["full"] + table["blind"])


def letters(audit: Any) -> pd.DataFrame:
    """Key letters against uniform, the accuracy of always saying one letter, and the models' letters."""
    from auditlib.figures.profile import prepare_letters

    table = prepare_letters(audit)
    always = lookup.rows(audit.statistics, "always_letter_accuracy").set_index("level")["estimate"]
    wanted = ["letter", "n", "key", "expected", "always", "models_min", "models_median", "models_max"]
    return table.assign(always=table["letter"].map(always)).reindex(columns=wanted)


def extraction(audit: Any) -> pd.DataFrame:
    """Which reader read how many replies, by model and condition; abstentions with their reason."""
    replies = audit.responses
    if replies is None or not len(replies) or "rule" not in replies:
        raise Lacking("this pool has no replies, only hits")
    table = replies.assign(rule=replies["rule"].astype(object).where(replies["rule"].notna(), replies["status"]))
    table["read"] = np.where(was_read(table), "read", "abstention")
    sizes = table.groupby(["model", "condition"])["item"].transform("size")
    table = table.assign(share=1 / sizes).groupby(["model", "condition", "read", "rule"], as_index=False).agg(
        replies=("item", "size"), share=("share", "sum"))  # fmt: skip
    return _in_model_order(audit, table, "replies")


def verdicts(audit: Any) -> pd.DataFrame:
    """Where the judged arm's verdicts come from: matched by the toolkit, by the judge, filled at random, stale."""
    table = audit.judgements
    if table is None or not len(table):
        raise Lacking("this pool has no judged files")
    table = table.groupby(["model", "condition", "judge", "source"], as_index=False, dropna=False).agg(
        verdicts=("item", "size"), hits=("hit", "sum"))  # fmt: skip
    return _in_model_order(audit, table, "verdicts")


def _in_model_order(audit: Any, table: pd.DataFrame, size: str) -> pd.DataFrame:
    order = {m: i for i, m in enumerate(lookup.model_names(audit))}
    table = table.assign(m=table["model"].map(order), c=table["condition"].ne("full"))
    table = table.sort_values(["m", "c", size], ascending=[True, True, False], kind="stable")
    return table.drop(columns=["m", "c"]).reset_index(drop=True)


def coverage(audit: Any) -> pd.DataFrame:
    """What was read, joined, left out or is doubtful; equal reasons of several runs or items are one row."""
    table = audit.coverage.fillna({"reason": ""})
    table = table.groupby(["what", "reason"], sort=False, as_index=False).agg(n=("n", "sum"), places=("n", "size"))
    return table[["what", "n", "places", "reason"]]
