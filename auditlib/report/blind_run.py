"""How a pool without a blind run gets one, and what that will take."""

from __future__ import annotations

from typing import Any

import pandas as pd

from auditlib.inference.plan import guessed_tokens
from auditlib.numerals import count
from auditlib.report.blocks import Run, b, code


def blind_run(audit: Any, command: str) -> list[Run]:
    """The step that asks for the blind run: by the toolkit, or by an ``inference`` block, with its forecast."""
    calls, tokens = forecast(audit.items, len(audit.models))
    known = f", about {count(tokens)} tokens of text in and a short reply each" if tokens else ""
    return [
        b("Make the blind run. "),
        "With the toolkit (images removed, text unchanged), its files beside the full runs as ",
        code("MODEL_blind"),
        "; or by an ",
        code("inference"),
        " block in the params that names the models and their ",
        code("base_url"),
        ", which needs the questions as ",
        code("data.dataset"),
        " and starts with a forecast of the price. Then ",
        code(command),
        f". It takes {count(calls)} calls (items x models){known}.",
    ]


def forecast(items: pd.DataFrame, models: int) -> tuple[int, int]:
    """Calls and prompt tokens of a blind run, guessed from the length of questions and options; 0 tokens if unknown."""
    question = items["question"].fillna("").astype(str) if "question" in items else pd.Series("", index=items.index)
    options = items["options"] if "options" in items else pd.Series([None] * len(items), index=items.index)
    lengths = question.str.len() + options.map(lambda o: sum(len(str(x)) for x in o) if o is not None else 0)
    if not lengths.sum():
        return len(items) * models, 0
    return len(items) * models, models * sum(guessed_tokens(int(n)) for n in lengths)
