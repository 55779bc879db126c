"""Which items are shown, and in what order."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from auditlib.browse import words as w
from auditlib.browse.cases import searched
from auditlib.errors import AuditError
from auditlib.frames import SEVERITIES

if TYPE_CHECKING:
    from auditlib.browse.cases import Cases

#: name -> words, columns, whether each column ascends
SORTS = {
    "suspicion": ("most suspicious first", ["rank", "score"], [True, False]),
    "benchmark": ("as in the benchmark", [], []),
    "stratum": ("by official category", ["stratum", "rank", "score"], [True, True, False]),
    "right": ("fewest models right with the image", ["right", "rank"], [True, True]),
}
#: values of the filter by severity beside the severities
FLAGGED, UNFLAGGED = "flagged", "not flagged"


@dataclass(frozen=True)
class Filter:
    """What an item must have to be shown; an empty word allows all.

    ``detector`` and ``severity`` must meet in one finding. ``severity`` is also ``flagged`` or ``not flagged``.
    ``state`` is a state of the replies: ``read`` (all of them), or one that some reply has. Every word of ``text`` must
    stand in the id, question, options, category or findings, in any case.
    """

    detector: str = ""
    severity: str = FLAGGED
    stratum: str = ""
    category: str = ""
    answer_type: str = ""
    state: str = ""
    text: str = ""


def select(cases: Cases, wanted: Filter, sort: str = "suspicion", *, among: Collection[str] | None = None) -> list[str]:
    """Ids of the items that a filter lets through, in order.

    Parameters
    ----------
    among : items to choose from; None for all.

    Raises
    ------
    AuditError
        No such order.
    """
    if sort not in SORTS:
        raise AuditError(f"no order {sort!r}", mend=f"orders: {', '.join(SORTS)}")
    table = cases.table
    keep = _by_finding(cases, wanted)
    for name in ("stratum", "category", "answer_type"):
        if value := getattr(wanted, name):
            keep &= table[name].eq(value).to_numpy()
    if wanted.state == "read":
        keep &= np.array([s == ("read",) for s in table["states"]], bool)
    elif wanted.state:
        keep &= np.array([wanted.state in s for s in table["states"]], bool)
    for word in searched(wanted.text).split():
        keep &= table["words"].str.contains(word, regex=False).to_numpy(bool)
    if among is not None:
        keep &= table["item"].isin(list(among)).to_numpy()
    _, columns, ascending = SORTS[sort]
    table = table[keep]
    return (table.sort_values(columns, ascending=ascending, kind="stable") if columns else table)["item"].tolist()


def _by_finding(cases: Cases, wanted: Filter) -> np.ndarray:
    found = cases.findings
    if wanted.detector:
        found = found[found["detector"].eq(wanted.detector)]
    if wanted.severity in SEVERITIES:
        found = found[found["severity"].eq(wanted.severity)]
    has = cases.table["item"].isin(found["item"]).to_numpy().copy()
    if wanted.severity == UNFLAGGED:
        return ~has
    return has if wanted.severity or wanted.detector else np.ones(len(has), bool)


def choices(cases: Cases) -> dict[str, list[tuple[str, str, int]]]:
    """Values of each filter that occur: (value, words, items), with detectors and severities in the audit's order."""
    table, found = cases.table, cases.findings
    out: dict[str, list[tuple[str, str, int]]] = {}
    per = found.groupby("detector", sort=False)["item"].nunique()
    order = [d for d in dict.fromkeys(["integrity", *cases.audit.detectors["detector"], *per.index]) if d in per.index]
    out["detector"] = [(d, w.finding(d), int(per[d])) for d in order]
    flagged = table["severity"].ne("")
    out["severity"] = [(FLAGGED, "flagged, of any severity", int(flagged.sum()))]
    out["severity"] += [(s, s, n) for s in SEVERITIES if (n := found.loc[found["severity"].eq(s), "item"].nunique())]
    out["severity"].append((UNFLAGGED, UNFLAGGED, int((~flagged).sum())))
    names = {"stratum": {}, "category": w.CATEGORIES, "answer_type": w.ANSWERS}
    for name, spoken in names.items():
        counts = table.loc[table[name].ne(""), name].value_counts(sort=False)
        out[name] = [(v, spoken.get(v, v), int(n)) for v, n in counts.items()]
    states = table["states"]
    out["state"] = [("read", w.STATES["read"], sum(s == ("read",) for s in states))]
    others = dict.fromkeys(x for s in states for x in s if x != "read")
    out["state"] += [(x, w.words(w.STATES, x), sum(x in s for s in states)) for x in others]
    out["state"] = [x for x in out["state"] if x[2]]
    return out
