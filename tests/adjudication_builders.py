"""Votes of judges for tests."""

from __future__ import annotations

import pandas as pd

from auditlib.curation.votes import votes_frame


def vote(item: str, number: int, judge: str, label: str, **more) -> dict:
    plain = {"reason": "", "source": "f", "shown_order": "", "outcome": "ok", "tokens_in": 1, "tokens_out": 1}
    return {"item": item, "round": number, "judge": judge, "label": label, **plain, **more}


def votes(first: dict[str, list[str]], second: dict[str, list[str]] | None = None) -> pd.DataFrame:
    """Labels of judges a, b, c ... by item."""
    rounds = ((1, first), (2, first if second is None else second))
    return votes_frame(
        vote(item, n, "abcdefgh"[j], label)
        for n, said in rounds
        for item, labels in said.items()
        for j, label in enumerate(labels)
    )
