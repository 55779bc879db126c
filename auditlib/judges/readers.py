"""Saved judge calls: pairwise votes, best-of-n choices, scores, and the people's ratings beside them.

Every reader takes csv, tsv, xlsx, json, jsonl or parquet (csv and json also gzipped), and ``columns`` that name the
file's columns: ``{"prompt": "question_idx", ...}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib import frames
from auditlib.errors import AuditError
from auditlib.judges.calls import Calls, calls_frame, settle, stated
from auditlib.judges.verdicts import check_meanings, pair_verdict, score_value, written_choice
from auditlib.readers import cells, files

_SHARED = ("judge", "cluster", "comparison", "dimension", "effect", "severity", "style", "image", "repeat",
           "tokens_in", "tokens_out")  # fmt: skip
_NUMBERS = ("severity", "tokens_in", "tokens_out")


def read_pairs(
    path: str | Path,
    columns: Mapping[str, str] | None = None,
    *,
    judge: str = "judge",
    verdicts: Mapping[str, str] | None = None,
) -> Calls:
    """Pairwise votes, one row per call.

    Parameters
    ----------
    columns : our name -> the file's. Needed: ``prompt``, ``first`` and ``second`` (candidates in their slots) and
        ``verdict`` (``A``, ``Answer1``, ``tie``, the name of a candidate ...). Optional: ``error`` (anything but
        blank, ``0`` or ``false`` says that the call failed), ``judge``, ``cluster``, ``comparison``, ``dimension``,
        ``effect``, ``severity``, ``style``, ``image``, ``repeat``, ``tokens_in``, ``tokens_out``.
    judge : name of the judge where the file has no such column.
    verdicts : the file's own words -> ``first``, ``second``, ``tie``, ``tie_failure``, ``unparsed`` or ``no_reply``.

    Raises
    ------
    AuditError
        A file that cannot be read, a missing column, an empty prompt, both slots alike, a number that is none.
    """
    check_meanings(verdicts)
    path, table, get = _open(path, columns, ("prompt", "first", "second", "verdict"), ("error", *_SHARED))
    rows = []
    for at, row in zip(table.index, table.to_dict("records")):
        shown = (row[get["first"]].strip(), row[get["second"]].strip())
        if not all(shown) or shown[0] == shown[1]:
            what = "names no candidate in a slot" if not all(shown) else f"shows {shown[0]!r} in both slots"
            raise AuditError(what, file=path, row=at + 2, mend="give two different candidates")
        failed = "error" in get and row[get["error"]].strip().casefold() not in ("", "0", "false", "none", "nan", "no")
        raw = row[get["verdict"]]
        state, slot = pair_verdict(raw, shown, verdicts, failed)
        rows.append({**_facts(row, get, path, at, judge), "paradigm": "pairwise", "shown": shown, "state": state,
                     "slot": slot, "raw": raw})  # fmt: skip
    return _calls(rows, path, "repeat" in get)


def read_choices(path: str | Path, columns: Mapping[str, str] | None = None, *, judge: str = "judge") -> Calls:
    """Best-of-n choices, one row per call.

    Parameters
    ----------
    columns : our name -> the file's. Needed: ``prompt``; ``shown``, the candidates in the order of their slots (a JSON
        list, or names with ``|`` between); and one of ``choice`` (name of a candidate), ``slot`` (its number from 1)
        and ``reply`` (what the judge wrote, ending with ``Choice: <number>``). An empty cell is no reply, ``tie`` a
        declared tie, anything else unparsed. Optional: as for :func:`read_pairs`.
    """
    path, table, get = _open(path, columns, ("prompt", "shown"), ("choice", "slot", "reply", *_SHARED))
    if not {"choice", "slot", "reply"} & set(get):
        raise AuditError("no column says what was chosen", file=path, mend="give 'choice', 'slot' or 'reply'")
    rows = []
    for at, row in zip(table.index, table.to_dict("records")):
        shown = _names(row[get["shown"]], path, at)
        state, slot, raw = _chosen(row, get, shown, path, at)
        rows.append({**_facts(row, get, path, at, judge), "paradigm": "best_of_n", "shown": shown, "state": state,
                     "slot": slot, "raw": raw})  # fmt: skip
    return _calls(rows, path, "repeat" in get)


def read_scores(
    path: str | Path,
    columns: Mapping[str, str] | None = None,
    *,
    judges: Mapping[str, str] | None = None,
    judge: str = "judge",
    paradigm: str = "single",
    sentinels: Sequence[float] = (-1.0,),
    scale: tuple[float, float] | None = None,
) -> Calls:
    """Scores, one row per call, or one column per judge.

    Parameters
    ----------
    columns : our name -> the file's. Needed: ``prompt`` and, without ``judges``, ``score``. Optional: ``candidate``
        (what was scored; the prompt itself by default) and as for :func:`read_pairs`.
    judges : name of a judge -> the file's column of its scores.
    paradigm : ``single`` or ``reference``.
    sentinels : numbers that stand for no score. scale : lowest and highest score.
    """
    needed = ("prompt",) if judges else ("prompt", "score")
    path, table, get = _open(path, columns, needed, ("candidate", *_SHARED))
    where = dict(judges) if judges else {"": get["score"]}
    if lost := [c for c in where.values() if c not in table]:
        raise AuditError(f"there is no column {lost[0]!r}", file=path, row=1,
                         mend=f"columns here: {', '.join(table.columns[:20])}")  # fmt: skip
    rows = []
    for at, row in zip(table.index, table.to_dict("records")):
        facts = _facts(row, get, path, at, judge)
        named = row[get["candidate"]].strip() if "candidate" in get else facts["instance"]
        for name, column in where.items():
            state, score = score_value(row[column], sentinels, scale)
            rows.append({**facts, "judge": name or facts["judge"], "paradigm": paradigm, "shown": (named,),
                         "state": state, "score": score, "raw": row[column]})  # fmt: skip
    return _calls(rows, path, "repeat" in get)


def read_candidates(path: str | Path, columns: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Candidates and what people say of them, one row each.

    Parameters
    ----------
    columns : our name -> the file's. Needed: ``prompt``, ``candidate``, ``rating`` (mean human rating). Optional
        numbers: ``similarity``, ``side`` (a side effect, such as a stereotype rating), ``length``, ``raters``; optional
        texts: ``group``, ``cluster``, ``author`` (what made the candidate).

    Raises
    ------
    AuditError
        A candidate twice for one prompt, a missing or unreadable number; similarity or side effect given for some
        candidates of a prompt only.
    """
    path, table, get = _open(path, columns, ("prompt", "candidate", "rating"),
                             ("similarity", "side", "length", "raters", "group", "cluster", "author"))  # fmt: skip
    out = pd.DataFrame(
        {"prompt": cells.item_ids(table[get["prompt"]]), "candidate": table[get["candidate"]].str.strip()}
    )
    for name in ("rating", "similarity", "side", "length", "raters"):
        if name in get:
            out[name] = _numbers(table[get[name]], path, name, empty=name != "rating")
    for name in ("group", "cluster", "author"):
        if name in get:
            out[name] = table[get[name]].str.strip()
    twice = out.duplicated(["prompt", "candidate"])
    if twice.any():
        at = int(twice.idxmax())
        raise AuditError(f"candidate {out.at[at, 'candidate']!r} of prompt {out.at[at, 'prompt']!r} a second time",
                         file=path, row=at + 2, mend="keep one of the rows")  # fmt: skip
    return out.reset_index(drop=True)


def read_ratings(path: str | Path, columns: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Single people's ratings: ``prompt``, ``candidate``, ``rater``, ``rating``.

    Raises
    ------
    AuditError
        A rater rates a candidate twice; a rating that is no number.
    """
    path, table, get = _open(path, columns, ("prompt", "candidate", "rater", "rating"), ())
    out = pd.DataFrame({"prompt": cells.item_ids(table[get["prompt"]]),
                        "candidate": table[get["candidate"]].str.strip(), "rater": table[get["rater"]].str.strip(),
                        "rating": _numbers(table[get["rating"]], path, "rating", empty=False)})  # fmt: skip
    twice = out.duplicated(["prompt", "candidate", "rater"])
    if twice.any():
        at = int(twice.idxmax())
        raise AuditError(f"rater {out.at[at, 'rater']!r} rates {out.at[at, 'candidate']!r} a second time", file=path,
                         row=at + 2, mend="keep one of the rows")  # fmt: skip
    return out.reset_index(drop=True)


def _open(path: str | Path, columns: Mapping[str, str] | None, needed: Sequence[str], more: Sequence[str]
          ) -> tuple[Path, pd.DataFrame, dict[str, str]]:  # fmt: skip
    """The table as text, and where each of our columns lies in it."""
    path, given = Path(path), dict(columns or {})
    if unknown := sorted(set(given) - {*needed, *more}):
        raise AuditError(f"columns name {unknown[0]!r}, which is not read here", file=path,
                         mend=f"use {', '.join([*needed, *more])}")  # fmt: skip
    table = files.open_table(path)
    get = {name: given.get(name, name) for name in (*needed, *more)}
    for name, column in list(get.items()):
        if column in table:
            continue
        if name in needed or name in given:
            raise AuditError(f"there is no column {column!r}", file=path, row=1,
                             mend=f"name it in 'columns'; columns here: {', '.join(table.columns[:20])}")  # fmt: skip
        del get[name]
    empty = table[get["prompt"]].str.strip() == ""
    if empty.any():
        raise AuditError("no prompt is named", file=path, row=int(empty.idxmax()) + 2, mend="give each row its prompt")
    return path, table, get


def _facts(row: dict[str, str], get: Mapping[str, str], path: Path, at: int, judge: str) -> dict[str, Any]:
    """What all paradigms share."""
    facts: dict[str, Any] = {"instance": row[get["prompt"]].strip(), "run": path.name, "row": at + 2}
    for name in _SHARED:
        if name not in get:
            continue
        text = row[get[name]].strip()
        if name in (*_NUMBERS, "repeat"):
            facts[name] = _number(text, path, at, name) if text else None
            if name == "repeat" and (facts[name] is None or facts[name] < 0 or facts[name] % 1):
                raise AuditError(f"repeat is {text!r}", file=path, row=at + 2, mend="number repeats from 0")
        else:
            facts[name] = text
    facts["judge"] = facts.get("judge") or judge
    return facts


def _calls(rows: list[dict[str, Any]], path: Path, repeats: bool) -> Calls:
    table, lost = settle(calls_frame(rows))
    if not repeats and any(r["what"] == "conflict" for r in lost):
        lost = [r | {"reason": r["reason"] + "; name the column 'repeat' if these are repeats"} for r in lost]
    table["instance"] = cells.item_ids(table["instance"])
    table["cluster"] = cells.item_ids(table["cluster"])
    coverage = [frames.coverage_row("read", n=len(rows), run=path.name, reason="rows"), *lost, *stated(table)]
    return Calls(table, frames.frame("coverage", coverage), (path,))


def _names(text: str, path: Path, at: int) -> tuple[str, ...]:
    try:
        names = cells.option_list(text)
    except ValueError:
        names = [n.strip() for n in text.split("|")]
    names = [n.strip() for n in names]
    if len(names) < 2 or not all(names) or len(set(names)) < len(names):
        raise AuditError(f"the candidates shown are {text!r}", file=path, row=at + 2,
                         mend="give two or more different names, as a JSON list or with | between")  # fmt: skip
    return tuple(names)


def _chosen(row: dict[str, str], get: Mapping[str, str], shown: tuple[str, ...], path: Path, at: int
            ) -> tuple[str, int, str]:  # fmt: skip
    """State, slot and raw text; choice and slot must agree where a row has both."""
    raw = next((row[get[n]] for n in ("reply", "choice", "slot") if n in get and row[get[n]].strip()), "")
    said: dict[str, int] = {}
    for name in ("choice", "slot"):
        text = row[get[name]].strip() if name in get else ""
        if name == "choice" and text in shown:
            said[name] = shown.index(text)
        elif name == "slot" and text.removesuffix(".0").isdigit() and 1 <= int(text.removesuffix(".0")) <= len(shown):
            said[name] = int(text.removesuffix(".0")) - 1
    if len(set(said.values())) > 1:
        raise AuditError(f"slot {said['slot'] + 1} showed {shown[said['slot']]!r}, the choice is "
                         f"{shown[said['choice']]!r}", file=path, row=at + 2, mend="slots count from 1; correct the row"
                         )  # fmt: skip
    if said:
        return "chosen", next(iter(said.values())), raw
    if "reply" in get and row[get["reply"]].strip():
        return (*written_choice(row[get["reply"]], len(shown)), raw)
    if not raw.strip():
        return "no_reply", -1, raw
    return ("tie" if raw.strip().casefold() in ("tie", "tied", "equal") else "unparsed"), -1, raw


def _number(text: str, path: Path, at: int, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if value != value or value in (float("inf"), float("-inf")):
        raise AuditError(f"{name} is {text!r}, no number", file=path, row=at + 2, mend="give a number")
    return value


def _numbers(column: pd.Series, path: Path, name: str, *, empty: bool) -> list[float]:
    """Numbers of a column; an empty cell is missing where that is allowed."""
    return [
        float("nan") if empty and not text.strip() else _number(text.strip(), path, at, name)
        for at, text in zip(column.index, column)
    ]
