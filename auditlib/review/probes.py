"""Blinded probes: sound items as they are, and sound items damaged on purpose."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from auditlib.errors import AuditError
from auditlib.frames import LETTERS
from auditlib.review.packets import CLEAN, PLANTED


def probe_number(rows: int, share: float) -> int:
    """Probes of each kind that make ``share`` of a packet with ``rows`` other rows, at least one.

    Raises
    ------
    AuditError
        Two such shares leave no room for other rows.
    """
    if not 0 <= share < 0.5:
        raise AuditError(f"probes make {share:g} of the packet, twice", mend="give a share below 0.5")
    return max(math.ceil(rows * share / (1 - 2 * share) - 1e-9), 1) if share else 0


def draw_probes(entries: pd.DataFrame, sound: Iterable[str], number: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw clean and damaged probes from items that are believed to be sound.

    Parameters
    ----------
    entries : item, options (list), key (a letter) and whatever is shown. sound : their items, known or believed sound.
    number : wanted of each kind; with fewer sound items, both kinds get half of them.

    Returns
    -------
    DataFrame
        Columns of ``entries``, kind and expected. A damaged probe names another option as its key: ``key_error``.
        Items without a letter for a key and two different options are damaged by nobody and serve as clean ones.
    """
    at = entries.set_index("item", drop=False)
    pool = sorted(set(sound) & set(at.index))
    pool = [pool[i] for i in rng.permutation(len(pool))]
    fit = [i for i in pool if len(_other_keys(at.loc[i])) > 0]
    damaged = fit[: min(number, (len(pool) + 1) // 2)]
    clean = [i for i in pool if i not in set(damaged)][:number]
    out: list[dict[str, Any]] = [at.loc[i].to_dict() | {"kind": CLEAN, "expected": "no_issue"} for i in clean]
    for item in damaged:
        entry = at.loc[item]
        others = _other_keys(entry)
        key = others[int(rng.integers(len(others)))]
        out.append(entry.to_dict() | {"key": key, "kind": PLANTED, "expected": "key_error"})
    return pd.DataFrame(out, columns=[*entries.columns, "kind", "expected"])


def _other_keys(entry: pd.Series) -> list[str]:
    """Letters of options whose text differs from the key's."""
    options, key = entry.get("options"), entry.get("key")
    if (
        not isinstance(options, list | tuple | np.ndarray)
        or not isinstance(key, str)
        or key not in LETTERS[: len(options)]
    ):
        return []
    mine = str(options[LETTERS.index(key)]).casefold().strip()
    return [LETTERS[i] for i, o in enumerate(options) if str(o).casefold().strip() != mine and i < len(LETTERS)]
