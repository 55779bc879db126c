"""Figures and tables of the report: the saved files and the builders that also write them to disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from auditlib import escape, table_formats
from auditlib.lookup import Lacking
from auditlib.numerals import NONE
from auditlib.paths import RunPaths
from auditlib.report.blocks import Block, Section, figures, p, section, table
from auditlib.tables import TABLES

#: rows that a table shows in the report; the whole is in tables/
MOST = 40

#: what is shown where: id, title, sentence, figures, tables
SHELVES = (
    ("gain", "Gain from the image", "F is the number of models that are right with the image, B without. Zero gain: "
     "F = B. The null keeps how often each number of models is right in either run and destroys only which full result "
     "belongs to which blind result.",
     ("fig2a_full_vs_blind", "fig2b_null", "fig2c_no_gain", "excess_composition", "pool_size", "bounds"),
     ("table2_pools", "composition", "categories")),
    ("strata", "Official categories", "The headline permutes inside the benchmark’s official categories. An official "
     "category under 50 items has a wide interval or none; q is adjusted over them.",
     ("fig3a_strata_excess", "fig3b_strata_unanimous"), ("strata",)),
    ("scoring", "Judge and parser", "The same replies scored twice: by the judge, and by reading the answer out of the "
     "text with no model in the loop. What both arms show does not hang on the judge.",
     ("fig4a_arm_shares", "fig4b_disagreements", "arm_flow"), ("disagreement",)),
    ("models", "Models, votes and letters", "Categories reflect the willingness to answer too: read a model’s blind "
     "profile before quoting a share that rests on it.",
     ("blind_profile", "key_letters"), ("blind_profile", "accuracy", "agreement", "same_wrong_option", "letters")),
    ("design", "Against the benchmark’s own design labels", "If the categories measured what their names say, visual "
     "gain would recover the benchmark’s design labels.",
     ("fig5a_roc", "fig5b_design_excess"), ()),
)  # fmt: skip


def evidence(built: Mapping[str, pd.DataFrame | str], paths: RunPaths) -> list[Section]:
    """The sections with figures and tables; one that has neither is left out."""
    drawn = saved_figures(paths)
    out = [section("pipeline", "The audit, step by step", shelf(drawn, ("fig1_pipeline",)), _no_figures(drawn))]
    for name, title, words, pictures, tables in SHELVES:
        if name == "scoring" and alike(built):
            pictures = tuple(f for f in pictures if f not in ("fig4b_disagreements", "arm_flow"))
        blocks = [shelf(drawn, pictures), *(made(built, t) for t in tables)]
        if any(blocks):
            out.append(section(name, title, p(words, role="intro"), *blocks))
    return [s for s in out if s["blocks"]]


def saved_figures(paths: RunPaths) -> pd.DataFrame:
    """The list beside the saved figures; empty where none have been saved."""
    listing = paths.figures / "index.csv"
    if not listing.exists():
        return pd.DataFrame(columns=["name", "title", "state", "reason", "caption"])
    return pd.read_csv(listing, dtype=str, keep_default_na=False).map(escape.csv_unguard)


def shelf(drawn: pd.DataFrame, names: tuple[str, ...]) -> Block | None:
    """Those of some figures that are drawn, side by side where they fit."""
    mine = drawn[drawn["name"].isin(names) & drawn["state"].eq("drawn")]
    order = {n: i for i, n in enumerate(names)}
    rows = mine.sort_values("name", key=lambda c: c.map(order))[["name", "title", "caption"]].to_dict("records")
    return figures(rows)


def _no_figures(drawn: pd.DataFrame) -> Block | None:
    return None if len(drawn) else p("No figures lie beside this report: the notebook 80_figures has not been run.")


def build(audit: Any) -> dict[str, pd.DataFrame | str]:
    """Every table of :data:`~auditlib.tables.TABLES` once: its frame, or the reason why the pool has none."""
    out: dict[str, pd.DataFrame | str] = {}
    for name, t in TABLES.items():
        try:
            out[name] = t.build(audit)
        except Lacking as why:
            out[name] = str(why)
    return out


def not_shown(built: Mapping[str, pd.DataFrame | str], paths: RunPaths) -> list[list[str]]:
    """Figures and tables that this pool does not have: name, title, reason."""
    drawn = saved_figures(paths)
    out = [[r.name_, r.title, r.reason] for r in drawn[drawn["state"].ne("drawn")].rename(
        columns={"name": "name_"}).itertuples()]  # fmt: skip
    return out + [[n, TABLES[n].title, why] for n, why in built.items() if isinstance(why, str)]


def made(built: Mapping[str, pd.DataFrame | str], name: str) -> Block | None:
    """One of the tables of :func:`build` as a block; None where the pool has nothing for it."""
    t, frame = TABLES[name], built[name]
    if isinstance(frame, str) or not len(frame):
        return None
    if name == "disagreement" and alike(built):
        return p("Judge and parser score every reply of every model alike.")
    return block_of(name, t.title, frame, t.columns_of(frame), t.note)


def alike(built: Mapping[str, pd.DataFrame | str]) -> bool:
    """Whether judge and parser never differ, so that their figures and tables would hold zeros only."""
    frame = built["disagreement"]
    return not isinstance(frame, str) and not frame["all"].sum()


def block_of(name: str, title: str, frame: pd.DataFrame, columns: tuple[Any, ...], note: str = "") -> Block:
    """A frame as a table block; columns without any content are left out."""
    rows = table_formats.cells(frame.head(MOST), columns)
    full = [i for i, c in enumerate(columns) if any(row[i] not in ("", NONE) for row in rows)]
    more = f"The first {MOST} of {len(frame)} rows; all are in tables/{name}.csv." if len(frame) > MOST else ""
    return table(name, title, [columns[i].label for i in full], [columns[i].left for i in full],
                 [[row[i] for i in full] for row in rows], note=note, more=more)  # fmt: skip
