"""Candidates for an errata table: what an audit's flagged findings say of items, and how the models voted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from auditlib.errata.reasons import CANDIDATE, REASONS, reason_of
from auditlib.errata.reports import UNSPECIFIED, Report
from auditlib.flagged_rows import flagged_findings
from auditlib.frames import ABSTENTION, SEVERITIES

if TYPE_CHECKING:
    from auditlib.auditing import Audit


def candidates(audit: Audit, keys: Mapping[str, str]) -> tuple[list[Report], dict[str, int]]:
    """Reports of an audit's detectors, the most severe first.

    Parameters
    ----------
    keys : item -> the audit's key.

    Returns
    -------
    list of Report, and detector -> flagged findings that name no reason of an errata table (an item that the image
    hurts, say). Findings for information only are no reports.
    """
    table = flagged_findings(audit)
    table = table[table["severity"].ne("info")]
    rank = table["severity"].map({s: i for i, s in enumerate(SEVERITIES)})
    table = table.assign(_rank=rank).sort_values("_rank", kind="stable")
    out: list[Report] = []
    left: Counter[str] = Counter()
    columns = zip(table["item"], table["detector"], table["evidence"], table["message"])
    for item, detector, evidence, message in columns:
        facts = json.loads(evidence) if evidence else {}
        reason = reason_for(detector, facts)
        if reason is None:
            left[detector] += 1
            continue
        key = str(facts["top"]) if detector == "consensus_error" else ""
        out.append(Report(str(item), reason, CANDIDATE, "audit", people=False, old_key=keys.get(str(item), ""),
                          key=key, says=str(message), detectors=(detector,)))  # fmt: skip
    return out, dict(left)


def reason_for(detector: str, facts: Mapping[str, Any]) -> str | None:
    """The reason that a finding speaks for; None where it describes an item and says nothing against it.

    Parameters
    ----------
    facts : the finding's evidence.
    """
    if detector == "consensus_error":
        return "wrong_key"
    if detector == "distractor_similarity":
        return "several_keys" if facts.get("key") in facts.get("pair", ()) else "option_defect"
    if detector == "integrity":
        check = str(facts.get("check", ""))
        if check == "equal_options" and facts.get("beside_key"):
            return "several_keys"
        return check if check in REASONS else reason_of(check)
    if detector == "visual_dependency":
        solved = facts.get("total") and facts.get("B") == facts.get("total")
        return "no_image_needed" if solved else None
    if detector == "dependence":
        return "no_image_needed" if facts.get("label") in ("R", "T") else None
    if detector == "curation":
        if facts.get("stage") == "text_ablation":
            return "no_image_needed"
        named = [r for word in str(facts.get("reasons", "")).replace(";", ",").split(",")
                 if word.strip() and (r := reason_of(word))]  # fmt: skip
        return None if facts.get("stage") == "saturation" else named[0] if named else UNSPECIFIED
    return None


def votes(audit: Audit) -> dict[str, tuple[str, str]]:
    """Item -> how the models voted with the image: ``D 3, – 1``, and ``alpha D, beta D, gamma D, delta –``.

    Of every item that has two votes or more; ``–`` is a reply without a letter.
    """
    table = audit.findings[audit.findings["detector"].eq("consensus_error")]
    out = {}
    for item, evidence in zip(table["item"], table["evidence"]):
        said = {m: "–" if v in (ABSTENTION, "") else v for m, v in json.loads(evidence).get("votes", {}).items()}
        tally = sorted(Counter(said.values()).items(), key=lambda t: (t[0] == "–", -t[1], t[0]))
        out[str(item)] = ", ".join(f"{v} {n}" for v, n in tally), ", ".join(f"{m} {v}" for m, v in said.items())
    return out
