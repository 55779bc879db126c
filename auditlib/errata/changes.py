"""Which rows of a dataset an errata table changes, and to what: copies and circular variants of an item included."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from auditlib.errata.keys import Keys, concerns_key, keys_of
from auditlib.errata.reasons import CANDIDATE, CONFIRMED, REASONS
from auditlib.errata.table import Errata
from auditlib.errors import AuditError
from auditlib.frames import LETTERS
from auditlib.readers.cells import item_ids, key_text

#: distance between the ids of an item's circular variants
CIRCULAR = 1_000_000


@dataclass(frozen=True)
class Change:
    """One row of the dataset: ``row`` as a spreadsheet counts, its new key, or None where it is dropped, and ``cell``,
    the new key as the row writes it."""

    row: int
    item: str
    old_key: str
    new_key: str | None
    cell: str
    reason: str
    derived_from: str = ""


@dataclass(frozen=True)
class Plan:
    """What a patch does: ``changes`` by position of the row (from 0), and the confirmed rows that it leaves alone."""

    changes: Mapping[int, Change]
    left: tuple[dict[str, str], ...] = ()


def plan_changes(errata: Errata, table: pd.DataFrame, *, source: Path, dataset: Path, drop: bool = False) -> Plan:
    """Decide what becomes of each row of a dataset.

    Parameters
    ----------
    errata : confirmed rows with a proposed key change keys, if their reason concerns the key; with ``drop``, other
        confirmed rows remove items.
    table : one row per row of the dataset: ``row`` (as a spreadsheet counts), ``item`` (as the file has it), ``key``,
        and as far as present ``question``, the option columns ``A``..., ``image`` (short references only) and
        ``g_index``.
    source, dataset : the two files, for messages.

    Raises
    ------
    AuditError
        ``stale``: a row's old key is not the dataset's. An item that the dataset lacks, copies of an item with
        different keys, a proposed key that names no answer of its item, a circular variant in which the options cannot
        be found again, a dropped picture that other items show.
    """
    ids = item_ids(table["item"])
    rows_of: dict[str, list[int]] = defaultdict(list)
    for n, item in enumerate(ids):
        rows_of[item].append(n)
    known = keys_of(table)
    options, keys = known.options, known.keys
    places = errata.places or tuple(range(2, len(errata.rows) + 2))
    group = _groups(ids, table)
    _refuse_divided(errata, places, group, source)
    changes: dict[int, Change] = {}
    left: list[dict[str, str]] = []
    for at, r in zip(places, errata.rows.to_dict("records")):
        item = r["item"] if r["item"] in rows_of else item_ids(pd.Series([r["item"]], dtype="str")).iloc[0]
        if item not in rows_of:
            if r["status"] != CONFIRMED:
                continue
            raise AuditError(f"{dataset.name} has no item {r['item']!r}", file=source, row=at,
                             mend="give the dataset that the table was made for")  # fmt: skip
        _refuse_stale(r, at, keys, rows_of[item], table, source, dataset)
        if r["status"] != CONFIRMED:
            continue
        said, drops = r["proposed_key"], REASONS[r["reason"]].drops
        new = _new_key(said, known, rows_of[item][0], r["item"], source, at) if concerns_key(r["reason"]) else ""
        if (new == "" and not (drop and drops)) or (new and new == keys[rows_of[item][0]]):
            why = (
                f"the proposed key {new} is its key already" if new
                else f"the reason does not concern the key: {said!r} is not taken" if said
                else "no proposed key" if drops else "neither a key nor leaving it out mends it"
            )  # fmt: skip
            left.append({"item": r["item"], "reason": r["reason"], "why": why})
            continue
        for n in (m for member in group.get(item, [item]) for m in rows_of[member]):
            key = None if new == "" else _variant_key(table, keys, rows_of[item][0], n, new, item, source, at)
            cell = "" if key is None else _written(str(table["key"].iloc[n]), keys[n], key, options[n])
            made = Change(int(table["row"].iloc[n]), ids.iloc[n], keys[n], key, cell, r["reason"],
                          "" if ids.iloc[n] == item else item)  # fmt: skip
            changes[n] = _agree(changes.get(n), made, source, at)
    changes, kept = _keep_one(changes, table)
    left += kept
    _refuse_lost_pictures(changes, table, ids, dataset)
    return Plan(dict(sorted(changes.items())), tuple(left))


def _new_key(said: str, known: Keys, n: int, item: str, source: Path, at: int) -> str:
    """The proposed key as row ``n`` gives keys, empty where none is proposed."""
    new = known.named(n, said) if said else ""
    if new is None:
        raise AuditError(f"the proposed key {said[:80]!r} names no answer of item {item!r}", file=source, row=at,
                         mend=f"give {known.known(n)}, or clear the cell")  # fmt: skip
    return new


def _refuse_stale(r: Mapping[str, str], at: int, keys: Sequence[str], rows: Sequence[int], table: pd.DataFrame,
                  source: Path, dataset: Path) -> None:  # fmt: skip
    found = list(dict.fromkeys(keys[n] for n in rows))
    if len(found) > 1 and r["status"] == CONFIRMED and r["proposed_key"]:
        where = ", ".join(str(int(table["row"].iloc[n])) for n in rows[:6])
        raise AuditError(f"item {r['item']!r} stands in {dataset.name} {len(rows)} times with different keys "
                         f"({', '.join(found)}; rows {where})", file=source, row=at,
                         mend="give the copies different ids, or keep the right one")  # fmt: skip
    old = key_text(r["old_key"])
    if old in found or (old == "" and r["status"] != CONFIRMED):
        return
    already = r["proposed_key"] != "" and key_text(r["proposed_key"]) in found
    said = "has the proposed key already" if already else f"has the key {found[0]!r}, the table says {old!r}"
    raise AuditError(
        f"stale: item {r['item']!r} {said} ({dataset.name}, row {int(table['row'].iloc[rows[0]])})",
        file=source,
        row=at,
        mend="give the version of the dataset that the table was made for, or take the row out",
    )


def _written(cell: str, old: str, new: str, options: Sequence[str]) -> str:
    """A key's cell with the new key, in the form of the old one: a letter, a bracketed letter, or an option's text."""
    as_text = key_text(cell) != old and new in LETTERS and LETTERS.index(new) < len(options)
    return with_key(cell, options[LETTERS.index(new)] if as_text else new)


def with_key(cell: str, key: str) -> str:
    """A cell with another key; brackets and spaces round a letter stay.

    Examples
    --------
    >>> with_key("B", "C"), with_key(" (b) ", "C"), with_key("two", "three")
    ('C', ' (c) ', 'three')
    """
    old = key_text(cell)
    inner = cell.strip()
    at = cell.upper().find(old) if len(old) == 1 and old in LETTERS else -1
    if len(key) == 1 and key in LETTERS and at >= 0:
        new = key if cell[at] == old else key.lower()
        return cell[:at] + new + cell[at + 1 :]
    start = cell.find(inner) if inner else 0
    return cell[:start] + key + cell[start + len(inner) :]


def _agree(before: Change | None, now: Change, source: Path, at: int) -> Change:
    """The change of a row that two rows of the table speak of: dropping goes before another key."""
    if before is None or before.new_key == now.new_key:
        return before or now
    if before.new_key is None or now.new_key is None:
        return before if before.new_key is None else now
    raise AuditError(f"item {now.item!r} would get two keys ({before.new_key}, {now.new_key})", file=source, row=at,
                     mend="settle which of them holds")  # fmt: skip


# ------------------------------------------------------------------------------------------------ circular variants


def _groups(ids: pd.Series, table: pd.DataFrame) -> dict[str, list[str]]:
    """Item -> itself and its circular variants (the same question, options turned), where a dataset has any."""
    unique = list(dict.fromkeys(ids))
    if "g_index" in table:
        base = dict(zip(ids, item_ids(table["g_index"])))
    elif all(re.fullmatch(r"\d{1,18}", i) for i in unique) and any(int(i) >= CIRCULAR for i in unique):
        base = {i: str(int(i) % CIRCULAR) for i in unique}
        if not set(base.values()) <= set(unique):
            return {}
    else:
        return {}
    question = dict(zip(ids, table["question"])) if "question" in table else {}
    held: dict[tuple[str, str], list[str]] = defaultdict(list)
    for i in unique:
        held[base[i], question.get(i, "")].append(i)
    return {i: members for members in held.values() if len(members) > 1 for i in members}


def _refuse_divided(errata: Errata, places: Sequence[int], group: Mapping[str, list[str]], source: Path) -> None:
    """Refuse a table that changes an item and leaves a circular variant of it as it is."""
    settled: dict[tuple[str, str], tuple[str, str]] = {}
    for at, r in zip(places, errata.rows.to_dict("records")):
        if r["item"] not in group or r["status"] == CANDIDATE:
            continue
        one = group[r["item"]][0], REASONS[r["reason"]].topic
        item, status = settled.setdefault(one, (r["item"], r["status"]))
        if status != r["status"]:
            raise AuditError(f"item {r['item']!r} is {r['status']}, but item {item!r}, the same question with its "
                             f"options turned, is {status}", file=source, row=at,
                             mend="settle which of them holds")  # fmt: skip


def _variant_key(table: pd.DataFrame, keys: Sequence[str], first: int, n: int, new: str, item: str, source: Path,
                 at: int) -> str:  # fmt: skip
    """The new key as row ``n`` has to write it: the letter under which that row shows the same option text."""
    here, there, name = _options(table, first), _options(table, n), str(table["item"].iloc[n])
    if here == there and keys[n] == keys[first]:
        return new

    def found(letter: str) -> str | None:
        text = here.get(letter)
        places = [a for a, t in there.items() if t == text]
        return places[0] if text and len(places) == 1 and list(here.values()).count(text) == 1 else None

    if len(new) != 1 or new not in LETTERS:
        raise AuditError(f"item {item!r} has the variant {name!r}, and its key is no letter", file=source, row=at,
                         mend="patch the dataset before its options are turned")  # fmt: skip
    old = found(keys[first])
    if old is None or old != keys[n] or (turned := found(new)) is None:
        raise AuditError(f"item {name!r} is a circular variant of {item!r}, but its options or its key are not those "
                         "of that item turned", file=source, row=at,
                         mend="patch the dataset before its options are turned")  # fmt: skip
    return turned


def _options(table: pd.DataFrame, n: int) -> dict[str, str]:
    """Letter -> text of a row's options, in the order of the letters."""
    names = [c for c in table.columns if len(c) == 1 and c in LETTERS]
    return {c: t for c in sorted(names) if (t := str(table[c].iloc[n]).strip())}


# ------------------------------------------------------------------------------------------------ dropping


def _keep_one(changes: dict[int, Change], table: pd.DataFrame) -> tuple[dict[int, Change], list[dict[str, str]]]:
    """Of items that are dropped because they stand twice, the first stays."""
    twice = [n for n, c in changes.items() if c.new_key is None and c.reason == "duplicate_item"]
    if not twice:
        return changes, []
    if "question" not in table:
        return {n: c for n, c in changes.items() if n not in twice}, [
            {"item": changes[n].item, "reason": "duplicate_item", "why": "no column 'question' tells its copies"}
            for n in twice
        ]
    gone = {n for n, c in changes.items() if c.new_key is None}
    stays: dict[str, bool] = defaultdict(bool)
    for n, question in enumerate(table["question"]):
        stays[_folded(question)] |= n not in gone
    left = []
    for n in sorted(twice):
        question = _folded(table["question"].iloc[n])
        if not stays[question]:
            stays[question] = True
            left.append({"item": changes[n].item, "reason": "duplicate_item", "why": "kept: the only one that is left"})
            changes = {m: c for m, c in changes.items() if m != n}
    return changes, left


def _folded(text: object) -> str:
    return " ".join(str(text).casefold().split())


def _refuse_lost_pictures(changes: Mapping[int, Change], table: pd.DataFrame, ids: pd.Series, dataset: Path) -> None:
    """Refuse to drop a row whose picture a row that stays refers to."""
    gone = {ids.iloc[n] for n, c in changes.items() if c.new_key is None}
    gone -= {ids.iloc[n] for n in range(len(ids)) if n not in changes or changes[n].new_key is not None}
    if not gone or "image" not in table:
        return
    refers = item_ids(table["image"].astype("str"))
    for n, target in enumerate(refers):
        if target in gone and target != "" and not (n in changes and changes[n].new_key is None):
            raise AuditError(f"item {target!r} cannot be dropped: item {ids.iloc[n]!r} shows its picture", file=dataset,
                             row=int(table["row"].iloc[n]),
                             mend="move the picture to that item first, or drop both")  # fmt: skip
