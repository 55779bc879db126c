"""What the report shows of a calibration."""

from __future__ import annotations

import pandas as pd

from auditlib.figures import Figure
from auditlib.figures import calibration as draw
from auditlib.numerals import percent
from auditlib.report.blocks import Block, b, callout, code, p, ul
from auditlib.studies.results import Result
from auditlib.table_formats import Column
from auditlib.tables import Table

FIGURES: tuple[Figure, ...] = (
    Figure("calibration_spikes", "Planted defects, and how many are found", draw.prepare_spikes, draw.spikes,
           draw.say_spikes, "letters and letter keys, or a blind run"),
    Figure("calibration_fdr", "Local false-discovery rate along the list", draw.prepare_list, draw.fdr, draw.say_fdr,
           "a reviewed sample"),
    Figure("calibration_board", "The leaderboard with and without suspects", draw.prepare_board, draw.board,
           draw.say_board, "two models"),
    Figure("calibration_plan", "Models needed for an error-controlled list", draw.prepare_plan, draw.plan,
           draw.say_plan, "full and blind runs, one draw each"),
)  # fmt: skip

TABLES: tuple[Table, ...] = (
    Table("calibration_spikes", "Recall of planted defects, an upper value", lambda r: r.frame("spike_in"),
          (Column("planted", "Planted"), Column("scheme", "Items chosen"), Column("detector", "Detector"),
           Column("flag", "Flag"), Column("recall", "Found (%)", "pct"),
           Column("recall_low..recall_high", "5% to 95% of the copies", "range:recall_low:recall_high:pct"),
           Column("false_positive", "Other items flagged (%)", "pct"), Column("n_planted", "Planted", "count")),
          "Defects planted in copies of this pool. Real wrong keys sit on harder items than random flips do."),
    Table("calibration_bounds", "How many of the first places can be wrong keys, without reviews",
          lambda r: r.frame("bounds"),
          (Column("r", "First", "count"), Column("words", "Share of wrong keys"), Column("level", "Level (%)", "pct"),
           Column("method", "Rests on")),
          "Bounds hold under errors that models share; the lower one is always 0 without reviews."),
    Table("calibration_first", "Defects among the first places, from the reviewed sample", lambda r: r.frame("first"),
          (Column("r", "First", "count"), Column("reviewed", "Reviewed", "count"), Column("found", "Found", "count"),
           Column("expected", "Expected in all", "number"), Column("precision", "Precision (%)", "pct"),
           Column("low..high", "90% interval", "range:low:high:pct"))),
    Table("calibration_ranked", "The most suspect keys", lambda r: r.frame("ranked").head(30),
          (Column("rank", "Place", "count"), Column("item", "Item"), Column("stratum", "Official category"),
           Column("key", "Key"), Column("alternative", "Votes for"),
           Column("alternative_votes", "Votes", "count"), Column("key_votes", "For the key", "count"),
           Column("voters", "Voters", "count"), Column("margin", "Weighted margin", "number")),
          "At most 30; the whole list is in calibration/ranked.csv."),
    Table("calibration_prevalence", "Items with next to no gain, for a model of the pool's population",
          lambda r: r.frame("prevalence"),
          (Column("kind", "Under"), Column("estimate", "Estimate (%)", "pct"),
           Column("low..high", "95% set", "range:low:high:pct"), Column("models", "Models", "count"),
           Column("items", "Items", "count"), Column("note", "Note")),
          "Any law: what the pool cannot rule out. Scattered law: items do not heap at any gain beyond three quarters "
          "of the margin, which is assumed. Model-based: a mixture with guessing and abstentions; quote it only with "
          "the set."),
    Table("calibration_board", "Leaderboards", lambda r: r.frame("board"),
          (Column("variant", "Variant"), Column("model", "Model"), Column("n", "Items", "count"),
           Column("score", "Score (%)", "pct"), Column("rank", "Rank", "number"),
           Column("rank_low..rank_high", "95% band", "range:rank_low:rank_high:number"),
           Column("group", "Tied group", "count")),
          "Bands hold for all models at once. Dropping items by the models' own votes favours models that agree with "
          "the key."),
    Table("calibration_shortcut", "What the texts alone give away", lambda r: r.frame("shortcut"),
          (Column("stratum", "Official category"), Column("n", "Items", "count"),
           Column("estimate", "Key named (%)", "pct"), Column("null", "Shuffled keys (%)", "pct"),
           Column("excess", "Excess (pp)", "pp"), Column("p", "p", "p"), Column("q", "q", "p")),
          "A classifier on words and lengths of the options, out of fold; no model was run."),
    Table("calibration_plans", "What more items or reviews would bring", lambda r: _plans(r),
          (Column("what", "What"), Column("target", "For"), Column("shown", "Needed"))),
    Table("calibration_claims", "Sentences that these numbers carry, and those that they do not",
          lambda r: r.frame("claims"),
          (Column("name", "About"), Column("made", "Carried"), Column("text", "Sentence"))),
)  # fmt: skip


def _plans(result: Result) -> pd.DataFrame:
    table = result.frame("plans")
    return table.assign(shown=[percent(v) if "excess" in w else f"{v:,.0f}"
                               for w, v in zip(table["what"], table["needed"])])  # fmt: skip


def words(result: Result) -> list[Block]:
    """How far the findings can be believed, in sentences."""
    facts, blocks = result.facts, []
    if facts.get("spike_line"):
        blocks.append(p(facts["spike_line"]))
    lacking = facts.get("lacking", {})
    if "bounds" in result.frames:
        said = "; ".join(f"first {r.r}: {r.words}" for r in result.frames["bounds"].itertuples())
        todo = ["Review the items of ", code("calibration/review_sample.csv"), " (drawn at random, dense at the top), "
                "name the table as ", code("calibration.reviews"), ", and this section states the list’s error "
                "rate."]  # fmt: skip
        blocks.append(p("Share of wrong keys in the ranked list, ", b("without reviews"), f": {said}. The lower bound "
                        "is 0: votes cannot tell an error that all models share from a wrong key. ",
                        *([] if "first" in result.frames else todo)))  # fmt: skip
    if "first" in result.frames:
        said = "; ".join(f"first {f.r}: {percent(f.precision)} ({percent(f.low)} to {percent(f.high)})"
                         for f in result.frames["first"].itertuples())  # fmt: skip
        blocks.append(p("Wrong keys in the ranked list, ", b("by the reviewed sample"), f", 90% intervals: {said}."))
    for name in ("list_now", "list_plan"):
        if facts.get(name):
            blocks.append(p(facts[name]))
    if facts.get("what_if"):
        n = facts.get("suspects", 0)
        head = f"Leaderboard, {n} suspect items (all votes, three at least, name one other option):"
        blocks += [p(head), ul([[s] for s in [*facts["what_if"], *facts.get("what_if_notes", [])]])]
    gone = [f"{k.replace('_', ' ')}: {v}" for k, v in lacking.items() if k != "fdr"]
    if gone:
        blocks.append(callout("Not done: ", "; ".join(gone), "."))
    return blocks
