"""How much a pool can find: detection against the share of defects, the number of models and the options shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from auditlib.calibration.nulls import zero_gain
from auditlib.calibration.parallel import spread
from auditlib.calibration.rules import binomial_interval
from auditlib.detectors.consensus_error import consensus
from auditlib.seeds import generator
from auditlib.stats.agreement import category_counts
from auditlib.stats.auc import auc
from auditlib.stats.key_scan import lag_scan, relabelling
from auditlib.synth.plant import shift_keys, spoil
from auditlib.synth.worlds import Recipe, world

MODELS = (3, 5, 8, 12, 20)
SHARES = (0.01, 0.02, 0.05, 0.10)
OPTIONS: tuple[int, ...] = (2, 4, 10)
#: shares of items whose text suffices, in pools whose other items need their image
LINKED = (0.0, 0.03, 0.06, 0.12, 0.25)
ITEMS = (300, 1500)
STRETCHES = (10, 20, 50, 100)
#: models that are both wrong agree on the option in two thirds of the cases, as those of published pools do
_BASE = Recipe(items=1500, strata=6, misconception=0.65)
NAN = float("nan")


def power_tables(worlds: int = 20, seed: int = 20261129, *, jobs: int = 1) -> dict[str, pd.DataFrame]:
    """Three tables: wrong keys, the zero-gain test, and keys shifted or relabelled.

    Parameters
    ----------
    worlds : worlds of each cell of the first and third table; the second takes five times as many.
    """
    return {
        "power_wrong_keys": wrong_key_table(worlds, seed, jobs=jobs),
        "power_zero_gain": zero_gain_table(5 * worlds, seed, jobs=jobs),
        "power_key_scan": key_scan_table(worlds, seed, jobs=jobs),
    }


def wrong_key_table(worlds: int, seed: int, *, jobs: int = 1, models: Sequence[int] = MODELS,
                    shares: Sequence[float] = SHARES, options: Sequence[int] = OPTIONS) -> pd.DataFrame:  # fmt: skip
    """Unanimous tier and ranked list on planted wrong keys.

    Returns
    -------
    frame, one row for each ``k``, ``models`` and ``share`` of wrong keys: ``flagged`` (share of items), ``precision``
    and ``recall`` of the unanimous tier, ``precision_50`` (of the first 50 by consensus score) and ``auc``.
    """
    cells = [(k, m, s) for k in options for m in models for s in shares]
    made = spread(partial(_wrong_keys, seed, worlds), cells, jobs)
    return pd.DataFrame([{"k": k, "models": m, "share": s} | r for (k, m, s), r in zip(cells, made)])


def _wrong_keys(seed: int, worlds: int, cell: tuple[int, int, float]) -> dict[str, float]:
    k, m, share = cell
    flagged, right, wrong, items, top, area = 0, 0, 0, 0, [], []
    for i in range(worlds):
        w = spoil(world(replace(_BASE, k=k, models=m), seed + i, f"keys {cell}"), {"wrong_key": share}, seed + i)
        bad = w.planted("wrong_key")
        c = consensus(w.full.astype(np.int8), w.key.astype(np.int8))
        unanimous = np.zeros(len(bad), bool)
        unanimous[c.keep] = c.tier == "unanimous"
        flagged, right = flagged + int(unanimous.sum()), right + int((unanimous & bad).sum())
        wrong, items = wrong + int(bad.sum()), items + len(bad)
        # equal scores are ranked by a draw, not by their place in the file
        first = np.lexsort((generator(seed, "ties", str(i)).random(len(c.score)), -c.score))[:50]
        top.append(bad[c.keep][first].mean())
        area.append(auc(c.score, bad[c.keep]).estimate)
    return {"flagged": flagged / items, "precision": right / flagged if flagged else NAN, "recall": right / wrong,
            "precision_50": float(np.mean(top)), "auc": float(np.mean(area))}  # fmt: skip


def zero_gain_table(worlds: int, seed: int, *, jobs: int = 1, models: Sequence[int] = MODELS,
                    linked: Sequence[float] = LINKED, items: Sequence[int] = ITEMS,
                    options: Sequence[int] = OPTIONS) -> pd.DataFrame:  # fmt: skip
    """How often the headline test rejects, by the share of items whose text suffices.

    Returns
    -------
    frame with ``k``, ``items``, ``models``, ``share``, ``worlds``, ``rejected`` (p <= .05 within strata), its exact
    95% ends ``low``, ``high``, and ``excess`` (mean); p from the normal tail, which is quicker. With share 0 the other
    items are unlinked, so that the row is the test's size.
    """
    cells = [(k, n, m, s) for k in options for n in items for m in models for s in linked]
    made = spread(partial(_zero_gain, seed, worlds), cells, jobs)
    return pd.DataFrame([{"k": k, "items": n, "models": m, "share": s} | r for (k, n, m, s), r in zip(cells, made)])


def _zero_gain(seed: int, worlds: int, cell: tuple[int, int, int, float]) -> dict[str, float]:
    k, n, m, share = cell
    kinds = {"needs_image": 1 - share, "text_suffices": share} if share else {"unlinked": 1.0}
    recipe = replace(_BASE, k=k, items=n, models=m, kinds=kinds)
    made = [zero_gain(world(recipe, seed + i, f"gain {cell}"), inside=True, exact=False) for i in range(worlds)]
    hit = sum(r.p <= 0.05 for r in made)
    low, high = binomial_interval(hit, worlds)
    return {"worlds": worlds, "rejected": hit / worlds, "low": low, "high": high,
            "excess": float(np.mean([r.excess for r in made]))}  # fmt: skip


def key_scan_table(worlds: int, seed: int, *, jobs: int = 1, models: Sequence[int] = (3, 8),
                   stretches: Sequence[int] = STRETCHES) -> pd.DataFrame:  # fmt: skip
    """How often a stretch of shifted keys is found in 250 items, and a key whose letters are moved on.

    Returns
    -------
    frame with ``models``, ``rows`` (shifted rows; 0 = none), ``rejected`` (lag scan, p <= .05), ``placed`` (share of
    the shifted rows inside the stretch that the scan names), ``relabelled`` (all keys one letter on: p <= .05).
    """
    cells = [(m, r) for m in models for r in (0, *stretches)]
    made = spread(partial(_key_scan, seed, worlds), cells, jobs)
    return pd.DataFrame([{"models": m, "rows": r} | out for (m, r), out in zip(cells, made)])


def _key_scan(seed: int, worlds: int, cell: tuple[int, int]) -> dict[str, float]:
    m, rows = cell
    found, placed, relabelled = 0, [], 0
    for i in range(worlds):
        w = world(replace(_BASE, items=250, models=m, strata=1), seed + i, f"scan {cell}")
        counts = category_counts(w.full, 4)
        at = 60
        r = lag_scan(counts, shift_keys(w.key, at, at + rows) if rows else w.key,
                     rng=generator(seed, "scan", str(i)), draws=199)  # fmt: skip
        found += r.p <= 0.05
        inside = np.arange(at, at + rows)
        placed.append(((inside >= r.start) & (inside < r.stop)).mean() if rows else NAN)
        relabelled += relabelling(counts, (w.key + 1) % 4).p <= 0.05
    return {"rejected": found / worlds, "placed": float(np.mean(placed)), "relabelled": relabelled / worlds}
