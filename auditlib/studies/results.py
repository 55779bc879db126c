"""What a capability's notebook leaves on disk: a few frames and facts in a folder of the pool, named like the study."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib.errors import AuditError
from auditlib.escape import guard_csv
from auditlib.lookup import Lacking
from auditlib.paths import RunPaths, atomic

FACTS = "facts.json"


@dataclass(frozen=True)
class Result:
    """A finished study of one pool.

    Attributes
    ----------
    name : of the study, for example ``curation``.
    frames : the tables that it wrote, by name.
    facts : single numbers, words and settings, JSON-able.
    """

    name: str
    frames: Mapping[str, pd.DataFrame]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def frame(self, name: str) -> pd.DataFrame:
        """One of the tables.

        Raises
        ------
        Lacking
            The study has none by this name, or an empty one; ``facts["lacking"]`` may say why.
        """
        table = self.frames.get(name)
        if table is None or not len(table):
            why = self.facts.get("lacking", {}).get(name)
            raise Lacking(why or f"this {self.name} has no {name.replace('_', ' ')}")
        return table


def save_result(result: Result, paths: RunPaths) -> list[Path]:
    """Write a study's frames, each as parquet and as CSV for people, and its facts; returns the files.

    Files of an earlier run that this one did not make again are removed.
    """
    folder = paths.study(result.name)
    written = []
    for name, table in result.frames.items():
        with atomic(folder / f"{name}.parquet") as file:
            table.to_parquet(file, index=False)
        with atomic(folder / f"{name}.csv") as file:
            guard_csv(table).to_csv(file, index=False, float_format="%.12g", lineterminator="\n")
        written += [folder / f"{name}.parquet", folder / f"{name}.csv"]
    with atomic(folder / FACTS) as file:
        file.write_text(json.dumps(dict(result.facts), indent=1, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")
    written.append(folder / FACTS)
    for old in set(folder.glob("*.parquet")) | set(folder.glob("*.csv")):
        if old not in written:
            old.unlink()
    return written


def load_result(paths: RunPaths, name: str) -> Result | None:
    """A study that :func:`save_result` wrote; None where it has not been run.

    Raises
    ------
    AuditError
        The files are damaged.
    """
    folder = paths.study(name)
    if not (folder / FACTS).exists():
        return None
    try:
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        frames = {p.stem: pd.read_parquet(p) for p in sorted(folder.glob("*.parquet"))}
    except (OSError, ValueError) as e:
        raise AuditError(f"the saved {name} is damaged ({type(e).__name__})", file=folder,
                         mend="make it again with 'auditlib run PARAMS --force'") from None  # fmt: skip
    return Result(name, frames, facts)
