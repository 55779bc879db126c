"""Which file in a VLMEvalKit results folder is what: model, condition, benchmark, predictions or verdicts.

This is the one place that knows folder layouts. A reader asks :func:`scan` for :class:`RunFile` rows and never looks
at folders itself, so that another layout (run folders, links) means another way to fill the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from auditlib.errors import AuditError
from auditlib.readers.runfile import RUNS, RunFile, split_blind

#: endings of a model folder, or of a sibling results folder, that mark runs without image
BLIND = ("_blind", "-blind", "_text-only", "_text_only", "-text-only")
PREDICTIONS = (".xlsx", ".tsv", ".json", ".csv")
#: names that VLMEvalKit writes for two judge models
JUDGE_ALIASES = {"chatgpt-0125": "openai", "gpt-4-0125": "gpt4"}
RUN_FOLDER = re.compile(r"T\d{8}(?:-\d{6}|_G\w+)")
_TABLES = ("_acc", "_score", "_fine", "_metrics", "_detailed_results", "_cotpost", "_tmp", "_extract", "_judge")
_SETTINGS = ("status.json", "config.json", "args.json")
_LEFTOVERS = ("_PREV", "_supp", "_checkpoint")


def scan(folder: Path, benchmark: str | None = None, *, condition: str | None = None) -> list[RunFile]:
    """List the run files of a flat results folder, sorted by path.

    Parameters
    ----------
    folder : the results folder (``work_dir``), with one folder per model.
    benchmark : the benchmark that is asked for, if one is; files that lie in ``folder`` itself, without a model folder,
        can only be told apart when it is given.
    condition : overrides the condition of every file (a sibling folder of blind runs).

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
    found: list[RunFile] = []
    for model_folder in sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith(".")):
        files = [p for p in model_folder.iterdir() if p.is_symlink() or p.is_file()]
        found += [f for p in sorted(files) if (f := _in_model_folder(p, model_folder.name)) is not None]
        found += [f for p in sorted(files) if (f := _unrecognised(p, model_folder.name)) is not None]
        for below in sorted(p for p in model_folder.iterdir() if p.is_dir() and not p.name.startswith(".")):
            if not RUN_FOLDER.match(below.name) and any(
                _unrecognised(p, below.name, all=True) for p in below.iterdir()
            ):
                found.append(RunFile(below, model_folder.name, "full", "unknown", below.name))
    if benchmark:
        files = [p for p in folder.iterdir() if p.is_symlink() or p.is_file()]
        found += [f for p in sorted(files) if (f := _without_folder(p, benchmark)) is not None]
    found = _benchmarks(found, benchmark)
    return [replace(f, condition=condition) for f in found] if condition else found


def split_condition(name: str) -> tuple[str, str]:
    """Model and condition of a folder's name: ``alpha_blind`` -> ``("alpha", "blind")``."""
    return split_blind(name, BLIND)


def run_folders(folder: Path) -> list[Path]:
    """Model folders whose files lie one level down, in run folders, which are not read."""
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


def _in_model_folder(path: Path, folder: str) -> RunFile | None:
    """A file of a model folder; its stem starts with the folder's name (or, copied, with that of the blind run)."""
    model, condition = split_condition(folder)
    names = [(folder, condition)] + (
        [(model + e, "blind") for e in BLIND] if condition == "full" else [(model, condition)]
    )
    for name, its_condition in sorted(names, key=lambda n: -len(n[0])):
        if path.stem.startswith(name + "_"):
            return _kind(path, model, its_condition, path.stem[len(name) + 1 :])
    return None


def _unrecognised(path: Path, folder: str, *, all: bool = False) -> RunFile | None:
    """A table in a model folder whose name names no benchmark; with ``all``, any table."""
    looks = path.suffix.lower() in (*PREDICTIONS, ".xls", ".jsonl", ".parquet") and path.name not in _SETTINGS
    if not looks or (not all and _in_model_folder(path, folder) is not None) or path.stem.endswith(_LEFTOVERS):
        return None
    return RunFile(path, split_condition(folder)[0], split_condition(folder)[1], "unknown", path.stem)


def _without_folder(path: Path, benchmark: str) -> RunFile | None:
    """A file that lies in the results folder itself, named ``MODEL_BENCHMARK``."""
    head, mark, tail = path.stem.rpartition(f"_{benchmark}")
    if not mark or not head or (tail and not tail.startswith("_")):
        return None
    model, condition = split_condition(head)
    return _kind(path, model, condition, benchmark + tail)


def _kind(path: Path, model: str, condition: str, rest: str) -> RunFile | None:
    kind = None
    if path.suffix.lower() == ".pkl":
        kind = "pickle"
    elif path.suffix.lower() in PREDICTIONS:
        if rest.endswith("_result"):
            kind = "result"
        elif rest.endswith("_auxmatch"):
            kind = "auxmatch"
        else:
            kind = "table" if rest.endswith((*_TABLES, *_LEFTOVERS)) else "predictions"
    if kind and path.is_symlink() and not path.exists():
        kind = "dangling"
    return RunFile(path, model, condition, kind, rest) if kind else None


def _benchmarks(files: list[RunFile], asked: str | None) -> list[RunFile]:
    """Name the benchmark of each file.

    Benchmark names are prefixes of each other (``TinySee``, ``TinySee_circular``) and a verdict file is the benchmark
    plus the judge. So the names with predictions come first, and a longer file belongs to the longest of them.
    """
    runs = [f for f in files if f.kind == "predictions"]
    # side products are csv too, so a csv names a benchmark only where nothing else does
    sure = [f for f in runs if f.path.suffix.lower() != ".csv"] or runs
    known = {f.rest for f in sure} | ({asked} if asked else set())
    named = []
    for f in files:
        if f.kind == "unknown":
            named.append(f)
            continue
        if f.kind == "predictions" and f.rest not in known:
            side = any(f.rest.startswith(k + "_") for k in known)
            named.append(replace(f, kind="table" if side else "unknown"))
            continue
        if f.kind == "predictions":
            named.append(replace(f, benchmark=f.rest))
            continue
        owner = max((k for k in known if f.rest == k or f.rest.startswith(k + "_")), key=len, default="")
        tail = f.rest[len(owner) + 1 :]
        judge = tail[: -len("_result")] if f.kind == "result" and owner else ""
        if f.kind == "auxmatch" and not owner:
            owner = f.rest[: -len("_auxmatch")]
        named.append(replace(f, benchmark=owner, judge=judge))
    return named
