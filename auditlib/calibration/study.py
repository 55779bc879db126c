"""How far a pool's findings can be believed: planted defects, the ranked list, prevalence, what-if, plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from auditlib import claims
from auditlib.auditing import Audit
from auditlib.calibration.review_sample import review_sample
from auditlib.calibration.spike_in import spike_in
from auditlib.errors import AuditError
from auditlib.escape import csv_unguard
from auditlib.frames import LETTERS, evidence, frame
from auditlib.metrics.what_if import what_if
from auditlib.params import CalibrationParams
from auditlib.pool import Pool
from auditlib.readers.cells import item_ids
from auditlib.readers.files import open_table
from auditlib.stats.label_conflict import LabelConflict, label_conflict
from auditlib.stats.local_fdr import LocalFdr, local_fdr
from auditlib.stats.planner import list_now, models_for_list, reviews_needed, smallest_excess
from auditlib.stats.precision_bounds import precision_bounds
from auditlib.studies.results import Result

#: places in the list at which its precision is stated
FIRST = (25, 50, 100)
#: severity by local false-discovery rate
SEVERITY = ((0.1, "high"), (0.3, "medium"))


def calibrate_pool(pool: Pool, audit: Audit) -> Result:
    """Everything of the calibration of one pool, as a study ``calibration``.

    Parameters
    ----------
    pool : as read. audit : of the same pool.

    Raises
    ------
    AuditError
        A damaged table of reviews.

    Notes
    -----
    What a pool cannot support is left out, and ``facts["lacking"]`` says why.
    """
    settings = (pool.params.calibration if pool.params else None) or CalibrationParams()
    frames: dict[str, pd.DataFrame] = {}
    lacking: dict[str, str] = {}
    facts: dict[str, Any] = {"settings": settings.model_dump(mode="json"), "models": len(pool.models)}
    spikes = spike_in(pool, share=settings.share, repeats=settings.repeats)
    lacking |= {f"spike_{k.replace(' ', '_')}": v for k, v in spikes.lacking.items()}
    if len(spikes.table):
        frames["spike_in"] = spikes.table
    facts["spike_line"] = spikes.line()
    _list(pool, settings, frames, lacking, facts)
    for name, make in (("prevalence", _prevalence), ("what_if", _what_if), ("shortcut", _shortcut)):
        _try(name, lambda make=make: make(pool, settings, frames, facts), lacking)
    _plans(pool, audit, settings, frames)
    frames["claims"] = claims.table(audit)
    return Result("calibration", {k: v for k, v in frames.items() if len(v)}, facts | {"lacking": lacking})


def _try(name: str, make: Callable[[], None], lacking: dict[str, str]) -> None:
    try:
        make()
    except (AuditError, ValueError) as why:
        lacking[name] = str(why)


def _list(pool: Pool, settings: CalibrationParams, frames: dict[str, pd.DataFrame], lacking: dict[str, str],
          facts: dict[str, Any]) -> None:  # fmt: skip
    """Items ranked against their key, bounds on the list's precision, and what reviews say of it."""
    letters, key = pool.letters.get("full"), pool.key_codes
    if letters is None or not ((letters >= 0).any() and (key >= 0).any()):
        lacking["ranked"] = "no letters, or no letter keys"
        return
    letters = letters.astype(int)
    families = pool.models["family"].fillna("").to_numpy(object) if "family" in pool.models else None
    if families is not None:  # a model of unknown family is a family of its own
        families = np.where(families == "", pool.models["model"].to_numpy(object), families).astype(str)
    length = None
    if "question" in pool.items and pool.items["question"].notna().any():
        length = np.log(pool.items["question"].fillna("").astype(str).str.len().to_numpy(float) + 1)
    found = label_conflict(letters, key.astype(int), families=families, tie_break=length)
    if not len(found.order):
        lacking["ranked"] = "no item has a key and a vote"
        return
    shown = None if pool.k is None else np.nan_to_num(pool.k, nan=0).astype(int)
    options = None if shown is None else np.maximum(shown, np.maximum(letters.max(axis=1), key) + 1)
    bounds = precision_bounds(letters, key.astype(int), found.order, rng=pool.rng("calibration", "bounds"), at=FIRST,
                              options=options)  # fmt: skip
    frames["bounds"] = pd.DataFrame([vars(b) | {"words": str(b)} for b in bounds])
    sample = review_sample(found.order, min(settings.review_budget, len(found.order)),
                           rng=pool.rng("calibration", "sample"))  # fmt: skip
    ids = pool.items["item"].to_numpy(object)
    frames["review_sample"] = pd.DataFrame({"item": ids[sample.items], "rank": sample.rank + 1,
                                            "stratum": sample.stratum, "inclusion": sample.inclusion})  # fmt: skip
    fdr = None
    if settings.reviews is not None:
        fdr = _reviewed(settings, ids, found, sample.edges, pool)
        frames["fdr"] = pd.DataFrame({"rank": fdr.rank + 1, "local_fdr": fdr.value, "low": fdr.low, "high": fdr.high})
        frames["first"] = pd.DataFrame([
            {"r": f.r, "reviewed": f.reviewed, "found": f.found, "expected": f.expected, "precision": f.precision,
             "low": f.interval.low, "high": f.interval.high} for f in fdr.first
        ])  # fmt: skip
    else:
        lacking["fdr"] = "no reviews: name a table of them as calibration.reviews; review_sample.csv lists the items"
    frames["ranked"] = _ranked(pool, found, fdr)
    frames["findings"] = _findings(frames["ranked"], fdr, bounds)
    facts["ranked"] = len(found.order)


def _reviewed(settings: CalibrationParams, ids: np.ndarray, found: LabelConflict, edges: np.ndarray, pool: Pool
              ) -> LocalFdr:  # fmt: skip
    """Local false-discovery rate from the table of reviews; only items of the sample drawn here count."""
    path = settings.reviews
    assert path is not None
    table = open_table(path).map(csv_unguard)
    lost = [c for c in ("item", "defect") if c not in table]
    if lost:
        raise AuditError(f"no column {lost[0]!r}", file=path, mend="give columns item and defect (1, 0, or empty)")
    place = {str(i): r for r, i in enumerate(ids[found.order])}
    as_it_stands = table["item"].str.strip()
    table["item"] = as_it_stands.where(as_it_stands.isin(place), item_ids(table["item"]))
    for row, item, said in zip(table.index + 2, table["item"], table["defect"]):
        if item not in place:
            raise AuditError(f"item {item!r} is not in the ranked list", file=path, row=int(row),
                             mend="review items of review_sample.csv")  # fmt: skip
        if said.strip() not in ("", "0", "1"):
            raise AuditError(f"defect is {said!r}", file=path, row=int(row), mend="write 1, 0, or leave it empty")
    if table["item"].duplicated().any():
        at = table.index[table["item"].duplicated()][0]
        raise AuditError(f"item {table['item'][at]!r} is reviewed twice", file=path, row=int(at) + 2,
                         mend="keep one row")  # fmt: skip
    rank = np.array([place[i] for i in table["item"]], int)
    said = pd.to_numeric(table["defect"].str.strip(), errors="coerce").to_numpy(float)
    return local_fdr(rank, said, edges, rng=pool.rng("calibration", "fdr"), at=FIRST)


def _ranked(pool: Pool, found: LabelConflict, fdr: LocalFdr | None) -> pd.DataFrame:
    """The list, most suspect first."""
    at = found.order
    key = pool.key_codes
    table = pd.DataFrame({
        "rank": np.arange(1, len(at) + 1),
        "item": pool.items["item"].to_numpy(object)[at],
        "stratum": pool.items["stratum"].to_numpy(object)[at] if "stratum" in pool.items else "",
        "key": [LETTERS[k] for k in key[at]],
        "alternative": [LETTERS[k] if k >= 0 else "" for k in found.alternative[at]],
        "alternative_votes": found.alternative_votes[at],
        "key_votes": found.key_votes[at],
        "voters": found.voters[at],
        "margin": found.margin[at],
        "gradient": found.gradient[at],
        "misfit": found.misfit[at],
    })  # fmt: skip
    if fdr is not None:
        table["local_fdr"] = fdr.at(np.arange(len(at)))
    return table


def _findings(ranked: pd.DataFrame, fdr: LocalFdr | None, bounds: list[Any]) -> pd.DataFrame:
    """The first places as findings; severity from the local false-discovery rate, else low: votes prove nothing."""
    most = 100 if fdr is not None else 50
    rows = []
    for r in ranked.head(most).itertuples():
        if r.margin <= 0:
            break
        rate = float(r.local_fdr) if fdr is not None else float("nan")
        severity = next((s for limit, s in SEVERITY if rate <= limit), "low")
        words = (f"place {r.rank} of the label-conflict list: {r.alternative_votes} of {r.voters} votes for "
                 f"{r.alternative}, {r.key_votes} for the key {r.key}")  # fmt: skip
        words += f"; a defect with probability {1 - rate:.2f} by the reviewed sample" if fdr is not None else ""
        rows.append({"item": r.item, "detector": "label_conflict", "arm": "", "score": 1 - (r.rank - 1) / len(ranked),
                     "flag": True, "severity": severity, "message": words,
                     "evidence": evidence(rank=int(r.rank), margin=round(float(r.margin), 6),
                                          alternative=r.alternative)})  # fmt: skip
    return frame("findings", rows)


def _single(pool: Pool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One draw of each model with and without the image as 0/1, and which cells have both."""
    arm = pool.arm
    if "blind" not in arm.hits:
        raise AuditError("no run without the image", mend="make the blind run")
    if arm.trials is None:
        return arm.hits["full"], arm.hits["blind"], np.ones(arm.hits["full"].shape, bool)
    full, blind = arm.trials["full"], arm.trials["blind"]
    if max(full.max(initial=0), blind.max(initial=0)) > 1:
        raise AuditError("models answered more than once, which this estimate does not take", mend="give one draw")
    return arm.hits["full"], arm.hits["blind"], (full > 0) & (blind > 0)


def _prevalence(
    pool: Pool, settings: CalibrationParams, frames: dict[str, pd.DataFrame], facts: dict[str, Any]
) -> None:
    """Share of items with next to no gain on a scale that pools share: identified set, and the mixture's estimate."""
    from auditlib.stats.gain_list import gain_posterior
    from auditlib.stats.gain_mixture import band, fit_gain_mixture
    from auditlib.stats.gain_prevalence import prevalence_set

    full, blind, both = _single(pool)
    rows = []
    for kind, scattered in (("any law", False), ("scattered law", True)):
        found = prevalence_set(full, blind, margin=settings.margin, scattered=scattered, observed=both,
                               cluster=pool.cluster)  # fmt: skip
        rows.append({"kind": kind} | found.as_row())
    silent = {c: pool.abstained[c] for c in ("full", "blind") if c in pool.abstained}
    fitted = fit_gain_mixture(full, blind, options=pool.k, abstained_full=silent.get("full"),
                              abstained_blind=silent.get("blind"), margin=settings.margin)  # fmt: skip
    rows.append({"kind": "model-based", "estimate": fitted.share, "models": full.shape[1], "items": len(full)})
    frames["prevalence"] = pd.DataFrame(rows)
    plan = models_for_list(fitted.law, band(settings.margin), np.linspace(0, 1, len(fitted.law)), len(full),
                           q=settings.list_error)  # fmt: skip
    frames["list_plan"] = plan.curve
    facts["list_now"] = list_now(gain_posterior(full, blind, margin=settings.margin, observed=both), plan)
    facts["list_plan"] = plan.sentence()


def _what_if(pool: Pool, settings: CalibrationParams, frames: dict[str, pd.DataFrame], facts: dict[str, Any]) -> None:
    """The leaderboard without suspects, with the votes' keys, and weighted where people have read a sample."""
    ranked = frames.get("ranked")
    flagged: list[str] = []
    corrected: dict[str, str] = {}
    defect = None
    if ranked is not None:
        # every vote is for one other option, and at least three are
        sure = ranked[ranked["key_votes"].eq(0) & ranked["alternative_votes"].eq(ranked["voters"])]
        sure = sure[sure["voters"].ge(3)]
        flagged, corrected = sure["item"].tolist(), dict(zip(sure["item"], sure["alternative"]))
        if "local_fdr" in ranked:
            defect = dict(zip(ranked["item"], 1 - ranked["local_fdr"]))
    if len(pool.models) < 2:
        raise AuditError("a leaderboard needs two models", mend="add models")
    found = what_if(pool, flagged=flagged, corrected=corrected, defect=defect)
    frames["board"], frames["rank_claims"] = found.board, found.claims
    facts["what_if"] = found.sentences()
    facts["what_if_notes"] = list(found.notes)
    facts["suspects"] = len(flagged)


def _shortcut(pool: Pool, settings: CalibrationParams, frames: dict[str, pd.DataFrame], facts: dict[str, Any]) -> None:
    """What the texts alone give away."""
    from auditlib.metrics.text_shortcut import text_shortcut

    found = text_shortcut(pool, shuffles=settings.shuffles)
    row = {"stratum": "all"} | found.probe.as_row()
    frames["shortcut"] = pd.concat([pd.DataFrame([row]), found.strata], ignore_index=True)


def _plans(pool: Pool, audit: Audit, settings: CalibrationParams, frames: dict[str, pd.DataFrame]) -> None:
    """Reviews for an interval, and the smallest excess that this pool finds."""
    n = len(pool.items)
    rows = [{"what": "items to review", "target": f"a share of 5% within {100 * w:g} points", "needed": float(
        reviews_needed(0.05, w, items=n))} for w in (0.05, 0.03, 0.02, 0.01)]  # fmt: skip
    counts = audit.counts[audit.counts["arm"].eq(audit.arm)]
    if len(counts) and counts["n"].nunique() == 1 and counts["R"].nunique() == 1:
        strata = counts["stratum"].astype(str) if counts["stratum"].notna().any() else None
        for items in (None, 2 * n, 4 * n):
            least = smallest_excess(counts["F"], counts["B"], stratum=strata, items=items)
            rows.append({"what": "smallest zero-gain excess found with 80% power",
                         "target": f"{items or n:,} items", "needed": float(least)})  # fmt: skip
    frames["plans"] = pd.DataFrame(rows)
