"""The folder for a paper: ``numbers.tex``, ``tables/``, ``figures/``, ``audit.tex`` that takes them in, an example."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib import table_formats
from auditlib.escape import csv_unguard
from auditlib.latex import words
from auditlib.latex.names import macro, slug
from auditlib.latex.numbers import Number, all_numbers, short_names
from auditlib.lookup import Lacking
from auditlib.owned import LIST, owned, tidy
from auditlib.paths import RunPaths, atomic

#: tables that ``audit.tex`` takes in; it names the others in comments
TABLES = ("headline", "table2_pools", "strata", "categories", "accuracy", "agreement")
#: figures that it takes in; likewise
FIGURES = ("fig2b_null", "fig2c_no_gain", "fig3a_strata_excess", "fig3b_strata_unanimous")

#: how large a figure is set
FIT = "width=\\linewidth,height=.4\\textheight,keepaspectratio"
COMMANDS = r"""\ifdefined\auditset\else
\newcommand{\auditset}[2]{\expandafter\gdef\csname audit@#1\endcsname{#2}}
\DeclareRobustCommand{\auditnum}[1]{\ifcsname audit@#1\endcsname\csname audit@#1\endcsname\else
  \errmessage{auditlib: no number is called #1}\textbf{??}\fi}
\fi
"""
#: folder of these files as the paper names it; a paper that keeps them elsewhere sets it before
ROOT = "\\providecommand{\\auditroot}{latex}\n"
EXAMPLE = r"""% A paper that can be set as it is, from the folder above this one or from this one:
% lualatex example.tex   (or xelatex; pdflatex where all names are Latin)
\documentclass{article}
\usepackage{iftex}
\ifpdftex\usepackage[T1]{fontenc}\else\usepackage{fontspec}\fi
\usepackage{array,booktabs,graphicx,longtable}
\IfFileExists{numbers.tex}{\newcommand{\auditroot}{.}}{\newcommand{\auditroot}{latex}}
\input{\auditroot/audit} % before the document: the numbers alone
\begin{document}
%BODY%\input{\auditroot/audit} % in the document: tables and figures
\end{document}
"""


@dataclass(frozen=True)
class Pool:
    """A saved audit with the files beside it."""

    audit: Any
    paths: RunPaths

    @property
    def name(self) -> str:
        return self.audit.pool_name


def save_latex(audit: Any, paths: RunPaths) -> pd.DataFrame:
    """Write ``latex/`` of a pool from its saved audit, tables and figures.

    Returns
    -------
    frame : one row per file: file, holds (in words), n (numbers, rows or figures).

    Raises
    ------
    AuditError
        Two numbers would have one name.

    Notes
    -----
    The same bytes for the same audit and figures. Files of an earlier run that are not made again are removed.
    """
    if paths.latex.is_dir() and not (paths.latex / LIST).exists():
        shutil.rmtree(paths.latex)  # a pool's own folder, half-written or of an older version
    return write_folder([Pool(audit, paths)], paths.latex)


def write_folder(pools: list[Pool], folder: Path) -> pd.DataFrame:
    """One folder for several pools; see :func:`save_latex`."""
    from auditlib.latex.merge import refuse_clashes

    ours = owned(folder, "auditlib latex")
    numbers = {p.name: all_numbers(p.audit, p.name) for p in pools}
    short = {p.name: short_names(p.audit, p.name, numbers[p.name]) for p in pools}
    refuse_clashes({n: [slug(n), macro(n)] for n in numbers})
    made: list[dict[str, Any]] = []
    said = [head(pools), COMMANDS, *(numbers_text(n, numbers[n], short[n]) for n in numbers)]
    made.append(_write(folder / "numbers.tex", "".join(said), "numbers", sum(map(len, numbers.values()))))
    tables = [_tables(p, folder, several=len(pools) > 1) for p in pools]
    figures = [_figures(p, folder, several=len(pools) > 1) for p in pools]
    made += [row for rows in (*tables, *figures) for row in rows]
    made.append(_write(folder / "audit.tex", _audit_tex(tables, figures), "all of it", len(pools)))
    body = "".join(_example_body(p, short[p.name]) for p in pools)
    made.append(_write(folder / "example.tex", EXAMPLE.replace("%BODY%", body), "a paper to try it", 1))
    for r in made:
        r["file"] = r["file"].relative_to(folder).as_posix()
    tidy(folder, (r["file"] for r in made), ours)
    return pd.DataFrame(made, columns=["file", "holds", "n"])


def head(pools: Iterable[Pool]) -> str:
    """What the file is, and from what it was made."""
    from auditlib.freshness import file_hash

    lines = ["% Made by auditlib; do not edit: it is written again with every run.\n"]
    for p in pools:
        stamp = file_hash(p.paths.statistics)[:16] if p.paths.statistics.exists() else "not saved"
        lines.append(f"% pool {p.name}: statistics.csv {stamp}\n")
    return "".join(lines)


def numbers_text(pool: str, numbers: list[Number], short: dict[str, str]) -> str:
    """Definitions of one pool; read a second time they do nothing."""
    guard = f"audit@pool@{slug(pool)}"
    lines = [f"\\ifcsname {guard}\\endcsname\\else", f"\\expandafter\\gdef\\csname {guard}\\endcsname{{}}"]
    lines += [f"\\auditset{{{n.key}}}{{{n.tex}}}% {n.source}" for n in numbers]
    lines += [f"\\newcommand{{\\{macro(pool, name)}}}{{\\auditnum{{{key}}}}}" for name, key in short.items()]
    return "\n".join([*lines, "\\fi"]) + "\n"


def _write(file: Path, text: str, holds: str, n: int) -> dict[str, Any]:
    with atomic(file) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return {"file": file, "holds": holds, "n": n}


def _stem(pool: Pool, name: str, several: bool) -> str:
    return f"{slug(pool.name)}-{name}" if several else name


def _tables(pool: Pool, folder: Path, *, several: bool) -> list[dict[str, Any]]:
    from auditlib.extensions import extensions_of
    from auditlib.studies import STUDIES, all_tables, study_of
    from auditlib.tables import TABLES as MINE

    run = {name: result for name in STUDIES if (result := pool.audit.study(name)) is not None}
    own, out = extensions_of(pool.audit.params).tables, []
    known = all_tables() | own
    for name in [*MINE, *own, *(t.name for n in run for t in STUDIES[n].tables)]:
        table, study = known[name], study_of(name)
        try:
            frame = table.build(pool.audit if study is None else run[study.name])
        except Lacking:
            continue
        columns = table.columns_of(frame)
        text = table_formats.latex(f"{slug(pool.name)}-{name}", table.title, columns,
                                   table_formats.cells(frame, columns), table.note,
                                   before=f"{words.text(pool.audit.benchmark)}: ")  # fmt: skip
        made = _write(folder / "tables" / f"{_stem(pool, name, several)}.tex", text, table.title, len(frame))
        out.append(made | {"name": name})
    return out


def _figures(pool: Pool, folder: Path, *, several: bool) -> list[dict[str, Any]]:
    listing = pool.paths.figures / "index.csv"
    if not listing.exists():
        return []
    out = []
    for r in pd.read_csv(listing, dtype=str, keep_default_na=False).map(csv_unguard).to_dict("records"):
        picture = pool.paths.figures / f"{r['name']}.pdf"
        if r["state"] != "drawn" or not picture.exists():
            continue
        stem = _stem(pool, r["name"], several)
        (folder / "figures").mkdir(parents=True, exist_ok=True)
        with atomic(folder / "figures" / f"{stem}.pdf") as temporary:
            shutil.copyfile(picture, temporary)
        out.append({"file": folder / "figures" / f"{stem}.pdf", "holds": r["title"], "n": 1})
        label = f"fig:{slug(pool.name)}-{r['name'].replace('_', '-')}"
        caption = f"{pool.audit.benchmark}: {r['title']}. {r['caption']}"
        text = (f"\\begin{{figure}}\n\\centering\n\\includegraphics[{FIT}]{{\\auditroot/figures/{stem}.pdf}}\n"
                f"\\caption{{{words.text(caption)}}}"
                f"\\label{{{label}}}\n\\end{{figure}}\n")  # fmt: skip
        out.append(_write(folder / "figures" / f"{stem}.tex", text, r["title"], 1) | {"name": r["name"]})
    return out


def _audit_tex(tables: list[list[dict[str, Any]]], figures: list[list[dict[str, Any]]]) -> str:
    lines = ["% Made by auditlib; do not edit. Numbers before the document, tables and figures inside it.",
             ROOT.rstrip(), "\\input{\\auditroot/numbers}",
             "\\makeatletter\\ifx\\@nodocument\\relax\\makeatother"]  # fmt: skip
    for kind, wanted, pools in (("tables", TABLES, tables), ("figures", FIGURES, figures)):
        for rows in pools:
            mine = [r for r in rows if r["file"].suffix == ".tex"]
            lines += [
                f"{'' if r['name'] in wanted else '% '}\\input{{\\auditroot/{kind}/{r['file'].stem}}}" for r in mine
            ]
    return "\n".join([*lines, "\\else\\makeatother\\fi"]) + "\n"


def _example_body(pool: Pool, short: dict[str, str]) -> str:
    rows = [f"{words.text(name)} & \\{macro(pool.name, name)} \\\\" for name in short]
    if not rows:
        return ""
    return "\n".join([f"\\section{{\\auditnum{{{slug(pool.name)}.benchmark}}}}", "\\begin{tabular}{ll}", *rows,
                      "\\end{tabular}"]) + "\n"  # fmt: skip
