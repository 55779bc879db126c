"""Scores of judges against people's: rank agreement, leniency, and scores that are none, by set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from auditlib import seeds
from auditlib.stats.intervals import wilson
from auditlib.stats.multiplicity import holm
from auditlib.stats.paired import mean_interval

NAN = float("nan")
ALL = "all"


def against_people(calls: pd.DataFrame, ratings: pd.DataFrame, *, seed: int = 0, draws: int = 2_000) -> pd.DataFrame:
    """Single scores beside people's ratings of the same outputs, by judge and set (``comparison``), and over all sets.

    Parameters
    ----------
    calls : frame of judge calls; those of ``single`` that score one rated candidate count, first repeats.
    ratings : ``prompt, candidate, rating`` on the same scale.

    Returns
    -------
    DataFrame
        ``judge, comparison, n, unparsed, unparsed_share, unparsed_low, unparsed_high, rank, low, high, exact,
        distance, lenient, lenient_low, lenient_high, lenient_bound_low, lenient_bound_high, p, q``. ``unparsed``:
        calls without a score, sentinels included; ``rank``: Spearman's coefficient with the interval of Bonett and
        Wright (2000); ``exact``: share of equal scores; ``distance``: mean absolute difference; ``lenient``: mean of
        score minus rating, interval over clusters; its bounds count each call without a score with the lowest, the
        highest score seen; ``p``: no rank agreement, ``q``: Holm over judges and sets.
    """
    from scipy.stats import spearmanr

    mine = calls[calls["paradigm"].eq("single") & calls["repeat"].eq(0)]
    mine = mine.assign(candidate=mine["shown"].map(lambda s: s[0]))
    rated = ratings.rename(columns={"prompt": "instance"})[["instance", "candidate", "rating"]]
    both = mine.merge(rated, on=["instance", "candidate"])
    if not len(both):
        return pd.DataFrame()
    ends = (float(both["score"].min()), float(both["score"].max()))
    rows: list[dict[str, Any]] = []
    for judge, whole in both.groupby("judge", sort=False):
        sets = [(ALL, whole)]
        if whole["comparison"].nunique() > 1:
            sets += list(whole.groupby("comparison", sort=False))
        for name, part in sets:
            known = part[part["score"].notna()]
            n, lost = len(known), len(part) - len(known)
            share = wilson(lost, len(part))
            row = {"judge": judge, "comparison": name, "n": n, "unparsed": lost, "unparsed_share": lost / len(part),
                   "unparsed_low": share.low, "unparsed_high": share.high}  # fmt: skip
            if n > 3:
                difference = (known["score"] - known["rating"]).to_numpy()
                rng = seeds.generator(seed, "judges", "people", str(judge), str(name))
                mean = mean_interval(difference, known["cluster"].to_numpy(), rng=rng, draws=draws)
                filled = [float((part["score"].fillna(e) - part["rating"]).mean()) for e in ends]
                row |= {"exact": float((difference == 0).mean()), "distance": float(np.abs(difference).mean()),
                        "lenient": mean.value, "lenient_low": mean.interval.low, "lenient_high": mean.interval.high,
                        "lenient_bound_low": filled[0], "lenient_bound_high": filled[1]}  # fmt: skip
                if known["score"].nunique() > 1 and known["rating"].nunique() > 1:
                    test = spearmanr(known["score"], known["rating"])
                    row |= {"rank": float(test.statistic), "p": float(test.pvalue), **_ends(float(test.statistic), n)}
            rows.append(row)
    table = pd.DataFrame(rows).reindex(columns=[
        "judge", "comparison", "n", "unparsed", "unparsed_share", "unparsed_low", "unparsed_high", "rank", "low",
        "high", "exact", "distance", "lenient", "lenient_low", "lenient_high", "lenient_bound_low",
        "lenient_bound_high", "p",
    ])  # fmt: skip
    return table.assign(q=holm(table["p"]))


def _ends(r: float, n: int) -> dict[str, float]:
    half = 1.959964 * np.sqrt((1 + r * r / 2) / (n - 3))
    z = np.arctanh(np.clip(r, -0.999999, 0.999999))
    return {"low": float(np.tanh(z - half)), "high": float(np.tanh(z + half))}
