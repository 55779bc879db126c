"""Tables across pools: benchmarks, the blind profile of models on benchmarks, models."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from auditlib.errors import AuditError
from auditlib.escape import guard_csv
from auditlib.leaderboard.jobs import FOLDER, PoolFiles, data_of
from auditlib.leaderboard.ranks import board_ranks
from auditlib.lookup import one, value
from auditlib.metrics.families import holm_over_pools
from auditlib.outputs import read_statistics
from auditlib.paths import RunPaths, atomic
from auditlib.seeds import generator

#: where a pool's numbers come from
LEAN, NOTEBOOKS = "leaderboard", "notebooks"


@dataclass(frozen=True)
class Board:
    """All pools together.

    ``benchmarks`` has one row per pool, ``profile`` one per pool and model, ``models`` one per model; ``matrix`` is the
    blind accuracy less chance, models x pools. ``notes`` say what was left out.
    """

    benchmarks: pd.DataFrame
    profile: pd.DataFrame
    models: pd.DataFrame
    matrix: pd.DataFrame
    notes: tuple[str, ...]


def collect(outputs: Path, pools: Sequence[str] | None = None, *, with_audits: bool = False) -> Board:
    """Read the numbers of pools below a folder: of this path, and of those run through notebooks.

    Parameters
    ----------
    outputs : folder of all results.
    pools : only these pools of a leaderboard; None for all audited before, in either way.
    with_audits : whether pools that were run through notebooks join ``pools``.

    Notes
    -----
    Where a pool has both, its numbers of the leaderboard stand; quick looks at the first items take no part. Of several
    pools of one benchmark, one counts in means and ranks: that with the most models, of equal ones the later by name.
    """
    rows, profiles, notes = [], [], []
    mine = {p.stem for p in (outputs / FOLDER / "pools").glob("*.json")}
    audited = {p.parent.name for p in outputs.glob("*/audit.json")}
    if pools is not None:
        notes += [f"{name}: not audited yet" for name in sorted({*pools} - mine)]
        mine &= {*pools}
    others = audited - {*(pools or ())} if pools is None or with_audits else set()
    for name in sorted(mine | others):
        if name in mine and name in audited and not report_fits(outputs, name):
            notes.append(f"{name}: the report of this name was made from other data or models and is not linked")
        try:
            found = _lean(outputs, name) if name in mine else _audited(outputs, name)
        except (AuditError, OSError, ValueError, KeyError) as e:
            notes.append(f"{name}: its saved numbers cannot be read ({type(e).__name__})")
            continue
        if found is None:
            continue
        facts, statistics = found
        if facts["error"]:
            rows.append({"pool": name, "benchmark": facts["benchmark"], "error": facts["error"], "source": LEAN})
            continue
        rows.append(_benchmark(facts, statistics))
        profiles.append(_profile(facts, statistics))
        notes += [f"{name}: {t}" for t in (facts.get("ranks", ""), *facts.get("notes", [])) if t]
    benchmarks = pd.DataFrame(rows).reindex(columns=list(BENCHMARKS))
    benchmarks["p_holm"] = holm_over_pools(benchmarks["p"].astype(float))
    profile = pd.concat(profiles, ignore_index=True) if profiles else pd.DataFrame(columns=list(PROFILE))
    counting, several = _one_each(benchmarks)
    models, told = _models(profile, counting)
    notes += several + ([told] if told else [])
    matrix = profile.pivot_table(index="model", columns="pool", values="above_chance", aggfunc="first", sort=True)
    return Board(benchmarks, profile, models, matrix, tuple(notes))


BENCHMARKS = (
    "pool", "benchmark", "source", "error", "items", "models", "arm", "zero_gain", "zero_gain_low", "zero_gain_high",
    "null", "null_kind", "excess", "excess_low", "excess_high", "excess_least", "excess_most", "p", "p_method",
    "p_holm", "unanimous_share", "consensus_share", "kappa", "alpha", "correctness_kappa", "same_wrong",
    "same_wrong_null", "full", "blind", "chance", "blind_above_chance", "gain",
)  # fmt: skip
PROFILE = (
    "pool", "benchmark", "model", "items", "full", "full_low", "full_high", "blind", "blind_low", "blind_high",
    "chance", "above_chance", "gain",
)  # fmt: skip


def report_fits(outputs: Path, name: str) -> bool:
    """Whether the audit of a name was made from what the leaderboard's pool of this name was made from.

    Same data, benchmark, and numbers of items and models; False where either does not say.
    """
    paths = RunPaths(outputs, name)
    try:
        mine = json.loads(PoolFiles(outputs, name).facts.read_text(encoding="utf-8"))
        audit = json.loads(paths.steps.read_text(encoding="utf-8"))
        theirs = {"benchmark": audit["benchmark"], "items": audit["steps"]["items"], "models": audit["steps"]["models"],
                  "data": data_of(audit["params"]["data"], paths.folder, outputs)}  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(theirs["data"]) and all(mine.get(k) == v for k, v in theirs.items())


def _one_each(benchmarks: pd.DataFrame) -> tuple[set[str], list[str]]:
    """The pool of each benchmark that counts in means and ranks, and a line on each benchmark with several."""
    good = benchmarks[benchmarks["error"].fillna("").eq("")]
    counting, notes = set(), []
    for _, part in good.groupby(good["benchmark"].str.casefold(), sort=True):
        *rest, last = part.sort_values(["models", "pool"])["pool"]
        counting.add(last)
        if rest:
            notes.append(f"{part['benchmark'].iloc[0]} has {len(part)} pools; means and ranks of models use {last} "
                         f"(most models; of equal ones the later name), not {', '.join(sorted(rest))}")  # fmt: skip
    return counting, notes


def _lean(outputs: Path, name: str) -> tuple[dict[str, Any], pd.DataFrame]:
    files = PoolFiles(outputs, name)
    facts = json.loads(files.facts.read_text(encoding="utf-8"))
    table = pd.DataFrame() if facts["error"] else read_statistics(files.statistics)
    return facts | {"source": LEAN}, table


def _audited(outputs: Path, name: str) -> tuple[dict[str, Any], pd.DataFrame] | None:
    """A pool that was run through notebooks, from the files of its audit."""
    paths = RunPaths(outputs, name)
    facts = json.loads(paths.steps.read_text(encoding="utf-8"))
    if facts["steps"].get("limit") is not None or not facts["steps"]["arms"]:
        return None
    items = pd.read_parquet(paths.frame("items"))
    k = items["k"].astype(float) if "k" in items else pd.Series([np.nan])
    known = k.notna().all() and (k > 0).all()
    steps = facts["steps"]
    return {
        "pool": name, "benchmark": facts["benchmark"], "items": steps["items"], "models": steps["models"],
        "arm": steps["arms"][0], "chance": float((1 / k).mean()) if known else None, "error": "", "source": NOTEBOOKS,
    }, read_statistics(paths.statistics)  # fmt: skip


def _benchmark(facts: dict[str, Any], s: pd.DataFrame) -> dict[str, Any]:
    arm = facts["arm"]
    row = {k: facts[k] for k in ("pool", "benchmark", "source", "items", "models", "arm", "chance")} | {"error": ""}
    share = s[s["metric"].eq("zero_gain_share") & s["arm"].eq(arm) & s["stratum"].eq("all") & s["policy"].eq("wrong")]
    head = share[share["models"].eq("all") & share["family"].eq("headline")]
    if len(head):
        h = head.iloc[0]
        row |= {"zero_gain": h["estimate"], "zero_gain_low": h["low"], "zero_gain_high": h["high"]}
        row |= {c: h[c] for c in ("null", "null_kind", "excess", "excess_low", "excess_high", "p", "p_method")}
        fewer = share[share["models"].str.startswith("without ") & share["null_kind"].eq(h["null_kind"])]["excess"]
        row |= {"excess_least": fewer.min(), "excess_most": fewer.max()} if len(fewer) else {}
    for name, metric in (("unanimous_share", "unanimous_share"), ("consensus_share", "consensus_share"),
                         ("kappa", "fleiss_kappa"), ("alpha", "krippendorff_alpha"),
                         ("correctness_kappa", "correctness_kappa")):  # fmt: skip
        which = {"level": ""} if metric == "unanimous_share" else {}
        arm_of = {"arm": arm} if metric == "correctness_kappa" else {}
        row[name] = value(one(s, metric, models="all", stratum="all", **which, **arm_of))
    pairs = s[s["metric"].eq("same_wrong_option") & s["models"].eq("all pairs") & s["null_kind"].eq("shuffled")]
    row |= {"same_wrong": pairs["estimate"].iloc[0], "same_wrong_null": pairs["null"].iloc[0]} if len(pairs) else {}
    profile = _profile(facts, s)
    means = profile[["full", "blind", "above_chance", "gain"]].mean()
    return row | {"full": means["full"], "blind": means["blind"], "blind_above_chance": means["above_chance"],
                  "gain": means["gain"]}  # fmt: skip


def _profile(facts: dict[str, Any], s: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of every model with and without the image, chance, and the gain."""
    here = s[s["arm"].eq(facts["arm"]) & s["policy"].eq("wrong")]
    out = pd.DataFrame({"model": here.loc[here["metric"].eq("accuracy"), "models"].unique()})
    for level in ("full", "blind"):
        rows = here[here["metric"].eq("accuracy") & here["level"].eq(level)].set_index("models")
        for name, column in ((level, "estimate"), (f"{level}_low", "low"), (f"{level}_high", "high")):
            out[name] = out["model"].map(rows[column])
        if level == "full":
            out["items"] = out["model"].map(rows["n"])
    gain = here[here["metric"].eq("multimodal_gain")].drop_duplicates("models").set_index("models")["estimate"]
    out["gain"] = out["model"].map(gain)
    chance = facts["chance"] if facts["chance"] is not None else np.nan
    out = out.assign(
        pool=facts["pool"], benchmark=facts["benchmark"], chance=chance, above_chance=out["blind"] - chance
    )
    return out.reindex(columns=list(PROFILE))


def _models(profile: pd.DataFrame, counting: set[str]) -> tuple[pd.DataFrame, str]:
    """Ranks of all models, and their means over benchmarks, in the pools that count."""
    used = profile[profile["pool"].isin(counting)]
    ranks, note = board_ranks(used, generator(0, "leaderboard", "ranks"))
    means = used.groupby("model").agg(
        benchmarks=("pool", "nunique"), full=("full", "mean"), blind=("blind", "mean"),
        above_chance=("above_chance", "mean"), gain=("gain", "mean"),
    )  # fmt: skip
    means = means.reindex(pd.Index(sorted(set(profile["model"])), name="model")).fillna({"benchmarks": 0})
    table = means.reset_index().merge(ranks.drop(columns=["n", "score"]), on="model", how="left")
    return table.sort_values(["rank", "model"], ignore_index=True, na_position="last"), note


def write_tables(board: Board, outputs: Path) -> list[Path]:
    """The tables as CSV in ``outputs/leaderboard``."""
    files = []
    for name in ("benchmarks", "profile", "models", "matrix"):
        table = getattr(board, name)
        file = outputs / FOLDER / f"{name}.csv"
        with atomic(file) as temporary:
            shown = table.reset_index() if name == "matrix" else table
            guard_csv(shown).to_csv(temporary, index=False, float_format="%.12g", lineterminator="\n")
        files.append(file)
    return files
