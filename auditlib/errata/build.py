"""From an audit, its review and other people's lists to one errata table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from auditlib.errata.benchmark import Benchmark, benchmark_of, refuse_stale
from auditlib.errata.candidates import candidates, votes
from auditlib.errata.imports import read_list
from auditlib.errata.people import review_reports
from auditlib.errata.reports import Report, merge
from auditlib.errata.table import COLUMNS, Errata
from auditlib.errors import AuditError
from auditlib.escape import visible

if TYPE_CHECKING:
    from auditlib.auditing import Audit


@dataclass(frozen=True)
class Built:
    """A table, and sentences about what was read, left out or is missing."""

    errata: Errata
    notes: tuple[str, ...]


def build_errata(
    audit: Audit,
    *,
    packet: Path | None = None,
    decisions: Sequence[Path] = (),
    lists: Sequence[Path] = (),
    columns: Mapping[str, str] | None = None,
) -> Built:
    """Gather all reports on a benchmark's items.

    Parameters
    ----------
    audit : its flagged findings are candidates; its dataset file, where the params name one, gives the keys.
    packet, decisions : folder of a review's packet and its readers' files.
    lists : errata lists of others; columns : our column -> theirs, for all lists.

    Raises
    ------
    AuditError
        A file does not fit, or a report was made on another key than the dataset's (``stale``).
    """
    benchmark = benchmark_of(audit)
    keys = dict(zip(audit.items["item"].astype(str), _text(audit.items, "key")))
    found, left = candidates(audit, keys)
    refuse_stale(found, benchmark)
    notes = [f"{n} flagged findings of {d} give no reason against an item: left out" for d, n in sorted(left.items())]
    if decisions:
        if packet is None:
            raise AuditError("decisions need the packet that they answer", file=decisions[0],
                             mend="name the folder of the packet")  # fmt: skip
        read = review_reports(packet, decisions, benchmark, audit.pool_name)
        refuse_stale(read, benchmark, file=packet)
        found += read
    for path in lists:
        imported = read_list(path, benchmark, columns)
        found += imported.reports
        notes += [f"{path.name}: {n}" for n in imported.notes]
    errata = _table(audit, benchmark, found)
    keyless = errata.rows[errata.rows["status"].eq("confirmed") & errata.rows["reason"].isin(["wrong_key"])]
    if n := int(keyless["proposed_key"].eq("").sum()):
        notes.append(f"{n} confirmed wrong keys have no proposed key: readers name it in a note as 'key: C', a list in "
                     "its column, or write it into the table")  # fmt: skip
    return Built(errata, tuple(notes))


def _table(audit: Audit, benchmark: Benchmark, reports: Sequence[Report]) -> Errata:
    rows = merge(reports)
    said = votes(audit)
    place = {str(i): n for n, i in enumerate(audit.items["item"])}
    out = []
    for (item, _), row in sorted(rows.items(), key=lambda r: place[r[0][0]]):
        key = benchmark.keys[item]
        tally, by_model = said.get(item, ("", ""))
        proposed = row["proposed_key"] if row["proposed_key"] != key else ""
        out.append(row | {"benchmark": benchmark.name, "dataset_sha256": benchmark.digest, "item": item,
                          "old_key": key, "proposed_key": proposed, "votes": tally, "models": by_model})  # fmt: skip
        for name in ("evidence", "outcome", "sources", "models"):  # one line each, nothing invisible
            out[-1][name] = visible(out[-1][name], newlines=False)
    facts = {"benchmark": benchmark.name, "pool": audit.pool_name, "dataset": benchmark.label,
             "items": len(audit.items), "models": len(audit.models)}  # fmt: skip
    return Errata(pd.DataFrame(out, columns=list(COLUMNS), dtype="str"), facts)


def _text(items: pd.DataFrame, column: str) -> list[str]:
    return ["" if v is None or v != v else str(v) for v in items[column]] if column in items else [""] * len(items)
