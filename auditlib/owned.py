"""Folders that a user may name for results: a list says which files were written, and no other is touched."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from auditlib.errors import AuditError
from auditlib.paths import atomic

#: list of the files written, one path a line, from the folder on
LIST = "files.txt"


def owned(folder: Path, command: str) -> set[str]:
    """Names of the files that an earlier run of a command wrote into a folder; none where it is new or empty.

    Raises
    ------
    AuditError
        The folder holds files, and no list that says which were written here.
    """
    listing = folder / LIST
    if listing.exists():
        return set(listing.read_text(encoding="utf-8").splitlines())
    if folder.is_dir() and any(folder.iterdir()):
        raise AuditError(f"the folder holds files that '{command}' did not make", file=folder,
                         mend="name a new or empty folder with --to")  # fmt: skip
    return set()


def tidy(folder: Path, names: Iterable[str], before: Iterable[str]) -> None:
    """Remove what an earlier run wrote and this one did not, and list what is ours now."""
    now = set(names)
    for old in sorted(set(before) - now):
        if not Path(old).is_absolute() and ".." not in Path(old).parts:
            (folder / old).unlink(missing_ok=True)
    with atomic(folder / LIST) as temporary:
        temporary.write_text("".join(f"{n}\n" for n in sorted(now)), encoding="utf-8")
