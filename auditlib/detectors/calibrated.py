"""For which numbers of options a detector has been shown to work, from the table of its measured error rates."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

#: the table that ``python -m auditlib.calibration k_way --ship`` writes
TABLE = Path(__file__).resolve().parents[1] / "calibration" / "data" / "k_way.csv"
#: the flag that a detector is judged by
PRINCIPAL = {
    "visual_dependency": "zero gain",
    "consensus_error": "unanimous",
    "correctness_agreement": "never solved",
}
#: number of options with which the method was published, and the part of its worth there that is enough
REFERENCE, ENOUGH = 4, 0.75


@cache
def k_way() -> pd.DataFrame:
    """The shipped table; ``k`` is text, "open" for open answers."""
    return pd.read_csv(TABLE, dtype={"k": str})


def rates(detector: str, k: int | str, models: int, flag: str | None = None) -> pd.Series | None:
    """The table's row for a detector; None where it has none.

    Parameters
    ----------
    k : options shown, or "open"; a number that the table lacks is read at the next smaller one.
    models : read at the next smaller number in the table, its smallest at least.
    flag : the detector's principal flag by default.
    """
    table = k_way()
    flag = PRINCIPAL.get(detector, "") if flag is None else flag
    table = table[(table["detector"] == detector) & (table["flag"] == flag)]
    sizes = np.unique(table["models"])
    if not len(sizes):
        return None
    table = table[table["models"] == sizes[max(0, int(np.searchsorted(sizes, models, "right")) - 1)]]
    if k == "open":
        found = table[table["k"] == "open"]
    else:
        numbers = pd.to_numeric(table["k"], errors="coerce")
        found = table[numbers == numbers[numbers <= int(k)].max()]
    return found.iloc[0] if len(found) else None


def worth(detector: str, k: int | str, models: int = 1) -> float:
    """How much more often the detector flags what it should find than what it should leave alone."""
    r = rates(detector, k, models)
    if r is None:
        return float("nan")
    # what was never flagged wrongly may be flagged wrongly in half a case
    return float(r["detection"] / max(r["false_positive"], 0.5 / r["n_clean"]))


def outside(detector: str, k: ArrayLike, low: int = 2) -> NDArray[np.bool_]:
    """Items with a number of options for which the detector has not been shown to work.

    Parameters
    ----------
    k : float array, shape (items,)
        Options shown; nan (open answers, or unknown) is never outside.
    low : smallest number of options for a detector that the table does not hold.

    Notes
    -----
    Outside: fewer than two options, or :func:`worth` below three quarters of its value with four options, both in the
    table's smallest pool (three models), which is the hardest case.
    """
    shown = np.asarray(k, float)
    least = ENOUGH * worth(detector, REFERENCE)
    if np.isnan(least):
        return shown < low
    out = shown < 2
    for value in np.unique(shown[shown >= 2]):
        if worth(detector, int(value)) < least:
            out = out | (shown == value)
    return out


def measured(detector: str, k: int) -> str:
    """What the detector does on worlds of known truth with ``k`` options, beside four; empty where not measured."""
    here, there = (rates(detector, n, 1) for n in (k, REFERENCE))
    if here is None or there is None:
        return ""
    words = {2: "two", 3: "three"}.get(k, str(k))
    return (f"On worlds of known truth with {here['models']} models, the flag “{here['flag']}” is raised on "
            f"{100 * here['false_positive']:.0f}% of {here['spares']} and {100 * here['detection']:.0f}% of "
            f"{here['finds']} where {words} options are shown, on {100 * there['false_positive']:.0f}% and "
            f"{100 * there['detection']:.0f}% with four.")  # fmt: skip
