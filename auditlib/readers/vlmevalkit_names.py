"""What a VLMEvalKit file name says: kind, benchmark and judge, with a look at the columns where names do not tell."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from auditlib.errors import AuditError
from auditlib.readers import files
from auditlib.readers.runfile import RunFile

PREDICTIONS = (".xlsx", ".tsv", ".json", ".csv")
#: the judge of a verifier's file, which names none
VERIFIER = "verifier"
SETTINGS = ("status.json", "config.json", "args.json")
LEFTOVERS = ("_PREV", "_supp", "_checkpoint")
_TABLES = ("_acc", "_acc_all", "_fine", "_metrics", "_tmp", "_extract", "_judge")
_VANILLA = ("_vanilla_circ0_result", "_vanilla_all_result")
_VERIFIED = "_detailed_results"
_SCORED = "_score"
#: a process's own replies, deleted when a run ends: rank and number of processes, then the benchmark
_PROCESS = re.compile(r"\d{2,6}_(?P<benchmark>.+)")
#: columns of a file that holds verdicts
_VERDICTS = ({"hit"}, {"res", "log"}, {"score"})
_SIDE = {"hit", "res", "log", "extract", "score", "verifier_match"}


def kind_of(path: Path, rest: str) -> str | None:
    """Kind of a file by its suffix and what follows the model in its name; None where it is none of a run's files."""
    if path.suffix.lower() == ".pkl":
        return "leftover" if rest.endswith(LEFTOVERS) else "pickle"
    if path.suffix.lower() not in PREDICTIONS:
        return None
    totals = path.suffix.lower() in (".csv", ".json") and rest.endswith(_SCORED)
    if totals or rest.endswith((*_TABLES, *_VANILLA)):
        return "table"
    if rest.endswith(LEFTOVERS):
        return "leftover"
    if rest.endswith("_cotpost") or "_cotpost_" in rest:
        return "rewritten"
    if rest.endswith(("_result", _VERIFIED)):
        return "result"
    return "auxmatch" if rest.endswith("_auxmatch") else "predictions"


def process_file(path: Path) -> str | None:
    """Benchmark of a file that one process of an unfinished run left behind, such as ``01_MMStar.pkl``."""
    match = _PROCESS.fullmatch(path.stem)
    return match["benchmark"] if match and path.suffix.lower() == ".pkl" else None


def name_benchmarks(found: list[RunFile], asked: str | None) -> list[RunFile]:
    """Name the benchmark of each file, and the judge of each verdict file.

    Benchmark names are prefixes of each other (``TinySee``, ``TinySee_circular``) and a verdict file is the benchmark
    plus the judge. So the names with predictions come first, and a longer file belongs to the longest of them. A name
    that extends another may also be that one's verdicts (``MathVista_MINI_gpt-4o``): its columns decide.
    """
    runs = [f for f in found if f.kind == "predictions"]
    # side products are csv too, so a csv names a benchmark only where nothing else does
    sure = [f for f in runs if f.path.suffix.lower() != ".csv"] or runs
    known, sides = _known(sure, asked)
    named = []
    for f in found:
        if f.kind == "unknown" or f.benchmark:
            named.append(f)
            continue
        owner = _owner(f.rest, known)
        tail = f.rest[len(owner) + 1 :] if owner else ""
        kind, judge = f.kind, ""
        if kind == "predictions" and f.rest not in known:
            kind = sides.get(f.rest, "table") if owner else "table" if f.rest.endswith(_SCORED) else "unknown"
            judge = tail.removesuffix(_SCORED) if kind == "result" else ""
        elif kind == "result" and owner:
            judge = VERIFIER if f.rest.endswith(_VERIFIED) else tail[: -len("_result")]
            kind = "table" if judge.startswith("judge_") else kind
        elif kind == "auxmatch" and not owner:
            owner = f.rest[: -len("_auxmatch")]
        named.append(replace(f, kind=kind, benchmark="" if kind == "unknown" else owner, judge=judge))
    return named


def _known(runs: list[RunFile], asked: str | None) -> tuple[set[str], dict[str, str]]:
    """Benchmarks with predictions, and the kind of the files whose name extends a benchmark but hold verdicts."""
    known, sides = {asked} if asked else set(), {}
    for name in sorted({f.rest for f in runs} - known, key=lambda n: (len(n), n)):
        if not _owner(name, known):
            if not name.endswith(_SCORED):
                known.add(name)
            continue
        columns = _columns(f.path for f in runs if f.rest == name)
        if any(v <= columns for v in _VERDICTS) and "prediction" in columns:
            sides[name] = "result"
        elif columns & _SIDE or name.endswith(_SCORED):
            sides[name] = "table"
        else:
            known.add(name)
    return known, sides


def _owner(rest: str, known: Iterable[str]) -> str:
    return max((k for k in known if rest == k or rest.startswith(k + "_")), key=len, default="")


def _columns(paths: Iterable[Path]) -> set[str]:
    """Column names, in lower case, of the first file that can be opened; empty where none can."""
    for path in paths:
        try:
            return {c.lower() for c in files.open_table(path).columns}
        except AuditError:
            continue
    return set()
