"""Read a folder of VLMEvalKit results: predictions, verdicts and, where given, the dataset's own table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from auditlib import frames
from auditlib.errors import AuditError
from auditlib.readers import cells, files, judged, layout
from auditlib.readers.dataset import column_names, items_frame, read_dataset, without_copies
from auditlib.readers.layout import RunFile


@dataclass(frozen=True)
class _Run:
    """What one model's run of one condition gave."""

    items: pd.DataFrame
    responses: pd.DataFrame
    judgements: pd.DataFrame | None
    coverage: list[dict[str, Any]]
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
    """
    folder = Path(folder)
    excluded = set(exclude)
    found, coverage = _files(folder, benchmark, Path(blind_folder) if blind_folder else None)
    chosen = _choose_judge(found, judge, folder, benchmark)
    runs: list[_Run] = []
    heard: dict[str, pd.Series | None] = {}
    for (model, condition), group in _groups(found).items():
        if model in excluded or (models is not None and model not in models):
            why = "excluded in the params" if model in excluded else "not among the models asked for"
            coverage.append(frames.coverage_row("excluded", n=1, model=model, condition=condition, reason=why))
            continue
        run = _read_run(group, model, condition, chosen, folder, heard.get(model))
        coverage += run.coverage
        heard.setdefault(model, run.responses.set_index("item")["prediction"] if len(run.responses) else None)
        runs.append(run)
    unknown = sorted(excluded - {f.model for f in found})
    coverage += [
        frames.coverage_row("warning", n=0, model=m, reason="to be excluded, but there is no such model")
        for m in unknown
    ]
    runs = [r for r in runs if len(r.responses)]
    if not runs:
        raise _nothing(folder, benchmark, found)
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
    found = [f for f in layout.scan(folder, benchmark) if f.benchmark == benchmark]
    coverage: list[dict[str, Any]] = []
    has_blind = any(f.condition == "blind" and f.kind == "predictions" for f in found)
    beside = blind_folder or (None if has_blind else layout.sibling_blind(folder))
    if beside is not None:
        blind = [f for f in layout.scan(beside, benchmark, condition="blind") if f.benchmark == benchmark]
        if blind_folder and not blind:
            raise AuditError(
                f"no run of {benchmark!r} in the blind folder",
                file=blind_folder,
                mend="check blind_folder, or the benchmark's name",
            )
        replaced = {f.model for f in blind}
        dropped = [f for f in found if f.condition == "blind" and f.model in replaced]
        for f in dropped:
            coverage.append(
                frames.coverage_row(
                    "excluded",
                    n=1,
                    run=_label(f.path, folder),
                    model=f.model,
                    condition="blind",
                    reason="the run of blind_folder is used",
                )
            )
        found = [f for f in found if f not in dropped] + blind
    for f in found:
        if f.kind == "pickle":
            reason = "a pickle is never opened; convert it to tsv where it was written if its table is missing"
        elif f.kind == "dangling":
            reason = "a link that leads nowhere; copy the file it meant"
        else:
            continue
        coverage.append(
            frames.coverage_row(
                "unreadable", n=1, run=_label(f.path, folder), model=f.model, condition=f.condition, reason=reason
            )
        )
    for model_folder in layout.run_folders(folder):
        coverage.append(
            frames.coverage_row(
                "unreadable",
                n=1,
                run=_label(model_folder, folder),
                reason=("files in run folders (T...) are not read; copy those of one run into the model's folder"),
            )
        )
    return found, coverage


def _choose_judge(found: list[RunFile], judge: str | None, folder: Path, benchmark: str) -> str | None:
    names = sorted({f.judge for f in found if f.kind == "result"})
    unnamed = any(f.kind == "auxmatch" for f in found)
    if judge is not None:
        judge = layout.JUDGE_ALIASES.get(judge, judge)
        if judge in names or unnamed:
            return judge
        has = f"judges here: {', '.join(names)}" if names else "no verdict files here"
        raise AuditError(
            f"no verdicts of judge {judge!r} for {benchmark}",
            file=folder,
            mend=f"{has}; correct 'judge', or leave it out",
        )
    if len(names) > 1:
        raise AuditError(
            f"verdicts of several judges for {benchmark}: {', '.join(names)}",
            file=folder,
            mend="choose one with 'judge: NAME' in the params",
        )
    return names[0] if names else ("auxmatch" if unnamed else None)


def _groups(found: list[RunFile]) -> dict[tuple[str, str], list[RunFile]]:
    groups: dict[tuple[str, str], list[RunFile]] = {}
    for f in sorted(found, key=lambda f: (f.model, f.condition != "full", f.condition)):
        groups.setdefault((f.model, f.condition), []).append(f)
    return groups


def _read_run(
    group: list[RunFile], model: str, condition: str, judge: str | None, folder: Path, other: pd.Series | None
) -> _Run:
    """One model and condition: predictions (or, where only these are left, the verdict file's copy of them)."""
    order = {suffix: i for i, suffix in enumerate(layout.PREDICTIONS)}
    by_format = sorted(group, key=lambda f: order.get(f.path.suffix, len(order)))
    predictions = [f for f in by_format if f.kind == "predictions"]
    verdicts = [f for f in by_format if f.kind == "auxmatch" or (f.kind == "result" and f.judge == judge)]
    source = (predictions or verdicts or [None])[0]
    coverage: list[dict[str, Any]] = []
    facts = {"model": model, "condition": condition}
    coverage += [
        frames.coverage_row(
            "excluded",
            n=1,
            run=_label(f.path, folder),
            **facts,
            reason=f"the same run in another format; {source.path.name} is read",
        )
        for f in [*predictions[1:], *verdicts[1:]]
    ]
    if source is None:
        return _Run(frames.frame("items"), frames.frame("responses"), None, coverage, [])
    run = _label(source.path, folder)
    table = _open(source.path)
    items = items_frame(table, source.path).assign(prediction=table["prediction"].to_numpy())
    items, copies = without_copies(items, source.path, extra=("prediction",))
    table = table.loc[items.index]
    coverage += [
        frames.coverage_row("duplicate", n=1, run=run, **facts, item=c.item, reason=f"row {c.row} repeats it")
        for c in copies.itertuples()
    ]
    coverage.append(frames.coverage_row("read", n=len(items), run=run, **facts))
    responses = _responses(items, run, model, condition)
    coverage += _warnings(items, responses, source.path, run, facts)
    judgements, inputs = None, [source.path]
    if verdicts:
        judgements, more = _judgements(verdicts[0], items, judge, folder, other)
        coverage += more
        inputs.append(verdicts[0].path)
    elif judge is not None:
        coverage.append(
            frames.coverage_row("not run", n=len(items), run=run, **facts, reason=f"no verdicts of judge {judge!r}")
        )
    items = items.drop(columns="prediction").assign(run=run)
    return _Run(items, responses, judgements, coverage, inputs)


def _open(path: Path) -> pd.DataFrame:
    table = files.open_table(path)
    table = table.rename(columns=column_names(table.columns))
    if "prediction" not in table.columns:
        raise AuditError(
            f"no column 'prediction' (columns: {', '.join(table.columns[:12])})",
            file=path,
            row=1,
            mend="this is no prediction file; remove it, or name the column 'prediction'",
        )
    return table


def _responses(items: pd.DataFrame, run: str, model: str, condition: str) -> pd.DataFrame:
    prediction = items["prediction"].reset_index(drop=True)
    return pd.DataFrame(
        {
            "run": run,
            "row": items["row"].to_numpy(),
            "item": items["item"].to_numpy(),
            "model": model,
            "condition": condition,
            "sample": 0,
            "prediction": prediction,
            "status": cells.prediction_status(prediction),
            "refused": cells.refused(prediction),
        }
    )


def _warnings(items: pd.DataFrame, responses: pd.DataFrame, path: Path, run: str, facts: dict) -> list[dict[str, Any]]:
    """Damage that a spreadsheet may have done, with counts."""
    rows = []
    if path.suffix == ".xlsx":
        choice = (items["answer_type"] == "choice").to_numpy()
        no_zero = np.fromiter(("0" not in o for o in items["options"]), bool, len(items))
        zeros = int(((responses["prediction"].str.strip() == "0").to_numpy() & choice & no_zero).sum())
        if zeros:
            reason = "replies are the number 0 where no option is: older files hold 0 for a reply that starts with '='"
            rows.append(frames.coverage_row("warning", n=zeros, run=run, **facts, reason=reason))
    for status, what in (
        ("failed", "failed calls"),
        ("filtered", "calls stopped by a content filter"),
        ("missing", "empty replies"),
        ("truncated", "replies cut at 32,767 characters"),
    ):
        n = int((responses["status"] == status).sum())
        if n:
            rows.append(frames.coverage_row("warning", n=n, run=run, **facts, reason=what))
    return rows


def _judgements(
    f: RunFile, items: pd.DataFrame, judge: str | None, folder: Path, other: pd.Series | None
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Verdicts joined by item id, with the source of each; ``other`` are the replies of the model's other run."""
    run, facts = _label(f.path, folder), {"model": f.model, "condition": f.condition}
    table = _open(f.path)
    facts_of = items_frame(table, f.path).assign(hit=judged.hits(table, f.path))
    facts_of, copies = without_copies(facts_of.assign(hit=facts_of["hit"].fillna(-1)), f.path, extra=("hit",))
    coverage = [
        frames.coverage_row("duplicate", n=1, run=run, **facts, item=c.item, reason=f"row {c.row} repeats it")
        for c in copies.itertuples()
    ]
    table = table.loc[facts_of.index].set_index(facts_of["item"])
    hit = facts_of.set_index("item")["hit"].replace(-1.0, np.nan)
    known = pd.Index(items["item"])
    surplus = table.index.difference(known)
    if len(surplus):
        coverage.append(
            frames.coverage_row(
                "excluded", n=len(surplus), run=run, **facts, reason="verdicts on items the run does not hold"
            )
        )
    shared = known.intersection(table.index, sort=False)
    if len(shared) < len(known):
        coverage.append(
            frames.coverage_row(
                "warning", n=len(known) - len(shared), run=run, **facts, reason="items without a verdict"
            )
        )
    table, own = table.loc[shared], items.set_index("item").loc[shared]
    if f.kind == "auxmatch":
        extracted = table["extracted"] if "extracted" in table.columns else pd.Series("", index=table.index)
        sources = judged.yesno_sources(extracted, table["prediction"], own["prediction"])
    else:
        logs = table["log"] if "log" in table.columns else pd.Series("", index=table.index)
        letters = [{chr(ord("A") + i) for i, t in enumerate(o) if t.strip()} for o in own["options"]]
        others = other.reindex(shared).fillna("") if other is not None else None
        sources = judged.choice_sources(logs, table["prediction"], own["prediction"], letters, others)
        extracted = judged.replies(logs, sources)
    stored = hit.loc[shared].to_numpy()
    void = np.isin(sources, ("random_fill", "cache_stale"))
    frame = pd.DataFrame(
        {
            "run": run,
            "item": np.asarray(shared, dtype=object),
            "model": f.model,
            "condition": f.condition,
            "sample": 0,
            "judge": judge,
            "hit": np.where(void, np.nan, stored),
            "extracted": np.asarray(extracted, dtype=object),
            "source": sources,
            "hit_stored": stored,
        }
    )
    return frame, coverage + _source_rows(sources, stored, run, facts, judge)


def _source_rows(sources: np.ndarray, stored: np.ndarray, run: str, facts: dict, judge: str | None) -> list[dict]:
    """Coverage of the verdicts: how many, and those that are no verdicts of the judge in the file's name."""
    rows = [frames.coverage_row("read", n=len(sources), run=run, **facts, reason="verdicts")]
    for source, what in (
        ("random_fill", "verdicts on a random letter after the judge failed (not counted; {hits} of them were hits)"),
        ("cache_stale", "verdicts of an old cache: their log or prediction is another one (not counted)"),
    ):
        at = sources == source
        if at.any():
            reason = what.format(hits=int(np.nansum(stored[at])))
            rows.append(frames.coverage_row("warning", n=int(at.sum()), run=run, **facts, reason=reason))
    fallback = int((sources == "exact_fallback").sum())
    if fallback and judge != "exact_matching":
        rows.append(
            frames.coverage_row(
                "warning",
                n=fallback,
                run=run,
                **facts,
                reason=(f"verdicts of exact matching in a file named after judge {judge!r}: the judge was not asked"),
            )
        )
    return rows


def _dataset(folder: Path, benchmark: str, path: Path | None) -> tuple[pd.DataFrame | None, list[Path]]:
    if path is None:
        path = folder / f"{benchmark}.tsv"
        if not path.is_file():
            return None, []
    return read_dataset(path), [path]


def _label(path: Path, folder: Path) -> str:
    """Path relative to the results folder, with forward slashes."""
    return Path(os.path.relpath(path, folder)).as_posix()


def _nothing(folder: Path, benchmark: str, found: list[RunFile]) -> AuditError:
    pickles = [f.path for f in found if f.kind == "pickle"]
    if pickles:
        try:
            files.check_file(pickles[0])
        except AuditError as e:
            return e
    if layout.run_folders(folder):
        return AuditError(
            f"no run of {benchmark!r} lies in the model folders themselves",
            file=folder,
            mend="copy the files of one run folder (T...) per model one level up",
        )
    names = layout.benchmark_names(layout.scan(folder))
    has = f"benchmarks here: {', '.join(names)}" if names else "it should hold MODEL/MODEL_BENCHMARK.xlsx"
    return AuditError(f"no run of {benchmark!r} to read", file=folder, mend=has)
