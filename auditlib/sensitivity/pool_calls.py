"""The runs of a pool as calls: whatever of its conditions is one of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from auditlib import frames
from auditlib.errors import AuditError
from auditlib.frames import letter_names
from auditlib.pool import Arm, Pool
from auditlib.sensitivity.conditions import LEVELS, REFERENCES, Condition, parse
from auditlib.sensitivity.records import Calls, calls_frame


def calls_of_pool(pool: Pool, conditions: Mapping[str, str] | None = None) -> Calls | None:
    """Calls of the headline arm; None where the pool has none of our conditions but the items as they are.

    Parameters
    ----------
    conditions : the pool's word for a condition -> ours; ``skip`` leaves it out. Words that are neither mapped nor
        names of conditions are left out and stated.

    Notes
    -----
    Verdicts are the arm's. A cell with several draws is one call with the share of right draws and the first answer.
    """
    arm = pool.arm
    rows: list[pd.DataFrame] = []
    said: list[dict[str, Any]] = []
    for word in arm.hits:
        name = (conditions or {}).get(word, word)
        if name == "skip":
            continue
        condition = _known(name)
        if condition is None:
            n = int(arm.scored_models(word).sum()) * len(pool.items)
            said.append(frames.coverage_row("excluded", n=n, condition=word,
                                            reason="no change that sensitivity knows; map it in "
                                                   "sensitivity.conditions"))  # fmt: skip
            continue
        rows += _of(pool, arm, word, condition)
    if not rows:
        return None
    calls = calls_frame(pd.concat(rows, ignore_index=True))
    return Calls(calls.table, pd.concat([calls.coverage, frames.frame("coverage", said)], ignore_index=True)
                 if said else calls.coverage, pool.inputs)  # fmt: skip


def _known(name: str) -> Condition | None:
    try:
        condition = parse(name)
    except AuditError:
        return None
    return condition if condition.family in (*REFERENCES, *LEVELS) else None


def _of(pool: Pool, arm: Arm, word: str, condition: Condition) -> list[pd.DataFrame]:
    items = pool.items
    image = items["item"].astype(str).to_numpy(dtype=object)
    if pool.cluster is not None:
        image = np.array([f"c{c}" for c in pool.cluster], dtype=object)
    fact = {c: items[c].astype(object).where(items[c].notna(), "").astype(str) for c in ("key",) if c in items}
    kind = items["answer_type"].astype(str) if "answer_type" in items else pd.Series("choice", index=items.index)
    key = fact.get("key", pd.Series("", index=items.index))
    key = key.str.lower().where(kind.eq("yesno"), key)
    letters = pool.letters.get(word)
    texts = _texts(pool, word)
    out = []
    for j, model in enumerate(pool.model_names):
        trials = np.full(len(items), arm.unit) if arm.trials is None else arm.trials[word][:, j]
        hit = arm.hits[word][:, j] / np.where(trials > 0, trials, 1)
        answer = np.full(len(items), "", dtype=object)
        if letters is not None:
            answer = np.array(letter_names(letters[:, j]), dtype=object)
        for i, text in texts.get(model, {}).items():
            answer[i] = text
        table = pd.DataFrame({"model": model, "item": items["item"].astype(str), "image": image, "answer": answer,
                              "key": key, "hit": np.where(trials > 0, hit, np.nan),
                              "k": np.nan if pool.k is None else pool.k})  # fmt: skip
        for name in ("family", "variant", "level", "seed", "form"):
            table[name] = getattr(condition, name)
        out.append(table[trials > 0])
    return out


def _texts(pool: Pool, word: str) -> dict[str, dict[int, str]]:
    """model -> place of a yes/no or open item -> first answer, where the pool has its replies."""
    r = pool.responses
    if r is None or "answer" not in r or "answer_type" not in pool.items:
        return {}
    other = pool.items["answer_type"].ne("choice")
    place = dict(zip(pool.items.loc[other, "item"], np.flatnonzero(other)))
    here = r[r["condition"].eq(word) & r["item"].isin(place) & r["answer"].notna()]
    if "sample" in here:
        here = here.sort_values("sample", kind="stable").drop_duplicates(["model", "item"])
    out: dict[str, dict[int, str]] = {}
    for model, item, answer in zip(here["model"], here["item"], here["answer"]):
        out.setdefault(model, {})[place[item]] = str(answer).lower()
    return out
