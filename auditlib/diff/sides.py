"""The two things that are compared: audits by their params or folders, or dataset files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from auditlib.errors import AuditError
from auditlib.integrity.facts import loose
from auditlib.pool import Pool

if TYPE_CHECKING:
    from auditlib.auditing import Audit

AUDIT, DATASET = "audit", "dataset"
_PARAMS = (".yaml", ".yml")


@dataclass(frozen=True, repr=False)
class Side:
    """One side of a comparison.

    Attributes
    ----------
    kind : ``audit`` or ``dataset``. label : how texts call it. name : for the folder of results.
    benchmark : its name, empty for a dataset file.
    items : items contract, one row per item, ids unique. digest : SHA-256 of a dataset file, or of the items' contents.
    audit : None for a dataset.
    """

    kind: str
    label: str
    name: str
    benchmark: str
    items: pd.DataFrame
    digest: str
    audit: Audit | None = None

    @cached_property
    def runs(self) -> tuple[Pool | None, str]:
        """Hits by item and model, or None and the reason why they are not known."""
        return pool_again(self.audit) if self.audit is not None else (None, "a dataset has no runs")


def load_side(path: Path, outputs: Path) -> Side:
    """A params file, the folder of a pool's results, or a dataset file.

    Raises
    ------
    AuditError
        It is none of these, or its pool has not been audited.
    """
    from auditlib.outputs import load_audit
    from auditlib.paths import RunPaths

    if path.is_dir():
        if not (path / "audit.json").exists():
            raise AuditError("no audit is saved in this folder", file=path,
                             mend="name outputs/POOL, a params file or a dataset file")  # fmt: skip
        where = path.resolve()
        return audit_side(load_audit(RunPaths(where.parent, where.name)), where.name)
    if path.suffix.lower() in _PARAMS:
        from auditlib.params import load_params

        pool = load_params(path).pool
        return audit_side(load_audit(RunPaths(outputs, pool)), pool)
    return dataset_side(path)


def audit_side(audit: Audit, name: str | None = None) -> Side:
    """An audit as a side of a comparison."""
    from auditlib.manifest import items_digest

    name = name or audit.pool_name
    return Side(AUDIT, name, _plain(name), audit.benchmark, audit.items, items_digest(audit.items), audit)


def dataset_side(path: Path) -> Side:
    """A dataset file (tsv, csv, xlsx, json, parquet) as a side of a comparison."""
    from auditlib.freshness import file_hash
    from auditlib.readers.dataset import read_dataset
    from auditlib.readers.files import check_file

    check_file(path)
    items = read_dataset(path).drop(columns="row")
    return Side(DATASET, path.name, _plain(path.name.split(".")[0]), "", items, file_hash(path))


def refuse_strangers(a: Side, b: Side) -> None:
    """Refuse two sides that have nothing to compare.

    Raises
    ------
    AuditError
        An audit and a dataset, two benchmarks, or no shared item.
    """
    if a.kind != b.kind:
        raise AuditError(f"{a.label} is {_article(a)}, {b.label} is {_article(b)}",
                         mend="compare two audits, or two dataset files")  # fmt: skip
    if loose(a.benchmark) != loose(b.benchmark):
        raise AuditError(f"{a.label} is on {a.benchmark}, {b.label} is on {b.benchmark}",
                         mend="compare two audits of one benchmark")  # fmt: skip
    if not set(a.items["item"]) & set(b.items["item"]):
        first = (str(s.items["item"].iloc[0]) if len(s.items) else "none" for s in (a, b))
        raise AuditError(f"{a.label} and {b.label} share no item (ids look like {' and '.join(map(repr, first))})",
                         mend="compare two versions of one benchmark, with the same ids")  # fmt: skip


def pool_again(audit: Audit) -> tuple[Pool | None, str]:
    """A saved audit's runs as arrays: from its own frames, or read again where these hold no replies.

    Returns
    -------
    The pool and an empty reason, or None and the reason.
    """
    if audit.responses is not None and len(audit.responses):
        return _from_frames(audit), ""
    from auditlib.reading import read_pool

    if audit.params is None:
        return None, f"{audit.pool_name} holds no replies and no params to read them from"
    try:
        pool = read_pool(audit.params)
    except AuditError as e:
        return None, f"the runs of {audit.pool_name} cannot be read again ({e})"
    same = pool.items["item"].astype(str).tolist() == audit.items["item"].astype(str).tolist()
    if not same or pool.model_names != audit.models["model"].tolist():
        return None, f"the runs of {audit.pool_name} are others by now than those that were audited"
    return pool, ""


def _from_frames(audit: Audit) -> Pool:
    from auditlib.scoring import Cells, exact_arm, judged_arm, open_arm, open_verdicts, yesno_arm

    items = audit.items.copy()
    for name in ("options", "references"):
        if name in items:  # arrays in a saved frame, lists elsewhere
            items[name] = [v.tolist() if isinstance(v, np.ndarray) else v for v in items[name]]
    cells = Cells(items, audit.models, audit.responses)
    wrong = audit.settings.failed == "wrong"
    judgements = audit.judgements
    made = {
        "exact": exact_arm(cells, items, failed_wrong=wrong),
        "exact_yesno": yesno_arm(cells, items, failed_wrong=wrong),
        "exact_open": open_arm(cells, open_verdicts(cells, items, audit.settings.tolerance), items,
                               failed_wrong=wrong),
        "judged": judged_arm(cells, judgements, failed_wrong=wrong) if judgements is not None and len(judgements)
        else None,
    }  # fmt: skip
    arms = {n: arm for n in audit.steps["arms"] if (arm := made.get(n)) is not None}
    return Pool(audit.pool_name, audit.benchmark, items, audit.models, arms, params=audit.params)


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") or "side"


def _article(side: Side) -> str:
    return "an audit" if side.kind == AUDIT else "a dataset"
