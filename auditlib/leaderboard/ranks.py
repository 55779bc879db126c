"""Ranks of models with simultaneous bands: on one benchmark over its items, on all of them over benchmarks."""

from __future__ import annotations

import numpy as np
import pandas as pd

from auditlib.pool import Pool
from auditlib.stats.rank_bands import RankBands, rank_bands

#: benchmarks below which the spread between benchmarks is not known well enough for bands
FEWEST = 8
#: benchmarks left out that are named
MOST_NAMED = 8
COLUMNS = ("model", "n", "score", "se", "rank", "rank_low", "rank_high", "group")


def pool_ranks(pool: Pool) -> tuple[pd.DataFrame, str]:
    """Ranks on one benchmark by accuracy with the image in the headline arm.

    Returns
    -------
    frame with :data:`COLUMNS`, and a sentence on what was left out.

    Notes
    -----
    Items that lack a model's answer would be left out for all; so first a model with fewer than nine tenths of the
    items is left out of the ranking, then every item that a remaining model lacks.
    """
    arm = pool.arm
    if "full" not in arm.hits:
        return pd.DataFrame(columns=list(COLUMNS)), "no run with the image"
    seen = arm.observed("full")
    seen = np.ones(arm.hits["full"].shape, bool) if seen is None else seen
    models = seen.mean(axis=0) >= 0.9
    items = seen[:, models].all(axis=1)
    if models.sum() < 2 or not items.any():
        return pd.DataFrame(columns=list(COLUMNS)), "no item has an answer of two models"
    hits = arm.hits["full"][np.ix_(items, models)].astype(float)
    trials = 1.0 if arm.trials is None else arm.trials["full"][np.ix_(items, models)]
    cluster = None if pool.cluster is None else pool.cluster[items]
    bands = rank_bands(hits / trials, cluster=cluster, rng=pool.rng("ranks"))
    names = [n for n, kept in zip(pool.model_names, models) if kept]
    notes = []
    if not models.all():
        notes.append(f"{int((~models).sum())} models with fewer than nine tenths of the items are not ranked")
    if not items.all():
        notes.append(f"{int((~items).sum())} of {len(items)} items lack a model's answer and are left out")
    return _frame(names, bands), "; ".join(notes)


def board_ranks(profile: pd.DataFrame, rng: np.random.Generator) -> tuple[pd.DataFrame, str]:
    """Ranks by mean accuracy over benchmarks, each benchmark counting once.

    Parameters
    ----------
    profile : rows by benchmark and model with columns ``pool, model, full``.
    rng : for the bands' bootstrap.

    Returns
    -------
    frame with :data:`COLUMNS` (``n`` = benchmarks), and a sentence on what was left out. With fewer than
    :data:`FEWEST` benchmarks the band columns are missing.

    Notes
    -----
    Benchmarks are the units: bands say what other benchmarks of this kind would leave of the ranking. Models are
    compared on the benchmarks that all of them have. Where there is none, those without the benchmark that most models
    have are not ranked.
    """
    table = profile.pivot_table(index="pool", columns="model", values="full", aggfunc="first")
    if not len(table):
        return pd.DataFrame(columns=list(COLUMNS)), "no model has an accuracy with the image"
    held = table.notna().to_numpy()
    first = max(range(len(table)), key=lambda b: (held[b].sum(), held[:, held[b]].all(axis=1).sum()))
    models, notes = held[first], []
    shared = held[:, models].all(axis=1)
    if models.sum() < 2:
        return pd.DataFrame(columns=list(COLUMNS)), "no ranks: no two models have a benchmark in common"
    if not models.all():
        notes.append(f"{int((~models).sum())} of {len(models)} models are not ranked: no benchmark is shared by all, "
                     f"and they lack {table.index[first]}, which most models have")  # fmt: skip
    if not shared.all():
        lacking = (~held[:, models]).sum(axis=1).tolist()
        names = [f"{n} ({k} of them lack{'s' * (k == 1)} it)" for n, k, s in zip(table.index, lacking, shared) if not s]
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        notes.append(f"ranks rest on the {int(shared.sum())} of {len(shared)} benchmarks that all {int(models.sum())} "
                     f"ranked models have; left out: {', '.join(names[:MOST_NAMED])}{more}")  # fmt: skip
    whole, value = table.columns[models], table.to_numpy(float)[np.ix_(shared, models)]
    if len(value) < FEWEST:
        score = value.mean(axis=0)
        rank = pd.Series(-score).rank().to_numpy()
        notes.append(f"ranks without bands: these need {FEWEST} benchmarks, and there are {len(value)}")
        plain = pd.DataFrame({"model": whole, "n": len(value), "score": score, "rank": rank})
        return plain.reindex(columns=list(COLUMNS)).sort_values("rank", ignore_index=True), "; ".join(notes)
    return _frame(list(whole), rank_bands(value, rng=rng)), "; ".join(notes)


def _frame(names: list[str], b: RankBands) -> pd.DataFrame:
    return pd.DataFrame({
        "model": names, "n": b.items, "score": b.score, "se": b.se, "rank": b.rank, "rank_low": b.low,
        "rank_high": b.high, "group": b.group,
    }).sort_values(["rank", "model"], ignore_index=True)  # fmt: skip
