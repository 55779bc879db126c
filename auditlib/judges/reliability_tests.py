"""Does the judge look at the image, does length decide, and which setting or judge notices more?"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from auditlib import seeds
from auditlib.judges.outcomes import SETTING
from auditlib.judges.reliability import counted, d_prime_of
from auditlib.stats.multiplicity import holm
from auditlib.stats.paired import bootstrap, cluster_totals, equivalence, mean_interval, mean_ratio, sign_flip

NAN = float("nan")
#: a difference of detection within this counts as none
MARGIN = 0.05
_SAME = ["comparison", "instance", "dimension", "effect"]


def image_use(outcomes: pd.DataFrame, *, seed: int = 0, draws: int = 2_000) -> pd.DataFrame:
    """Detection with the image minus detection with the image withheld or swapped, on the same degraded instances.

    Returns
    -------
    DataFrame
        ``judge, paradigm, style, without, n, shown, other, estimate, low, high, p, p_same, q``: ``p`` from sign flips
        over clusters, ``p_same`` of the equivalence test with margin .05 (small: the judge reads the text only),
        ``q`` Holm over all rows.
    """
    hits = counted(outcomes)
    hits = hits[hits["effect"].eq("degrade")]
    rows: list[dict[str, Any]] = []
    for key, part in hits.groupby(["judge", "paradigm", "style"], sort=False):
        shown = part[part["image"].eq("shown")]
        for other in ("withheld", "swapped"):
            both = shown.merge(part[part["image"].eq(other)][[*_SAME, "hit"]], on=_SAME, suffixes=("", "_other"))
            if not len(both):
                continue
            difference, cluster = (both["hit"] - both["hit_other"]).to_numpy(), both["cluster"].to_numpy()
            rng = seeds.generator(seed, "judges", "image", other, *key)
            found = mean_interval(difference, cluster, rng=rng, draws=draws)
            rows.append({"judge": key[0], "paradigm": key[1], "style": key[2], "without": other, "n": len(both),
                         "shown": float(both["hit"].mean()), "other": float(both["hit_other"].mean()),
                         "estimate": found.value, "low": found.interval.low, "high": found.interval.high,
                         "p": sign_flip(difference, cluster, rng=rng, draws=max(draws, 999)).p,
                         "p_same": equivalence(found.draws, MARGIN)})  # fmt: skip
    table = pd.DataFrame(rows)
    return table.assign(q=holm(table["p"])) if len(table) else table


def length_control(outcomes: pd.DataFrame, lengths: pd.DataFrame, *, seed: int = 0, draws: int = 2_000) -> pd.DataFrame:
    """Gap regressed on the change of length, effects apart: how much of it length makes, and what is left without.

    Parameters
    ----------
    lengths : ``instance, dimension, longer``: length of the perturbed output minus that of the gold, in characters.

    Returns
    -------
    DataFrame
        ``judge, paradigm, style, image, n, slope, low, high, gap, gap_same_length, note``: ``slope`` per 100 characters
        that the perturbed output is longer (below 0: the judge likes length), within effects; ``gap`` of the
        degraded instances, and what it would be with lengths alike.
    """
    keyed = lengths[["instance", "dimension", "longer"]].drop_duplicates(["instance", "dimension"])
    here = outcomes[outcomes["gap"].notna()].merge(keyed, on=["instance", "dimension"])
    here = here[here["longer"].notna()]
    rows = []
    for key, part in here.groupby(list(SETTING), sort=False):
        x, y = part["longer"] / 100, part["gap"]
        dx = (x - x.groupby(part["effect"]).transform("mean")).to_numpy()
        dy = (y - y.groupby(part["effect"]).transform("mean")).to_numpy()
        row = {**dict(zip(SETTING, key)), "n": len(part)}
        if not (np.abs(dx) > 1e-12).any():
            rows.append(row | {"note": "lengths never differ"})
            continue
        totals = cluster_totals(np.column_stack([dx * dy, dx * dx]), part["cluster"].to_numpy())
        rng = seeds.generator(seed, "judges", "length", *map(str, key))
        slope = bootstrap(totals, mean_ratio, rng=rng, draws=draws)
        bad = part["effect"].eq("degrade")
        gap = float(y[bad].mean())
        rows.append(row | {"slope": slope.value, "low": slope.interval.low, "high": slope.interval.high, "gap": gap,
                           "gap_same_length": gap - slope.value * float(x[bad].mean()), "note": ""})  # fmt: skip
    return pd.DataFrame(rows)


def setting_contrasts(outcomes: pd.DataFrame, *, seed: int = 0, draws: int = 2_000) -> pd.DataFrame:
    """Detection of one judge under two paradigms or styles, and of two judges, on the same degraded instances.

    Returns
    -------
    DataFrame
        ``kind`` (paradigm, style, judge), ``at`` (what is the same), ``first, second, n, first_rate, second_rate,
        estimate, low, high, only_first, only_second, p, q, d_prime, d_low, d_high``. ``p``: exact McNemar, instances
        taken as independent; the interval resamples clusters. ``q``: Holm over all rows. ``d_prime``: difference of
        d' on the instances, neutral ones included, that both judged.
    """
    from scipy.special import bdtr

    hits = counted(outcomes)
    hits = hits[hits["image"].isin(("", "shown", "none"))]
    rows: list[dict[str, Any]] = []
    for kind in ("paradigm", "style", "judge"):
        rest = [c for c in ("judge", "paradigm", "style") if c != kind]
        for key, part in hits.groupby(rest, sort=False):
            for a, b in combinations(dict.fromkeys(part[kind]), 2):
                both = part[part[kind].eq(a)].merge(part[part[kind].eq(b)][[*_SAME, "hit"]], on=_SAME,
                                                    suffixes=("", "_b"))  # fmt: skip
                bad = both[both["effect"].eq("degrade")]
                if not len(bad):
                    continue
                difference = (bad["hit"] - bad["hit_b"]).to_numpy()
                rng = seeds.generator(seed, "judges", "settings", kind, str(a), str(b), *map(str, key))
                found = mean_interval(difference, bad["cluster"].to_numpy(), rng=rng, draws=draws)
                won, lost = int((difference > 0).sum()), int((difference < 0).sum())
                p = min(1.0, 2 * float(bdtr(min(won, lost), won + lost, 0.5)))
                row = {"kind": kind, "at": ", ".join(filter(None, map(str, key))), "first": a, "second": b,
                       "n": len(bad), "first_rate": float(bad["hit"].mean()),
                       "second_rate": float(bad["hit_b"].mean()), "estimate": found.value,
                       "low": found.interval.low, "high": found.interval.high, "only_first": won,
                       "only_second": lost, "p": p}  # fmt: skip
                rows.append(row | _d_difference(both, rng, draws))
    table = pd.DataFrame(rows)
    if len(table):
        table.insert(table.columns.get_loc("p") + 1, "q", holm(table["p"]))
    return table


def _d_difference(both: pd.DataFrame, rng: np.random.Generator, draws: int) -> dict[str, float]:
    bad = both["effect"].eq("degrade").to_numpy(float)
    if bad.all() or not bad.any():
        return {"d_prime": NAN, "d_low": NAN, "d_high": NAN}
    columns = [part for h in (both["hit"].to_numpy(), both["hit_b"].to_numpy())
               for part in (h * bad, bad, h * (1 - bad), 1 - bad)]  # fmt: skip
    totals = cluster_totals(np.column_stack(columns), both["cluster"].to_numpy())
    found = bootstrap(totals, lambda t: d_prime_of(t[:, :4]) - d_prime_of(t[:, 4:]), rng=rng, draws=draws)
    return {"d_prime": found.value, "d_low": found.interval.low, "d_high": found.interval.high}
