"""Read a folder of VLMEvalKit results: predictions, verdicts and, where given, the dataset's own table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from auditlib import frames
from auditlib.errors import AuditError
from auditlib.frames import coverage_row
from auditlib.parsed import ParsedCache, prune
from auditlib.readers import cells, files, layout
from auditlib.readers import vlmevalkit_families as families
from auditlib.readers.dataset import items_frame, read_dataset, without_copies
from auditlib.readers.layout import RunFile
from auditlib.readers.vlmevalkit_cache import Run, keep_run, load_run, run_key
from auditlib.readers.vlmevalkit_files import files_of
from auditlib.readers.vlmevalkit_runs import Choice, choose, label, same_replies
from auditlib.readers.vlmevalkit_verdicts import choose_judge, judgements, substring_judgements, written_keys


@dataclass(frozen=True)
class _Filter:
    """Rows that are asked for, by the value of a column; ids of those left out are remembered."""

    where: Mapping[str, str]
    left_out: set[str] = field(default_factory=set)

    def __call__(self, table: pd.DataFrame) -> pd.DataFrame:
        for column, value in self.where.items():
            name = column if column in table.columns else column.lower()
            if name not in table.columns:
                continue
            keep = table[name].str.strip() == str(value)
            if "index" in table.columns:
                self.left_out.update(cells.item_ids(table["index"])[~keep])
            table = table[keep]
        return table

    def check(self, table: pd.DataFrame, path: Path) -> None:
        """Refuse a filter by a column that predictions lack."""
        for column in self.where:
            if not {column, column.lower()} & set(table.columns):
                what = (
                    f"where names the column {column!r}, which is not here (columns: {', '.join(table.columns[:12])})"
                )
                raise AuditError(what, file=path, row=1, mend="correct where: in the params")


def read_vlmevalkit(
    folder: str | Path,
    benchmark: str,
    *,
    blind_folder: str | Path | None = None,
    judge: str | None = None,
    dataset: str | Path | None = None,
    models: Sequence[str] | None = None,
    exclude: Iterable[str] = (),
    conditions: Mapping[str, str] | None = None,
    blind_benchmark: str | None = None,
    where: Mapping[str, str] | None = None,
    cache: ParsedCache | None = None,
    found: Sequence[RunFile] | None = None,
    known: dict[str, tuple[pd.DataFrame, pd.DataFrame]] | None = None,
) -> frames.Runs:
    """Read the runs of one benchmark from a results folder.

    Parameters
    ----------
    folder : the toolkit's ``work_dir``: one folder per model with ``MODEL_BENCHMARK.xlsx`` (or tsv, json), in it or in
        run folders (``T...``) below it; the newest run of a model is read.
    benchmark : the benchmark's name exactly as in the file names; ``TinySee`` does not take in ``TinySee_circular``.
    blind_folder : results folder of the runs without image; by default ``MODEL_blind`` folders, else a sibling folder
        such as ``outputs_text-only``.
    judge : judge name as in the verdict files, needed when several lie there and differ.
    dataset : the dataset's own TSV; ``BENCHMARK.tsv`` (or ``BENCHMARK_local.tsv``) in the folder is taken when not
        given.
    models : read these models only; all when not given.
    exclude : models to leave out.
    conditions : pattern of a file's path below its folder -> condition, or ``skip``.
    blind_benchmark : name of the benchmark in the runs without image, where it differs.
    where : column -> value; other rows are left out and counted.
    cache : runs parsed before, by the content of their files; what is read anew is kept there.
    found : the benchmark's files, where a scan has found them before; what else lies in the folder is then not said.
    known : memory of the last file's item facts, shared by calls: files with equal columns are not worked out anew.

    Returns
    -------
    Runs
        ``judgements`` has one column beyond the contract: ``hit_stored``, the verdict as the file holds it. ``hit``
        is NaN where the verdict was a random fill or came from an old cache. Rows with ``level`` ``circular`` are
        verdicts on all rotations of an item, no verdicts on a reply.

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
    folder, excluded, keep = Path(folder), set(exclude), _Filter(where or {})
    beside = Path(blind_folder) if blind_folder else None
    coverage: list[dict[str, Any]] = []
    if found is None:
        found, coverage = files_of(folder, benchmark, beside, conditions or {}, blind_benchmark)
    chosen, rows = choose_judge(found, judge, folder, benchmark)
    coverage += rows
    runs: list[Run] = []
    heard: dict[str, tuple[str, pd.Series]] = {}
    shared: dict[str, pd.DataFrame] = {}
    known = {} if known is None else known
    for (model, condition), group in _groups(found).items():
        note = partial(coverage_row, model=model, condition=condition)
        if model in excluded or (models is not None and model not in models):
            why = "excluded in the params" if model in excluded else "not among the models asked for"
            coverage.append(note("excluded", n=1, reason=why))
            continue
        name = blind_benchmark if condition == "blind" and blind_benchmark else benchmark
        other, replies = heard.get(model, ("", None))
        other = other if any(f.kind in ("result", "auxmatch") for f in group) else ""  # only verdicts look there
        stated = {"benchmark": benchmark, "name": name, "judge": chosen, "where": dict(keep.where)}
        key = run_key(group, folder, other, stated) if cache else ""
        run = load_run(cache, key, group, shared) if cache else None
        if run is None:
            own = _Filter(keep.where)
            choice = choose(group, name if any(f.rest == name for f in group) else benchmark, chosen, folder, own)
            if choice is None:
                continue
            run = _read_run(choice, note, benchmark, chosen, folder, replies, own, known)
            if cache:
                keep_run(cache, key, group, run)
        coverage += run.coverage
        keep.left_out.update(run.left_out)
        runs.append(run)
        heard.setdefault(model, (key, run.responses.set_index("item")["prediction"]))
    if cache:
        prune(cache)
    for model in sorted(excluded - {f.model for f in found}):
        coverage.append(coverage_row("warning", n=0, model=model, reason="to be excluded, but there is no such model"))
    if not runs:
        raise _nothing(folder, benchmark, found, excluded)
    coverage += same_replies(r.responses for r in runs)
    table, inputs = _dataset(folder, benchmark, Path(dataset) if dataset else None, keep.left_out)
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
        provenance={"toolkit": "VLMEvalKit", "judge": chosen}
        | ({"runs": told} if (told := {r.items["run"].iloc[0]: r.facts for r in runs if r.facts}) else {}),
    )


def _groups(found: list[RunFile]) -> dict[tuple[str, str], list[RunFile]]:
    """Files by model and condition, models in order of their names, full runs first."""
    groups: dict[tuple[str, str], list[RunFile]] = {}
    for f in sorted(found, key=lambda f: (f.model, f.condition != "full", f.condition)):
        groups.setdefault((f.model, f.condition), []).append(f)
    return groups


def _read_run(
    choice: Choice,
    note: partial,
    benchmark: str,
    judge: str | None,
    folder: Path,
    other: pd.Series | None,
    keep: _Filter,
    known: dict[str, tuple[pd.DataFrame, pd.DataFrame]],
) -> Run:
    """One model and condition: predictions (or, where only these are left, the verdict file's copy of them)."""
    source, table = choice.source, choice.table
    keep.check(table, source.path)
    if not len(table):
        raise AuditError("no row is left by where:", file=source.path, mend="correct where: in the params")
    run = label(source.path, folder)
    note = partial(note, run=run)
    coverage = list(choice.coverage)
    items = _facts(table, source.path, known).assign(prediction=table["prediction"], written=written_keys(table))
    items, copies = without_copies(items, source.path, extra=("prediction",))
    for copy in copies.itertuples():
        coverage.append(note("duplicate", n=1, item=copy.item, reason=f"row {copy.row} repeats an earlier one"))
    if n := int(((items["key"] != items["written"]) & items["key"].str.fullmatch("[A-Z]")).sum()):
        coverage.append(note("warning", n=n, reason="keys are the text of an option; its letter is taken"))
    coverage.append(note("read", n=len(items)))
    if keep.where and (n := choice.rows - len(table)):
        says = ", ".join(f"{c}={v}" for c, v in keep.where.items())
        coverage.append(note("excluded", n=n, reason=f"rows outside {says}"))
    responses = _responses(items, run, source)
    coverage += _damage(items, responses, source.path, note)
    verdicts, inputs = None, [source.path]
    if choice.verdicts is not None:
        verdicts, rows = judgements(choice.verdicts, items, judge, folder, other, keep)
        coverage += rows
        inputs.append(choice.verdicts.path)
    elif judge == families.SUBSTRING and families.is_ocrbench(benchmark):
        verdicts, rows = substring_judgements(source, items, folder)
        coverage += rows
    elif judge is not None:
        coverage.append(note("not run", n=len(items), reason=f"no verdicts of judge {judge!r}"))
    items = items.drop(columns=["prediction", "written"]).assign(run=run).reset_index(drop=True)
    return Run(items, responses, verdicts, inputs, choice.status.facts, coverage, tuple(sorted(keep.left_out)))


def _facts(table: pd.DataFrame, path: Path, known: dict[str, tuple[pd.DataFrame, pd.DataFrame]]) -> pd.DataFrame:
    """Item facts of a table: those of the last one where all columns but the replies are equal."""
    stated = table.drop(columns="prediction")
    if "last" not in known or not stated.equals(known["last"][0]):
        known["last"] = stated, items_frame(table, path)
    return known["last"][1]


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


def _dataset(
    folder: Path, benchmark: str, path: Path | None, left_out: set[str]
) -> tuple[pd.DataFrame | None, list[Path]]:
    path = path or dataset_beside(folder, benchmark)
    if path is None:
        return None, []
    table = read_dataset(path)
    return table[~table["item"].isin(left_out)].reset_index(drop=True) if left_out else table, [path]


def dataset_beside(folder: Path, benchmark: str) -> Path | None:
    """The dataset's own table where it lies in the results folder."""
    names = (f"{benchmark}.tsv", f"{benchmark}_local.tsv")
    return next((p for n in names if (p := folder / n).is_file()), None)


def _nothing(folder: Path, benchmark: str, found: list[RunFile], excluded: set[str]) -> AuditError:
    """Why there is nothing to read."""
    if any(f.model in excluded and f.kind in layout.RUNS for f in found):
        return AuditError("every model is excluded", file=folder, mend="shorten exclude_models")
    pickles = [f.path for f in found if f.kind == "pickle"]
    if pickles:
        return files.pickle_error(pickles[0])
    scanned = layout.scan(folder)
    names = layout.benchmark_names(scanned)
    unknown = [label(f.path, folder) for f in scanned if f.kind == "unknown"]
    if unknown and not names:
        mend = f"rename them to MODEL/MODEL_{benchmark}.xlsx; not recognised: {', '.join(unknown[:4])}"
        return AuditError(f"no run of {benchmark!r} to read", file=folder, mend=mend)
    has = f"benchmarks here: {', '.join(names)}" if names else "it should hold MODEL/MODEL_BENCHMARK.xlsx"
    return AuditError(f"no run of {benchmark!r} to read", file=folder, mend=has)
