"""Read a folder of VLMEvalKit results: predictions, verdicts and, where given, the dataset's own table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from auditlib import frames
from auditlib.errors import AuditError
from auditlib.frames import coverage_row
from auditlib.readers import cells, files, judged, layout
from auditlib.readers.dataset import items_frame, open_toolkit_table, read_dataset, without_copies
from auditlib.readers.layout import RunFile


@dataclass(frozen=True)
class _Run:
    """What one model's run of one condition gave."""

    items: pd.DataFrame
    responses: pd.DataFrame
    judgements: pd.DataFrame | None
    inputs: list[Path]


def read_vlmevalkit(
    folder: str | Path,
    benchmark: str,
    *,
    blind_folder: str | Path | None = None,
    judge: str | None = None,
    dataset: str | Path | None = None,
    models: Sequence[str] | None = None,
    exclude: Iterable[str] = (),
) -> frames.Runs:
    """Read the runs of one benchmark from a flat results folder.

    Parameters
    ----------
    folder : the toolkit's ``work_dir``: one folder per model with ``MODEL_BENCHMARK.xlsx`` (or tsv, json).
    benchmark : the benchmark's name exactly as in the file names; ``TinySee`` does not take in ``TinySee_circular``.
    blind_folder : results folder of the runs without image; by default ``MODEL_blind`` folders, else a sibling folder
        such as ``outputs_text-only``.
    judge : judge name as in the verdict files, needed when several lie there.
    dataset : the dataset's own TSV; ``BENCHMARK.tsv`` in the folder is taken when not given.
    models : read these models only; all when not given.
    exclude : models to leave out.

    Returns
    -------
    Runs
        ``judgements`` has one column beyond the contract: ``hit_stored``, the verdict as the file holds it. ``hit``
        is NaN where the verdict was a random fill or came from an old cache.

    Raises
    ------
    AuditError
        No readable run, several judges and no choice, an id twice with different content, a damaged file.

    Examples
    --------
    >>> from auditlib.synth.embedded import materialise
    >>> runs = read_vlmevalkit(materialise("tinysee", "outputs"), "TinySee")
    >>> len(runs.responses), runs.provenance["judge"]
    (2400, 'tiny-judge')
    """
    folder, excluded = Path(folder), set(exclude)
    found, coverage = _files(folder, benchmark, Path(blind_folder) if blind_folder else None)
    chosen = _choose_judge(found, judge, folder, benchmark)
    runs: list[_Run] = []
    heard: dict[str, pd.Series] = {}
    for (model, condition), group in _groups(found).items():
        note = partial(coverage_row, model=model, condition=condition)
        if model in excluded or (models is not None and model not in models):
            why = "excluded in the params" if model in excluded else "not among the models asked for"
            coverage.append(note("excluded", n=1, reason=why))
            continue
        run, rows = _read_run(group, note, chosen, folder, heard.get(model))
        coverage += rows
        if run is not None:
            runs.append(run)
            heard.setdefault(model, run.responses.set_index("item")["prediction"])
    for model in sorted(excluded - {f.model for f in found}):
        coverage.append(coverage_row("warning", n=0, model=model, reason="to be excluded, but there is no such model"))
    if not runs:
        raise _nothing(folder, benchmark, found, excluded)
    table, inputs = _dataset(folder, benchmark, Path(dataset) if dataset else None)
    inputs += [p for r in runs for p in r.inputs]
    verdicts = [r.judgements for r in runs if r.judgements is not None]
    responses = pd.concat([r.responses for r in runs], ignore_index=True)
    return frames.Runs(
        items=pd.concat([r.items for r in runs], ignore_index=True),
        models=frames.frame("models", [{"model": m} for m in responses["model"].unique()]),
        responses=responses,
        judgements=pd.concat(verdicts, ignore_index=True) if verdicts else frames.frame("judgements"),
        coverage=frames.frame("coverage", coverage),
        dataset=table,
        inputs=tuple(dict.fromkeys(inputs)),
        provenance={"toolkit": "VLMEvalKit", "judge": chosen},
    )


def _files(folder: Path, benchmark: str, blind_folder: Path | None) -> tuple[list[RunFile], list[dict[str, Any]]]:
    """Files of the benchmark, blind runs of another folder included, and what is left out of them."""
    scanned = layout.scan(folder, benchmark)
    found, unknown = [f for f in scanned if f.benchmark == benchmark], [f for f in scanned if f.kind == "unknown"]
    coverage: list[dict[str, Any]] = []
    has_blind = any(f.condition == "blind" and f.kind in layout.RUNS for f in found)
    beside = blind_folder or (None if has_blind else layout.sibling_blind(folder))
    if beside is not None:
        scanned = layout.scan(beside, benchmark, condition="blind")
        blind = [f for f in scanned if f.benchmark == benchmark]
        unknown += [f for f in scanned if f.kind == "unknown"]
        if blind_folder and not blind:
            mend = "check blind_folder, or the benchmark's name"
            raise AuditError(f"no run of {benchmark!r} in the blind folder", file=blind_folder, mend=mend)
        replaced = {f.model for f in blind}
        dropped = [f for f in found if f.condition == "blind" and f.model in replaced]
        reason = "the run of the blind folder is used"
        coverage += [_about(f, folder)("excluded", n=1, reason=reason) for f in dropped]
        found = [f for f in found if f not in dropped] + blind
    for f in found:
        if f.kind == "pickle":
            reason = "a pickle is never opened; convert it to tsv where it was written if its table is missing"
            coverage.append(_about(f, folder)("unreadable", n=1, reason=reason))
        elif f.kind == "dangling":
            reason = "a link that leads nowhere; copy the file it meant"
            coverage.append(_about(f, folder)("unreadable", n=1, reason=reason))
    for f in unknown:
        reason = "file not recognised, not read; its name should be MODEL/MODEL_BENCHMARK.xlsx"
        coverage.append(coverage_row("unreadable", n=1, run=_label(f.path, folder), reason=reason))
    for path in layout.run_folders(folder):
        reason = "files in run folders (T...) are not read; copy those of one run into the model's folder"
        coverage.append(coverage_row("unreadable", n=1, run=_label(path, folder), reason=reason))
    return found, coverage


def _choose_judge(found: list[RunFile], judge: str | None, folder: Path, benchmark: str) -> str | None:
    names = sorted({f.judge for f in found if f.kind == "result"})
    unnamed = any(f.kind == "auxmatch" for f in found)
    if judge is not None:
        judge = layout.JUDGE_ALIASES.get(judge, judge)
        if judge in names or unnamed:
            return judge
        has = f"judges here: {', '.join(names)}" if names else "no verdict files here"
        mend = f"{has}; correct 'judge', or leave it out"
        raise AuditError(f"no verdicts of judge {judge!r} for {benchmark}", file=folder, mend=mend)
    if len(names) > 1:
        what = f"verdicts of several judges for {benchmark}: {', '.join(names)}"
        raise AuditError(what, file=folder, mend="choose one with 'judge: NAME' in the params")
    return names[0] if names else ("auxmatch" if unnamed else None)


def _groups(found: list[RunFile]) -> dict[tuple[str, str], list[RunFile]]:
    """Files by model and condition, models in order of their names, full runs first."""
    groups: dict[tuple[str, str], list[RunFile]] = {}
    for f in sorted(found, key=lambda f: (f.model, f.condition != "full", f.condition)):
        groups.setdefault((f.model, f.condition), []).append(f)
    return groups


def _read_run(
    group: list[RunFile], note: partial, judge: str | None, folder: Path, other: pd.Series | None
) -> tuple[_Run | None, list[dict[str, Any]]]:
    """One model and condition: predictions (or, where only these are left, the verdict file's copy of them)."""
    order = {suffix: i for i, suffix in enumerate(layout.PREDICTIONS)}
    by_format = sorted(group, key=lambda f: order.get(f.path.suffix.lower(), len(order)))
    predictions = [f for f in by_format if f.kind == "predictions"]
    verdicts = [f for f in by_format if f.kind == "auxmatch" or (f.kind == "result" and f.judge == judge)]
    source = (predictions or verdicts or [None])[0]
    if source is None:
        return None, []
    reason = f"the same run in another format; {source.path.name} is read"
    coverage = [
        note("excluded", n=1, run=_label(f.path, folder), reason=reason) for f in (*predictions[1:], *verdicts[1:])
    ]
    run = _label(source.path, folder)
    note = partial(note, run=run)
    table = open_toolkit_table(source.path)
    items = items_frame(table, source.path).assign(prediction=table["prediction"], written=_written(table))
    items, copies = without_copies(items, source.path, extra=("prediction",))
    for copy in copies.itertuples():
        coverage.append(note("duplicate", n=1, item=copy.item, reason=f"row {copy.row} repeats an earlier one"))
    if n := int((items["key"] != items["written"]).sum()):
        coverage.append(note("warning", n=n, reason="keys are the text of an option; its letter is taken"))
    coverage.append(note("read", n=len(items)))
    responses = _responses(items, run, source)
    coverage += _damage(items, responses, source.path, note)
    judgements, inputs = None, [source.path]
    if verdicts:
        judgements, rows = _judgements(verdicts[0], items, judge, folder, other)
        coverage += rows
        inputs.append(verdicts[0].path)
    elif judge is not None:
        coverage.append(note("not run", n=len(items), reason=f"no verdicts of judge {judge!r}"))
    items = items.drop(columns=["prediction", "written"]).assign(run=run)
    return _Run(items, responses, judgements, inputs), coverage


def _written(table: pd.DataFrame) -> pd.Series:
    """Keys as the file gives them."""
    return cells.keys(table["answer"]) if "answer" in table.columns else pd.Series("", index=table.index, dtype="str")


def _responses(items: pd.DataFrame, run: str, source: RunFile) -> pd.DataFrame:
    prediction = items["prediction"].reset_index(drop=True)
    return pd.DataFrame(
        {
            "run": run,
            "row": items["row"].to_numpy(),
            "item": items["item"].to_numpy(),
            "model": source.model,
            "condition": source.condition,
            "sample": 0,
            "prediction": prediction,
            "status": cells.prediction_status(prediction),
            "refused": cells.refused(prediction),
        }
    )


def _damage(items: pd.DataFrame, responses: pd.DataFrame, path: Path, note: partial) -> list[dict[str, Any]]:
    """Replies that are no answers, and what a spreadsheet may have done to them, with counts."""
    rows = []
    if path.suffix.lower() == ".xlsx":
        choice = (items["answer_type"] == "choice").to_numpy()
        no_zero = np.fromiter(("0" not in o for o in items["options"]), bool, len(items))
        zeros = int(((responses["prediction"].str.strip() == "0").to_numpy() & choice & no_zero).sum())
        if zeros:
            reason = "replies are the number 0 where no option is: older files hold 0 for a reply that starts with '='"
            rows.append(note("warning", n=zeros, reason=reason))
    for status, what in (
        ("failed", "failed calls"),
        ("filtered", "calls stopped by a content filter"),
        ("missing", "empty replies"),
        ("truncated", "replies cut at 32,767 characters"),
    ):
        n = int((responses["status"] == status).sum())
        if n:
            rows.append(note("warning", n=n, reason=what))
    return rows


def _judgements(
    f: RunFile, items: pd.DataFrame, judge: str | None, folder: Path, other: pd.Series | None
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Verdicts joined by item id, with the source of each; ``other`` are the replies of the model's other run."""
    note = _about(f, folder)
    table = open_toolkit_table(f.path)
    # an empty verdict must equal an empty verdict when copies are compared
    facts = items_frame(table, f.path).assign(
        hit=pd.Series(judged.hits(table, f.path), table.index).fillna(-1), written=_written(table)
    )
    facts, copies = without_copies(facts, f.path, extra=("hit",))
    coverage = [
        note("duplicate", n=1, item=c.item, reason=f"row {c.row} repeats an earlier one") for c in copies.itertuples()
    ]
    table = table.loc[facts.index].set_index(facts["item"])
    known = pd.Index(items["item"])
    shared = known.intersection(table.index, sort=False)
    if surplus := len(table) - len(shared):
        coverage.append(note("excluded", n=surplus, reason="verdicts on items that the run does not hold"))
    if lacking := len(known) - len(shared):
        coverage.append(note("warning", n=lacking, reason="items without a verdict"))
    table, own = table.loc[shared], items.set_index("item").loc[shared]
    facts = facts.set_index("item").loc[shared]
    if "answer" in table.columns and (own["written"] != "").any():
        judged.check_keys(own, facts, f.path)
    stored = facts["hit"].replace(-1.0, np.nan).to_numpy()
    if f.kind == "auxmatch":
        extracted = judged.column(table, "extracted")
        sources = judged.yesno_sources(extracted, table["prediction"], own["prediction"])
    else:
        logs = judged.column(table, "log")
        letters = [{chr(ord("A") + i) for i, t in enumerate(o) if t.strip()} for o in own["options"]]
        others = other.reindex(shared).fillna("") if other is not None else None
        sources = judged.choice_sources(logs, table["prediction"], own["prediction"], letters, others)
        extracted = judged.replies(logs, sources)
    verdicts = pd.DataFrame(
        {
            "run": _label(f.path, folder),
            "item": np.asarray(shared, dtype=object),
            "model": f.model,
            "condition": f.condition,
            "sample": 0,
            "judge": judge,
            "hit": np.where(np.isin(sources, judged.VOID), np.nan, stored),
            "extracted": np.asarray(extracted, dtype=object),
            "source": sources,
            "hit_stored": stored,
        }
    )
    coverage.append(note("read", n=len(verdicts), reason="verdicts"))
    return verdicts, coverage + [note("warning", n=n, reason=why) for n, why in judged.remarks(sources, stored, judge)]


def _dataset(folder: Path, benchmark: str, path: Path | None) -> tuple[pd.DataFrame | None, list[Path]]:
    if path is None:
        path = folder / f"{benchmark}.tsv"
        if not path.is_file():
            return None, []
    return read_dataset(path), [path]


def _label(path: Path, folder: Path) -> str:
    """Path relative to the results folder, with forward slashes."""
    return Path(os.path.relpath(path, folder)).as_posix()


def _about(f: RunFile, folder: Path) -> partial:
    return partial(coverage_row, run=_label(f.path, folder), model=f.model, condition=f.condition)


def _nothing(folder: Path, benchmark: str, found: list[RunFile], excluded: set[str]) -> AuditError:
    """Why there is nothing to read."""
    if any(f.model in excluded and f.kind in layout.RUNS for f in found):
        return AuditError("every model is excluded", file=folder, mend="shorten exclude_models")
    pickles = [f.path for f in found if f.kind == "pickle"]
    if pickles:
        return files.pickle_error(pickles[0])
    if layout.run_folders(folder):
        mend = "copy the files of one run folder (T...) per model one level up"
        return AuditError(f"no run of {benchmark!r} lies in the model folders themselves", file=folder, mend=mend)
    scanned = layout.scan(folder)
    names = layout.benchmark_names(scanned)
    unknown = [_label(f.path, folder) for f in scanned if f.kind == "unknown"]
    if unknown and not names:
        mend = f"rename them to MODEL/MODEL_{benchmark}.xlsx; not recognised: {', '.join(unknown[:4])}"
        return AuditError(f"no run of {benchmark!r} to read", file=folder, mend=mend)
    has = f"benchmarks here: {', '.join(names)}" if names else "it should hold MODEL/MODEL_BENCHMARK.xlsx"
    return AuditError(f"no run of {benchmark!r} to read", file=folder, mend=has)
