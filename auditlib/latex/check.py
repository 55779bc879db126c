"""The numbers that a paper uses: those that no pool has, and those that have changed since they were written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from auditlib.latex.names import PREFIX
from auditlib.latex.sources import Line, read_lines

COLUMNS = ("file", "line", "name", "what")
#: commands that begin like our macros and hold no number
OURS = ("auditset", "auditnum", "auditroot")
_USED = re.compile(r"\\auditnum\s*\{([^{}]*)\}|\\(" + PREFIX + r"[A-Za-z]+)")
_SET = re.compile(r"\\auditset\s*\{([^{}#]*)\}\s*\{")
_SHORT = re.compile(r"\\newcommand\{\\(" + PREFIX + r"[A-Za-z]+)\}\{\\auditnum\{([^{}]*)\}\}")


@dataclass(frozen=True)
class Checked:
    """What a check found.

    Attributes
    ----------
    rows : one row per use to mend: file, line, name, what (unknown, or what it was and is now).
    unread : files that the paper inputs and that were not found, as sentences: what they use is not checked.
    """

    rows: pd.DataFrame
    unread: tuple[str, ...]


def check(paper: Path, files: Sequence[str | Path], *, outputs: Path) -> Checked:
    """Compare the numbers that a paper uses with those that its pools have now.

    Parameters
    ----------
    paper : main file; what it inputs by a path relative to its folder or the working directory is read too.
        ``\\auditroot`` is what the paper says, else ``latex``.
    files : params files of the pools.

    Raises
    ------
    AuditError
        The paper cannot be read, or a pool has not been audited.
    """
    values, short = _now(files, outputs)
    lines, absent = read_lines(paper)
    written, uses, defined = _taken_apart(lines)
    rows = [(a.file, a.line, a.said, f"no such file: {a.wanted}; say where the numbers lie, before this line: "
             "\\newcommand{\\auditroot}{FOLDER}") for a in absent if a.root]  # fmt: skip
    known = False
    for line, key, macro in uses:
        if macro in OURS:
            continue
        shown = f"\\{macro}" if macro else key
        key = short.get(macro, defined.get(macro, "")) if macro else key
        if key not in values:
            rows.append((line.file, line.number, shown, "no pool has this number"))
            continue
        known = True
        if key in written and written[key] != values[key]:
            was = f"was {written[key]}, is {values[key]}: write the numbers again"
            rows.append((line.file, line.number, shown, was))
        elif written and key not in written:
            missing = "is not among the numbers that the paper takes in: write the numbers again"
            rows.append((line.file, line.number, shown, missing))
    if known and not written:
        what = "takes in no numbers.tex that is found here, so nothing tells whether the printed numbers are old"
        rows.append((paper.name, 1, "\\input", what))
    unread = tuple(f"{a.file}:{a.line}: {a.said} is not found here, so not checked" for a in absent if not a.root)
    return Checked(pd.DataFrame(rows, columns=list(COLUMNS)), unread)


def _taken_apart(lines: Sequence[Line]) -> tuple[dict[str, str], list[tuple[Line, str, str]], dict[str, str]]:
    """Key -> LaTeX that the paper takes in; uses as line, key, macro; macro -> key that the paper defines."""
    written: dict[str, str] = {}
    defined: dict[str, str] = {}
    uses = []
    for line in lines:
        text, found = _definitions(line.text)
        written |= found
        defined |= dict(_SHORT.findall(text))
        uses += [(line, key, macro) for key, macro in _USED.findall(_SHORT.sub("", text))]
    return written, uses, defined


def _definitions(text: str) -> tuple[str, dict[str, str]]:
    """A line without its ``\\auditset{key}{value}``, and key -> value."""
    found, rest, at = {}, "", 0
    while m := _SET.search(text, at):
        end = _closed(text, m.end())
        found[m.group(1)] = text[m.end() : end]
        rest += text[at : m.start()]
        at = end + 1
    return rest + text[at:], found


def _closed(text: str, start: int) -> int:
    """Where the brace closes that was opened before ``start``; the line's end where it does not."""
    depth = 1
    for m in re.compile(r"\\.|[{}]").finditer(text, start):
        depth += {"{": 1, "}": -1}.get(m.group(), 0)
        if depth == 0:
            return m.start()
    return len(text)


def _now(files: Sequence[str | Path], outputs: Path) -> tuple[dict[str, str], dict[str, str]]:
    from auditlib.latex.names import macro
    from auditlib.latex.numbers import all_numbers, short_names
    from auditlib.outputs import load_audit
    from auditlib.params import load_params
    from auditlib.paths import RunPaths

    values: dict[str, str] = {}
    short: dict[str, str] = {}
    for file in files:
        pool = load_params(file).pool
        audit = load_audit(RunPaths(outputs, pool))
        numbers = all_numbers(audit, pool)
        values |= {n.key: n.tex for n in numbers}
        short |= {macro(pool, name): key for name, key in short_names(audit, pool, numbers).items()}
    return values, short
