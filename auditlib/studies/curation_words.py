"""Sentences of the report about a curation: the chain of counts, what waits, what the quality measures show."""

from __future__ import annotations

from typing import Any

import pandas as pd

from auditlib.numerals import count, number, pct, percent, points
from auditlib.report.blocks import b, callout, card, cards, p, ul
from auditlib.studies.results import Result

_WAITS = {"adjudication": "No judge has decided on the recalled items", "people": "No person has decided on them"}


def words(result: Result) -> list[Any]:
    """Blocks of the section's opening."""
    return [b for b in (_chain(result), _who(result), _waiting(result), _wrong(result), *_quality(result),
                        _lacking(result)) if b]  # fmt: skip


def _chain(result: Result) -> Any:
    facts, stages = result.facts, result.frame("stages")
    turn = stages[stages["mode"].eq("sequential")].set_index("stage")
    sub = {"text_ablation": "answered from the text", "saturation": "solved by the panel",
           "defects": "with a confirmed defect"}  # fmt: skip
    out = [card("items", count(facts["items"]))]
    for stage, r in turn.iterrows():
        if r["state"] == "run":
            out.append(card(f"left after {str(stage).replace('_', ' ')}", count(r["left"]),
                            f"{count(r['removed'])} {sub[str(stage)]}, {percent(r['share_removed'])} of "
                            f"{count(r['items_in'])}"))  # fmt: skip
        else:
            out.append(card(str(stage).replace("_", " "), "not run", str(r["state"]).removeprefix("not run: ")))
    return cards(out)


def _who(result: Result) -> Any:
    roles = result.facts["roles"]
    text = (f"{_models(roles['inspectors'], 'inspector')} answered without the image, {_models(roles['panel'])} "
            f"decided what is solved and what looks wrong, {_models(roles['evaluated'])} are ranked.")  # fmt: skip
    recalled = result.frame("stages").set_index(["mode", "stage"])["recalled"].get(("sequential", "defects"), 0)
    if recalled:
        text += f" The rules recalled {count(recalled)} of the items left after the first two stages."
    state = result.frames.get("adjudicated")
    if state is not None and len(state):
        confirmed = int(state["state"].eq("confirmed").sum())
        text += (f" {len(result.facts['judges'])} judges confirmed a defect in {count(confirmed)} of the "
                 f"{count(len(state))} that they saw")  # fmt: skip
        gone = result.frame("stages").set_index(["mode", "stage"])["removed"].get(("sequential", "defects"), 0)
        text += f"; after the readers' word {count(gone)} items left." if "people" not in _open(result) else "."
    return p(text)


def _models(names: list[str], word: str = "model") -> str:
    return f"{len(names)} {word}{'s' * (len(names) != 1)}"


def _open(result: Result) -> dict[str, str]:
    return dict(result.facts.get("waiting", {}))


def _waiting(result: Result) -> Any:
    waiting = _open(result)
    if not waiting:
        return None
    rows = [(f"{_WAITS.get(k, k)}: {why}.",) for k, why in waiting.items()]
    table = result.frame("decisions")
    n = int(table["author"].eq("waits for people").sum()) if "author" in table else 0
    more = f" {count(n)} items that judges named wait for readers and stay in the benchmark until then." if n else ""
    text = " ".join(r[0] for r in rows)
    return callout(b("Nothing is removed as defective without a person's word. "), text + more, tone="warn")


def _wrong(result: Result) -> Any:
    sentence = result.facts.get("wrong_removals", "")
    return p(sentence) if sentence else None


def _quality(result: Result) -> list[Any]:
    table = result.frames.get("quality")
    if table is None or not len(table):
        return []
    q = table.set_index("measure")
    sd, cv, mean = (
        q.loc[m] for m in ("SD between models", "coefficient of variation", "mean of the benchmark average")
    )
    spread = (
        f"The coefficient of variation between models goes from {number(cv['raw'])} to {number(cv['curated'])}, a "
        f"ratio of {number(cv['ratio'], 2)}. That is the ratio of the standard deviations, {number(sd['ratio'], 2)}, "
        f"over the ratio of the means, {number(mean['curated'] / mean['raw'], 2)}: "
    )  # fmt: skip
    spread += _share_of_spread(sd["ratio"], cv["ratio"])
    whole, rest = q.loc["Spearman, curated and all items"], q.loc["Spearman, curated and removed items"]
    order = (f"Curated and all items rank the models with a Spearman of {number(whole['curated'])}, but a part always "
             f"resembles its whole: random subsets of the same size and source mix give {_band(whole)}. Against the "
             f"removed items, which share nothing with it, the curated set has {number(rest['curated'])} (random "
             f"subsets against their rest: {_band(rest)}).")  # fmt: skip
    pairs, calls = q.loc["resolvable pairs of models"], q.loc["resolvable pairs per 1,000 calls"]
    text = (f"{count(pairs['curated'])} pairs of models can be told apart, against {count(pairs['raw'])} on all items "
            f"and {_band(pairs, count)} on random subsets of the curated size; per 1,000 calls that is "
            f"{number(calls['curated'], 2)} against {number(calls['raw'], 2)}.")  # fmt: skip
    return [p(b("Spread. "), spread), p(b("Order. "), order), p(b("Resolution. "), text + _select(q))]


def _share_of_spread(sd: float, cv: float) -> str:
    from math import log

    if not cv > 1:
        return "the relative spread did not rise."
    if sd <= 1:
        return "all of the rise comes from the lower mean, none from models lying farther apart."
    return f"models lie {percent(sd - 1, 0)} farther apart, and " + (
        "most" if log(sd) < log(cv) / 2 else "the smaller part"
    ) + " of the rise (on a log scale) comes from the lower mean."  # fmt: skip


def _band(row: pd.Series, show=number) -> str:
    return f"{show(row['random_low'])} to {show(row['random_high'])}"


def _select(q: pd.DataFrame) -> str:
    text = ""
    if "fall of panel members and of others" in q.index:
        r = q.loc["fall of panel members and of others"]
        text += (f" Scores of models that helped to choose the items fall by {points(r['raw']).lstrip('+')}, those of "
                 f"the others by {points(r['curated']).lstrip('+')}; these are different models, so membership "
                 "is not all that tells them apart.")  # fmt: skip
    if "cross-fitted membership effect" in q.index:
        r = q.loc["cross-fitted membership effect"]
        text += (f" With items chosen by one half of the providers and then by the other, the same models score "
                 f"{points(r['curated'])} where their own half chose (over the splits {pct(r['low'])} to "
                 f"{pct(r['high'])}).")  # fmt: skip
    return text


def _lacking(result: Result) -> Any:
    lacking = result.facts.get("lacking", {})
    if not lacking:
        return None
    return ul([(b(k.replace("_", " ")), f": not made, {why}.") for k, why in lacking.items()])
