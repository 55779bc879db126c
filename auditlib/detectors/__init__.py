"""The six detectors of the audit, and the integrity gate's findings, as one plain dict.

A detector is a function ``detect(pool, settings) -> findings`` (one row per item it can judge, columns of the findings
contract) plus a statement of what it needs: ``needs(pool)`` returns why it cannot run, or an empty string.
"""

from __future__ import annotations

from auditlib.detectors import (
    answer_options_distribution,
    consensus_error,
    correctness_agreement,
    distractor_similarity,
    fleiss_kappa_agreement,
    visual_dependency,
)
from auditlib.detectors.contract import Detector, empty_findings, run_detectors

DETECTORS: dict[str, Detector] = {
    d.name: d
    for d in (
        visual_dependency.DETECTOR,
        consensus_error.DETECTOR,
        fleiss_kappa_agreement.DETECTOR,
        correctness_agreement.DETECTOR,
        answer_options_distribution.DETECTOR,
        distractor_similarity.DETECTOR,
    )
}

__all__ = ["DETECTORS", "Detector", "empty_findings", "run_detectors"]
