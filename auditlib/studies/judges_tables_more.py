"""Further tables of judges: own family, robustness, validity cards, the judge that reads answers."""

from __future__ import annotations

import numpy as np
import pandas as pd

from auditlib.studies.judges_tables import columns_of, table_of, with_setting
from auditlib.studies.results import Result
from auditlib.tables import Table


def own_family(result: Result) -> pd.DataFrame:
    """Outputs of the judge's own family."""
    return result.frame("own_family")


def own_gold(result: Result) -> pd.DataFrame:
    """Damage to outputs of the judge's own family."""
    return with_setting(result.frame("own_gold"))


def pooled(result: Result) -> pd.DataFrame:
    """Slots and content over judges."""
    return result.frame("pooled_positions")


def without_one(result: Result) -> pd.DataFrame:
    """The result with one image or prompt left out."""
    table = result.frame("without_one")
    names = [f"{r.judge} ({r.paradigm})" if r.paradigm else r.judge for r in table.itertuples()]
    words = {"detection": "detection", "false_alarm": "false alarms", "d_prime": "d'", "share": "normalised gain"}
    return table.assign(setting=names, what=table["quantity"].map(words))


def cards(result: Result) -> pd.DataFrame:
    """One row per validity card."""
    table = result.frame("cards")
    named = [[r.version, f"prompt {r.prompt_sha256[:8]}" * bool(r.prompt_sha256), r.date] for r in table.itertuples()]
    return table.assign(bound=["; ".join(filter(None, parts)) for parts in named])


def card_checks(result: Result) -> pd.DataFrame:
    """Earlier cards."""
    table = result.frame("card_checks")
    return table.assign(holds=np.where(table["holds"], "yes", "no"))


def same_judge(result: Result) -> pd.DataFrame:
    """Earlier choices against present ones."""
    table = result.frame("same_judge")
    return table.assign(changed=np.where(table["changed"], "yes", "no"))


_VARIANTS = {"plain": "as the audit asks", "permuted": "options in another order", "key_shown": "key shown"}


def extraction(result: Result) -> pd.DataFrame:
    """Leniency of the extraction judge, by variant."""
    table = result.frame("extraction_leniency")
    return table.assign(asked=table["variant"].map(_VARIANTS))


def extraction_accuracy(result: Result) -> pd.DataFrame:
    """Agreement with people by type of reply."""
    table = result.frame("extraction_accuracy")
    return table.assign(asked=table["variant"].map(_VARIANTS))


def extraction_changes(result: Result) -> pd.DataFrame:
    """Readings that move with the order of options or the key."""
    table = result.frame("extraction_changes")
    words = {"all": "all replies", "right": "read as the key by people", "wrong": "read as another answer"}
    return table.assign(asked=table["variant"].map(_VARIANTS), replies=table["truth"].map(words))


TABLES: tuple[Table, ...] = (
    table_of("own", "Does a judge choose its own family?", own_family,
           columns_of(("judge", "Judge"), ("family", "Family"), ("calls", "Calls", "count"),
                    ("chosen", "Own chosen (%)", "pct"), ("expected", "Expected (%)", "pct"),
                    ("excess_low..excess_high", "Excess, 95% (pp)", "pp"), ("coef", "Log odds", "number"),
                    ("low..high", "95% interval", "number"), ("q", "Holm", "p"), ("shrunk", "Pooled", "number"),
                    ("note", "Note")),
           "Calls that show outputs of the judge's own and of another family. Expected: a choice that knows nothing. "
           "Log odds at equal slot, rating and similarity; pooled: drawn toward the mean of the judges."),
    table_of("own_gold", "Is damage to the own family's outputs seen?", own_gold,
           columns_of(("setting", "Judge"), ("own", "Own", "count"), ("other", "Other", "count"),
                    ("estimate", "Own less other (pp)", "pp"), ("low..high", "95% interval (pp)", "pp"),
                    ("p", "p", "p")),
           "Detection of planted damage by the family of who wrote the gold output, within dimensions."),
    table_of("pooled", "Slots and content over judges", pooled,
           columns_of(("term", "Term"), ("judge", "Judge"), ("coef", "Log odds", "number"),
                    ("low..high", "95% interval", "number"), ("shrunk", "Pooled", "number"),
                    ("shrunk_low..shrunk_high", "95% interval", "number"), ("spread", "SD between judges", "number")),
           "A conditional logit for each judge with errors by clusters, then random effects over judges. Slots are "
           "against the first one; rating is per point."),
    table_of("without_one", "With one image or prompt left out", without_one,
           columns_of(("setting", "Judge"), ("what", "Quantity"), ("clusters", "Images or prompts", "count"),
                    ("estimate", "Estimate", "number"), ("least..most", "Range without one", "number"),
                    ("moved", "Largest move", "number"), ("most_moving", "By leaving out")),
           "Shares in [0, 1]. A range that changes what is concluded means that one image carries the result."),
    table_of("cards", "Validity cards of the filters", cards,
           columns_of(("judge", "Judge"), ("filter", "Keeps where"), ("order_scheme", "Asked in"),
                    ("bound", "Bound to"), ("prompts", "Prompts", "count"), ("coverage", "Kept (%)", "pct"),
                    ("interaction", "Kept less dropped", "number"), ("low..high", "95% interval", "number"),
                    ("verdict", "Filter"), ("lacks", "Not stated")),
           "A card expires when version, prompt, settings, orders or filter change. Of what is not stated nobody can "
           "see that it changes."),
    table_of("card_checks", "Earlier validity cards", card_checks,
           columns_of(("judge", "Judge"), ("filter", "Keeps where"), ("date", "Dated"), ("was", "Then", "number"),
                    ("now", "Now", "number"), ("holds", "Holds"), ("why", "Why not")),
           "Then and now: gain of the kept less gain of the dropped decisions."),
    table_of("same", "Is it still the same judge?", same_judge,
           columns_of(("judge", "Judge"), ("pairs", "Pairs of calls", "count"), ("left_out", "Without pair", "count"),
                    ("slots", "p, slots", "p"), ("candidates", "p, candidates", "p"), ("changed", "Changed")),
           "Earlier and present calls of the same prompt and order, permuted; changed where either p is at most 2.5%."),
    table_of("extraction", "The judge that reads answers: leaning to the key", extraction,
           columns_of(("asked", "Asked"), ("wrong", "Not the key", "count"),
                    ("false_right", "Read as the key (%)", "pct"),
                    ("false_right_low..false_right_high", "95% interval", "pct"), ("right", "The key", "count"),
                    ("false_wrong", "Read otherwise (%)", "pct"),
                    ("false_wrong_low..false_wrong_high", "95% interval", "pct"), ("q", "Holm", "p")),
           "By people's reading of the reply. Holm: exact McNemar test that errors toward and away from the key are "
           "as many."),
    table_of("extraction_accuracy", "The judge that reads answers: agreement with people", extraction_accuracy,
           columns_of(("asked", "Asked"), ("kind", "Reply"), ("n", "Replies", "count"), ("unread", "Not read", "count"),
                    ("estimate", "As people (%)", "pct"), ("low..high", "95% interval", "pct")),
           "The row of all replies is weighted to the population from which they were sampled."),
    table_of("extraction_changes", "The judge that reads answers: what moves it", extraction_changes,
           columns_of(("asked", "Asked"), ("replies", "Replies"), ("n", "n", "count"),
                    ("changed", "Changed (%)", "pct"), ("baseline", "Asked again (%)", "pct"),
                    ("excess", "Excess (pp)", "pp"), ("low..high", "95% interval (pp)", "pp"),
                    ("to_key", "To the key", "count"), ("from_key", "From the key", "count"), ("q", "Holm", "p")),
           "Asked again: a second call in which nothing changed. Holm: readings move to the key and away alike."),
)  # fmt: skip
