"""The frame of judge calls: one row per question put to a judge, whatever it was asked to do.

A call is ``instance x dimension x paradigm x style x order x repeat``. Four paradigms share the frame: ``single`` and
``reference`` give a score to one candidate, ``pairwise`` picks one of two, ``best_of_n`` one of any number. What was
shown, and in which slots, is always kept, so that a decision can be read as a slot and as a candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from auditlib import frames
from auditlib.errors import AuditError

PARADIGMS = ("single", "pairwise", "reference", "best_of_n")
#: of a perturbation: it should lower the score, or leave it
EFFECTS = ("degrade", "neutral")
#: what the judge saw of the image; ``none`` where the task has no image, ``""`` where nothing is known
IMAGES = ("shown", "withheld", "swapped", "none")
#: what became of a call. ``chosen``: a slot was named; ``scored``: a score was given; ``tie``: the judge declared one;
#: ``tie_failure``: a tie was written down because something failed; ``unparsed``: a reply without a decision;
#: ``sentinel``: a number that stands for no score (-1); ``no_reply``: empty, cut, filtered or failed
STATES = ("chosen", "scored", "tie", "tie_failure", "unparsed", "sentinel", "no_reply")
#: states that are a judgement
ANSWERED = ("chosen", "scored", "tie")

#: column -> what it holds, in the order of the frame
COLUMNS: dict[str, str] = {
    "judge": "name of the judge",
    "instance": "what the decision is about: a prompt, a comparison, a perturbed answer; text",
    "cluster": "image or prompt that instances share, resampled together; the instance itself where unknown",
    "comparison": "group of instances that are reported together (a pair of models, a source set), or empty",
    "dimension": "what was perturbed, or empty",
    "effect": "degrade, neutral, or empty",
    "severity": "1 to 3; missing where unknown",
    "paradigm": "single, pairwise, reference or best_of_n",
    "style": "name of the prompt's style, or empty",
    "image": "shown, withheld, swapped, none, or empty",
    "order": "name of the order of the slots; equal names within an instance are the same order",
    "shown": "candidates in the order of the slots, a tuple of names; one name for a score",
    "repeat": "0.. within the same order",
    "state": "what became of the call",
    "slot": "slot that was chosen, from 0; -1 for none",
    "choice": "candidate that was chosen, or empty",
    "score": "score that was given; missing for none",
    "raw": "what the judge said, or the file's cell",
    "tokens_in": "tokens of the prompt; missing where unknown",
    "tokens_out": "tokens of the reply; missing where unknown",
    "run": "file or run it came from",
    "row": "row of the file, the header being row 1; 0 for none",
}
#: columns that name what is decided
UNIT = ("comparison", "instance")
#: columns that name a call: two rows alike in all of them are the same call twice
IDENTITY = (
    "judge", *UNIT, "dimension", "effect", "severity", "paradigm", "style", "image", "shown", "repeat",
)  # fmt: skip
_TEXT = (
    "judge", "instance", "cluster", "comparison", "dimension", "effect", "paradigm", "style", "image", "order",
    "state", "choice", "raw", "run",
)  # fmt: skip
_FLOAT = ("severity", "score", "tokens_in", "tokens_out")
_WHOLE = {"repeat": 0, "slot": -1, "row": 0}


@dataclass(frozen=True)
class Calls:
    """Judge calls and what was left out of them.

    Attributes
    ----------
    table : columns of :data:`COLUMNS`, further columns after. coverage : rows of the coverage contract.
    inputs : files that were read.
    """

    table: pd.DataFrame
    coverage: pd.DataFrame = field(default_factory=lambda: frames.frame("coverage"))
    inputs: tuple[Path, ...] = ()

    @property
    def judges(self) -> list[str]:
        """Judges in the order of their first call."""
        return list(dict.fromkeys(self.table["judge"]))

    def of(self, judge: str) -> pd.DataFrame:
        """The calls of one judge."""
        return self.table[self.table["judge"].eq(judge)].reset_index(drop=True)


def calls_frame(rows: Iterable[Mapping[str, Any]] | pd.DataFrame) -> pd.DataFrame:
    """Build a frame of calls: missing columns filled with "unknown", types set, contradictions within a row refused.

    Parameters
    ----------
    rows : ``judge``, ``instance``, ``paradigm``, ``shown`` and ``state`` are needed. ``choice`` follows from ``slot``
        and the other way round; ``order`` is the sequence shown and ``cluster`` the instance, where not given.

    Raises
    ------
    AuditError
        A needed column is missing; an unknown paradigm, state, effect or image; a slot outside those shown; a choice
        that was not shown; a candidate shown twice; a chosen call without a slot; a scored one without a score.
    """
    table = rows.copy() if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
    if not len(table):
        table = pd.DataFrame(columns=list(COLUMNS))
    for needed in ("judge", "instance", "paradigm", "shown", "state"):
        if needed not in table:
            raise AuditError(f"judge calls lack {needed!r}", mend="give it for each call")
    table = table.reset_index(drop=True)
    table["shown"] = pd.Series([tuple(str(c) for c in s) for s in table["shown"]], index=table.index, dtype=object)
    for name in _TEXT:
        column = table[name].astype(object) if name in table else pd.Series("", index=table.index, dtype=object)
        table[name] = column.where(column.notna(), "").astype(str)
    for name in _FLOAT:
        table[name] = pd.to_numeric(table[name], errors="coerce").astype(float) if name in table else np.nan
    for name, empty in _WHOLE.items():
        column = table[name] if name in table else pd.Series(empty, index=table.index)
        table[name] = pd.to_numeric(column).fillna(empty).astype(np.int64)
    table["cluster"] = table["cluster"].where(table["cluster"].ne(""), table["instance"])
    table["order"] = table["order"].where(table["order"].ne(""), table["shown"].map(" | ".join))
    table = _both_ways(table)
    _check(table)
    return table[[*COLUMNS, *(c for c in table.columns if c not in COLUMNS)]]


def _both_ways(table: pd.DataFrame) -> pd.DataFrame:
    """Slot from choice and choice from slot."""
    slots, choices = table["slot"].to_numpy().copy(), table["choice"].to_numpy(dtype=object).copy()
    for i, shown in enumerate(table["shown"]):
        if slots[i] < 0 and choices[i]:
            if choices[i] not in shown:
                raise _wrong(table, i, f"chooses {choices[i]!r}, which was not shown")
            slots[i] = shown.index(choices[i])
        elif 0 <= slots[i] < len(shown):
            if choices[i] and choices[i] != shown[slots[i]]:
                raise _wrong(table, i, f"slot {slots[i] + 1} showed {shown[slots[i]]!r}, not {choices[i]!r}")
            choices[i] = shown[slots[i]]
    table["slot"], table["choice"] = slots, pd.Series(choices, index=table.index).astype(str)
    return table


def _check(table: pd.DataFrame) -> None:
    shown = table["shown"].map(len).to_numpy(int) if len(table) else np.zeros(0, int)
    state, slot = table["state"], table["slot"].to_numpy()
    score = table["score"].notna().to_numpy()
    chosen, scored = state.eq("chosen").to_numpy(), state.eq("scored").to_numpy()
    twice = np.array([len(set(s)) < len(s) for s in table["shown"]], bool)
    known = (("paradigm", PARADIGMS), ("state", STATES), ("effect", ("", *EFFECTS)), ("image", ("", *IMAGES)))
    wrong: list[tuple[np.ndarray, str]] = [
        (
            ~table[name].isin(words).to_numpy(),
            f"has an unknown {name}, expected one of {', '.join(filter(None, words))}",
        )
        for name, words in known
    ]
    one = table["paradigm"].isin(("single", "reference")).to_numpy()
    wrong += [
        (shown == 0, "shows no candidate"),
        (one & (shown != 1), "scores more than one candidate"),
        (table["paradigm"].eq("pairwise").to_numpy() & (shown != 2), "is pairwise and does not show two candidates"),
        (twice, "shows one candidate in two slots"),
        (slot >= shown, "chooses a slot that was not shown"),
        (chosen & (slot < 0), "is 'chosen' without a slot"),
        (~chosen & (slot >= 0), "names a slot without being 'chosen'"),
        (scored & ~score, "is 'scored' without a score"),
        (~scored & score, "has a score without being 'scored'"),
        (table["repeat"].to_numpy() < 0, "has a negative repeat"),
    ]
    for at, why in wrong:
        if at.any():
            raise _wrong(table, int(np.flatnonzero(at)[0]), why)


def _wrong(table: pd.DataFrame, i: int, why: str) -> AuditError:
    run, row = table["run"].iloc[i], int(table["row"].iloc[i])
    what = f"a call of judge {table['judge'].iloc[i]!r} on {table['instance'].iloc[i]!r} {why}"
    return AuditError(what, file=run or None, row=row or None, mend="correct this call")


def settle(table: pd.DataFrame) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """One row per call: equal copies once, contradictory ones not at all.

    Returns
    -------
    frame, coverage rows
        Rows alike in :data:`IDENTITY` and in what the judge decided are one call (``duplicate``). Rows alike in
        :data:`IDENTITY` that decide differently contradict each other: none of them counts (``conflict``), since
        nothing tells which one holds.
    """
    keys = list(IDENTITY)
    said = pd.Series(list(zip(table["state"], table["slot"], table["score"].fillna(np.inf))), index=table.index)
    group = table.groupby(keys, sort=False, dropna=False).ngroup()
    kinds = pd.DataFrame({"g": group, "s": said}).drop_duplicates()["g"].value_counts()
    split = group.isin(kinds.index[kinds.to_numpy() > 1])
    copy = ~split & group.duplicated()
    coverage = []
    for judge in dict.fromkeys(table["judge"]):
        mine = table["judge"].eq(judge)
        if n := int((mine & copy).sum()):
            coverage.append(
                frames.coverage_row("duplicate", n=n, model=judge, reason="the same call again: counted once")
            )
        if n := int((mine & split).sum()):
            calls = int(group[mine & split].nunique())
            reason = (
                f"rows of {calls} calls that contradict each other (no repeat number tells them apart): not counted"
            )
            coverage.append(frames.coverage_row("conflict", n=n, model=judge, reason=reason))
    return table[~split & ~copy].reset_index(drop=True), coverage


def answer_states(table: pd.DataFrame, by: Sequence[str] = ("judge",)) -> pd.DataFrame:
    """Calls by what became of them, one row per group: a column for each of :data:`STATES`, ``calls``, ``answered``.

    ``answered`` is the share of calls that hold a judgement; ties that a failure made are not among them.
    """
    groups = table.groupby(list(by), sort=False)["state"]
    counts = groups.value_counts().unstack(fill_value=0).reindex(columns=list(STATES), fill_value=0)
    counts = counts.reindex(list(groups.groups) if len(by) > 1 else list(dict.fromkeys(table[by[0]])))
    counts["calls"] = counts[list(STATES)].sum(axis=1)
    counts["answered"] = counts[list(ANSWERED)].sum(axis=1) / counts["calls"]
    out = counts.rename_axis(index=list(by) if len(by) > 1 else by[0]).reset_index()
    out.columns.name = None
    return out


def stated(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Coverage rows about calls that are there but cannot tell everything.

    Judges that never answer; decisions shown in one order only, from which an effect of the order cannot be told;
    ties from failures; numbers that stand for no score.
    """
    rows = []
    for judge, mine in table.groupby("judge", sort=False):
        if not mine["state"].isin(ANSWERED).any():
            reason = f"no call of {judge} holds a judgement: nothing can be said about it"
            rows.append(frames.coverage_row("warning", n=len(mine), model=str(judge), reason=reason))
            continue
        several = mine[mine["paradigm"].isin(("pairwise", "best_of_n"))]
        same = several["shown"].map(lambda s: tuple(sorted(s))).rename("candidates")
        orders = several.groupby([several[c] for c in UNIT] + [same], sort=False)["shown"].nunique()
        if n := int((orders == 1).sum()):
            whole = ": an effect of the order cannot be told" if n == len(orders) else ": not in the order comparison"
            reason = f"decisions shown in one order only{whole}"
            rows.append(frames.coverage_row("warning", n=n, model=str(judge), reason=reason))
        for state, reason in (
            ("tie_failure", "ties written down because something failed: counted as no answer"),
            ("sentinel", "numbers that stand for no score: counted as no answer"),
            ("unparsed", "replies without a decision: counted as no answer"),
            ("no_reply", "calls without a reply: counted as no answer"),
        ):
            if n := int(mine["state"].eq(state).sum()):
                rows.append(frames.coverage_row("status", n=n, model=str(judge), reason=reason))
    return rows
