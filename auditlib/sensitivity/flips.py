"""Flip rates: how often the answer changes, beside how often it changes when nothing is changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from auditlib.sensitivity.pairing import full_calls, pairs
from auditlib.stats.paired import mean_interval, sign_flip

NAN = float("nan")


def baseline_flips(calls: pd.DataFrame) -> pd.DataFrame:
    """Share of further samples of the item as it is whose answer differs from the first sample's, by model and item.

    Items with one usable sample have none: sampling noise and an effect of the change cannot be told apart there.
    """
    full = full_calls(calls)
    full = full[full["meaning"].ne("")]
    first = full.groupby(["model", "item"], sort=False)["meaning"].transform("first")
    order = full.groupby(["model", "item"], sort=False).cumcount()
    again = full.assign(base=full["meaning"].ne(first).astype(float))[order > 0]
    return again.groupby(["model", "item"], sort=False)["base"].mean().reset_index()


def flip_table(calls: pd.DataFrame, *, rng: np.random.Generator, draws: int = 2_000) -> pd.DataFrame:
    """Flips by model and condition of the image.

    Returns
    -------
    DataFrame
        ``flip``: share of calls whose answer differs from the first answer to the item as it is, with interval over
        images; of these ``right_wrong``, ``wrong_right``, ``wrong_wrong`` as shares of all calls, ``other`` with graded
        verdicts; ``net`` is right to wrong less back. ``base``: the same between samples of the item as it is, on the
        items that have some; ``excess`` with interval and the p of sign flips over images; all NaN without repeats.

    Notes
    -----
    Abstentions (``Z``) are answers. Calls without a reply, and answers that are not known, are left out; ``unknown``
    counts them. Two wrong answers that differ are a flip: accuracy does not see it.
    """
    rows: list[dict[str, Any]] = []
    base = baseline_flips(calls)
    first_hit = full_calls(calls).drop_duplicates(["model", "item"])[["model", "item", "hit"]]
    seen = pairs(calls).merge(first_hit.rename(columns={"hit": "hit_first"}), on=["model", "item"], how="left")
    seen = seen.merge(base, on=["model", "item"], how="left")
    seen = seen[~seen["family"].eq("occlude_grid")]
    for (model, family, variant, level), part in seen.groupby(["model", "family", "variant", "level"], sort=False):
        known = part["meaning"].ne("") & part["answer_full"].ne("")
        here = part[known]
        if not len(here):
            continue
        flip = here["meaning"].ne(here["answer_full"]).to_numpy()
        a, b = here["hit_first"].to_numpy(float), here["hit"].to_numpy(float)
        kind = {
            "right_wrong": (a == 1) & (b == 0),
            "wrong_right": (a == 0) & (b == 1),
            "wrong_wrong": (a == 0) & (b == 0),
        }
        split = {name: float((flip & k).mean()) for name, k in kind.items()}
        whole = mean_interval(flip.astype(float), here["image"].to_numpy(), rng=rng, draws=draws)
        row = {"model": model, "family": family, "variant": variant, "level": level, "n": len(here),
               "unknown": int((~known).sum()), "flip": whole.value, "low": whole.interval.low,
               "high": whole.interval.high, **split, "other": whole.value - sum(split.values()),
               "net": split["right_wrong"] - split["wrong_right"]}  # fmt: skip
        rows.append(row | _excess(flip, here, rng, draws))
    return pd.DataFrame(rows)


def _excess(flip: np.ndarray, here: pd.DataFrame, rng: np.random.Generator, draws: int) -> dict[str, float]:
    base = here["base"].to_numpy(float)
    with_base = ~np.isnan(base)
    if not with_base.any():
        return dict.fromkeys(("base", "excess", "excess_low", "excess_high", "p"), NAN) | {"n_base": 0}
    d = (flip - base)[with_base]
    image = here["image"].to_numpy()[with_base]
    more = mean_interval(d, image, rng=rng, draws=draws)
    return {"base": float(base[with_base].mean()), "excess": more.value, "excess_low": more.interval.low,
            "excess_high": more.interval.high, "p": sign_flip(d, image, rng=rng, draws=5 * draws).p,
            "n_base": int(with_base.sum())}  # fmt: skip
