"""Numbers, tables and figures of a pool for a paper in LaTeX: every value from the statistics, none typed."""

from auditlib.latex.files import save_latex

__all__ = ["save_latex"]
