"""The sheet on which people check planted changes: what was changed, and whether the change is what it should be."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from auditlib import frames
from auditlib.errors import AuditError
from auditlib.judges.calls import EFFECTS
from auditlib.readers import cells, files

#: words of the column ``valid``
VALID = {"yes": True, "y": True, "true": True, "1": True, "no": False, "n": False, "false": False, "0": False}
#: columns, in their order
COLUMNS = ("instance", "task", "dimension", "effect", "severity", "prompt", "image", "cluster", "gold", "perturbed",
           "longer", "valid", "checked_by", "note")  # fmt: skip


def read_sheet(path: str | Path) -> pd.DataFrame:
    """A validation sheet: ``instance, dimension, effect, severity, longer, valid``.

    ``valid`` is True, False, or missing where nobody checked; ``longer`` comes from the texts where the sheet has them
    and no such column; ``author`` is there where the sheet names who made the gold output.

    Raises
    ------
    AuditError
        A missing column, an instance twice for one dimension, a word in ``valid`` or ``effect`` that is none.
    """
    path = Path(path)
    table = files.open_table(path)
    for name in ("instance", "dimension", "effect"):
        if name not in table:
            raise AuditError(f"there is no column {name!r}", file=path, row=1, mend="give instance, dimension, effect")
    out = pd.DataFrame({"instance": cells.item_ids(table["instance"]), "dimension": table["dimension"].str.strip(),
                        "effect": table["effect"].str.strip()})  # fmt: skip
    said = table["valid"].str.strip().str.casefold() if "valid" in table else pd.Series("", index=table.index)
    for bad, what, mend in (
        (~out["effect"].isin(EFFECTS), "effect", f"write {' or '.join(EFFECTS)}"),
        (~said.isin([*VALID, ""]), "valid", "write yes or no, or leave the cell empty"),
        (out.duplicated(["instance", "dimension"]), "instance", "give each instance and dimension once"),
    ):
        if bad.any():
            at = int(bad.idxmax())
            raise AuditError(f"{what} is {table[what].loc[at]!r}" + (" again" if what == "instance" else ""),
                             file=path, row=at + 2, mend=mend)  # fmt: skip
    out["valid"] = said.map(VALID).astype("boolean")
    out["severity"] = pd.to_numeric(table["severity"], errors="coerce") if "severity" in table else float("nan")
    if "author" in table:
        out["author"] = table["author"].str.strip()
    if "longer" in table:
        out["longer"] = pd.to_numeric(table["longer"], errors="coerce")
    elif "gold" in table and "perturbed" in table:
        out["longer"] = (table["perturbed"].str.len() - table["gold"].str.len()).astype(float)
    else:
        out["longer"] = float("nan")
    return out


def checked(calls: pd.DataFrame, sheet: pd.DataFrame) -> tuple[pd.DataFrame, list[dict]]:
    """Calls without those on changes that people found not to be what they should be.

    Returns
    -------
    frame, coverage rows
        A missing severity comes from the sheet.
    """
    keys = ["instance", "dimension"]
    joined = calls[keys].merge(sheet[[*keys, "valid", "severity"]], on=keys, how="left")
    severity = calls["severity"].where(calls["severity"].notna(), joined["severity"].to_numpy(float))
    refused = joined["valid"].eq(False).fillna(False).to_numpy(bool)
    unchecked = joined["valid"].isna().to_numpy() & calls["dimension"].ne("").to_numpy()
    rows = []
    if refused.any():
        n = int(joined.loc[refused, keys].drop_duplicates().shape[0])
        reason = f"calls on {n} planted changes that people found not to be what they should be"
        rows.append(frames.coverage_row("excluded", n=int(refused.sum()), reason=reason))
    if unchecked.any():
        n = int(joined.loc[unchecked, keys].drop_duplicates().shape[0])
        rows.append(frames.coverage_row("warning", n=n, reason="planted changes that nobody checked: counted"))
    return calls.assign(severity=severity)[~refused].reset_index(drop=True), rows
