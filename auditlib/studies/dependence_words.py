"""Sentences of the report about modality dependence: what was run, what is unknown, labels and their worth."""

from __future__ import annotations

from typing import Any

from auditlib.dependence.profile import CONDITIONS, LABEL_NAMES, LABELS
from auditlib.numerals import count, number, p_says, percent, points
from auditlib.report.blocks import b, callout, card, cards, p, ul
from auditlib.studies.results import Result

_SHOWN = {"none": "the options alone", "image_only": "image and options", "blind": "question and options",
          "full": "the full item"}  # fmt: skip
_SUB = {"R": "either view suffices", "V": "the image suffices", "T": "the question suffices",
        "S": "both are needed"}  # fmt: skip
_PRIORS = {"none": "no structure: responses alone decide", "embeddings": "vectors of image, question and options",
           "probabilities": "given probabilities of the key", "labels": "given labels",
           "log-probabilities": "the log-probabilities of a model outside the pool"}  # fmt: skip


def words(result: Result) -> list[Any]:
    """Blocks of the section's opening."""
    if result.facts["missing"]:
        return [x for x in (_unknown(result), *_partial(result), _left_out(result)) if x]
    return [x for x in (_cards(result), _how(result), _without_image(result), _sure(result), _structure(result),
                        _worth(result), _people(result), _left_out(result), _lacking(result)) if x]  # fmt: skip


def _unknown(result: Result) -> Any:
    facts = result.facts
    missing = " and ".join(_SHOWN[c] for c in facts["missing"])
    return callout(b(f"No model was run on {missing}. "), "What each item depends on can therefore not be identified, "
                   "and nothing is fitted. The blind-run stage makes the missing runs.", tone="warn")  # fmt: skip


def _partial(result: Result) -> list[Any]:
    facts = result.facts
    known = facts["partial"]
    out = [ul([(b(f"Without {_SHOWN[c]}"), f": unknown is {why}.") for c, why in facts["unknown"].items()])]
    shown = ", ".join(f"{_SHOWN[c]} {percent(known[c])}" for c in CONDITIONS if c in known)
    text = f"What the runs do say: mean accuracy with {shown}."
    for c, view in (("blind", "question"), ("image_only", "image")):
        if s := known.get(f"sufficiency_{c}"):
            text += (f" Of {count(s['items'])} items that the pool answers above chance, {count(s['sufficient'])} "
                     f"({percent(s['sufficient'] / max(s['items'], 1))}) give at least half of their gain over chance "
                     f"to the {view} alone.")  # fmt: skip
    return [*out, p(text)]


def _cards(result: Result) -> Any:
    facts = result.facts
    solvable = sum(facts["labels"].values())
    made = [card(LABEL_NAMES[j], percent(facts["labels"][z] / solvable) if solvable else "none", _SUB[z],
                 f"{count(facts['labels'][z])} items") for j, z in enumerate(LABELS)]  # fmt: skip
    made.append(card("undetermined", count(facts["undetermined"]), f"of {count(facts['items'])} items",
                     "near chance even in full"))  # fmt: skip
    return cards(made)


def _how(result: Result) -> Any:
    facts = result.facts
    prior = _PRIORS.get(facts["prior"]["source"], facts["prior"]["source"])
    text = f"{len(facts['models'])} models under four conditions; structure from {prior}"
    if facts["prior"]["source"] == "none":
        text = f"{len(facts['models'])} models under four conditions; {prior}"
    elif facts["prior"]["items"] < facts["items"]:
        text += f", for {count(facts['prior']['items'])} of {count(facts['items'])} items"
    t = result.frame("thresholds").set_index("view")["threshold"]
    text += (f". A single view counts as sufficient from {percent(t['image'], 0)} (image) and "
             f"{percent(t['question'], 0)} (question) of the full item's gain over chance. Labels are relative to this "
             "pool of models and hold for items that it can solve.")  # fmt: skip
    if not facts["converged"]:
        text += " The fit stopped at its limit of iterations before it converged."
    return p(text)


def _without_image(result: Result) -> Any:
    table = result.frames.get("zero_gain")
    if table is None:
        return None
    t = table.set_index("label")
    solvable = t.loc[[z for z in LABELS if z in t.index]]
    total = int(table["zero_gain"].sum())
    if not total:
        return None
    text = t.loc[[z for z in ("R", "T") if z in t.index]]
    both = solvable.loc[solvable.index.isin(["V", "S"])]
    return p(b("Zero gain. "), f"Of the {count(total)} items that gain nothing from the image in the audit's counts, "
             f"{count(text['zero_gain'].sum())} are redundant or textual-dominant, so that the question suffices; "
             f"{count(both['zero_gain'].sum())} are labelled as needing the image and gained nothing by these counts; "
             f"{count(t['zero_gain'].get('undetermined', 0))} are undetermined: an unsolved item gains nothing "
             "either.")  # fmt: skip


def _sure(result: Result) -> Any:
    facts = result.facts
    if not facts["draws"]:
        return None
    n = sum(facts["labels"].values())
    low, high = facts["levels"]
    return p(b("Certainty. "), f"When the models are drawn again ({count(facts['draws'])} draws), "
             f"{count(facts['stable'])} of {count(n)} labels stand in at least {percent(high, 0)} of the draws and "
             f"{count(facts['uncertain'])} in fewer than {percent(low, 0)}. More models make labels surer, more items "
             "do not.")  # fmt: skip


def _structure(result: Result) -> Any:
    table = result.frames.get("moved")
    if table is None or table["moved_by"].eq("no structure").all():
        return None
    by = table.groupby("moved_by")["n"].sum()
    n = int(by.sum())
    agree, responses, structure, neither = (count(by.get(x, 0)) for x in ("agree", "responses", "structure", "both"))
    return p(b("Structure and responses. "), f"They agree on {agree} of {count(n)} items. Where they differ, responses "
             f"outweigh structure in {responses}, structure moves the label in {structure}, and {neither} end between "
             "the two.")  # fmt: skip


def _worth(result: Result) -> Any:
    table = result.frames.get("margins")
    if table is None:
        return None
    known = table.dropna(subset=["margin"])
    least = known.loc[known["margin"].idxmin()]
    new = result.frames.get("newcomers")
    positive, sure = int((known["margin"] > 0).sum()), int((known["p_holm"] < 0.05).sum())
    text = (f"With each of {known['family'].nunique()} families left out of the labelling, {positive} of {len(known)} "
            f"margins on its own answers are positive ({number(known['null_positive'].sum(), 1)} expected under "
            f"permuted labels) and {sure} beyond chance after Holm's correction; the smallest is "
            f"{points(least['margin'])} (95% interval {points(least['low'])} to {points(least['high'])}, "
            f"{p_says(least['p_holm'])}).")  # fmt: skip
    if new is not None and len(new):
        off = (new["predicted_full"] - new["observed_full"]).abs()
        text += (f" Scored on frozen items, left-out models are predicted to within {points(off.max()).lstrip('+')} of "
                 "their accuracy on the full items.")  # fmt: skip
    return p(b("On models that had no part. "), text)


def _people(result: Result) -> Any:
    scores, table = result.frames.get("people_scores"), result.frames.get("people")
    if table is None:
        return None
    state = table["state"].value_counts()
    text = (f"{count(state.get('labelled', 0))} items have a label by readers, none of whom saw two views of one item; "
            f"{count(state.get('filtered', 0))} were left out because most readers of the whole item did not find it "
            f"sufficient, {count(state.get('open', 0))} wait for readings.")  # fmt: skip
    if scores is not None and len(scores):
        text += " Accuracy: " + ", ".join(f"{r.method} {percent(r.accuracy)}" for r in scores.itertuples()) + "."
        pairs = result.frames.get("people_compared")
        for r in () if pairs is None else pairs[pairs["metric"].eq("accuracy")].itertuples():
            text += (f" Against {r.against}: {points(r.difference)} [{points(r.low)}, {points(r.high)}], "
                     f"{p_says(r.p_holm)} after Holm.")  # fmt: skip
    return p(b("People. "), text)


def _left_out(result: Result) -> Any:
    left = result.facts.get("left_out", {})
    return p("Left out: ", "; ".join(f"{count(n)} {why}" for why, n in left.items()), ".") if left else None


def _lacking(result: Result) -> Any:
    lacking = {k: v for k, v in result.facts.get("lacking", {}).items() if k != "newcomers"}
    return ul([(b(k.replace("_", " ")), f": not made, {why}.") for k, why in lacking.items()]) if lacking else None
