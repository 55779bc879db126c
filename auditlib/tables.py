"""Tables of an audit. ``TABLES`` is a plain dict in reading order; :func:`save_tables` writes each in four formats.

``python -m auditlib.tables outputs/POOL [NAME ...]`` makes them again from a saved audit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from auditlib import flagged_rows, table_formats, table_rows
from auditlib.lookup import Lacking
from auditlib.paths import RunPaths, atomic
from auditlib.table_formats import Column

FORMATS = ("csv", "md", "tex", "html")


@dataclass(frozen=True)
class Table:
    """One table: ``build`` gives the numbers, ``columns`` say how they are printed.

    ``columns`` is a function of the frame where a pool's own categories are columns.
    """

    name: str
    title: str
    build: Callable[[Any], pd.DataFrame]
    columns: tuple[Column, ...] | Callable[[pd.DataFrame], tuple[Column, ...]]
    note: str = ""

    def columns_of(self, frame: pd.DataFrame) -> tuple[Column, ...]:
        """The columns of one frame that ``build`` made."""
        return self.columns(frame) if callable(self.columns) else self.columns


def _range(label: str, low: str, high: str, kind: str = "pct") -> Column:
    return Column(f"{low}..{high}", label, f"range:{low}:{high}:{kind}")


_MODEL, _ARM, _N = Column("model", "Model"), Column("arm", "Arm"), Column("n", "Items", "count")

_ALL = (
    Table("headline", "Headline numbers", table_rows.headline,
          (Column("quantity", "Quantity"), _ARM, _N, Column("estimate", "Value (%)", "auto"),
           _range("95% interval", "low", "high", "auto"), Column("null", "Null (%)", "pct"),
           Column("excess", "Excess (pp)", "pp"), _range("95% interval (pp)", "excess_low", "excess_high", "pp"),
           Column("p", "p", "p"), _range("One model left out", "pool_low", "pool_high", "auto"),
           _range("Excess, one left out", "pool_excess_low", "pool_excess_high", "pp")),
          "One model left out: smallest and largest value over such pools; fewer models tie more often. "
          "Kappa and alpha are plain numbers."),
    Table("table1_detectors", "Detector taxonomy", table_rows.taxonomy,
          (Column("detector", "Detector"), Column("signal", "Signal"), Column("pathology", "Pathology flagged"),
           Column("judge_dependent", "Judge-dependent")),
          "Judge-dependent: the output depends on how replies are scored."),
    Table("table2_pools", "Zero-gain share against the pooled null", table_rows.pools,
          (Column("models", "Model pool"), _N, Column("estimate", "Observed (%)", "pct"),
           Column("null", "Null mean (%)", "pct"), Column("excess", "Excess (pp)", "pp"),
           _range("95% interval (pp)", "excess_low", "excess_high", "pp"), Column("p", "p", "p"),
           Column("p_method", "p from"), Column("p_monte_carlo", "p, random tables", "p")),
          "Blind results permuted over all items; null mean in closed form. The last column repeats p by random "
          "tables, (g + 1)/(N + 1)."),
    Table("strata", "Official categories", table_rows.strata,
          (Column("stratum", "Official category"), _N, Column("zero_gain", "Zero gain (%)", "pct"),
           Column("null", "Null (%)", "pct"), Column("excess", "Excess (pp)", "pp"),
           _range("95% interval (pp)", "excess_low", "excess_high", "pp"), Column("p", "p", "p"),
           Column("q", "q", "p"), Column("unanimous", "Unanimous (%)", "pct"),
           _range("95% interval", "unanimous_low", "unanimous_high")),
          "q: Benjamini-Hochberg over the official categories. An interval and p answer different questions and can "
          "differ near the border."),
    Table("categories", "Categories by scoring arm", table_rows.categories,
          (Column("category", "Category"), _ARM, Column("estimate", "Share (%)", "pct"),
           _range("95% interval", "low", "high"), Column("null", "Null (%)", "pct"),
           Column("excess", "Excess (pp)", "pp"), Column("p", "p", "p"),
           _range("Attainable", "bound_low", "bound_high"), _range("One model left out", "pool_low", "pool_high")),
          "Pooled null. Attainable: what other answers in place of the abstentions could make of the share."),
    Table("abstention", "Shares by what an abstention counts as", table_rows.abstention,
          (Column("share", "Share"), _ARM, Column("wrong", "Wrong (%)", "pct"),
           Column("excluded", "Left out (%)", "pct"), Column("excluded_n", "Items left", "count"),
           Column("excluded_excess", "Excess, left out (pp)", "pp"),
           _range("Attainable, blind", "bound_low", "bound_high"),
           _range("Attainable, both runs", "both_low", "both_high")),
          "Left out: the pair of model and item leaves both counts; its excess is over the pooled null. Attainable: "
          "any answers in place of the abstentions. The first two are no bounds."),
    Table("composition", "Composition of the zero-gain set", table_rows.composition,
          (Column("level", "Models right, both runs", "count"), Column("n", "Items", "count"),
           Column("estimate", "Observed (%)", "pct"), Column("null", "Expected (%)", "pct"),
           Column("excess", "Difference (pp)", "pp"), Column("null_kind", "Null")),
          "Expected under the null named in the last column: within the official categories, or pooled over all "
          "items."),
    Table("blind_profile", "What became of each reply (%)", table_rows.profile,
          (_MODEL, Column("condition", "Run"), Column("n", "Replies", "count"), Column("correct", "Correct", "pct"),
           Column("wrong", "Wrong", "pct"), Column("unparseable", "Unparseable", "pct"),
           Column("refused", "Refused", "pct"), Column("failed", "Failed", "pct")),
          "Exclusive, tested in the order failed, correct, refused, unparseable, wrong; headline arm."),
    Table("accuracy", "Accuracy with and without the image", table_rows.accuracy,
          (_MODEL, _ARM, Column("full", "Full (%)", "pct"), _range("95% interval", "full_low", "full_high"),
           Column("blind", "Blind (%)", "pct"), _range("95% interval", "blind_low", "blind_high"),
           Column("gain", "Gain (pp)", "pp"), Column("leakage", "Leakage (pp)", "pp"))),
    Table("agreement", "Agreement among models", table_rows.agreement,
          (Column("quantity", "Quantity"), _ARM, _N, Column("estimate", "Value", "auto"),
           _range("95% interval", "low", "high", "auto"), Column("note", "Note")), "Shares in percent."),
    Table("same_wrong_option", "Two models, both wrong: how often the same wrong option", table_rows.wrong_options,
          (Column("models", "Pair"), Column("n", "Items, both wrong", "count"),
           Column("estimate", "Same option (%)", "pct"), _range("95% interval", "low", "high"),
           Column("shuffled", "Shuffled (%)", "pct"), Column("rejudged", "Re-judged (%)", "pct")),
          "Shuffled: wrong letters moved between items with their own wrongness. Re-judged: wrongness judged on the "
          "new item."),
    Table("disagreement", "Pairs that judge and parser score differently", table_rows.disagreement,
          (_MODEL, Column("full", "Full run", "count"), Column("blind", "Blind run", "count"),
           Column("all", "Both", "count"))),
    Table("letters", "Option letters", table_rows.letters,
          (Column("letter", "Letter"), _N, Column("key", "Keys (%)", "pct"), Column("expected", "Uniform (%)", "pct"),
           Column("always", "Always-letter accuracy (%)", "pct"), Column("models_median", "Models, median (%)", "pct"),
           _range("Models, range", "models_min", "models_max"))),
    Table("extraction", "How replies were read", table_rows.extraction,
          (_MODEL, Column("condition", "Run"), Column("read", "Outcome"), Column("rule", "Reader: rule or reason"),
           Column("replies", "Replies", "count"), Column("share", "Share (%)", "pct"))),
    Table("verdicts", "Where the judged arm's verdicts come from", table_rows.verdicts,
          (_MODEL, Column("condition", "Run"), Column("judge", "Judge"), Column("source", "Source"),
           Column("verdicts", "Verdicts", "count"), Column("hits", "Hits", "count")),
          "Filled at random or from a stale cache: counted as abstentions, never as answers."),
    Table("detectors", "What each detector did", table_rows.detectors,
          (Column("detector", "Detector"), Column("state", "State"), Column("reason", "Reason"),
           Column("judged", "Items judged", "count"), Column("flagged", "Flagged", "count"),
           Column("high", "High", "count"), Column("medium", "Medium", "count"), Column("low", "Low", "count"),
           Column("info", "Info", "count")),
          "Headline arm, where a detector judges per arm. An item can stand in several rows."),
    Table("coverage", "What was read, joined and left out", table_rows.coverage,
          (Column("what", "What"), Column("n", "Rows or items", "count"), Column("places", "Places", "count"),
           Column("reason", "Reason"))),
    Table("flagged", "Items to look at first", flagged_rows.flagged,
          (Column("item", "Item"), Column("stratum", "Official category"), Column("severity", "Severity"),
           Column("key", "Key"), Column("votes", "Votes with the image"), Column("reasons", "Reasons")),
          "At most 30; flagged.md holds the whole list."),
    Table("flagged_texts", "Texts of the items to look at first", flagged_rows.flagged_texts,
          (Column("item", "Item"), Column("key", "Key"), Column("question", "Question"), Column("options", "Options"),
           Column("replies", "Replies"))),
)  # fmt: skip

TABLES: dict[str, Table] = {t.name: t for t in _ALL}


def save_tables(audit: Any, paths: RunPaths, names: Sequence[str] | None = None) -> pd.DataFrame:
    """Write ``tables/NAME.csv .md .tex .html``.

    Parameters
    ----------
    audit : a saved or fresh audit.
    paths : files of the pool.
    names : tables to write; all of :data:`TABLES` by default.

    Returns
    -------
    frame : one row per table: name, title, state (``made`` or ``not made``), reason, rows.

    Notes
    -----
    CSV holds shares in [0, 1] with 12 digits; the other formats print percent and points. Files of a table that is
    not made are removed.
    """
    from auditlib.extensions import extensions_of
    from auditlib.studies import STUDIES, all_tables, study_of

    own = extensions_of(audit.params).tables
    known = all_tables() | own
    run = {name: result for name in STUDIES if (result := audit.study(name)) is not None}
    mine = [*TABLES, *own, *(t.name for name in run for t in STUDIES[name].tables)]
    made = []
    for name in mine if names is None else names:
        table, study = known[name], study_of(name)
        try:
            if study is not None and study.name not in run:
                raise Lacking("the notebook that makes it has not been run")
            frame = table.build(audit if study is None else run[study.name])
        except Lacking as why:
            for ending in FORMATS:
                (paths.tables / f"{name}.{ending}").unlink(missing_ok=True)
            made.append({"name": name, "title": table.title, "state": "not made", "reason": str(why), "rows": 0})
            continue
        for ending, text in formats_of(table, frame).items():
            with atomic(paths.tables / f"{name}.{ending}") as file:
                file.write_text(text, encoding="utf-8")
        made.append({"name": name, "title": table.title, "state": "made", "reason": "", "rows": len(frame)})
    return pd.DataFrame(made)


def formats_of(table: Table, frame: pd.DataFrame) -> dict[str, str]:
    """One table as text in each format."""
    columns = table.columns_of(frame)
    shown = table_formats.cells(frame, columns)
    return {
        "csv": table_formats.csv(frame),
        "md": table_formats.markdown(table.title, columns, shown, table.note),
        "tex": table_formats.latex(table.name, table.title, columns, shown, table.note),
        "html": table_formats.html(table.title, columns, shown, table.note),
    }


def _main(arguments: Sequence[str]) -> int:
    from auditlib.report.again import again
    from auditlib.studies import all_tables

    return again(arguments, "tables", all_tables(), save_tables)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
