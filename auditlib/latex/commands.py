"""``auditlib latex``: several pools in one folder for a paper, and a check of the numbers that a paper uses."""

from __future__ import annotations

import argparse
from pathlib import Path

from auditlib.paths import outputs_folder, shown

#: folder beside the pools where none is named
FOLDER = "latex"


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add ``latex write`` and ``latex check`` to the command's parser."""
    latex = commands.add_parser("latex", help="numbers, tables and figures of pools for a paper in LaTeX")
    steps = latex.add_subparsers(required=True, metavar="step")

    write = steps.add_parser("write", help="write one folder for the pools of one or more params files")
    write.add_argument("params", nargs="+", type=Path)
    write.add_argument("--to", type=Path, metavar="FOLDER", help="folder of the files (default: outputs/latex)")
    write.add_argument("--outputs", type=Path, help="where results lie (default: outputs/ of the project)")
    write.set_defaults(do=_write)

    check = steps.add_parser("check", help="name the numbers of a paper that are unknown or no longer true")
    check.add_argument("paper", type=Path, help="the paper's main file; what it inputs from its folder is read too")
    check.add_argument("--params", nargs="+", type=Path, required=True)
    check.add_argument("--outputs", type=Path, help="where results lie (default: outputs/ of the project)")
    check.set_defaults(do=_check)


def _write(options: argparse.Namespace) -> int:
    from auditlib.latex.merge import merge

    outputs = outputs_folder(options.outputs)
    folder = options.to or outputs / FOLDER
    table = merge(options.params, folder, outputs=outputs)
    n = int(table.loc[table["file"].eq("numbers.tex"), "n"].iloc[0])
    print(f"{len(table)} files, {n:,} numbers: {shown(folder)}")
    root = "" if folder.name == "latex" else f"\\newcommand{{\\auditroot}}{{{folder.name}}} "
    print(f"next: {root}\\input{{{folder.name}/audit}} in the paper, or set {shown(folder / 'example.tex')}")
    return 0


def _check(options: argparse.Namespace) -> int:
    from auditlib.latex.check import check

    checked = check(options.paper, options.params, outputs=outputs_folder(options.outputs))
    found = checked.rows
    for row in found.to_dict("records"):
        print(f"{row['file']}:{row['line']}: {row['name']}: {row['what']}")
    for note in checked.unread:
        print(f"note: {note}")
    print(f"{len(found)} to mend" if len(found) else "every number is known and up to date")
    return 1 if len(found) else 0
