"""Batch files as text: lines written by count and bytes, and the index that says what each line asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from auditlib.calls import Generation, Part, Picture, Request
from auditlib.errors import AuditError

INDEX = "index.jsonl"


class LineWriter:
    """Writes lines into numbered files of limited count and size; files appear when the block ends well.

    Parameters
    ----------
    folder, name : files are ``folder/name-001.jsonl`` and so on; numbers that are taken are passed over.
    max_requests, max_bytes : limits of one file.
    """

    def __init__(self, folder: Path, name: str, max_requests: int, max_bytes: int):
        self._folder, self._name, self._limits = folder, name, (max_requests, max_bytes)
        self._open: dict[str, tuple[BinaryIO, Path, int, int]] = {}
        self._files: list[tuple[Path, Path]] = []
        self._number = 0

    def __enter__(self) -> LineWriter:
        self._folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        for handle, *_ in self._open.values():
            handle.close()
        for temporary, path in self._files:
            if kind is None:
                temporary.replace(path)
            else:
                temporary.unlink(missing_ok=True)

    @property
    def files(self) -> list[Path]:
        return [path for _, path in self._files]

    def write(self, line: bytes, model: str, item: str) -> str:
        """Write one line (without its end) to the model's open file; the file's name."""
        most, largest = self._limits
        size = len(line) + 1
        if size > largest:
            raise AuditError(
                f"the request of item {item!r} has {size:,} bytes, a batch file at most {largest:,}",
                mend="make its pictures smaller",
            )
        handle, path, count, length = self._open.get(model) or self._next()
        if count >= most or length + size > largest:
            handle.close()
            handle, path, count, length = self._next()
        handle.write(line + b"\n")
        self._open[model] = (handle, path, count + 1, length + size)
        return path.name

    def _next(self) -> tuple[BinaryIO, Path, int, int]:
        while True:
            self._number += 1
            path = self._folder / f"{self._name}-{self._number:03d}.jsonl"
            if not path.exists():
                break
        temporary = path.with_name(f".{path.name}.tmp")
        self._files.append((temporary, path))
        return open(temporary, "wb"), path, 0, 0


def index_line(request: Request, file: str) -> bytes:
    """What a request asked, without its pictures' bytes."""
    parts = [p if isinstance(p, str) else {"sha256": p.sha256, "mime": p.mime} for p in request.parts]
    names = (
        "item", "model", "condition", "prompt_mode", "sample", "prompt_version", "purpose", "system", "letters",
    )  # fmt: skip
    facts = {name: getattr(request, name) for name in names}
    content = {"key": request.key, "file": file, **facts, "parts": parts, "generation": asdict(request.generation)}
    return json.dumps(content, sort_keys=True).encode("ascii")


class Index:
    """Requests of batch files by key, read from the index when they are needed.

    Parameters
    ----------
    path : the index file, or the folder that holds it.

    Raises
    ------
    AuditError
        There is no index, or it is damaged.
    """

    def __init__(self, path: Path):
        self.path = path / INDEX if path.is_dir() else path
        self.files: dict[str, str] = {}
        self._places: dict[str, int] = {}
        try:
            with open(self.path, "rb") as handle:
                place = 0
                for row, line in enumerate(handle, 1):
                    try:
                        content = json.loads(line)
                        key, file = content["key"], content["file"]
                    except (ValueError, KeyError, TypeError):
                        raise AuditError(
                            "this line of the index of batch files cannot be read",
                            file=self.path,
                            row=row,
                            mend="write the batch files again",
                        ) from None
                    self.files[key], self._places[key] = file, place
                    place += len(line)
        except OSError as e:
            raise AuditError(
                f"the index of the batch files cannot be read ({type(e).__name__})",
                file=self.path,
                mend="name the folder of the batch files, or give the requests",
            ) from None

    @property
    def folder(self) -> Path:
        return self.path.parent

    def request(self, key: str) -> Request:
        """The request under a key; its pictures cannot be loaded."""
        with open(self.path, "rb") as handle:
            handle.seek(self._places[key])
            content = json.loads(handle.readline())
        generation = content.pop("generation")
        generation["extra"] = tuple((name, value) for name, value in generation["extra"])
        parts: tuple[Part, ...] = tuple(
            p if isinstance(p, str) else Picture(p["sha256"], p["mime"], _gone) for p in content.pop("parts")
        )
        del content["key"], content["file"]
        request = Request(**content, parts=parts, generation=Generation(**generation))
        if request.key != key:
            raise AuditError(
                f"the index does not describe the request {key[:12]}...",
                file=self.path,
                mend="write the batch files again",
            )
        return request


def lines_of(path: Path) -> Iterator[tuple[int, bytes, dict[str, Any] | None]]:
    """Row, bytes and content of each line; content is None where it is no JSON object."""
    try:
        with open(path, "rb") as handle:
            for row, line in enumerate(handle, 1):
                if not line.strip():
                    continue
                try:
                    content = json.loads(line)
                except ValueError:
                    content = None
                yield row, line.rstrip(b"\r\n"), content if isinstance(content, dict) else None
    except OSError as e:
        raise AuditError(f"the file cannot be read ({type(e).__name__})", file=path, mend="check the path") from None


def _gone() -> bytes:
    raise AuditError("the index holds no pictures", mend="give the requests themselves")
