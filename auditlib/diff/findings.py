"""Findings of two audits: which appeared, which vanished, and which say something else now."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from auditlib.auditing import Audit

_ON = ["item", "detector", "arm", "check"]
FINDINGS = ("item", "detector", "arm", "change", "severity_before", "severity_after", "before", "after")


def finding_changes(before: Audit, after: Audit, shared: set[str]) -> pd.DataFrame:
    """Flagged findings on shared items that appeared, vanished, or say something else now.

    Returns
    -------
    DataFrame
        Columns :data:`FINDINGS`; ``before`` and ``after`` are the messages. A detector that is run on one side only is
        left to :func:`not_run`.
    """
    a, b = (_flagged(x, shared) for x in (before, after))
    ran = [set(x.detectors.loc[x.detectors["state"].eq("run"), "detector"]) | {"integrity"} for x in (before, after)]
    both = ran[0] & ran[1]
    a, b = (t[t["detector"].isin(both)] for t in (a, b))
    table = a.merge(b, on=_ON, how="outer", suffixes=("_before", "_after"), sort=False)
    for name in ("severity_before", "severity_after", "message_before", "message_after"):
        table[name] = table[name].astype(object).where(table[name].notna(), "")
    gone, new = table["message_after"].eq(""), table["message_before"].eq("")
    other = ~gone & ~new & (table["message_before"].ne(table["message_after"])
                            | table["severity_before"].ne(table["severity_after"]))  # fmt: skip
    table["change"] = ""
    table.loc[gone, "change"], table.loc[new, "change"], table.loc[other, "change"] = "vanished", "appeared", "changed"
    table = table[table["change"].ne("")].rename(columns={"message_before": "before", "message_after": "after"})
    place = {str(i): n for n, i in enumerate(after.items["item"])}
    order = table["item"].map(lambda i: place.get(i, len(place)))
    return table.assign(_o=order).sort_values(["detector", "_o"], kind="stable")[list(FINDINGS)].reset_index(drop=True)


def not_run(before: Audit, after: Audit) -> list[str]:
    """Detectors that one side has and the other has not, as sentences."""
    ran = [set(x.detectors.loc[x.detectors["state"].eq("run"), "detector"]) for x in (before, after)]
    return [f"{d} ran on one side only; its findings are not compared" for d in sorted(ran[0] ^ ran[1])]


def _flagged(audit: Audit, shared: set[str]) -> pd.DataFrame:
    table = audit.findings[audit.findings["flag"].astype(bool)]
    table = table.assign(item=table["item"].astype(str))
    table = table[table["item"].isin(shared)]
    checks = [json.loads(e).get("check", "") if e else "" for e in table["evidence"]]
    table = table.assign(check=checks, arm=table["arm"].astype(object).where(table["arm"].notna(), ""))
    return table.drop_duplicates(_ON)[[*_ON, "severity", "message"]]
