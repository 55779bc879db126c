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
REFERENCE, ENOUGH = 4, 2 / 3


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


def worth(detector: str, k: int | str, models: int) -> float:
    """How much more often the detector flags what it should find than what it should leave alone."""
    r = rates(detector, k, models)
    if r is None:
        return float("nan")
    # what was never flagged wrongly may be flagged wrongly in half a case
    return float(r["detection"] / max(r["false_positive"], 0.5 / r["n_clean"]))


def outside(detector: str, k: ArrayLike, models: int) -> NDArray[np.bool_]:
    """Items with a number of options for which the detector has not been shown to work.

    Parameters
    ----------
    k : float array, shape (items,)
        Options shown; nan (open answers, or unknown) is never outside.
    models : models of the pool.

    Notes
    -----
    Outside: fewer than two options, or :func:`worth` below two thirds of its value with four options and as many
    models. A detector that the table does not hold is outside below two options only.
    """
    shown = np.asarray(k, float)
    out = shown < 2
    least = ENOUGH * worth(detector, REFERENCE, models)
    if np.isnan(least):
        return out
    for value in np.unique(shown[shown >= 2]):
        if worth(detector, int(value), models) < least:
            out = out | (shown == value)
    return out
