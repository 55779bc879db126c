"""Validity cards of the filters of a study: what each did, what it is bound to, and whether earlier ones still hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from auditlib import seeds
from auditlib.judges.decision_data import NONE, Choices, Prompts, choices_of
from auditlib.judges.slots import balanced_share
from auditlib.judges.validity_card import (
    BINDING,
    SameJudge,
    ValidityCard,
    read_card,
    same_judge,
    why_expired,
    write_card,
)
from auditlib.params.judges import JudgeIdentity

#: numbers of the filter table that a card holds
RESULT = ("coverage", "gain_kept", "gain_dropped", "interaction", "good_lost", "bad_kept")
#: what a card may lack, in words
_WORDS = {"version": "version", "prompt_sha256": "prompt", "generation_sha256": "settings", "date": "date"}


def scheme_of(prompts: Prompts, choices: Choices) -> str:
    """How a judge was asked, in words: ``cyclic, 2 repeats``; ``one order``; ``2 to 4 orders, 1 repeat``."""
    seen = choices.at(choices.state != NONE)
    by = pd.DataFrame({"p": seen.prompt, "o": seen.order}).groupby("p")["o"].nunique()
    repeats = int(seen.repeat.max(initial=0)) + 1
    if not len(by) or by.max() == 1:
        orders = "one order"
    elif balanced_share(prompts, choices) == 1:
        orders = "balanced orders"
    else:
        orders = f"{by.min()} to {by.max()} orders" if by.min() < by.max() else f"{by.max()} orders"
    return f"{orders}, {repeats} repeat{'s' * (repeats > 1)}"


def card_table(
    prompts: Prompts, given: Mapping[str, Choices], filters: pd.DataFrame, identity: Mapping[str, JudgeIdentity]
) -> pd.DataFrame:
    """One card per judge and filter.

    Parameters
    ----------
    filters : of :func:`~auditlib.judges.filters.filter_table`, with ``judge``. identity : judge -> what it was.

    Returns
    -------
    DataFrame
        ``judge, filter, order_scheme, version, prompt_sha256, generation_sha256, date, prompts``, those of
        :data:`RESULT`, ``low, high`` (of ``interaction``, gain kept less gain dropped), ``verdict`` (``helps``,
        ``harms``, ``open``, ``too few`` prompts), ``lacks``: what is not stated, so that nobody sees when it changes.
    """
    rows = []
    for (judge, name), part in filters.groupby(["judge", "filter"], sort=False):
        by = part.set_index("quantity")
        one = identity.get(given[judge].judge, JudgeIdentity())
        ends = by.loc["interaction"]
        verdict = "too few" if ends["note"] else "helps" if ends["low"] > 0 else "harms" if ends["high"] < 0 else "open"
        rows.append({
            "judge": judge, "filter": name, "order_scheme": scheme_of(prompts, given[judge]), "version": one.version,
            "prompt_sha256": one.prompt_sha256, "generation_sha256": one.generation_sha256, "date": one.date,
            "prompts": int(ends["n"]), **{q: float(by.at[q, "estimate"]) for q in RESULT}, "low": float(ends["low"]),
            "high": float(ends["high"]), "verdict": verdict,
            "lacks": ", ".join(word for field, word in _WORDS.items() if not getattr(one, field)),
        })  # fmt: skip
    return pd.DataFrame(rows)


def cards_of(table: pd.DataFrame) -> list[ValidityCard]:
    """The rows of :func:`card_table` as cards."""
    return [
        ValidityCard(r["judge"], r["version"], r["prompt_sha256"], r["order_scheme"], r["filter"], r["date"],
                     int(r["prompts"]), {q: r[q] for q in RESULT if r[q] == r[q]}, r["generation_sha256"])
        for r in table.to_dict("records")
    ]  # fmt: skip


def write_cards(table: pd.DataFrame, folder: str | Path) -> list[Path]:
    """Each card as JSON, named by judge and filter."""
    out = []
    for card in cards_of(table):
        name = re.sub(r"[^\w-]+", "_", f"{card.judge}-{card.filter}").strip("_")
        out.append(write_card(card, Path(folder) / f"{name}.json"))
    return out


def card_checks(
    paths: Sequence[Path], table: pd.DataFrame, same: Mapping[str, SameJudge] | None = None
) -> pd.DataFrame:
    """Earlier cards against what was found now: ``judge, filter, date, was, now, holds, why``.

    Parameters
    ----------
    table : of :func:`card_table`. same : judge -> comparison of its earlier and present choices.

    Raises
    ------
    AuditError
        A file is no card.
    """
    here = {(r["judge"], r["filter"]): r for r in table.to_dict("records")} if len(table) else {}
    rows: list[dict[str, Any]] = []
    for path in paths:
        card = read_card(path)
        now = here.get((card.judge, card.filter))
        was = card.result.get("interaction", float("nan"))
        row = {"judge": card.judge, "filter": card.filter, "date": card.date, "was": was}
        if now is None:
            lost = "this judge and filter were not measured now"
            rows.append(row | {"now": float("nan"), "holds": False, "why": lost})
            continue
        stated = {name: now[name] for name in BINDING if now[name]}
        why = why_expired(card, stated, now["date"] or card.date, (same or {}).get(card.judge))
        rows.append(row | {"now": now["interaction"], "holds": not why, "why": "; ".join(why)})
    return pd.DataFrame(rows)


def compared(
    prompts: Prompts, given: Mapping[str, Choices], earlier: pd.DataFrame, *, seed: int = 0
) -> dict[str, SameJudge]:
    """Each judge's earlier choices against its present ones; judges without earlier calls are left out."""
    out = {}
    for name, choices in given.items():
        old = choices_of(earlier, prompts, choices.judge)
        if len(old.prompt):
            out[name] = same_judge(old, choices, rng=seeds.generator(seed, "judges", "same judge", name))
    return out


def same_table(same: Mapping[str, SameJudge]) -> pd.DataFrame:
    """``judge, pairs, left_out, slots, candidates, changed`` of :func:`compared`."""
    return pd.DataFrame([
        {"judge": n, "pairs": s.pairs, "left_out": s.left_out, "slots": s.slots, "candidates": s.candidates,
         "changed": bool(np.isfinite(s.slots) and s.changed)} for n, s in same.items()
    ])  # fmt: skip
