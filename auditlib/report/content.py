"""What a report says, as plain data for both its formats."""

from __future__ import annotations

from typing import Any

from auditlib.paths import RunPaths
from auditlib.report.advice import advice
from auditlib.report.blocks import numbered, section
from auditlib.report.checking import checking
from auditlib.report.exhibits import build, evidence
from auditlib.report.findings import findings
from auditlib.report.integrity import integrity
from auditlib.report.known import coverage, known
from auditlib.report.methods import methods
from auditlib.report.opening import opening
from auditlib.report.own import own
from auditlib.report.reproduce import footer, reproduce, run_command
from auditlib.report.studied import studied


def content(audit: Any, paths: RunPaths) -> dict[str, Any]:
    """Title, sections of blocks (see :mod:`auditlib.report.blocks`) and the language, all JSON-able."""
    command, built = run_command(audit, paths), build(audit)
    parts = [
        opening(audit, command),
        findings(audit, built),
        integrity(audit),
        advice(audit, command),
        *evidence(built, paths),
        own(audit, paths),
        *studied(audit, paths),
        checking(audit),
        known(audit, paths),
        coverage(audit, built),
        methods(audit, built),
        reproduce(audit, built, paths),
        section("use", "Responsible use", *footer()),
    ]
    return {
        "title": f"{audit.benchmark}: audit of the benchmark",
        "benchmark": str(audit.benchmark),
        "pool": audit.pool_name,
        "sections": numbered([s for s in parts if s is not None]),
    }
