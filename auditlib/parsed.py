"""A cache of parsed runs: what was read from a file is kept by the content of the file, never by its name or time.

An entry's name is the SHA-256 of everything that it depends on: the bytes of the files read, the settings of the
reading, the code of the readers and the versions of the packages under it. Nothing is taken from sizes or times of
files, so an entry can be stale only where two contents share a hash. An entry starts with the SHA-256 of its own
bytes: a damaged one is removed and what it held is read again. Entries are Parquet, never pickles.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditlib.paths import atomic

if TYPE_CHECKING:
    import pandas as pd

#: bytes that all entries may take; the least recently used go first
LIMIT = 4 * 2**30
#: where it is "off", nothing is cached
SWITCH = "AUDITLIB_CACHE"
_SUFFIX = ".parsed"
_PACKAGES = ("pandas", "numpy", "pyarrow", "python-calamine", "rapidfuzz")
_DIGEST = 32
#: age in seconds from which a temporary file is nobody's any more
_STALE = 24 * 3600


@dataclass(frozen=True)
class ParsedCache:
    """A folder of entries and the bytes that they may take together."""

    folder: Path
    limit: int = LIMIT


def cache_of(outputs: str | Path, wanted: bool | None = None) -> ParsedCache | None:
    """The cache of a folder of results, ``OUTPUTS/.cache``, or None.

    Parameters
    ----------
    outputs : folder of all results. Where it does not exist there is no cache: reading alone creates no folder.
    wanted : False opts out; None leaves it to the environment variable ``AUDITLIB_CACHE`` (``off`` opts out).
    """
    if wanted is None:
        wanted = os.environ.get(SWITCH, "").lower() not in ("off", "0", "no")
    folder = Path(outputs)
    return ParsedCache(folder / ".cache") if wanted and folder.is_dir() else None


def content(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def content_if_any(path: Path) -> str:
    """:func:`content`, empty where there is no readable file."""
    try:
        return content(path)
    except OSError:
        return ""


def key_of(kind: str, facts: Any) -> str:
    """Name of an entry: the hash of its kind, of all that it depends on (plain data), and of the code."""
    plain = json.dumps([kind, facts, code_version()], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(plain.encode(errors="surrogatepass")).hexdigest()


@lru_cache(maxsize=1)
def code_version() -> str:
    """Hash of the code that reads files and replies, and of the versions of the packages that it rests on."""
    here = Path(__file__).resolve().parent
    files = [*here.glob("*.py"), *here.glob("readers/*.py"), *here.glob("extract/**/*.py"), *here.glob("params/*.py"),
             *here.glob("leaderboard/*.py")]  # fmt: skip
    parts = [f"{p.relative_to(here).as_posix()} {content(p)}" for p in sorted(files)]
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            parts.append(f"{name} {metadata.version(name)}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def digest(columns: Iterable[pd.Series]) -> str:
    """SHA-256 of columns of text, their lengths included."""
    import pyarrow as pa

    whole = hashlib.sha256()
    for column in columns:
        array = pa.array(column.astype(object).where(column.notna(), None), pa.large_string(), from_pandas=True) if (
            column.dtype == object) else pa.array(column)  # fmt: skip
        batch = pa.record_batch([array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array], ["c"])
        whole.update(batch.serialize())
    return whole.hexdigest()


def exists(cache: ParsedCache, key: str) -> bool:
    """Whether there is an entry of that name; its bytes are not looked at."""
    return _path(cache, key).exists()


def load(cache: ParsedCache, key: str) -> tuple[dict[str, pd.DataFrame], dict[str, Any]] | None:
    """Tables and facts of an entry; None where there is none or its bytes are not those that were written."""
    path = _path(cache, key)
    try:
        raw = path.read_bytes()
    except OSError:
        return None
    body = memoryview(raw)[_DIGEST:]
    if len(raw) <= _DIGEST or hashlib.sha256(body).digest() != raw[:_DIGEST]:
        with suppress(OSError):
            path.unlink()
        return None
    with suppress(OSError):
        os.utime(path)  # used now: the last to go
    size = int.from_bytes(body[:8], "little")
    head = json.loads(bytes(body[8 : 8 + size]))
    tables, at = {}, 8 + size
    for name, length in head["tables"]:
        tables[name] = _unpacked(body[at : at + length])
        at += length
    return tables, head["facts"]


def store(cache: ParsedCache, key: str, tables: Mapping[str, pd.DataFrame], facts: Mapping[str, Any]) -> bool:
    """Write an entry; returns whether it was written.

    What would not come back exactly as it is (an odd type in a column) is not kept, nor is anything where the disk
    refuses: the next reading reads the files again.
    """
    packed = {}
    for name, table in tables.items():
        raw = _packed(table)
        if raw is None:
            return False
        packed[name] = raw
    plain = json.dumps(facts, ensure_ascii=False)
    if json.loads(plain) != dict(facts):
        return False
    told = json.dumps({"tables": [[n, len(b)] for n, b in packed.items()], "facts": facts}, ensure_ascii=False)
    head = told.encode(errors="surrogatepass")
    body = b"".join([len(head).to_bytes(8, "little"), head, *packed.values()])
    try:
        with atomic(_path(cache, key)) as temporary:
            temporary.write_bytes(hashlib.sha256(body).digest() + body)
    except OSError:
        return False
    return True


def prune(cache: ParsedCache) -> int:
    """Remove the least recently used entries beyond the limit, and what killed writers left; returns how many."""
    entries, total, removed = [], 0, 0
    for path in cache.folder.glob("*/.*.tmp*"):
        with suppress(OSError):
            if path.stat().st_mtime < time.time() - _STALE:
                path.unlink()
    for path in cache.folder.glob(f"*/*{_SUFFIX}"):
        with suppress(OSError):
            about = path.stat()
            entries.append((about.st_mtime_ns, about.st_size, path))
            total += about.st_size
    for _, size, path in sorted(entries):
        if total <= cache.limit:
            break
        with suppress(OSError):
            path.unlink()
            total, removed = total - size, removed + 1
    return removed


def clear(cache: ParsedCache) -> int:
    """Remove every entry; returns how many there were."""
    return prune(ParsedCache(cache.folder, -1))


def size(cache: ParsedCache) -> tuple[int, int]:
    """Number of entries and their bytes."""
    sizes = [p.stat().st_size for p in cache.folder.glob(f"*/*{_SUFFIX}")]
    return len(sizes), sum(sizes)


def _path(cache: ParsedCache, key: str) -> Path:
    return cache.folder / key[:2] / f"{key[2:]}{_SUFFIX}"


def _packed(table: pd.DataFrame) -> bytes | None:
    """A frame as Parquet with its exact types, or None where it would not come back as it is."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        arrow = pa.Table.from_pandas(table, preserve_index=False)
        kinds = {str(c): str(t) for c, t in table.dtypes.items()}
        arrow = arrow.replace_schema_metadata({"kinds": json.dumps(kinds)})
        sink = io.BytesIO()
        pq.write_table(arrow, sink, compression="zstd")
    except (pa.ArrowException, TypeError, ValueError, OverflowError, UnicodeEncodeError):
        return None
    raw = sink.getvalue()
    return raw if _same(table, _unpacked(memoryview(raw))) else None


def _unpacked(raw: memoryview) -> pd.DataFrame:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrow = pq.read_table(pa.BufferReader(pa.py_buffer(raw)))
    kinds = json.loads(arrow.schema.metadata[b"kinds"])
    columns = {}
    for name, column in zip(arrow.column_names, arrow.columns):
        kind = kinds[name]
        if kind == "object":
            columns[name] = pd.Series(column.to_pylist(), dtype=object)
        elif kind == "str":
            columns[name] = pd.Series(column, dtype="str")
        else:
            columns[name] = column.to_pandas().astype(kind) if kind != "Int64" else pd.Series(column, dtype="Int64")
    return pd.DataFrame(columns, index=pd.RangeIndex(arrow.num_rows))


def _same(before: pd.DataFrame, after: pd.DataFrame) -> bool:
    """Whether a frame came back exactly, types of the values included."""
    import pandas as pd

    if list(before.columns) != list(after.columns) or len(before) != len(after) or not before.columns.is_unique:
        return False
    if not isinstance(before.index, pd.RangeIndex) or list(before.dtypes) != list(after.dtypes):
        return False
    for name in before.columns:
        if before[name].dtype != object:
            if not before[name].equals(after[name]):
                return False
        elif any(not _equal(a, b) for a, b in zip(before[name].tolist(), after[name].tolist())):
            return False
    return True


def _equal(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b))
    return a == b or (a != a and b != b)
