"""The word of people from a review packet whose readers have sent their decisions back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from auditlib.curation.people import People
from auditlib.paths import RunPaths

if TYPE_CHECKING:
    from auditlib.params import Params
    from auditlib.review.stage import Review

#: kinds of rows that are items of the pool, as the packet's key names them
_OWN = ("flagged", "unflagged")
_KAPPAS = {"fleiss_kappa": "Fleiss' kappa", "krippendorff_alpha": "Krippendorff's alpha",
           "cohen_kappa": "Cohen's kappa"}  # fmt: skip


def people_of(settings: Params, paths: RunPaths) -> People | None:
    """What the readers of the pool's packet decided; None where no file of decisions is there.

    Parameters
    ----------
    settings : the pool's params; ``curation.review.decisions`` names files from outside, those of the panel lie in the
        pool's folder ``review``.

    Raises
    ------
    AuditError
        There are decisions but no packet, or a file does not fit the packet (every problem is named).

    Notes
    -----
    Items whose reading is still due are left out: they go on waiting. Readers also see items that nobody flagged; these
    count in the prevalence. In a quick look at the first items, decisions on the packet of the whole pool are read;
    those on other items count in the summary of the readers only.
    """
    from auditlib.review.files import PACKET
    from auditlib.review.stage import decision_files, load_review, review_folder

    if not decision_files(settings, review_folder(paths)):
        return None
    whole, cut, _ = paths.pool.rpartition(".limit")
    if cut and not (review_folder(paths) / PACKET).exists():
        # a quick look has no packet of its own: the decisions belong to that of the whole pool
        paths = RunPaths(paths.outputs, whole)
    return from_review(load_review(settings, paths))


def from_review(review: Review) -> People:
    """The same from an opened review."""
    from auditlib.review.task import OPEN

    found = review.outcomes
    mine = found[found["kind"].isin(_OWN) & found["outcome"].ne(OPEN)]
    read = review.decisions.table.groupby("row", sort=False)["reader"].agg(lambda x: " and ".join(sorted(set(x))))
    who = mine["row"].map(read).fillna("")
    return People(
        dict(zip(mine["item"], mine["outcome"])),
        dict(zip(mine["item"], mine["label"])),
        dict(zip(mine["item"], who)),
        pd.DataFrame([*_read(found), *_agreement(review.agreement), *_probes(review.probes),
                      *_prevalence(review.prevalence)]),
    )  # fmt: skip


def _row(measure: str, n: Any, estimate: Any, low: Any = float("nan"), high: Any = float("nan"), note: str = ""
         ) -> dict[str, Any]:  # fmt: skip
    return {"measure": measure, "n": int(n), "estimate": float(estimate), "low": float(low), "high": float(high),
            "note": note}  # fmt: skip


def _read(found: pd.DataFrame) -> list[dict[str, Any]]:
    own = found[found["kind"].isin(_OWN)]
    tally = ", ".join(f"{k.replace('_', ' ')} {n}" for k, n in own["outcome"].value_counts().items())
    return [_row("share of the items decided", len(own), own["outcome"].ne("open").mean(), note=tally)]


def _agreement(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Agreement on the label, over the items of the pool where the key tells them from probes."""
    part = table[table["of"].eq("label")]
    own = part[part["rows"].eq("without probes")]
    rows = []
    for r in (own if len(own) else part).to_dict("records"):
        name = _KAPPAS.get(r["statistic"], str(r["statistic"]).replace("_", " "))
        note = f"{r['readers']}; observed {r['observed']:.3f}" + (f"; {r['note']}" if r["note"] else "")
        rows.append(_row(f"{name}, label", r["n"], r["estimate"], r["low"], r["high"], note))
    return rows


def _probes(table: pd.DataFrame) -> list[dict[str, Any]]:
    part = table[table["reader"].eq("final outcome") & table["n"].gt(0)]
    rows = []
    for r in part.to_dict("records"):
        note = f"{r['cannot_tell']} cannot tell" if r["cannot_tell"] else ""
        rows.append(_row(f"probes: {r['measure']}", r["n"], r["estimate"], r["low"], r["high"], note))
    return rows


def _prevalence(table: pd.DataFrame) -> list[dict[str, Any]]:
    rows = []
    for r in table.to_dict("records"):
        what = "recall of the flags" if r["rows"] == "recall of flags" else f"defective among {r['rows']} items"
        note = str(r.get("note", "") or "")
        rows.append(_row(what, r["read"], r["estimate"], r["low"], r["high"], note))
    return rows
