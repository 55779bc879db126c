"""Models that were read one at a time as one pool, exactly as if they had been read together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from auditlib.align import item_order
from auditlib.frames import MISSING, coverage_row, frame
from auditlib.leaderboard.single import GROUPS, Single
from auditlib.pool import Arm, Pool
from auditlib.readers.vlmevalkit_runs import SAME, same_digests

if TYPE_CHECKING:
    from auditlib.params import Params

#: kinds of rows of the coverage table that speak of how runs fit together, made anew for the whole pool
_JOINING = ("joined", "missing")
#: remarks on the whole pool whose numbers add up over models
_SUMS = ("replies whose think block never ends", "replies read by letter although one option's text is another")


def merged(singles: list[Single], shared: list[dict[str, Any]], params: Params) -> tuple[Pool | None, str]:
    """The pool of some models, or None and why they cannot be put together without their texts.

    Parameters
    ----------
    singles : models by themselves.
    shared : rows of the coverage table on the folder.
    params : of the pool.
    """
    from auditlib.reading import NO_LETTER, check_names, model_table

    items, why = _items(singles)
    if not why:
        why = _conflicts(singles)
    if why:
        return None, why
    present = sorted(s.model for s in singles)
    check_names(params, items, present)
    known = pd.DataFrame([{"model": s.model} | s.about for s in singles])
    models = model_table(known, params, present)
    place = {s.model: s for s in singles}
    ordered = [place[m] for m in models["model"]]
    rows = _places(ordered, items)
    arms, why = _arms(ordered, items, rows)
    if why:
        return None, why
    if "exact" in arms and not any(s.names_letters for s in singles):
        del arms["exact"]
        shared = [*shared, coverage_row("not run", n=len(items), reason=f"exact arm: {NO_LETTER}")]
        if not arms:
            return None, "no reply could be scored"
    arrays = {g: _array(ordered, rows, len(items), f"{g}|") for g in GROUPS}
    coverage = _coverage(singles, shared, items)
    if coverage is None:
        return None, "remarks on the whole pool differ between models"
    runs = {k: v for s in singles for k, v in s.provenance.get("runs", {}).items()}
    provenance = {k: v for k, v in singles[0].provenance.items() if k != "runs"} | ({"runs": runs} if runs else {})
    return Pool(
        name=params.pool,
        benchmark=params.benchmark,
        items=items,
        models=models,
        arms=arms,
        **arrays,
        coverage=coverage,
        params=params,
        provenance=provenance,
        inputs=tuple(dict.fromkeys(p for s in singles for p in s.inputs)),
    ), ""


def _items(singles: list[Single]) -> tuple[pd.DataFrame, str]:
    """Facts of all items; models may lack items, but not differ about one."""
    frames = {s.facts: s.items for s in singles}
    base = max(frames.values(), key=len)
    if len(frames) == 1:
        return base, ""
    order = item_order([i for f in frames.values() for i in f["item"].tolist()])
    known = base.set_index("item", drop=False)
    for other in frames.values():
        if other is base:
            continue
        if list(other.columns) != list(base.columns):
            return base, "runs state different facts of items"
        mine = other.set_index("item", drop=False)
        both = known.index.intersection(mine.index)
        for column in base.columns:
            if any(not _alike(a, b) for a, b in zip(known.loc[both, column].tolist(), mine.loc[both, column].tolist())):
                return base, f"runs disagree about items ({column})"
        known = pd.concat([known, mine.loc[mine.index.difference(known.index)]])
    return known.loc[order].reset_index(drop=True), ""


def _alike(a: Any, b: Any) -> bool:
    missing = [v is None or v is pd.NA or (isinstance(v, float) and v != v) for v in (a, b)]
    return all(missing) or (not any(missing) and a == b)


def _conflicts(singles: list[Single]) -> str:
    for s in singles:
        if any(r["what"] == "conflict" for r in s.coverage):
            return f"the runs of {s.model} disagree about items"
    return ""


def _places(ordered: list[Single], items: pd.DataFrame) -> list[np.ndarray]:
    """Row of the pool of each row of each model."""
    index, seen = pd.Index(items["item"]), {}
    for s in ordered:
        if s.facts not in seen:
            seen[s.facts] = index.get_indexer(s.items["item"])
    return [seen[s.facts] for s in ordered]


def _array(ordered: list[Single], rows: list[np.ndarray], n: int, start: str) -> dict[str, np.ndarray]:
    """Arrays of one group by condition, in the order full, blind, others."""
    names = {c for s in ordered for c in s.columns.columns if c.startswith(start)}
    fill = MISSING if start == "letters|" else 0
    out = {}
    for name in sorted(names, key=lambda c: _condition_order(c.rpartition("|")[2])):
        kind = np.result_type(*{s.columns[name].dtype for s in ordered if name in s.columns})
        table = np.full((n, len(ordered)), fill, kind)
        for j, (s, at) in enumerate(zip(ordered, rows)):
            if name in s.columns:
                table[at, j] = s.columns[name].to_numpy()
        out[name.rpartition("|")[2]] = table
    return out


def _condition_order(name: str) -> tuple[bool, bool, str]:
    return name != "full", name != "blind", name


def _arms(ordered: list[Single], items: pd.DataFrame, rows: list[np.ndarray]) -> tuple[dict[str, Arm], str]:
    names = list(dict.fromkeys(n for s in ordered for n in s.units))
    order = ("exact", "exact_yesno", "exact_open", "judged")
    arms = {}
    for name in sorted(names, key=order.index):
        # a model without verdicts has none in the whole pool either; of the other arms every model has a part
        if name != "judged" and any(name not in s.units for s in ordered):
            lacking = next(s.model for s in ordered if name not in s.units)
            return {}, f"{lacking} has no part in the arm {name}"
        units = {s.units[name] for s in ordered if name in s.units}
        if len(units) > 1:
            return {}, "graded verdicts are counted in different steps"
        hits, trials = (_array(ordered, rows, len(items), f"{name}|{kind}|") for kind in ("hits", "trials"))
        if name == "judged":  # every condition of the pool, as the other arms have them
            conditions = {c.rpartition("|")[2] for s in ordered for c in s.columns.columns if c.startswith("letters|")}
            for c in conditions - set(hits):
                hits[c], trials[c] = (np.zeros((len(items), len(ordered)), np.uint8) for _ in range(2))
        arms[name] = Arm(name, hits, trials, units.pop())
    return arms, ""


def _coverage(singles: list[Single], shared: list[dict[str, Any]], items: pd.DataFrame) -> pd.DataFrame | None:
    """Rows on the folder, on every run, on how runs fit together, on the whole pool; None where these differ."""
    rows, whole = list(shared), []
    for s in singles:
        own = []
        for r in s.coverage:
            if r["run"] or r["model"]:
                if r["what"] != "missing" and not r["reason"].startswith(SAME):
                    own.append(r)
            elif r["what"] not in _JOINING:
                whole.append((s, r))
        rows += [r for r in own if r["run"] != "dataset"]
        whole += [(s, r) for r in own if r["run"] == "dataset"]
    rows += same_digests(d for s in singles for d in s.runs)
    rows += _joining(singles, items)
    groups: dict[str, list[tuple[Single, dict[str, Any]]]] = {}
    for s, r in whole:
        groups.setdefault(f"{r['run']}|{r['what']}|{r['reason']}", []).append((s, r))
    for group in groups.values():
        first = group[0][1]
        if first["reason"].startswith(_SUMS):
            rows.append(first | {"n": sum(r["n"] for _, r in group)})
        elif len(group) == len(singles) and all(r == first for _, r in group):
            rows.append(first)
        else:
            return None
    return frame("coverage", rows)


def _joining(singles: list[Single], items: pd.DataFrame) -> list[dict[str, Any]]:
    everything = set(items["item"].tolist())
    common, rows, sets = set(everything), [], 0
    for s in singles:
        own = set(s.items["item"].tolist())
        for d in s.runs:
            ids = set(s.held[d["condition"]]) if d["condition"] in s.held else own
            sets += 1
            common &= ids
            if absent := everything - ids:
                some = ", ".join(item_order(list(absent))[:5])
                rows.append(coverage_row("missing", n=len(absent), run=d["run"], model=s.model,
                                         condition=d["condition"],
                                         reason=f"items answered in other runs only, for example {some}"))  # fmt: skip
    rows.append(coverage_row("joined", n=len(common), reason=f"items in every run, of {len(everything)} in any"))
    return rows
