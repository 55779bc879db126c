"""Write figures to files: four per figure, the same bytes in every run, and one page that shows them all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from auditlib import escape
from auditlib.figures import FIGURES, Figure
from auditlib.lookup import Lacking
from auditlib.paths import atomic

FORMATS = ("pdf", "svg", "png")
_METADATA = {"pdf": {"CreationDate": None, "ModDate": None}, "svg": {"Date": None}, "png": {"Software": None}}


def save_figures(audit: Any, paths: Any, names: list[str] | None = None) -> pd.DataFrame:
    """Write the figures of an audit.

    Parameters
    ----------
    audit : a saved or fresh audit.
    paths : :class:`~auditlib.paths.RunPaths` of the pool.
    names : figures to write; all of :data:`~auditlib.figures.FIGURES` by default.

    Returns
    -------
    frame : one row per figure: name, title, state (``drawn`` or ``not drawn``), reason, caption.

    Notes
    -----
    Files of a figure that is not drawn are removed, so that none from an earlier run stays. The page and the list
    (``index.html``, ``index.csv``) cover all figures; those not asked for keep their earlier row.
    """
    wanted = list(FIGURES) if names is None else names
    done = {name: _save(FIGURES[name], audit, paths.figures) for name in wanted}
    listing = paths.figures / "index.csv"
    if names is not None and listing.exists():
        before = pd.read_csv(listing, dtype=str, keep_default_na=False)
        done = {**{r["name"]: r for r in before.to_dict("records") if r["name"] in FIGURES}, **done}
    table = pd.DataFrame([done[name] for name in FIGURES if name in done])
    with atomic(listing) as file:
        escape.guard_csv(table).to_csv(file, index=False, lineterminator="\n")
    from auditlib.report.gallery import figures_page

    with atomic(paths.figures / "index.html") as file:
        file.write_text(figures_page(audit, table, paths.figures), encoding="utf-8")
    return table if names is None else table[table["name"].isin(wanted)].reset_index(drop=True)


def _save(figure: Figure, audit: Any, folder: Path) -> dict[str, str]:
    row = {"name": figure.name, "title": figure.title, "state": "drawn", "reason": "", "caption": ""}
    try:
        frame = figure.prepare(audit)
        row["caption"] = figure.caption(frame)
    except Lacking as why:
        for ending in (*FORMATS, "csv"):
            (folder / f"{figure.name}.{ending}").unlink(missing_ok=True)
        return row | {"state": "not drawn", "reason": str(why)}
    with atomic(folder / f"{figure.name}.csv") as file:
        escape.guard_csv(frame).to_csv(file, index=False, lineterminator="\n")
    draw_files(figure, frame, folder)
    return row


def draw_files(figure: Figure, frame: pd.DataFrame, folder: Path) -> None:
    """PDF, SVG and PNG of one prepared figure."""
    import matplotlib.pyplot as plt
    from matplotlib import rc_context

    from auditlib.figures.style import look, texts_of

    with look(texts_of(frame)):
        drawn = figure.draw(frame).figure
        try:
            drawn.draw_without_rendering()
            with rc_context({"figure.constrained_layout.use": False}):
                drawn.set_layout_engine(None)  # the layout is settled: the three files need not find it again
            for ending in FORMATS:
                with atomic(folder / f"{figure.name}.{ending}") as file:
                    drawn.savefig(file, format=ending, metadata=_METADATA[ending])
        finally:
            plt.close(drawn)
