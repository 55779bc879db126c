"""Frames about items that a diagnosis leaves on disk: profiles, composition, order, parameters, findings, one card."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib import frames
from auditlib.counts import count
from auditlib.dependence.information import adaptive_order, log_determinant, utility
from auditlib.dependence.profile import CONDITIONS, LABEL_NAMES, LABELS, marginals
from auditlib.dependence.study import Dependence, strata
from auditlib.errors import AuditError
from auditlib.numerals import percent
from auditlib.stats.intervals import wilson
from auditlib.studies.results import Result

#: a label that at least this share of the bootstrap draws repeats is stable
STABLE = 0.8
COORDINATES = ("base", "visual", "textual", "joint")
#: and one that fewer than this repeat hangs on the models at hand
UNCERTAIN = 0.5
#: who moved an item, in the order of the report
MOVERS = {
    "agree": "responses and structure say the same",
    "responses": "responses outweighed structure",
    "structure": "structure moved it",
    "both": "neither alone",
    "no structure": "no structure",
}


def item_table(d: Dependence) -> pd.DataFrame:
    """One row per item: accuracies, profile with interval, label and its stability, prior, profile without it."""
    r, g, stable = d.responses, d.diagnosis, d.stability
    assert r is not None and g is not None
    out = pd.DataFrame({"item": list(r.items), "stratum": strata(d.pool), "k": r.k.astype(int)})
    for j, c in enumerate(CONDITIONS):
        out[f"accuracy_{c}"] = r.accuracy[:, j]
    for j, c in enumerate(CONDITIONS):
        out[f"fitted_{c}"] = g.q[:, j]
    out["label"], out["solvability"], out["undetermined"] = g.labels, g.solvability, g.undetermined
    for j, z in enumerate(LABELS):
        out[z] = g.profile[:, j]
        if stable is not None:
            out[f"{z}_low"], out[f"{z}_high"] = stable.low[:, j].astype(float), stable.high[:, j].astype(float)
    out["stability"] = np.nan if stable is None else stable.label
    informed = g.weight > 0
    for j, z in enumerate(LABELS):
        out[f"prior_{z}"] = np.where(informed, g.prior[:, j], np.nan)
    out["weight"] = g.weight
    out["prior_label"] = np.where(informed, np.array(LABELS)[g.prior.argmax(1)], "")
    alone = g.profile if g.alone is None else g.alone
    for j, z in enumerate(LABELS):
        out[f"alone_{z}"] = alone[:, j]
    out["alone_label"] = np.array(LABELS)[alone.argmax(1)]
    out["moved_by"] = movers(out)
    for j, c in enumerate(COORDINATES):
        out[f"logit_{c}"] = g.contribution[:, j]
    out["utility"] = utility(g.theta, g.a, g.b, r.chance)
    out["information"] = log_determinant(np.zeros(4), g.a, g.b)
    return out


def movers(items: pd.DataFrame) -> NDArray[np.object_]:
    """Which side a label comes from; see :data:`MOVERS`."""
    by_structure, by_responses = (items["label"].eq(items[f"{s}_label"]) for s in ("prior", "alone"))
    return np.select(
        [items["prior_label"].eq(""), by_structure & by_responses, by_responses, by_structure],
        ["no structure", "agree", "responses", "structure"], "both",
    ).astype(object)  # fmt: skip


def composition(items: pd.DataFrame) -> pd.DataFrame:
    """Items of each label by stratum and in all, with a Wilson interval over items; undetermined ones apart.

    Returns
    -------
    DataFrame
        stratum (``all`` last), items, solvable, undetermined, label, n, share (of the solvable), low, high.
    """
    parts = (
        [(s, p) for s, p in items.groupby("stratum", sort=True) if s != ""] if items["stratum"].nunique() > 1 else []
    )
    rows = []
    for stratum, part in [*parts, ("all", items)]:
        solvable = part[~part["undetermined"]]
        for z in LABELS:
            n = int(solvable["label"].eq(z).sum())
            interval = wilson(n, len(solvable))
            rows.append({"stratum": stratum, "items": len(part), "solvable": len(solvable),
                         "undetermined": len(part) - len(solvable), "label": z, "n": n,
                         "share": n / len(solvable) if len(solvable) else np.nan, "low": interval.low,
                         "high": interval.high})  # fmt: skip
    return pd.DataFrame(rows)


def moved(items: pd.DataFrame) -> pd.DataFrame:
    """Solvable items by the label that responses alone give, the prior's, and the final one."""
    seen = items[~items["undetermined"]]
    keys = ["alone_label", "prior_label", "label", "moved_by"]
    return seen.groupby(keys, sort=True).size().rename("n").reset_index()


def zero_gain(d: Dependence, items: pd.DataFrame) -> pd.DataFrame:
    """Items that gain nothing from the image in the audit's counts (F = B), by label.

    Raises
    ------
    AuditError
        The pool cannot be counted.
    """
    arm = d.pool.arms[d.params.arm] if d.params.arm else d.pool.arm
    counted = count(d.pool, arm.name)
    table = items[counted.keep].assign(zero=counted.F == counted.B, gain=(counted.F - counted.B) / counted.total)
    label = table["label"].mask(table["undetermined"], "undetermined")
    rows = []
    for z in (*LABELS, "undetermined"):
        part = table[label.eq(z)]
        n = int(part["zero"].sum())
        interval = wilson(n, len(part))
        rows.append({"label": z, "items": len(part), "zero_gain": n, "share": n / len(part) if len(part) else np.nan,
                     "low": interval.low, "high": interval.high, "gain": part["gain"].mean(),
                     "of_zero_gain": n / max(int(table["zero"].sum()), 1)})  # fmt: skip
    return pd.DataFrame(rows)


def order(d: Dependence) -> pd.DataFrame:
    """Items by what one more answer in all four conditions tells of an average model, and of a weak and a strong one.

    Notes
    -----
    Log determinant of the information, in closed form; a weak and a strong model lie one standard deviation below and
    above the pool's mean in every coordinate.
    """
    g = d.diagnosis
    assert g is not None and d.responses is not None
    out = pd.DataFrame({"item": list(d.responses.items), "label": g.labels, "undetermined": g.undetermined})
    for name, level in (("place", 0.0), ("place_weak", -1.0), ("place_strong", 1.0)):
        ranked = np.empty(len(out), int)
        ranked[adaptive_order(np.full(4, level), g.a, g.b)] = np.arange(1, len(out) + 1)
        out[name] = ranked
    out["log_determinant"] = log_determinant(np.zeros(4), g.a, g.b)
    return out.sort_values("place").reset_index(drop=True)


def frozen_items(d: Dependence) -> pd.DataFrame:
    """Item parameters on the standardised scale, from which :mod:`auditlib.dependence.frozen` scores a new model."""
    g, r = d.diagnosis, d.responses
    assert g is not None and r is not None
    out = pd.DataFrame({"item": list(r.items), "k": r.k.astype(int), "label": g.labels, "undetermined": g.undetermined})
    for j, c in enumerate(COORDINATES):
        out[f"a_{c}"], out[f"b_{c}"] = g.a[:, j], g.b[:, j]
    return out


def findings(items: pd.DataFrame) -> pd.DataFrame:
    """Findings rows (detector ``dependence``) for the common per-question report.

    ``low``: hardly answered above chance by anyone, or the question suffices and the label is stable. ``info``: the
    label hangs on the models at hand. The score is 1 less solvability, the probability that the question suffices, or
    1 less stability.
    """
    question = marginals(items[list(LABELS)].to_numpy(float))[:, 1]
    rows = []
    for r, text in zip(items.to_dict("records"), question):
        name = LABEL_NAMES[LABELS.index(r["label"])]
        if r["undetermined"]:
            words = f"answered in {percent(r['accuracy_full'])} of the full runs, near chance: nothing is said of views"
            severity, score = "low", 1 - r["solvability"]
        elif r["stability"] < UNCERTAIN:
            words = f"{name}, but only in {percent(r['stability'], 0)} of the draws of models"
            severity, score = "info", 1 - r["stability"]
        elif r["label"] in "RT" and r["stability"] >= STABLE:
            words = (f"{name}: the question without the image suffices (answered so in {percent(r['accuracy_blind'])}, "
                     f"with it in {percent(r['accuracy_full'])})")  # fmt: skip
            severity, score = "low", text
        else:
            continue
        rows.append({"item": r["item"], "detector": "dependence", "arm": "", "score": float(np.clip(score, 0, 1)),
                     "flag": True, "severity": severity, "message": words,
                     "evidence": frames.evidence(**{z: round(r[z], 4) for z in LABELS}, label=r["label"],
                                                 solvability=round(r["solvability"], 4), moved_by=r["moved_by"],
                                                 stability=None if r["stability"] != r["stability"]
                                                 else round(r["stability"], 4))})  # fmt: skip
    return frames.frame("findings", rows)


def card(result: Result, item: str) -> pd.DataFrame:
    """Everything about one item as two columns, ``what`` and ``value``.

    Raises
    ------
    AuditError
        There is no such item.
    """
    table = result.frame("items")
    found = table[table["item"].eq(str(item))]
    if not len(found):
        raise AuditError(f"no item {item!r}", mend=f"ids look like {', '.join(table['item'].head(3))}")
    r = found.iloc[0]
    label = "undetermined" if r["undetermined"] else LABEL_NAMES[LABELS.index(r["label"])]
    rows = [("item", r["item"]), ("category", r["stratum"]), ("label", label)]
    rows += [(f"accuracy, {c.replace('_', ' ')}", percent(r[f"accuracy_{c}"])) for c in CONDITIONS]
    rows += [("chance", percent(1 / r["k"])), ("solvability", f"{r['solvability']:.2f}"),
             ("draws of models with this label", percent(r["stability"], 0))]  # fmt: skip
    for words, stem in (("profile R, V, T, S", ""), ("responses alone", "alone_"), ("structure alone", "prior_")):
        rows.append((words, ", ".join(percent(r[stem + z], 0) for z in LABELS)))
    rows += [("weight of the structure", f"{r['weight']:.2f}"), ("moved by", MOVERS[r["moved_by"]])]
    rows.append(("logits base, visual, textual, joint", ", ".join(f"{r[f'logit_{c}']:+.2f}" for c in COORDINATES)))
    return pd.DataFrame(rows, columns=["what", "value"])
