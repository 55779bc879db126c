"""The one step that every notebook begins with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditlib.params import Params, load_params
from auditlib.paths import RunPaths, resolve


@dataclass(frozen=True)
class Start:
    """What a notebook works on; iterates as ``params, paths, limit``."""

    params: Params
    paths: RunPaths
    limit: int | None = None

    def __iter__(self):
        return iter((self.params, self.paths, self.limit))


def start(params: str | Path, outputs: str | Path = "outputs", overrides: Mapping[str, Any] | None = None) -> Start:
    """Check the parameters of a notebook and say where its files go.

    Parameters
    ----------
    params : path of a params file, as it is or relative to the project.
    outputs : folder for results, likewise.
    overrides : dotted names to values. ``{"limit": 50}`` is a quick look at the first 50 items: its results go to
        ``<pool>.limit50`` and never mix with those of the full run.

    Raises
    ------
    AuditError
        The params file is missing, or a key or value in it or in ``overrides`` is wrong.
    """
    others = dict(overrides or {})
    limit = others.pop("limit", None)
    if limit is not None:
        limit = _whole(limit)
    checked = load_params(resolve(params), others)
    if limit is not None:
        checked = checked.model_copy(update={"pool": f"{checked.pool}.limit{limit}"})
    return Start(checked, RunPaths(resolve(outputs), checked.pool), limit)


def _whole(limit: Any) -> int:
    from auditlib.errors import AuditError

    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise AuditError(f"overrides: limit is {limit!r}", mend="give a whole number of at least 1")
    return limit
