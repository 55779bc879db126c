"""Files of one JSON object per line, plain or gzipped; a half-written last line is told, not fatal."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditlib.errors import AuditError

SUFFIXES = (".jsonl", ".jsonl.gz")
_BOM = b"\xef\xbb\xbf"
#: the longest first line that :func:`first_row` looks at
_LONGEST = 64 * 2**20


@dataclass(frozen=True)
class Lines:
    """Objects of a file and their 1-based line numbers.

    ``cut`` is the number of the last line when it is only half there (and left out), else 0.
    """

    rows: list[dict[str, Any]]
    numbers: list[int]
    cut: int = 0


def read_jsonl(path: Path, *, drop: Iterable[str] = ()) -> Lines:
    """Read a file of JSON lines. Blank lines are skipped; ``NaN`` and ``Infinity`` are numbers.

    Parameters
    ----------
    path : a ``.jsonl`` or ``.jsonl.gz`` file.
    drop : keys that are thrown away at once, to save memory.

    Raises
    ------
    AuditError
        The file cannot be opened, or a line other than the last is no JSON object.
    """
    away = tuple(drop)
    rows: list[dict[str, Any]] = []
    numbers: list[int] = []
    bad: tuple[int, str] | None = None
    number = 0
    for number, line in enumerate(_raw_lines(path), start=1):
        if bad is not None:
            if line.strip():
                raise _broken(path, *bad)
            continue
        try:
            row = json.loads(line.decode("utf-8"))
        except ValueError as e:
            if line.strip():
                bad = number, "no UTF-8 text" if isinstance(e, UnicodeDecodeError) else "no complete JSON"
            continue
        except RecursionError:
            raise _broken(path, number, "JSON nested too deeply") from None
        if b"\\ud" in line or b"\\uD" in line:
            row = _whole_characters(row)
        if type(row) is not dict:
            raise _broken(path, number, f"not a JSON object but {type(row).__name__}")
        for key in away:
            row.pop(key, None)
        rows.append(row)
        numbers.append(number)
    if bad is not None and not rows:
        raise _broken(path, *bad)
    return Lines(rows, numbers, bad[0] if bad is not None else 0)


def _whole_characters(row: Any) -> Any:
    """A row whose halves of characters (a reply cut in an emoji) are replaced: no table can hold them."""
    text = json.dumps(row, ensure_ascii=False)
    return json.loads(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


def first_row(path: Path) -> dict[str, Any] | None:
    """What the first twenty objects of a file hold: each field as it first occurs; None where there is no object.

    One damaged row at the top must not hide what kind of file it is.
    """
    fields: dict[str, Any] = {}
    try:
        with _open(path) as stream:
            for _ in range(20):
                line = stream.readline(_LONGEST).removeprefix(_BOM)
                try:
                    row = json.loads(line) if line.strip() else None
                except (ValueError, RecursionError):
                    continue
                for name, value in row.items() if isinstance(row, dict) else ():
                    fields.setdefault(name, value)
    except (OSError, EOFError, zlib.error):
        pass
    return fields or None


def _open(path: Path) -> Any:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _raw_lines(path: Path) -> Iterator[bytes]:
    """Lines of a file; a gzip file that ends early gives the lines up to there."""
    try:
        with _open(path) as stream:
            first = stream.readline()
            if first:
                yield first.removeprefix(_BOM)
            yield from stream
    except (EOFError, zlib.error):
        yield b'{"the archive ends early'
    except gzip.BadGzipFile as e:
        raise AuditError(f"not a gzip file ({e})", file=path, mend="copy it again, or unpack it") from None
    except OSError as e:
        raise AuditError(f"cannot be opened ({e.strerror or e})", file=path) from None


def _broken(path: Path, number: int, why: str) -> AuditError:
    return AuditError(f"line {number} is {why}", file=path, row=number, mend="copy the file again, or delete the line")
