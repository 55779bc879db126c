"""``auditlib errata``: the table of what is said to be wrong, a patched dataset, and a text for the maintainers."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from auditlib.errors import AuditError
from auditlib.paths import outputs_folder, shown

#: most signs in the text of an issue
ISSUE = 65_536


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add ``errata write``, ``errata patch`` and ``errata text`` to the command's parser."""
    errata = commands.add_parser("errata", help="errata of a benchmark: a table, a patched dataset, a text")
    steps = errata.add_subparsers(required=True, metavar="step")

    write = steps.add_parser("write", help="gather an audit's candidates, readers' decisions and other people's lists")
    write.add_argument("params", type=Path)
    write.add_argument("--review", nargs="+", type=Path, default=[], metavar="FILE", action="extend",
                       help="decisions on the pool's review packet, or the folder of a packet (default: what lies in "
                       "outputs/POOL/review)")  # fmt: skip
    write.add_argument("--import", nargs="+", type=Path, default=[], metavar="FILE", action="extend", dest="lists",
                       help="errata lists of others: csv, json, xlsx or parquet")  # fmt: skip
    _about_columns(write, "item, key, old_key, reason, status ...")
    write.add_argument("--outputs", type=Path, help="where results go (default: outputs/ of the project)")
    write.set_defaults(do=_write)

    patch = steps.add_parser("patch", help="write a dataset in which the confirmed rows are mended")
    patch.add_argument("errata", type=Path, help="errata.csv or errata.json")
    patch.add_argument("dataset", type=Path, help="tsv, csv or parquet; it stays as it is")
    patch.add_argument("--to", type=Path, required=True, metavar="NEW", help="the new file")
    patch.add_argument("--drop", action="store_true", help="leave out items with a confirmed reason that no key mends")
    _about_columns(patch, "item, key; default index and answer")
    patch.set_defaults(do=_patch)

    text = steps.add_parser("text", help="write the table as a text for the benchmark's maintainers")
    text.add_argument("errata", type=Path, help="errata.csv or errata.json")
    text.add_argument("--to", type=Path, metavar="FILE", help="a Markdown file (default: print it)")
    text.set_defaults(do=_text)


def _about_columns(parser: argparse.ArgumentParser, names: str) -> None:
    parser.add_argument("--map", nargs="+", default=[], metavar="OURS=THEIRS", action="extend", dest="columns",
                        help=f"what a column is called there ({names})")  # fmt: skip


def _columns(given: Sequence[str]) -> dict[str, str]:
    out = {}
    for pair in given:
        ours, mark, theirs = pair.partition("=")
        if not mark or not ours.strip() or not theirs.strip():
            raise AuditError(f"--map {pair}: no pair of names", mend="write OURS=THEIRS, as in --map key=gold")
        out[ours.strip()] = theirs.strip()
    return out


def _write(options: argparse.Namespace) -> int:
    from auditlib.errata.build import build_errata
    from auditlib.errata.reasons import STATUSES
    from auditlib.errata.table import write_errata
    from auditlib.outputs import load_audit
    from auditlib.params import load_params
    from auditlib.paths import RunPaths

    params = load_params(options.params)
    outputs = outputs_folder(options.outputs)
    paths = RunPaths(outputs, params.pool)
    _refuse_edited(paths, options.lists)
    packet, decisions = _review(params, paths, options.review)
    built = build_errata(load_audit(paths), packet=packet, decisions=decisions, lists=options.lists,
                         columns=_columns(options.columns))  # fmt: skip
    rows = built.errata.rows
    for note in built.notes:
        print(f"note: {note}")
    if decisions:
        print(f"decisions: {', '.join(shown(f) for f in decisions)}")
    counts = [f"{n} {s}" for s in STATUSES if (n := int(rows["status"].eq(s).sum()))]
    print(f"{len(rows)} rows on {rows['item'].nunique()} items" + (f": {', '.join(counts)}" if counts else ""))
    for path in write_errata(built.errata, paths.errata_csv, paths.errata_json):
        print(f"wrote {shown(path)}")
    return 0


def _refuse_edited(paths, lists: Sequence[Path]) -> None:
    """Refuse to write over a table that people have edited, unless it is read as one of the lists."""
    from auditlib.errata.table import read_errata

    csv, beside = paths.errata_csv, paths.errata_json
    if not csv.exists() or not beside.exists() or csv.resolve() in {p.resolve() for p in lists}:
        return
    if not read_errata(csv).rows.equals(read_errata(beside).rows):
        raise AuditError("the table has been edited since it was written", file=csv,
                         mend="keep what people decided: give the table with --import, or move it away")  # fmt: skip


def _review(params, paths, given: Sequence[Path]) -> tuple[Path | None, list[Path]]:
    """The packet's folder and all files of decisions: those of the pool's review, and those that were named."""
    from auditlib.review.files import PACKET
    from auditlib.review.stage import decision_files, review_folder

    folders = [p for p in given if p.is_dir()]
    if len(folders) > 1:
        raise AuditError("two packets are named", file=folders[1], mend="give decisions on one packet")
    own = review_folder(paths)
    packet = folders[0] if folders else own
    if not (packet / PACKET).exists():
        if given:
            raise AuditError("there is no packet that these decisions answer", file=packet,
                             mend="name its folder: --review FOLDER FILES")  # fmt: skip
        return None, []
    found = decision_files(params, own) if packet == own else sorted(packet.glob("decisions_*.csv"))
    files = [*found, *(p for p in given if not p.is_dir())]
    return packet, list({f.resolve(): f for f in files}.values())


def _patch(options: argparse.Namespace) -> int:
    from auditlib.errata.patch import patch
    from auditlib.errata.table import read_errata

    made = patch(read_errata(options.errata), options.errata, options.dataset, options.to, drop=options.drop,
                 columns=_columns(options.columns))  # fmt: skip
    said = made.said
    print(f"{len(said['changed'])} keys changed, {len(said['dropped'])} rows left out, "
          f"{said['new']['rows']:,} of {said['old']['rows']:,} rows stay")  # fmt: skip
    for row in said["confirmed_and_left"]:
        print(f"left as it is: item {row['item']}, {row['reason']} ({row['why']})")
    if said["made_for_this_file"] is False:
        print("note: the table was made for another version of this file; every old key was found as it says")
    if said["not_decided"]:
        print("not confirmed, so left as they are: " + ", ".join(f"{n} {s}" for s, n in said["not_decided"].items()))
    print(f"sha256 {said['new']['sha256']}\nmd5    {said['new']['md5']}")
    print(f"wrote {shown(made.file)}\nwrote {shown(made.record)}")
    return 0


def _text(options: argparse.Namespace) -> int:
    from auditlib.errata.table import read_errata
    from auditlib.errata.text import errata_text
    from auditlib.paths import atomic

    said = errata_text(read_errata(options.errata), options.errata.name)
    if options.to is None:
        print(said, end="")
        return 0
    if options.to.resolve() in {options.errata.resolve().with_suffix(s) for s in (".csv", ".json")}:
        raise AuditError("the text would replace the table itself", file=options.to,
                         mend="name another file with --to, such as issue.md")  # fmt: skip
    _refuse_others(options.to)
    with atomic(options.to) as file:
        file.write_text(said, encoding="utf-8")
    print(f"wrote {shown(options.to)}")
    if len(said) > ISSUE:
        print(f"note: {len(said):,} signs, more than an issue on GitHub may have ({ISSUE:,}); attach the file instead")
    return 0


def _refuse_others(to: Path) -> None:
    """Refuse to replace a file that is no text of ours."""
    from auditlib.errata.text import is_errata_text

    if not to.exists():
        return
    try:
        ours = is_errata_text(to.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        ours = False
    if not ours:
        raise AuditError("the file is there already, and 'auditlib errata text' did not make it", file=to,
                         mend="name another file with --to, or move this one away")  # fmt: skip
