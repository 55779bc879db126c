"""What more reasoning effort changes, by capability: paired by item, with a test of models and a bound for "flat"."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.curation.clustered import mean_covariance, t_interval, t_test
from auditlib.curation.labelled import complain, nearest, numbers, open_labelled
from auditlib.errors import AuditError
from auditlib.stats.multiplicity import holm

NAN = float("nan")
LEVELS = ("low", "medium", "high")
#: lines below the capabilities
MACRO, ITEMS = "macro average", "item mean"
_CELL = ["item", "model", "level"]


@dataclass(frozen=True)
class Effort:
    """Changes between effort levels.

    Attributes
    ----------
    changes : one row per comparison and capability (and ``macro average``, ``item mean``): from_level, to_level,
        capability, items, models, before, after, change with low, high, p, q (Holm over the capabilities of a
        comparison); relative (change over before) with relative_low, relative_high; relative_mean (macro only: mean of
        the capabilities' relative changes); up, down (models), sign_p, sign_q, sign_floor (the least p that so many
        models can give); bound (the least margin within which the change is shown to lie), flat (bound within the
        margin).
    models : one row per comparison, capability and model: before, after, change, items.
    tokens : one row per capability (and ``all``) and level: calls with known tokens, share known, mean tokens, ratio to
        the first level.
    unpaired : one row per comparison and model: items answered at one of the two levels only, which do not count.
    """

    changes: pd.DataFrame
    models: pd.DataFrame = field(repr=False)
    tokens: pd.DataFrame = field(repr=False)
    unpaired: pd.DataFrame = field(repr=False)


def read_effort(path: str | Path, levels: Sequence[str] = LEVELS) -> pd.DataFrame:
    """Read runs at several effort levels.

    Parameters
    ----------
    path : file with the columns item, model, level and correct (0 to 1), or hits and trials instead of correct. More
        columns: sample (tells repeats apart), tokens (of the reply), capability, cluster.
    levels : effort levels in order.

    Returns
    -------
    DataFrame
        One row per item, model and level: item, model, level, hits, trials, tokens (sum, NaN where any is unknown),
        and capability, cluster where the file has them.

    Raises
    ------
    AuditError
        A file that cannot be read, an unknown level, a verdict outside 0 to 1, more hits than trials, a cell given
        twice without samples, an item with two capabilities.
    """
    path = Path(path)
    table = open_labelled(path, ("item", "model", "level"))
    counted = {"hits", "trials"} <= set(table.columns)
    if not counted and "correct" not in table:
        raise AuditError("there is no column 'correct'", file=path, row=1, mend="give correct, or hits and trials")
    complain(table["model"].eq(""), table, path, lambda row: "there is no model", "name the model")
    table["level"] = table["level"].str.lower()
    bad = ~table["level"].isin(levels)
    word = table["level"][bad].iloc[0] if bad.any() else ""
    complain(bad, table, path, lambda row: f"{row['level']!r} is no effort level", nearest(word, levels))
    if counted:
        hits = numbers(table, "hits", path)
        trials = numbers(table, "trials", path, low=1, whole=True)
        complain(hits > trials, table, path, lambda row: f"item {row['item']!r} has more hits than trials",
                 "correct the counts")  # fmt: skip
    else:
        hits, trials = numbers(table, "correct", path, high=1.0), pd.Series(1.0, index=table.index)
    tokens = numbers(table, "tokens", path, empty=True) if "tokens" in table else pd.Series(NAN, index=table.index)
    key = [*_CELL, "sample"] if "sample" in table else _CELL
    complain(table.duplicated(key), table, path,
             lambda row: f"item {row['item']!r} of {row['model']} at level {row['level']} is given a second time",
             "keep one row, or tell repeats apart in a column 'sample'")  # fmt: skip
    about = [c for c in ("capability", "cluster") if c in table]
    for column in about:
        first = table.groupby("item")[column].transform("first")
        complain(table[column] != first, table, path,
                 lambda row, column=column: f"item {row['item']!r} has two entries under {column}",
                 "give each item one")  # fmt: skip
    cells = table.assign(hits=hits, trials=trials, tokens=tokens).groupby(_CELL, sort=False, as_index=False)
    out = cells.agg(hits=("hits", "sum"), trials=("trials", "sum"),
                    tokens=("tokens", lambda t: t.sum(skipna=False)), **{c: (c, "first") for c in about})  # fmt: skip
    return out


def effort_changes(
    runs: pd.DataFrame,
    levels: Sequence[str] = LEVELS,
    *,
    capability: Mapping[str, str] | None = None,
    cluster: Mapping[str, str] | None = None,
    margin: float = 0.02,
    level: float = 0.95,
) -> Effort:
    """Compare every two effort levels.

    Parameters
    ----------
    runs : frame item, model, level, hits, trials, and tokens, capability, cluster where known (:func:`read_effort`).
    levels : levels in order; those without a run are left out.
    capability, cluster : item -> value, where the runs have no such column.
    margin : change within which a capability counts as flat, 0.02 = 2 points.
    level : of the intervals.

    Raises
    ------
    AuditError
        Fewer than two levels with runs, or two levels that share no item of any model.

    Notes
    -----
    Only items that a model answered at both levels count for it. A model's change is its mean over items, the table's
    the mean over models, each weighing the same; the macro average is over capabilities. Standard errors are over
    items, or clusters, so that a repeated draw or another model adds no item. The models are taken as given there; the
    sign test is over models, those without a change left out. ``flat`` needs both one-sided 5% tests, so the 90%
    interval within the margin (Schuirmann 1987): "no significant change" alone is no evidence of a flat line. The
    relative change's error is linearised.
    """
    present = [x for x in levels if x in set(runs["level"])]
    if len(present) < 2:
        raise AuditError(f"there are runs at {len(present)} effort level", mend=f"give runs at two of {list(levels)}")
    items, models = pd.unique(runs["item"]), pd.unique(runs["model"])
    label = _per_item(runs, "capability", capability, items)
    group = _per_item(runs, "cluster", cluster, items)
    rate = {x: _matrix(runs[runs["level"] == x], items, models) for x in present}
    changes, by_model, unpaired = [], [], []
    for a, b in combinations(present, 2):
        one, two = ~np.isnan(rate[a]), ~np.isnan(rate[b])
        both = one & two
        if not both.any():
            raise AuditError(f"no model answered the same item at {a} and {b} effort", mend="run the same items")
        before, change = (np.where(both, x, NAN) for x in (rate[a], rate[b] - rate[a]))
        unpaired += [{"from_level": a, "to_level": b, "model": m, "paired": int(both[:, j].sum()),
                      "unpaired": int((one ^ two)[:, j].sum())} for j, m in enumerate(models)]  # fmt: skip
        rows = []
        for name, stratum, here in _lines(label, len(items)):
            here = here & both.any(axis=1)
            line = _line(before[here], change[here], None if stratum is None else stratum[here],
                         None if group is None else group[here], margin, level)  # fmt: skip
            if line is None:
                continue
            row, own = line
            rows.append({"from_level": a, "to_level": b, "capability": name, "items": int(here.sum())} | row)
            by_model += [{"from_level": a, "to_level": b, "capability": name, "model": m, "before": own[0][j],
                          "after": own[0][j] + own[1][j], "change": own[1][j],
                          "items": int(both[here, j].sum())} for j, m in enumerate(models)]  # fmt: skip
        changes.append(_adjusted(pd.DataFrame(rows)))
    return Effort(pd.concat(changes, ignore_index=True), pd.DataFrame(by_model), _tokens(runs, present, items, label),
                  pd.DataFrame(unpaired))  # fmt: skip


def sign_test(changes: ArrayLike) -> tuple[int, int, float, float]:
    """Models up, models down, the exact two-sided p of the sign test, and the least p so many models can give.

    Examples
    --------
    >>> sign_test([0.1, 0.2, 0.05, 0.3, 0.1])
    (5, 0, 0.0625, 0.0625)
    """
    x = np.asarray(changes, float)
    up, down = int((x > 1e-12).sum()), int((x < -1e-12).sum())
    n = up + down
    if not n:
        return up, down, NAN, NAN
    tail = sum(math.comb(n, k) for k in range(min(up, down) + 1)) / 2**n
    return up, down, min(1.0, 2 * tail), min(1.0, 2.0 ** (1 - n))


def _matrix(rows: pd.DataFrame, items: ArrayLike, models: ArrayLike) -> NDArray[np.float64]:
    out = np.full((len(items), len(models)), NAN)
    i, j = pd.Index(items).get_indexer(rows["item"]), pd.Index(models).get_indexer(rows["model"])
    out[i, j] = rows["hits"].to_numpy(float) / rows["trials"].to_numpy(float)
    return out


def _per_item(runs: pd.DataFrame, column: str, given: Mapping[str, str] | None, items: ArrayLike) -> NDArray | None:
    if given is not None:
        lost = [i for i in items if i not in given]
        if lost:
            raise AuditError(f"{len(lost)} items of the effort runs have no {column}, {lost[0]!r} among them",
                             mend=f"give every item a {column}")  # fmt: skip
        return np.array([str(given[i]) for i in items], object)
    if column not in runs:
        return None
    first = runs.drop_duplicates("item").set_index("item")[column].reindex(items)
    text = first.astype(object).where(first.notna(), "").astype(str).to_numpy(object)
    if column == "cluster":
        return np.where(text == "", np.array([f"\0{i}" for i in items], object), text)
    return np.where(text == "", "(none)", text)


def _lines(label: NDArray | None, n: int):
    every = np.ones(n, bool)
    if label is not None:
        for name in np.unique(label):
            yield name, None, label == name
        yield MACRO, label, every
    yield ITEMS, None, every


def _line(before: NDArray, change: NDArray, stratum: NDArray | None, cluster: NDArray | None, margin: float,
          level: float) -> tuple[dict[str, Any], tuple[NDArray, NDArray]] | None:  # fmt: skip
    """One row of the table, and each model's mean before and its change."""
    models = before.shape[1]
    if not len(before):
        return None
    fit = mean_covariance(np.hstack([before, change]), stratum, cluster)
    base, moved = fit.mean[:models], fit.mean[models:]
    known = ~np.isnan(moved)
    if not known.any():
        return None
    w = known / known.sum()
    zero = np.zeros(models)
    start, _ = fit.contrast(np.concatenate([w, zero]))
    value, se = fit.contrast(np.concatenate([zero, w]))
    relative = value / start if start > 0 else NAN
    error = fit.contrast(np.concatenate([-relative * w, w]))[1] / start if start > 0 else NAN
    low, high = t_interval(value, se, fit.df, level)
    inner = t_interval(value, se, fit.df, 0.90)
    relative_low, relative_high = t_interval(relative, error, fit.df, level)
    bound = float(np.max(np.abs(inner)))
    up, down, sign_p, floor = sign_test(moved[known])
    row = {
        "models": int(known.sum()), "before": start, "after": start + value, "change": value, "low": float(low),
        "high": float(high), "p": float(t_test(value, se, fit.df, fit.units)), "relative": relative,
        "relative_low": float(relative_low), "relative_high": float(relative_high), "up": up, "down": down,
        "sign_p": sign_p, "sign_floor": floor, "bound": bound, "margin": margin, "flat": bool(bound < margin),
    }  # fmt: skip
    return row, (base, moved)


def _adjusted(table: pd.DataFrame) -> pd.DataFrame:
    """Holm's p over the capabilities, and the mean of their relative changes beside the relative macro change."""
    own = ~table["capability"].isin([MACRO, ITEMS]).to_numpy()
    for p, q in (("p", "q"), ("sign_p", "sign_q")):
        table[q] = NAN
        table.loc[own, q] = holm(table.loc[own, p])
    macro = table["capability"].eq(MACRO)
    table["relative_mean"] = np.where(macro, table.loc[own, "relative"].mean(skipna=False), NAN)
    return table


def _tokens(runs: pd.DataFrame, levels: Sequence[str], items: ArrayLike, label: NDArray | None) -> pd.DataFrame:
    """Mean tokens of a call by level; cells of unknown tokens are counted and left out."""
    if "tokens" not in runs or runs["tokens"].isna().all():
        return pd.DataFrame(columns=["capability", "level", "calls", "known", "tokens", "ratio"])
    capability = np.full(len(runs), "all", object)
    if label is not None:
        capability = label[pd.Index(items).get_indexer(runs["item"])]
    rows = []
    for name in [*(np.unique(capability) if label is not None else []), "all"]:
        part = runs if name == "all" else runs[capability == name]
        first = NAN
        for x in levels:
            at = part[part["level"] == x]
            known = at[at["tokens"].notna()]
            calls = float(known["trials"].sum())
            mean = float(known["tokens"].sum()) / calls if calls else NAN
            first = mean if x == levels[0] else first
            rows.append({"capability": name, "level": x, "calls": calls,
                         "known": calls / float(at["trials"].sum()) if len(at) else NAN, "tokens": mean,
                         "ratio": mean / first if first else NAN})  # fmt: skip
    return pd.DataFrame(rows)
