"""Small pieces of the card's sentences: parts, lists, ranges over pools, and reasons why something is not claimed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from auditlib.report import flags
from auditlib.report.blocks import Run
from auditlib.report.card_sources import Sources, to

#: what a printed number looks like, with its sign and unit
NUMBER = re.compile(r"< 1e−15|[+−]?\d[\d,]*(?:\.\d+)?(?:e−\d+)?(?:%| pp)?|(?<![\w.])\.\d+")


@dataclass(frozen=True)
class Part:
    """One section of the card: a title and short lines of runs."""

    title: str
    lines: list[list[Run]]


def listed(parts: Sequence[Sequence[Run]]) -> list[Run]:
    """Lists of runs, joined by commas and a last "and"."""
    out: list[Run] = []
    for i, part in enumerate(parts):
        out += [", " if 0 < i < len(parts) - 1 else " and " if i else "", *part]
    return [r for r in out if r]


def range_of(src: Sources, ends: tuple[pd.Series, pd.Series] | None, show: Callable[[float], str], quantity: str,
             column: str = "estimate", *, words: str = "; one model left out: ") -> list[Run]:  # fmt: skip
    """``; one model left out: 2.0% to 3.1%``, each end with its source; empty where no model can be left out."""
    if ends is None:
        return []
    low, high = (show(r[column]) for r in ends)
    at = [src.table("headline", quantity=quantity, arm=str(r["arm"] or "")) or src.row(r) for r in ends]
    return [words, to(low, at[0]), *([" to ", to(high, at[1])] if high != low else [])]


def reasons(missing: Iterable[str], src: Sources, most: int = 2) -> list[Run]:
    """Why something is not claimed, without what stands in round brackets (the report has it); numbers with sources."""
    short = [re.sub(r" ?\([^()]*\)", "", m).strip() for m in list(missing)[:most]]
    return linked("; ".join(flags.shortened(m, 150) for m in short), src.printed)


def linked(text: str, known: dict[str, str]) -> list[Run]:
    """A sentence whose numbers lead to their source where ``known`` (printed number -> address) has one."""
    out: list[Run] = []
    at = 0
    for m in NUMBER.finditer(text):
        if (address := known.get(m.group())) is not None:
            out += [text[at : m.start()], to(m.group(), address)]
            at = m.end()
    return [r for r in [*out, text[at:]] if r]
