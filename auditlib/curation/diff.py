"""What changes when a benchmark is curated again, with another panel or on other thresholds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from auditlib.errors import AuditError
from auditlib.stats.agreement import cohen_kappa

NAN = float("nan")
#: what happened to an item, in the order of the tables
CHANGES = ("kept in both", "removed in both", "newly removed", "newly kept", "only before", "only after")


@dataclass(frozen=True)
class RecurationDiff:
    """Two decisions about the same items.

    Attributes
    ----------
    common : items decided in both. same : share of them with the same decision. kappa : chance-corrected agreement of
        the decisions (NaN where all are the same). jaccard_kept, jaccard_removed : items in both sets over items in
        either.
    items : one row per item: item, change, removed_before, removed_after, reason_before, reason_after, and source
        where known.
    counts : one row per source (and ``all``) with a count of each change, items, and moved (share of the common items
        whose decision changed).
    reasons : reason_before, reason_after, items: where items moved from one reason (empty = kept) to another.
    """

    common: int
    same: float
    kappa: float
    jaccard_kept: float
    jaccard_removed: float
    items: pd.DataFrame = field(repr=False, compare=False)
    counts: pd.DataFrame = field(repr=False, compare=False)
    reasons: pd.DataFrame = field(repr=False, compare=False)

    def as_row(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("common", "same", "kappa", "jaccard_kept", "jaccard_removed")}


def recuration_diff(before: pd.DataFrame, after: pd.DataFrame) -> RecurationDiff:
    """Compare two tables of decisions.

    Parameters
    ----------
    before, after : frames
        One row per item with the columns item, removed (yes or no) and, where known, reason and source.

    Returns
    -------
    RecurationDiff

    Raises
    ------
    AuditError
        A missing column, an item that occurs twice, a decision that is neither yes nor no, no common item.
    """
    a, b = _decisions(before, "before"), _decisions(after, "after")
    both = a.merge(b, on="item", how="outer", suffixes=("_before", "_after"), sort=False)
    order = {item: i for i, item in enumerate(pd.concat([a["item"], b["item"]]).drop_duplicates())}
    both = both.sort_values("item", key=lambda s: s.map(order)).reset_index(drop=True)
    was, now = both["removed_before"], both["removed_after"]
    known = was.notna() & now.notna()
    if not known.any():
        raise AuditError("the two decisions have no item in common", mend="compare curations of the same pool")
    x, y = was.eq(True).to_numpy(), now.eq(True).to_numpy()
    conditions = [known & ~x & ~y, known & x & y, known & ~x & y, known & x & ~y, now.isna(), was.isna()]
    change = np.select([np.asarray(c) for c in conditions], CHANGES, default="")
    source = both["source_after"].where(both["source_after"] != "", both["source_before"]).fillna("")
    for column in ("reason_before", "reason_after"):
        both[column] = both[column].fillna("")
    items = pd.DataFrame({"item": both["item"], "change": change, "removed_before": was.astype("boolean"),
                          "removed_after": now.astype("boolean"), "reason_before": both["reason_before"],
                          "reason_after": both["reason_after"]})  # fmt: skip
    if (source != "").any():
        items.insert(1, "source", source)
    x, y = x[known], y[known]
    moved = items[known.to_numpy()].groupby(["reason_before", "reason_after"], sort=True).size()
    return RecurationDiff(
        common=int(known.sum()),
        same=float((x == y).mean()),
        kappa=cohen_kappa(x.astype(int), y.astype(int), 2).estimate,
        jaccard_kept=_jaccard(~x, ~y),
        jaccard_removed=_jaccard(x, y),
        items=items,
        counts=_counts(items),
        reasons=moved.rename("items").reset_index(),
    )


def _decisions(table: pd.DataFrame, which: str) -> pd.DataFrame:
    for column in ("item", "removed"):
        if column not in table:
            raise AuditError(f"the decisions {which} have no column {column!r}", mend="give item, removed and reason")
    item = table["item"].astype(str)
    twice = item[item.duplicated()]
    if len(twice):
        raise AuditError(f"item {twice.iloc[0]} is decided twice {which}", mend="keep one decision of each item")
    text = table["removed"].astype(str).str.strip().str.lower()
    odd = ~text.isin(["true", "false", "yes", "no", "1", "0"])
    if odd.any():
        at = int(np.flatnonzero(odd)[0])
        raise AuditError(f"item {item.iloc[at]} has the decision {table['removed'].iloc[at]!r} {which}",
                         mend="write yes or no in the column 'removed'")  # fmt: skip
    out = pd.DataFrame({"item": item.to_numpy(object), "removed": text.isin(["true", "yes", "1"]).to_numpy(object)})
    for column in ("reason", "source"):
        given = table[column] if column in table else pd.Series("", index=table.index)
        out[column] = given.astype(object).where(given.notna(), "").astype(str).to_numpy(object)
    return out


def _counts(items: pd.DataFrame) -> pd.DataFrame:
    groups = [("all", items)]
    if "source" in items:
        groups = [*items.groupby("source", sort=True), *groups]
    rows = []
    for name, part in groups:
        count = part["change"].value_counts().reindex(list(CHANGES), fill_value=0)
        common = int(count[:4].sum())
        turned = int(count["newly removed"] + count["newly kept"])
        rows.append({"source": name, **count.to_dict(), "items": len(part),
                     "moved": turned / common if common else NAN})  # fmt: skip
    return pd.DataFrame(rows)


def _jaccard(a: np.ndarray, b: np.ndarray) -> float:
    either = int((a | b).sum())
    return int((a & b).sum()) / either if either else NAN
