"""From calls on gold and perturbed outputs to one outcome per instance: detected, missed, reversed, or nothing said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from auditlib import frames
from auditlib.errors import AuditError

NAN = float("nan")
#: names of the two candidates of an instance
GOLD, PERTURBED = "gold", "perturbed"
#: outcomes. Single and reference: ``detected`` (perturbed scored strictly lower), ``tie``, ``reversed``. Pairwise over
#: both orders: ``detected`` (gold twice), ``half`` (gold once, a tie once), ``locked`` (same slot twice), ``tie``
#: (twice), ``half_reversed``, ``reversed`` (perturbed twice). ``unanswered``: a call without a judgement;
#: ``one_order``: a pair shown in one order only, of which nothing is counted.
OUTCOMES = ("detected", "half", "locked", "tie", "half_reversed", "reversed", "unanswered", "one_order")
#: what names a set of outcomes that is reported together
SETTING = ("judge", "paradigm", "style", "image")
_UNIT = ("comparison", "instance", "dimension", "effect")
_KEY = [*SETTING, *_UNIT]


def is_perturbation(calls: pd.DataFrame) -> pd.Series:
    """Calls that belong to a perturbation: their only candidates are gold and perturbed."""
    return calls["shown"].map(lambda shown: set(shown) <= {GOLD, PERTURBED}).astype(bool)


def outcomes(calls: pd.DataFrame) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """One row per judge, setting and perturbed instance.

    Parameters
    ----------
    calls : frame of judge calls. Candidates are named ``gold`` and ``perturbed``; other calls are left alone. A gold
        score without a dimension counts for all perturbations of its instance. ``single``, ``reference``: the first
        repeat of each; ``reference`` compares with the gold scored against itself. ``pairwise``: the first repeat of
        each order.

    Returns
    -------
    DataFrame
        ``judge, paradigm, style, image, comparison, instance, dimension, effect, severity, cluster, outcome, gap``.
        ``gap``: score of the gold minus that of the perturbed; pairwise: share of wins of the gold minus that of the
        perturbed; missing without two judgements.
    coverage rows
        What cannot be counted, and why.

    Raises
    ------
    AuditError
        A perturbed output without a dimension or effect.
    """
    mine = calls[is_perturbation(calls) & calls["paradigm"].isin(("single", "reference", "pairwise"))]
    bare = mine[mine["shown"].map(lambda s: PERTURBED in s) & (mine["effect"].eq("") | mine["dimension"].eq(""))]
    if len(bare):
        r = bare.iloc[0]
        raise AuditError(f"the perturbed output of {r['instance']!r} has no dimension or effect", file=r["run"] or None,
                         row=int(r["row"]) or None, mend="say what was changed (dimension) and whether it should lower "
                         "the score (effect: degrade or neutral)")  # fmt: skip
    scored, lost = _scored(mine[mine["paradigm"].ne("pairwise")])
    table = pd.concat([scored, _pairs(mine[mine["paradigm"].eq("pairwise")])], ignore_index=True)
    for judge, part in table.groupby("judge", sort=False):
        if n := int(part["outcome"].eq("one_order").sum()):
            reason = "pairs shown in one order only: a preference cannot be told from a slot; not counted"
            lost.append(frames.coverage_row("excluded", n=n, model=str(judge), reason=reason))
        if n := int(part["outcome"].eq("unanswered").sum()):
            reason = "perturbations of which a call holds no judgement: counted apart, with bounds"
            lost.append(frames.coverage_row("status", n=n, model=str(judge), reason=reason))
    return table, lost


def _scored(mine: pd.DataFrame) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    columns = [*_KEY, "severity", "cluster", "outcome", "gap"]
    if not len(mine):
        return pd.DataFrame(columns=columns), []
    first = mine.sort_values("repeat", kind="stable")
    one = first["shown"].map(lambda s: s[0])
    # repeats of one call come after its first; a gold score may be shared by several perturbations
    where = [*SETTING, "comparison", "instance", "dimension"]
    gold = first[one.eq(GOLD)].drop_duplicates(where)
    own = gold[gold["dimension"].ne("")][[*where, "score"]].rename(columns={"score": "own"})
    shared = gold[gold["dimension"].eq("")][[*where[:-1], "score"]].rename(columns={"score": "shared"})
    pert = first[one.eq(PERTURBED)].drop_duplicates([*_KEY])
    table = pert.merge(own.assign(has_own=True), on=where, how="left")
    table = table.merge(shared.assign(has_shared=True), on=where[:-1], how="left")
    there = table["has_own"].notna() | table["has_shared"].notna()
    rows = []
    for judge, part in table[~there].groupby("judge", sort=False):
        reason = "perturbed outputs whose gold output was not scored: not counted"
        rows.append(frames.coverage_row("excluded", n=len(part), model=str(judge), reason=reason))
    table = table[there].reset_index(drop=True)
    base = table["own"].where(table["has_own"].notna(), table["shared"]).astype(float)
    gap = base - table["score"]
    outcome = np.select([gap > 0, gap < 0, gap == 0], ["detected", "reversed", "tie"], "unanswered")
    return table.assign(outcome=outcome, gap=gap)[columns], rows


def _pairs(mine: pd.DataFrame) -> pd.DataFrame:
    columns = [*_KEY, "severity", "cluster", "outcome", "gap"]
    if not len(mine):
        return pd.DataFrame(columns=columns)
    first = mine.sort_values("repeat", kind="stable").drop_duplicates([*_KEY, "shown"])
    won = first["choice"].map({GOLD: 1.0, PERTURBED: -1.0}).where(first["state"].eq("chosen"))
    won = won.where(first["state"].ne("tie"), 0.0)
    ahead = first["shown"].map(lambda s: s[0] == GOLD)
    wide = first.assign(a=won.where(ahead), b=won.where(~ahead), in_a=ahead, in_b=~ahead)
    by = wide.groupby(_KEY, sort=False)
    table = by.agg(severity=("severity", "first"), cluster=("cluster", "first"), a=("a", "max"), b=("b", "max"),
                   in_a=("in_a", "any"), in_b=("in_b", "any")).reset_index()  # fmt: skip
    a, b, total = table["a"], table["b"], table["a"] + table["b"]
    known = a.notna() & b.notna()
    table["outcome"] = np.select(
        [~(table["in_a"] & table["in_b"]), ~known, total == 2, total == 1, total == -1, total == -2, a == 0],
        ["one_order", "unanswered", "detected", "half", "half_reversed", "reversed", "tie"], "locked",
    )  # fmt: skip
    table["gap"] = (total / 2).where(known & table["outcome"].ne("one_order"))
    return table[columns]


def repeated(calls: pd.DataFrame) -> pd.DataFrame:
    """Scores of the same gold output given twice or more, by judge and setting: what sampling alone does.

    Returns
    -------
    DataFrame
        ``judge, paradigm, style, image, outputs, floor, sd, icc, note``: ``floor``, the chance that a second score of
        the same output is strictly lower than the first (mean over all ordered pairs of repeats); ``sd`` of repeated
        scoring; ``icc``, one-way random-effects intraclass correlation of single scores (Shrout and Fleiss 1979).
    """
    scored = calls[calls["state"].eq("scored") & calls["shown"].map(lambda s: s == (GOLD,))]
    rows = []
    for key, part in scored.groupby(list(SETTING), sort=False):
        values = [v.to_numpy() for _, v in part.groupby(["comparison", "instance", "dimension"], sort=False)["score"]]
        values = [v for v in values if len(v) > 1]
        if values:
            rows.append({**dict(zip(SETTING, key)), "outputs": len(values), **_agreement(values)})
    return pd.DataFrame(rows, columns=[*SETTING, "outputs", "floor", "sd", "icc"])


def _agreement(values: list[np.ndarray]) -> dict[str, float]:
    lower = [float((v[:, None] < v).sum() / (len(v) * (len(v) - 1))) for v in values]
    n = np.array([len(v) for v in values], float)
    every = np.concatenate(values)
    within = sum(float(((v - v.mean()) ** 2).sum()) for v in values) / (n.sum() - len(n))
    icc = NAN
    if len(n) > 1:
        between = sum(len(v) * (v.mean() - every.mean()) ** 2 for v in values) / (len(n) - 1)
        each = (n.sum() - (n**2).sum() / n.sum()) / (len(n) - 1)
        spread = between + (each - 1) * within
        icc = float((between - within) / spread) if spread > 0 else NAN
    return {"floor": float(np.mean(lower)), "sd": float(np.sqrt(within)), "icc": icc}
