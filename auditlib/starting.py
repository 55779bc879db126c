"""From a results folder to a params file, and a look at what a pool would be read from."""

from __future__ import annotations

import re
import shutil
import textwrap
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import yaml

from auditlib.errors import AuditError
from auditlib.params import TOOLKITS, Params, check_params, load_params
from auditlib.paths import RunPaths, atomic, project_root
from auditlib.readers.discover_roots import below
from auditlib.stages import refuse_foreign, refuse_overlap, refuse_reserved

if TYPE_CHECKING:
    import pandas as pd

    from auditlib.readers.discover import Survey
    from auditlib.readers.found import Found


@dataclass(frozen=True)
class Wish:
    """What the user says about a results folder; the rest is found out."""

    folder: Path
    benchmark: str | None = None
    judge: str | None = None
    blind: Path | None = None
    dataset: Path | None = None
    pool: str | None = None
    toolkit: str | None = None


@dataclass(frozen=True)
class Made:
    """A params file to be written: its name, its text, and the results folder and toolkit it speaks of."""

    name: str
    text: str
    folder: Path
    toolkit: str

    @property
    def remarks(self) -> list[str]:
        """The comment lines at the top: what was found, what is missing."""
        return [line.lstrip("# ") for line in takewhile(lambda t: t.startswith("#"), self.text.splitlines())]


def init(wish: Wish, *, to: Path | None = None, force: bool = False) -> tuple[list[tuple[Path, Made]], list[str]]:
    """Write ``<pool>.yaml`` for each results folder and benchmark of a tree, all of them or none.

    Parameters
    ----------
    to : folder of the files, by default ``params/`` of the project.
    force : replace files of these names.

    Returns
    -------
    Each file with what it holds, and what of the tree could not be looked at, as sentences.

    Raises
    ------
    AuditError
        Nothing recognisable there, no such benchmark, judge or toolkit, a file exists.
    """
    folder = to if to is not None else project_root() / "params"
    made, notes = all_params(wish, folder)
    files = [(folder / m.name, m) for m in made]
    there = [file for file, _ in files if file.exists()]
    if there and not force:
        more = f" (and {len(there) - 1} more of this tree)" if len(there) > 1 else ""
        raise AuditError(f"the params file exists already{more}", file=there[0],
                         mend="edit it, choose another name with --pool, or replace it with --force")  # fmt: skip
    for file, m in files:
        _write(file, m.text)
    return files, notes


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
        refuse_foreign(file, RunPaths(outputs, file.parent.name), project_root())
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
    """Name and text of the params file that a folder ``dest`` would get; ``dest`` itself is not touched.

    Raises
    ------
    AuditError
        Several results folders or benchmarks are there and none is named.
    """
    from auditlib.readers.discover import names_here, the_one

    seen, pairs = _pairs(wish)
    if wish.benchmark is None and len(pairs) > 1:
        raise AuditError("the folder holds several benchmarks", file=wish.folder,
                         mend=f"name one with --benchmark; {names_here(seen.founds)}")  # fmt: skip
    the_one([f for f, _ in pairs], wish.folder, wish.benchmark)
    [made] = _made(wish, dest, pairs, [wish.pool], seen.notes)
    return made.name, made.text


def all_params(wish: Wish, dest: Path) -> tuple[list[Made], list[str]]:
    """Params files for a whole tree, and what of it could not be looked at; nothing is written.

    Raises
    ------
    AuditError
        As :func:`init`; or what goes with one benchmark only is said of several.
    """
    from auditlib.readers.discover_params import pool_names

    seen, pairs = _pairs(wish)
    if len(pairs) == 1:
        return _made(wish, dest, pairs, [wish.pool], seen.notes), []
    for flag, value in (("--pool", wish.pool), ("--dataset", wish.dataset), ("--blind", wish.blind)):
        if value is not None:
            said = ", ".join(f"{b} in {below(f.folder, wish.folder)}" for f, b in pairs[:6])
            raise AuditError(f"{flag} goes with one benchmark and folder, here are {len(pairs)}: {said}",
                             file=wish.folder, mend="name one: --benchmark, --toolkit, or its subfolder")  # fmt: skip
    names: list[str | None] = [*pool_names([f for f, _ in pairs], pairs)]
    return _made(wish, dest, pairs, names, []), seen.notes


def _pairs(wish: Wish) -> tuple[Survey, list[tuple[Found, str]]]:
    """What the wish's folder holds, and the results folders and benchmarks that are meant."""
    from auditlib.readers.discover import chief_benchmarks, names_here, survey

    for path in (wish.folder, wish.blind, wish.dataset):
        if path is not None and not path.exists():
            raise AuditError("there is no such file or folder", file=path, mend="check the path")
    if not wish.folder.is_dir():
        raise AuditError("a results folder is needed, this is a file", file=wish.folder,
                         mend="name its folder, or read it with data: {table: ...} in a params file")  # fmt: skip
    if wish.pool is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", wish.pool):
        raise AuditError(f"{wish.pool!r} cannot name a pool", mend="use letters, digits, dots, dashes, underscores")
    seen = survey(wish.folder, toolkit=toolkit_named(wish.toolkit), blind_folder=wish.blind)
    wanted = wish.benchmark
    pairs = [
        (f, b) for f in seen.founds for b in (chief_benchmarks(f) if wanted is None else [wanted]) if b in f.benchmarks
    ]
    if not pairs:
        raise AuditError(f"no run of {wanted!r}", file=wish.folder, mend=names_here(seen.founds))
    return seen, pairs


def toolkit_named(name: str | None) -> str | None:
    """A toolkit as params call it: ``LM_Eval`` is ``lm-eval``."""
    if name is None:
        return None
    known = {t: t for t in get_args(TOOLKITS)} | {"inspect-ai": "inspect"}
    plain = name.lower().replace("_", "-")
    if plain not in known:
        raise AuditError(f"there is no toolkit {name!r}", mend=f"toolkits: {', '.join(get_args(TOOLKITS))}")
    return known[plain]


def _made(
    wish: Wish, dest: Path, pairs: list[tuple[Found, str]], pools: list[str | None], notes: list[str]
) -> list[Made]:
    from auditlib.readers import discover_params as texts

    judges = sorted({j for f, b in pairs for j in f.judges(b)})
    if wish.judge and judges and wish.judge not in judges:
        kits = {f.toolkit for f, _ in pairs}
        what = texts.JUDGE_WORDS.get(kits.pop(), "") if len(kits) == 1 else ""
        raise AuditError(f"no verdict{f's of {what}' if what else ' files of judge'} {wish.judge!r}", file=wish.folder,
                         mend=f"{what or 'judge'}s here: {', '.join(judges)}")  # fmt: skip
    made = []
    for (found, benchmark), pool in zip(pairs, pools):
        found = replace(found, notes=(*found.notes, *notes))
        if wish.dataset is not None:
            found = replace(found, datasets=found.datasets | {benchmark: wish.dataset})
        has = found.judges(benchmark)
        judge = wish.judge if wish.judge and (wish.judge in has or not judges) else None
        name = pool or texts.pool_name(benchmark)
        refuse_reserved(name)
        text = texts.params_text(found, benchmark, name, dest, judge=judge)
        made.append(Made(f"{name}.yaml", text, found.folder, found.toolkit))
    return made


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
    from auditlib.extensions import extensions_of
    from auditlib.nb import reading
    from auditlib.reading import read_pool

    extensions_of(params)
    pool = read_pool(params, outputs=outputs)
    lines = [f"{pool.name}: {len(pool.items):,} items of {pool.benchmark}, {len(pool.models)} models, "
             f"{len(pool.inputs)} files; arms {', '.join(pool.arm_names)}; "
             f"{'with' if pool.has_blind else 'no'} runs without the image", ""]  # fmt: skip
    lines += text_table(reading(pool))
    coverage = pool.coverage.fillna("")
    places = coverage["run"].where(coverage["run"].ne(""), coverage["model"])
    table = coverage[["what", "n"]].assign(item=coverage["item"], where=places, reason=coverage["reason"])
    return [*lines, "", *text_table(table, width=shutil.get_terminal_size((120, 24)).columns)]


def text_table(table: pd.DataFrame, *, width: int | None = None) -> list[str]:
    """A frame as lines of text: words to the left, numbers to the right, no column cut, empty columns left out.

    With a ``width``, the last column is wrapped to it: beside the others where 40 signs are left, else below them.
    """
    import pandas as pd

    table = table.loc[:, [c for c in table if table[c].astype(str).ne("").any()]]
    right = [pd.api.types.is_numeric_dtype(table[c]) for c in table]
    cells = [[str(c) for c in table], *([str(v) for v in row] for row in table.itertuples(index=False))]
    widths = [max(len(row[i]) for row in cells) for i in range(len(right))]
    before = sum(w + 2 for w in widths[:-1])
    if width is None or before + widths[-1] <= width:
        return [_row(row, widths, right) for row in cells]
    beside = width - before >= 40
    indent = " " * (before if beside else 6)
    lines = [] if beside else [_row(cells.pop(0), widths, right)]
    for *head, last in cells:
        start = _row(head, widths, right).ljust(before if beside else 0)
        folded = textwrap.wrap(last, max(width - len(indent), 20), break_long_words=False, break_on_hyphens=False)
        if beside or not folded:
            lines.append((start + (folded.pop(0) if folded else "")).rstrip())
        else:
            lines.append(start)
        lines += [indent + line for line in folded]
    return lines


def _row(cells: list[str], widths: list[int], right: list[bool]) -> str:
    return "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right)).rstrip()
