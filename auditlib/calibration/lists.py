"""Lists with a promised share of errors: what share is realised where the truth is known."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from auditlib.calibration.parallel import spread
from auditlib.calibration.review_sample import review_sample
from auditlib.calibration.rules import fdr_row
from auditlib.seeds import generator
from auditlib.stats.gain_list import gain_posterior
from auditlib.stats.label_conflict import label_conflict
from auditlib.stats.local_fdr import local_fdr
from auditlib.stats.multiplicity import bayes_fdr, bh
from auditlib.stats.null import region_null
from auditlib.stats.tables import group_tables, tie_region
from auditlib.synth.null_worlds import NULLS
from auditlib.synth.plant import spoil
from auditlib.synth.worlds import Recipe, World, world

#: nominal false discovery rates: strata by Benjamini-Hochberg, items by posterior
NOMINAL, ITEM_LEVEL = 0.05, 0.1
#: reviewed items, models of a pool and of the population that stands for all of them, largest gain that counts as none
REVIEWED, POOL, POPULATION, MARGIN = 100, 24, 1200, 0.1
_KEYS = Recipe(items=1500, models=5, misconception=0.65)
_GAIN = replace(NULLS["zero_signal"], models=POPULATION)
_LINKED = replace(_GAIN, kinds={"unlinked": 0.5, "text_suffices": 0.3, "needs_image": 0.2})
#: what is listed -> the pools that it is listed in
STRATA = ("strata with excess, nothing there", "strata with excess, half of them real")
KEYS = ("wrong keys by 100 reviews, none there", "wrong keys by 100 reviews, 5% planted")
GAIN = ("items without gain, unlinked items", "items without gain, partly answered from the text")


def list_rows(worlds: int, seed: int, jobs: int = 1) -> list[dict[str, Any]]:
    """One row for each list: realised share of errors against the nominal one.

    Notes
    -----
    Strata are listed by Benjamini-Hochberg on their zero-gain tests.  Wrong keys by the local false discovery rate from
    100 reviewed items; reviewed ones are listed by what people said. Items without gain by the posterior that takes a
    model's two runs as they come, for a pool of 24 models; a population of 1,200 says which items have none.
    """
    rows = []
    for group, names, make, level in (
        ("strata", STRATA, _strata_lists, NOMINAL),
        ("keys", KEYS, _key_lists, ITEM_LEVEL),
        ("gain", GAIN, _gain_lists, ITEM_LEVEL),
    ):
        made = spread(partial(make, seed), range(worlds), jobs)
        for at, name in enumerate(names):
            false, listed = zip(*(m[at] for m in made))
            rows.append({"world": group, "name": name} | fdr_row(false, listed, level))
    return rows


def _strata_lists(seed: int, i: int) -> list[tuple[int, int]]:
    """Strata by Benjamini-Hochberg: none holds anything, and half of them do."""
    recipe = replace(NULLS["category_only"], items=800, strata=8)
    linked = replace(recipe, kinds={"needs_image": 0.6, "text_suffices": 0.4})
    silent, real = (_strata_p(world(r, seed + i, f"strata {r is linked}")) for r in (recipe, linked))
    nothing = bh(silent) <= NOMINAL
    half = bh(np.concatenate([silent[:4], real[:4]])) <= NOMINAL
    return [(int(nothing.sum()), int(nothing.sum())), (int(half[:4].sum()), int(half.sum()))]


def _strata_p(w: World) -> np.ndarray:
    full, blind = (w.hits(c).sum(1).astype(int) for c in ("full", "blind"))
    tables = group_tables(full, blind, w.full.shape[1], pd.factorize(w.truth["stratum"])[0])
    region = tie_region(w.full.shape[1] + 1)
    return np.array([region_null(t, region, draws=0).p for t in tables])


def _key_lists(seed: int, i: int) -> list[tuple[int, int]]:
    """Keys by the local false discovery rate of a reviewed sample."""
    out = []
    for share in (0.0, 0.05):
        w = world(_KEYS, seed + i, f"key list {share}")
        w = spoil(w, {"wrong_key": share}, seed + i) if share else w
        bad, rng = w.planted("wrong_key"), generator(seed, "key list", str(share), str(i))
        order = label_conflict(w.full.astype(int), w.key.astype(int)).order
        sample = review_sample(order, REVIEWED, rng=rng)
        rate = local_fdr(sample.rank, bad[sample.items].astype(float), sample.edges, rng=rng, draws=1000)
        posterior = 1 - rate.at(np.arange(len(order)))
        posterior[sample.rank] = bad[sample.items]
        listed = bayes_fdr(posterior, ITEM_LEVEL).order
        out.append((int((~bad[order[listed]]).sum()), len(listed)))
    return out


def _gain_lists(seed: int, i: int) -> list[tuple[int, int]]:
    """Items by their posterior of small gain; a large population of models says which have no gain."""
    out = []
    for recipe in (_GAIN, _LINKED):
        w = world(recipe, seed + i, f"gain list {recipe is _LINKED}")
        full, blind = w.hits("full"), w.hits("blind")
        true = np.abs(full.mean(axis=1) - blind.mean(axis=1)) <= MARGIN
        pool = generator(seed, "gain list", str(i)).choice(POPULATION, POOL, replace=False)
        posterior = gain_posterior(full[:, pool], blind[:, pool], margin=MARGIN)
        listed = bayes_fdr(posterior, ITEM_LEVEL).order
        out.append((int((~true[listed]).sum()), len(listed)))
    return out
