"""Recognise results folders by their content: which toolkit, which benchmarks, models, conditions and judges."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

import yaml

from auditlib.errors import AuditError
from auditlib.params import Params, check_params
from auditlib.readers import discover_roots, files, layout
from auditlib.readers.runfile import BLIND, RunFile

#: modules whose ``scan`` lists the runs of a toolkit; VLMEvalKit's is layout.py
SCANS = {
    "lmms-eval": "auditlib.readers.lmms_eval",
    "lm-eval": "auditlib.readers.lm_eval",
    "inspect": "auditlib.readers.inspect_logs",
    "every-eval-ever": "auditlib.readers.every_eval_ever",
}
_WORDS = ("blind", "text", "noimg", "noimage", "no_image", "no-image")


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
    notes : what could not be looked at, and folders beside it that may hold runs without image.
    """

    folder: Path
    blind_folder: Path | None
    toolkit: str
    files: tuple[RunFile, ...]
    datasets: dict[str, Path]
    notes: tuple[str, ...] = ()

    @property
    def benchmarks(self) -> list[str]:
        """Benchmarks with runs."""
        return layout.benchmark_names(self.files)

    def models(self, benchmark: str, condition: str | None = None) -> list[str]:
        """Models with a run of the benchmark, in one condition or in any."""
        return sorted({f.model for f in self.runs(benchmark) if condition in (None, f.condition)})

    def runs(self, benchmark: str) -> list[RunFile]:
        """Runs of the benchmark, and as ``blind`` those of the task that is paired with it."""
        return [f for f in self._named(benchmark) if f.kind in layout.RUNS]

    def blind_candidates(self, benchmark: str) -> list[str]:
        """Benchmarks whose name is this one's and an ending for runs without image."""
        return [b for b in self.benchmarks if b in {benchmark + e for e in BLIND}]

    def blind_benchmark(self, benchmark: str) -> str | None:
        """The task that is this benchmark without image: the only candidate, where no other run is without image."""
        candidates = self.blind_candidates(benchmark)
        own = any(f.benchmark == benchmark and f.condition == "blind" for f in self.files if f.kind in layout.RUNS)
        return candidates[0] if len(candidates) == 1 and not own else None

    def judges(self, benchmark: str) -> dict[str, int]:
        """Stored verdicts to choose among and how many files have each; yes/no files name none."""
        if self.toolkit == "vlmevalkit":
            names = [f.judge for f in self._named(benchmark) if f.kind == "result"]
        else:
            names = [j for f in self.runs(benchmark) for j in (f.judges or ((f.judge,) if f.judge else ()))]
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
        runs = {(f.model, f.condition) for f in self.runs(benchmark)}
        verdicts = self._verdicts(benchmark)
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
            f"{Path(os.path.relpath(f.path, self.folder)).as_posix()} {why}"
            for f in self.files
            if (
                why := {"unknown": "is not recognised and not read", "dangling": "is a link that leads nowhere"}.get(
                    f.kind
                )
            )
        ]
        if benchmark not in self.datasets and self.toolkit == "vlmevalkit":
            says.append(f"no {benchmark}.tsv: options as written and pictures are unknown")
        return says

    def remarks(self, benchmark: str) -> list[str]:
        """What the user has to decide: pairs that are not certain."""
        says = list(self.notes)
        if self.blind_benchmark(benchmark) is None:
            says += [
                f"{c} may be this benchmark without image; if so, write blind_benchmark: {c}"
                for c in self.blind_candidates(benchmark)
            ]
        if self.toolkit != "vlmevalkit":
            runs = [(f.model, f.condition, f.benchmark) for f in self.runs(benchmark)]
            says += [
                f"{runs.count(r)} runs of {r[0]} ({r[1]}); if one is without image, "
                f'say so with conditions: {{"PATTERN OF THE PATH": blind}}'
                for r in sorted(set(runs))
                if runs.count(r) > 1
            ]
        return says

    def _named(self, benchmark: str) -> list[RunFile]:
        other = self.blind_benchmark(benchmark)
        blind = [replace(f, condition="blind") for f in self.files if other and f.benchmark == other]
        return [f for f in self.files if f.benchmark == benchmark] + blind

    def _verdicts(self, benchmark: str) -> set[tuple[str, str, str]]:
        if self.toolkit != "vlmevalkit":
            return {(f.model, f.condition, j) for f in self.runs(benchmark) for j in f.judges or (f.judge,) if j}
        return {(f.model, f.condition, f.judge) for f in self._named(benchmark) if f.kind in ("result", "auxmatch")}


def discover_all(folder: str | Path, *, blind_folder: str | Path | None = None) -> list[Found]:
    """Look at a tree: one :class:`Found` per results folder and toolkit.

    A folder of runs without image that belongs to another results folder is part of that one, and not one of its own.

    Raises
    ------
    AuditError
        Nothing there is recognised: the message says what was looked for, and what lies there instead.
    """
    folder = Path(folder)
    if not folder.is_dir():
        layout.scan(folder)  # says that there is none, or that it is a file
    tree = discover_roots.look(folder)
    roots = list(tree.roots)
    if not roots or (
        (folder, "vlmevalkit") not in roots and all(kit == "vlmevalkit" and _in_folder(r, folder) for r, kit in roots)
    ):
        roots = [(folder, "vlmevalkit")]
    beside = Path(blind_folder) if blind_folder is not None else None
    founds = [f for root, kit in roots if (f := _look(root, kit, beside)) is not None]
    paired = {f.blind_folder.resolve() for f in founds if f.blind_folder is not None}
    founds = [f for f in founds if f.folder.resolve() not in paired]
    if not founds:
        raise _unknown(folder, layout.scan(folder), tree.notes)
    return [replace(f, notes=(*f.notes, *tree.notes, *_near(f))) if len(founds) == 1 else
            replace(f, notes=(*f.notes, *_near(f))) for f in founds]  # fmt: skip


def discover(
    folder: str | Path,
    *,
    benchmark: str | None = None,
    toolkit: str | None = None,
    blind_folder: str | Path | None = None,
) -> Found:
    """Look at one results folder.

    Parameters
    ----------
    folder : a results folder, or one that holds a single results folder.
    benchmark, toolkit : which one is meant, where several lie there.
    blind_folder : folder of the runs without image, when it is no sibling with a usual name.

    Returns
    -------
    Found

    Raises
    ------
    AuditError
        Nothing there is recognised, or several results folders fit: the message lists them.

    Examples
    --------
    >>> from auditlib.synth.embedded import materialise
    >>> discover(materialise("tinysee", "outputs")).judges("TinySee")
    {'tiny-judge': 8}
    """
    return the_one(discover_all(folder, blind_folder=blind_folder), Path(folder), benchmark, toolkit)


def the_one(founds: Sequence[Found], folder: Path, benchmark: str | None, toolkit: str | None = None) -> Found:
    """The one results folder that is meant, or AuditError with those that fit."""
    if toolkit is not None:
        fit = [f for f in founds if f.toolkit == toolkit]
        if not fit:
            kits = sorted({f.toolkit for f in founds})
            raise AuditError(f"no results of {toolkit} here", file=folder, mend=f"toolkits here: {', '.join(kits)}")
        founds = fit
    fit = [f for f in founds if benchmark is None or benchmark in f.benchmarks]
    if len(fit) == 1:
        return fit[0]
    if not fit:
        names = sorted({b for f in founds for b in f.benchmarks})
        raise AuditError(f"no run of {benchmark!r}", file=folder, mend=f"benchmarks here: {', '.join(names)}")
    said = ", ".join(f"{Path(os.path.relpath(f.folder, folder)).as_posix()} ({f.toolkit})" for f in fit)
    raise AuditError(f"the folder holds {len(fit)} sets of results: {said}", file=folder,
                     mend="name the subfolder of one of them, or its toolkit with --toolkit")  # fmt: skip


def toolkit_of(folder: str | Path) -> str:
    """Toolkit that wrote a results folder.

    Raises
    ------
    AuditError
        None that is known, or several.
    """
    kits = sorted({f.toolkit for f in discover_all(folder)})
    if len(kits) > 1:
        raise AuditError(f"results of {len(kits)} toolkits lie here: {', '.join(kits)}", file=Path(folder),
                         mend="name one with data.toolkit")  # fmt: skip
    return kits[0]


def params_of_folder(folder: str | Path, benchmark: str | None = None) -> Params:
    """Params of a results folder without a file of their own: what :func:`write_params` would write.

    Raises
    ------
    AuditError
        The folder holds several benchmarks and none is named, or not the one that is.
    """
    from auditlib.readers.discover_params import held, params_text

    found = discover(folder, benchmark=benchmark)
    names = chief_benchmarks(found)
    if benchmark is None and len(names) > 1:
        here = f"benchmarks here: {', '.join(found.benchmarks)}"
        raise AuditError("the folder holds several benchmarks", file=folder, mend=f"name one with --benchmark; {here}")
    text = params_text(found, held(found, benchmark or names[0]), None, found.folder)
    return check_params(yaml.safe_load(text), found.folder / "params.yaml").model_copy(update={"source": None})


def chief_benchmarks(found: Found) -> list[str]:
    """Benchmarks of a results folder without those that are another's runs without image."""
    paired = {found.blind_benchmark(b) for b in found.benchmarks}
    return [b for b in found.benchmarks if b not in paired]


def _scan(folder: Path, toolkit: str) -> list[RunFile]:
    try:
        module = import_module(SCANS[toolkit])
    except ModuleNotFoundError as e:
        if e.name != SCANS[toolkit]:
            raise
        return []
    return module.scan(folder)


def _look(root: Path, toolkit: str, beside: Path | None) -> Found | None:
    if toolkit == "vlmevalkit":
        return _look_vlmevalkit(root, beside)
    found = [f for f in _scan(root, toolkit) if f.kind != "table"]
    stated, beside = beside is not None, beside or layout.sibling_blind(root)
    extra = [replace(f, condition="blind") for f in _scan(beside, toolkit)] if beside is not None else []
    extra = [f for f in extra if f.kind in layout.RUNS]
    if not stated:
        own = {(f.model, f.benchmark) for f in found if f.condition == "blind"}
        extra = [f for f in extra if (f.model, f.benchmark) not in own]
    found += extra
    return Found(root, beside if extra else None, toolkit, tuple(found), {}) if layout.benchmark_names(found) else None


def _look_vlmevalkit(folder: Path, blind_folder: Path | None) -> Found | None:
    found = layout.scan(folder)
    found = [f for f in found if f.kind != "table"] + _beside(folder, found)
    beside = blind_folder
    if blind_folder is not None:
        found += layout.scan(blind_folder, condition="blind")
    else:
        beside = layout.sibling_blind(folder)
        if beside is not None:
            extra = layout.scan(beside, condition="blind")
            own = {(f.model, f.benchmark) for f in found if f.condition == "blind"}
            extra = [f for f in extra if (f.model, f.benchmark) not in own and f.kind != "table"]
            found, beside = found + extra, beside if layout.benchmark_names(extra) else None
    found = [f for f in _by_content(found) if f.kind != "table"]
    names = layout.benchmark_names(found)
    datasets = {b: p for b in names if (p := folder / f"{b}.tsv").is_file()}
    return Found(folder, beside, "vlmevalkit", tuple(found), datasets) if names else None


def _in_folder(root: Path, folder: Path) -> bool:
    """Whether a results folder is only a group of models of the folder, ``FOLDER/ORG/MODEL``."""
    return root != folder and root.parent == folder and any(
        p.stem.startswith(f"{root.name}--") for p in root.glob("*/*.*")
    )  # fmt: skip


def _near(found: Found) -> list[str]:
    """Folders beside a results folder whose names speak of runs without image, but are not the usual ones."""
    home = found.folder.resolve()
    try:
        names = sorted(p.name for p in home.parent.iterdir() if p.is_dir())
    except OSError:
        return []
    used = found.blind_folder.resolve().name if found.blind_folder is not None else None
    near = [n for n in names if n.startswith((home.name + "_", home.name + "-")) and n != used]
    return [
        f"{n} beside this folder may hold its runs without image; if so, write blind_folder: with its path"
        for n in near
        if any(w in n[len(home.name) :].lower() for w in _WORDS)
    ]


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


def _unknown(folder: Path, found: Iterable[RunFile], notes: Sequence[str]) -> AuditError:
    pickles = [f for f in found if f.kind == "pickle"]
    loose = sorted(p for p in folder.iterdir() if p.suffix.lower() in (".pkl", ".pickle"))
    if pickles or loose:
        return files.pickle_error(pickles[0].path if pickles else loose[0])
    unknown = [f"{f.model}/{f.path.name}" for f in found if f.kind == "unknown"]
    tables = sorted(p.name for p in folder.iterdir() if p.suffix.lower() in files.READABLE)
    mend = (
        "name the folder that holds MODEL/MODEL_BENCHMARK.xlsx of VLMEvalKit, the samples of lmms-eval or lm-eval "
        "(--log_samples), logs of Inspect, or Every Eval Ever files"
    )
    if unknown:
        mend += f" (not recognised: {', '.join(unknown[:4])})"
    if notes:
        mend += f" ({'; '.join(notes[:3])})"
    if tables:
        mend += f", or read {tables[0]} with data: {{table: ...}} in a params file"
    held = "" if any(folder.iterdir()) else ": the folder is empty"
    return AuditError(f"no results of a known toolkit here{held}", file=folder, mend=mend)
