"""What lies in a results folder: benchmarks, models, conditions, judges, and what an audit would lack."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from auditlib.readers import layout
from auditlib.readers.runfile import BLIND, RunFile

#: what ``judge`` chooses among, where it is no judge
JUDGE_WORDS = {"lm-eval": "filter", "lmms-eval": "metric", "inspect": "scorer"}


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

    def uses_blind_folder(self, benchmark: str) -> bool:
        """Whether runs of the benchmark lie in the folder beside this one."""
        beside = self.blind_folder
        return beside is not None and any(beside in f.path.parents for f in self.runs(benchmark))

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
        if not verdicts and self.toolkit != "every-eval-ever":  # each of its records has a score
            says.append("no verdict files: only the exact arm is possible")
        for judge in judges or ([""] if verdicts else []):
            lack = sorted(f"{m} ({c})" for m, c in runs if (m, c, judge) not in verdicts)
            if lack:
                says.append(f"no verdicts{f' of {judge}' if judge else ''} for {', '.join(lack)}")
        if len(judges) > 1:
            word = JUDGE_WORDS.get(self.toolkit, "judge")
            says.append(f"verdicts of {len(judges)} {word}s: 'judge' says which one counts")
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
            beside = (
                self.blind_folder.name if self.blind_folder is not None and self.uses_blind_folder(benchmark) else ""
            )
            says += [
                f"the runs without image are those in {beside}; if {c} is meant instead, write blind_benchmark: {c} "
                "and take blind_folder out"
                if beside
                else f"{c} may be this benchmark without image; if so, write blind_benchmark: {c}"
                for c in self.blind_candidates(benchmark)
            ]
        if self.toolkit != "vlmevalkit":
            runs = [(f.model, f.condition) for f in self.runs(benchmark) if f.condition != "blind"]
            says += [
                f"{runs.count(r)} runs of {r[0]} ({r[1]}), one of which is read; if one is without image, "
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
