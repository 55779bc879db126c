"""A comparison on disk: CSV files, one HTML page that fetches nothing, and the same as Markdown."""

from __future__ import annotations

from pathlib import Path

from auditlib import escape, table_formats
from auditlib.diff.compare import Difference
from auditlib.diff.said import Part, Table, parts, title
from auditlib.owned import owned, tidy
from auditlib.paths import atomic

PAGE, TEXT = "diff.html", "diff.md"


def write_difference(d: Difference, folder: Path) -> list[Path]:
    """Write ``items.csv``, ``categories.csv``, ..., ``diff.md`` and ``diff.html``; returns the files, the page last.

    A frame without rows has no file; one that an earlier comparison left there is removed.

    Raises
    ------
    AuditError
        The folder holds files that are no comparison's.
    """
    before, written = owned(folder, "auditlib diff"), []
    for name, frame in d.frames().items():
        if len(frame):
            _write(folder / f"{name}.csv", table_formats.csv(frame))
            written.append(folder / f"{name}.csv")
    said = parts(d)
    _write(folder / TEXT, markdown(d, said))
    _write(folder / PAGE, html(d, said))
    written += [folder / TEXT, folder / PAGE]
    tidy(folder, (p.name for p in written), before)
    return written


def _write(path: Path, text: str) -> None:
    with atomic(path) as file:
        file.write_text(text, encoding="utf-8")


def _note(t: Table) -> str:
    more = f"{t.total - len(t.frame):,} more rows are in {t.file}." if t.total > len(t.frame) else ""
    return " ".join(x for x in (t.note, more) if x)


def markdown(d: Difference, said: list[Part]) -> str:
    """The page as Markdown; everything foreign is escaped."""
    out = [f"# {escape.markdown(title(d))}", ""]
    for part in said:
        out += [f"## {escape.markdown(part.title)}", ""]
        out += [f"- {escape.markdown(s, start=True)}" for s in part.sentences]
        out += [""] * bool(part.sentences)
        for t in part.tables:
            out += [table_formats.markdown(t.title, t.columns, table_formats.cells(t.frame, t.columns), _note(t))]
    return "\n".join(out).rstrip() + "\n"


def html(d: Difference, said: list[Part]) -> str:
    """The page as HTML, with its style inside."""
    from auditlib.report.page import page

    kind = "Two versions of a dataset" if d.a.audit is None else "Two audits of a benchmark"
    head = (
        f'<p class="kicker">{kind}</p>\n<h1 dir="auto">{escape.html(d.a.label)} → {escape.html(d.b.label)}</h1>\n'
        f'<p class="pool">{escape.html(d.b.benchmark)}</p>'
    )
    return page(title(d), "\n".join([head, *map(_section, said)]), kind="wide")


def _section(part: Part) -> str:
    said = "\n".join(f"<li>{escape.html(s)}</li>" for s in part.sentences)
    body = [f"<h2>{escape.html(part.title)}</h2>", f"<ul>\n{said}\n</ul>" if said else ""]
    for t in part.tables:
        rows = table_formats.html_rows(t.columns, table_formats.cells(t.frame, t.columns))
        file = f' <span class="files">{escape.html(t.file)}</span>' if t.file else ""
        note = f'\n<p class="note">{escape.html(_note(t))}</p>' if _note(t) else ""
        table = f"<table><caption>{escape.html(t.title)}{file}</caption>\n{rows}</table>"
        body.append(f'<div class="tablebox"><div class="scroll">{table}</div>{note}</div>')
    return "<section>\n" + "\n".join(b for b in body if b) + "\n</section>"
