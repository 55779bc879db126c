"""Answers as VLMEvalKit's own files: ``MODEL/MODEL_BENCH.xlsx`` and, without picture, ``MODEL_blind/...``."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib.frames import LETTERS, coverage_row
from auditlib.inference.items import QuestionItem
from auditlib.paths import atomic
from auditlib.readers.cells import EXCEL_LIMIT

#: what VLMEvalKit writes where a call gave nothing
FAILED = "Failed to obtain answer via API."
FILTERED = f"{FAILED} (content_filter)"
_ENDINGS = {"full": "", "blind": "_blind"}
_CREATED = datetime(2026, 1, 1)
_UNSAFE = re.compile(r'[\\/:*?"<>|\s]+')
#: control characters that no table holds, and text that looks like their spelling
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]|_(?=x[0-9A-Fa-f]{4}_)")


def write_vlmevalkit(
    responses: pd.DataFrame,
    items: Sequence[QuestionItem],
    folder: str | Path,
    benchmark: str,
    *,
    suffix: str = ".xlsx",
) -> tuple[list[Path], list[dict[str, Any]]]:
    """Write full and blind replies in VLMEvalKit's layout.

    Parameters
    ----------
    responses : responses by :func:`~auditlib.inference.export.collect`, or of own runs.
    items : the questions.
    folder : results folder, made when it is not there.
    benchmark : name in the file names.
    suffix : ``.xlsx`` or ``.tsv``.

    Returns
    -------
    files : paths, full runs first.
    coverage : rows on what is not written: other conditions, repeats beyond the first, other prompt modes; and on what
        was written as tsv because a cell cannot hold it.

    Notes
    -----
    Texts are written as texts: a reply that starts with ``=`` is no formula, a web address no link. A reply longer than
    32,767 characters makes the whole file a tsv. Options such as ``None`` stay texts here, but VLMEvalKit itself reads
    them as missing. Calls that failed hold the toolkit's failure sentence, items not asked are no rows.
    """
    if suffix not in (".xlsx", ".tsv"):
        raise ValueError(f"suffix is {suffix!r}, expected .xlsx or .tsv")
    facts = _item_columns(items)
    written, coverage = [], []
    groups = responses.groupby(["model", "condition", "prompt_mode"], sort=False)
    order = sorted(groups.groups, key=lambda g: (g[1] != "full", g[2] != "silent"))
    taken: set[tuple[str, str]] = set()
    for model, condition, mode in order:
        group = groups.get_group((model, condition, mode))
        about = {"model": model, "condition": condition, "run": str(group["run"].iloc[0])}
        if condition not in _ENDINGS or (model, condition) in taken:
            what = "another prompt mode" if condition in _ENDINGS else "neither full nor blind"
            reason = f"{what}, which the toolkit's layout has no place for"
            coverage.append(coverage_row("excluded", n=len(group), reason=reason, **about))
            continue
        taken.add((model, condition))
        first = group[group["sample"] == group["sample"].min()]
        if len(first) < len(group):
            reason = "repeats beyond the first, which the toolkit's layout has no place for"
            coverage.append(coverage_row("excluded", n=len(group) - len(first), reason=reason, **about))
        said = pd.Series([_cell(r) for r in first.to_dict("records")], index=first["item"].to_numpy(), dtype="str")
        table = facts[facts["index"].isin(said.index)]
        table = table.assign(prediction=table["index"].map(said).to_numpy())
        ending = suffix
        if suffix == ".xlsx" and (n := _too_long(table)):
            ending = ".tsv"
            reason = f"written as tsv: texts of more than {EXCEL_LIMIT:,} characters"
            coverage.append(coverage_row("warning", n=n, reason=reason, **about))
        name = _UNSAFE.sub("__", model) + _ENDINGS[condition]
        path = Path(folder) / name / f"{name}_{_UNSAFE.sub('__', benchmark)}{ending}"
        for other in (".xlsx", ".tsv"):
            path.with_suffix("").with_name(path.name.removesuffix(ending) + other).unlink(missing_ok=True)
        with atomic(path) as temporary:
            (_write_xlsx if ending == ".xlsx" else _write_tsv)(table, temporary)
        written.append(path)
    return written, coverage


def _cell(response: dict[str, Any]) -> str:
    status = response["status"]
    if status in ("failed", "filtered"):
        return FAILED if status == "failed" else FILTERED
    return response["prediction"] if isinstance(response["prediction"], str) else ""


def _item_columns(items: Sequence[QuestionItem]) -> pd.DataFrame:
    """Item facts under the toolkit's names, in its order; columns without a value are left out."""
    most = max((len(i.options) for i in items), default=0)
    columns: dict[str, list[str]] = {
        "index": [i.item for i in items],
        "hint": [i.hint for i in items],
        "question": [i.question for i in items],
    }
    columns |= {LETTERS[n]: [i.options[n] if n < len(i.options) else "" for i in items] for n in range(min(most, 26))}
    columns |= {
        "answer": [str(list(i.references)) if i.references else i.key for i in items],
        "category": [i.stratum for i in items],
        "l2-category": [i.substratum for i in items],
        "bench": [i.source for i in items],
        "capability": [i.capability for i in items],
    }
    kept = {n: v for n, v in columns.items() if n in ("index", "question", "answer") or len(n) == 1 or any(v)}
    return pd.DataFrame(kept, dtype="str")


def _too_long(table: pd.DataFrame) -> int:
    """Rows with a text that a spreadsheet cannot hold; counted in UTF-16 units, as spreadsheets do."""
    long = [any(_units(t) > EXCEL_LIMIT for t in row) for row in table.itertuples(index=False)]
    return sum(long)


def _units(text: str) -> int:
    if len(text) <= EXCEL_LIMIT // 6:
        return 0
    # control characters are spelled with seven characters in the file
    return len(text.encode("utf-16-le", "replace")) // 2 + 6 * len(_CONTROL.findall(text))


def _write_xlsx(table: pd.DataFrame, path: Path) -> None:
    import xlsxwriter

    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False, "in_memory": True}
    book = xlsxwriter.Workbook(str(path), options)
    book.set_properties({"created": _CREATED})
    sheet = book.add_worksheet("Sheet1")
    numbers = bool(table["index"].str.fullmatch(r"0|[1-9]\d{0,14}").all())
    for at, name in enumerate(table.columns):
        sheet.write_string(0, at, name)
        for row, text in enumerate(table[name], start=1):
            if name == "index" and numbers:
                sheet.write_number(row, at, int(text))
            elif text:
                sheet.write_string(row, at, text.encode("utf-8", "replace").decode())
    book.close()


def _write_tsv(table: pd.DataFrame, path: Path) -> None:
    spelled = table.apply(lambda c: c.map(lambda t: _CONTROL.sub(lambda m: f"_x{ord(m[0]):04X}_", t)))
    with path.open("w", encoding="utf-8", errors="replace", newline="") as f:
        spelled.to_csv(f, sep="\t", index=False, quoting=csv.QUOTE_ALL, lineterminator="\n")
