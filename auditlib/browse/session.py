"""Someone looking at items: what is shown, which item is on screen, and a selection that is kept on disk."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib.browse.cases import Case, Cases
from auditlib.browse.filters import Filter, select
from auditlib.browse.note import note
from auditlib.errors import AuditError
from auditlib.escape import csv_unguard, guard_csv
from auditlib.paths import atomic

COLUMNS = ("item", "stratum", "severity", "key", "reasons", "question")


@dataclass
class Session:
    """What is looked at; :func:`open_session` makes one.

    ``ids`` are the items that the filter lets through, in order, and ``place`` is the one on screen; ``chosen`` are the
    selected items, in the order of the benchmark in ``file``.
    """

    cases: Cases
    file: Path | None = None
    wanted: Filter = field(default_factory=Filter)
    sort: str = "suspicion"
    only_chosen: bool = False
    chosen: set[str] = field(default_factory=set)
    ids: list[str] = field(default_factory=list)
    place: int = 0

    @property
    def item(self) -> str:
        """Id of the item on screen; ``""`` where no item is let through."""
        return self.ids[self.place] if self.ids else ""

    @property
    def case(self) -> Case | None:
        return self.cases.case(self.item) if self.ids else None

    @property
    def note(self) -> str:
        """The item on screen in Markdown."""
        return note(self.case, self.cases.audit.benchmark) if self.ids else ""

    def change(self, *, sort: str | None = None, only_chosen: bool | None = None, **wanted: str) -> None:
        """Filter or sort anew; the item on screen stays if it is still there.

        Raises
        ------
        AuditError
            No such filter or order.
        """
        unknown = sorted(set(wanted) - set(Filter.__dataclass_fields__))
        if unknown:
            raise AuditError(f"no filter {unknown[0]!r}", mend=f"filters: {', '.join(Filter.__dataclass_fields__)}")
        given, sort = replace(self.wanted, **wanted), sort or self.sort
        chosen = self.only_chosen if only_chosen is None else only_chosen
        ids, before = select(self.cases, given, sort, among=self.chosen if chosen else None), self.item
        self.wanted, self.sort, self.only_chosen, self.ids = given, sort, chosen, ids
        self.place = ids.index(before) if before in ids else 0

    def move(self, step: int) -> None:
        """Show another item; the ends are not passed."""
        self.place = max(0, min(self.place + step, len(self.ids) - 1))

    def go(self, item: str) -> None:
        """Show one item, whatever the filter: where it does not let the item through, it is taken away.

        Raises
        ------
        AuditError
            The pool has no such item.
        """
        self.cases.case(item, neighbours=False)
        if item not in self.ids:
            self.wanted, self.only_chosen = Filter(severity=""), False
            self.change()
        self.place = self.ids.index(item)

    def toggle(self) -> None:
        """Take the item on screen into the selection or out of it, and save the selection.

        Raises
        ------
        AuditError
            The file could not be written; the selection is then as it was.
        """
        if not self.ids:
            return
        chosen = self.chosen ^ {self.item}
        if self.file is not None:
            try:
                with atomic(self.file) as file:
                    guard_csv(self._table(chosen)).to_csv(file, index=False, lineterminator="\n")
            except OSError as e:
                mend = "free space or give yourself the right to write, then select again"
                raise AuditError(f"the selection was not saved ({e.strerror})", file=self.file, mend=mend) from None
        self.chosen = chosen

    @property
    def selection(self) -> pd.DataFrame:
        """The selected items, with the columns of the saved file."""
        return self._table(self.chosen)

    def _table(self, chosen: set[str]) -> pd.DataFrame:
        table = self.cases.table[self.cases.table["item"].isin(chosen)]
        said = self.cases.findings.groupby("item", sort=False)["message"].agg("; ".join)
        out: dict[str, Any] = {c: table[c] for c in ("item", "stratum", "severity", "key")}
        out["reasons"] = said.reindex(table["item"]).fillna("").to_numpy()
        out["question"] = [" ".join(q.split()) for q in table["question"]]
        return pd.DataFrame(out)[list(COLUMNS)].reset_index(drop=True)


def open_session(audit: Any, file: Path | None = None, **wanted: str) -> Session:
    """Begin to look, with the selection that ``file`` holds from before.

    Parameters
    ----------
    file : where the selection is kept, ``RunPaths.selection``; None keeps it in memory only.
    wanted : fields of :class:`~auditlib.browse.filters.Filter`.

    Raises
    ------
    AuditError
        The saved selection is damaged or of another pool; no such filter.
    """
    session = Session(Cases(audit), file)
    if file is not None and file.exists():
        session.chosen = _read(file, set(session.cases.table["item"]))
    session.change(**wanted)
    return session


def _read(file: Path, known: set[str]) -> set[str]:
    mend = "move the file away, or correct it"
    try:
        table = pd.read_csv(file, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as e:
        raise AuditError(f"the saved selection cannot be read ({type(e).__name__})", file=file, mend=mend) from None
    if "item" not in table:
        raise AuditError("the saved selection has no column 'item'", file=file, row=1, mend=mend)
    chosen = [csv_unguard(i) for i in table["item"]]
    for row, item in enumerate(chosen, 2):
        if item not in known:
            raise AuditError(f"the saved selection names item {item!r}, which this pool does not have", file=file,
                             row=row, mend=mend)  # fmt: skip
    return set(chosen)
