"""Decision margins and their erosion: how much of the lead of the key is lost where the answer stays the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.stats.paired import mean_interval

#: repeats from which a margin of samples is taken
LEAST_SAMPLES = 8
NAN = float("nan")


def margin_of_scores(scores: Mapping[str, float], key: str, tokens: Mapping[str, int] | None = None) -> float:
    """``log p(key) - max over the others``, per token where options have several; NaN without the key or another.

    Parameters
    ----------
    scores : option -> log-probability. tokens : option -> its number of tokens.

    Examples
    --------
    >>> margin_of_scores({"A": -0.5, "B": -2.0, "C": -3.0}, "A")
    1.5
    """
    each = {o: v / (tokens[o] if tokens else 1) for o, v in scores.items()}
    others = [v for o, v in each.items() if o != key]
    return each[key] - max(others) if key in each and others else NAN


def margin_of_samples(answers: Sequence[str], key: str, options: Sequence[str]) -> float:
    """``p(key) - max over the others`` from repeats, half an answer added to each option.

    NaN with fewer than :data:`LEAST_SAMPLES` answers among the options.

    Examples
    --------
    >>> margin_of_samples(["A"] * 6 + ["B"] * 2, "A", "ABCD")
    0.4
    """
    counts = dict.fromkeys(options, 0.5)
    for a in answers:
        if a in counts:
            counts[a] += 1
    total = sum(counts.values())
    if total - 0.5 * len(counts) < LEAST_SAMPLES or key not in counts or len(counts) < 2:
        return NAN
    return (counts[key] - max(v for o, v in counts.items() if o != key)) / total


def with_sample_margins(calls: pd.DataFrame) -> pd.DataFrame:
    """The calls, with margins of repeats where a condition has none of scores but enough samples."""
    if calls["margin"].notna().any() or calls["sample"].max() + 1 < LEAST_SAMPLES:
        return calls
    cell = ["model", "item", "family", "variant", "level", "seed", "form"]
    options = calls.groupby("item")["answer"].agg(lambda a: sorted({x for x in a if x not in ("", "Z")}))
    margin = {
        name: margin_of_samples(part["answer"].tolist(), part["key"].iloc[0], _letters(part, options))
        for name, part in calls.groupby(cell, sort=False)
    }
    return calls.assign(margin=[margin[tuple(r)] for r in calls[cell].itertuples(index=False)])


def _letters(part: pd.DataFrame, seen: pd.Series) -> list[str]:
    k = part["k"].iloc[0]
    key = part["key"].iloc[0]
    if len(key) == 1 and key.isupper() and k == k:
        return [chr(65 + i) for i in range(int(k))]
    return sorted({*seen[part["item"].iloc[0]], key} - {""})


def matched_erosion(full: ArrayLike, changed: ArrayLike, unchanged: ArrayLike, bins: int = 10) -> tuple[float, int]:
    """Erosion on unchanged answers with the margins of all items: mean over deciles of the margin under ``full``.

    Parameters
    ----------
    full, changed : shape (items,), margins. unchanged : boolean, answers that stayed right.

    Returns
    -------
    erosion : each decile weighted by all its items; deciles without an unchanged answer take no part.
    left_out : items in such deciles.
    """
    f, c, u = np.asarray(full, float), np.asarray(changed, float), np.asarray(unchanged, bool)
    seen = ~np.isnan(f) & ~np.isnan(c)
    f, c, u = f[seen], c[seen], u[seen]
    if not len(f):
        return NAN, 0
    rank = np.empty(len(f), int)
    rank[np.argsort(f, kind="stable")] = np.arange(len(f))
    decile = rank * bins // len(f)
    total, weight, gone = 0.0, 0, 0
    for d in range(bins):
        here = decile == d
        if (here & u).any():
            total += here.sum() * float((f - c)[here & u].mean())
            weight += int(here.sum())
        else:
            gone += int(here.sum())
    return (total / weight if weight else NAN), gone


def erosion_table(pairs: pd.DataFrame, *, rng: np.random.Generator, draws: int = 2_000) -> pd.DataFrame:
    """Erosion of the margin by model and condition.

    Parameters
    ----------
    pairs : of :func:`auditlib.sensitivity.pairing.pairs`: ``margin_full``, ``margin``, ``answer_full``, ``meaning``,
        ``hit_full``, ``image``.

    Returns
    -------
    DataFrame
        ``erosion``: mean of full less changed where the answer stayed the key; ``unconditional``: over all items;
        ``matched``: see :func:`matched_erosion`; ``relative``: erosion over that of the blind run. Items with an
        unchanged right answer have large margins to begin with, so the three are read together.
    """
    rows = []
    for (model, family, variant, level), part in pairs.groupby(["model", "family", "variant", "level"], sort=False):
        part = part[part["margin"].notna() & part["margin_full"].notna()]
        if not len(part):
            continue
        fall = (part["margin_full"] - part["margin"]).to_numpy(float)
        same = _same(part)
        image = part["image"].to_numpy()
        cond = mean_interval(fall[same], image[same], rng=rng, draws=draws)
        whole = mean_interval(fall, image, rng=rng, draws=draws)
        matched, gone = matched_erosion(part["margin_full"], part["margin"], same)
        rows.append({"model": model, "family": family, "variant": variant, "level": level, "n": len(part),
                     "unchanged": int(same.sum()), "erosion": cond.value, "low": cond.interval.low,
                     "high": cond.interval.high, "unconditional": whole.value, "unconditional_low": whole.interval.low,
                     "unconditional_high": whole.interval.high, "matched": matched, "unmatched": gone})  # fmt: skip
    table = pd.DataFrame(rows)
    if len(table):
        blind = table[table["family"].eq("blind")].set_index("model")["erosion"]
        table["relative"] = table["erosion"] / table["model"].map(blind)
    return table


def _same(part: pd.DataFrame) -> NDArray[np.bool_]:
    return (part["answer_full"].eq(part["meaning"]) & part["answer_full"].ne("") & part["hit_full"].eq(1)).to_numpy()
