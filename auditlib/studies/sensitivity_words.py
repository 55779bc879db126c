"""Sentences of the report about sensitivity: what the image is worth, who falls, what is not known."""

from __future__ import annotations

from typing import Any

from auditlib.numerals import count, number, p_says, pct, percent, points
from auditlib.report.blocks import b, callout, card, cards, p, ul
from auditlib.sensitivity.conditions import words as in_words
from auditlib.studies.results import Result

_CALLED = {
    "grid": "occlusion map",
    "erosion": "margins",
    "forms": "other words",
    "yes_bias": "bias to yes",
    "answer_space": "other sets of answers",
    "curves": "degradation curves",
    "trends": "trends over levels",
    "layers": "layers",
}


_STEADY = ("insensitive", "small fall")


def words(result: Result) -> list[Any]:
    """Blocks of the section's opening."""
    return [x for x in (_counts(result), _credit(result), _gain(result), _falls(result), _noise(result),
                        _evidence(result), _forms(result), _layers(result), _lacking(result)) if x]  # fmt: skip


def _counts(result: Result) -> Any:
    f = result.facts
    out = [card("calls", count(f["calls"]), f"{len(f['models'])} models, {count(f['items'])} items, "
                f"{count(f['images'])} images")]  # fmt: skip
    table = result.frames.get("conditions")
    if table is not None:
        state = table["state"].value_counts()
        kinds = len(table[["family", "variant", "level"]].drop_duplicates())
        out.append(card("changes of the image", count(kinds), f"{count(len(table))} pairs of model and change"))
        out.append(
            card(
                "insensitive",
                count(state.get("insensitive", 0)),
                f"{count(state.get('small fall', 0))} small falls inside the margin",
            )
        )
        out.append(card("falls", count(state.get("falls", 0)), f"{count(state.get('open', 0))} open"))
    return cards(out)


def _credit(result: Result) -> Any:
    n = result.facts.get("credited", 0)
    if not n or result.facts.get("abstentions") == "wrong":
        return None
    return callout(b("Credited abstentions. "), f"{count(n)} calls that declined to answer count as right, at least in "
                   "part. Who declines more as the image goes can seem to gain from losing it; "
                   "sensitivity.abstentions: wrong takes the credit away.", tone="warn")  # fmt: skip


def _gain(result: Result) -> Any:
    table = result.frames.get("conditions")
    if table is None:
        return None
    one = table.sort_values("n_blind", ascending=False, kind="stable").drop_duplicates("model")
    known, unknown = one[one["undefined"].eq("")], one[one["undefined"].ne("")]
    text = ""
    if len(known):
        text = (f"The image raises accuracy by {points(known['gain'].min())} to {points(known['gain'].max())} for "
                f"{len(known)} of {len(one)} models; shares of that gain are given for them.")  # fmt: skip
    if len(unknown):
        listed = "; ".join(f"{r.model}: {r.undefined}" + (f" ({points(r.gain)}, interval {pct(r.gain_low)} to "
                           f"{pct(r.gain_high)})" if r.gain == r.gain else "")
                           for r in unknown.itertuples())  # fmt: skip
        text += f" The share of the gain lost is undefined for {len(unknown)}: {listed}."
    return p(b("What the image is worth. "), text.strip()) if text else None


def _falls(result: Result) -> Any:
    table = result.frames.get("conditions")
    if table is None:
        return None
    f = result.facts
    steady = table[table["state"].isin(_STEADY) & table["level"].gt(0)]
    heavy = table[table["level"].gt(0)]
    if not len(heavy):
        return None
    top = heavy.loc[heavy.groupby(["model", "family", "variant"], sort=False)["level"].idxmax()]
    still = top[top["state"].isin(_STEADY)]
    margins = f"{points(f['margin_drop']).lstrip('+')} of accuracy, {percent(f['margin_lost'], 0)} of the gain"
    text = (f"Of {count(len(heavy))} pairs of model and level, {count(len(steady))} show no change beyond the margins "
            f"({margins}). ")  # fmt: skip
    if len(still):
        named = ", ".join(
            f"{r.model} under {in_words(r.family, r.variant, r.level)}" for r in still.head(6).itertuples()
        )
        text += f"At the heaviest level this still holds for {named}" + (
            f" and {len(still) - 6} more." if len(still) > 6 else ".")  # fmt: skip
    else:
        text += "At the heaviest level it holds for none."
    return p(b("Who does not fall. "), text)


def _noise(result: Result) -> Any:
    table = result.frames.get("flips")
    if table is None:
        return None
    if table["base"].isna().all():
        return callout(b("No repeats. "), "Nothing tells answers that change with the image from answers that change "
                       "anyway: ask each item as it is twice or more.", tone="warn")  # fmt: skip
    base = table.groupby("model", sort=False)["base"].mean()
    text = (f"Between two samples of the item as it is {percent(base.min())} ({base.idxmin()}) to "
            f"{percent(base.max())} ({base.idxmax()}) of the answers change; only what goes beyond that is an effect "
            "of the image.")  # fmt: skip
    return p(b("Sampling noise. "), text)


def _evidence(result: Result) -> Any:
    table = result.frames.get("evidence")
    if table is None:
        return None
    shown = table[table["low"].gt(0)]
    text = (f"Covering the region that holds the answer costs more than covering another one for {len(shown)} of "
            f"{len(table)} models")  # fmt: skip
    if len(shown):
        text += f" (by {points(shown['specificity'].min())} to {points(shown['specificity'].max())})"
    return p(b("Evidence. "), text + ".")


def _forms(result: Result) -> Any:
    table = result.frames.get("forms")
    if table is None:
        return None
    every, turned = table[table["form"].eq("all forms")], table[table["form"].eq("negation")]
    text = ""
    if len(every):
        text = (f"All forms of a question get answers of one meaning on {percent(every['same'].min(), 0)} to "
                f"{percent(every['same'].max(), 0)} of the items.")  # fmt: skip
    if len(turned):
        worst = turned.loc[turned["failure"].idxmax()]
        text += (f" A question and its negation get the same answer in up to {percent(worst['failure'], 0)} of the "
                 f"cases ({worst['model']}).")  # fmt: skip
    return p(b("Other words. "), text.strip()) if text else None


def _layers(result: Result) -> Any:
    table = result.frames.get("layer_tests")
    if table is None:
        return None
    t = table.set_index("what")
    parts = []
    shown = {"Spearman of cosine with layer": "cosine of an image's tokens with depth: Spearman",
             "excess of corrected cosine over moved tokens": "excess over tokens moved between images"}  # fmt: skip
    for row, said in shown.items():
        if row in t.index:
            r = t.loc[row]
            parts.append(
                f"{said} {number(r['estimate'], 2)} (interval {number(r['low'], 2)} to {number(r['high'], 2)})"
            )
    link = result.facts.get("link") or {}
    text = "; ".join(parts)
    if link.get("rho") is not None:
        text += (f". With the fall of accuracy of the same images the last layers' cosine correlates at "
                 f"{number(link['rho'], 2)} ({p_says(link['p'])}, {count(link['n'])} images): an association, at most "
                 "a possible explanation")  # fmt: skip
    return p(b("Layers. "), f"{text[:1].upper()}{text[1:]}.") if text else None


def _lacking(result: Result) -> Any:
    lacking = result.facts.get("lacking", {})
    if not lacking:
        return None
    return ul([(b(_CALLED.get(k, k.replace("_", " "))), f": not made, {why}.") for k, why in lacking.items()])
