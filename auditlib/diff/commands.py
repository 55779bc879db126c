"""``auditlib diff``: two audits of a benchmark, or two versions of its dataset."""

from __future__ import annotations

import argparse
from pathlib import Path

from auditlib.paths import outputs_folder, shown


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add ``diff`` to the command's parser."""
    diff = commands.add_parser("diff", help="say what differs between two audits, or two versions of a dataset")
    diff.add_argument("a", type=Path, help="before: a params file, a pool's folder of results, or a dataset file")
    diff.add_argument("b", type=Path, help="after: the same kind")
    diff.add_argument("--to", type=Path, metavar="FOLDER", help="where the comparison goes (default: "
                      "outputs/diff/A_B)")  # fmt: skip
    diff.add_argument("--outputs", type=Path, help="where results lie (default: outputs/ of the project)")
    diff.set_defaults(do=_diff)


def _diff(options: argparse.Namespace) -> int:
    from auditlib.diff.compare import compare
    from auditlib.diff.said import short
    from auditlib.diff.sides import load_side
    from auditlib.diff.write import write_difference
    from auditlib.threads import single_threaded

    outputs = outputs_folder(options.outputs)
    a, b = (load_side(path, outputs) for path in (options.a, options.b))
    with single_threaded():
        found = compare(a, b)
    print("\n".join(short(found)))
    for note in found.notes:
        print(f"note: {note}")
    folder = options.to or outputs / "diff" / f"{a.name}_{b.name}"
    print(f"wrote {shown(write_difference(found, folder)[-1])}")
    return 0
