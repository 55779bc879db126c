"""What a matrix of hits lacks: empty cells, models and items that a condition does not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from auditlib.errors import AuditError
from auditlib.frames import coverage_row


def check_prefixes(columns: Sequence[str], prefixes: Mapping[str, str], path: Path) -> None:
    """Refuse a prefix that no column starts with.

    Raises
    ------
    AuditError
        It names the prefix and how columns start here.
    """
    for prefix in prefixes:
        if not any(c.startswith(prefix) for c in columns):
            starts = dict.fromkeys(c[: max(len(prefix), 4)] for c in columns)
            shown = ", ".join(repr(s) for s in list(starts)[:5])
            raise AuditError(
                f"no column starts with the prefix {prefix!r}",
                file=path,
                row=1,
                mend=f"correct 'prefixes', or leave it out; columns start with {shown}",
            )


def gaps(
    missing: Mapping[str, np.ndarray | None], absent: Mapping[str, Sequence[str]], models: Sequence[str], kind: str,
    path: Path,
) -> list[dict[str, Any]]:  # fmt: skip
    """Coverage rows on what is not there, by condition.

    Parameters
    ----------
    missing : condition to bool array, shape (items, models), or ``None`` when nothing is missing.
    absent : condition to the names that have no column in it.
    models : names of the second axis.
    kind : what the columns are, ``items`` or ``models``.
    path : the matrix.

    Raises
    ------
    AuditError
        No condition has a single cell.
    """
    if all(m is not None and m.all() for m in missing.values()):
        mend = "write 0 and 1 into the cells, or name the right file"
        raise AuditError("every cell of the matrix is empty", file=path, mend=mend)
    rows = []
    for condition, empty in missing.items():
        lost = list(absent[condition])
        if lost:
            reason = f"{kind} without a column in this condition"
            reason += f", which only {_having(absent, condition, lost)} has" if len(absent) > 1 else ""
            item = lost[0] if kind == "items" else ""
            model = lost[0] if kind == "models" else ""
            rows.append(
                coverage_row(
                    "warning", n=len(lost), run=path.name, model=model, condition=condition, item=item, reason=reason
                )
            )
        if empty is None:
            continue
        per_model = empty.sum(axis=0)
        without = [m for m, n in zip(models, per_model) if n == len(empty)]
        # cells of a column that is not there are counted above, once
        other = empty.shape[1 if kind == "items" else 0]
        if n := int(per_model.sum()) - other * len([x for x in lost if kind == "items" or x in models]):
            rows.append(coverage_row("warning", n=n, run=path.name, condition=condition, reason="empty cells"))
        named = [m for m in without if kind == "items" or m not in set(lost)]
        rows += [
            coverage_row(
                "warning", n=len(empty), run=path.name, model=m, condition=condition, reason="a model without a cell"
            )
            for m in named
        ]
    return rows


def _having(absent: Mapping[str, Sequence[str]], condition: str, lost: Sequence[str]) -> str:
    first = lost[0]
    return " and ".join(c for c in absent if c != condition and first not in absent[c])
