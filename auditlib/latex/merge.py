"""Several pools in one folder, for one paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from auditlib.errors import AuditError


def refuse_clashes(names: Mapping[str, Sequence[str]]) -> None:
    """Raise an :class:`AuditError` when two pools would have one name in LaTeX."""
    seen: dict[str, str] = {}
    for pool, made in names.items():
        for name in dict.fromkeys(made):
            if seen.setdefault(name, pool) != pool:
                raise AuditError(f"pools {seen[name]!r} and {pool!r} would both be called {name!r} in LaTeX",
                                 mend="give one of them another pool name")  # fmt: skip


def merge(files: Sequence[str | Path], to: Path, *, outputs: Path) -> pd.DataFrame:
    """Write one folder with the numbers, tables and figures of the pools of several params files.

    Returns
    -------
    frame : see :func:`~auditlib.latex.files.save_latex`.

    Raises
    ------
    AuditError
        A mistake in a params file, a pool that has not been audited, two files of one pool, or names that clash.
    """
    from auditlib.latex.files import Pool, write_folder
    from auditlib.outputs import load_audit
    from auditlib.params import load_params
    from auditlib.paths import RunPaths

    pools: dict[str, Pool] = {}
    for file in files:
        paths = RunPaths(outputs, load_params(file).pool)
        if paths.pool in pools:
            raise AuditError(f"pool {paths.pool!r} is named twice", file=file, mend="name each params file once")
        pools[paths.pool] = Pool(load_audit(paths), paths)
    return write_folder(list(pools.values()), to)
