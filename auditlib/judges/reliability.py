"""How reliably a judge notices planted damage: detection against false alarms, by dimension and over all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib import seeds
from auditlib.judges.outcomes import SETTING
from auditlib.stats.auc import auc
from auditlib.stats.beta_binomial import shrink
from auditlib.stats.intervals import wilson
from auditlib.stats.multiplicity import bh
from auditlib.stats.paired import bootstrap, cluster_totals, mean_interval, mean_ratio
from auditlib.stats.signal import detection

NAN = float("nan")
#: outcomes of which nothing is counted, and those without a judgement
_NONE = ("unanswered", "one_order")


def counted(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Outcomes with a judgement, with ``hit`` (0 or 1): gold strictly better, in both orders of a pair."""
    here = outcomes[~outcomes["outcome"].isin(_NONE)].reset_index(drop=True)
    return here.assign(hit=here["outcome"].eq("detected").astype(float))


def d_prime_of(totals: NDArray) -> NDArray[np.float64]:
    """d' of totals with the columns hits, degraded, alarms, neutral; NaN without both kinds."""
    return detection(*totals[:, :4].T)[0]


def criterion_of(totals: NDArray) -> NDArray[np.float64]:
    """Criterion of such totals: below 0 for a judge that finds fault easily."""
    return detection(*totals[:, :4].T)[1]


def dimension_table(outcomes: pd.DataFrame, *, level: float = 0.95, seed: int = 0, draws: int = 2_000) -> pd.DataFrame:
    """Detection by dimension, one row per judge, setting and dimension (neutral ones: false alarms).

    Returns
    -------
    DataFrame
        ``judge, paradigm, style, image, dimension, effect, n, unanswered, detected, tie, reversed, locked, half,
        estimate, low, high`` (Wilson), ``sim_low, sim_high`` (Wilson at the Sidak level of all dimensions of the
        setting), ``bound_low, bound_high`` (no answer counted as missed, as detected), ``shrunk, shrunk_low,
        shrunk_high`` (Beta-Binomial over the setting's degrading dimensions), ``p_half`` (exact: detects fewer than
        half), ``q_half``, ``below_macro`` (estimate minus the mean over dimensions), ``p_macro`` (one-sided, worse than
        that mean), ``q_macro``; q are Benjamini-Hochberg over the setting's degrading dimensions.
    """
    from scipy.special import bdtr, ndtr

    rows: list[dict[str, Any]] = []
    for key, part in outcomes[outcomes["outcome"].ne("one_order")].groupby(list(SETTING), sort=False):
        made = []
        groups = list(part.groupby(["dimension", "effect"], sort=False))
        for (name, effect), mine in groups:
            kinds = mine["outcome"].value_counts()
            lost = int(kinds.get("unanswered", 0))
            n, k = len(mine) - lost, int(kinds.get("detected", 0))
            row = {**dict(zip(SETTING, key)), "dimension": name, "effect": effect, "n": n, "unanswered": lost}
            row |= {o: int(kinds.get(o, 0)) for o in ("detected", "tie", "reversed", "locked", "half")}
            if n:
                ends, wide = wilson(k, n, level), wilson(k, n, level ** (1 / len(groups)))
                row |= {"estimate": k / n, "low": ends.low, "high": ends.high, "sim_low": wide.low,
                        "sim_high": wide.high}  # fmt: skip
            row |= {"bound_low": k / len(mine), "bound_high": (k + lost) / len(mine)}
            made.append(row)
        table = pd.DataFrame(made)
        bad = table["effect"].eq("degrade") & table["n"].gt(0)
        k, n = table.loc[bad, "detected"].to_numpy(float), table.loc[bad, "n"].to_numpy(float)
        if len(k):
            pooled = shrink(k, n)
            p_half = bdtr(k, n.astype(int), 0.5)
            below, se = _below(counted(part), table.loc[bad, "dimension"].tolist(), seed, draws, key)
            p_macro = ndtr(below / se) if len(k) > 1 else np.full(len(k), NAN)
            fields = {"shrunk": pooled.mean, "shrunk_low": pooled.low, "shrunk_high": pooled.high, "p_half": p_half,
                      "q_half": bh(p_half), "below_macro": below, "p_macro": p_macro,
                      "q_macro": bh(p_macro)}  # fmt: skip
            for field, values in fields.items():
                table.loc[bad, field] = values
        rows += table.to_dict("records")
    return pd.DataFrame(rows)


def _below(hits: pd.DataFrame, names: list[str], seed: int, draws: int, key: tuple) -> tuple[NDArray, NDArray]:
    """Each dimension's rate minus their mean, and its standard error over clusters (not below the binomial one)."""
    here = hits[hits["effect"].eq("degrade")]
    at = pd.Index(names).get_indexer(here["dimension"])
    m = len(names)
    columns = np.zeros((len(here), 2 * m))
    columns[np.arange(len(here)), at], columns[np.arange(len(here)), m + at] = here["hit"], 1.0
    totals = cluster_totals(columns, here["cluster"].to_numpy())
    k, n = totals[:, :m].sum(0), totals[:, m:].sum(0)
    rng = seeds.generator(seed, "judges", "dimensions", *map(str, key))
    weights = rng.multinomial(len(totals), np.full(len(totals), 1 / len(totals)), size=draws).astype(float)
    drawn = weights @ totals
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = np.where(drawn[:, m:] > 0, drawn[:, :m] / drawn[:, m:], NAN)
        moved = rates - np.nanmean(rates, axis=1, keepdims=True)
    # a rate of 0 or 1 never varies in draws: the binomial error with half a case of either kind is the least
    p = (k + 0.5) / (n + 1)
    least = p * (1 - p) / n
    exact = (1 - 1 / m) ** 2 * least + (least.sum() - least) / m**2
    rate = k / n
    return rate - rate.mean(), np.sqrt(np.maximum(np.nanvar(moved, axis=0, ddof=1), exact))


def overall_table(
    outcomes: pd.DataFrame, repeats: pd.DataFrame | None = None, *, seed: int = 0, draws: int = 2_000
) -> pd.DataFrame:
    """One row per judge, setting and quantity, with intervals over clusters.

    Parameters
    ----------
    repeats : of :func:`~auditlib.judges.outcomes.repeated`.

    Returns
    -------
    DataFrame
        ``judge, paradigm, style, image, quantity, estimate, low, high, bca_low, bca_high, clusters, n, note``.
        Quantities: ``detection`` (every instance the same), ``detection_macro`` (every dimension the same),
        ``false_alarm``, ``d_prime``, ``criterion``, ``auc`` (gaps of degraded against neutral ones), ``locked``,
        ``tie``, ``reversed``, ``unanswered``, ``gap`` (mean of degraded ones), ``effect_size`` (gap in standard
        deviations of repeated scoring), ``floor``, ``severity`` (change of detection per step of severity, within
        dimensions).
    """
    rows: list[dict[str, Any]] = []
    for key, part in outcomes[outcomes["outcome"].ne("one_order")].groupby(list(SETTING), sort=False):
        base = dict(zip(SETTING, key))
        rng = seeds.generator(seed, "judges", "overall", *map(str, key))

        def add(name: str, n: int, found: Any = None, note: str = "", base=base, **values: Any) -> None:
            rows.append({**base, "quantity": name, "n": n, "note": note, **(found.as_row() if found else {}), **values})

        def ratio(name: str, values: Any, mine: pd.DataFrame, rng=rng, add=add) -> Any:
            if not len(mine):
                return None
            found = mean_interval(np.asarray(values, float), mine["cluster"].to_numpy(), rng=rng, draws=draws)
            add(name, len(mine), found)
            return found

        known = counted(part)
        bad, fine = known[known["effect"].eq("degrade")], known[known["effect"].eq("neutral")]
        ratio("unanswered", part["outcome"].eq("unanswered"), part)
        ratio("detection", bad["hit"], bad)
        if len(bad):
            add("detection_macro", len(bad), _macro(bad, rng, draws))
        ratio("false_alarm", fine["hit"], fine)
        if len(bad) and len(fine):
            is_bad = known["effect"].eq("degrade").to_numpy(float)
            hit = known["hit"].to_numpy()
            columns = np.column_stack([hit * is_bad, is_bad, hit * (1 - is_bad), 1 - is_bad])
            totals = cluster_totals(columns, known["cluster"].to_numpy())
            functions: dict[str, Callable] = {"d_prime": d_prime_of, "criterion": criterion_of}
            for name, function in functions.items():
                add(name, len(known), bootstrap(totals, function, rng=rng, draws=draws))
            area = auc(known["gap"].to_numpy(), is_bad > 0, rng=rng, cluster=known["cluster"].to_numpy(), draws=draws)
            add("auc", len(known), estimate=area.estimate, low=area.interval.low, high=area.interval.high)
        elif len(bad):
            add(
                "d_prime", len(bad), note="no neutral change was judged: a judge that dislikes everything looks perfect"
            )
        for name in ("tie", "locked", "reversed"):
            ratio(name, bad["outcome"].eq(name), bad)
        gap = ratio("gap", bad["gap"], bad)
        again = None if repeats is None else repeats[(repeats[list(SETTING)] == list(key)).all(axis=1)]
        if again is not None and len(again) and gap is not None:
            r = again.iloc[0]
            add("floor", int(r["outputs"]), estimate=float(r["floor"]))
            add("repeatability", int(r["outputs"]), estimate=float(r["icc"]))
            note = "" if r["sd"] > 0 else "repeated scores never differ"
            sd = r["sd"] if r["sd"] > 0 else NAN
            add("effect_size", len(bad), note=note, estimate=gap.value / sd, low=gap.interval.low / sd,
                high=gap.interval.high / sd)  # fmt: skip
        slope = severity_slope(bad, rng=rng, draws=draws)
        if slope is not None:
            add("severity", int(bad["severity"].notna().sum()), slope)
    return pd.DataFrame(rows)


def _macro(bad: pd.DataFrame, rng: np.random.Generator, draws: int) -> Any:
    code, names = pd.factorize(bad["dimension"])
    m = len(names)
    columns = np.zeros((len(bad), 2 * m))
    columns[np.arange(len(bad)), code], columns[np.arange(len(bad)), m + code] = bad["hit"], 1.0

    def mean(totals: NDArray) -> NDArray:
        k, n = totals[:, :m], totals[:, m:]
        rate = np.divide(k, n, out=np.full(k.shape, NAN), where=n > 0)
        return np.nansum(rate, axis=1) / np.maximum((n > 0).sum(axis=1), 1)

    return bootstrap(cluster_totals(columns, bad["cluster"].to_numpy()), mean, rng=rng, draws=draws)


def severity_slope(bad: pd.DataFrame, *, rng: np.random.Generator, draws: int = 2_000) -> Any:
    """Change of detection per step of severity, within dimensions; None where severity does not vary within any."""
    here = bad[bad["severity"].notna()]
    if not len(here):
        return None
    by = here.groupby("dimension")
    x = (here["severity"] - by["severity"].transform("mean")).to_numpy()
    y = (here["hit"] - by["hit"].transform("mean")).to_numpy()
    if not (np.abs(x) > 1e-12).any():
        return None
    totals = cluster_totals(np.column_stack([x * y, x * x]), here["cluster"].to_numpy())
    return bootstrap(totals, mean_ratio, rng=rng, draws=draws)
