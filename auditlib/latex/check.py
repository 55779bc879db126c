"""The numbers that a paper uses: those that no pool has, and those that have changed since they were written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from auditlib.errors import AuditError
from auditlib.latex.names import PREFIX

COLUMNS = ("file", "line", "name", "what")
#: commands that begin like our macros and hold no number
OURS = ("auditset", "auditnum", "auditroot")
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)%.*")
_USED = re.compile(r"\\auditnum\s*\{([^{}]*)\}|\\(" + PREFIX + r"[A-Za-z]+)")
_SET = re.compile(r"\\auditset\{([^{}]*)\}\{(.*)\}%")
_SHORT = re.compile(r"\\newcommand\{\\(" + PREFIX + r"[A-Za-z]+)\}\{\\auditnum\{([^{}]*)\}\}")
_INPUT = re.compile(r"\\(?:input|include)\s*\{([^{}]*)\}")


def check(paper: Path, files: Sequence[str | Path], *, outputs: Path) -> pd.DataFrame:
    """Compare the numbers that a paper uses with those that its pools have now.

    Parameters
    ----------
    paper : main file; files that it inputs by a path relative to its folder are read too, ``\\auditroot`` as ``latex``.
    files : params files of the pools.

    Returns
    -------
    frame : one row per use to mend: file, line, name, what (unknown, or what it was and is now).

    Raises
    ------
    AuditError
        The paper cannot be read, or a pool has not been audited.
    """
    values, short = _now(files, outputs)
    written, rows, uses = {}, [], []
    for name, text in _read(paper):
        written |= dict(_SET.findall(text))
        if "\\auditset{" in text or name.endswith(("/audit.tex", "/numbers.tex")):
            continue  # our own file: what it holds is compared, not used
        uses += [(name, number, key, macro) for number, line in enumerate(text.splitlines(), 1)
                 for key, macro in _USED.findall(_COMMENT.sub(r"\1", line))]  # fmt: skip
    for name, number, key, macro in uses:
        if macro in OURS:
            continue
        shown = f"\\{macro}" if macro else key
        key = short.get(macro, "") if macro else key
        if key not in values:
            rows.append((name, number, shown, "no pool has this number"))
        elif key in written and written[key] != values[key]:
            rows.append((name, number, shown, f"was {written[key]}, is {values[key]}: write the numbers again"))
    return pd.DataFrame(rows, columns=list(COLUMNS))


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


def _read(paper: Path) -> Iterator[tuple[str, str]]:
    """Name and text of a file and of those that it inputs, each once."""
    folder, todo, seen = paper.parent, [paper], set()
    while todo:
        file = todo.pop(0)
        if file in seen:
            continue
        seen.add(file)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as e:
            raise AuditError(
                f"cannot be read ({type(e).__name__})", file=file, mend="name a LaTeX file in UTF-8"
            ) from None
        yield file.relative_to(folder).as_posix() if file.is_relative_to(folder) else file.name, text
        plain = "\n".join(_COMMENT.sub(r"\1", line) for line in text.splitlines())
        for name in _INPUT.findall(plain):
            target = folder / name.replace("\\auditroot", "latex")
            target = target if target.suffix == ".tex" else target.with_name(target.name + ".tex")
            if target.is_file():
                todo.append(target)
