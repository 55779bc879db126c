"""``auditlib answers``: a pool's stored answers to another machine and back; a run asks only what is missing."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from auditlib.errors import AuditError
from auditlib.paths import outputs_folder


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add ``answers export`` and ``answers import`` to the command's parser."""
    answers = commands.add_parser("answers", help="stored answers of a pool: one file out, files of other machines in")
    steps = answers.add_subparsers(required=True, metavar="step")

    out = steps.add_parser("export", help="write all answers of a pool to one file")
    out.add_argument("params", type=Path)
    out.add_argument("--to", type=Path, required=True, metavar="FILE", help="a new file, e.g. answers.sqlite")
    out.add_argument("--outputs", type=Path, help="where results go (default: outputs/ of the project)")
    out.set_defaults(do=_export)

    into = steps.add_parser("import", help="take answers of other machines in; the next run asks the rest")
    into.add_argument("params", type=Path)
    into.add_argument("files", nargs="+", type=Path, help="files that 'answers export' wrote")
    into.add_argument("--outputs", type=Path, help="where results go (default: outputs/ of the project)")
    into.set_defaults(do=_import)


def _export(options: argparse.Namespace) -> int:
    from auditlib.inference.transfer import export_answers

    n = export_answers(_store(options), options.to.expanduser())
    print(f"wrote {options.to}: {n:,} answers")
    return 0


def _import(options: argparse.Namespace) -> int:
    import_into(_store(options), options.files)
    return 0


def import_into(store: Path, files: Sequence[Path]) -> None:
    """Take files into a store and say a line for each."""
    from auditlib.inference.transfer import import_answers

    for taken in import_answers([f.expanduser() for f in files], store):
        other = f", {taken.other:,} with another text (the first stays)" if taken.other else ""
        print(f"{taken.file}: {taken.new:,} new answers, {taken.same:,} known{other}")


def _store(options: argparse.Namespace) -> Path:
    """The store of the pool that a params file names; one runner works on it at a time."""
    from auditlib.locks import holder
    from auditlib.params import load_params
    from auditlib.paths import RunPaths

    params = load_params(options.params)
    outputs = outputs_folder(options.outputs)
    if (by := holder(outputs, params.pool)) is not None and by.elsewhere:
        raise AuditError(f"pool {params.pool} is being run by another auditlib ({by})",
                         mend="wait until it ends: an answer store is used by one machine at a time")  # fmt: skip
    return RunPaths(outputs, params.pool).answers
