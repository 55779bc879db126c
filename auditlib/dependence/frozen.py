"""Item parameters on disk, and the abilities of a model that answers them later."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from auditlib.dependence.newcomer import Newcomer, score_new_subject
from auditlib.dependence.profile import CONDITIONS
from auditlib.dependence.source_files import load_arrays
from auditlib.errors import AuditError
from auditlib.paths import atomic

_COORDINATES = ("base", "visual", "textual", "joint")
COLUMNS = ("item", *(f"a_{c}" for c in _COORDINATES), *(f"b_{c}" for c in _COORDINATES))


def save_frozen(items: pd.DataFrame, path: Path) -> Path:
    """Write the frame ``frozen`` of a study as ``.npz``: arrays item (text), k, a and b of shape (items, 4)."""
    with atomic(path) as target, open(target, "wb") as handle:
        np.savez(handle, item=items["item"].to_numpy(str), k=items["k"].to_numpy(np.int64),
                 a=items[list(COLUMNS[1:5])].to_numpy(float), b=items[list(COLUMNS[5:])].to_numpy(float))  # fmt: skip
    return path


def load_frozen(path: Path) -> pd.DataFrame:
    """Read ``.npz`` of :func:`save_frozen`, or the study's ``frozen.parquet``; columns of :data:`COLUMNS`.

    Raises
    ------
    AuditError
        The file is missing, damaged, or holds something else.
    """
    again = "write it again with save_frozen"
    if path.suffix == ".parquet":
        try:
            table = pd.read_parquet(path)
        except FileNotFoundError:
            raise AuditError("there is no such file", file=path, mend="run the dependence notebook first") from None
        except (OSError, ValueError) as e:
            raise AuditError(f"not readable as parquet ({type(e).__name__})", file=path, mend=again) from None
    else:
        arrays = load_arrays(path)
        ok = isinstance(arrays, dict) and {"item", "a", "b"} <= set(arrays)
        if not ok or any(arrays[x].shape != (len(arrays["item"]), 4) for x in "ab"):
            raise AuditError("no item parameters: arrays item, a and b are needed", file=path, mend=again)
        table = pd.DataFrame(np.hstack([arrays["a"], arrays["b"]]), columns=list(COLUMNS[1:]))
        table.insert(0, "item", arrays["item"].astype(str))
    lacking = [c for c in COLUMNS if c not in table]
    if lacking or not np.isfinite(table[list(COLUMNS[1:])].to_numpy(float)).all():
        raise AuditError(f"no item parameters ({lacking[0] if lacking else 'a value is no number'})", file=path,
                         mend=again)  # fmt: skip
    return table.assign(item=table["item"].astype(str))


def score_model(answers: pd.DataFrame, items: pd.DataFrame) -> Newcomer:
    """Abilities of a new model from its answers, items frozen.

    Parameters
    ----------
    answers : one row per answer: item, condition, hit (0..1, empty where there is none).
    items : of :func:`load_frozen`.

    Raises
    ------
    AuditError
        A column is lacking, a condition is unknown, a hit is no number of 0..1, no answer is to a known item.
    """
    lacking = [c for c in ("item", "condition", "hit") if c not in answers]
    if lacking:
        raise AuditError(f"the answers have no column {lacking[0]!r}", mend="give item, condition, hit")
    strange = sorted(set(answers["condition"].astype(str)) - set(CONDITIONS))
    if strange:
        raise AuditError(f"unknown condition {strange[0]!r}", mend=f"use {', '.join(CONDITIONS)}")
    value = pd.to_numeric(answers["hit"], errors="coerce").to_numpy(float, na_value=np.nan)
    bad = (np.isnan(value) & answers["hit"].notna().to_numpy()) | (value < 0) | (value > 1)
    if bad.any():
        raise AuditError("hit is no number of 0..1", row=int(bad.argmax()) + 2, mend="give 0, 1 or nothing")
    at = pd.Index(items["item"]).get_indexer(answers["item"].astype(str))
    c = pd.Categorical(answers["condition"], categories=list(CONDITIONS)).codes
    use = (at >= 0) & ~np.isnan(value)
    if not use.any():
        raise AuditError("no answer is to an item whose parameters are known", mend="give the ids of the frozen items")
    hits, trials = np.zeros((len(items), 4)), np.zeros((len(items), 4))
    np.add.at(hits, (at[use], c[use]), value[use])
    np.add.at(trials, (at[use], c[use]), 1)
    return score_new_subject(hits, items[list(COLUMNS[1:5])].to_numpy(float), items[list(COLUMNS[5:])].to_numpy(float),
                             trials=trials)  # fmt: skip
