"""Column contracts of the canonical frames, and the few helpers that build them.

A frame may lack a column where a pool has no such fact; it never holds a column under another name.
Letters are single capitals, ``"Z"`` for an abstention and missing (``pd.NA``/``None``) where there was no reply.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

#: letter codes in arrays: 0..25 = A..Z as option letters, then
ABSTAINED = -1
MISSING = -2
#: the abstention sentinel in frames
ABSTENTION = "Z"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

COLUMNS: dict[str, tuple[str, ...]] = {
    "models": ("model", "family", "provider", "tier", "params_b", "open", "role", "text_base"),
    "items": (
        "item", "question", "options", "key", "k", "answer_type", "stratum", "substratum", "source", "capability",
        "image_key", "cluster", "design", "references",
    ),
    "responses": (
        "run", "row", "item", "model", "condition", "level", "variant", "prompt_mode", "sample", "order", "prediction",
        "status", "refused", "abstained", "letter", "rule", "answer", "score", "finish", "tokens_in", "tokens_out",
    ),
    "judgements": ("run", "item", "model", "condition", "sample", "judge", "hit", "extracted", "source"),
    "findings": ("item", "detector", "arm", "score", "flag", "severity", "evidence", "message"),
    "statistics": (
        "pool", "metric", "arm", "policy", "models", "stratum", "null_kind", "n", "estimate", "low", "high", "null",
        "null_sd", "excess", "excess_low", "excess_high", "p", "p_method", "q", "family", "note",
    ),
    "coverage": ("run", "model", "condition", "what", "n", "item", "reason"),
}  # fmt: skip

STATUSES = ("ok", "failed", "missing", "truncated", "filtered")
CONDITIONS = ("full", "blind", "image_only", "none", "blank", "gray", "wrong_image")
SEVERITIES = ("high", "medium", "low", "info")


def frame(kind: str, rows: Iterable[Mapping[str, Any]] = ()) -> pd.DataFrame:
    """Build a canonical frame of one kind: contract columns first, extra columns after.

    Raises
    ------
    KeyError
        When ``kind`` is not one of :data:`COLUMNS`.
    """
    wanted = list(COLUMNS[kind])
    table = pd.DataFrame(list(rows))
    extra = [c for c in table.columns if c not in wanted]
    return table.reindex(columns=[c for c in wanted if c in table.columns or not len(table)] + extra)


def coverage_row(what: str, *, n: int, reason: str = "", run: str = "", model: str = "", condition: str = "",
                 item: str = "") -> dict[str, Any]:  # fmt: skip
    """One row of the coverage table.

    ``what`` is a short word: ``read``, ``joined``, ``excluded``, ``duplicate``, ``conflict``, ``unreadable``,
    ``not run``, ``warning``, ``missing``, ``status``,
    ``condition``; ``n`` counts rows or items; ``reason`` is a sentence.
    """
    return {"run": run, "model": model, "condition": condition, "what": what, "n": int(n), "item": item,
            "reason": reason}  # fmt: skip


def evidence(**facts: Any) -> str:
    """Evidence of a finding as canonical JSON (sorted keys, plain numbers), so that bytes repeat."""
    return json.dumps(facts, sort_keys=True, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"evidence holds a {type(value).__name__}")


def option_name(place: int) -> str:
    """Letter of an option by its place from 0; ``#27`` and so on beyond the alphabet."""
    return LETTERS[place] if place < len(LETTERS) else f"#{place + 1}"


def letter_codes(letters: pd.Series) -> np.ndarray:
    """Letters to codes: A.. -> 0.., ``Z`` -> ABSTAINED, missing -> MISSING.  Shape (n,), int8."""
    lookup = {c: i for i, c in enumerate(LETTERS[:-1])} | {ABSTENTION: ABSTAINED}
    return letters.map(lookup).fillna(MISSING).astype(np.int8).to_numpy()


def letter_names(codes: np.ndarray) -> list[str]:
    """Codes to letters, the inverse of :func:`letter_codes`; a missing reply is ``""``."""
    return [LETTERS[c] if c >= 0 else (ABSTENTION if c == ABSTAINED else "") for c in codes.tolist()]


@dataclass(frozen=True)
class Runs:
    """What a reader returns: canonical frames before alignment.

    ``items`` has one row per item *and run* (columns of the items contract plus ``run`` and ``row``, the 1-based file
    row), so that runs that disagree about an item can be seen; ``options`` are lists of text in letter order, an empty
    string where a letter has no text. ``responses`` carry text and status, not yet letters. ``inputs`` are the files
    read. ``provenance`` holds what is known about how the runs were made (judge, generation parameters): never keys,
    arguments or logs.
    """

    items: pd.DataFrame
    models: pd.DataFrame
    responses: pd.DataFrame
    judgements: pd.DataFrame = field(default_factory=lambda: frame("judgements"))
    coverage: pd.DataFrame = field(default_factory=lambda: frame("coverage"))
    dataset: pd.DataFrame | None = None
    inputs: tuple[Path, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
