"""Each detector's false-positive and detection rate by the number of options shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from auditlib.calibration.nulls import zero_gain
from auditlib.calibration.parallel import spread
from auditlib.calibration.rules import binomial_interval
from auditlib.detectors import DETECTORS
from auditlib.metrics.key_information import key_information_rows
from auditlib.params import AuditParams, Params
from auditlib.pool import Pool
from auditlib.seeds import generator
from auditlib.synth.plant import shuffle_keys, spoil
from auditlib.synth.worlds import Recipe, World, world

#: options shown; None = open answers
OPTIONS: tuple[int | None, ...] = (2, 3, 4, 5, 10, None)
MODELS = (3, 6, 12)
#: what the table holds: (detector, what counts as a flag) -> what it should find, what it should leave alone
TARGETS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("visual_dependency", "zero gain"): ("items whose text suffices", "items that need their image"),
    ("visual_dependency", "answered blind by all"): ("items whose text suffices", "items that need their image"),
    ("visual_dependency", "image hurts"): ("items with runs mixed up", "items that need their image"),
    ("consensus_error", "any tier"): ("wrong keys", "items with a right key"),
    ("consensus_error", "unanimous"): ("wrong keys", "items with a right key"),
    ("correctness_agreement", "never solved"): ("items that nobody can answer", "items that somebody can"),
    ("zero_gain_test", "p <= .05"): ("pools with 12% of items whose text suffices", "pools without a link"),
    ("key_information", "no information"): ("keys dealt at random", "keys as they are"),
}
_MIX = {"needs_image": 0.6, "text_suffices": 0.2, "either": 0.1, "shared_failure": 0.1}
_BASE = Recipe(items=600, strata=4, kinds=_MIX)
_DRAWS = 1000
_DEFECTS = {"wrong_key": 0.05, "swapped_runs": 0.03}


def k_way_table(worlds: int = 60, seed: int = 20261129, *, jobs: int = 1, options: Sequence[int | None] = OPTIONS,
                models: Sequence[int] = MODELS) -> pd.DataFrame:  # fmt: skip
    """Run the detectors on worlds of every number of options and count what they flag.

    Parameters
    ----------
    worlds : worlds of 600 items for each number of options and of models.

    Returns
    -------
    frame with columns ``k`` ("open" for open answers), ``models``, ``detector``, ``flag``, ``finds``, ``spares``,
    ``false_positive`` and ``detection`` (shares over all worlds), their exact 95% ends ``fp_low``, ``fp_high``,
    ``det_low``, ``det_high``, and ``n_clean``, ``n_defect`` (items, or pools for the last two). The ends of shares of
    items take items as independent. A detector that cannot run has no row.
    """
    cells = [(k, m, seed + i) for k in options for m in models for i in range(worlds)]
    made = spread(_one, cells, jobs)
    table = pd.DataFrame([
        {"k": "open" if k is None else str(k), "models": m, "detector": d, "flag": f, "fp": fp, "clean": c, "hit": h,
         "defect": n}
        for (k, m, _), counts in zip(cells, made) for (d, f), (fp, c, h, n) in counts.items()
    ])  # fmt: skip
    total = table.groupby(["k", "models", "detector", "flag"], sort=False).sum().reset_index()
    return pd.DataFrame([_row(r) for r in total.itertuples()])


def _row(r) -> dict[str, object]:
    finds, spares = TARGETS[r.detector, r.flag]
    fp, det = binomial_interval(r.fp, r.clean), binomial_interval(r.hit, r.defect)
    return {"k": r.k, "models": r.models, "detector": r.detector, "flag": r.flag, "finds": finds, "spares": spares,
            "false_positive": r.fp / r.clean, "fp_low": fp[0], "fp_high": fp[1],
            "detection": r.hit / r.defect, "det_low": det[0], "det_high": det[1],
            "n_clean": r.clean, "n_defect": r.defect}  # fmt: skip


def _one(cell: tuple[int | None, int, int]) -> dict[tuple[str, str], tuple[int, int, int, int]]:
    """Counts of one world: false positives of clean items, hits of defective items, by detector and flag."""
    k, m, seed = cell
    recipe = replace(_BASE, k=k, models=m)
    name = f"k {k} models {m}"
    w = spoil(world(recipe, seed, name), _DEFECTS, seed)
    out = {key: _count(flags, *_who(w, key)) for key, flags in item_flags(w.as_pool()).items()}
    null = zero_gain(world(replace(recipe, kinds={"unlinked": 1.0}), seed, f"{name} null"), inside=True).p <= 0.05
    linked = {"needs_image": 0.88, "text_suffices": 0.12}
    real = zero_gain(world(replace(recipe, kinds=linked), seed, f"{name} linked"), inside=True).p <= 0.05
    out["zero_gain_test", "p <= .05"] = (int(null), 1, int(real), 1)
    if k is not None:
        out["key_information", "no information"] = (int(_silent(w)), 1, int(_silent(_random_key(w, seed))), 1)
    return out


def item_flags(pool: Pool) -> dict[tuple[str, str], np.ndarray]:
    """What the item detectors flag in a pool, boolean per item, by detector and flag; detectors that cannot run are
    absent.
    """
    out = {}
    settings = AuditParams()
    place = pd.Series(np.arange(len(pool.items)), index=pool.items["item"])
    for name in ("visual_dependency", "consensus_error", "correctness_agreement"):
        d = DETECTORS[name]
        if d.needs(pool):
            continue
        found = d.detect(pool, settings)
        found = found[found["arm"].isin([pool.arm_names[0], "exact"])]
        at = place[found["item"]].to_numpy()
        facts = pd.DataFrame(found["evidence"].map(_loads).tolist())
        for flag, inside in _flagged(name, facts, found).items():
            marked = np.zeros(len(pool.items), bool)
            marked[at] = inside
            out[name, flag] = marked
    return out


def _loads(text: str) -> dict[str, object]:
    import json

    return json.loads(text)


def _flagged(name: str, e: pd.DataFrame, found: pd.DataFrame) -> dict[str, np.ndarray]:
    if name == "visual_dependency":
        return {"zero gain": e["zero_gain"].to_numpy(bool), "image hurts": e["category"].eq("conflicting").to_numpy(),
                "answered blind by all": (e["B"] == e["total"]).to_numpy()}  # fmt: skip
    if name == "consensus_error":
        return {"any tier": found["flag"].to_numpy(bool), "unanimous": e["tier"].eq("unanimous").to_numpy()}
    return {"never solved": e["never_solved"].to_numpy(bool)}


def _who(w: World, key: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
    """Clean and defective items of one target."""
    sound = w.truth["planted"].eq("").to_numpy()
    detector, flag = key
    if detector == "consensus_error":
        return sound, w.planted("wrong_key")
    if detector == "correctness_agreement":
        return sound & ~w.of_kind("shared_failure"), sound & w.of_kind("shared_failure")
    clean = sound & w.of_kind("needs_image")
    if flag == "image hurts":
        return clean, w.planted("swapped_runs") & w.of_kind("needs_image")
    return clean, sound & w.of_kind("text_suffices")


def _count(flags: np.ndarray, clean: np.ndarray, defect: np.ndarray) -> tuple[int, int, int, int]:
    return int(flags[clean].sum()), int(clean.sum()), int(flags[defect].sum()), int(defect.sum())


def _random_key(w: World, seed: int) -> World:
    key = shuffle_keys(w.key, np.arange(len(w.key)), generator(seed, w.name, "random key"))
    return replace(w, key=key)


def _silent(w: World) -> bool:
    """Whether the whole key is said to carry no information."""
    pool = w.as_pool()
    params = Params.model_construct(seed=0, audit=AuditParams(bootstrap=_DRAWS))
    pool = replace(pool, items=pool.items.drop(columns="stratum"), params=params)
    rows = {r["metric"]: r for r in key_information_rows(pool)}
    kappa, majority = rows["key_kappa"], rows["key_majority"]
    return kappa["low"] <= 0 <= kappa["high"] and majority["low"] <= majority["null"] <= majority["high"]


def table_of(worlds: int, seed: int, jobs: int) -> pd.DataFrame:
    """The table as it is shipped: rates rounded to four places."""
    table = k_way_table(worlds, seed, jobs=jobs)
    rates = ["false_positive", "fp_low", "fp_high", "detection", "det_low", "det_high"]
    return table.assign(**table[rates].round(4))
