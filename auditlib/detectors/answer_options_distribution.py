"""Where the key sits among the options. Judges no item: its results are statistics."""

from __future__ import annotations

import pandas as pd

from auditlib.detectors.contract import Detector, empty_findings
from auditlib.params import AuditParams
from auditlib.pool import Pool


def needs(pool: Pool) -> str:
    if pool.k is None:
        return "the number of options is unknown (give options, or audit.options_by_stratum)"
    return "" if (pool.key_codes >= 0).any() else "no item has a letter as its key"


def detect(pool: Pool, settings: AuditParams) -> pd.DataFrame:
    """No findings; see :mod:`auditlib.metrics.positions` for the histogram and its p-value."""
    return empty_findings()


DETECTOR = Detector(
    "answer_options_distribution", "key-position histogram", "position bias", False, detect, needs, (2, None)
)
