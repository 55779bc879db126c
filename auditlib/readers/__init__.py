"""Readers: result files to canonical frames. :func:`read_runs` picks the reader that the params name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from auditlib.errors import AuditError

if TYPE_CHECKING:
    from auditlib.frames import Runs
    from auditlib.params import DataParams
    from auditlib.readers.matrix import Matrix


def read_runs(
    data: DataParams,
    *,
    benchmark: str,
    judge: str | None = None,
    exclude_models: Iterable[str] = (),
    outputs: str | Path = "outputs",
) -> Runs | Matrix:
    """Read the runs of a pool from wherever its params say they lie.

    Parameters
    ----------
    data : the ``data`` block of the params: embedded, folder, table or matrix.
    benchmark : the benchmark's name; in a results folder it is part of the file names.
    judge : which verdicts, when several lie there; a name for the verdicts where the files name no judge.
    exclude_models : models to leave out; each is a row of the coverage table.
    outputs : where an embedded replica is written on first use.

    Returns
    -------
    Runs or Matrix
        A matrix where the params name one, canonical frames otherwise.

    Raises
    ------
    AuditError
        What lies there cannot be read.
    """
    exclude = tuple(exclude_models)
    if data.embedded is not None:
        from auditlib.synth.embedded import benchmark_of, materialise

        folder = materialise(data.embedded, outputs)
        if benchmark != benchmark_of(data.embedded):
            raise AuditError(
                f"the embedded pool {data.embedded!r} holds no benchmark {benchmark!r}",
                mend=f"write benchmark: {benchmark_of(data.embedded)}",
            )
        data = data.model_copy(update={"embedded": None, "folder": folder})
    if data.folder is not None:
        from auditlib.readers.vlmevalkit import read_vlmevalkit

        return read_vlmevalkit(
            data.folder, benchmark, blind_folder=data.blind_folder, judge=judge, dataset=data.dataset, exclude=exclude
        )
    if data.matrix is not None:
        from auditlib.readers.matrix import read_matrix

        return read_matrix(data, exclude=exclude, judge=judge)
    from auditlib.readers.table import read_table

    runs = read_table(data, exclude=exclude, judge=judge)
    if data.dataset is not None:
        from auditlib.readers.dataset import read_dataset

        runs = replace(runs, dataset=read_dataset(data.dataset), inputs=(*runs.inputs, data.dataset))
    return runs
