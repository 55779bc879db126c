"""Letters and answers of replies, kept by what they were read from: the texts, the options shown, the chain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from auditlib import parsed
from auditlib.parsed import ParsedCache

_READ = ("letter", "rule", "answer")
_ON = ("item", "prediction", "status", "order")
_SHOWN = ("item", "options", "k", "answer_type")


def extract_kept(
    responses: pd.DataFrame,
    items: pd.DataFrame,
    chain: Sequence[str],
    cache: ParsedCache | None,
    memo: dict | None = None,
) -> pd.DataFrame:
    """:func:`auditlib.extract.extract_frame`, run by run from the cache where nothing that it reads has changed."""
    from auditlib.extract import extract_frame

    if cache is None or "run" not in responses or not len(responses):
        return extract_frame(responses, items, chain, memo=memo)
    shown = parsed.digest(_text(items[c]) for c in _SHOWN if c in items)
    codes = pd.factorize(responses["run"])[0]
    order = np.argsort(codes, kind="stable")
    places = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
    keys, found = [], []
    for at in places:
        part = responses.iloc[at]
        texts = parsed.digest(_text(part[c]) for c in _ON if c in part)
        keys.append(parsed.key_of("letters", {"shown": shown, "chain": list(chain), "replies": texts}))
        kept = parsed.load(cache, keys[-1])
        table = None if kept is None else kept[0]["letters"]
        found.append(table if table is not None and len(table) == len(at) else None)
    lacking = [i for i, table in enumerate(found) if table is None]
    if lacking:
        rows = np.sort(np.concatenate([places[i] for i in lacking]))
        read = extract_frame(responses.iloc[rows], items, chain, memo=memo)[list(_READ)]
        for i in lacking:
            found[i] = read.iloc[np.searchsorted(rows, places[i])].reset_index(drop=True)
            parsed.store(cache, keys[i], {"letters": found[i]}, {})
    back = np.empty(len(responses), np.intp)
    back[np.concatenate(places)] = np.arange(len(responses))
    whole = pd.concat(found, ignore_index=True).iloc[back]
    return responses.assign(**{c: pd.Series(whole[c].array, index=responses.index, dtype="str") for c in _READ})


def _text(column: pd.Series) -> pd.Series:
    """A column as text that tells any two values apart."""
    return column if column.dtype == "str" else pd.Series([repr(v) for v in column.tolist()], dtype="str")
