"""Sentences of a finding, made only when test, interval, multiplicity and pool range allow; else what is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from auditlib import lookup
from auditlib.claim_arms import arms_difference
from auditlib.lookup import one, pool_range, value
from auditlib.numerals import count, interval, number, p_says, percent, points, pp, span
from auditlib.summary import headline_row

#: largest p, and largest q of a list of categories
ALPHA = 0.05
#: differences that count as none: of a share, and of an excess
MARGIN_SHARE, MARGIN_EXCESS = 0.03, 0.01


@dataclass(frozen=True)
class Claim:
    """One sentence that a reader might want to quote.

    Attributes
    ----------
    name : what it is about. sentence : the sentence where it may be said, else "".
    missing : what stands against it, one reason each; empty where it may be said.
    basis : metrics of the statistics frame that it rests on.
    """

    name: str
    sentence: str
    missing: tuple[str, ...]
    basis: tuple[str, ...]

    @property
    def made(self) -> bool:
        return not self.missing

    def text(self) -> str:
        """The sentence, or what is missing for it."""
        return self.sentence if self.made else f"Not claimed ({self.name}): {'; '.join(self.missing)}."


def claims(audit: Any, *, headline_q: float | None = None) -> list[Claim]:
    """All claims that an audit could make, each with its sentence or with what is missing.

    Parameters
    ----------
    audit : Audit
    headline_q : the headline p adjusted over all pools of a run (Holm), where several pools are judged together.

    Returns
    -------
    list of Claim
        In the order in which an abstract would say them.
    """
    makers: tuple[Callable[[Any], Claim], ...] = (
        _share, lambda a: _excess(a, headline_q), _where, _conflicts, _conflicts_where, _errors, _range, _judge,
        _design,
    )  # fmt: skip
    return [make(audit) for make in makers]


def table(audit: Any, **more: Any) -> pd.DataFrame:
    """:func:`claims` as a frame: name, made, text, basis."""
    return pd.DataFrame([{"name": c.name, "made": c.made, "text": c.text(), "basis": ", ".join(c.basis)}
                         for c in claims(audit, **more)])  # fmt: skip


def abstract(audit: Any, **more: Any) -> str:
    """An abstract of the audit: what was read, every claim that holds, and what is not claimed and why."""
    s = audit.steps
    runs = "with the image and without" if audit.has_blind else "with the image only"
    first = (f"{count(s['items'])} items of {audit.benchmark} were audited from the saved replies of {s['models']} "
             f"models run {runs}; no model was called.")  # fmt: skip
    made = claims(audit, **more)
    said = [c.sentence for c in made if c.made]
    return "\n\n".join(filter(None, [" ".join([first, *said]), "\n".join(c.text() for c in made if not c.made)]))


def _claim(name: str, sentence: str, missing: list[str], *basis: str) -> Claim:
    reasons = tuple(dict.fromkeys(m for m in missing if m))
    return Claim(name, "" if reasons else sentence, reasons, basis)


def _range_known(low: float) -> str:
    return "no pool with one model left out, so nothing shows how far it depends on the models" if np.isnan(low) else ""


def _uncalibrated(audit: Any, detector: str) -> str:
    """What is wrong with the items' numbers of options, from the detector's note; empty where nothing is."""
    d = audit.detectors
    notes = d.loc[d["detector"] == detector, "note"] if "note" in d else []
    return next((str(n) for n in notes if isinstance(n, str) and n), "")


def _keys(audit: Any, r: pd.Series) -> dict[str, str]:
    return {"arm": audit.arm, "policy": "wrong", "null_kind": r["null_kind"]}


def _no_gain(name: str, audit: Any) -> Claim:
    why = "no run without the image" if not audit.has_blind else "no arm is scored with and without the image"
    return _claim(name, "", [why], "zero_gain_share")


def _share(audit: Any) -> Claim:
    name, r = "zero gain", headline_row(audit)
    if r is None:
        return _no_gain(name, audit)
    low, high = pool_range(audit.statistics, "zero_gain_share", **_keys(audit, r))
    missing = [_range_known(low), "no interval" if pd.isna(r["low"]) else "",
               _uncalibrated(audit, "visual_dependency")]  # fmt: skip
    sentence = (f"On {count(r['estimate'] * r['n'])} of {count(r['n'])} items ({percent(r['estimate'])}, 95% interval "
                f"{span(r['low'], r['high'], percent)}) as many models are right without the image as with it; with "
                f"one model left out the share is {span(low, high, percent)}.")  # fmt: skip
    return _claim(name, sentence, missing, "zero_gain_share")


def _excess(audit: Any, headline_q: float | None) -> Claim:
    name, r, s = "excess over chance", headline_row(audit), audit.statistics
    if r is None:
        return _no_gain(name, audit)
    p = r["p"] if headline_q is None else headline_q
    low, high = pool_range(s, "zero_gain_share", "excess", **_keys(audit, r))
    worst = pool_range(s, "zero_gain_share", "p", **_keys(audit, r))[1]
    missing = [
        _uncalibrated(audit, "visual_dependency"),
        "no p value" if pd.isna(p) else f"{p_says(p)}, above .05" if p > ALPHA else "",
        "no interval of the excess" if pd.isna(r["excess_low"])
        else f"the interval of the excess {interval(r['excess_low'], r['excess_high'], pp)} pp reaches 0"
        if r["excess_low"] <= 0 else "",
        _range_known(low),
        f"with one model left out the excess falls to {points(low)}" if low <= 0 else "",
        f"with one model left out p rises to {p_says(worst).removeprefix('p = ')}" if worst > ALPHA else "",
    ]  # fmt: skip
    where = "inside the official categories" if r["null_kind"] == "within" else "over all items"
    many = "" if headline_q is None else ", adjusted for all pools of the run"
    sentence = (f"Blind results shuffled {where} would tie on {percent(r['null'])}; the excess of "
                f"{points(r['excess'])} (95% interval {interval(r['excess_low'], r['excess_high'], pp)}, "
                f"{p_says(p)}{many}; with one model left out {span(low, high, pp)} pp) is more than "
                "chance explains.")  # fmt: skip
    return _claim(name, sentence, missing, "zero_gain_share")


def _strata(audit: Any, metric: str, **keys: str) -> pd.DataFrame:
    rows = lookup.rows(audit.statistics, metric, models="all", **keys)
    rows = rows[~rows["stratum"].isin(["all", ""]) & ~rows["stratum"].str.startswith("design:")]
    return lookup.unique_p(rows, "stratum")


def _where(audit: Any) -> Claim:
    from scipy.special import chdtrc

    name = "where the excess is"
    if headline_row(audit) is None:
        return _no_gain(name, audit)
    t = _strata(audit, "zero_gain_share", arm=audit.arm, policy="wrong", null_kind="within")
    t = t[t["excess_low"].notna()]
    if len(t) < 2:
        return _claim(name, "", ["no official categories with intervals"], "zero_gain_share")
    se = (t["excess_high"] - t["excess_low"]) / 3.92
    weight = 1 / np.maximum(se, 1e-9) ** 2
    mean = (weight * t["excess"]).sum() / weight.sum()
    p = float(chdtrc(len(t) - 1, float((weight * (t["excess"] - mean) ** 2).sum())))
    sure = t[(t["q"] <= ALPHA) & (t["excess_low"] > 0)]
    missing = [
        _uncalibrated(audit, "visual_dependency"),
        "" if len(sure) else f"no category has q up to .05 (smallest {number(t['q'].min())})",
        "" if p <= ALPHA else f"categories do not differ beyond chance ({p_says(p)}, Cochran's Q)",
    ]
    parts = [f"{n} ({points(e)}, q = {number(q)})" for n, e, q in zip(sure["stratum"], sure["excess"], sure["q"])]
    sentence = (f"It is found in {_listed(parts)}, and categories differ more than chance explains ({p_says(p)}, "
                f"Cochran's Q over {len(t)}).{_other_arm(audit, sure['stratum'].tolist())}")  # fmt: skip
    return _claim(name, sentence, missing, "zero_gain_share")


def _other_arm(audit: Any, names: list[str]) -> str:
    """What the other arm says of the same categories; empty where it agrees or there is none."""
    for arm in (a for a in lookup.arms(audit) if a != audit.arm):
        t = _strata(audit, "zero_gain_share", arm=arm, policy="wrong", null_kind="within").set_index("stratum")
        lost = [n for n in names if n in t.index and not t.loc[n, "q"] <= ALPHA]
        if lost:
            return (f" Of these, {_listed(lost)} {'does' if len(lost) == 1 else 'do'} not pass in the {arm} arm "
                    f"(smallest q {number(t.loc[lost, 'q'].min())}).")  # fmt: skip
    return ""


def _conflicts(audit: Any) -> Claim:
    name, s = "label conflicts", audit.statistics
    u = one(s, "unanimous_share", models="all", stratum="all", level="")
    if u is None:
        return _claim(name, "", ["no votes against a key could be counted"], "unanimous_share")
    low, high = pool_range(s, "unanimous_share", level="")
    n = round(u["estimate"] * u["n"])
    sentence = (f"On {count(n)} item{'' if n == 1 else 's'} ({percent(u['estimate'])}, 95% interval "
                f"{span(u['low'], u['high'], percent)}; {span(low, high, percent)} with one model left out) every "
                "readable vote is one same option that is not the key: candidates for review, not errors.")  # fmt: skip
    return _claim(name, sentence, [_uncalibrated(audit, "consensus_error"), _range_known(low)], "unanimous_share")


def _conflicts_where(audit: Any) -> Claim:
    from scipy.stats import chi2_contingency, fisher_exact

    from auditlib.stats.multiplicity import bh

    name = "where label conflicts are"
    t = _strata(audit, "unanimous_share", level="")
    n = t["n"].to_numpy()
    hits = np.rint(t["estimate"] * n).to_numpy()
    if len(t) < 2 or not 0 < hits.sum() < n.sum():
        return _claim(name, "", ["no official categories with and without such items"], "unanimous_share")
    p = float(chi2_contingency(np.stack([hits, n - hits])).pvalue)
    rest = [[[h, m - h], [hits.sum() - h, n.sum() - m - hits.sum() + h]] for h, m in zip(hits, n)]
    q = bh([fisher_exact(np.array(r, int), alternative="greater").pvalue for r in rest])
    sure = np.flatnonzero(q <= ALPHA)
    missing = [
        _uncalibrated(audit, "consensus_error"),
        "clusters of items, which this comparison does not heed" if audit.steps.get("clusters") else "",
        f"categories do not differ beyond chance ({p_says(p)}, chi-square)" if p > ALPHA else "",
        "" if len(sure) else f"no single category stands out from the others (smallest q {number(q.min())})",
    ]
    parts = [f"{t['stratum'].iloc[i]} ({percent(t['estimate'].iloc[i])}, q = {number(q[i])})" for i in sure]
    sentence = (f"They are more frequent in {_listed(parts)} than in the other categories (all of them: {p_says(p)}, "
                "chi-square).")  # fmt: skip
    return _claim(name, sentence, missing, "unanimous_share")


def _errors(audit: Any) -> Claim:
    why = "votes against a key do not tell how many keys are wrong; that takes a probability sample that people review"
    return _claim("share of wrong keys", "", [why], "unanimous_share")


def _range(audit: Any) -> Claim:
    name, r, s = "dependence on the models", headline_row(audit), audit.statistics
    if r is None:
        return _no_gain(name, audit)
    ends = {c: pool_range(s, "zero_gain_share", c, **_keys(audit, r)) for c in ("estimate", "excess")}
    if np.isnan(ends["estimate"][0]):
        return _claim(name, "", [_range_known(float("nan"))], "zero_gain_share")
    gaps = {c: max(high, r[c]) - min(low, r[c]) for c, (low, high) in ends.items()}
    less = "less than the raw share" if gaps["excess"] < gaps["estimate"] else "no less than the raw share"
    sentence = (f"From pool to pool (all models, or one left out) the raw share moves by "
                f"{points(gaps['estimate']).lstrip('+')} and the excess by {points(gaps['excess']).lstrip('+')}, "
                f"{less}: quote neither without the pool.")  # fmt: skip
    return _claim(name, sentence, [], "zero_gain_share")


def _judge(audit: Any) -> Claim:
    name = "conclusions without the judge"
    if audit.arm != "judged" or not any(a.startswith("exact") for a in lookup.arms(audit)):
        return _claim(name, "", ["no judged arm beside one without a judge"], "zero_gain_share")
    d = None if headline_row(audit) is None else arms_difference(audit, MARGIN_SHARE, MARGIN_EXCESS)
    if d is None:
        return _claim(name, "", ["no items are counted in both arms"], "zero_gain_share")
    other = one(audit.statistics, "zero_gain_share", arm=d.other, policy="wrong", models="all", stratum="all",
                null_kind=headline_row(audit)["null_kind"])  # fmt: skip
    missing = [
        _uncalibrated(audit, "visual_dependency"),
        f"the zero-gain share is not shown to stay within {points(MARGIN_SHARE).lstrip('+')} (difference "
        f"{points(d.share)}, equivalence {p_says(d.share_p)})" if d.share_p > ALPHA else "",
        f"the excess is not shown to stay within {points(MARGIN_EXCESS).lstrip('+')} (difference {points(d.excess)}, "
        f"equivalence {p_says(d.excess_p)}); under the {d.other} arm it is {points(value(other, 'excess'))} "
        f"({p_says(value(other, 'p'))})" if d.excess_p > ALPHA else "",
    ]  # fmt: skip
    sentence = (f"Scored without the judge ({d.other} arm) the share changes by {points(d.share)} and the excess by "
                f"{points(d.excess)}, both equivalent to no change (margins {points(MARGIN_SHARE).lstrip('+')} and "
                f"{points(MARGIN_EXCESS).lstrip('+')}).")  # fmt: skip
    return _claim(name, sentence, missing, "zero_gain_share")


def _design(audit: Any) -> Claim:
    name, r = "design labels", one(audit.statistics, "gain_auc", arm=audit.arm)
    if r is None:
        return _claim(name, "", ["items carry no design labels"], "gain_auc")
    verb = "recovers" if r["low"] > 0.5 else "inverts" if r["high"] < 0.5 else "is not shown to recover"
    sentence = (f"Ranking items by visual gain {verb} the benchmark's own design labels (AUC {number(r['estimate'])}, "
                f"95% interval {interval(r['low'], r['high'], number)}).")  # fmt: skip
    return _claim(name, sentence, ["no interval"] if pd.isna(r["low"]) else [], "gain_auc")


def _listed(parts: list[str]) -> str:
    return ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1] if parts else ""
