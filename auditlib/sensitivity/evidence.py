"""Evidence specificity: is more lost when the region that holds the answer is covered than when another one is?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from auditlib.sensitivity.pairing import full_of
from auditlib.stats.paired import mean_interval, sign_flip
from auditlib.stats.poisson_binomial import poisson_binomial_test

EVIDENCE, CONTROL, GRID = "occlude_evidence", "occlude_control", "occlude_grid"
NAN = float("nan")


def evidence_items(calls: pd.DataFrame) -> pd.DataFrame:
    """One row per model and item with an evidence box and at least one control box.

    Returns
    -------
    DataFrame
        ``hit_evidence``, ``hit_control`` (mean over the boxes), ``controls``; the same for margins; ``bound``: the
        margin falls more for the evidence box than for every control box, missing without margins. A tie is no fall.
    """
    here = calls[calls["form"].eq("") & calls["hit"].notna()]
    evidence = here[here["family"].eq(EVIDENCE)].groupby(["model", "item"], sort=False)
    evidence = evidence.agg(image=("image", "first"), hit_evidence=("hit", "mean"), margin_evidence=("margin", "mean"))
    control = here[here["family"].eq(CONTROL)].groupby(["model", "item"], sort=False)
    control = control.agg(hit_control=("hit", "mean"), margin_control=("margin", "mean"), controls=("hit", "size"),
                          scored=("margin", "count"), least=("margin", "min"))  # fmt: skip
    out = evidence.join(control, how="inner").reset_index().merge(full_of(calls), on=["model", "item"], how="left")
    known = out["margin_evidence"].notna() & out["scored"].eq(out["controls"])
    # the margin under the evidence box lies below every margin under a control box
    out["bound"] = (out["margin_evidence"] < out["least"]).astype(float).where(known)
    return out.drop(columns=["least", "scored"])


def evidence_table(items: pd.DataFrame, *, rng: np.random.Generator, draws: int = 2_000) -> pd.DataFrame:
    """Specificity by model.

    Parameters
    ----------
    items : of :func:`evidence_items`.

    Returns
    -------
    DataFrame
        ``specificity``: accuracy with a control box less that with the evidence box, interval and sign-flip p over
        images; ``margin`` likewise; ``bound``: share of evidence-bound items of ``scored``, ``chance`` the mean of
        ``1 / (controls + 1)``, and the exact ``p_bound`` (binomial, Poisson-binomial where the number of boxes varies).
    """
    rows: list[dict[str, Any]] = []
    for model, part in items.groupby("model", sort=False):
        image = part["image"].to_numpy()
        d = (part["hit_control"] - part["hit_evidence"]).to_numpy(float)
        m = (part["margin_control"] - part["margin_evidence"]).to_numpy(float)
        acc, test = mean_interval(d, image, rng=rng, draws=draws), sign_flip(d, image, rng=rng, draws=5 * draws)
        row = {"model": model, "n": len(part), "full": float(part["hit_full"].mean()),
               "control": float(part["hit_control"].mean()), "evidence": float(part["hit_evidence"].mean()),
               "specificity": acc.value, "low": acc.interval.low, "high": acc.interval.high, "p": test.p,
               "margin": NAN, "margin_low": NAN, "margin_high": NAN, "p_margin": NAN}  # fmt: skip
        if (~np.isnan(m)).any():
            seen = mean_interval(m, image, rng=rng, draws=draws)
            row |= {"margin": seen.value, "margin_low": seen.interval.low, "margin_high": seen.interval.high,
                    "p_margin": sign_flip(m, image, rng=rng, draws=5 * draws).p}  # fmt: skip
        known = part["bound"].notna()
        rows.append(row | bound_test(part.loc[known, "bound"], part.loc[known, "controls"]))
    return pd.DataFrame(rows)


def bound_test(bound: ArrayLike, controls: ArrayLike) -> dict[str, Any]:
    """Number of evidence-bound items against ``1 / (controls + 1)`` each, one-sided and exact.

    Examples
    --------
    >>> round(bound_test([1, 1, 1, 0], [3, 3, 3, 3])["p_bound"], 6)
    0.050781
    """
    b = np.asarray(bound, float)
    if not len(b):
        return {"scored": 0, "bound": NAN, "chance": NAN, "p_bound": NAN}
    chance = 1 / (np.asarray(controls, float) + 1)
    test = poisson_binomial_test(int(b.sum()), chance)
    return {"scored": len(b), "bound": float(b.mean()), "chance": float(chance.mean()), "p_bound": test.upper}


def grid_map(calls: pd.DataFrame) -> pd.DataFrame:
    """Fall of hit and margin by item and cell of an occlusion grid, mean over models; ``level`` is the cell's number
    from 1, row by row."""
    here = calls[calls["family"].eq(GRID) & calls["form"].eq("")].merge(full_of(calls), on=["model", "item"])
    if not len(here):
        return pd.DataFrame(columns=["item", "cell", "models", "drop", "erosion"])
    here = here.assign(drop=here["hit_full"] - here["hit"], erosion=here["margin_full"] - here["margin"],
                       cell=here["level"].astype(int))  # fmt: skip
    out = here.groupby(["item", "cell"], sort=False).agg(
        models=("model", "nunique"), drop=("drop", "mean"), erosion=("erosion", "mean")
    )
    return out.reset_index()
