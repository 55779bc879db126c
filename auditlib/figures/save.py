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
    from auditlib.extensions import extensions_of
    from auditlib.studies import STUDIES, all_figures, study_of

    own = extensions_of(audit.params).figures
    known = all_figures() | own
    run = {name: result for name in STUDIES if (result := audit.study(name)) is not None}
    mine = [*FIGURES, *own, *(f.name for name in run for f in STUDIES[name].figures)]
    wanted = mine if names is None else names
    done = {name: _save(known[name], _subject(study_of(name), audit, run), paths.figures) for name in wanted}
    table = _listed(done, paths, [*mine, *wanted], keep=names is not None)
    from auditlib.report.gallery import figures_page

    with atomic(paths.figures / "index.html") as file:
        file.write_text(figures_page(audit, table, paths.figures), encoding="utf-8")
    return table if names is None else table[table["name"].isin(wanted)].reset_index(drop=True)


def save_study_figures(result: Any, paths: Any, names: list[str] | None = None) -> pd.DataFrame:
    """Write figures of one study as its notebook makes them; the page of all figures is left to :func:`save_figures`.

    Parameters
    ----------
    result : :class:`~auditlib.studies.results.Result`.
    names : figures to write; all of the study's by default.

    Returns
    -------
    frame : one row per figure, as :func:`save_figures` returns.
    """
    from auditlib.studies import STUDIES

    known = {f.name: f for f in STUDIES[result.name].figures}
    done = {name: _save(known[name], result, paths.figures) for name in (known if names is None else names)}
    table = _listed(done, paths, None, keep=True)
    return table[table["name"].isin(done)].reset_index(drop=True)


def _listed(done: dict[str, dict[str, str]], paths: Any, order: list[str] | None, *, keep: bool) -> pd.DataFrame:
    """Write the list beside the figures: the rows just made, and with ``keep`` those of before."""
    listing = paths.figures / "index.csv"
    before: dict[str, dict[str, str]] = {}
    if keep and listing.exists():
        rows = pd.read_csv(listing, dtype=str, keep_default_na=False).to_dict("records")
        before = {r["name"]: r for r in rows if order is None or r["name"] in order}
    merged = {**before, **done}
    table = pd.DataFrame([merged[n] for n in dict.fromkeys(merged if order is None else order) if n in merged])
    with atomic(listing) as file:
        escape.guard_csv(table).to_csv(file, index=False, lineterminator="\n")
    return table


def _subject(study: Any, audit: Any, run: dict[str, Any]) -> Any:
    """What a figure is made from: the audit, or the result of its study."""
    return audit if study is None else run.get(study.name)


def _save(figure: Figure, audit: Any, folder: Path) -> dict[str, str]:
    row = {"name": figure.name, "title": figure.title, "state": "drawn", "reason": "", "caption": ""}
    try:
        if audit is None:
            raise Lacking("the notebook that makes it has not been run")
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
