"""A packet: flagged items, a random sample of the others and blinded probes, dealt to readers."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from auditlib import seeds
from auditlib.calls import Picture
from auditlib.errors import AuditError
from auditlib.frames import option_name
from auditlib.review.assign import assign, row_names
from auditlib.review.task import Task

#: kinds of rows; only the sealed key tells which row is which
FLAGGED, UNFLAGGED, CLEAN, PLANTED = "flagged", "unflagged", "clean", "planted"
KINDS = (FLAGGED, UNFLAGGED, CLEAN, PLANTED)
KEY_COLUMNS = ("row", "item", "view", "kind", "expected", "proposed")

_READER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")


@dataclass(frozen=True)
class SealedKey:
    """Which row is which: ``rows`` with :data:`KEY_COLUMNS`, and how many items each kind stands for."""

    rows: pd.DataFrame
    population: Mapping[str, int]


@dataclass(frozen=True)
class Packet:
    """What readers get.

    Attributes
    ----------
    rows : columns row, view, one text column per field, picture (its SHA-256, or empty).
    assignment : columns row, reader, role, place; see :func:`~auditlib.review.assign.assign`.
    pictures : by SHA-256. key : None while it is sealed.
    """

    pool: str
    task: Task
    readers: tuple[str, ...]
    rows: pd.DataFrame
    assignment: pd.DataFrame
    pictures: Mapping[str, Picture] = field(repr=False)
    key: SealedKey | None = field(default=None, repr=False)

    def of(self, reader: str, thirds: Iterable[str] = ()) -> pd.DataFrame:
        """Rows of one reader in the order shown: the first readings, then those third readings that are due.

        Raises
        ------
        AuditError
            No such reader.
        """
        if reader not in self.readers:
            raise AuditError(f"no reader {reader!r}", mend=f"readers of this packet: {', '.join(self.readers)}")
        mine = self.assignment[self.assignment["reader"].eq(reader)]
        firsts = mine[mine["role"].eq("first")].sort_values("place")["row"].tolist()
        due = set(thirds)
        last = sorted(r for r in mine.loc[mine["role"].eq("third"), "row"] if r in due)
        return self.rows.set_index("row").loc[firsts + last].reset_index()

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all that readers see and of who reads what."""
        content = {"pool": self.pool, "task": self.task.as_plain(), "readers": self.readers,
                   "rows": self.rows.to_dict("list"), "assignment": self.assignment.to_dict("list")}  # fmt: skip
        text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def make_packet(
    task: Task,
    entries: pd.DataFrame,
    *,
    readers: Sequence[str],
    seed: int,
    pool: str = "",
    flagged: Iterable[str] | None = None,
    probes: pd.DataFrame | None = None,
    sample: int = 200,
    proposed: Mapping[str, str] | None = None,
    pictures: Callable[[list[str]], Mapping[str, Picture]] | None = None,
) -> Packet:
    """Choose the rows, give them blind names and deal them to readers.

    Parameters
    ----------
    entries : one row per item of the pool: ``item``, the fields of the task's views (text, or a list of options), and
        ``picture`` (a :class:`~auditlib.calls.Picture` or None).
    flagged : items that all go to readers; None = every item, with no sample.
    probes : columns of ``entries`` plus ``kind`` (clean or planted) and ``expected`` (the label that is right). Their
        items are left out of the sample.
    sample : how many of the items that are neither flagged nor probes are drawn.
    proposed : item -> label that earlier stages proposed; kept in the sealed key, never shown.
    pictures : gives the pictures of the chosen items, where entries do not hold them.

    Returns
    -------
    Packet
        The same for the same arguments; another seed draws, names and deals anew.

    Raises
    ------
    AuditError
        An item twice, a flagged item or a field that entries do not have, a probe that is also flagged, an expected
        label that is none, too few readers or an unfit name.
    """
    task.check()
    _check_entries(entries, task)
    _check_readers(readers)
    known = entries["item"].tolist()
    chosen = list(dict.fromkeys(known if flagged is None else flagged))
    if absent := sorted(set(chosen) - set(known)):
        raise AuditError(f"{len(absent)} flagged items are not among the entries ({', '.join(absent[:5])})",
                         mend="give an entry for every flagged item")  # fmt: skip
    probes = _check_probes(probes, task, set(chosen), entries)
    rest = sorted(set(known) - set(chosen) - set(probes["item"]))
    rng = seeds.generator(seed, pool, "review", task.name)
    drawn = [rest[i] for i in rng.permutation(len(rest))[: max(sample, 0)]]
    at = entries.set_index("item", drop=False)
    parts = [at.loc[items].assign(kind=kind, expected="") for items, kind in ((chosen, FLAGGED), (drawn, UNFLAGGED))]
    filled = [p.reset_index(drop=True) for p in (*parts, probes) if len(p)]
    if not filled:
        raise AuditError("the packet would be empty", mend="flag items, or ask for a sample")
    table = pd.concat(filled, ignore_index=True)
    if pictures is not None:
        found = pictures(table["item"].tolist())
        table["picture"] = [found.get(i) for i in table["item"]]
    rows, key, shown = _rows(task, table, proposed or {}, f"{seed}\x1f{pool}\x1f{task.name}")
    deal = rows.assign(item=key["item"])[["row", "item", "view"]]
    packet = Packet(pool, task, tuple(readers), rows, assign(deal, task, list(readers), rng), shown)
    population = {FLAGGED: len(chosen), UNFLAGGED: len(rest), CLEAN: 0, PLANTED: 0}
    # order by blind name, so that the place in a file tells nothing either
    order = np.argsort(rows["row"].to_numpy(), kind="stable")
    key = key.iloc[order].reset_index(drop=True)
    return replace(packet, rows=rows.iloc[order].reset_index(drop=True), key=SealedKey(key, population))


def field_text(value: Any) -> str:
    """A field as text: a list of options becomes lines ``A. text``, missing values nothing."""
    if isinstance(value, list | tuple | np.ndarray):
        return "\n".join(f"{option_name(i)}. {text}" for i, text in enumerate(value))
    missing = value is None or value is pd.NA or (isinstance(value, float) and value != value)
    return "" if missing else str(value)


def _rows(task: Task, table: pd.DataFrame, proposed: Mapping[str, str], salt: str
          ) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Picture]]:  # fmt: skip
    rows, key, pictures = [], [], {}
    for entry in table.to_dict("records"):
        for view in task.views:
            shown = {f: field_text(entry.get(f)) if f in view.fields else "" for f in task.fields}
            picture = entry.get("picture") if view.picture else None
            digest = picture.sha256 if isinstance(picture, Picture) else ""
            if digest:
                pictures[digest] = picture
            rows.append({"view": view.name, **shown, "picture": digest})
            hint = proposed.get(entry["item"], "") if entry["kind"] == FLAGGED else ""
            key.append({"item": entry["item"], "view": view.name, "kind": entry["kind"], "expected": entry["expected"],
                        "proposed": hint})  # fmt: skip
    names = row_names([f"{k['kind']}\x1f{k['item']}\x1f{k['view']}" for k in key], salt)
    blind, sealed = pd.DataFrame(rows), pd.DataFrame(key)
    blind.insert(0, "row", names)
    sealed.insert(0, "row", names)
    return blind, sealed[list(KEY_COLUMNS)], pictures


def _check_entries(entries: pd.DataFrame, task: Task) -> None:
    wanted = ["item", *task.fields]
    if lacking := [c for c in wanted if c not in entries]:
        raise AuditError(f"entries have no column {lacking[0]!r}", mend=f"columns needed: {', '.join(wanted)}")
    if reserved := [c for c in wanted[1:] if c in ("row", "view", "reader", "label", "note", "saved", "picture")]:
        raise AuditError(f"a field cannot be named {reserved[0]!r}", mend="rename the field")
    twice = entries["item"][entries["item"].duplicated()]
    if len(twice):
        raise AuditError(f"{twice.nunique()} items stand twice among the entries ({twice.iloc[0]})",
                         mend="give one row per item")  # fmt: skip


def _check_readers(readers: Sequence[str]) -> None:
    bad = [r for r in readers if not _READER.fullmatch(r)]
    if bad:
        raise AuditError(f"reader {bad[0]!r} is no name for a file",
                         mend="use letters, digits, dots, hyphens and underscores")  # fmt: skip
    folded = [r.casefold() for r in readers]
    if twice := [r for r in readers if folded.count(r.casefold()) > 1]:
        raise AuditError(f"reader {twice[0]!r} stands twice", mend="give each reader a name, different beyond its case")


def _check_probes(probes: pd.DataFrame | None, task: Task, flagged: set[str], entries: pd.DataFrame) -> pd.DataFrame:
    if probes is None or not len(probes):
        return pd.DataFrame({c: pd.Series(dtype=object) for c in [*entries.columns, "kind", "expected"]})
    if lacking := [c for c in ("item", "kind", "expected") if c not in probes]:
        raise AuditError(f"probes have no column {lacking[0]!r}", mend="give item, kind, expected and the fields")
    for probe in probes.to_dict("records"):
        what = f"probe {probe['item']!r}"
        if probe["kind"] not in (CLEAN, PLANTED):
            raise AuditError(f"{what} is of kind {probe['kind']!r}", mend=f"use {CLEAN} or {PLANTED}")
        if probe["expected"] not in task.values:
            raise AuditError(f"{what} expects label {probe['expected']!r}",
                             mend=f"labels are {', '.join(task.values)}")  # fmt: skip
        if probe["item"] in flagged:
            raise AuditError(f"{what} is also flagged", mend="take probes from items that are not flagged")
    twice = probes["item"][probes["item"].duplicated()]
    if len(twice):
        raise AuditError(f"probe {twice.iloc[0]!r} stands twice", mend="use an item for one probe only")
    return probes.reset_index(drop=True)
