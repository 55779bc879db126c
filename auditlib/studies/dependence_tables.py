"""Tables of modality dependence."""

from __future__ import annotations

import pandas as pd

from auditlib.dependence.profile import LABEL_NAMES, LABELS
from auditlib.lookup import Lacking
from auditlib.studies.results import Result
from auditlib.table_formats import Column
from auditlib.tables import Table

NAMES = dict(zip(LABELS, LABEL_NAMES)) | {"undetermined": "undetermined"}
MOVED = {"agree": "both say the same", "responses": "responses", "structure": "structure", "both": "a compromise",
         "no structure": "no structure given"}  # fmt: skip
MOST = 20


def composition(result: Result) -> pd.DataFrame:
    """A row per category with the share of each label, all items last."""
    table = result.frame("composition")
    keep = ["stratum", "items", "solvable"]
    out = table.drop_duplicates("stratum")[keep].reset_index(drop=True)
    for z in LABELS:
        part = table[table["label"].eq(z)].set_index("stratum")[["share", "low", "high"]]
        out = out.join(part.rename(columns={"share": z, "low": f"{z}_low", "high": f"{z}_high"}), on="stratum")
    return out


def moved(result: Result) -> pd.DataFrame:
    """Solvable items by final label and by which side it comes from."""
    table = result.frame("moved")
    wide = table.pivot_table(index="label", columns="moved_by", values="n", aggfunc="sum", fill_value=0)
    wide = wide.reindex(index=list(LABELS), columns=list(MOVED), fill_value=0)
    wide.insert(0, "items", wide.sum(axis=1))
    whole = wide.sum().to_frame("all").T
    out = pd.concat([wide, whole]).rename_axis("label").reset_index()
    return out.assign(label=out["label"].map(NAMES | {"all": "all"}))


def uncertain(result: Result) -> pd.DataFrame:
    """Labels that hang most on the models at hand; the second label is the next largest part of the profile."""
    table = result.frame("uncertain")
    parts = table[list(LABELS)].to_numpy(float)
    second = parts.argsort(axis=1)[:, -2]
    out = table.assign(second=[NAMES[LABELS[j]] for j in second], label=table["label"].map(NAMES))
    return out.head(MOST).reset_index(drop=True)


def thresholds(result: Result) -> pd.DataFrame:
    """Shares of the full item's gain from which a single view counts as sufficient."""
    return result.frame("thresholds")


def zero_gain(result: Result) -> pd.DataFrame:
    """Items without visual gain in the audit's counts, by label."""
    table = result.frame("zero_gain")
    return table[table["items"].gt(0)].assign(label=table["label"].map(NAMES)).reset_index(drop=True)


def margins(result: Result) -> pd.DataFrame:
    """Margins of the left-out families, in the order of the labels."""
    table = result.frame("margins").dropna(subset=["margin"])
    place = table["group"].map({z: j for j, z in enumerate(LABELS)})
    table = table.assign(place=place).sort_values(["place", "family"], kind="stable").drop(columns="place")
    return table.assign(group=table["group"].map(NAMES)).reset_index(drop=True)


def newcomers(result: Result) -> pd.DataFrame:
    """Models scored on items that were fitted without their family."""
    return result.frame("newcomers")


def subset(result: Result) -> pd.DataFrame:
    """Subsets chosen by utility beside random ones of the same size."""
    table = result.frame("subset")
    keep = ["share", "items", "ranked", "splits"]
    wide = table.pivot(index=keep, columns="chosen", values=["spearman", "low", "high", "kendall", "undefined"])
    wide.columns = [f"{b}_{a}" for a, b in wide.columns]
    return wide.reset_index()


def order(result: Result) -> pd.DataFrame:
    """Items that tell most of an average model, and their places for a weak and a strong one."""
    table = result.frame("order")
    return table.assign(label=table["label"].mask(table["undetermined"], "undetermined").map(NAMES)).head(MOST)


def chosen(result: Result) -> pd.DataFrame:
    """Items of the highest utility."""
    table = result.frame("items").sort_values("utility", ascending=False, kind="stable").head(MOST)
    if not table["utility"].gt(0).any():
        raise Lacking("no item gains from both views together")
    return table.assign(label=table["label"].mask(table["undetermined"], "undetermined").map(NAMES)).reset_index(
        drop=True
    )


def abilities(result: Result) -> pd.DataFrame:
    """Accuracy of each model under each condition, and its abilities in units of the pool's spread."""
    return result.frame("abilities")


def _by_people(result: Result, name: str) -> pd.DataFrame:
    if "people" not in result.frames:
        raise Lacking("no reader has labelled the items")
    return result.frame(name)


def people(result: Result) -> pd.DataFrame:
    """Each method against people's labels."""
    return _by_people(result, "people_scores")


def compared(result: Result) -> pd.DataFrame:
    """Responses and structure together less each other method, on the same items."""
    table = _by_people(result, "people_compared")
    return table.assign(metric=table["metric"].str.replace("_", " "))


def agreement(result: Result) -> pd.DataFrame:
    """Agreement of the readers of each view."""
    table = _by_people(result, "people_agreement")
    table = table[table["of"].eq("label") & table["statistic"].ne("cohen_kappa") & table["rows"].eq("all")]
    return table.assign(
        view=table["view"].str.replace("_", " "),
        statistic=table["statistic"].map(
            {"fleiss_kappa": "Fleiss' kappa", "krippendorff_alpha": "Krippendorff's alpha"}
        ),
    ).reset_index(drop=True)


def partial(result: Result) -> pd.DataFrame:
    """What fewer conditions say, by category: mean accuracies, and items for which the one view suffices."""
    table = result.frame("partial")
    view = next((c for c in ("blind", "image_only") if f"sufficiency_{c}" in table), None)
    rows = []
    parts = list(table.groupby("stratum", sort=True)) if table["stratum"].nunique() > 1 else []
    for stratum, part in [*parts, ("all", table)]:
        row = {"stratum": stratum, "items": len(part)} | {
            c: part[c].mean() if c in part else float("nan") for c in ("none", "image_only", "blind", "full")
        }
        if view is not None:
            known = part[f"sufficiency_{view}"].dropna()
            row |= {"solvable": len(known), "sufficient": int((known >= 0.5).sum()),
                    "share": (known >= 0.5).mean() if len(known) else float("nan")}  # fmt: skip
        rows.append(row)
    return pd.DataFrame(rows)


def _range(label: str, low: str, high: str, kind: str = "pct") -> Column:
    return Column(f"{low}..{high}", label, f"range:{low}:{high}:{kind}")


_ITEM, _LABEL, _STRATUM = Column("item", "Item"), Column("label", "Label"), Column("stratum", "Category")

TABLES: tuple[Table, ...] = (
    Table("dependence_partial", "What the conditions that were run say", partial,
          (_STRATUM, Column("items", "Items", "count"), Column("none", "Options alone (%)", "pct"),
           Column("image_only", "Image (%)", "pct"), Column("blind", "Question (%)", "pct"),
           Column("full", "Both (%)", "pct"), Column("solvable", "Solvable", "count"),
           Column("sufficient", "One view suffices", "count"), Column("share", "Of the solvable (%)", "pct")),
          "Raw accuracies of the pool. One view suffices: it gives at least half of the full item's gain over chance."),
    Table("dependence_composition", "Labels by category", composition,
          (_STRATUM, Column("items", "Items", "count"), Column("solvable", "Solvable", "count"),
           Column("R", "Redundant (%)", "pct"), _range("95% interval", "R_low", "R_high"),
           Column("V", "Visual (%)", "pct"), _range("95% interval", "V_low", "V_high"),
           Column("T", "Textual (%)", "pct"), _range("95% interval", "T_low", "T_high"),
           Column("S", "Synergistic (%)", "pct"), _range("95% interval", "S_low", "S_high")),
          "Share of the solvable items, with Wilson intervals over items."),
    Table("dependence_zero_gain", "Items without visual gain, by label", zero_gain,
          (_LABEL, Column("items", "Items", "count"), Column("zero_gain", "Zero gain", "count"),
           Column("share", "Of the label (%)", "pct"), _range("95% interval", "low", "high"),
           Column("of_zero_gain", "Of all zero gain (%)", "pct"), Column("gain", "Mean gain (pp)", "pp")),
          "Zero gain as the audit counts it: as many models right with the image as without."),
    Table("dependence_moved", "Where labels come from", moved,
          (_LABEL, Column("items", "Items", "count"), Column("agree", "Both say the same", "count"),
           Column("responses", "Responses outweigh structure", "count"),
           Column("structure", "Structure moved it", "count"), Column("both", "A compromise", "count"),
           Column("no structure", "No structure", "count"))),
    Table("dependence_thresholds", "When a single view counts as sufficient", thresholds,
          (Column("view", "View"), Column("threshold", "Threshold", "number"),
           Column("start", "Uncalibrated", "number"), Column("sufficient", "Items it suffices for (%)", "pct")),
          "Share of the full item's gain over chance. A weak pool shows less of it even where the view suffices; items "
          "with clear content say how much."),
    Table("dependence_uncertain", "Labels that hang on the models at hand", uncertain,
          (_ITEM, _STRATUM, _LABEL, Column("stability", "Draws with this label (%)", "pct"),
           Column("second", "Second label"), Column("R", "R (%)", "pct"), Column("V", "V (%)", "pct"),
           Column("T", "T (%)", "pct"), Column("S", "S (%)", "pct"), Column("solvability", "Solvability", "number")),
          f"The first {MOST}; all in dependence/uncertain.csv. R, V, T, S: the profile, redundant, visual-dominant, "
          "textual-dominant, synergistic."),
    Table("dependence_margins", "Margins on families that were left out", margins,
          (Column("group", "Label"), Column("family", "Left out"), Column("models", "Models", "count"),
           Column("items", "Items", "count"), Column("margin", "Margin (pp)", "pp"),
           _range("95% interval (pp)", "low", "high", "pp"), Column("null", "Permuted labels (pp)", "pp"),
           Column("p", "p", "p"), Column("p_holm", "p, Holm", "p")),
          "Redundant: the weaker view less the options alone. Visual-dominant: image less question; textual-dominant: "
          "the reverse. Synergistic: both less the better view."),
    Table("dependence_people", "Methods against people's labels", people,
          (Column("method", "Method"), Column("n", "Items", "count"), Column("accuracy", "Accuracy (%)", "pct"),
           Column("macro_f1", "Macro-F1 (%)", "pct"), Column("f1_R", "Redundant (%)", "pct"),
           Column("f1_V", "Visual (%)", "pct"), Column("f1_T", "Textual (%)", "pct"),
           Column("f1_S", "Synergistic (%)", "pct")),
          "Items that most of three readers find sufficient as a whole; five readers of each single view. F1 by label, "
          "macro-F1 always over four."),
    Table("dependence_compared", "Responses and structure against the others", compared,
          (Column("against", "Against"), Column("metric", "Measure"), Column("n", "Items", "count"),
           Column("difference", "Difference (pp)", "pp"), _range("95% interval (pp)", "low", "high", "pp"),
           Column("p", "p", "p"), Column("p_holm", "p, Holm", "p"), Column("p_mcnemar", "p, McNemar", "p")),
          "Paired bootstrap over items; p by swapping the two predictions of an item at random, Holm over all rows."),
    Table("dependence_agreement", "Agreement of the readers", agreement,
          (Column("view", "View"), Column("statistic", "Statistic"), Column("n", "Items", "count"),
           Column("observed", "Agree (%)", "pct"), Column("estimate", "Value", "number"),
           _range("95% interval", "low", "high", "number"), Column("note", "Note"))),
    Table("dependence_newcomers", "New models scored on frozen items", newcomers,
          (Column("model", "Model"), Column("family", "Family left out"),
           Column("observed_none", "Options alone (%)", "pct"), Column("predicted_none", "predicted", "pct"),
           Column("observed_image_only", "Image (%)", "pct"), Column("predicted_image_only", "predicted", "pct"),
           Column("observed_blind", "Question (%)", "pct"), Column("predicted_blind", "predicted", "pct"),
           Column("observed_full", "Both (%)", "pct"), Column("predicted_full", "predicted", "pct")),
          "Four abilities per model on items whose parameters were fitted without its family."),
    Table("dependence_abilities", "Models under the four conditions", abilities,
          (Column("model", "Model"), Column("family", "Family"), Column("none", "Options alone (%)", "pct"),
           Column("image_only", "Image (%)", "pct"), Column("blind", "Question (%)", "pct"),
           Column("full", "Both (%)", "pct"), Column("ability_base", "Base", "number"),
           Column("ability_visual", "Visual", "number"), Column("ability_textual", "Textual", "number"),
           Column("ability_joint", "Joint", "number")),
          "Abilities: mean 0 and standard deviation 1 over the pool. The joint one is the noisiest: not to rank by."),
    Table("dependence_subset", "Subsets that rank models which did not choose them", subset,
          (Column("items", "Items", "count"), Column("share", "Share (%)", "pct"),
           Column("utility_spearman", "Spearman, by utility", "number"),
           _range("Middle 80%", "utility_low", "utility_high", "number"),
           Column("random_spearman", "Spearman, at random", "number"),
           _range("Middle 80%", "random_low", "random_high", "number"),
           Column("utility_kendall", "Kendall, by utility", "number"),
           Column("random_kendall", "Kendall, at random", "number"), Column("ranked", "Models ranked", "count"))),
    Table("dependence_chosen", "Items of the highest utility", chosen,
          (_ITEM, _STRATUM, _LABEL, Column("utility", "Utility", "number"),
           Column("fitted_image_only", "Image (%)", "pct"), Column("fitted_blind", "Question (%)", "pct"),
           Column("fitted_full", "Both (%)", "pct")),
          f"The first {MOST}. Utility: what both views give beyond the better one, times the information about models. "
          "Fitted accuracies of the pool."),
    Table("dependence_order", "Items that tell most of a model", order,
          (_ITEM, _LABEL, Column("place", "Average model", "any"), Column("place_weak", "Weak model", "any"),
           Column("place_strong", "Strong model", "any"), Column("log_determinant", "Log determinant", "number")),
          f"The first {MOST} of the order in which an average model would be asked; all in dependence/order.csv."),
)  # fmt: skip
