"""Reviewers' decisions as reports: what two readers, or a third on conflict, decided about an item."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from auditlib.errata.benchmark import Benchmark
from auditlib.errata.reasons import CANDIDATE, CONFIRMED, DISPUTED, REJECTED, reason_of
from auditlib.errata.reports import UNSPECIFIED, Report
from auditlib.errors import AuditError

if TYPE_CHECKING:
    from auditlib.review.packets import Packet

#: questions that a reader who finds an item in order has answered
_IN_ORDER = ("key", "options", "picture", "scoring")
#: how a reader names the right key in a note: ``key: C``
_NAMED = re.compile(r"\bkey\s*[:=]\s*(?P<key>\([A-Za-z]\)|\"[^\"]+\"|[^\s;,.]+)", re.IGNORECASE)


def review_reports(folder: Path, files: Sequence[Path], benchmark: Benchmark, pool: str) -> list[Report]:
    """Reports of a packet's readers.

    Parameters
    ----------
    folder : of the packet; its sealed key is opened.
    files : the readers' decisions.
    pool : whose items the packet must show.

    Raises
    ------
    AuditError
        There is no packet, it is of another pool, a file of decisions does not fit it, the packet was made on another
        key (``stale``), a note names a key that no option has.

    Notes
    -----
    Readers who confirm a wrong key may name the right one in their note, as ``key: C``. Where they name different ones
    the item is disputed. Probes are left out.
    """
    from auditlib.review.decisions import read_decisions
    from auditlib.review.files import load_packet
    from auditlib.review.outcomes import outcomes

    packet = load_packet(folder, open_key=True)
    if packet.pool not in ("", pool):
        raise AuditError(f"the packet is of pool {packet.pool!r}, not of {pool!r}", file=folder,
                         mend="give the decisions on this pool's packet")  # fmt: skip
    decisions = read_decisions(files, packet)
    found = outcomes(packet, decisions.table)
    found = found[found["kind"].isin(["flagged", "unflagged"]) & found["readings"].gt(0)]
    read = dict(list(decisions.table.groupby("row", sort=False)))
    shown = packet.rows.set_index("row")["key"] if "key" in packet.rows else pd.Series(dtype=object)
    out = []
    for r in found.to_dict("records"):
        reason = _reason(packet, r["view"], r["label"])
        if reason is None:
            continue
        if r["item"] not in benchmark.keys:
            raise AuditError(f"the packet shows item {r['item']!r}, which {benchmark.label} lacks", file=folder,
                             mend="write the packet again")  # fmt: skip
        report = _report(r, reason, read[r["row"]], str(shown.get(r["row"], "")), benchmark)
        out.append(report)
        if report.reason == "scorer_risk" and report.status == CONFIRMED:  # its label says that the key is right
            out.append(replace(report, reason=UNSPECIFIED, status=REJECTED, topics=("key",), lone=False))
    return out


def _reason(packet: Packet, view: str, label: str) -> str | None:
    """The reason that a label stands for; None where the view asks for none of them."""
    if packet.task.name == "dependence":
        return "no_image_needed" if view == "text_only" else None
    return reason_of(label) or UNSPECIFIED


def _report(r: dict, reason: str, readings: pd.DataFrame, shown: str, benchmark: Benchmark) -> Report:
    item = r["item"]
    status = {"confirmed": CONFIRMED, "rejected": REJECTED}.get(r["outcome"], CANDIDATE)
    words = {CONFIRMED: "confirmed", REJECTED: "in order"}.get(status, r["outcome"].replace("_", " "))
    outcome = f"{words}: {r['labels']} of {r['readings']} readings" if r["labels"] else words
    keys = _named(readings, r["label"], item, benchmark) if status == CONFIRMED else {}
    says = "; ".join(dict.fromkeys(n for n in readings["note"] if n and not _NAMED.fullmatch(n)))
    key = next(iter(keys), "")
    if len(keys) > 1:
        status, key = DISPUTED, ""
        says = "; ".join(filter(None, (f"readers name different keys ({', '.join(keys)})", says)))
    if key == benchmark.keys[item]:
        status, key, says = DISPUTED, "", f"readers call the key wrong and name it ({key})"
    topics = _IN_ORDER if status == REJECTED and reason == UNSPECIFIED else ()
    return Report(item, reason, status, "review", True, shown, key, says, outcome=outcome, topics=topics,
                  lone=status in (CONFIRMED, DISPUTED))  # fmt: skip


def _named(readings: pd.DataFrame, label: str, item: str, benchmark: Benchmark) -> dict[str, int]:
    """Keys that the readers of the deciding label name, and how often."""
    out: dict[str, int] = {}
    for said, note, file, line in zip(readings["label"], readings["note"], readings["file"], readings["line"]):
        match = _NAMED.search(note)
        if match is None or (label and said != label):
            continue
        key = benchmark.key_of(item, match["key"].strip('"'))
        if key is None:
            raise AuditError(f"the note names the key {match['key']!r}, which no option of item {item!r} has",
                             file=file, row=line, mend="write an option's letter: key: C")  # fmt: skip
        out[key] = out.get(key, 0) + 1
    return out
