"""When a stage must run again: what it was made from, then and now, and the difference in words."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from auditlib.params import Params
from auditlib.paths import atomic

#: suffixes of files that can hold results; others in a results folder (logs, pictures) are no inputs
RESULT_SUFFIXES = (".xlsx", ".xls", ".tsv", ".csv", ".json", ".jsonl", ".parquet", ".pkl", ".eval")
#: packages whose version can change a number or a page
PACKAGES = ("numpy", "pandas", "scipy", "python-flint", "rapidfuzz", "pyarrow", "python-calamine", "matplotlib",
            "seaborn", "jinja2", "typst", "nbconvert", "papermill", "ipykernel")  # fmt: skip

_PACKAGE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Basis:
    """What the results of a pool are made from: name -> short hash, per kind."""

    inputs: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, dict[str, str]]:
        return {k: dict(sorted(getattr(self, k).items())) for k in ("inputs", "params", "code", "versions")}


def file_hash(path: Path) -> str:
    """SHA-256 of a file as hex, read in blocks."""
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


class HashCache:
    """SHA-256 by path, remembered for files whose size and time of change stay the same.

    The memory lives in one JSON file per outputs folder; losing it costs time only.
    """

    def __init__(self, file: Path | None = None):
        self.file = file
        self.known: dict[str, list[Any]] = {}
        if file is not None:
            try:
                self.known = json.loads(file.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                self.known = {}
        self.changed = False

    def __call__(self, path: Path) -> str:
        stat = path.stat()
        stamp = [stat.st_size, stat.st_mtime_ns]
        key = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:20]  # no machine path in the file
        entry = self.known.get(key)
        if entry and entry[:2] == stamp:
            return entry[2]
        digest = file_hash(path)
        self.known[key] = [*stamp, digest]
        self.changed = True
        return digest

    def save(self) -> None:
        if self.file is not None and self.changed:
            with suppress(OSError), atomic(self.file) as t:  # where nothing can be written, the memory is lost
                t.write_text(json.dumps(self.known, sort_keys=True), encoding="utf-8")
            self.changed = False


def relative(path: Path, *bases: Path) -> str:
    """A path as text, relative to the first base it lies under, else its name alone: never a machine path."""
    path = path.resolve()
    for base in bases:
        if path.is_relative_to(base.resolve()):
            return path.relative_to(base.resolve()).as_posix()
    return path.name


def input_names(params: Params, files: Iterable[Path], root: Path) -> dict[str, Path]:
    """Names of input files for manifests: relative to the params' folder, the project or the results' parent."""
    bases = [(params.source or root).resolve().parent, root]
    bases += [f.parent for f in (params.data.folder, params.data.blind_folder) if f is not None]
    return {relative(p, *bases): p for p in files}


def stated_params(params: Params, root: Path) -> dict[str, Any]:
    """Every parameter with its value, defaults included, paths as they would stand in the YAML."""
    source = (params.source or root / "params" / "x").resolve().parent

    def said(value: Any) -> Any:
        if isinstance(value, Path):
            return Path(os.path.relpath(value, source)).as_posix()
        if isinstance(value, dict):
            return {k: said(v) for k, v in value.items()}
        return [said(v) for v in value] if isinstance(value, list | tuple) else value

    return json.loads(json.dumps(said(params.model_dump(mode="python")), default=str))


def files_named(value: Any) -> Iterable[Path]:
    """Paths that a block of params names, also in lists and blocks inside it."""
    if isinstance(value, Path):
        yield value
    elif isinstance(value, dict | list | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from files_named(inner)


def input_files(params: Params, outputs: Path) -> list[Path]:
    """Files from which a pool can be read, without reading them; an embedded pool's are part of the package."""
    data = params.data
    found: set[Path] = set()
    for folder in (data.folder, data.blind_folder):
        if folder is not None and folder.is_dir():
            found.update(results_in(folder, outputs.resolve(), every=data.reader is not None))
    found.update(p for p in files_named(params.model_dump(mode="python")) if p.is_file())
    return sorted(found)


def results_in(folder: Path, outputs: Path, *, every: bool = False) -> Iterable[Path]:
    """Files of a folder that can hold results (``every``: of any ending), without those of this tool itself."""
    if is_pool(folder):
        return
    for here, folders, names in os.walk(folder, followlinks=True):
        at = Path(here)
        folders[:] = sorted(
            f for f in folders if not f.startswith(".") and (at / f).resolve() != outputs and not is_pool(at / f)
        )
        own = ("summary.csv",) if at.resolve() == outputs else ()
        yield from (
            at / n
            for n in names
            if (every or n.lower().endswith(RESULT_SUFFIXES)) and not n.startswith((".", "~$")) and n not in own
        )


def is_pool(folder: Path) -> bool:
    """Whether a folder holds a pool's run of this tool; other tools write files of that name with other content."""
    try:
        status = json.loads((folder / "status.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(status, dict) and {"stages", "bases"} <= set(status)


def code_files() -> dict[str, Path]:
    """Files of the package, data included: name relative to the package -> path."""
    return {
        p.relative_to(_PACKAGE).as_posix(): p
        for p in sorted(_PACKAGE.rglob("*"))
        if p.is_file() and "__pycache__" not in p.parts and not p.name.startswith(".") and p.suffix != ".pyc"
    }


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that matter; ``absent`` where one is not installed."""
    import platform
    from importlib import metadata

    out = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            out[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            out[name] = "absent"
    return out


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Nested mappings as dotted names, the form in which overrides are given."""
    if not isinstance(value, Mapping) or not value:
        return {prefix: value}
    out: dict[str, Any] = {}
    for k, v in value.items():
        out |= flat(v, f"{prefix}.{k}" if prefix else str(k))
    return out


def basis(params: Params, outputs: Path, sha: HashCache, *, root: Path) -> Basis:
    """What the results of a pool would be made from now."""
    files = input_names(params, input_files(params, outputs), root)
    stated = flat(stated_params(params, root))
    return Basis(
        inputs={name: sha(path) for name, path in files.items()},
        params={k: json.dumps(v, sort_keys=True, ensure_ascii=False) for k, v in stated.items() if k != "notebooks"},
        code={name: sha(path)[:16] for name, path in code_files().items()},
        versions=versions(),
    )


def differences(before: Mapping[str, Mapping[str, str]], now: Basis) -> str:
    """The first reason why results are no longer those of the present basis, in words; empty when they are.

    Examples
    --------
    >>> differences({"inputs": {"a.csv": "1"}}, Basis(inputs={"a.csv": "2"}))
    'a.csv changed'
    """
    words = {"inputs": "", "params": "params: ", "code": "code: ", "versions": "version of "}
    for kind, word in words.items():
        old, new = before.get(kind, {}), getattr(now, kind)
        if old == new:
            continue
        names = sorted(k for k in set(old) | set(new) if old.get(k) != new.get(k))
        first = names[0]
        what = "is new" if first not in old else "is gone" if first not in new else "changed"
        more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        return f"{word}{first} {what}{more}"
    return ""
