"""What people say of the items before them: from a review packet's decisions, or from a table of readings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from auditlib.curation.votes import DEFECTS, LABELS, NO_ISSUE
from auditlib.errors import AuditError
from auditlib.stats.agreement import cohen_kappa

CANNOT_TELL = "cannot_tell"


@dataclass(frozen=True)
class People:
    """The word of people.

    Attributes
    ----------
    outcome : item -> ``confirmed``, ``rejected`` or ``cannot_tell``. label : item -> the label that they agree on.
    author : item -> who decided, as text. summary : rows measure, n, estimate, low, high, note.
    """

    outcome: Mapping[str, str]
    label: Mapping[str, str]
    author: Mapping[str, str]
    summary: pd.DataFrame


def from_readings(readings: pd.DataFrame, items: Sequence[str], rng: np.random.Generator) -> People:
    """Two readers each; where they differ a third decides.

    Where no two say the same, two who name different defects confirm the item without a label; else nobody can tell.

    Parameters
    ----------
    readings : columns item, and one of labels for each of three readers.
    items : those that are read.

    Raises
    ------
    AuditError
        Not three readers, an item without readings, an unknown label.
    """
    readers = [c for c in readings.columns if c != "item"]
    if len(readers) != 3:
        raise AuditError(f"the readings name {len(readers)} readers", mend="give three columns of labels")
    table = readings.set_index(readings["item"].astype(str))
    lost = [i for i in items if i not in table.index]
    if lost:
        raise AuditError(f"item {lost[0]!r} has no reading", mend="read every item that the judges name")
    said = table.loc[list(items), readers].astype(str).to_numpy(dtype=object)
    unknown = sorted({str(x) for x in said.ravel()} - {*LABELS, CANNOT_TELL})
    if unknown:
        raise AuditError(f"a reader says {unknown[0]!r}", mend=f"use {', '.join((*LABELS, CANNOT_TELL))}")
    a, b, c = said.T if len(said) else (np.array([], object),) * 3
    agree = a == b
    final = np.where(agree, a, np.where((c == a) | (c == b), c, CANNOT_TELL))
    defects = sum(np.isin(x.astype(str), DEFECTS).astype(int) for x in (a, b, c)) if len(said) else np.array([], int)
    final = np.where((final == CANNOT_TELL) & ~agree & (defects >= 2), "", final)
    outcome = np.select([final == CANNOT_TELL, final == NO_ISSUE], [CANNOT_TELL, "rejected"], "confirmed")
    who = np.where(agree, " and ".join(readers[:2]), f"{readers[2]}, {readers[0]} and {readers[1]} differing")
    names = list(items)
    return People(dict(zip(names, outcome.tolist())), dict(zip(names, final.tolist())), dict(zip(names, who.tolist())),
                  _summary(a, b, agree, rng))  # fmt: skip


def _summary(a: np.ndarray, b: np.ndarray, agree: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    from auditlib.stats.intervals import wilson

    if not len(a):
        return pd.DataFrame(columns=["measure", "n", "estimate", "low", "high", "note"])
    same = wilson(int(agree.sum()), len(agree))
    code = {name: n for n, name in enumerate((*LABELS, CANNOT_TELL))}
    kappa = cohen_kappa([code[x] for x in a], [code[x] for x in b], len(code), rng=rng)
    rows = [
        {"measure": "first two readers agree", "n": len(a), "estimate": agree.mean(), "low": same.low,
         "high": same.high, "note": ""},
        {"measure": "Cohen's kappa of the first two", "n": len(a), "estimate": kappa.estimate,
         "low": kappa.interval.low, "high": kappa.interval.high, "note": "items resampled"},
    ]  # fmt: skip
    return pd.DataFrame(rows)
