"""What a diagnosis says of models that had no part in it: subsets that rank them, families left out, newcomers."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from auditlib.dependence.information import logits, select_subset, utility
from auditlib.dependence.margins import label_margins
from auditlib.dependence.newcomer import score_new_subject
from auditlib.dependence.study import Dependence, refit
from auditlib.errors import AuditError
from auditlib.stats.multiplicity import holm

#: models that a half must have: a rank correlation of fewer says nothing
HALF = 3
#: random subsets per split
RANDOM = 20


def subset_curve(d: Dependence) -> pd.DataFrame:
    """How well a small subset ranks models that did not choose it.

    Half of the models chooses items by utility (joint gain times information), the other half is ranked on them and on
    all items.

    Returns
    -------
    DataFrame
        share, items, chosen (``utility`` or ``random``), splits, ranked (models in the other half), mean Spearman and
        Kendall over the splits, and the 10% and 90% quantiles of the Spearman (of a random subset: over all draws).

    Raises
    ------
    AuditError
        Too few models for two halves.
    """
    r = d.responses
    assert r is not None
    m, n = len(r.subjects), len(r.items)
    if m < 2 * HALF:
        raise AuditError(f"{m} models are too few for two halves of {HALF}", mend="give six models or more")
    rng = d.source.rng("dependence", "subset")
    sizes = sorted({max(1, round(s * n)) for s in d.params.subsets if s > 0})
    found: dict[tuple[int, str], list[tuple[float, float]]] = {(s, c): [] for s in sizes for c in ("utility", "random")}
    for _ in range(d.params.splits):
        mixed = rng.permutation(m)
        chooses, ranked = np.sort(mixed[: m // 2]), np.sort(mixed[m // 2 :])
        g = refit(d, chooses)
        value = utility(g.theta, g.a, g.b, r.chance)
        hits, trials = r.hits[ranked, :, 3], r.trials[ranked, :, 3]
        whole = _rate(hits, trials, np.arange(n))
        for size in sizes:
            found[size, "utility"].append(_agree(_rate(hits, trials, select_subset(value, size)), whole))
            for _ in range(RANDOM):
                part = rng.choice(n, size, replace=False)
                found[size, "random"].append(_agree(_rate(hits, trials, part), whole))
    rows = []
    for (size, chosen), values in found.items():
        x = np.array(values)
        seen = x[np.isfinite(x).all(axis=1)]
        low, high = np.quantile(seen[:, 0], [0.1, 0.9]) if len(seen) else (np.nan, np.nan)
        rows.append({"share": size / n, "items": size, "chosen": chosen, "splits": d.params.splits,
                     "ranked": m - m // 2, "spearman": seen[:, 0].mean() if len(seen) else np.nan, "low": low,
                     "high": high, "kendall": seen[:, 1].mean() if len(seen) else np.nan,
                     "undefined": len(x) - len(seen)})  # fmt: skip
    return pd.DataFrame(rows)


def _rate(hits: NDArray, trials: NDArray, part: NDArray) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return hits[:, part].sum(1) / trials[:, part].sum(1)


def _agree(part: NDArray, whole: NDArray) -> tuple[float, float]:
    """Spearman and Kendall (tau b); NaN where all models score the same."""
    if not (np.isfinite(part).all() and np.isfinite(whole).all()) or np.ptp(part) == 0 or np.ptp(whole) == 0:
        return np.nan, np.nan
    ranks = pd.DataFrame({"part": part, "whole": whole}).rank().to_numpy()
    x, y = (np.sign(v[:, None] - v[None, :]) for v in (part, whole))
    return float(np.corrcoef(ranks.T)[0, 1]), float((x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum()))


def families_left_out(d: Dependence, draws: int = 2000) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Label the items without one family, then look at that family: margins of each group, and each model's scores.

    Returns
    -------
    margins : one row per family and group; see :func:`auditlib.dependence.margins.label_margins`.
    newcomers : one row per model of a left-out family: abilities by the items frozen without it, their standard
        errors, and the accuracy in each condition, observed and as these abilities predict it.

    Raises
    ------
    AuditError
        No family of some, and not all but one, of the models.
    """
    r = d.responses
    assert r is not None
    m = len(r.subjects)
    families = {f: at for f, at in d.families.items() if m - len(at) >= 2}
    if len(families) < 2:
        raise AuditError("fewer than two families of models are named",
                         mend="give each model its family in the params' models")  # fmt: skip
    margins, scores = [], []
    for family, own in families.items():
        others = np.setdiff1d(np.arange(m), own)
        g = refit(d, others)
        rate = r.take_subjects(own).accuracy
        usable = ~g.undetermined & ~np.isnan(rate).any(axis=1)
        rng = d.source.rng("dependence", "margins", family)
        part = label_margins(rate[usable], g.label[usable], rng=rng, draws=draws)
        margins.append(part.assign(family=family, models=len(own)))
        for j in own:
            new = score_new_subject(np.where(r.trials[j] > 0, r.hits[j], np.nan), g.a, g.b, trials=r.trials[j])
            p = expit(logits(new.theta, g.a, g.b))
            row = {"model": r.subjects[j], "family": family}
            for c, name in enumerate(("base", "visual", "textual", "joint")):
                row |= {f"ability_{name}": new.theta[c], f"se_{name}": new.standard_error[c]}
            for c, name in enumerate(("none", "image_only", "blind", "full")):
                w = r.trials[j, :, c]
                total = w.sum()
                row[f"observed_{name}"] = r.hits[j, :, c].sum() / total if total else np.nan
                row[f"predicted_{name}"] = (w * p[:, c]).sum() / total if total else np.nan
            scores.append(row)
    table = pd.concat(margins, ignore_index=True)
    table["p_holm"] = holm(table["p"])
    first = ["family", "models", "group"]
    return table[first + [c for c in table.columns if c not in first]], pd.DataFrame(scores)
