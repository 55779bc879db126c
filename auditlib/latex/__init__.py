"""Numbers, tables and figures of a pool for a paper in LaTeX: every value from the statistics, none typed."""

from __future__ import annotations

from typing import Any

__all__ = ["save_latex"]


def save_latex(audit: Any, paths: Any) -> Any:
    """Write the folder ``latex/`` of a pool; see :func:`auditlib.latex.files.save_latex`."""
    from auditlib.latex.files import save_latex as save

    return save(audit, paths)
