"""Readers: result files to canonical frames. :func:`read_runs` picks the reader that the params name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from auditlib.errors import AuditError
from auditlib.frames import frame

if TYPE_CHECKING:
    from auditlib.frames import Runs
    from auditlib.params import DataParams
    from auditlib.parsed import ParsedCache
    from auditlib.readers.answer_counts import AnswerCounts
    from auditlib.readers.matrix import Matrix

#: readers of results folders by toolkit; VLMEvalKit's has arguments of its own
FOLDER_READERS = {
    "lmms-eval": ("auditlib.readers.lmms_eval", "read_lmms_eval"),
    "lm-eval": ("auditlib.readers.lm_eval", "read_lm_eval"),
    "inspect": ("auditlib.readers.inspect_logs", "read_inspect"),
    "every-eval-ever": ("auditlib.readers.every_eval_ever", "read_every_eval_ever"),
}


def read_runs(
    data: DataParams,
    *,
    benchmark: str,
    judge: str | None = None,
    exclude_models: Iterable[str] = (),
    outputs: str | Path = "outputs",
    cache: ParsedCache | None = None,
) -> Runs | Matrix | AnswerCounts:
    """Read the runs of a pool from wherever its params say they lie.

    Parameters
    ----------
    data : the ``data`` block of the params: embedded, folder, table, matrix or counts.
    benchmark : the benchmark's name; in a results folder it is part of the file names.
    judge : which verdicts, when several lie there; a name for the verdicts where the files name no judge.
    exclude_models : models to leave out; each is a row of the coverage table.
    outputs : where an embedded replica is written on first use.
    cache : runs parsed before, by the content of their files.

    Returns
    -------
    Runs, Matrix or AnswerCounts
        A matrix or counts where the params name them, canonical frames otherwise.

    Raises
    ------
    AuditError
        What lies there cannot be read.
    """
    exclude = tuple(exclude_models)
    if data.embedded is not None:
        from auditlib.synth.embedded import benchmark_of, is_counts, is_table, materialise

        folder = materialise(data.embedded, outputs)
        if benchmark != benchmark_of(data.embedded):
            raise AuditError(
                f"the embedded pool {data.embedded!r} holds no benchmark {benchmark!r}",
                mend=f"write benchmark: {benchmark_of(data.embedded)}",
            )
        if is_counts(data.embedded):
            from auditlib.readers.answer_counts import with_models

            files = {"embedded": None, "counts": folder / "counts.parquet", "items": folder / "items.csv"}
            runs = read_runs(data.model_copy(update=files), benchmark=benchmark, judge=judge, exclude_models=exclude)
            return with_models(runs, folder / "models.csv")
        if is_table(data.embedded):
            files = {"embedded": None, "table": folder / "runs.parquet"}
            return read_runs(data.model_copy(update=files), benchmark=benchmark, judge=judge, exclude_models=exclude)
        data = data.model_copy(update={"embedded": None, "folder": folder, "toolkit": "vlmevalkit"})
    if data.folder is not None:
        return runs_with_items(_read_folder(data, benchmark, judge, exclude, cache), data)
    if data.matrix is not None:
        from auditlib.readers.matrix import read_matrix

        return read_matrix(data, exclude=exclude, judge=judge)
    if data.counts is not None:
        from auditlib.readers.answer_counts import read_answer_counts

        return read_answer_counts(data, exclude=exclude, judge=judge)
    from auditlib.readers.table import read_table

    return _with_dataset(read_table(data, exclude=exclude, judge=judge), data.dataset)


def _read_folder(
    data: DataParams, benchmark: str, judge: str | None, exclude: tuple[str, ...], cache: ParsedCache | None
) -> Runs:
    folder = data.folder
    assert folder is not None
    if data.reader is not None:
        from auditlib.readers.own_reader import read_with

        return _with_dataset(read_with(data.reader, folder, data, exclude=exclude, judge=judge), data.dataset)
    toolkit = data.toolkit
    if toolkit is None:
        from auditlib.readers.discover import toolkit_of

        toolkit = toolkit_of(folder)
    _check_conditions(data)
    if toolkit == "vlmevalkit":
        from auditlib.readers.vlmevalkit import read_vlmevalkit

        return read_vlmevalkit(
            folder,
            benchmark,
            blind_folder=data.blind_folder,
            judge=judge,
            dataset=data.dataset,
            exclude=exclude,
            conditions=data.conditions,
            blind_benchmark=data.blind_benchmark,
            where=data.where,
            cache=cache,
        )
    module, name = FOLDER_READERS[toolkit]
    runs = getattr(import_module(module), name)(data, benchmark, judge=judge, exclude=exclude)
    return _with_dataset(runs, data.dataset)


def _check_conditions(data: DataParams) -> None:
    """Refuse patterns of ``conditions`` that no file has, and a blind folder that is the folder itself."""
    folders = [f.resolve() for f in (data.folder, data.blind_folder) if f is not None]
    if len(folders) == 2 and folders[0] == folders[1]:
        raise AuditError(
            "folder and blind_folder are one and the same",
            file=data.blind_folder,
            mend="name the folder of the runs without image, or leave blind_folder out",
        )
    if not data.conditions:
        return
    files = [p.relative_to(f).as_posix() for f in folders for p in f.rglob("*") if not p.is_dir()]
    for pattern in data.conditions:
        if not any(fnmatchcase(name, pattern) for name in files):
            raise AuditError(
                f"data.conditions names {pattern!r}, which no file has",
                file=data.folder,
                mend=f"patterns are of paths inside the folder, such as {min(files, default='MODEL/FILE')!r}",
            )


def _with_dataset(runs: Runs, path: Path | None) -> Runs:
    if path is None:
        return runs
    from auditlib.readers.dataset import read_dataset

    return replace(runs, dataset=read_dataset(path), inputs=(*runs.inputs, path))


def runs_with_items(runs: Runs, data: DataParams) -> Runs:
    """Runs with the facts of an items file: where it has a value, it stands for every run's own."""
    if data.items is None:
        return runs
    from auditlib.readers.table import fill_facts, items_file

    known, coverage = items_file(data.items, data.item_columns)
    items, rows = fill_facts(runs.items, known)
    table = pd.concat([runs.coverage, frame("coverage", [*coverage, *rows])], ignore_index=True)
    return replace(runs, items=items, coverage=table, inputs=(*runs.inputs, data.items))
