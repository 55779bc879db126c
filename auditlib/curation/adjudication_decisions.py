"""What follows from the votes of judges: quorum and ties, then people, then what leaves the benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from auditlib.curation.adjudication_prompts import Judge
from auditlib.curation.data import CurationPool
from auditlib.curation.votes import DEFECTS, LABELS
from auditlib.errors import AuditError

STATES = ("confirmed", "defect_any", "rejected", "undecided")


@dataclass(frozen=True)
class AdjudicationSettings:
    """How items are shown and decided.

    Attributes
    ----------
    agree : equal defect labels that confirm an item. quorum : votes that must be cast, else it is undecided.
    per_answer, most, longest : responses shown of one answer, in all, and characters of each.
    seed : draws the responses and their order.
    scorer_risk : ``fix`` sends confirmed scorer risks to a mend of the scorer, ``remove`` treats them as the others.
    wait : an item of which a call of round 1 failed is not asked in round 2; a later run asks the rest.
    """

    agree: int = 3
    quorum: int = 4
    per_answer: int = 2
    most: int = 8
    longest: int = 1500
    seed: int = 20261129
    scorer_risk: Literal["fix", "remove"] = "fix"
    wait: bool = False

    def __post_init__(self) -> None:
        if min(self.agree, self.per_answer, self.most, self.longest) < 1 or self.quorum < self.agree:
            raise AuditError(
                f"{self.agree} equal labels of {self.quorum} votes, {self.per_answer} responses of an answer, "
                f"{self.most} in all, {self.longest} characters of each",
                mend="give whole numbers from 1 on, and a quorum of at least the equal labels",
            )


def decide(
    votes: pd.DataFrame,
    settings: AdjudicationSettings | None = None,
    *,
    items: Sequence[str] | None = None,
    number: int = 2,
) -> pd.DataFrame:
    """The judges' decision on each item.

    Parameters
    ----------
    votes : of all rounds; those of round ``number`` decide.
    items : in the order of the result; the items with any vote when not given.

    Returns
    -------
    DataFrame
        ``item``; ``state``; ``label`` (of a confirmed item); ``n_judges``, ``n_votes`` (cast), a count for each label,
        ``n_defect``; ``could_confirm`` (votes that are missing could still confirm it); ``route``.

        ``undecided``: fewer votes cast than the quorum. ``confirmed``: at least ``agree`` votes for one and the same
        defect. ``defect_any``: that many votes for defects of different kinds, or for each of two. ``rejected``: the
        rest. Routes: ``keep`` what is rejected, ``scorer_fix`` for confirmed scorer risks, ``review`` for the others.
    """
    settings = settings or AdjudicationSettings()
    order = pd.Index(pd.unique(votes["item"]) if items is None else list(items), dtype=object)
    cast = votes[(votes["round"] == number) & (votes["label"] != "")]
    counts = np.zeros((len(order), len(LABELS)), int)
    at = order.get_indexer(cast["item"])
    code = pd.Index(LABELS).get_indexer(cast["label"])
    np.add.at(counts, (at[at >= 0], code[at >= 0]), 1)
    n, judges, defects = counts.sum(axis=1), votes["judge"].nunique(), counts[:, : len(DEFECTS)]
    enough = defects >= settings.agree
    state = np.select(
        [n < settings.quorum, enough.sum(axis=1) == 1, defects.sum(axis=1) >= settings.agree],
        ["undecided", "confirmed", "defect_any"],
        "rejected",
    )
    confirmed = state == "confirmed"
    label = np.where(confirmed, np.array(DEFECTS, object)[defects.argmax(axis=1)], "")
    missing = judges - n
    could = ~confirmed & (defects.max(axis=1, initial=0) + missing >= settings.agree) & (judges >= settings.quorum)
    route = np.where(state == "rejected", "keep", "review").astype(object)
    if settings.scorer_risk == "fix":
        route[confirmed & (label == "scorer_risk")] = "scorer_fix"
    table = {"item": order, "state": state.astype(object), "label": label.astype(object), "n_judges": judges,
             "n_votes": n, **{name: counts[:, i] for i, name in enumerate(LABELS)}, "n_defect": defects.sum(axis=1),
             "could_confirm": could, "route": route}  # fmt: skip
    return pd.DataFrame(table)


def removals(
    decisions: pd.DataFrame,
    people: Mapping[str, str] | None = None,
    fixes: Mapping[str, bool] | None = None,
    settings: AdjudicationSettings | None = None,
) -> pd.DataFrame:
    """What leaves the benchmark: nothing without a person's word.

    Parameters
    ----------
    decisions : of :func:`decide`.
    people : item -> ``confirmed``, ``rejected`` or ``cannot_tell``, also for items that the judges did not confirm.
    fixes : item -> whether a mend of its scorer was accepted; absent while it is open.

    Returns
    -------
    DataFrame
        ``item``, ``removed``, ``label``, ``reason``, one row per decision.

    Raises
    ------
    AuditError
        Another outcome, or one of an item that was not judged.
    """
    settings, people, fixes = settings or AdjudicationSettings(), dict(people or {}), dict(fixes or {})
    known = set(decisions["item"])
    for item in [*people, *fixes]:
        if item not in known:
            raise AuditError(f"item {item!r} was not judged", mend="remove its outcome, or judge it")
    rows = []
    for item, state, label in zip(decisions["item"], decisions["state"], decisions["label"]):
        said = people.get(item)
        if said not in (None, "confirmed", "rejected", "cannot_tell"):
            raise AuditError(f"item {item!r} has the outcome {said!r}", mend="use confirmed, rejected, cannot_tell")
        removed = said == "confirmed"
        if said is not None:
            reason = {"confirmed": "defect confirmed by people", "rejected": "people found no defect"}.get(
                said, "people cannot tell"
            )
        else:
            reason = "no defect by the judges" if state == "rejected" else "awaits review"
        if removed and label == "scorer_risk" and settings.scorer_risk == "fix":
            removed = fixes.get(item) is False
            reason = {True: "scorer mended", False: "no mend of the scorer accepted"}.get(
                fixes.get(item), "awaits a mend of the scorer"
            )
        rows.append({"item": item, "removed": removed, "label": label, "reason": reason})
    return pd.DataFrame(rows, columns=["item", "removed", "label", "reason"])


def judge_roles(judges: Sequence[Judge], pool: CurationPool) -> pd.DataFrame:
    """Which judges, or models of their providers, are also on the panel or evaluated: allowed, but said.

    Returns
    -------
    DataFrame
        ``judge``, ``provider``, ``in_panel``, ``in_evaluated``, ``provider_in_panel``, ``provider_in_evaluated``.
    """
    names, providers = pool.models["model"].to_numpy(dtype=object), pool.providers
    of = dict(zip(names, providers))
    rows = []
    for j in judges:
        mine = j.provider or of.get(j.name, j.name)
        places = {"panel": pool.panel, "evaluated": pool.evaluated}
        rows.append(
            {"judge": j.name, "provider": mine}
            | {f"in_{role}": bool((names[at] == j.name).any()) for role, at in places.items()}
            | {f"provider_in_{role}": bool((providers[at] == mine).any()) for role, at in places.items()}
        )
    return pd.DataFrame(rows)
