"""Whether one image or prompt carries a result, what judges share, and whether they like their own family's outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib import seeds
from auditlib.judges.decision_data import CHOSEN, Choices, Prompts
from auditlib.judges.decisions import per_prompt
from auditlib.judges.outcomes import SETTING
from auditlib.judges.reliability import counted, d_prime_of
from auditlib.judges.slots import design, known_covariates
from auditlib.stats.conditional_logit import conditional_logit
from auditlib.stats.influence import leave_one_out
from auditlib.stats.multiplicity import holm
from auditlib.stats.paired import bootstrap, cluster_totals, mean_interval, mean_ratio, sign_flip
from auditlib.stats.random_effects import pool_effects

NAN = float("nan")
_SEEN = ("", "shown", "none")


def damage_without_one(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Detection, false alarms and d' with one image or prompt left out at a time.

    Returns
    -------
    DataFrame
        ``judge, paradigm, style, image, quantity`` and the columns of :func:`~auditlib.stats.influence.leave_one_out`.
    """
    rows: list[dict[str, Any]] = []
    hits = counted(outcomes)
    for key, part in hits[hits["image"].isin(_SEEN)].groupby(list(SETTING), sort=False):
        bad = part["effect"].eq("degrade").to_numpy(float)
        hit, cluster = part["hit"].to_numpy(), part["cluster"].to_numpy()
        columns = np.column_stack([hit * bad, bad, hit * (1 - bad), 1 - bad])
        functions = {"detection": mean_ratio, "false_alarm": lambda t: mean_ratio(t[:, 2:]), "d_prime": d_prime_of}
        for name, function in functions.items():
            if (name == "detection" or (bad < 1).any()) and bad.any():
                rows.append({**dict(zip(SETTING, key)), "quantity": name, **leave_one_out(columns, cluster, function)})
    return pd.DataFrame(rows)


def gain_without_one(prompts: Prompts, decisions: Mapping[str, NDArray]) -> pd.DataFrame:
    """Normalised gain of each judge with one cluster of prompts left out at a time; columns as above."""
    rows = []
    for name, weights in decisions.items():
        table = per_prompt(prompts, weights)
        table = table[table["gain"].notna()]
        if len(table):
            found = leave_one_out(table[["gain", "room"]].to_numpy(), table["cluster"].to_numpy(), mean_ratio)
            rows.append({"judge": name, "paradigm": "", "style": "", "image": "", "quantity": "share", **found})
    return pd.DataFrame(rows)


def pooled_positions(position: pd.DataFrame) -> pd.DataFrame:
    """Slots and content over judges: the terms of every judge's conditional logit as random effects over judges.

    Parameters
    ----------
    position : ``judge, term, coef, se`` of :func:`~auditlib.judges.slots.position_fit`, judge by judge.

    Returns
    -------
    DataFrame
        One row per term and judge, ``all judges`` first: ``term, judge, coef, low, high`` (of the mean over judges, or
        the judge's own), ``shrunk, shrunk_low, shrunk_high``, ``spread`` (SD of true effects between judges), ``n``.

    Notes
    -----
    In place of a mixed logit over all judges at once: a conditional logit with errors by clusters for each judge, then
    normal random effects over judges. With many calls per judge the two agree, and a judge whose likelihood has no
    maximum spoils no other one.
    """
    rows: list[dict[str, Any]] = []
    for term, part in position.groupby("term", sort=False):
        pooled = pool_effects(part["coef"], part["se"])
        if pooled.units < 2:
            continue
        rows.append({"term": term, "judge": "all judges", "coef": pooled.mean, "low": pooled.low, "high": pooled.high,
                     "spread": pooled.spread, "n": pooled.units})  # fmt: skip
        for i, r in enumerate(part.itertuples()):
            rows.append({"term": term, "judge": r.judge, "coef": r.coef, "low": r.low, "high": r.high,
                         "shrunk": pooled.shrunk[i], "shrunk_low": pooled.shrunk_low[i],
                         "shrunk_high": pooled.shrunk_high[i], "n": pooled.units})  # fmt: skip
    columns = ["term", "judge", "coef", "low", "high", "shrunk", "shrunk_low", "shrunk_high", "spread", "n"]
    return pd.DataFrame(rows, columns=columns) if rows else pd.DataFrame()


def own_family(
    prompts: Prompts, given: Mapping[str, Choices], authors: pd.DataFrame, families: Mapping[str, str], *, seed: int = 0
) -> pd.DataFrame:
    """Does a judge choose outputs of its own family more often than their quality and slot explain?

    Parameters
    ----------
    authors : ``prompt, candidate, author``. families : judge or author -> family; an author without one is a family of
        its own, a judge without one has none.

    Returns
    -------
    DataFrame
        One row per judge with a family, over the calls that show some, not only, outputs of that family: ``judge,
        family, calls, prompts, chosen`` (share of calls that choose the own family), ``expected`` (share of slots that
        show it: a choice that knows nothing), ``excess, p`` (sign flips over clusters), ``coef, low, high`` (log odds
        at equal slot, rating and similarity, errors by clusters), ``q`` (Holm over judges, of the coefficient),
        ``shrunk, shrunk_low, shrunk_high`` (over judges), ``note``. ``all judges`` is the last row, with the mean.

    Notes
    -----
    Ratings by people stand for quality: if people rate by other things than the judge looks at, what is left is an
    association.
    """
    from scipy.special import ndtr

    author = {(str(r.prompt), str(r.candidate)): str(r.author) for r in authors.itertuples() if str(r.author).strip()}
    rows: list[dict[str, Any]] = []
    for name, choices in given.items():
        judge = choices.judge
        if not families.get(judge):
            continue
        own = np.full(prompts.rating.shape, NAN)
        for p, (prompt, names) in enumerate(zip(prompts.prompt, prompts.names)):
            for c, candidate in enumerate(names):
                by = author.get((str(prompt), candidate))
                own[p, c] = NAN if by is None else float(families.get(by, by) == families[judge])
        calls = choices.at(choices.state == CHOSEN)
        seen = np.where(calls.shown >= 0, own[calls.prompt[:, None], np.maximum(calls.shown, 0)], 0.0)
        share = seen.sum(axis=1) / calls.slots
        mixed = ~np.isnan(share) & (share > 0) & (share < 1)
        row = {"judge": name, "family": families[judge], "calls": int(mixed.sum())}
        if not mixed.any():
            rows.append(row | {"note": "no call shows outputs of its own and of another family"})
            continue
        kept = calls.at(mixed)
        hit = own[kept.prompt, kept.candidate]
        cluster = prompts.cluster[kept.prompt]
        rng = seeds.generator(seed, "judges", "own family", name)
        excess = mean_interval(hit - share[mixed], cluster, rng=rng)
        row |= {"prompts": len(np.unique(kept.prompt)), "chosen": float(hit.mean()),
                "expected": float(share[mixed].mean()), "excess": excess.value, "excess_low": excess.interval.low,
                "excess_high": excess.interval.high,
                "p": sign_flip(hit - share[mixed], cluster, rng=rng, draws=2_000).p}  # fmt: skip
        x, group, chosen, terms = design(kept, known_covariates(prompts) | {"own": np.nan_to_num(own)})
        fit = conditional_logit(x, group, chosen, cluster[group])
        at = terms.index("own")
        se = NAN if fit.separated else float(fit.se()[at])
        row |= {"coef": float(fit.beta[at]), "se": se, "low": fit.beta[at] - 1.959964 * se,
                "high": fit.beta[at] + 1.959964 * se,
                "p_coef": float(2 * ndtr(-abs(fit.beta[at] / se))) if se > 0 else NAN,
                "note": "no finite estimate: a term predicts every choice" if fit.separated else ""}  # fmt: skip
        rows.append(row)
    table = pd.DataFrame(rows)
    if not len(table) or "coef" not in table:
        return table
    pooled = pool_effects(table["coef"], table["se"])
    table = table.assign(q=holm(table["p_coef"]), shrunk=pooled.shrunk, shrunk_low=pooled.shrunk_low,
                         shrunk_high=pooled.shrunk_high)  # fmt: skip
    if pooled.units > 1:
        every = {"judge": "all judges", "family": "", "calls": int(table["calls"].sum()), "coef": pooled.mean,
                 "low": pooled.low, "high": pooled.high, "note": f"SD between judges {pooled.spread:.2f}"}  # fmt: skip
        table = pd.concat([table, pd.DataFrame([every])], ignore_index=True)
    return table


def own_gold(
    outcomes: pd.DataFrame, sheet: pd.DataFrame, families: Mapping[str, str], *, seed: int = 0
) -> pd.DataFrame:
    """Detection of damage to outputs of the judge's own family against others', within dimensions.

    Parameters
    ----------
    sheet : ``instance, dimension, author``.

    Returns
    -------
    DataFrame
        ``judge, paradigm, style, image, own, other`` (instances), ``estimate, low, high, p``: detection on own less on
        other outputs, dimensions held; above 0: damage to its own family's outputs is noticed more.
    """
    here = counted(outcomes)
    here = here[here["effect"].eq("degrade") & here["image"].isin(_SEEN)]
    here = here.merge(sheet[["instance", "dimension", "author"]], on=["instance", "dimension"])
    known = here["judge"].isin([j for j, f in families.items() if f])
    here = here[here["author"].astype(str).str.strip().ne("") & known]
    if not len(here):
        return pd.DataFrame()
    here = here.assign(own=[float(families.get(a, a) == families[j]) for a, j in zip(here["author"], here["judge"])])
    rows = []
    for key, part in here.groupby(list(SETTING), sort=False):
        by = part.groupby("dimension")
        x, y = part["own"] - by["own"].transform("mean"), part["hit"] - by["hit"].transform("mean")
        row = {**dict(zip(SETTING, key)), "own": int(part["own"].sum()), "other": int((1 - part["own"]).sum())}
        if (x**2).sum() < 1e-9:
            continue
        rng = seeds.generator(seed, "judges", "own gold", *map(str, key))
        totals = cluster_totals(np.column_stack([x * y, x * x]), part["cluster"].to_numpy())
        found = bootstrap(totals, mean_ratio, rng=rng)
        p = sign_flip((x * y).to_numpy(), part["cluster"].to_numpy(), rng=rng, draws=2_000).p
        rows.append(row | {"estimate": found.value, "low": found.interval.low, "high": found.interval.high, "p": p})
    return pd.DataFrame(rows)
