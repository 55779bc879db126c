"""Tables of sensitivity."""

from __future__ import annotations

import numpy as np
import pandas as pd

from auditlib.sensitivity.conditions import words
from auditlib.studies.results import Result
from auditlib.table_formats import Column
from auditlib.tables import Table


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the condition in words."""
    form = table["form"] if "form" in table else [""] * len(table)
    level = table["level"] if "level" in table else [0.0] * len(table)
    name = [words(f, v, n, x) for f, v, n, x in zip(table["family"], table["variant"], level, form)]
    return table.assign(condition=name)


def conditions(result: Result) -> pd.DataFrame:
    """Accuracy, drop and share of the gain lost by model and condition."""
    return _named(result.frame("conditions"))


def gains(result: Result) -> pd.DataFrame:
    """The visual gain of each model, on the items asked blind, and whether a share of it has a meaning."""
    table = result.frame("conditions")
    widest = table.sort_values("n_blind", ascending=False, kind="stable").drop_duplicates("model")
    order = {m: i for i, m in enumerate(dict.fromkeys(table["model"]))}
    blind = table[table["family"].eq("blind")].set_index("model")
    out = widest[["model", "n_blind", "gain", "gain_low", "gain_high", "undefined"]]
    out = out.assign(full=out["model"].map(blind["full"]), blind=out["model"].map(blind["accuracy"]))
    return out.sort_values("model", key=lambda c: c.map(order)).reset_index(drop=True)


def curves(result: Result) -> pd.DataFrame:
    """Area under the curve and half-level."""
    table = _named(result.frame("curves"))
    half = [f"{h:g}" if h == h else ("not reached" if not u else "") for h, u in zip(table["half"], table["undefined"])]
    return table.assign(first=half)


def trends(result: Result) -> pd.DataFrame:
    """Fall over the levels, by model and for all models."""
    table = _named(result.frame("trends"))
    for name in ("low", "high", "page", "q"):
        if name not in table:
            table[name] = np.nan
    return table.assign(first=[f"{v:g}" if v == v else "none" for v in table["first"]])


def flips(result: Result) -> pd.DataFrame:
    """Changed answers against the baseline of the same condition."""
    return _named(result.frame("flips"))


def erosion(result: Result) -> pd.DataFrame:
    """Erosion of the margin."""
    return _named(result.frame("erosion"))


def evidence(result: Result) -> pd.DataFrame:
    """Evidence against control boxes."""
    return result.frame("evidence")


def forms(result: Result) -> pd.DataFrame:
    """Other words for the same question."""
    table = result.frame("forms")
    return table.assign(form=table["form"].str.replace("_", " ").str.replace("-", " "))


def yes_bias(result: Result) -> pd.DataFrame:
    """Bias to yes by form."""
    table = result.frame("yes_bias")
    return table.assign(form=table["form"].str.replace("_", " ").str.replace("-", " "))


def answer_space(result: Result) -> pd.DataFrame:
    """Other sets of answers."""
    return _named(result.frame("answer_space"))


def layers(result: Result) -> pd.DataFrame:
    """Geometry by layer."""
    return result.frame("layers")


def layer_tests(result: Result) -> pd.DataFrame:
    """Tests over layers."""
    return result.frame("layer_tests")


def _range(label: str, low: str, high: str, kind: str = "pct") -> Column:
    return Column(f"{low}..{high}", label, f"range:{low}:{high}:{kind}")


_MODEL, _CONDITION, _N = Column("model", "Model"), Column("condition", "Condition"), Column("n", "Items", "count")

TABLES: tuple[Table, ...] = (
    Table("sensitivity_gains", "Visual gain of each model", gains,
          (_MODEL, Column("n_blind", "Items", "count"), Column("full", "As it is (%)", "pct"),
           Column("blind", "Without the image (%)", "pct"), Column("gain", "Gain (pp)", "pp"),
           _range("95% interval (pp)", "gain_low", "gain_high", "pp"), Column("undefined", "Share of it undefined")),
          "A share of the gain has a meaning only where its interval lies above 0. Accuracies on the items asked both "
          "ways, the gain on those that some change was also asked on."),
    Table("sensitivity_conditions", "Accuracy under changed images", conditions,
          (_MODEL, _CONDITION, _N, Column("full", "As it is (%)", "pct"), Column("accuracy", "Changed (%)", "pct"),
           Column("drop", "Drop (pp)", "pp"), _range("95% interval (pp)", "low", "high", "pp"), Column("p", "p", "p"),
           Column("p_method", "p from"), Column("p_same_drop", "p, no drop", "p"),
           Column("lost", "Gain lost (%)", "pct"),
           _range("95% interval (%)", "lost_low", "lost_high"), Column("p_same_lost", "p, none lost", "p"),
           Column("undefined", "Undefined because"), Column("state", "Verdict")),
          "p, no drop and p, none lost: equivalence tests, small where the drop (share lost) is shown to lie inside "
          "the margin. Verdict: insensitive if one of them is at most .05 (small fall if a drop is shown too), "
          "falls if a drop is shown, else open."),
    Table("sensitivity_curves", "Degradation curves", curves,
          (_MODEL, _CONDITION, Column("levels", "Levels", "count"), _N, Column("gain", "Gain (pp)", "pp"),
           Column("area", "Area under share lost (%)", "pct"), _range("95% interval", "low", "high"),
           Column("first", "First level with half lost"), Column("reached", "Draws that reach it (%)", "pct"),
           Column("undefined", "Undefined because")),
          "Level axis scaled to [0, 1]; nothing lost at level 0. First level: by isotonic regression."),
    Table("sensitivity_trends", "Fall over the levels", trends,
          (_CONDITION, _MODEL, _N, Column("levels", "Levels", "count"), Column("drop", "Mean drop (pp)", "pp"),
           _range("One model left out (pp)", "low", "high", "pp"), Column("p", "p, any level", "p"),
           Column("q", "Holm", "p"), Column("first", "First level that falls"), Column("page", "p, Page", "p")),
          "p: largest studentised drop over levels, signs flipped by image for all levels at once. Holm: over models "
          "and the families blur, downsample, tokens. Page: models as blocks."),
    Table("sensitivity_flips", "Answers that change", flips,
          (_MODEL, _CONDITION, Column("n", "Calls", "count"), Column("flip", "Changed (%)", "pct"),
           _range("95% interval", "low", "high"), Column("right_wrong", "Right to wrong (%)", "pct"),
           Column("wrong_right", "Wrong to right (%)", "pct"), Column("wrong_wrong", "Other wrong (%)", "pct"),
           Column("net", "Net (pp)", "pp"), Column("base", "Between samples (%)", "pct"),
           Column("excess", "Excess (pp)", "pp"), _range("95% interval (pp)", "excess_low", "excess_high", "pp"),
           Column("p", "p", "p"), Column("unknown", "Not known", "count")),
          "Between samples: answers that change between two samples of the item as it is. Net: right to wrong less "
          "back."),
    Table("sensitivity_margins", "Erosion of the margin", erosion,
          (_MODEL, _CONDITION, Column("n", "Calls", "count"), Column("unchanged", "Stay right", "count"),
           Column("erosion", "Erosion, stay right", "number"), _range("95% interval", "low", "high", "number"),
           Column("matched", "Deciles matched", "number"), Column("unconditional", "All", "number"),
           _range("95% interval", "unconditional_low", "unconditional_high", "number"),
           Column("relative", "Over blind", "number"), Column("unmatched", "Unmatched", "count")),
          "Answers that stay right had large margins to begin with. Deciles matched: each tenth of the margins as it "
          "is counts alike; unmatched: calls in tenths where no answer stays right."),
    Table("sensitivity_evidence", "Evidence against another region", evidence,
          (_MODEL, _N, Column("full", "As it is (%)", "pct"), Column("control", "Other covered (%)", "pct"),
           Column("evidence", "Evidence covered (%)", "pct"), Column("specificity", "Difference (pp)", "pp"),
           _range("95% interval (pp)", "low", "high", "pp"), Column("p", "p", "p"),
           Column("margin", "Difference of margins", "number"),
           _range("95% interval", "margin_low", "margin_high", "number"), Column("scored", "With margins", "count"),
           Column("bound", "Evidence-bound (%)", "pct"), Column("chance", "By chance (%)", "pct"),
           Column("p_bound", "p", "p")),
          "Evidence-bound: the margin falls more for the evidence than for every other region; p exact, one-sided."),
    Table("sensitivity_forms", "The question in other words", forms,
          (_MODEL, Column("form", "Form"), _N, Column("as_is", "As it is (%)", "pct"),
           Column("accuracy", "This form (%)", "pct"), Column("same", "Same meaning (%)", "pct"),
           _range("95% interval", "low", "high"), Column("failure", "Same answer to both polarities (%)", "pct"))),
    Table("sensitivity_yes", "Bias to yes", yes_bias,
          (_MODEL, Column("form", "Form"), Column("n", "Calls", "count"), Column("key_yes", "Key yes (%)", "pct"),
           Column("said_yes", "Said yes (%)", "pct"), Column("hit_rate", "Yes to key yes (%)", "pct"),
           Column("false_yes", "Yes to key no (%)", "pct"), Column("d_prime", "d'", "number"),
           Column("criterion", "c", "number")),
          "d': how far yes and no are told apart, 0 for who always says the same. c below 0: a bias to yes."),
    Table("sensitivity_answers", "Other sets of answers", answer_space,
          (_MODEL, _CONDITION, _N, Column("as_is", "Options as they are (%)", "pct"),
           Column("accuracy", "This set (%)", "pct"), _range("95% interval", "low", "high"),
           Column("chance", "Chance (%)", "pct"), Column("kappa", "Kappa", "number"),
           Column("cannot", "Cannot be determined (%)", "pct"),
           Column("overconfident", "Answered without the image (%)", "pct")),
          "Kappa: accuracy above chance over what there is above chance. 'Cannot be determined' is never the key here; "
          "it should rise as the image goes."),
    Table("sensitivity_layers", "Visual tokens by layer", layers,
          (Column("layer", "Layer", "count"), Column("cosine", "Cosine", "number"),
           Column("corrected", "Mean subtracted", "number"), Column("control", "Tokens moved", "number"),
           Column("text", "Text tokens", "number"), Column("between", "Between images", "number"),
           Column("rank", "Effective rank", "number"), Column("participation", "Participation", "number"),
           Column("cka", "CKA, layer before", "number"), Column("nearest", "Own image nearest (%)", "pct"),
           Column("moved", "Distance degraded", "number")),
          "Means over images. An association at most: alike tokens are a possible explanation of insensitivity."),
    Table("sensitivity_layer_tests", "Do tokens grow alike with depth?", layer_tests,
          (Column("what", "Quantity"), Column("n", "Images", "count"), Column("estimate", "Mean", "number"),
           _range("95% interval", "low", "high", "number"), Column("p", "p", "p"),
           Column("up", "Images above 0", "count")),
          "Tokens moved between images inside a layer must have no excess."),
)  # fmt: skip
