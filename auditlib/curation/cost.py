"""What curation saves: items, calls, tokens and money, each where it is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.curation.data import CurationPool
from auditlib.curation.scores import kept_mask
from auditlib.errors import AuditError

NAN = float("nan")


def cost_table(
    pool: CurationPool,
    kept: ArrayLike,
    *,
    tokens: ArrayLike | None = None,
    price: float | None = None,
    seconds: ArrayLike | None = None,
) -> pd.DataFrame:
    """Cost of evaluating the evaluated models on all items and on the kept ones.

    Parameters
    ----------
    pool : CurationPool
    kept : bool array, shape (items,)
    tokens : float array, shape (items,) or (items, evaluated models), optional
        Tokens of all draws of an item, NaN where unknown.
    price : money for one million tokens.
    seconds : float array of the same shapes, optional
        Measured seconds, NaN where unknown.

    Returns
    -------
    DataFrame
        what (``items``, ``calls``, ``tokens``, ``cost``, ``seconds``), raw, curated, saved (share of raw), per_item
        (curated over raw, per item: above 1, the kept items are the dear ones), known (share of the items whose cost
        is known), note. Items of unknown cost count on neither side; an unknown cost is no row.

    Raises
    ------
    AuditError
        A price without tokens, costs of another shape, or negative ones.
    """
    mask = kept_mask(kept, len(pool.items))
    if price is not None and tokens is None:
        raise AuditError("a price is given but no tokens", mend="read runs that count tokens, or leave the price out")
    calls = pool.full.trials[:, pool.evaluated].sum(axis=1) / pool.full.unit
    rows = [_row("items", np.ones(len(mask)), mask), _row("calls", calls, mask)]
    for what, given in (("tokens", tokens), ("seconds", seconds)):
        if given is None:
            continue
        each = _per_item(what, given, (len(mask), len(pool.evaluated)))
        if np.isnan(each).all():
            continue
        rows.append(_row(what, each, mask))
        if what == "tokens" and price is not None:
            rows.append(_row("cost", each * price / 1e6, mask))
    return pd.DataFrame(rows)


def _per_item(what: str, given: ArrayLike, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Cost of each item over all models; NaN where that of any model is unknown."""
    x = np.asarray(given, float)
    if x.shape not in (shape, shape[:1]):
        raise AuditError(f"{what} have shape {x.shape}, the pool has {shape[0]} items and {shape[1]} evaluated models",
                         mend="give one number per item, or per item and evaluated model")  # fmt: skip
    if (x < 0).any():
        raise AuditError(f"{what} of an item are negative", mend="correct them, or leave them empty")
    return x if x.ndim == 1 else x.sum(axis=1)


def _row(what: str, each: NDArray, mask: NDArray) -> dict[str, object]:
    known = ~np.isnan(each)
    raw, curated = float(each[known].sum()), float(each[known & mask].sum())
    n, k = int(known.sum()), int((known & mask).sum())
    per_item = (curated / k) / (raw / n) if k and raw else NAN
    note = "" if known.all() else f"unknown for {len(each) - n} of {len(each)} items, counted on neither side"
    return {"what": what, "raw": raw, "curated": curated, "saved": 1 - curated / raw if raw else NAN,
            "per_item": per_item, "known": n / len(each), "note": note}  # fmt: skip
