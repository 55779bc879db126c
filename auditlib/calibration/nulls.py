"""Null worlds: are p-values uniform, do intervals cover, do lists keep their false discovery rate?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from auditlib.calibration.lists import list_rows
from auditlib.calibration.parallel import spread
from auditlib.calibration.rules import coverage_row, p_row
from auditlib.detectors.consensus_error import consensus
from auditlib.seeds import generator
from auditlib.stats.agreement import category_counts, fleiss_kappa
from auditlib.stats.intervals import Interval, excess_interval
from auditlib.stats.key_scan import first_option, lag_scan, relabelling
from auditlib.stats.null import NullResult, region_null
from auditlib.stats.positions import key_positions
from auditlib.stats.rates import share_interval
from auditlib.stats.tables import group_tables, joint_table, tie_region
from auditlib.synth.null_worlds import FALSE_NULLS, NULLS, null_world
from auditlib.synth.worlds import World

NAN = float("nan")
#: draws of a bootstrap or shuffle inside one world
DRAWS, SHUFFLES = 2000, 99
#: items from which the true shares of a world are taken
LARGE = 400_000


@dataclass(frozen=True)
class Nulls:
    """``p``, ``intervals`` and ``lists``: one row for each world and test, interval or list."""

    p: pd.DataFrame
    intervals: pd.DataFrame
    lists: pd.DataFrame

    @property
    def failed(self) -> pd.DataFrame:
        """What does not pass: kind, world and name."""
        parts = [t.loc[~t["passed"], ["world", "name"]].assign(table=k) for k, t in vars(self).items()]
        return pd.concat(parts, ignore_index=True)


def null_tables(worlds: int = 500, headlines: int = 2000, seed: int = 20261129, *, jobs: int = 1,
                kinds: Sequence[str] = tuple(NULLS)) -> Nulls:  # fmt: skip
    """Run every test on null worlds.

    Parameters
    ----------
    worlds : worlds of each kind; ``headlines`` for the zero-gain tests and the interval of its excess.
    jobs : processes.

    Returns
    -------
    Nulls
        What passes and what does not, by the rules of :mod:`auditlib.calibration.rules`.
    """
    most = max(worlds, headlines)
    ps, ends = [], []
    for kind in kinds:
        made = spread(partial(_one, kind, seed, worlds), range(most), jobs)
        tests = list(dict.fromkeys(k for m in made for k in m["p"]))
        for name in tests:
            seen = [m["p"][name] for m in made if name in m["p"]]
            printed = [s[0] for s in seen]
            # nan: this test's law is not known to the last probability, so only the printed p is judged
            randomised = None if np.isnan([s[1] for s in seen]).all() else [s[1] for s in seen]
            ps.append({"world": kind, "name": name} | p_row(printed, randomised, false_null=name in FALSE_NULLS[kind]))
        for name, truth in _truths(kind).items():
            seen = [m["ends"][name] for m in made if name in m["ends"]]
            ends.append({"world": kind, "name": name, "truth": truth}
                        | coverage_row([e[0] for e in seen], [e[1] for e in seen], truth))  # fmt: skip
    return Nulls(pd.DataFrame(ps), pd.DataFrame(ends), pd.DataFrame(list_rows(worlds, seed, jobs)))


def _one(kind: str, seed: int, worlds: int, i: int) -> dict[str, Any]:
    """All tests of one world; beyond ``worlds`` the headline tests only."""
    w = null_world(kind, seed + i)
    rng = generator(seed, kind, "tests", str(i))
    pooled, within = zero_gain(w), zero_gain(w, inside=True)
    p = {"zero gain, pooled": _both(pooled, rng), "zero gain, within": _both(within, rng)}
    regions = tie_region(w.full.shape[1] + 1)
    ends = {"excess, pooled": excess_interval(_tables(w), regions, rng=rng, draws=DRAWS),
            "excess, within": excess_interval(_tables(w, inside=True), regions, rng=rng, draws=DRAWS)}  # fmt: skip
    if i < worlds:
        p |= _key_tests(w, rng)
        ends |= {name: f(w, rng)[0] for name, f in _SHARES.items()}
    return {"p": p, "ends": {name: (e.low, e.high) for name, e in ends.items()}}


def zero_gain(w: World, *, inside: bool = False, exact: bool = True) -> NullResult:
    """The headline test of a world: zero gain against the pooled null or that within strata."""
    region = tie_region(w.full.shape[1] + 1)
    return region_null(_tables(w, inside=inside), region, draws=0, exact="auto" if exact else "never")


def _tables(w: World, *, inside: bool = False) -> Any:
    full, blind = (w.hits(c).sum(1).astype(int) for c in ("full", "blind"))
    if not inside:
        return joint_table(full, blind, w.full.shape[1])
    return group_tables(full, blind, w.full.shape[1], pd.factorize(w.truth["stratum"])[0])


def _both(r: NullResult, rng: np.random.Generator) -> tuple[float, float]:
    return r.p, r.randomised_p(rng.random())


def _key_tests(w: World, rng: np.random.Generator) -> dict[str, tuple[float, float]]:
    counts, k = category_counts(w.full, int(w.truth["k"].max())), w.truth["k"].to_numpy().astype(int)
    first = first_option(w.key, k)
    return {
        "key position": (key_positions(w.key, k, rng=rng, draws=SHUFFLES).p, NAN),
        "first option": (first.p, first.p - (1 - rng.random()) * first.p_equal),
        "lag scan": (lag_scan(counts, w.key, rng=rng, draws=SHUFFLES).p, NAN),
        "relabelling": (relabelling(counts, w.key).p, NAN),
    }


def _zero_share(w: World, rng: np.random.Generator) -> tuple[Interval, float]:
    tie = w.hits("full").sum(1) == w.hits("blind").sum(1)
    return share_interval(tie), float(tie.mean())


def _unanimous(w: World, rng: np.random.Generator) -> tuple[Interval, float]:
    inside = consensus(w.full.astype(np.int8), w.key.astype(np.int8)).tier == "unanimous"
    return share_interval(inside), float(inside.mean())


def _kappa(w: World, rng: np.random.Generator) -> tuple[Interval, float]:
    big = len(w.key) >= LARGE
    k = fleiss_kappa(w.full, rng=None if big else rng, draws=DRAWS)
    return k.interval, k.estimate


#: intervals of shares and agreements; their truth is taken from a large world of the same recipe
_SHARES: Mapping[str, Callable[[World, np.random.Generator], tuple[Interval, float]]] = {
    "zero-gain share": _zero_share,
    "unanimous share": _unanimous,
    "Fleiss kappa": _kappa,
}


def _truths(kind: str) -> dict[str, float]:
    """True values of the interval targets; an excess is 0 where its null holds."""
    out = {f"excess, {how}": 0.0 for how in ("pooled", "within") if f"zero gain, {how}" not in FALSE_NULLS[kind]}
    if NULLS[kind].spread:
        return out  # strata are drawn anew in each world, and with them the true shares
    rng = np.random.default_rng(0)
    large = null_world(kind, 1, items=LARGE)
    return out | {name: f(large, rng)[1] for name, f in _SHARES.items()}
