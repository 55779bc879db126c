"""The sections of the studies beyond the audit: curation and its kin, where their notebooks have been run."""

from __future__ import annotations

from typing import Any

from auditlib.lookup import Lacking
from auditlib.paths import RunPaths
from auditlib.report.blocks import Block, Section, section
from auditlib.report.exhibits import block_of, saved_figures, shelf
from auditlib.studies import STUDIES, Result, Study


def studied(audit: Any, paths: RunPaths) -> list[Section]:
    """One section per study of this pool: its words, figures and tables."""
    drawn = saved_figures(paths)
    out = []
    for study in STUDIES.values():
        result = audit.study(study.name)
        if result is not None:
            figures = shelf(drawn, tuple(f.name for f in study.figures))
            out.append(section(study.name, study.title, *study.words(result), figures, *_tables(study, result)))
    return [s for s in out if s["blocks"]]


def _tables(study: Study, result: Result) -> list[Block]:
    blocks = []
    for t in study.tables:
        try:
            frame = t.build(result)
        except Lacking:  # the words say what the study lacks
            continue
        if len(frame):
            blocks.append(block_of(t.name, t.title, frame, t.columns_of(frame), t.note))
    return blocks
