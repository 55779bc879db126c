"""What a study of sensitivity leaves on disk: frames, facts, findings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from auditlib import frames
from auditlib.errors import AuditError
from auditlib.sensitivity import curves, evidence, flips, layers, margins, signal
from auditlib.sensitivity.conditions import CURVES
from auditlib.sensitivity.contrasts import say_same, trend_table
from auditlib.sensitivity.pairing import full_of, item_means, pairs
from auditlib.sensitivity.study import Sensitivity, facts_of, scored
from auditlib.studies.results import Result

#: models that must be right on an item as it is before it can be called insensitive
LEAST_MODELS = 2


def measure(s: Sensitivity) -> Result:
    """Every table of the study, as :class:`~auditlib.studies.results.Result` ``sensitivity``.

    Notes
    -----
    What the calls cannot support is left out, and ``facts["lacking"]`` says why.
    """
    calls, params = scored(s), s.params
    lacking: dict[str, str] = {}
    out: dict[str, pd.DataFrame] = {}

    def rng(what: str) -> np.random.Generator:
        return s.source.rng("sensitivity", what)

    def add(name: str, make: Callable[[], pd.DataFrame], why: str) -> None:
        try:
            table = make()
        except AuditError as e:
            lacking[name] = str(e)
            return
        if len(table):
            out[name] = table
        else:
            lacking[name] = why

    draws = params.draws
    add("conditions", lambda: _conditions(calls, params, rng("conditions")), "no image was changed")
    add("curves", lambda: curves.curve_table(calls, rng=rng("curves"), draws=draws),
        "no family of changes has two levels")  # fmt: skip
    add("trends", lambda: trend_table(calls, rng=rng("trends"), draws=max(draws, 999)), "no change has levels")
    add("flips", lambda: flips.flip_table(calls, rng=rng("flips"), draws=draws), "answers are not known")
    add("erosion", lambda: margins.erosion_table(pairs(calls), rng=rng("erosion"), draws=draws),
        f"there are no option scores and fewer than {margins.LEAST_SAMPLES} samples")  # fmt: skip
    boxes = evidence.evidence_items(calls)
    add("evidence", lambda: evidence.evidence_table(boxes, rng=rng("evidence"), draws=draws),
        "no region of evidence was covered")  # fmt: skip
    add("grid", lambda: evidence.grid_map(calls), "no grid of cells was covered")
    add("forms", lambda: signal.reformulation(calls), "no question was put in other words")
    add("yes_bias", lambda: signal.yes_bias(calls), "no item has a yes/no key")
    add("answer_space", lambda: signal.answer_space(calls, rng=rng("answers"), draws=draws),
        "no set of answers was changed")  # fmt: skip
    facts: dict[str, Any] = facts_of(s) | {"margin_drop": params.margin_drop, "margin_lost": params.margin_lost}
    if s.states is not None:
        out["layers"] = layers.layer_table(s.states)
        add("layer_tests", lambda: layers.layer_tests(s.states, rng=rng("layers"), draws=draws),
            "the states have fewer than three layers")  # fmt: skip
        facts["link"] = _plain(layers.link(s.states, _item_drop(calls)))
    else:
        lacking["layers"] = "no states of layers are named"
    found = sensitivity_findings(calls)
    if len(found):
        out["findings"] = found
    out["coverage"] = s.calls.coverage
    return Result("sensitivity", {k: v for k, v in out.items() if len(v)}, facts | {"lacking": lacking})


def _conditions(calls: pd.DataFrame, params: Any, rng: np.random.Generator) -> pd.DataFrame:
    table = curves.condition_table(calls, rng=rng, draws=params.draws, margin_drop=params.margin_drop,
                                   margin_lost=params.margin_lost)  # fmt: skip
    if not len(table):
        return table
    table["state"] = [say_same(r) for r in table.to_dict("records")]
    return table


def _item_drop(calls: pd.DataFrame) -> pd.Series:
    """Item -> mean fall under the changes that have levels, over conditions and models."""
    means = item_means(calls[calls["family"].isin(CURVES)])
    both = means.merge(full_of(calls)[["model", "item", "hit_full"]], on=["model", "item"])
    return (both["hit_full"] - both["hit"]).groupby(both["item"]).mean()


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {k: (None if isinstance(v, float) and v != v else v) for k, v in values.items()}


def heaviest(calls: pd.DataFrame) -> pd.DataFrame:
    """Calls under the heaviest level of each family that has levels, and without the image."""
    plain = calls[calls["form"].eq("") & calls["hit"].notna()]
    levelled = plain[plain["family"].isin(CURVES)]
    top = levelled.groupby(["family", "variant"])["level"].transform("max")
    return pd.concat([levelled[levelled["level"].eq(top)], plain[plain["family"].isin(["blind", "blank"])]])


def sensitivity_findings(calls: pd.DataFrame) -> pd.DataFrame:
    """Findings rows (detector ``sensitivity``): items on which what the image shows makes no difference.

    Returns
    -------
    DataFrame
        ``medium``: two models or more answer the question and its negation alike, so that one answer is wrong.
        ``low``: two models or more are right on the item as it is, and all of them stay right under every heaviest
        change of the image and without it. The score is the share of such models.
    """
    rows = []
    full = full_of(calls)
    right = full[full["hit_full"].eq(1)][["model", "item"]]
    heavy = heaviest(calls).merge(right, on=["model", "item"])
    kinds = heavy["family"].nunique()
    if kinds > 1:
        by = heavy.groupby(["item", "model"], sort=False).agg(least=("hit", "min"), kinds=("family", "nunique"))
        by = by[by["kinds"].eq(kinds)].reset_index()
        for item, part in by.groupby("item", sort=False):
            n, kept = len(part), int(part["least"].eq(1).sum())
            if n >= LEAST_MODELS and kept == n:
                words = f"all {n} models that answer it right stay right under every heaviest change of the image"
                rows.append(_finding(item, kept / n, "low", words, kind="image", models=n, right=kept))
    turned = calls[calls["form"].eq("negation") & calls["family"].eq("full") & calls["answer"].ne("")]
    said = full.rename(columns={"answer_full": "plain"})[["model", "item", "plain"]]
    both = turned.merge(said[said["plain"].ne("")], on=["model", "item"])
    both = both[both["sample"].eq(0) & both["answer"].isin(["yes", "no"])]
    for item, part in both.groupby("item", sort=False):
        same = int(part["answer"].eq(part["plain"]).sum())
        if same >= LEAST_MODELS and 2 * same > len(part):
            words = f"{same} of {len(part)} models answer the question and its negation alike"
            rows.append(_finding(item, same / len(part), "medium", words, kind="negation", models=len(part), same=same))
    return frames.frame("findings", rows)


def _finding(item: Any, score: float, severity: str, words: str, **facts: Any) -> dict[str, Any]:
    return {"item": item, "detector": "sensitivity", "arm": "", "score": float(score), "flag": True,
            "severity": severity, "message": words, "evidence": frames.evidence(**facts)}  # fmt: skip
