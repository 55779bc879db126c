"""What a detector is, and how a dict of them is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from auditlib.frames import COLUMNS, SEVERITIES
from auditlib.params import AuditParams
from auditlib.pool import Pool


@dataclass(frozen=True)
class Detector:
    """A named detector.

    Attributes
    ----------
    name, signal, pathology : str
        What it is called, what it looks at, what it flags (the taxonomy table prints them).
    judge_dependent : bool
        Whether its output depends on how answers were extracted.
    detect : function of (pool, settings) to a findings frame.
    needs : function of the pool to the reason why it cannot run, or ``""``.
    k_range : (smallest, largest or None)
        Numbers of options for which its behaviour has been shown; the smallest is looked up in the table of measured
        error rates where that holds the detector (:mod:`auditlib.detectors.calibrated`).
    """

    name: str
    signal: str
    pathology: str
    judge_dependent: bool
    detect: Callable[[Pool, AuditParams], pd.DataFrame]
    needs: Callable[[Pool], str]
    k_range: tuple[int, int | None] = (2, None)


def empty_findings() -> pd.DataFrame:
    return pd.DataFrame({c: pd.Series(dtype=object) for c in COLUMNS["findings"]})


def findings(detector: str, arm: str, **columns) -> pd.DataFrame:
    """A findings frame from equal-length columns: item, score, flag, severity, evidence, message."""
    table = pd.DataFrame({"detector": detector, "arm": arm} | columns)
    return table[list(COLUMNS["findings"])]


def of_headline_arm(table: pd.DataFrame, arm: str) -> pd.DataFrame:
    """Findings without the second opinion of other arms: of a detector that judges per arm, the headline arm's rows.

    A detector that has no row of the headline arm (one that reads letters or options only) keeps all its rows.
    """
    per_arm = table.loc[table["arm"] == arm, "detector"].unique()
    return table[(table["arm"] == arm) | ~table["detector"].isin(per_arm)]


def run_detectors(
    pool: Pool, settings: AuditParams, detectors: Mapping[str, Detector]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Run each detector that the pool supports.

    Returns
    -------
    findings : frame, sorted by detector, arm and the pool's item order.
    states : frame, one row per detector: taxonomy, ``state`` (run | not run), ``reason`` and counts.
    """
    found, states = [], []
    for d in detectors.values():
        reason = d.needs(pool)
        table = empty_findings() if reason else d.detect(pool, settings)
        # two arms would count an item twice, and contradict each other
        table_shown = of_headline_arm(table, pool.arm_names[0]) if len(table) else table
        flagged = table_shown[table_shown["flag"].astype(bool)] if len(table) else table
        outside = _outside_k(pool, d)
        states.append(
            {
                "detector": d.name, "signal": d.signal, "pathology": d.pathology, "judge_dependent": d.judge_dependent,
                "state": "not run" if reason else "run", "reason": reason, "note": outside,
                "judged": table_shown["item"].nunique(), "flagged": flagged["item"].nunique(),
            }
            | {s: flagged.loc[flagged["severity"] == s, "item"].nunique() for s in SEVERITIES}
        )  # fmt: skip
        found.append(table)
    return pd.concat(found, ignore_index=True), pd.DataFrame(states)


def _outside_k(pool: Pool, d: Detector) -> str:
    """Items whose number of options lies outside the range in which the detector was shown to work."""
    if pool.k is None:
        return ""
    from auditlib.detectors.calibrated import outside

    low, high = d.k_range
    n = int((outside(d.name, pool.k, low) | (pool.k > (high or np.inf))).sum())
    return f"{n} items have a number of options outside the calibrated range" if n else ""
