"""Which wrong answers to label, and the labels read back."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas as pd

from auditlib.curation.data import CurationPool
from auditlib.curation.labelled import complain, nearest, numbers, open_labelled
from auditlib.errors import AuditError

#: classes of wrong answers in the order of decision: the first that applies is the label
ERROR_CLASSES = ("misunderstanding", "perception", "knowledge", "reasoning", "calculation")
#: labeller name of a label that settles a conflict
FINAL = "final"
#: capability of a pool that knows none
NONE = "all"


def wrong_population(pool: CurationPool, model: str) -> pd.DataFrame:
    """Wrong answers of a model by capability: capability, items, draws, wrong, unanswered.

    ``wrong`` counts draws with an answer that is wrong; draws without an answer have no error class and are counted
    as ``unanswered``.

    Raises
    ------
    AuditError
        The pool has no such model.
    """
    wrong, unanswered, draws = _wrong(pool, model)
    capability = _capability(pool)
    rows = []
    for name in np.unique(capability).tolist():
        here = capability == name
        rows.append({"capability": name, "items": int((wrong[here] > 0).sum()), "draws": int(draws[here].sum()),
                     "wrong": int(wrong[here].sum()), "unanswered": int(unanswered[here].sum())})  # fmt: skip
    return pd.DataFrame(rows)


def sample_wrong(
    pool: CurationPool, model: str, *, rng: np.random.Generator, n: int = 400, allocation: str = "equal"
) -> pd.DataFrame:
    """Draw wrong answers of a model for labelling, stratified by capability.

    Parameters
    ----------
    n : answers to draw; fewer where there are no more.
    allocation : ``equal`` (as many from each capability) or ``proportional`` to its wrong answers.

    Returns
    -------
    DataFrame
        item, draw (which of the item's wrong draws, from 1), model, capability, population (wrong answers of the
        capability), sampled, weight = population / sampled.

    Raises
    ------
    AuditError
        An unknown model or allocation, or no wrong answer.
    """
    wrong, _, _ = _wrong(pool, model)
    if not wrong.sum():
        raise AuditError(f"{model} has no wrong answer", mend="choose another model")
    capability = _capability(pool)
    names = [c for c in np.unique(capability).tolist() if wrong[capability == c].sum()]
    size = np.array([wrong[capability == c].sum() for c in names])
    quota = _allocate(size, n, allocation)
    item, out = pool.items["item"].astype(str).to_numpy(object), []
    for name, population, take in zip(names, size, quota, strict=True):
        here = np.flatnonzero((capability == name) & (wrong > 0))
        place = np.repeat(here, wrong[here])
        number = np.concatenate([np.arange(1, w + 1) for w in wrong[here]])
        chosen = np.sort(rng.choice(len(place), size=take, replace=False))
        out.append(pd.DataFrame({"item": item[place[chosen]], "draw": number[chosen], "model": model,
                                 "capability": name, "population": population, "sampled": take,
                                 "weight": population / take if take else np.nan}))  # fmt: skip
    return pd.concat(out, ignore_index=True)


def wrong_answers(pool: CurationPool, model: str) -> dict[str, int]:
    """Item -> number of a model's draws with a wrong answer, of items that have any.

    Raises
    ------
    AuditError
        The pool has no such model.
    """
    wrong, _, _ = _wrong(pool, model)
    return {str(i): int(n) for i, n in zip(pool.items["item"], wrong) if n}


def read_error_labels(path: str | Path, items: Collection[str] = ()) -> pd.DataFrame:
    """Read error labels: one row per wrong answer and labeller.

    Parameters
    ----------
    path : file with the columns item, labeller and label; ``draw`` (1 where there is none) tells several wrong answers
        to one item apart. The labeller ``final`` settles a conflict.
    items : known item ids; empty takes any.

    Returns
    -------
    DataFrame
        item, draw, labeller, label, and model where the file has it, in file order; a row with an empty label is
        one not labelled yet, and left out.

    Raises
    ------
    AuditError
        A file that cannot be read, an unknown label (the nearest is named) or item, a second label of one labeller, no
        label at all.
    """
    path = Path(path)
    table = open_labelled(path, ("item", "labeller", "label"), items)
    known = {str(i) for i in items}
    strange = ~table["item"].isin(known) & bool(known)
    complain(strange, table, path, lambda row: f"item {row['item']!r} is none of the {len(known)} items",
             "correct the id, or remove the row")  # fmt: skip
    table["draw"] = numbers(table, "draw", path, low=1, whole=True).astype(int) if "draw" in table else 1
    complain(
        table["labeller"].eq("") & table["label"].ne(""),
        table,
        path,
        lambda row: "a label without labeller",
        "name the labeller",
    )
    label = table["label"].map(_class_of)
    bad = label.isna()
    word = table["label"][bad].iloc[0] if bad.any() else ""
    complain(bad, table, path, lambda row: f"{row['label']!r} is no error class", nearest(word.lower(), ERROR_CLASSES))
    table["labeller"] = table["labeller"].where(table["labeller"].str.lower() != FINAL, FINAL)
    about = ["model"] if "model" in table else []
    twice = table.duplicated([*about, "item", "draw", "labeller"])
    complain(twice, table, path, lambda row: f"{row['labeller']!r} labels item {row['item']!r} a second time",
             "keep one of the rows, or tell the answers apart in a column 'draw'")  # fmt: skip
    out = table.assign(label=label)[[*about, "item", "draw", "labeller", "label"]]
    out = out[out["label"] != ""]
    if not len(out):
        raise AuditError("no row has a label", file=path, mend=f"fill in the column label: {', '.join(ERROR_CLASSES)}")
    return out.reset_index(drop=True)


def _class_of(text: str) -> str | None:
    """One of :data:`ERROR_CLASSES` in any capitals, with or without the word error; ``""`` stays, None is unknown."""
    word = re.sub(r"[\s_-]*errors?$", "", text.strip().lower())
    return word if word in (*ERROR_CLASSES, "") and (word or not text) else None


def _wrong(pool: CurationPool, model: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    names = pool.models["model"].astype(str).tolist()
    if model not in names:
        raise AuditError(f"the pool has no model {model!r}", mend=nearest(model, names))
    full, j = pool.full, names.index(model)
    unanswered = full.abstained[:, j].astype(np.int64) // full.unit
    draws = full.trials[:, j].astype(np.int64) // full.unit
    # a graded draw is wrong where it gained nothing; parts of a draw are no wrong answer
    wrong = (full.trials[:, j].astype(np.int64) - full.hits[:, j] - full.abstained[:, j]) // full.unit
    return wrong, unanswered, draws


def _capability(pool: CurationPool) -> np.ndarray:
    return np.full(len(pool.items), NONE, object) if pool.capability is None else pool.capability.astype(str)


def _allocate(size: np.ndarray, n: int, allocation: str) -> np.ndarray:
    """How many of each stratum, by largest remainder; what a small stratum cannot give goes to the others."""
    if allocation not in ("equal", "proportional"):
        raise AuditError(f"allocation is {allocation!r}", mend="use 'equal' or 'proportional'")
    quota = np.zeros(len(size), np.int64)
    n = min(n, int(size.sum()))
    while True:
        share = (quota < size) * (np.ones(len(size)) if allocation == "equal" else size)
        want = (n - quota[quota == size].sum()) * share / max(share.sum(), 1)
        full = (want >= size) & (share > 0)
        if not full.any():
            break
        quota[full] = size[full]
    step = np.floor(want).astype(np.int64)
    # stable: of equal remainders the first stratum gets the one more
    left = n - int(quota.sum() + step.sum())
    step[np.argsort(step - want, kind="stable")[:left]] += 1
    return quota + step
