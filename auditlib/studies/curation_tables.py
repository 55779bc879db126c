"""Tables of a curation: those of the MMGist paper in its layout, and those that it lacks."""

from __future__ import annotations

import numpy as np
import pandas as pd

from auditlib.curation.groups import GROUPS
from auditlib.lookup import Lacking
from auditlib.studies.results import Result
from auditlib.table_formats import Column
from auditlib.tables import Table

STAGE_NAMES = {"text_ablation": "text ablation", "saturation": "saturation", "defects": "defects"}
GROUP_NAMES = {"closed": "closed", "large-open": "large open", "small-open": "small open"}
#: labels of votes and readings in print
LABEL_NAMES = {"key_error": "key error", "ambiguous": "ambiguous", "scorer_risk": "scorer risk",
               "no_issue": "no issue", "any defect": "any defect"}  # fmt: skip
_MACRO = "macro average"


def main(result: Result) -> pd.DataFrame:
    """Curated scores by capability, models grouped and best first, the mean of each group below it."""
    scores, models = result.frame("scores"), result.frame("models")
    scores = scores[scores["set"].eq("curated")]
    named = scores.loc[scores["kind"].eq("capability"), "name"].drop_duplicates().tolist()
    if not named:
        raise Lacking("the items have no capability")
    wide = scores[scores["name"].isin([_MACRO, *named])].pivot(index="model", columns="name", values="score")
    group = models.set_index("model")["group"].reindex(wide.index).fillna("")
    wide = wide[[_MACRO, *named]].assign(group=group.replace(GROUP_NAMES))
    rows = []
    for g in [*GROUP_NAMES.values(), *sorted(set(wide["group"]) - set(GROUP_NAMES.values()))]:
        part = wide[wide["group"].eq(g)].sort_values(_MACRO, ascending=False)
        if len(part):
            mean = part[[_MACRO, *named]].mean().to_frame().T.assign(model=f"mean of {len(part)}", group=g)
            rows.append(pd.concat([part.rename_axis("model").reset_index(), mean]))
    out = pd.concat(rows, ignore_index=True)
    return out[["group", "model", _MACRO, *named]].astype(dict.fromkeys([_MACRO, *named], float))


def _main_columns(frame: pd.DataFrame) -> tuple[Column, ...]:
    rest = [c for c in frame.columns if c not in ("group", "model", _MACRO)]
    return (Column("group", "Models"), Column("model", "Model"), Column(_MACRO, "Macro average", "pct"),
            *(Column(c, c, "pct") for c in rest))  # fmt: skip


def groups(result: Result) -> pd.DataFrame:
    """Mean of each group of models by capability, raw and curated, and the gap of closed and large open models."""
    table = result.frame("groups")
    rows = []
    for name in dict.fromkeys(table["capability"]):
        part = table[table["capability"].eq(name)].set_index(["set", "name"])
        row = {"capability": name, "items": part.loc["curated", "items"].iloc[0] if "curated" in part.index else np.nan}
        for s in ("raw", "curated"):
            for g in GROUPS:
                row[f"{s}_{g}"] = part["value"].get((s, g), np.nan)
        gap = ("curated", f"{GROUPS[0]} - {GROUPS[1]}")
        for c in ("value", "low", "high"):
            row[f"gap_{c}"] = part[c].get(gap, np.nan)
        row["gap_raw"] = part["value"].get(("raw", gap[1]), np.nan)
        rows.append(row)
    return pd.DataFrame(rows)


def effect(result: Result) -> pd.DataFrame:
    """Each model's benchmark average and rank before and after."""
    table = result.frame("ranks").sort_values(["rank_raw", "model"], kind="stable").reset_index(drop=True)
    models = result.frames.get("models")
    if models is not None:
        panel = models.set_index("model")["roles"].str.contains("panel")
        table = table.assign(panel=table["model"].map(panel).map({True: "yes", False: ""}))
    return table


def sources(result: Result) -> pd.DataFrame:
    """Per source: items, removed at each stage, kept, what the text alone gives, what the panel solves."""
    left, own = result.frame("retention"), result.frame("sources")
    gone = left.pivot(index="source", columns="stage", values="removed")
    out = own.merge(gone.rename(columns=lambda c: f"at_{c}").reset_index(), on="source", how="left")
    total = out["source"].eq("all")
    for c in [c for c in out if c.startswith("at_")]:
        out.loc[total & out[c].isna(), c] = out.loc[~total, c].sum()
    order = out.assign(last=total).sort_values(["last", "retention"], ascending=[True, False], kind="stable")
    return order.drop(columns="last").reset_index(drop=True)


def stages(result: Result) -> pd.DataFrame:
    """The stages one after the other, and each on the whole pool."""
    table = result.frame("stages")
    return table.assign(stage=table["stage"].replace(STAGE_NAMES),
                        mode=table["mode"].map({"sequential": "in turn", "full_pool": "on all items"}))  # fmt: skip


def reasons(result: Result) -> pd.DataFrame:
    """Items per reason of removal: the first that applied, all that apply, the only one."""
    table = result.frame("reasons")
    return table.assign(reason=table["reason"].str.replace("_", " "))[
        table[["exclusive", "overlapping", "alone"]].sum(axis=1).gt(0)
    ].reset_index(drop=True)


def rules(result: Result) -> pd.DataFrame:
    """Each rule: items flagged, and what judges and people made of them."""
    table = result.frame("rules")
    seen = result.frames.get("rule_precision")
    if seen is None or not len(seen):
        return table
    every = seen[seen["label"].eq("any defect")].drop(columns=["label", "flagged"])
    return table.merge(every, on="rule", how="left")


def judges(result: Result) -> pd.DataFrame:
    """Each judge: votes, agreement with people, moves towards the majority, confirmations that need this judge."""
    herding = result.frame("herding")
    out = herding[["judge", "pairs", "outside", "toward", "index", "low", "high"]]
    out = out.rename(columns={"index": "herding", "low": "herding_low", "high": "herding_high"})
    right = result.frames.get("judges")
    if right is not None:
        right = right.rename(columns={"n": "people", "estimate": "accuracy", "low": "acc_low", "high": "acc_high"})
        out = out.merge(right, on="judge", how="left")
    without = result.frames.get("judges_left_out")
    if without is not None:
        alone = without[without["kind"].eq("judge")].rename(columns={"left_out": "judge"})
        out = out.merge(alone[["judge", "confirmed", "lost", "gained"]], on="judge", how="left")
    return out


def quality(result: Result) -> pd.DataFrame:
    """Measures of quality, shares in percent and others as numbers."""
    table = result.frame("quality")
    shares = ("mean of the benchmark average", "SD between models", "fall of panel", "cross-fitted")
    percent = table["measure"].str.startswith(shares) | table["measure"].str.startswith("top ")
    return table.assign(unit=np.where(percent, "pct", "number"))


def cost(result: Result) -> pd.DataFrame:
    """What an evaluation costs before and after."""
    return result.frame("cost")


def grid(result: Result) -> pd.DataFrame:
    """One threshold moved at a time, the others as chosen; the chosen ones first."""
    table = result.frame("grid")
    base = table[table["base"].astype(bool)]
    if not len(base):
        raise Lacking("the chosen thresholds are not on the grid")
    at = base.iloc[0]
    parts = [base.assign(moved="as chosen")]
    for moved, words in (("other", "text, other items"), ("binary", "text, two answers"), ("saturation", "saturation")):
        held = [c for c in ("binary", "other", "saturation") if c != moved]
        here = (table[held] == at[held]).all(axis=1) & ~table["base"].astype(bool)
        parts.append(table[here].assign(moved=words))
    out = pd.concat(parts, ignore_index=True)
    thresholds = ["binary", "other", "saturation"]
    return out.astype(dict.fromkeys(thresholds, float))


def effort(result: Result) -> pd.DataFrame:
    """Change from the lowest to the highest level of effort, by capability."""
    table = result.frame("effort")
    last = table.iloc[-1]
    wide = table[table["from_level"].eq(table["from_level"].iloc[0]) & table["to_level"].eq(last["to_level"])]
    return wide.assign(flat=wide["flat"].map(lambda x: "yes" if x else "no")).reset_index(drop=True)


def errors(result: Result) -> pd.DataFrame:
    """Error classes by model and capability; all wrong answers of a model first."""
    table = result.frame("errors")
    order = table.assign(first=table["capability"].ne("all"))
    return order.sort_values(["model", "first"], kind="stable").drop(columns="first").reset_index(drop=True)


def people(result: Result) -> pd.DataFrame:
    """Agreement of the readers, probes and prevalence."""
    return result.frame("people")


def jagged(result: Result) -> pd.DataFrame:
    """Largest minus smallest capability mean of each model on the curated items, largest first."""
    table = result.frame("jagged")
    table = table[table["set"].eq("curated")]
    return table.sort_values("range", ascending=False, kind="stable").reset_index(drop=True)


def _range(label: str, low: str, high: str, kind: str = "pct") -> Column:
    return Column(f"{low}..{high}", label, f"range:{low}:{high}:{kind}")


_INTERVAL = _range("95% interval", "low", "high")

TABLES: tuple[Table, ...] = (
    Table("curation_stages", "The stages, one after the other and each on all items", stages,
          (Column("mode", "Applied"), Column("stage", "Stage"), Column("state", "State"),
           Column("items_in", "Items", "count"), Column("recalled", "Recalled by rules", "count"),
           Column("removed", "Removed", "count"), Column("share_removed", "Removed (%)", "pct"),
           Column("left", "Left", "count"), Column("undecided", "Undecided", "count")),
          "Undecided: the decision would change if draws without an answer were left out or scored as guesses, or "
          "the interval of the panel's accuracy holds the threshold."),
    Table("curation_reasons", "Reasons of removal", reasons,
          (Column("reason", "Reason"), Column("exclusive", "First that applied", "count"),
           Column("overlapping", "Applies", "count"), Column("alone", "The only one", "count"))),
    Table("curation_sources", "Retention by source", sources,
          (Column("source", "Source"), Column("items", "Items", "count"),
           Column("at_text_ablation", "Text ablation", "count"), Column("at_saturation", "Saturation", "count"),
           Column("at_defects", "Defects", "count"), Column("kept", "Kept", "count"),
           Column("retention", "Kept (%)", "pct"), Column("text_only", "Text-only accuracy (%)", "pct"),
           Column("solved_share", "Solved by the panel (%)", "pct"), Column("licence", "Licence"),
           Column("sensitive_kinds", "Sensitive")),
          "Middle columns: items removed at each stage. Solved: the panel's accuracy is above the threshold."),
    Table("curation_rules", "Anomaly rules", rules,
          (Column("rule", "Rule"), Column("words", "What it sees"), Column("state", "State"),
           Column("flagged", "Flagged", "count"), Column("flagged_full", "Flagged, all items", "count"),
           Column("decided", "Read by people", "count"), Column("confirmed", "Confirmed", "count"),
           Column("precision", "Precision (%)", "pct"), _INTERVAL,
           _range("If the unread were all sound, or all defective", "least", "most")),
          "Precision: share of the flagged items that people have read in which they confirm a defect."),
    Table("curation_judges", "Judges", judges,
          (Column("judge", "Judge"), Column("pairs", "Items, both rounds", "count"),
           Column("outside", "Outside the majority", "count"), Column("toward", "Moved to it", "count"),
           Column("herding", "Herding index", "number"),
           _range("95% interval", "herding_low", "herding_high", "number"),
           Column("people", "Read by people", "count"), Column("accuracy", "Right in round 2 (%)", "pct"),
           _range("95% interval (%)", "acc_low", "acc_high"), Column("confirmed", "Confirmed without", "count"),
           Column("lost", "Lost without", "count")),
          "Herding index: moves to the majority less moves away from it, over the moves possible. Confirmed without: "
          "items confirmed when this judge is left out."),
    Table("curation_people", "Readers", people,
          (Column("measure", "Measure"), Column("n", "Items", "count"), Column("estimate", "Value", "number"),
           _range("95% interval", "low", "high", "number"), Column("note", "Note"))),
    Table("curation_main", "Main results on the curated items (%)", main, _main_columns,
          "Macro average: mean of the capability means."),
    Table("curation_groups", "Groups of models by capability (%)", groups,
          (Column("capability", "Capability"), Column("items", "Items", "count"),
           Column("raw_closed", "Closed, all items", "pct"), Column("raw_large-open", "Large open", "pct"),
           Column("raw_small-open", "Small open", "pct"), Column("curated_closed", "Closed, curated", "pct"),
           Column("curated_large-open", "Large open", "pct"), Column("curated_small-open", "Small open", "pct"),
           Column("gap_raw", "Closed less large open, all items (pp)", "pp"),
           Column("gap_value", "The same, curated (pp)", "pp"),
           _range("95% interval (pp)", "gap_low", "gap_high", "pp"))),
    Table("curation_effect", "Effect of filtering on scores and ranks", effect,
          (Column("model", "Model"), Column("panel", "On the panel"), Column("raw", "All items (%)", "pct"),
           Column("curated", "Curated (%)", "pct"), Column("change", "Change (pp)", "pp"),
           Column("rank_raw", "Rank, all items", "any"), Column("rank_curated", "Rank, curated", "any"),
           Column("shift", "Shift", "any")),
          "Benchmark average: mean of the source means."),
    Table("curation_jagged", "Jagged profiles", jagged,
          (Column("model", "Model"), Column("range", "Largest less smallest (pp)", "pp"),
           Column("noise", "By noise alone (pp)", "pp"), Column("best", "Best capability"),
           Column("best_score", "Score (%)", "pct"), Column("worst", "Worst capability"),
           Column("worst_score", "Score (%)", "pct")),
          "By noise alone: the mean range of a model that is equally good at everything, at these numbers of items."),
    Table("curation_quality", "Quality of the curated set", quality,
          (Column("measure", "Measure"), Column("raw", "All items", "auto"), Column("curated", "Curated", "auto"),
           Column("ratio", "Ratio", "number"),
           _range("Random subsets", "random_low", "random_high", "auto"), _range("95% interval", "low", "high", "auto"),
           Column("note", "Note")),
          "Mean, SD, difference and falls in percent or points. Random subsets: central 95% of subsets of the same "
          "size and source mix."),
    Table("curation_cost", "Cost of one evaluation of all models", cost,
          (Column("what", "Unit"), Column("raw", "All items", "count"), Column("curated", "Curated", "count"),
           Column("saved", "Saved (%)", "pct"), Column("note", "Note"))),
    Table("curation_grid", "Thresholds moved one at a time", grid,
          (Column("moved", "Moved"), Column("binary", "Text, two answers (%)", "pct"),
           Column("other", "Text, others (%)", "pct"), Column("saturation", "Saturation (%)", "pct"),
           Column("items", "Items", "count"), Column("spearman", "Spearman, all items", "number"),
           Column("spearman_base", "Spearman, as chosen", "number"), Column("resolvable", "Resolvable pairs", "count"),
           Column("per_1000_calls", "Per 1,000 calls", "number"),
           Column("wrong_removals", "Expected wrong removals", "number")),
          "Defects as people decided them at the chosen thresholds."),
    Table("curation_planted", "Defects planted among the items that reach the rules", lambda r: r.frame("planted"),
          (Column("label", "Defect"), Column("planted", "Planted", "count"), Column("found", "Recalled", "count"),
           Column("recall", "Recall (%)", "pct"), Column("low..high", "95% interval", "range:low:high:pct"),
           Column("flagged_share", "Items recalled in all (%)", "pct")),
          "In copies of this pool, with the thresholds above. Planted defects are clean ones: an upper value."),
    Table("curation_without_providers", "The first two stages without one provider's models",
          lambda r: r.frame("without_providers"),
          (Column("provider", "Without"), Column("models", "Models", "count"), Column("kept", "Kept", "count"),
           Column("same", "Decided alike (%)", "pct"), Column("kappa", "Kappa", "number"),
           Column("newly_kept", "Newly kept", "count"), Column("newly_removed", "Newly removed", "count"))),
    Table("curation_errors", "Error classes of wrong answers", errors,
          (Column("model", "Model"), Column("capability", "Capability"), Column("label", "Class"),
           Column("answers", "Labelled", "count"), Column("share", "Share (%)", "pct"),
           _range("Simultaneous interval", "low", "high")),
          "All: weighted back to all wrong answers of the model. The intervals of one capability hold jointly."),
    Table("curation_effort", "Effect of reasoning effort", effort,
          (Column("capability", "Capability"), Column("from_level", "From"), Column("to_level", "To"),
           Column("items", "Items", "count"), Column("models", "Models", "count"),
           Column("before", "Before (%)", "pct"),
           Column("after", "After (%)", "pct"), Column("change", "Change (pp)", "pp"),
           _range("95% interval (pp)", "low", "high", "pp"), Column("relative", "Relative (%)", "pct"),
           Column("p", "p", "p"), Column("q", "p, Holm", "p"), Column("up", "Models up", "count"),
           Column("down", "Models down", "count"), Column("bound", "Within (pp)", "pp"), Column("flat", "Flat")),
          "Paired by item. Within: the least margin inside which the change is shown to lie; flat where it is at "
          "most 2 points."),
)  # fmt: skip
