"""One reader at work: which row is shown, what was decided, undo; every decision is on disk before the next row."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from auditlib.errors import AuditError
from auditlib.escape import csv_cell
from auditlib.paths import atomic
from auditlib.review.decisions import read_decisions
from auditlib.review.files import decisions_file, load_packet
from auditlib.review.outcomes import due_thirds
from auditlib.review.packets import Packet

COLUMNS = ("row", "reader", "label", "note", "saved")


@dataclass(frozen=True)
class Decision:
    """A label (or none yet) and a note; ``saved`` is the UTC time of the last change."""

    label: str = ""
    note: str = ""
    saved: str = ""


@dataclass
class Session:
    """A reader's rows, decisions and place; made by :func:`open_session`."""

    packet: Packet
    reader: str
    rows: pd.DataFrame
    file: Path
    decisions: dict[str, Decision] = field(default_factory=dict)
    place: int = 0
    history: list[tuple[str, Decision | None, int]] = field(default_factory=list)
    stamp: tuple[int, int] | None = None
    notice: str = ""

    @property
    def row(self) -> str:
        return str(self.rows["row"].iloc[self.place])

    @property
    def current(self) -> Decision:
        return self.decisions.get(self.row, Decision())

    @property
    def done(self) -> int:
        """Rows with a label."""
        return sum(bool(self.decisions.get(r, Decision()).label) for r in self.rows["row"])

    def decide(self, value: str) -> None:
        """Label the row shown, save, and show the next one.

        Raises
        ------
        AuditError
            No such label; the file could not be written (the decision is then not taken).
        """
        if value not in self.packet.task.values:
            raise AuditError(f"no label {value!r}", mend=f"labels are {', '.join(self.packet.task.values)}")
        self._change(Decision(value, self.current.note, _now()))
        self.move(1)

    def note(self, text: str) -> None:
        """Keep a note on the row shown; an unchanged one writes nothing."""
        text = " ".join(text.split())
        if text != self.current.note:
            self._change(Decision(self.current.label, text, _now()))

    def move(self, step: int) -> None:
        """Show another row; the ends are not passed."""
        self.place = min(max(self.place + step, 0), len(self.rows) - 1)

    def to_open(self) -> None:
        """Show the first row without a label after this one, from the top when there is none below."""
        n = len(self.rows)
        for step in range(n):
            at = (self.place + step) % n
            if not self.decisions.get(self.rows["row"].iloc[at], Decision()).label:
                self.place = at
                return

    def undo(self) -> bool:
        """Take back the last change and show its row; False where there is none."""
        if not self.history:
            return False
        row, before, place = self.history[-1]
        self._merge()
        self._write(self._with(row, before))
        self.history.pop()
        self.place = place
        return True

    def _change(self, decision: Decision) -> None:
        self._merge()
        row, before = self.row, self.decisions.get(self.row)
        self._write(self._with(row, decision))
        self.history.append((row, before, self.place))

    def _with(self, row: str, decision: Decision | None) -> dict[str, Decision]:
        rest = {r: d for r, d in self.decisions.items() if r != row}
        return rest if decision is None else rest | {row: decision}

    def _merge(self) -> None:
        """Take in what another window of this reader has saved meanwhile."""
        if _stamp(self.file) != self.stamp and self.file.exists():
            self.decisions = _read(self.file, self.packet, self.reader)  # all of one's own are in it

    def _write(self, decisions: dict[str, Decision]) -> None:
        text = io.StringIO()
        out = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
        out.writerow(COLUMNS)
        order = {r: i for i, r in enumerate(self.packet.rows["row"])}
        for row, d in sorted(decisions.items(), key=lambda pair: order[pair[0]]):
            out.writerow([row, self.reader, d.label, csv_cell(d.note), d.saved])
        try:
            with atomic(self.file) as t, open(t, "w", encoding="utf-8", newline="") as handle:
                handle.write(text.getvalue())
                handle.flush()
                os.fsync(handle.fileno())
        except OSError as e:
            mend = "free space or give yourself the right to write, then decide again"
            raise AuditError(f"not saved ({e.strerror})", file=self.file, mend=mend) from None
        self.decisions, self.stamp = decisions, _stamp(self.file)


def open_session(folder: Path, reader: str) -> Session:
    """Begin or go on: reads the packet, this reader's saved decisions, and which third readings are due.

    Raises
    ------
    AuditError
        No packet, no such reader, no rows for this reader, or a saved file that does not fit.
    """
    packet = load_packet(folder)
    packet.of(reader)
    others = [p for r in packet.readers if r != reader and (p := decisions_file(folder, r)).exists()]
    file = decisions_file(folder, reader)
    known, notice = read_decisions([file] if file.exists() else [], packet, reader=reader).table, ""
    try:
        known = pd.concat([known, read_decisions(others, packet).table])
    except AuditError as e:  # another reader's damaged file is no reason to keep this one from working
        notice = f"third readings that are due cannot be told: {e}"
    rows = packet.of(reader, due_thirds(packet, known))
    made = set(known.loc[known["reader"].eq(reader), "row"]) - set(rows["row"])
    if made:  # third readings that were made and have settled their row are still this reader's to see
        rows = packet.of(reader, {*made, *rows["row"]})
    if not len(rows):
        raise AuditError(f"there is nothing to read for {reader!r}", file=folder,
                         mend="third readings appear when two first readers differ")  # fmt: skip
    session = Session(packet, reader, rows, file, notice=notice)
    if file.exists():
        session.decisions, session.stamp = _read(file, packet, reader), _stamp(file)
    session.to_open()
    return session


def _read(file: Path, packet: Packet, reader: str) -> dict[str, Decision]:
    found = read_decisions([file], packet, reader=reader)
    foreign = [r for r in (*found.table["reader"], *found.unlabelled["reader"]) if r != reader]
    if foreign:
        raise AuditError(f"the file holds decisions of {foreign[0]}", file=file, mend="move that file away")
    both = pd.concat([found.table, found.unlabelled])
    return {r: Decision(label, note, saved)
            for r, label, note, saved in zip(both["row"], both["label"], both["note"], both["saved"])}  # fmt: skip


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        facts = file.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_ino


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
