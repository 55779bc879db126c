"""Which folders of a tree are results folders, and of which toolkit: told by what the files hold."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from auditlib.readers import layout
from auditlib.readers.jsonl import first_row

TOOLKITS = ("vlmevalkit", "lmms-eval", "lm-eval", "inspect", "every-eval-ever")
_HEAD = 65_536
_DATED, _ISO_TIME = re.compile(r"\d{8}_\d{6}_samples_"), re.compile(r"_\d{4}-\d\d-\d\dT\d\d")


@dataclass(frozen=True)
class Tree:
    """Results folders below a folder, and what could not be looked at."""

    roots: list[tuple[Path, str]]
    notes: list[str] = field(default_factory=list)


def look(folder: Path) -> Tree:
    """Walk a tree once and name the results folders in it, each by real path, an outer one for all inside it.

    Loops of links end where a folder was seen already; folders that cannot be opened and links that lead nowhere are
    notes.
    """
    notes: list[str] = []
    roots: dict[str, set[Path]] = {}
    for place, files in _walk(folder, notes):
        for path in files:
            toolkit = sniff(path)
            if toolkit is None and (root := _vlmevalkit_root(path)) is not None:
                roots.setdefault("vlmevalkit", set()).add(root if _inside(root, folder) else folder)
            elif toolkit in ("lmms-eval", "lm-eval"):
                roots.setdefault(toolkit, set()).add(place.parent if place != folder else place)
            elif toolkit == "inspect":
                roots.setdefault(toolkit, set()).add(place)
            elif toolkit == "every-eval-ever":
                roots.setdefault(toolkit, set()).add(_eee_root(place, folder))
    found = [(root, kit) for kit, places in roots.items() for root in _outermost(places)]
    return Tree(sorted(found, key=lambda r: (TOOLKITS.index(r[1]), str(r[0]))), notes)


def sniff(path: Path) -> str | None:
    """Toolkit of a log by its first line or header; None for anything else (tables, pictures, pickles)."""
    suffix = path.suffix.lower()
    try:
        if suffix == ".eval" and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
            return (
                "inspect" if any(n == "header.json" or n.startswith(("_journal/", "samples/")) for n in names) else None
            )
        if path.name.endswith((".jsonl", ".jsonl.gz")):
            return _of_row(first_row(path), path.name)
        if suffix == ".json":
            with path.open("rb") as f:
                head = f.read(_HEAD).decode("utf-8", "replace")
            if re.search(r'"eval"\s*:\s*\{', head) and re.search(r'"(?:status|version)"\s*:', head):
                return "inspect"
            if re.search(r'"schema_version"\s*:', head) and re.search(r'"evaluation_id"\s*:', head):
                return "every-eval-ever"
    except (OSError, zipfile.BadZipFile, NotImplementedError):
        return None
    return None


def _of_row(row: Mapping[str, Any] | None, name: str) -> str | None:
    """Toolkit by the first row of JSON lines, as the toolkits' own scans tell them apart."""
    if row is None:
        return None
    if {"evaluation_id", "sample_id"} <= set(row):
        return "every-eval-ever"
    if "doc_id" not in row or "samples_" not in name:
        return None
    if _DATED.match(name):
        return "lmms-eval"
    if "filter" in row or "metrics" in row or isinstance(row.get("arguments"), dict):
        return "lm-eval"
    return "lmms-eval" if "input" in row or "token_counts" in row or not _ISO_TIME.search(name) else "lm-eval"


def _walk(folder: Path, notes: list[str]) -> Iterator[tuple[Path, list[Path]]]:
    seen: set[Path] = set()
    # breadth first: the shorter of two names of one folder is the one kept
    waiting = [folder]
    while waiting:
        place = waiting.pop(0)
        real = place.resolve()
        if real in seen:
            continue
        seen.add(real)
        try:
            entries = sorted(place.iterdir(), key=lambda p: (p.is_symlink(), p.name))
        except OSError:
            notes.append(f"{below(place, folder)} cannot be opened and is left out")
            continue
        files = []
        for path in entries:
            if path.name.startswith("."):
                continue
            try:
                if path.is_dir():
                    waiting.append(path)
                elif path.is_file():
                    files.append(path)
                elif path.is_symlink():
                    notes.append(f"{below(path, folder)} is a link that leads nowhere")
            except OSError:
                notes.append(f"{below(path, folder)} cannot be opened and is left out")
        yield place, files


def below(path: Path, folder: Path) -> str:
    """A path as it is said from a folder."""
    return Path(os.path.relpath(path, folder)).as_posix()


def _inside(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents


def _vlmevalkit_root(path: Path) -> Path | None:
    """Results folder of ``ROOT/MODEL/[T.../]MODEL_BENCHMARK.xlsx``; None for other files."""
    if path.suffix.lower() not in layout.PREDICTIONS:
        return None
    place = path.parent.parent if layout.RUN_FOLDER.match(path.parent.name) else path.parent
    if path.stem.startswith(place.name + "_"):
        return place.parent
    if path.stem.startswith(f"{place.parent.name}--{place.name}_"):
        return place.parent.parent
    return place.parent if place != path.parent and "_" in path.stem else None


def _eee_root(place: Path, folder: Path) -> Path:
    """The folder above ``BENCHMARK/DEVELOPER/MODEL`` where there is one."""
    root = place
    for _ in range(3):
        if root == folder:
            break
        root = root.parent
    return root


def _outermost(places: set[Path]) -> list[Path]:
    return sorted(p for p in places if not any(q in p.parents for q in places))
