"""What the decisions rest on and bring: single judges and providers, cost, precision of the rules that named items."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from auditlib.curation.adjudication_decisions import AdjudicationSettings, decide
from auditlib.curation.votes import DEFECTS, LABELS, NO_ISSUE
from auditlib.errors import AuditError
from auditlib.stats.intervals import wilson

NAN = float("nan")


def leave_out(
    votes: pd.DataFrame, providers: Mapping[str, str] | None = None, settings: AdjudicationSettings | None = None
) -> pd.DataFrame:
    """The decisions without each judge, and without each provider's judges.

    Parameters
    ----------
    providers : judge -> provider; those with one judge repeat that judge's row and are left out.

    Returns
    -------
    DataFrame
        ``left_out``, ``kind`` (``judge``, ``provider``), ``judges`` left, ``confirmed``, ``lost`` and ``gained``
        (confirmed with all judges only, without these only), ``relabelled``, ``undecided``, ``jaccard`` of the two sets
        of confirmed items, ``note``.

    Notes
    -----
    The number of equal labels stays. The quorum falls with the judges left, as many may be missing as before, though
    not below the equal labels. The votes of round 2 were given after the left-out labels had been seen.
    """
    settings = settings or AdjudicationSettings()
    everyone = sorted(votes["judge"].unique())
    groups = [("judge", j, {j}) for j in everyone]
    of: dict[str, set[str]] = {}
    for judge in everyone:
        if provider := (providers or {}).get(judge, ""):
            of.setdefault(provider, set()).add(judge)
    groups += [("provider", p, js) for p, js in sorted(of.items()) if len(js) > 1]
    whole = decide(votes, settings).set_index("item")
    before = whole.index[whole["state"] == "confirmed"]
    tolerated = max(0, len(everyone) - settings.quorum)
    rows = []
    for kind, name, left in groups:
        rest = len(everyone) - len(left)
        quorum = max(settings.agree, rest - tolerated)
        now = AdjudicationSettings(agree=settings.agree, quorum=quorum, scorer_risk=settings.scorer_risk)
        found = decide(votes[~votes["judge"].isin(left)], now, items=list(whole.index)).set_index("item")
        after = found.index[found["state"] == "confirmed"]
        both = before.intersection(after)
        union = len(before.union(after))
        rows.append({
            "left_out": name, "kind": kind, "judges": rest, "confirmed": len(after), "lost": len(before) - len(both),
            "gained": len(after) - len(both),
            "relabelled": int((whole.loc[both, "label"] != found.loc[both, "label"]).sum()),
            "undecided": int((found["state"] == "undecided").sum()), "jaccard": len(both) / union if union else NAN,
            "note": f"{rest} judges cannot give {settings.agree} equal labels" if rest < settings.agree else
            f"decided from {quorum} of {rest} votes on",
        })  # fmt: skip
    return pd.DataFrame(rows)


def cost(
    votes: pd.DataFrame,
    decisions: pd.DataFrame,
    prices: Mapping[str, tuple[float, float]] | None = None,
    people: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Calls, tokens and money by judge and round, and for each confirmed defect.

    Parameters
    ----------
    votes, decisions : of one adjudication. prices : judge -> price of a million tokens read and written.
    people : item -> label that people gave it; ``no_issue`` where they found no defect.

    Returns
    -------
    DataFrame
        ``judge`` and ``round`` (last row: both ``all``), ``calls`` answered, ``tokens_in``, ``tokens_out``, ``unknown``
        (calls without both counts, which add nothing to the sums), ``cost`` (NaN without a price for each judge); in
        the last row ``per_confirmed`` and ``calls_per_confirmed`` by the judges' decisions, and ``per_true`` by
        people's, among the items that the judges confirmed.
    """
    answered = votes[~votes["outcome"].isin(["failed"])]
    rows = []
    for (judge, number), part in answered.groupby(["judge", "round"]):
        read, wrote = part["tokens_in"].sum(), part["tokens_out"].sum()
        price = (prices or {}).get(judge)
        rows.append({
            "judge": judge, "round": str(number), "calls": len(part), "tokens_in": read, "tokens_out": wrote,
            "unknown": int(part[["tokens_in", "tokens_out"]].isna().any(axis=1).sum()),
            "cost": NAN if price is None else (read * price[0] + wrote * price[1]) / 1e6,
        })  # fmt: skip
    columns = ["judge", "round", "calls", "tokens_in", "tokens_out", "unknown", "cost"]
    table = pd.DataFrame(rows, columns=columns)
    total = table[columns[2:]].sum(skipna=False).to_dict()
    confirmed = decisions.loc[decisions["state"] == "confirmed", "item"]
    true = NAN if people is None else sum(people.get(i, NO_ISSUE) != NO_ISSUE for i in confirmed)
    last = {"judge": "all", "round": "all", **total,
            "per_confirmed": _per(total["cost"], len(confirmed)),
            "calls_per_confirmed": _per(total["calls"], len(confirmed)),
            "per_true": _per(total["cost"], true)}  # fmt: skip
    return pd.concat([table, pd.DataFrame([last])], ignore_index=True).astype({"calls": int, "unknown": int})


def rule_precision(
    flags: pd.DataFrame, decisions: pd.DataFrame, people: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """How many of the items that each rule named were confirmed, by label.

    Parameters
    ----------
    flags : ``item`` and one boolean column for each rule. decisions : of :func:`decide`.
    people : item -> label that people gave it; where given, it alone decides, and items without one are open.

    Returns
    -------
    DataFrame
        ``rule`` (last: ``any rule``), ``label`` (each defect, then ``any defect``), ``flagged``, ``decided``,
        ``confirmed``, ``precision`` = confirmed / decided with Wilson's ``low`` and ``high``; ``open`` items (not
        judged, or undecided), and ``least`` and ``most``, the precision if none of them were such a defect, or all.

        Without people an item that judges found defective without a common label is decided, and confirmed for none.

    Raises
    ------
    AuditError
        An item occurs twice, or there is no rule.
    """
    rules = [c for c in flags.columns if c != "item"]
    if not rules:
        raise AuditError("there is no column of a rule", mend="give item and one true/false column for each rule")
    twice = flags["item"].duplicated()
    if twice.any():
        raise AuditError(f"item {flags['item'][twice].iloc[0]!r} occurs twice", mend="give one row for each item")
    if people is None:
        given = decisions[decisions["state"] != "undecided"]
        found = dict(zip(given["item"], given["label"]))
    else:
        if wrong := sorted({str(v) for v in people.values()} - set(LABELS)):
            raise AuditError(f"{wrong[0]!r} is no label of an item", mend=f"use {', '.join(LABELS)}")
        found = {i: "" if label == NO_ISSUE else label for i, label in people.items()}
    label = flags["item"].map(found)
    marked = {r: flags[r].astype(bool) for r in rules} | {"any rule": flags[rules].astype(bool).any(axis=1)}
    rows = []
    for rule, at in marked.items():
        mine = label[at]
        known = mine.dropna()
        for name in (*DEFECTS, "any defect"):
            hits = int(known.isin(DEFECTS).sum() if name == "any defect" else (known == name).sum())
            n, left = len(known), len(mine) - len(known)
            interval = wilson(hits, n)
            rows.append({
                "rule": rule, "label": name, "flagged": len(mine), "decided": n, "confirmed": hits,
                "precision": _per(hits, n), "low": interval.low, "high": interval.high, "open": left,
                "least": _per(hits, n + left), "most": _per(hits + left, n + left),
            })  # fmt: skip
    return pd.DataFrame(rows)


def _per(amount: float, n: float) -> float:
    return amount / n if n > 0 else NAN
