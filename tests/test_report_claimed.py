"""Sentences in the opening of the report: what is claimed, what is not, and the text-shortcut probe."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
from builders import embedded_audit

from auditlib.claims import claims
from auditlib.report.claimed import claimed, shortcut
from auditlib.report.opening import opening
from auditlib.studies import Result


def words(blocks) -> str:
    return str(blocks)


def study(frames=None, **facts):
    result = Result("calibration", frames or {}, facts)
    return SimpleNamespace(study=lambda name: result if name == "calibration" else None)


def probe(estimate: float, p: float, **strata: float) -> pd.DataFrame:
    rows = [{"stratum": "all", "n": 400, "estimate": estimate, "null": 0.25, "excess": estimate - 0.25, "p": p}]
    rows += [{"stratum": k, "n": 60, "estimate": 0.5, "null": 0.25, "excess": 0.25, "p": q, "q": q}
             for k, q in strata.items()]  # fmt: skip
    return pd.DataFrame(rows)


def test_opening_claims_what_holds_and_says_what_is_missing():
    audit = embedded_audit("mmstar_replica")
    text = words(opening(audit, "auditlib run x"))
    made = claims(audit)
    assert sum(c.made for c in made) >= 4 and sum(not c.made for c in made) >= 2
    for c in made:
        assert all(part in text for part in ((c.sentence,) if c.made else c.missing)), c.name
    assert "Text-shortcut probe" in text


def test_binary_pool_claims_no_zero_gain():
    text = words(claimed(embedded_audit("hallusionbench_replica")))
    assert "outside the calibrated range" in text and "as many models are right" not in text


def test_shortcut_found_not_found_and_not_run():
    found = words(shortcut(study({"shortcut": probe(0.41, 0.01, art=0.02, law=0.4)})))
    assert "41.0%" in found and "give keys away" in found and "art" in found and "law" not in found
    silent = words(shortcut(study({"shortcut": probe(0.26, 0.4)})))
    assert "No such shortcut is shown" in silent and "give keys away" not in silent
    assert "Not run: no option texts." in words(shortcut(study(lacking={"shortcut": "no option texts"})))
    assert "Not run" in words(shortcut(SimpleNamespace(study=lambda name: None)))
