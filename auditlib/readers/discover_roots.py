"""Which folders of a tree are results folders, and of which toolkit: told by what the files hold."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from auditlib.readers import layout

TOOLKITS = ("vlmevalkit", "lmms-eval", "lm-eval", "inspect", "every-eval-ever")
_HEAD = 65_536


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
        if suffix == ".jsonl":
            return _by_keys(keys_of_first_line(path))
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


def keys_of_first_line(path: Path) -> set[str]:
    """Keys of the first row of a JSON Lines file, from as much of the line as is whole."""
    with path.open("rb") as f:
        line = f.readline(4_000_000).decode("utf-8-sig", "replace")
    try:
        row = json.loads(line)
        return set(row) if isinstance(row, dict) else set()
    except (ValueError, RecursionError):
        return set(re.findall(r'"(\w+)"\s*:', line[:_HEAD]))


def _by_keys(keys: set[str]) -> str | None:
    if {"evaluation_id", "sample_id"} <= keys:
        return "every-eval-ever"
    if {"arguments", "doc_id"} <= keys and keys & {"doc_hash", "filter", "metrics", "resps"}:
        return "lm-eval"
    if {"doc_id", "filtered_resps"} <= keys:
        return "lmms-eval"
    return None


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
            notes.append(f"{_below(place, folder)} cannot be opened and is left out")
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
                    notes.append(f"{_below(path, folder)} is a link that leads nowhere")
            except OSError:
                notes.append(f"{_below(path, folder)} cannot be opened and is left out")
        yield place, files


def _below(path: Path, folder: Path) -> str:
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
