"""From a results folder to a params file, and a look at what a pool would be read from."""

from __future__ import annotations

import re
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from auditlib.errors import AuditError
from auditlib.params import Params, check_params, load_params
from auditlib.paths import RunPaths, atomic, project_root
from auditlib.stages import refuse_overlap, refuse_reserved

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Wish:
    """What the user says about a results folder; the rest is found out."""

    folder: Path
    benchmark: str
    judge: str | None = None
    blind: Path | None = None
    dataset: Path | None = None
    pool: str | None = None


def init(wish: Wish, *, to: Path | None = None, force: bool = False) -> tuple[Path, list[str]]:
    """Write ``<pool>.yaml`` for a results folder.

    Parameters
    ----------
    to : folder of the file, by default ``params/`` of the project.
    force : replace a file of that name.

    Returns
    -------
    The file, and what was found and is missing, as sentences.

    Raises
    ------
    AuditError
        Nothing recognisable there, no such benchmark or judge, the file exists.
    """
    folder = to if to is not None else project_root() / "params"
    name, text = params_text(wish, folder)
    file = folder / name
    if file.exists() and not force:
        raise AuditError("the params file exists already", file=file, mend="edit it, choose another name with --pool, "
                         "or replace it with --force")  # fmt: skip
    _write(file, text)
    return file, remarks(text)


def params_for_audit(wish: Wish, outputs: Path) -> tuple[Path, bool]:
    """The params file of a folder's audit, ``<outputs>/<pool>/<pool>.yaml``, written when it is not there.

    An existing one is kept with whatever was edited in it, as long as it speaks of the same files.

    Returns
    -------
    The file, and whether it is new.

    Raises
    ------
    AuditError
        As :func:`init`; or the pool's folder holds the audit of other files.
    """
    name, text = params_text(wish, outputs / "pool")
    file = outputs / Path(name).stem / name
    fresh = check_params(yaml.safe_load(text), file)
    refuse_overlap(fresh, RunPaths(outputs, file.parent.name))
    if not file.exists():
        was = file.parent.exists()
        try:
            _write(file, text)
        except BaseException:
            if not was:
                with suppress(OSError):
                    file.parent.rmdir()
            raise
        return file, True
    before = load_params(file)
    if before.data != fresh.data or before.benchmark != fresh.benchmark:
        raise AuditError("this pool holds the audit of other files", file=file,
                         mend="choose another name with --pool, or remove that file")  # fmt: skip
    if wish.judge and wish.judge != before.judge:
        raise AuditError(f"this params file says judge {before.judge!r}", file=file,
                         mend="edit 'judge' there, or choose another name with --pool")  # fmt: skip
    return file, False


def params_text(wish: Wish, dest: Path) -> tuple[str, str]:
    """Name and text of the params file that a folder ``dest`` would get; ``dest`` itself is not touched."""
    from auditlib.readers.discover import discover
    from auditlib.readers.discover_params import write_params

    for path in (wish.folder, wish.blind, wish.dataset):
        if path is not None and not path.exists():
            raise AuditError("there is no such file or folder", file=path, mend="check the path")
    if not wish.folder.is_dir():
        raise AuditError("a results folder is needed, this is a file", file=wish.folder,
                         mend="name its folder, or read it with data: {table: ...} in a params file")  # fmt: skip
    if wish.pool is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", wish.pool):
        raise AuditError(f"{wish.pool!r} cannot name a pool", mend="use letters, digits, dots, dashes, underscores")
    found = discover(wish.folder, blind_folder=wish.blind)
    judges = found.judges(wish.benchmark)
    if wish.judge and judges and wish.judge not in judges:
        raise AuditError(f"no verdict files of judge {wish.judge!r}", file=wish.folder,
                         mend=f"judges here: {', '.join(judges)}")  # fmt: skip
    # Written one level beside `dest`, where relative paths are the same, in a folder that goes away again.
    parent = next(p for p in dest.absolute().parents if p.is_dir())
    depth = len(dest.absolute().relative_to(parent).parts)
    try:
        away = tempfile.TemporaryDirectory(prefix=".init", dir=parent)
    except OSError as e:
        e.filename = str(parent)  # the folder that the user named, not the name made up here
        raise
    with away as scratch:
        made = write_params(found, wish.benchmark, Path(scratch, *["x"] * (depth - 1)), pool=wish.pool)
        name, text = made.name, made.read_text(encoding="utf-8")
    refuse_reserved(Path(name).stem)
    if wish.judge:
        text = _set_line(text, "judge", wish.judge, before="audit:")
    if wish.dataset:
        relative = Path(_relative(wish.dataset, dest)).as_posix()
        text = _set_line(text, "  dataset", relative, before="models:")
    return name, text


def remarks(text: str) -> list[str]:
    """The comment lines at the top of a params file: what was found, what is missing."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    return lines


def _set_line(text: str, key: str, value: str, *, before: str) -> str:
    stated = yaml.safe_dump(value, default_style='"', allow_unicode=True, width=10_000).strip()
    kept = [line for line in text.splitlines() if not line.startswith(f"{key}:")]
    at = next(i for i, line in enumerate(kept) if line.startswith(before))
    return "\n".join([*kept[:at], f"{key}: {stated}", *kept[at:], ""])


def _relative(path: Path, base: Path) -> str:
    import os

    return os.path.relpath(path.resolve(), base.resolve())


def _write(file: Path, text: str) -> None:
    with atomic(file) as t:
        t.write_text(text, encoding="utf-8")


def check(params: Params, outputs: Path) -> list[str]:
    """Read a pool without auditing it: what was read, joined and left out, as lines.

    Raises
    ------
    AuditError
        Any mistake in the params or the files.
    """
    from auditlib.nb import reading
    from auditlib.reading import read_pool

    pool = read_pool(params, outputs=outputs)
    lines = [f"{pool.name}: {len(pool.items):,} items of {pool.benchmark}, {len(pool.models)} models, "
             f"{len(pool.inputs)} files; arms {', '.join(pool.arm_names)}; "
             f"{'with' if pool.has_blind else 'no'} runs without the image", ""]  # fmt: skip
    lines += text_table(reading(pool))
    coverage = pool.coverage.fillna("")
    places = coverage["run"].where(coverage["run"].ne(""), coverage["model"])
    table = coverage[["what", "n"]].assign(item=coverage["item"], where=places, reason=coverage["reason"])
    return [*lines, "", *text_table(table)]


def text_table(table: pd.DataFrame) -> list[str]:
    """A frame as lines of text: words to the left, numbers to the right, no column cut, empty columns left out."""
    import pandas as pd

    table = table.loc[:, [c for c in table if table[c].astype(str).ne("").any()]]
    right = [pd.api.types.is_numeric_dtype(table[c]) for c in table]
    cells = [[str(c) for c in table], *([str(v) for v in row] for row in table.itertuples(index=False))]
    widths = [max(len(row[i]) for row in cells) for i in range(len(right))]
    return ["  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right)).rstrip() for row in cells]
