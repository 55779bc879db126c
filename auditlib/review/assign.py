"""Who reads what, in which order, under which number: the same for the same seed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pandas as pd

from auditlib.errors import AuditError
from auditlib.review.task import Task

#: consonants: no digit that a spreadsheet takes for a number, no vowel that would make a word
_LETTERS = "bcdfghjkmnpqrstvwxz"
_LENGTH = 7
ASSIGNMENT = ("row", "reader", "role", "place")


def row_names(keys: Sequence[str], salt: str) -> list[str]:
    """Names of packet rows that say nothing about the item, one per key; all differ.

    A name is ``R-`` and seven letters of a hash, so that rows of another packet are recognised as foreign.
    """
    out: dict[str, str] = {}
    for key in keys:
        turn = 0
        while (name := _name(f"{salt}\x1f{key}\x1f{turn}")) in out:
            turn += 1
        out[name] = key
    return list(out)


def _name(text: str) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")
    letters = []
    for _ in range(_LENGTH):
        number, rest = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[rest])
    return "R-" + "".join(letters)


def assign(rows: pd.DataFrame, task: Task, readers: Sequence[str], rng: np.random.Generator) -> pd.DataFrame:
    """Spread packet rows over readers.

    Parameters
    ----------
    rows : columns row, item, view. readers : names.

    Returns
    -------
    DataFrame
        Columns row, reader, role (``first``, or ``third`` for the reader who decides on a conflict), place (1 is the
        first row that a reader sees; 0 for a third reading, which has no place yet).

    Raises
    ------
    AuditError
        Fewer readers than an item needs.

    Notes
    -----
    Rows are dealt in random order, each to those who have least so far, ties by lot. Nobody gets two views of one item.
    A third reader is drawn for every row beforehand, so that the draw does not depend on the decisions; with two
    readers in all there is none, and conflicts stay open.
    """
    thirds = task.rule == "third_on_conflict"
    needed = sum(v.readers for v in task.views)
    if len(readers) < needed:
        raise AuditError(f"{len(readers)} readers for task {task.name!r}, {needed} are needed",
                         mend="name more readers; nobody reads an item twice")  # fmt: skip
    with_thirds = thirds and len(readers) >= needed + len(task.views)
    load, third_load = np.zeros(len(readers), int), np.zeros(len(readers), int)
    seen: dict[str, set[int]] = {}
    out = []
    dealt = rows.iloc[rng.permutation(len(rows))]
    for row, item, view in zip(dealt["row"], dealt["item"], dealt["view"]):
        taken = seen.setdefault(item, set())
        chosen = _least(load, taken, task.view(view).readers, rng)
        load[chosen] += 1
        taken.update(chosen)
        out += [(row, readers[j], "first") for j in chosen]
        if with_thirds:
            [third] = _least(third_load, taken, 1, rng)
            third_load[third] += 1
            taken.add(third)
            out.append((row, readers[third], "third"))
    table = pd.DataFrame(out, columns=["row", "reader", "role"])
    table["place"] = 0
    for reader in readers:
        mine = np.flatnonzero(table["reader"].eq(reader) & table["role"].eq("first"))
        table.loc[rng.permutation(mine), "place"] = np.arange(1, len(mine) + 1)
    return table


def _least(load: np.ndarray, taken: set[int], n: int, rng: np.random.Generator) -> list[int]:
    """Places of the ``n`` readers with the smallest load among those who have not seen the item."""
    free = np.array([j for j in range(len(load)) if j not in taken])
    return free[np.lexsort((rng.random(len(free)), load[free]))[:n]].tolist()
