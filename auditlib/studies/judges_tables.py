"""Tables of judges."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from auditlib.figures.judges import setting_name
from auditlib.judges.dimensions import named
from auditlib.studies.results import Result
from auditlib.table_formats import Column
from auditlib.tables import Table

#: quantities of the table over all dimensions, in its columns
_OVERALL = ("detection", "detection_macro", "false_alarm", "d_prime", "criterion", "auc", "tie", "locked", "reversed",
            "unanswered", "floor", "repeatability", "effect_size", "severity")  # fmt: skip


def with_setting(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(
        setting=[setting_name(r.judge, r.paradigm, r.style, r.image, table) for r in table.itertuples()]
    )


def states(result: Result) -> pd.DataFrame:
    """What became of the calls."""
    table = result.frame("states")
    return table.assign(paradigm=table["paradigm"].str.replace("_", " "))


def overall(result: Result) -> pd.DataFrame:
    """One row per judge and setting."""
    table = with_setting(result.frame("overall"))
    wide = table.pivot_table(index="setting", columns="quantity", values="estimate", sort=False).reindex(
        columns=list(_OVERALL)
    )
    ends = table[table["quantity"].eq("d_prime")].set_index("setting")[["low", "high"]]
    n = table[table["quantity"].eq("detection")].set_index("setting")["n"]
    return wide.join(ends).join(n).reset_index()


def dimensions(result: Result) -> pd.DataFrame:
    """One row per judge, setting and dimension, hardest first."""
    table = with_setting(result.frame("dimensions"))
    name = table["dimension"].map(named).str.replace(" (I2T)", "", regex=False)
    table = table.assign(name=name + np.where(table["effect"].eq("neutral"), ", neutral", ""))
    rank = {s: i for i, s in enumerate(dict.fromkeys(table["setting"]))}
    order = table.assign(a=table["setting"].map(rank), b=table["effect"].eq("neutral"))
    return order.sort_values(["a", "b", "shrunk", "estimate"], kind="stable").reset_index(drop=True)


def images(result: Result) -> pd.DataFrame:
    """Detection with the image and without."""
    return result.frame("images")


def lengths(result: Result) -> pd.DataFrame:
    """Gap at equal length."""
    return with_setting(result.frame("lengths"))


def settings(result: Result) -> pd.DataFrame:
    """Paradigms, styles and judges on the same instances."""
    return result.frame("settings")


def people(result: Result) -> pd.DataFrame:
    """Scores against people's."""
    return result.frame("people")


def value(result: Result) -> pd.DataFrame:
    """One row per judge: value, gain, share, regret, top, win."""
    table = result.frame("value")
    wide = table.pivot_table(index="judge", columns="quantity", values="estimate", sort=False)
    wide = wide.reindex(columns=["value", "random", "best", "gain", "share", "regret", "top", "win"])
    share = (
        table[table["quantity"].eq("share")].set_index("judge").reindex(columns=["low", "high", "p", "n", "unanswered"])
    )
    return wide.join(share).reset_index()


def contrasts(result: Result) -> pd.DataFrame:
    """Judge against random, similarity, judge."""
    return result.frame("contrasts")


def slots(result: Result) -> pd.DataFrame:
    """Slots against expectation, over all calls."""
    table = result.frame("slots")
    return table[table["scope"].isin(("all", "prompts"))].reset_index(drop=True)


def orders(result: Result) -> pd.DataFrame:
    """Changes between orders and within one."""
    return result.frame("orders")


def filters(result: Result) -> pd.DataFrame:
    """One row per judge and filter."""
    table = result.frame("filters")
    wide = table.pivot_table(index=["judge", "filter"], columns="quantity", values="estimate", sort=False)
    inner = table[table["quantity"].eq("interaction")].set_index(["judge", "filter"])[["low", "high", "n"]]
    need = ["coverage", "gain_kept", "gain_dropped", "interaction", "good_lost", "bad_kept", "judge_alone",
            "policy_random", "policy_people"]  # fmt: skip
    return wide.reindex(columns=need).join(inner).reset_index()


def shared(result: Result) -> pd.DataFrame:
    """Bad choices that two judges share."""
    table = result.frame("shared_errors")
    return table.assign(rate=np.where(table["prompts"] > 0, table["agree_bad"] / table["prompts"], np.nan),
                        chance=table["expected"] / table["prompts"])  # fmt: skip


def side(result: Result) -> pd.DataFrame:
    """Side effects of what is returned."""
    return result.frame("side_effects")


def consistency(result: Result) -> pd.DataFrame:
    """Pairwise votes in both orders, by comparison, with the first slot's share."""
    table = result.frame("consistency")
    first = result.frame("preference").rename(columns={"estimate": "first", "q_clusters": "first_q"})
    return table.merge(first[["judge", "comparison", "first", "first_q"]], on=["judge", "comparison"], how="left")


def _range(label: str, low: str, high: str, kind: str = "pct") -> Column:
    return Column(f"{low}..{high}", label, f"range:{low}:{high}:{kind}")


def columns_of(*rows: tuple[str, str] | tuple[str, str, str]) -> tuple[Column, ...]:
    return tuple(_range(r[1], *r[0].split(".."), r[2]) if ".." in r[0] else Column(*r) for r in rows)


def table_of(name: str, title: str, make: Callable, columns: tuple[Column, ...], note: str) -> Table:
    return Table(f"judges_{name}", title, make, columns, note)


TABLES: tuple[Table, ...] = (
    table_of("states", "What became of the calls", states,
           columns_of(("judge", "Judge"), ("paradigm", "Asked for"), ("calls", "Calls", "count"),
                    ("answered", "Answered (%)", "pct"), ("chosen", "Chosen", "count"), ("scored", "Scored", "count"),
                    ("tie", "Ties declared", "count"), ("tie_failure", "Ties from failure", "count"),
                    ("unparsed", "Unparsed", "count"), ("sentinel", "No score (-1)", "count"),
                    ("no_reply", "No reply", "count")),
           "Ties from failure and numbers that stand for no score are no answers."),
    table_of("overall", "Planted damage: detection and false alarms", overall,
           columns_of(("setting", "Judge"), ("n", "Instances", "count"), ("detection", "Detected (%)", "pct"),
                    ("detection_macro", "Mean of dimensions (%)", "pct"), ("false_alarm", "False alarms (%)", "pct"),
                    ("d_prime", "d'", "number"), ("low..high", "95% interval", "number"),
                    ("criterion", "Criterion", "number"), ("auc", "AUC", "number")),
           "Detected: strictly lower score, or the gold preferred in both orders. d' near 0: the judge does not tell "
           "damage from harmless changes. Criterion below 0: it finds fault easily."),
    table_of("outcomes", "Planted damage: what else happens, and the floor", overall,
           columns_of(("setting", "Judge"), ("tie", "Ties (%)", "pct"), ("locked", "Same slot (%)", "pct"),
                    ("reversed", "Reversed (%)", "pct"), ("unanswered", "No answer (%)", "pct"),
                    ("floor", "By chance (%)", "pct"), ("repeatability", "ICC", "number"),
                    ("effect_size", "Gap / SD", "number"), ("severity", "Per severity (pp)", "pp")),
           "By chance: a second score of the same output is strictly lower. Gap / SD: fall of the score in standard "
           "deviations of repeated scoring. Per severity: change of detection per step, within dimensions."),
    table_of("dimensions", "Detection by dimension", dimensions,
           columns_of(("setting", "Judge"), ("name", "Dimension"), ("n", "Instances", "count"),
                    ("unanswered", "No answer", "count"), ("estimate", "Detected (%)", "pct"),
                    ("low..high", "95% interval", "pct"), ("shrunk", "Pooled (%)", "pct"),
                    ("q_half", "q, below half", "p"), ("below_macro", "To mean (pp)", "pp"),
                    ("q_macro", "q, below mean", "p")),
           "Pooled: Beta-Binomial over the dimensions of a judge, for the ranking. q: Benjamini-Hochberg. Neutral "
           "changes should not be detected."),
    table_of("images", "Does the judge use the image?", images,
           columns_of(("judge", "Judge"), ("paradigm", "Asked for"), ("without", "Image"), ("n", "Instances", "count"),
                    ("shown", "Detected with it (%)", "pct"), ("other", "Without (%)", "pct"),
                    ("estimate", "Difference (pp)", "pp"), ("low..high", "95% interval (pp)", "pp"), ("p", "p", "p"),
                    ("q", "Holm", "p"), ("p_same", "p, no difference", "p")),
           "p, no difference: equivalence test with a margin of 5 points; small means that the judge reads the text."),
    table_of("lengths", "Does length decide?", lengths,
           columns_of(("setting", "Judge"), ("n", "Instances", "count"), ("slope", "Gap per 100 characters", "number"),
                    ("low..high", "95% interval", "number"), ("gap", "Gap", "number"),
                    ("gap_same_length", "Gap at equal length", "number"), ("note", "Note")),
           "A slope below 0: a longer damaged output is forgiven more."),
    table_of("settings", "Ways of asking, and judges, on the same instances", settings,
           columns_of(("kind", "Compared"), ("at", "At"), ("first", "First"), ("second", "Second"),
                    ("n", "Instances", "count"), ("first_rate", "First detects (%)", "pct"),
                    ("second_rate", "Second (%)", "pct"), ("estimate", "Difference (pp)", "pp"),
                    ("low..high", "95% interval (pp)", "pp"), ("q", "Holm", "p"),
                    ("d_prime", "Difference of d'", "number")),
           "Exact McNemar tests; intervals resample images."),
    table_of("people", "Scores against people's", people,
           columns_of(("judge", "Judge"), ("comparison", "Set"), ("n", "Scores", "count"),
                    ("unparsed", "No score", "count"), ("unparsed_share", "No score (%)", "pct"),
                    ("rank", "Rank correlation", "number"), ("low..high", "95% interval", "number"),
                    ("lenient", "Leniency", "number"), ("lenient_low..lenient_high", "95% interval", "number"),
                    ("lenient_bound_low..lenient_bound_high", "Bounds", "number")),
           "Numbers that stand for no score (-1) are no scores. Leniency: mean of score less people's rating; its "
           "bounds count each missing score as the lowest, the highest seen."),
    table_of("value", "What decisions are worth", value,
           columns_of(("judge", "Judge"), ("n", "Prompts", "count"), ("unanswered", "No decision", "count"),
                    ("value", "Mean rating", "number"), ("random", "Random", "number"), ("best", "Best", "number"),
                    ("share", "Normalised gain (%)", "pct"),
                    ("low..high", "95% interval", "pct"), ("p", "p, barely better", "p"),
                    ("top", "Takes a best one (%)", "pct"),
                    ("win", "Beats another (%)", "pct")),
           "p, barely better: equivalence test, normalised gain within 10 points of 0."),
    table_of("contrasts", "Decisions against random, similarity and other judges", contrasts,
           columns_of(("judge", "Judge"), ("against", "Against"), ("n", "Prompts", "count"),
                    ("estimate", "Difference in rating", "number"), ("low..high", "95% interval", "number"),
                    ("p", "p", "p"), ("q", "Holm", "p")),
           "Sign flips of whole clusters."),
    table_of("slots", "Slots against their expectation", slots,
           columns_of(("judge", "Judge"), ("scope", "Weighted by"), ("slot", "Slot"), ("n", "Calls", "count"),
                    ("estimate", "Chosen (%)", "pct"), ("low..high", "95% interval", "pct"),
                    ("expected", "Expected (%)", "pct"), ("excess", "Excess (pp)", "pp"), ("p", "p, exact", "p"),
                    ("p_clusters", "p, clusters", "p"), ("q", "Holm", "p")),
           "Expected: mean of 1/n over the calls that have the slot. p, exact: Poisson-binomial."),
    table_of("orders", "Decisions that change with the order", orders,
           columns_of(("judge", "Judge"), ("quantity", "Quantity"), ("n", "Prompts", "count"),
                    ("estimate", "Share (%)", "pct"), ("low..high", "95% interval", "pct"), ("p", "p", "p")),
           "Only the excess over repeats in the same order is an effect of the order."),
    table_of("filters", "Agreement filters", filters,
           columns_of(("judge", "Judge"), ("filter", "Keeps where"), ("coverage", "Kept (%)", "pct"),
                    ("gain_kept", "Gain, kept", "number"), ("gain_dropped", "Gain, dropped", "number"),
                    ("interaction", "Difference", "number"), ("low..high", "95% interval", "number"),
                    ("good_lost", "Good among dropped (%)", "pct"), ("bad_kept", "Bad among kept (%)", "pct"),
                    ("judge_alone", "Without filter", "number"), ("policy_random", "Else random", "number")),
           "The last two are mean ratings over all prompts: of the judge alone, and of keeping its decision where the "
           "filter does and choosing at random otherwise."),
    table_of("shared", "Bad choices that two judges share", shared,
           columns_of(("first", "First"), ("second", "Second"), ("prompts", "Prompts", "count"),
                    ("rate", "Same bad choice (%)", "pct"), ("chance", "If independent (%)", "pct"),
                    ("excess", "Excess (pp)", "pp"), ("low..high", "95% interval (pp)", "pp"), ("p", "p", "p"),
                    ("bad_among_agreed", "Bad where they agree (%)", "pct")),
           "Independent: given people's ratings. A filter on agreement keeps shared errors."),
    table_of("side", "Side effects of what is returned", side,
           columns_of(("decision", "Decision"), ("group", "Group"), ("n", "Prompts", "count"),
                    ("estimate", "More than random", "number"), ("low..high", "95% interval", "number"),
                    ("sim_low..sim_high", "All groups at once", "number"),
                    ("detectable", "Smallest detectable", "number"), ("p", "p", "p"), ("q", "Holm", "p")),
           "Not detectable is not absent: read the interval and the smallest detectable difference."),
    table_of("consistency", "Votes in both orders", consistency,
           columns_of(("judge", "Judge"), ("comparison", "Comparison"), ("pairs", "Pairs", "count"),
                    ("estimate", "Same decision (%)", "pct"), ("low..high", "95% interval", "pct"),
                    ("locked", "Follow the slot", "count"), ("to_tie", "To or from a tie", "count"),
                    ("one_order", "One order", "count"), ("unanswered", "No answer", "count"),
                    ("first", "First slot (%)", "pct"), ("first_q", "Holm", "p")),
           "First slot: share of the votes that name an answer; one half without bias."),
)  # fmt: skip
