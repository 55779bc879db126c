"""The section on what the pool's own files add: their figures and tables (its detectors stand among the findings)."""

from __future__ import annotations

from typing import Any

from auditlib.extensions import extensions_of
from auditlib.lookup import Lacking
from auditlib.paths import RunPaths
from auditlib.report.blocks import Block, Section, p, section
from auditlib.report.exhibits import block_of, saved_figures, shelf


def own(audit: Any, paths: RunPaths) -> Section | None:
    """The section ``own``; None where no file of the pool's own adds a figure or table."""
    added = extensions_of(audit.params)
    blocks: list[Block | None] = [shelf(saved_figures(paths), tuple(added.figures))]
    for name, table in added.tables.items():
        try:
            frame = table.build(audit)
        except Lacking:
            continue
        blocks.append(block_of(name, table.title, frame, table.columns_of(frame), table.note))
    if not any(blocks):
        return None
    files = ", ".join(f.name for f in audit.params.extensions)
    words = p(f"Made by code that the params name: {files}.", role="intro")
    return section("own", "Added to this audit", words, *blocks)
