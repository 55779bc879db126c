"""Known answers (planted truth, published numbers) beside the audit's own, and what was read at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from auditlib.figures.pipeline import plural
from auditlib.numerals import count, general, percent
from auditlib.paths import RunPaths
from auditlib.report.blocks import Block, Section, b, h3, p, section, table
from auditlib.report.exhibits import made


def known(audit: Any, paths: RunPaths) -> Section | None:
    """The section ``known``: planted truth or published numbers beside the audit's; None where there are none."""
    truth, published = (_read(paths.folder / f"{stem}.csv") for stem in ("truth", "published"))
    if truth is None and published is None:
        return None
    return section(
        "known",
        "Known answers",
        *(_truth(truth) if truth is not None else []),
        *(_published(published) if published is not None else []),
    )


def _read(path: Path) -> pd.DataFrame | None:
    return pd.read_csv(path, dtype=str, keep_default_na=False) if path.exists() else None


def _truth(frame: pd.DataFrame) -> list[Block]:
    found, items = (pd.to_numeric(frame[c]).sum() for c in ("found", "items"))
    also = int(pd.to_numeric(frame["also"]).sum())
    rows = [
        [
            r.planted.replace("_", " "),
            r.detector,
            r.says,
            r.items,
            r.found,
            r.also,
            percent(float(r.recall or "nan")),
            percent(float(r.precision or "nan")),
        ]
        for r in frame.itertuples()
    ]
    return [
        p(
            "Defects were planted in this benchmark, so what the audit should find is known. ",
            b(
                f"It finds {count(found)} of {plural(items, 'planted defect')}, and flags "
                f"{plural(also, 'other item')} on the same grounds."
            ),
            " A pool that plants its own defects shows that detectors work, not how often they are right elsewhere.",
        ),
        table(
            "",
            "Planted and found",
            ["Planted", "Detector", "Counted as found", "Items", "Found", "Others flagged", "Recall", "Precision"],
            [True, True, True, False, False, False, False, False],
            rows,
            note="truth.csv beside this report.",
            widths=[0, 0, 1, 0, 0, 0, 0, 0],
        ),
    ]


def _published(frame: pd.DataFrame) -> list[Block]:
    ruled = "rule" in frame
    claims = frame[frame["kind"] != "information"]
    met = int(claims["met"].eq("yes").sum())
    missed = claims.loc[claims["met"] != "yes", "name"].tolist()
    tail = f" Not met: {'; '.join(missed)}." if missed else ""
    rows = [
        [
            r.name_,
            _num(r.published),
            _num(r.tolerance),
            _num(r.exact),
            _num(r.monte_carlo),
            r.seeds,
            "–" if r.kind == "information" else r.met,
            *([r.rule] if ruled else []),
        ]
        for r in frame.rename(columns={"name": "name_"}).itertuples()
    ]
    return [
        h3("Published numbers"),
        p(
            "This pool is a synthetic replica: no model was run, items and replies are invented so that the counts "
            "behind a "
            "published audit come out again. ",
            b(f"{met} of {len(claims)} rows are met{', each by the rule that stands in it' if ruled else ''}."),
            tail,
            " A split-half row is met when its median lies where random halvings put it; it need not equal the "
            "published value."
            if frame["kind"].eq("split halves").any()
            else "",
        ),
        table(
            "",
            "Published and computed",
            [
                "Quantity",
                "Published",
                "Tolerance",
                "Exact",
                "Monte Carlo",
                "Seeds that print it",
                "Met",
                *(["Rule"] if ruled else []),
            ],
            [True, False, False, False, False, False, True, *([True] if ruled else [])],
            rows,
            note="Monte Carlo: random tables with this run’s own seeds. Seeds that print it: how many of 21 seeds "
            "round to the published value. – : for information. published.csv beside this report.",
            widths=[3, 0, 0, 0, 0, 0, 0, *([2] if ruled else [])],
        ),
    ]


def _num(text: str) -> str:
    try:
        return "" if text == "" else general(float(text))
    except ValueError:
        return text


def coverage(audit: Any, built: dict[str, Any]) -> Section:
    """The section ``coverage``: what was read, joined, left out, and every warning."""
    table_ = audit.coverage
    warned = table_[table_["what"].isin(["warning", "conflict", "excluded", "unreadable"])]
    first = (
        f"{plural(len(warned), 'row')} with a warning, a conflict or an exclusion."
        if len(warned)
        else "Nothing was excluded and no run gave rise to a warning."
    )
    return section(
        "coverage",
        "Coverage",
        p(first + " Run by run, with the item where one is meant: coverage.csv."),
        made(built, "coverage"),
    )
