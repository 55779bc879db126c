"""Which file in a VLMEvalKit results folder is what: model, condition, benchmark, predictions or verdicts.

This is the one place that knows folder layouts: files flat in the model's folder, run folders below it (``T<date>-
<time>``, ``T<date>_G<commit>``), and the links that lead from the one into the other. A reader asks :func:`scan` for
:class:`RunFile` rows and never looks at folders itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from auditlib.errors import AuditError
from auditlib.readers.runfile import RUNS, RunFile, split_blind, stated_condition
from auditlib.readers.vlmevalkit_names import LEFTOVERS, PREDICTIONS, SETTINGS, kind_of, name_benchmarks, process_file

__all__ = ["BLIND", "JUDGE_ALIASES", "PREDICTIONS", "RUNS", "RUN_FOLDER", "RunFile", "benchmark_names", "once",
           "run_folders", "scan", "sibling_blind", "split_condition"]  # fmt: skip

#: endings of a model folder, or of a sibling results folder, that mark runs without image
BLIND = ("_blind", "-blind", "_text-only", "_text_only", "-text-only")
#: names that VLMEvalKit writes for two judge models
JUDGE_ALIASES = {"chatgpt-0125": "openai", "gpt-4-0125": "gpt4"}
RUN_FOLDER = re.compile(r"T\d{8}(?:-\d{6}|_G\w+)")
_NO_MODELS = ("logs", "eval_logs")


def scan(
    folder: Path,
    benchmark: str | None = None,
    *,
    condition: str | None = None,
    conditions: Mapping[str, str] | None = None,
    scans: dict[str, Any] | None = None,
) -> list[RunFile]:
    """List the run files of a results folder, each real file once, sorted by path.

    Parameters
    ----------
    folder : the results folder (``work_dir``), with one folder per model; or one model's folder of run folders.
    benchmark : the benchmark that is asked for, if one is; files that lie in ``folder`` itself, without a model folder,
        can only be told apart when it is given.
    condition : overrides the condition of every file (a sibling folder of blind runs).
    conditions : pattern of a path below ``folder`` -> condition (or ``skip``); stands above everything else.
    scans : memory shared by calls for one benchmark after the other: a tree is looked through once.

    Raises
    ------
    AuditError
        The folder is missing or a file.
    """
    if not folder.is_dir():
        raise AuditError(
            "there is no such results folder" if not folder.exists() else "a results folder was expected",
            file=folder,
            mend="name the folder that holds one folder per model",
        )
    conditions = conditions or {}
    if scans is not None and benchmark is not None and not any(_without_folder(p, benchmark) for p in _files(folder)):
        key = json.dumps([str(folder), condition, dict(conditions)])
        if key not in scans:
            scans[key] = scan(folder, condition=condition, conditions=conditions)
        # a benchmark whose name is known without being asked for owns the same files when it is
        if any(f.benchmark == benchmark and f.rest == benchmark for f in scans[key]):
            return scans[key]
    folders = _model_folders(folder)
    siblings = [name for _, name in folders]
    found: list[RunFile] = []
    for path, name in folders:
        stated = _stated(path, folder, conditions)
        found += _in_model_folder(path, name, siblings if stated else (), nested="/" in name)
    if benchmark:
        found += [f for p in _files(folder) if (f := _without_folder(p, benchmark)) is not None]
    found = sorted(name_benchmarks(once(found), benchmark), key=lambda f: f.path)
    return [_conditioned(f, folder, condition, conditions) for f in found]


def split_condition(name: str) -> tuple[str, str]:
    """Model and condition of a folder's name: ``alpha_blind`` -> ``("alpha", "blind")``."""
    return split_blind(name, BLIND)


def run_folders(folder: Path) -> list[Path]:
    """Model folders whose files lie one level down, in run folders."""
    return sorted(
        {
            p.parent.parent
            for p in folder.glob("*/*/*.*")
            if RUN_FOLDER.match(p.parent.name) and p.suffix.lower() in PREDICTIONS and p.name != "status.json"
        }
    )


def sibling_blind(folder: Path) -> Path | None:
    """The results folder beside this one that holds its runs without image, such as ``outputs_text-only``."""
    beside = [folder.with_name(folder.name + ending) for ending in BLIND]
    return next((p for p in beside if p.is_dir()), None)


def benchmark_names(files: Iterable[RunFile]) -> list[str]:
    """Benchmarks that have predictions among the files."""
    return sorted({f.benchmark for f in files if f.benchmark and f.kind in RUNS})


def once(found: list[RunFile]) -> list[RunFile]:
    """Each real file once: a link beside the file that it means is dropped.

    A link to a file that is another model's, or the same model's under another condition, becomes ``foreign``.
    """
    owners: dict[Path, tuple[str, str]] = {}
    kept = []
    for f in sorted(found, key=lambda f: (f.kind == "unknown", f.path.is_symlink())):
        if f.kind == "dangling":
            kept.append(f)
            continue
        real, mine = f.path.resolve(), (f.model, f.condition)
        owner = owners.get(real)
        if owner is None:
            owners[real] = mine
            kept.append(f)
        elif owner != mine:
            kept.append(replace(f, kind="foreign") if f.path.is_symlink() else f)
    return kept


def _model_folders(folder: Path) -> list[tuple[Path, str]]:
    """Folders that may be a model's, with the name: those below ``folder``, ``org/name``, and a model's own folder."""
    folders: list[tuple[Path, str]] = []
    for path in _folders(folder):
        folders.append((path, path.name))
        folders += [(below, f"{path.name}/{below.name}") for below in _folders(path)]
    own = any(p.is_dir() and RUN_FOLDER.match(p.name) for p in folder.iterdir())
    return [*([(folder, folder.resolve().name)] if own else []), *folders]


def _folders(folder: Path) -> list[Path]:
    return sorted(
        p
        for p in folder.iterdir()
        if p.is_dir() and not p.name.startswith(".") and p.name not in _NO_MODELS and not RUN_FOLDER.match(p.name)
    )


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_symlink() or p.is_file())


def _in_model_folder(path: Path, name: str, siblings: Iterable[str], *, nested: bool) -> list[RunFile]:
    """Files of a model's folder and of its run folders; of a nested one nothing but a word where none is its own."""
    runs = sorted(p for p in path.iterdir() if p.is_dir() and RUN_FOLDER.match(p.name))
    places = [path, *runs]
    if nested:
        places += [p / name.partition("/")[0] for p in places if (p / name.partition("/")[0]).is_dir()]
    files = [(p, _names(name, place, siblings)) for place in places for p in _files(place)]
    found = [f for p, names in files if (f := _named(p, names)) is not None]
    ours = {f.path for f in found}
    model, condition = split_condition(name)
    odd = [p for p, _ in files if p not in ours and _looks_like_a_run(p)]
    if nested and not found:
        parent = name.partition("/")[0]
        return [RunFile(path, parent, "full", "unknown", path.name)] if odd else []
    left = [(p, b) for p, _ in files if p not in ours and (b := process_file(p))]
    found += [RunFile(p, model, condition, "leftover", b) for p, b in left]
    return found + [RunFile(p, model, condition, "unknown", p.stem) for p in odd]


def _names(name: str, place: Path, siblings: Iterable[str]) -> dict[str, tuple[str, str]]:
    """What a file's stem may start with -> model and condition, longest first.

    The folder's name; where the file was copied, that of its blind run; the model that ``status.json`` names.
    """
    model, condition = split_condition(name)
    names: dict[str, tuple[str, str]] = {}
    for whole, bare in {(name, model), (name.replace("/", "--"), model.replace("/", "--"))}:
        for start, plain in ((whole, bare), (whole.rpartition("/")[2], bare.rpartition("/")[2])):
            names[start] = (model, condition)
            others = [(plain + e, "blind") for e in BLIND] if condition == "full" else [(plain, condition)]
            names |= {n: (model, c) for n, c in others if n not in names}
    written = _status_model(place)
    for other in (written, written.replace("/", "--"), *sorted(siblings)):
        if other and other not in names:
            its_model, its_condition = split_condition(other)
            names[other] = (its_model, "blind" if condition == "blind" else its_condition)
    return dict(sorted(names.items(), key=lambda n: -len(n[0])))


def _status_model(place: Path) -> str:
    try:
        status = json.loads((place / "status.json").read_text(encoding="utf-8"))
        return str(status.get("model_name") or "")
    except (OSError, ValueError, AttributeError, RecursionError):
        return ""


def _named(path: Path, names: dict[str, tuple[str, str]]) -> RunFile | None:
    for name, (model, condition) in names.items():
        if path.stem.startswith(name + "_"):
            return _kind(path, model, condition, path.stem[len(name) + 1 :])
    return None


def _looks_like_a_run(path: Path) -> bool:
    looks = path.suffix.lower() in (*PREDICTIONS, ".xls", ".jsonl", ".parquet") and path.name not in SETTINGS
    return looks and not path.stem.endswith(LEFTOVERS)


def _without_folder(path: Path, benchmark: str) -> RunFile | None:
    """A file that lies in the results folder itself, named ``MODEL_BENCHMARK``."""
    head, mark, tail = path.stem.rpartition(f"_{benchmark}")
    if not mark or not head or (tail and not tail.startswith("_")):
        return None
    model, condition = split_condition(head)
    return _kind(path, model, condition, benchmark + tail)


def _kind(path: Path, model: str, condition: str, rest: str) -> RunFile | None:
    kind = kind_of(path, rest)
    if kind and path.is_symlink() and not path.exists():
        kind = "dangling"
    return RunFile(path, model, condition, kind, rest) if kind else None


def _stated(path: Path, folder: Path, conditions: Mapping[str, str]) -> bool:
    """Whether a pattern may speak of files in this model folder."""
    return bool(conditions) and any(
        stated_condition(p.relative_to(folder).as_posix(), conditions) for p in path.rglob("*") if p != path
    )


def _conditioned(f: RunFile, folder: Path, condition: str | None, conditions: Mapping[str, str]) -> RunFile:
    """The condition that the params state for a file, else that of its folder; ``*-noimg/*`` also ends the model."""
    below = f.path.relative_to(folder).as_posix()
    stated = stated_condition(below, conditions)
    if stated is None:
        return replace(f, condition=condition) if condition else f
    model = f.model
    pattern = next(p for p, c in conditions.items() if stated_condition(below, {p: c}))
    ending = pattern.partition("/")[0]
    if ending.startswith("*") and not re.search(r"[*?\[]", ending[1:]) and "/" in pattern:
        model = model.removesuffix(ending[1:]) or model
    return replace(f, condition=stated, model=model)
