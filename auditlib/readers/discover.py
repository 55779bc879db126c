"""Recognise a results folder by its content, and write a params file for it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from auditlib.errors import AuditError
from auditlib.params import Params, check_params
from auditlib.paths import atomic
from auditlib.readers import files, layout
from auditlib.readers.layout import RunFile


@dataclass(frozen=True)
class Found:
    """What lies in a results folder.

    Attributes
    ----------
    folder : the results folder.
    blind_folder : a sibling folder that holds runs without image, if one was found.
    toolkit : which toolkit wrote it.
    files : predictions, verdicts, and files that are unreadable or not recognised, sorted by path.
    datasets : benchmark to the dataset's own TSV, where it lies in the folder.
    """

    folder: Path
    blind_folder: Path | None
    toolkit: str
    files: tuple[RunFile, ...]
    datasets: dict[str, Path]

    @property
    def benchmarks(self) -> list[str]:
        """Benchmarks with runs."""
        return layout.benchmark_names(self.files)

    def models(self, benchmark: str, condition: str | None = None) -> list[str]:
        """Models with a run of the benchmark, in one condition or in any."""
        return sorted({f.model for f in self._runs(benchmark) if condition in (None, f.condition)})

    def judges(self, benchmark: str) -> dict[str, int]:
        """Judges named by the verdict files and how many files each has; yes/no files name none."""
        names = [f.judge for f in self.files if f.benchmark == benchmark and f.kind == "result"]
        return {n: names.count(n) for n in sorted(set(names))}

    def missing(self, benchmark: str) -> list[str]:
        """What an audit of the benchmark would lack, one sentence each."""
        full, blind = set(self.models(benchmark, "full")), set(self.models(benchmark, "blind"))
        says = []
        if not blind:
            says.append("no run without image: visual dependency cannot be judged")
        else:
            says += [f"{m} has no run without image" for m in sorted(full - blind)]
        says += [f"{m} has no run with image" for m in sorted(blind - full)]
        judges = self.judges(benchmark)
        verdicts = {
            (f.model, f.condition, f.judge)
            for f in self.files
            if f.benchmark == benchmark and f.kind in ("result", "auxmatch")
        }
        runs = {(f.model, f.condition) for f in self._runs(benchmark)}
        if not verdicts:
            says.append("no verdict files: only the exact arm is possible")
        for judge in judges or ([""] if verdicts else []):
            lack = sorted(f"{m} ({c})" for m, c in runs if (m, c, judge) not in verdicts)
            if lack:
                says.append(f"no verdicts{f' of {judge}' if judge else ''} for {', '.join(lack)}")
        if len(judges) > 1:
            says.append(f"verdicts of {len(judges)} judges: choose one with 'judge'")
        says += [
            f"{f.path.name} is a pickle and is not opened"
            for f in self.files
            if f.benchmark == benchmark and f.kind == "pickle" and (f.model, f.condition) not in runs
        ]
        says += [
            f"{Path(os.path.relpath(f.path, self.folder)).as_posix()} is not recognised and not read"
            for f in self.files
            if f.kind == "unknown"
        ]
        if benchmark not in self.datasets:
            says.append(f"no {benchmark}.tsv: options as written and pictures are unknown")
        return says

    def _runs(self, benchmark: str) -> list[RunFile]:
        return [f for f in self.files if f.benchmark == benchmark and f.kind in layout.RUNS]


def discover(folder: str | Path, *, blind_folder: str | Path | None = None) -> Found:
    """Look at a results folder.

    Parameters
    ----------
    folder : a flat VLMEvalKit ``work_dir``.
    blind_folder : folder of the runs without image, when it is no sibling with a usual name.

    Returns
    -------
    Found

    Raises
    ------
    AuditError
        Nothing there is recognised: the message says what was looked for, and what lies there instead.

    Examples
    --------
    >>> from auditlib.synth.embedded import materialise
    >>> discover(materialise("tinysee", "outputs")).judges("TinySee")
    {'tiny-judge': 8}
    """
    folder = Path(folder)
    found = layout.scan(folder)
    found = [f for f in found if f.kind != "table"] + _beside(folder, found)
    if blind_folder is not None:
        beside = Path(blind_folder)
        found += layout.scan(beside, condition="blind")
    else:
        beside = layout.sibling_blind(folder)
        if beside is not None:
            extra = layout.scan(beside, condition="blind")
            own = {(f.model, f.benchmark) for f in found if f.condition == "blind"}
            extra = [f for f in extra if (f.model, f.benchmark) not in own]
            found, beside = found + extra, beside if extra else None
    found = [f for f in _by_content(found) if f.kind != "table"]
    if not layout.benchmark_names(found):
        raise _unknown(folder, found)
    datasets = {b: p for b in layout.benchmark_names(found) if (p := folder / f"{b}.tsv").is_file()}
    return Found(folder, beside, "vlmevalkit", tuple(found), datasets)


def params_of_folder(folder: str | Path, benchmark: str | None = None) -> Params:
    """Params of a results folder without a file of their own: what :func:`write_params` would write.

    Raises
    ------
    AuditError
        The folder holds several benchmarks and none is named, or not the one that is.
    """
    found = discover(folder)
    if benchmark is None and len(found.benchmarks) > 1:
        here = f"benchmarks here: {', '.join(found.benchmarks)}"
        raise AuditError("the folder holds several benchmarks", file=folder, mend=f"name one with --benchmark; {here}")
    text = _params_text(found, _held(found, benchmark or found.benchmarks[0]), None, found.folder)
    return check_params(yaml.safe_load(text), found.folder / "params.yaml").model_copy(update={"source": None})


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
    pool = pool or _pool_name(_held(found, benchmark))
    path = Path(dest_dir) / f"{pool}.yaml"
    if path.exists():
        raise AuditError("the params file exists already", file=path, mend="edit it, or remove it first")
    with atomic(path) as temporary:
        temporary.write_text(_params_text(found, benchmark, pool, path.parent), encoding="utf-8")
    return path


def _held(found: Found, benchmark: str) -> str:
    if benchmark in found.benchmarks:
        return benchmark
    mend = f"benchmarks here: {', '.join(found.benchmarks)}"
    raise AuditError(f"no run of {benchmark!r}", file=found.folder, mend=mend)


def _pool_name(benchmark: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", benchmark).strip("._-").lower() or "pool"


def _params_text(found: Found, benchmark: str, pool: str | None, base: Path) -> str:
    def quoted(value: str) -> str:
        # a double-quoted scalar: names may hold anything that YAML reads as something else
        text = yaml.safe_dump(value, default_style='"', allow_unicode=True, width=10_000).strip()
        return value if re.fullmatch(r"[A-Za-z][A-Za-z0-9._/-]*", value) and yaml.safe_load(value) == value else text

    def relative(target: Path) -> str:
        return quoted(Path(os.path.relpath(target.resolve(), base.resolve())).as_posix())

    full, blind = found.models(benchmark, "full"), found.models(benchmark, "blind")
    paired = [m for m in full if m in blind]
    lines = [
        f"# {benchmark}: {len(full)} models with image, {len(blind)} without, {len(paired)} with both.",
        *[f"# Missing: {_comment(m)}." for m in found.missing(benchmark)],
        f"pool: {quoted(pool or _pool_name(benchmark))}",
        f"benchmark: {quoted(benchmark)} # as in the file names",
        "data:",
        f"  folder: {relative(found.folder)} # paths start at this file's folder",
        f"  toolkit: {found.toolkit}",
    ]
    if found.blind_folder is not None:
        lines.append(f"  blind_folder: {relative(found.blind_folder)} # runs without image")
    if benchmark in found.datasets:
        lines.append(f"  dataset: {relative(found.datasets[benchmark])} # options as written, pictures")
    lines += [
        "models: # family and open are not in the files: fill them in for leave-one-family-out rows",
        *[f"  - {{name: {quoted(m)}}}" for m in found.models(benchmark)],
    ]
    judges = found.judges(benchmark)
    if judges:
        # the judge with the most files; exact matching only when there is no other
        best = max(judges, key=lambda j: (j != "exact_matching", judges[j], j))
        others = [j for j in judges if j != best]
        lines.append(f"judge: {quoted(best)}" + (f" # also here: {_comment(', '.join(others))}" if others else ""))
    lines += [
        "audit:",
        "  exact: [letters] # add option_text if models answer with an option's text, boxed for \\boxed{B}",
        "  failed: missing # failed calls: missing, or wrong",
        "  exclude_models: []",
        "",
    ]
    return "\n".join(lines)


def _comment(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f\u0085\u2028\u2029]+", " ", text)


def _beside(folder: Path, found: list[RunFile]) -> list[RunFile]:
    """Files that lie in the folder itself: ``MODEL_BENCHMARK``, the benchmark being what follows the last ``_``."""
    if any(f.kind == "predictions" for f in found):
        return []
    stems = [
        p.stem for p in folder.iterdir() if p.is_file() and p.suffix.lower() in layout.PREDICTIONS and "_" in p.stem
    ]
    names = {s.rpartition("_")[2] for s in stems} - {"result", "auxmatch", "score", "acc"}
    return [f for n in sorted(names) for f in layout.scan(folder, n) if f.benchmark == n and f.kind != "table"]


def _by_content(found: list[RunFile]) -> list[RunFile]:
    """Tell verdict files named ``MODEL_BENCHMARK_<judge>`` from predictions by their columns.

    Only a file whose name extends another benchmark's is opened.
    """
    names = {f.benchmark for f in found if f.kind == "predictions"}
    checked: dict[str, bool] = {}
    for name in sorted(names):
        if any(name.startswith(n + "_") for n in names - {name}):
            example = next(f for f in found if f.benchmark == name and f.kind == "predictions")
            columns = set(files.open_table(example.path).columns)
            checked[name] = "prediction" in columns and not columns & {"hit", "res", "log", "extract", "score"}
    return [replace(f, kind="table") if not checked.get(f.benchmark, True) else f for f in found]


def _unknown(folder: Path, found: list[RunFile]) -> AuditError:
    pickles = [f for f in found if f.kind == "pickle"]
    if pickles:
        return files.pickle_error(pickles[0].path)
    if layout.run_folders(folder):
        return AuditError(
            "the runs lie in run folders (T...), which are not read",
            file=folder,
            mend="copy the files of one run folder per model one level up, into MODEL/",
        )
    unknown = [f"{f.model}/{f.path.name}" for f in found if f.kind == "unknown"]
    tables = sorted(p.name for p in folder.iterdir() if p.suffix.lower() in files.READABLE)
    mend = "a VLMEvalKit results folder holds MODEL/MODEL_BENCHMARK.xlsx; name that folder"
    if unknown:
        mend += f" (not recognised: {', '.join(unknown[:4])})"
    if tables:
        mend += f", or read {tables[0]} with data: {{table: ...}} in a params file"
    return AuditError("no results of a known toolkit here", file=folder, mend=mend)
