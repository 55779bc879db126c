"""Tests of the planned contrasts: against the item as it is, over levels, over models, and for no change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.sensitivity.conditions import PLANNED
from auditlib.sensitivity.pairing import item_means
from auditlib.stats.equivalence import tost
from auditlib.stats.multiplicity import holm
from auditlib.stats.paired import BATCH, cluster_totals, sign_flip

NAN = float("nan")


def mcnemar_exact(lost: int, won: int) -> float:
    """Two-sided exact p of McNemar's test: a binomial of the discordant pairs at one half.

    Examples
    --------
    >>> mcnemar_exact(8, 1)
    0.0390625
    """
    from scipy.stats import binomtest

    return float(binomtest(lost, lost + won, 0.5).pvalue) if lost + won else 1.0


def mcnemar_or_flips(
    full: ArrayLike, changed: ArrayLike, image: ArrayLike, *, rng: np.random.Generator, draws: int = 10_000
) -> dict[str, Any]:
    """Test of a change in accuracy: exact McNemar where verdicts are 0 or 1 and no image is shared, else sign flips
    over images.

    Returns
    -------
    dict
        ``right_wrong`` and ``wrong_right``: items that go from right to wrong and back, weighted where
        verdicts are graded; ``p`` and ``p_method``.
    """
    f, c = np.asarray(full, float), np.asarray(changed, float)
    d = f - c
    lost, won = float(np.clip(d, 0, None).sum()), float(np.clip(-d, 0, None).sum())
    single = len(np.unique(np.asarray(image).astype(str))) == len(d)
    if single and np.isin(f, (0, 1)).all() and np.isin(c, (0, 1)).all():
        return {"right_wrong": lost, "wrong_right": won, "p": mcnemar_exact(int(lost), int(won)),
                "p_method": "exact McNemar"}  # fmt: skip
    seen = sign_flip(d, image, rng=rng, draws=draws)
    return {"right_wrong": lost, "wrong_right": won, "p": seen.p, "p_method": seen.p_method}


def equal(difference: ArrayLike, margin: float, image: ArrayLike) -> float:
    """p of the two one-sided tests that the mean difference lies within the margin; see
    :func:`auditlib.stats.equivalence.tost`."""
    d = np.asarray(difference, float)
    shared = len(np.unique(np.asarray(image).astype(str))) < len(d)
    return tost(d, margin, cluster=image if shared else None).p


def max_t(
    differences: ArrayLike, image: ArrayLike | None = None, *, rng: np.random.Generator, draws: int = 9_999
) -> tuple[float, NDArray[np.float64]]:
    """Whether accuracy falls at any level: largest studentised sum over levels, signs flipped by image for all levels.

    Parameters
    ----------
    differences : shape (items, levels), full less changed.

    Returns
    -------
    p : of the largest, one-sided (a fall). adjusted : shape (levels,), single-step adjusted p of each level.

    Notes
    -----
    ``T_l = sum d_l / sqrt(sum d_l^2)`` over images; the root does not change under flips. Westfall and Young (1993).
    """
    x = cluster_totals(differences, image)
    size = np.sqrt((x**2).sum(axis=0))
    live = size > 0
    if not live.any():
        return 1.0, np.ones(x.shape[1])
    z = x[:, live] / size[live]
    seen = z.sum(axis=0)
    largest = []
    step = max(1, BATCH // len(z))
    for start in range(0, draws, step):
        signs = rng.choice((-1.0, 1.0), (min(step, draws - start), len(z)))
        largest.append((signs @ z).max(axis=1))
    top = np.concatenate(largest)
    adjusted = np.ones(x.shape[1])
    adjusted[live] = [(1 + int((top >= s - 1e-9).sum())) / (1 + draws) for s in seen]
    return float(adjusted.min()), adjusted


def trend_table(calls: pd.DataFrame, *, rng: np.random.Generator, draws: int = 9_999) -> pd.DataFrame:
    """Fall over the levels of each family, by model and for all models together.

    Returns
    -------
    DataFrame
        Rows by model and family with ``p`` of :func:`max_t` and ``q``, Holm over models times the planned families
        (blur, downsample, tokens). The rows ``all models`` take the mean over models of each item's difference, so that
        models are repeated measures of the images; ``low`` and ``high`` are the mean drop with one model left out, and
        ``page`` the exact p of Page's L with models as blocks.
    """
    rows = []
    means = item_means(calls)
    full = means[means["family"].eq("full")].set_index(["model", "item"])["hit"]
    for (family, variant), part in means[means["level"].gt(0) & ~means["family"].eq("occlude_grid")].groupby(
        ["family", "variant"], sort=False
    ):
        base = full.reindex(pd.MultiIndex.from_frame(part[["model", "item"]])).to_numpy()
        part = part.assign(fall=base - part["hit"].to_numpy())
        part = part[part["fall"].notna()]
        blocks = {}
        for model, own in part.groupby("model", sort=False):
            wide = own.pivot(index="item", columns="level", values="fall").dropna()
            if not len(wide):
                continue
            blocks[model] = wide
            image = own.drop_duplicates("item").set_index("item")["image"].reindex(wide.index).to_numpy()
            p, each = max_t(wide.to_numpy(), image, rng=rng, draws=draws)
            rows.append({"family": family, "variant": variant, "model": model, "n": len(wide),
                         "levels": wide.shape[1], "drop": float(wide.to_numpy().mean()), "p": p,
                         "first": _first(wide.columns, each)})  # fmt: skip
        if len(blocks) > 1:
            rows.append(_together(family, variant, blocks, part, rng, draws))
    table = pd.DataFrame(rows)
    if len(table):
        planned = table["family"].isin(PLANNED) & table["model"].ne("all models")
        table["q"] = NAN
        table.loc[planned, "q"] = holm(table.loc[planned, "p"])
    return table


def _first(levels: Any, adjusted: NDArray) -> float:
    """Lowest level with an adjusted p of at most .05."""
    hit = np.flatnonzero(adjusted <= 0.05)
    return float(levels[hit[0]]) if len(hit) else NAN


def _together(family: str, variant: str, blocks: dict[str, pd.DataFrame], part: pd.DataFrame,
              rng: np.random.Generator, draws: int) -> dict[str, Any]:  # fmt: skip
    from scipy.stats import page_trend_test

    levels = sorted(set.intersection(*(set(b.columns) for b in blocks.values())))
    whole = pd.concat([b[levels] for b in blocks.values()]).groupby(level=0, sort=False).mean()
    image = part.drop_duplicates("item").set_index("item")["image"].reindex(whole.index).to_numpy()
    p, each = max_t(whole.to_numpy(), image, rng=rng, draws=draws)
    model_mean = np.array([b[levels].to_numpy().mean() for b in blocks.values()])
    left = (model_mean.sum() - model_mean) / (len(model_mean) - 1)
    out = {"family": family, "variant": variant, "model": "all models", "n": len(whole), "levels": len(levels),
           "drop": float(model_mean.mean()), "p": p, "first": _first(levels, each), "low": float(left.min()),
           "high": float(left.max()), "page": NAN}  # fmt: skip
    if len(levels) > 2 and len(blocks) > 2:
        drops = np.array([b[levels].to_numpy().mean(axis=0) for b in blocks.values()])
        out["page"] = float(page_trend_test(drops, method="exact" if len(levels) < 8 else "auto").pvalue)
    return out


def say_same(row: Any) -> str:
    """``insensitive`` where an equivalence test shows it, ``small fall`` where a drop is shown besides, ``falls`` where
    only a drop is, else ``open``."""
    same = row["p_same_drop"] <= 0.05 or (row["p_same_lost"] == row["p_same_lost"] and row["p_same_lost"] <= 0.05)
    down = row["p"] <= 0.05 and row["drop"] > 0
    return ("small fall" if down else "insensitive") if same else ("falls" if down else "open")
