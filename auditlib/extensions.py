"""Detectors, figures, tables and readers of one's own: Python files that the params name, no change of the package.

A file under ``extensions`` holds :class:`~auditlib.detectors.Detector`, :class:`~auditlib.figures.Figure` or
:class:`~auditlib.tables.Table` objects as names of the module; that under ``data.reader`` holds a function ``read``.
Such a file is run as it stands: name only files that you would run yourself. Its content is an input of the pool.
"""

from __future__ import annotations

import hashlib
import json
import sys
import traceback
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from auditlib.errors import AuditError

if TYPE_CHECKING:
    import pandas as pd

    from auditlib.detectors import Detector
    from auditlib.figures import Figure
    from auditlib.params import AuditParams, Params
    from auditlib.pool import Pool
    from auditlib.tables import Table


@dataclass(frozen=True)
class Extensions:
    """What the files hold, by name, in the order of the files."""

    detectors: dict[str, Detector] = field(default_factory=dict)
    figures: dict[str, Figure] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)


def extensions_of(params: Params | None) -> Extensions:
    """The detectors, figures and tables of the files under ``extensions``.

    Raises
    ------
    AuditError
        A file is missing, does not run, holds nothing of the kind, or takes a name that exists already.
    """
    if params is None or not params.extensions:
        return Extensions()
    from auditlib.detectors import DETECTORS, Detector
    from auditlib.figures import Figure
    from auditlib.studies import all_figures, all_tables
    from auditlib.tables import Table

    out = Extensions()
    kinds: tuple[tuple[type, dict[str, Any], Iterable[str]], ...] = (
        (Detector, out.detectors, DETECTORS),
        (Figure, out.figures, all_figures()),
        (Table, out.tables, all_tables()),
    )
    for file in params.extensions:
        module = load(file)
        found, seen = 0, set()
        for value in vars(module).values():
            for kind, mine, known in kinds:
                if isinstance(value, kind) and id(value) not in seen:
                    if value.name in mine or value.name in known:
                        raise AuditError(f"the name {value.name!r} is taken by another {kind.__name__.lower()}",
                                         file=file, mend="give it a name of its own")  # fmt: skip
                    mine[value.name] = _guarded(value, file) if kind is Detector else value
                    seen.add(id(value))
                    found += 1
        if not found:
            raise AuditError("the file holds no Detector, Figure or Table", file=file,
                             mend="make one in it, such as DETECTOR = Detector(...)")  # fmt: skip
    return out


def _guarded(detector: Detector, file: Path) -> Detector:
    """A detector whose errors are lines about its file, and whose findings are checked before they are believed."""

    def detect(pool: Pool, settings: AuditParams) -> pd.DataFrame:
        try:
            table = detector.detect(deepcopy(pool), settings)  # what it changes stays its own
        except AuditError:
            raise
        except (Exception, SystemExit) as e:
            raise own_error(file, e, f"detector {detector.name} stopped") from e
        if (wrong := _not_findings(table, detector.name, pool)) is not None:
            raise AuditError(f"detector {detector.name} returned {wrong}", file=file,
                             mend="build its result with auditlib.detectors.contract.findings")  # fmt: skip
        return table

    def needs(pool: Pool) -> str:
        try:
            return str(detector.needs(deepcopy(pool)) or "")
        except (Exception, SystemExit) as e:
            raise own_error(file, e, f"needs of detector {detector.name} stopped") from e

    return replace(detector, detect=detect, needs=needs)


def _not_findings(table: Any, name: str, pool: Pool) -> str | None:
    """What is wrong with the findings of a detector, in words; None where nothing is."""
    import numpy as np
    import pandas as pd

    from auditlib.frames import COLUMNS, SEVERITIES

    if not isinstance(table, pd.DataFrame):
        return f"{type(table).__name__}, no frame"
    lacking = [c for c in COLUMNS["findings"] if c not in table.columns]
    if lacking:
        return f"no column {lacking[0]!r}"
    strangers = sorted(set(table["item"]) - set(pool.items["item"]))
    if strangers:
        return f"item {strangers[0]!r}, which the pool does not have"
    if (table["detector"] != name).any():
        return "findings under another detector's name"
    score = pd.to_numeric(table["score"], errors="coerce")
    if not score.between(0, 1).all():
        return f"the score {table.loc[~score.between(0, 1), 'score'].iloc[0]!r}; scores are in [0, 1]"
    odd = sorted(set(table["severity"]) - set(SEVERITIES))
    if odd:
        return f"the severity {odd[0]!r}; severities are {', '.join(SEVERITIES)}"
    if (bad := next((e for e in table["evidence"] if not _is_object(e)), None)) is not None:
        return f"the evidence {str(bad)[:60]!r}; evidence is a JSON object such as '{{}}'"
    if not table["flag"].map(lambda v: isinstance(v, bool | np.bool_)).all():
        return "a flag that is neither True nor False"
    if not table["message"].map(lambda v: isinstance(v, str)).all():
        return "a message that is no text"
    if unknown := sorted(set(table["arm"].astype(str)) - {*pool.arm_names, ""}):
        return f"findings of an arm {unknown[0]!r}; the pool has {', '.join(pool.arm_names)}"
    if table.duplicated(["item", "arm"]).any():
        return f"item {table.loc[table.duplicated(['item', 'arm']), 'item'].iloc[0]!r} twice"
    return None


def _is_object(text: Any) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (TypeError, ValueError):
        return False


def reader_of(file: Path) -> Callable[[Path], pd.DataFrame]:
    """The function ``read(folder) -> frame`` of a reader's file.

    Raises
    ------
    AuditError
        The file is missing, does not run, or has no function of that name.
    """
    read = getattr(load(file), "read", None)
    if not callable(read):
        raise AuditError("the file holds no function read(folder)", file=file,
                         mend="write one that returns a frame with a row per item, model and condition")  # fmt: skip
    return read


def load(file: Path) -> ModuleType:
    """Run a Python file as a module of its own, anew in every call."""
    if not file.is_file():
        raise AuditError("there is no such file", file=file, mend="check the path in the params")
    name = f"auditlib_extension_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise AuditError("this is no Python file", file=file, mend="name a file that ends in .py")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    wrote, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # no __pycache__ beside a user's files
    try:
        spec.loader.exec_module(module)
    except AuditError:
        raise
    except SyntaxError as e:
        raise AuditError(f"not valid Python ({e.msg})", file=file, row=e.lineno, mend="correct that line") from None
    except (Exception, SystemExit) as e:
        raise own_error(file, e, "the file does not run") from e
    finally:
        sys.dont_write_bytecode = wrote
    return module


def own_error(file: Path | None, error: BaseException, what: str) -> AuditError:
    """An error inside somebody's own file as one line that names the file's line."""
    mine = [f.lineno for f in traceback.extract_tb(error.__traceback__) if file is None or f.filename == str(file)]
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return AuditError(f"{what} ({said})", file=file, row=mine[-1] if mine else None, mend="correct that line")
