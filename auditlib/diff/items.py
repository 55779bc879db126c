"""Items of two versions: which were added, removed or changed, and in what."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from auditlib.integrity.facts import plain

#: facts that are compared, and what a reader calls them
FACTS = {"question": "question", "options": "options", "key": "key", "stratum": "official category",
         "image_key": "picture"}  # fmt: skip
COLUMNS = ("item", "change", "what", "before", "after")


def item_changes(before: pd.DataFrame, after: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Compare two items frames.

    Returns
    -------
    DataFrame
        item, change (added, removed, changed), what (a name of :data:`FACTS`; empty for an item added or removed),
        before, after: one row per item and changed fact, in the order of ``before``, added items last.
    list of str
        Facts that only one side knows, and so are not compared.
    """
    a, b = (t.assign(item=t["item"].astype(str)).drop_duplicates("item").set_index("item") for t in (before, after))
    rows = []
    facts = [f for f in FACTS if f in a and f in b]
    notes = [f"{FACTS[f]}s are known of one side only and not compared" for f in FACTS if (f in a) != (f in b)]
    shared = a.index[a.index.isin(b.index)]
    left, right = a.loc[shared], b.loc[shared]
    changed: dict[str, list[tuple[str, str, str]]] = {}
    for fact in facts:
        for item, x, y in zip(shared, left[fact], right[fact]):
            if (one := text(x)) != (two := text(y)):
                changed.setdefault(item, []).append((FACTS[fact], one, two))
    for item in a.index:
        if item not in b.index:
            rows.append((item, "removed", "", "", ""))
        rows += [(item, "changed", *fact) for fact in changed.get(item, [])]
    rows += [(item, "added", "", "", "") for item in b.index if item not in a.index]
    return pd.DataFrame(rows, columns=list(COLUMNS)), notes


def text(value: Any) -> str:
    """A fact as text; options with their letters."""
    if isinstance(value, list | tuple | np.ndarray):
        from auditlib.frames import option_name

        return "; ".join(f"{option_name(i)}) {plain(t)}" for i, t in enumerate(value))
    return plain(value)
