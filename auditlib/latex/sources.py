"""The lines of a paper, in the order in which TeX meets them, with the files that it inputs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from auditlib.errors import AuditError

#: folder of our files where a paper does not say another
USUAL = "latex"
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)%.*")
_INPUT = re.compile(
    r"\\(?:input|include|subfile)(?![A-Za-z@])\s*(?:\{([^{}]*)\}|((?:\\auditroot\s*)?[\w./~-][^\s{}\\]*))"
)
_ROOT = re.compile(r"\\((?:re|provide)?(?:new)?command|def)\*?\s*(?:\{\s*\\auditroot\s*\}|\\auditroot)\s*\{([^{}]*)\}")
_NAMED = re.compile(r"\\auditroot(?![A-Za-z])\s*")


@dataclass(frozen=True)
class Line:
    """A line without its comment: ``file`` as messages name it, ``number`` from 1."""

    file: str
    number: int
    text: str


@dataclass(frozen=True)
class Absent:
    """An input that was not found: where and how it stands, what TeX would look for; ``root``: in our folder."""

    file: str
    line: int
    said: str
    wanted: str
    root: bool


@dataclass
class _Reading:
    folder: Path
    lines: list[Line] = field(default_factory=list)
    absent: list[Absent] = field(default_factory=list)
    seen: set[Path] = field(default_factory=set)
    roots: list[str] = field(default_factory=list)


def read_lines(paper: Path) -> tuple[list[Line], list[Absent]]:
    """Lines of a file and of those that it inputs, each file once; and the inputs that were not found.

    Raises
    ------
    AuditError
        A file cannot be read.
    """
    reading = _Reading(paper.absolute().parent)
    _read(paper.absolute(), reading)
    return reading.lines, reading.absent


def _read(file: Path, reading: _Reading) -> None:
    if file.resolve() in reading.seen:
        return
    reading.seen.add(file.resolve())
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise AuditError(f"cannot be read ({type(e).__name__})", file=file,
                         mend="name a LaTeX file in UTF-8") from None  # fmt: skip
    name = file.relative_to(reading.folder).as_posix() if file.is_relative_to(reading.folder) else file.name
    for number, line in enumerate(text.splitlines(), 1):
        plain = _COMMENT.sub(r"\1", line)
        reading.lines.append(Line(name, number, plain))
        for how, root in _ROOT.findall(plain):  # the last word counts; \\providecommand only where nothing was said
            if not (how.startswith("provide") and reading.roots):
                reading.roots.insert(0, root.strip())
        for m in _INPUT.finditer(plain):
            wanted = (m.group(1) or m.group(2) or "").strip().strip('"')
            if not wanted or "#" in wanted:
                continue  # a command's own argument
            if (target := _target(wanted, file, reading)) is not None:
                _read(target, reading)
            if target is None or not _seen_by_tex(wanted, target, reading):
                named = _named(wanted, (reading.roots or [USUAL])[0])
                reading.absent.append(Absent(name, number, m.group().strip(), named, "\\auditroot" in wanted))


def _target(wanted: str, file: Path, reading: _Reading) -> Path | None:
    """The file that is meant; one in our folder also where the paper forgot to say that it is not ``latex``."""
    own = [file.parent.as_posix()] if "\\auditroot" in wanted else []
    for root in [*reading.roots, USUAL, *own]:
        if (found := _found(_named(wanted, root), reading.folder)) is not None:
            return found
    return None


def _seen_by_tex(wanted: str, target: Path, reading: _Reading) -> bool:
    roots = reading.roots or [USUAL]
    return any(_found(_named(wanted, root), reading.folder) == target for root in roots)


def _named(wanted: str, root: str) -> str:
    return _NAMED.sub(lambda _: root, wanted)


def _found(name: str, folder: Path) -> Path | None:
    for base in (folder, Path.cwd()):
        for path in (base / f"{name}.tex", base / name):
            if path.is_file():
                return path
    return None
