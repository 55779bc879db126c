"""From readings to one outcome per row: two agree, a third decides on conflict, or the majority of a view's readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd

from auditlib.review.packets import Packet
from auditlib.review.task import CANNOT_TELL, OPEN, Task


def outcomes(packet: Packet, table: pd.DataFrame) -> pd.DataFrame:
    """What became of each row.

    Parameters
    ----------
    table : columns row, reader, label: :attr:`~auditlib.review.decisions.Decisions.table`.

    Returns
    -------
    DataFrame
        Columns row, view, readings (labels used), labels (their count by value), label (the decided one; empty where
        readers agree on the outcome but not on its kind, or on nothing), outcome (confirmed, rejected, cannot_tell,
        open), conflict (first readers differ), due (``first`` or ``third`` reading missing, ``nobody`` where a conflict
        has no third reader, or empty). With an opened key also item, kind, expected, proposed.

    Notes
    -----
    ``third_on_conflict``: two equal labels decide. Otherwise a third reading is due, and two equal labels of three
    decide; three different labels decide only on an outcome that two of them share, and are ``cannot_tell`` if none is.
    ``majority``: a label of more than half of the view's readers decides, then an outcome of more than half; with all
    readings in and neither, the row is ``cannot_tell``.
    """
    said = {(r, who): label for r, who, label in zip(table["row"], table["reader"], table["label"])}
    order: dict[str, dict[str, list[str]]] = {r: {"first": [], "third": []} for r in packet.rows["row"]}
    for row, who, role in zip(packet.assignment["row"], packet.assignment["reader"], packet.assignment["role"]):
        order[row][role].append(who)
    out = []
    for row, view in zip(packet.rows["row"], packet.rows["view"]):
        firsts = [said.get((row, who), "") for who in order[row]["first"]]
        thirds = [said.get((row, who), "") for who in order[row]["third"]]
        given = [label for label in firsts if label]
        conflict = len(set(given)) > 1
        decide = _two_or_third if packet.task.rule == "third_on_conflict" else _majority
        used, label, outcome, due = decide(packet.task, firsts, thirds)
        tally = Counter(used)
        labels = ", ".join(f"{v} {tally[v]}" for v in packet.task.values if tally[v])
        out.append({"row": row, "view": view, "readings": len(used), "labels": labels, "label": label,
                    "outcome": outcome, "conflict": conflict, "due": due})  # fmt: skip
    result = pd.DataFrame(out)
    return result if packet.key is None else result.merge(packet.key.rows.drop(columns="view"), on="row", how="left")


def due_thirds(packet: Packet, table: pd.DataFrame) -> list[str]:
    """Rows whose first readers differ and whose third reading is still to be made."""
    found = outcomes(packet, table)
    return found.loc[found["due"].eq("third"), "row"].tolist()


def by_item(found: pd.DataFrame) -> pd.DataFrame:
    """Outcomes of real items (no probes), one row per item and one column per view; needs an opened key."""
    real = found[found["kind"].isin(["flagged", "unflagged"])]
    return real.pivot(index="item", columns="view", values="outcome").rename_axis(columns=None).reset_index()


def _two_or_third(task: Task, firsts: Sequence[str], thirds: Sequence[str]) -> tuple[list[str], str, str, str]:
    given = [x for x in firsts if x]
    if len(given) < 2:
        return given, "", OPEN, "first"
    if given[0] == given[1]:
        return given, given[0], task.outcome_of[given[0]], ""
    third = [x for x in thirds if x]
    if not third:
        return given, "", OPEN, "third" if thirds else "nobody"
    return (*_vote(task, given + third[:1], 3), "")


def _majority(task: Task, firsts: Sequence[str], thirds: Sequence[str]) -> tuple[list[str], str, str, str]:
    given = [x for x in firsts if x]
    used, label, outcome = _vote(task, given, len(firsts))
    missing = len(given) < len(firsts)
    if missing and not label and outcome == CANNOT_TELL:
        sure = Counter(task.outcome_of[x] for x in given)[CANNOT_TELL] * 2 > len(firsts)
        return (used, label, CANNOT_TELL, "") if sure else (used, "", OPEN, "first")
    return used, label, outcome, ""


def _vote(task: Task, given: list[str], of: int) -> tuple[list[str], str, str]:
    """Labels used, the label and the outcome that more than half of ``of`` readings share."""
    label, n = _top(given)
    if n * 2 > of:
        return given, label, task.outcome_of[label]
    outcome, n = _top([task.outcome_of[x] for x in given])
    return given, "", outcome if n * 2 > of else CANNOT_TELL


def _top(values: Sequence[Any]) -> tuple[Any, int]:
    return Counter(values).most_common(1)[0] if values else ("", 0)
