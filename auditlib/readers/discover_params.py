"""Write a params file for what was found in a results folder, with comments on what is missing."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import yaml

from auditlib.errors import AuditError
from auditlib.paths import atomic
from auditlib.readers.found import JUDGE_WORDS, Found

#: metrics that are right or wrong answers, where a log stores several
_METRICS = ("acc", "accuracy", "exact_match")


def pool_names(founds: Sequence[Found], pairs: Sequence[tuple[Found, str]]) -> list[str]:
    """A name of its own for each results folder and benchmark: the benchmark's, plus toolkit or folder where needed."""
    names: list[str] = []
    for found, benchmark in pairs:
        base, root = pool_name(benchmark), pool_name(found.folder.resolve().name)
        wider = [base, f"{base}_{found.toolkit}", f"{base}_{root}", f"{base}_{found.toolkit}_{root}"]
        if any(f.toolkit == found.toolkit for f in founds[: founds.index(found)]):
            wider[1], wider[2] = wider[2], wider[1]
        wider += [f"{wider[-1]}_{n}" for n in range(2, len(pairs) + 2)]
        names.append(next(n for n in wider if n not in names))
    return names


def write_params(found: Found, benchmark: str, dest_dir: str | Path, *, pool: str | None = None) -> Path:
    """Write a params file for one benchmark of a results folder, with comments on what was found and what is missing.

    Parameters
    ----------
    found : from :func:`discover`.
    benchmark : one of ``found.benchmarks``.
    dest_dir : folder for the file; paths in it are relative to that folder.
    pool : the pool's name, by default the benchmark's in lower case.

    Returns
    -------
    Path
        The file, ``<pool>.yaml``.

    Raises
    ------
    AuditError
        The folder has no such benchmark, or the file exists already.
    """
    pool = pool or pool_name(held(found, benchmark))
    path = Path(dest_dir) / f"{pool}.yaml"
    if path.exists():
        raise AuditError("the params file exists already", file=path, mend="edit it, or remove it first")
    with atomic(path) as temporary:
        temporary.write_text(params_text(found, benchmark, pool, path.parent), encoding="utf-8")
    return path


def held(found: Found, benchmark: str) -> str:
    """The benchmark, if the results folder has runs of it; AuditError with those that it has otherwise."""
    if benchmark in found.benchmarks:
        return benchmark
    mend = f"benchmarks here: {', '.join(found.benchmarks)}"
    raise AuditError(f"no run of {benchmark!r}", file=found.folder, mend=mend)


def pool_name(benchmark: str) -> str:
    """A benchmark's name as a pool may be called."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", benchmark).strip("._-").lower() or "pool"


def params_text(found: Found, benchmark: str, pool: str | None, base: Path, *, judge: str | None = None) -> str:
    """Text of the params file for one benchmark of a results folder.

    Parameters
    ----------
    found, benchmark : what was found, and one of its benchmarks.
    pool : the pool's name, by default the benchmark's in lower case.
    base : folder where the file will lie; paths are relative to it.
    judge : which verdicts to read, by default those that most runs have.
    """

    def quoted(value: str) -> str:
        # a double-quoted scalar: names may hold anything that YAML reads as something else
        text = yaml.safe_dump(value, default_style='"', allow_unicode=True, width=10_000).strip()
        return value if re.fullmatch(r"[A-Za-z][A-Za-z0-9._/-]*", value) and yaml.safe_load(value) == value else text

    def relative(target: Path) -> str:
        return quoted(Path(os.path.relpath(target.resolve(), base.resolve())).as_posix())

    full, blind = found.models(benchmark, "full"), found.models(benchmark, "blind")
    paired = [m for m in full if m in blind]
    models = f"{len(full)} model{'' if len(full) == 1 else 's'}"
    lines = [
        f"# {comment(benchmark)}: {models} with image, {len(blind)} without, {len(paired)} with both.",
        *[f"# Missing: {comment(m)}." for m in found.missing(benchmark)],
        *[f"# Note: {comment(m)}." for m in found.remarks(benchmark)],
        f"pool: {quoted(pool or pool_name(benchmark))}",
        f"benchmark: {quoted(benchmark)} # {_said_where(found.toolkit)}",
        "data:",
        f"  folder: {relative(found.folder)} # paths start at this file's folder",
        f"  toolkit: {found.toolkit}",
    ]
    if found.blind_folder is not None and found.uses_blind_folder(benchmark):
        lines.append(f"  blind_folder: {relative(found.blind_folder)} # runs without image")
    if (other := found.blind_benchmark(benchmark)) is not None:
        lines.append(f"  blind_benchmark: {quoted(other)} # the task of the runs without image")
    if found.toolkit == "vlmevalkit" and benchmark.startswith("MMMU_DEV_VAL"):
        lines.append("  # where: {split: validation} # to leave the dev items out")
    if benchmark in found.datasets:
        lines.append(f"  dataset: {relative(found.datasets[benchmark])} # options as written, pictures")
    lines += [
        "models: # family and open are not in the files: fill them in for leave-one-family-out rows",
        *[f"  - {{name: {quoted(m)}}}" for m in found.models(benchmark)],
    ]
    judges = found.judges(benchmark)
    if judges or judge:
        # the judge with the most files; exact matching only when there is no other
        best = judge or max(judges, key=lambda j: (j != "exact_matching", judges[j], j in _METRICS, j))
        others = [j for j in judges if j != best]
        what = JUDGE_WORDS.get(found.toolkit, "")
        says = [*([f"the {what}"] if what else []), *([f"also here: {', '.join(others)}"] if others else [])]
        lines.append(f"judge: {quoted(best)}" + (f" # {comment('; '.join(says))}" if says else ""))
    lines += [
        "audit:",
        "  exact: [letters] # add option_text if models answer with an option's text, boxed for \\boxed{B}",
        "  failed: missing # failed calls: missing, or wrong",
        "  exclude_models: []",
        "",
    ]
    return "\n".join(lines)


def comment(text: str) -> str:
    """Text that stays on one line of a YAML file."""
    return re.sub(r"[\x00-\x1f\x7f\u0085\u2028\u2029]+", " ", text)


def _said_where(toolkit: str) -> str:
    return "as in the file names" if toolkit == "vlmevalkit" else "the task's name"
