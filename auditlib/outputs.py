"""An audit on disk: every file is written under a temporary name and renamed."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib.auditing import Audit
from auditlib.errors import AuditError
from auditlib.escape import csv_unguard, guard_csv
from auditlib.frames import COLUMNS
from auditlib.metrics.rows import STATISTICS, TEXT_COLUMNS
from auditlib.params import Params, check_params
from auditlib.paths import RunPaths, atomic

#: frames kept as parquet, by the name of the audit's attribute
FRAMES = ("items", "models", "responses", "judgements", "findings", "counts", "draws")


def save_audit(audit: Audit, paths: RunPaths) -> list[Path]:
    """Write an audit's frames; returns the files.

    Tables that people open (``findings.csv``, ``statistics.csv``, ``coverage.csv``) are CSV; floats keep 12 digits, so
    that bytes repeat from run to run, and text that a spreadsheet would take for a formula is guarded by an apostrophe.
    """
    written = []
    for name in FRAMES:
        table = getattr(audit, name)
        target = paths.frame(name)
        if table is None:
            target.unlink(missing_ok=True)
            continue
        with atomic(target) as temporary:
            table.to_parquet(temporary, index=False)
        written.append(target)
    for table, target in (
        (audit.findings, paths.findings_csv),
        (audit.statistics, paths.statistics),
        (audit.coverage, paths.coverage),
        (audit.detectors, paths.detectors),
    ):
        with atomic(target) as temporary:
            guard_csv(table).to_csv(temporary, index=False, float_format="%.12g", lineterminator="\n")
        written.append(target)
    facts = {
        "pool": audit.pool_name,
        "benchmark": audit.benchmark,
        "steps": audit.steps,
        "provenance": audit.provenance,
        "params": _portable(audit.params, paths) if audit.params else None,
    }
    with atomic(paths.steps) as temporary:
        temporary.write_text(json.dumps(facts, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    return [*written, paths.steps]


def load_audit(paths: RunPaths) -> Audit:
    """Read an audit that :func:`save_audit` wrote; replies and verdicts are read when asked for.

    Raises
    ------
    AuditError
        When the audit stage of the pool has not been run, or its files are damaged.
    """
    try:
        facts = json.loads(paths.steps.read_text(encoding="utf-8"))
        frames = {n: pd.read_parquet(paths.frame(n)) for n in ("items", "models", "findings", "counts", "draws")}
        tables = {
            "statistics": read_statistics(paths.statistics),
            "coverage": _text(paths.coverage, COLUMNS["coverage"]).astype({"n": int}),
            "detectors": _plain_text(pd.read_csv(paths.detectors, keep_default_na=False)),
        }
    except FileNotFoundError as e:
        missing = next((p for p in _needed(paths) if not p.exists()), Path(str(e.filename)))
        what = f"{missing.name} is missing"
        raise AuditError(
            what if paths.steps.exists() else f"pool {paths.pool!r} has not been audited ({what})",
            file=paths.folder,
            mend="make it with 'auditlib run PARAMS --force', PARAMS being the pool's params file",
        ) from None
    except PermissionError as e:
        raise AuditError(e.strerror or "no right to read", file=e.filename or paths.folder,
                         mend="give yourself the right to read it") from None  # fmt: skip
    except (json.JSONDecodeError, UnicodeDecodeError, ValueError, OSError) as e:
        raise AuditError(
            f"the saved audit is damaged ({type(e).__name__})",
            file=paths.folder,
            mend="make it again with 'auditlib run PARAMS --force', PARAMS being the pool's params file",
        ) from None
    params = check_params(facts["params"], paths.steps) if facts["params"] else None
    return Audit(
        pool_name=facts["pool"],
        benchmark=facts["benchmark"],
        params=params,
        steps=facts["steps"],
        provenance=facts["provenance"],
        texts=partial(_read_later, paths),
        studies=partial(_study_later, paths),
        **frames,
        **tables,
    )


def _study_later(paths: RunPaths, name: str) -> Any:
    from auditlib.studies.results import load_result

    return load_result(paths, name)


def _needed(paths: RunPaths) -> list[Path]:
    frames = [paths.frame(n) for n in ("items", "models", "findings", "counts", "draws")]
    return [paths.steps, *frames, paths.statistics, paths.coverage, paths.detectors]


def _portable(params: Params, paths: RunPaths) -> dict[str, Any]:
    """Params as plain data, paths relative to the pool's folder, so that a moved clone still reads them."""

    def said(value: Any) -> Any:
        if isinstance(value, Path):
            return os.path.relpath(value, paths.folder.absolute())
        if isinstance(value, dict):
            return {k: said(v) for k, v in value.items()}
        return [said(v) for v in value] if isinstance(value, list | tuple) else value

    return json.loads(json.dumps(said(params.model_dump(mode="python")), default=str))


def read_statistics(path: Path) -> pd.DataFrame:
    """A statistics.csv with its column types."""
    return _text(path, STATISTICS).astype({c: float for c in STATISTICS if c not in TEXT_COLUMNS})


def _text(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    table = _plain_text(pd.read_csv(path, dtype=str, keep_default_na=False).reindex(columns=list(columns)))
    numbers = [c for c in columns if c in STATISTICS and c not in TEXT_COLUMNS and "metric" in columns]
    return table.assign(**{c: table[c].replace("", "nan") for c in numbers})


def _plain_text(table: pd.DataFrame) -> pd.DataFrame:
    """Texts as they were before :func:`~auditlib.escape.guard_csv`."""
    texts = [c for c in table.columns if not pd.api.types.is_numeric_dtype(table[c]) and table[c].dtype != bool]
    return table.assign(**{c: [csv_unguard(str(v)) for v in table[c]] for c in texts})


def _read_later(paths: RunPaths, name: str) -> Any:
    path = paths.frame(name)
    return pd.read_parquet(path) if path.exists() else None
