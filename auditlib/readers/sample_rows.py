"""Rows of a samples file: replies in any nesting, and the same document several times in one file."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from auditlib.errors import AuditError
from auditlib.frames import coverage_row
from auditlib.readers import cells

#: fields of a dataset's row that may name it
ID_FIELDS = ("question_id", "index", "id", "qid", "sample_id", "uid")


def texts(value: Any) -> list[str]:
    """Replies of a row: a bare text, a list, lists of lists; ``[]`` and nothing are one empty reply.

    Examples
    --------
    >>> texts("B"), texts(["B"]), texts([["B", "C"]]), texts(None)
    (['B'], ['B'], ['B', 'C'], [''])
    """
    if type(value) is str:
        return [value]
    if type(value) is list:
        if len(value) == 1:
            return texts(value[0])
        found = [t for v in value for t in texts(v)]
        return found or [""]
    return [cells.cell_text(value)]


def by_filter(
    rows: Sequence[Mapping[str, Any]],
    numbers: Sequence[int],
    names: Sequence[str],
    raw: Sequence[Hashable],
    path: Path,
) -> tuple[dict[str, list[int]], list[dict[str, Any]]]:
    """Places of the rows of each filter, in order of documents, and coverage rows.

    A document that is there twice under one filter's name is: a copy (equal rows; the first is kept); or, where no
    filter is named and the raw replies are equal, the work of several filters, which are numbered; or two runs in one
    file, which cannot be told apart.

    Parameters
    ----------
    rows, numbers : rows of the file and their line numbers.
    names : name of each row's filter, ``""`` where the file names none.
    raw : raw reply of each row.
    path : the file, for messages.

    Raises
    ------
    AuditError
        Rows without a document's number, or two runs in one file.
    """
    seen: dict[tuple[str, Any], list[int]] = {}
    for at, (row, name) in enumerate(zip(rows, names)):
        if "doc_id" not in row:
            raise AuditError("the row has no doc_id", file=path, row=numbers[at], mend="is it a file of samples?")
        seen.setdefault((name, str(row["doc_id"])), []).append(at)
    if len(seen) == len(rows) and len({n for n, _ in seen}) == 1:
        return {names[0]: sorted(range(len(rows)), key=lambda i: _place(rows[i]["doc_id"]))}, []
    copies = 0
    kept: dict[str, dict[str, list[int]]] = {}
    for (name, doc), places in seen.items():
        kept.setdefault(name, {})[doc] = places
    out: dict[str, list[int]] = {}
    for name, docs in kept.items():
        most = max(map(len, docs.values()))
        numbered = name == "" and most > 1 and all(len(p) == most for p in docs.values())
        if numbered:
            numbered = any(len({_whole(rows[p]) for p in places}) > 1 for places in docs.values())
        if numbered and all(len({raw[p] for p in places}) == 1 for places in docs.values()):
            for k in range(most):
                out[f"filter {k + 1}"] = [places[k] for places in docs.values()]
            continue
        for doc, places in docs.items():
            if len(places) > 1 and len({_whole(rows[p]) for p in places}) > 1:
                where = f" by filter {name!r}" if name else ""
                raise AuditError(
                    f"document {doc} is there {len(places)} times{where}, with different content: two runs in one file",
                    file=path,
                    row=numbers[places[1]],
                    mend="keep the lines of one run, or run again into an empty folder",
                )
            copies += len(places) - 1
        out[name] = [places[0] for places in docs.values()]
    rows_told = []
    if copies:
        rows_told.append(coverage_row("duplicate", n=copies, reason="rows equal to an earlier one of the same file"))
    return {n: sorted(p, key=lambda i: _place(rows[i]["doc_id"])) for n, p in out.items()}, rows_told


def _place(doc: Any) -> tuple[int, int, str]:
    return (0, doc, "") if type(doc) is int else (1, 0, str(doc))


def _whole(row: Mapping[str, Any]) -> str:
    """A row as text, without what differs between a reply and its copy from a cache."""
    return json.dumps({k: v for k, v in row.items() if k != "token_counts"}, sort_keys=True, default=str)


def unique_ids(sources: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, list[str]]:
    """Fields that name every row and each row once, with the ids; mappings of one row must agree.

    Parameters
    ----------
    sources : of each row, the mappings that may hold its id.
    """
    found = {}
    for name in ID_FIELDS:
        ids = []
        for held in sources:
            if len(held) == 1 and type(own := held[0].get(name)) is int:  # the usual case, quickly
                ids.append(str(own))
                continue
            values = {cells.cell_text(s[name]).strip() for s in held if s.get(name) is not None and _plain(s[name])}
            if len(values) != 1 or "" in values:
                break
            ids.append(values.pop())
        else:
            if ids and len(set(ids)) == len(ids):
                found[name] = ids
    return found


def _plain(value: Any) -> bool:
    return isinstance(value, str | int | float)


def matches(sources: Sequence[Mapping[str, Any]], where: Mapping[str, str]) -> bool:
    """Whether a row has the value asked for in each column."""
    return all(any(c in s and cells.cell_text(s[c]).strip() == v for s in sources) for c, v in where.items())


def cut_row(line: int) -> dict[str, Any]:
    """Coverage of a last line that is only half there."""
    return coverage_row("unreadable", n=1, reason=f"line {line}, the last one, is only half written: left out")
