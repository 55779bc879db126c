"""The stages one after the other, and each on the whole pool: what leaves where, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib.curation.ablation import Ablation, AblationSettings, ablation
from auditlib.curation.data import CurationPool
from auditlib.curation.rules import RULES, RuleResult, RuleSettings, incidence, rules
from auditlib.curation.saturation import Saturation, SaturationSettings, saturation
from auditlib.curation.wrong_removal import WrongRemoval, wrong_removal
from auditlib.errors import AuditError

STAGES = ("text_ablation", "saturation", "defects")
#: labels that an adjudication may confirm
LABELS = ("key_error", "ambiguous", "scorer_risk")


@dataclass(frozen=True)
class CurationSettings:
    """Settings of all stages; ``remove`` names the confirmed labels that remove an item, others route it to a mend."""

    ablation: AblationSettings = field(default_factory=AblationSettings)
    saturation: SaturationSettings = field(default_factory=SaturationSettings)
    rules: RuleSettings = field(default_factory=RuleSettings)
    remove: Sequence[str] = ("key_error", "ambiguous")


@dataclass(frozen=True)
class Funnel:
    """The decision on every item, and the counts behind it.

    Attributes
    ----------
    decisions : one row per item: item, source, ``stage`` that removed it ("" if kept), ``removed``, ``reason`` (the
        first that applied), ``reasons`` (all that apply on the full pool, ``; `` between), ``flags`` (what is worth
        knowing but removes nothing), the rates, and the rules' flags and scores on the full pool. ``recalled`` : by the
        rules among the items that reach them. ``route`` : what a confirmed label that removes nothing asks for.
    stages : stage, mode (``sequential``, ``full_pool``), state, items_in, judged, undecided, recalled, removed, left,
        share_removed.
    reasons : reason, ``exclusive`` (sequential), ``overlapping`` (full pool), ``alone`` (full pool, no other reason).
    overlap : the combinations of the three stages on the full pool, with ``n`` and ``share``.
    incidence, incidence_full : combinations of the five rules, among the items that reach them and on the full pool.
    states : stage or rule -> ``run``, or ``not run: `` and why.
    ablation, saturation, rules, rules_full, wrong : results of the stages on the full pool (``rules``: sequential).
    """

    decisions: pd.DataFrame
    stages: pd.DataFrame
    reasons: pd.DataFrame
    overlap: pd.DataFrame
    incidence: pd.DataFrame
    incidence_full: pd.DataFrame
    states: dict[str, str]
    ablation: Ablation | None
    saturation: Saturation
    rules: RuleResult
    rules_full: RuleResult
    wrong: WrongRemoval | None

    @property
    def kept(self) -> NDArray[np.bool_]:
        return ~self.decisions["removed"].to_numpy(bool)

    @property
    def candidates(self) -> NDArray[np.bool_]:
        """Items that reach the rules and are recalled by them, on the rows of ``decisions``."""
        return self.decisions["recalled"].to_numpy(bool)


def funnel(
    pool: CurationPool, settings: CurationSettings | None = None, confirmed: pd.DataFrame | None = None
) -> Funnel:
    """Run text ablation, saturation and the rules, one after the other and each on the whole pool.

    Parameters
    ----------
    pool : CurationPool
    settings : CurationSettings
    confirmed : frame with columns item, state, label, optional
        Outcome of adjudication or review; an item with state ``confirmed`` and a label in ``settings.remove`` is
        removed. Without it the third stage recalls candidates and removes nothing.

    Raises
    ------
    AuditError
        An unknown or repeated item or an unknown label in ``confirmed``; a setting that is no such number.

    Notes
    -----
    Text ablation and saturation judge each item by itself, so that a decision is the same on the full pool and in
    sequence; the rules compare an item with its source (R5) and a budget with the other items, and are run on both.
    """
    settings = settings or CurationSettings()
    full, k = pool.full.of(pool.panel), pool.k
    states = dict.fromkeys(STAGES, "run")
    text, wrong = None, None
    why = _lacks_blind(pool)
    if why:
        states["text_ablation"] = why
    else:
        blind = pool.blind.of(pool.inspectors)
        text = ablation(blind, k, settings.ablation)
        wrong = wrong_removal(blind, k, text, settings.ablation)
    tiers = pool.models["tier"].iloc[pool.panel].tolist() if "tier" in pool.models else None
    solved = saturation(full, tiers, settings.saturation)
    text_out = text.removed if text is not None else np.zeros(len(pool.items), bool)
    reach = ~text_out & ~solved.removed
    whole = _rules(pool, settings.rules, np.arange(len(reach)))
    part = _rules(pool, settings.rules, np.flatnonzero(reach))
    recalled = np.zeros(len(reach), bool)
    recalled[reach] = part.candidates
    label, defect = _confirmed(pool, settings, confirmed)
    if confirmed is None:
        states["defects"] = "recall only: no adjudication is read"
    states |= whole.state
    gone = np.stack([text_out, solved.removed, defect], axis=1)
    names = [text.reason if text is not None else None, "saturation", label]
    decisions = _decisions(pool, text, solved, whole, gone, names)
    decisions["recalled"], decisions["recalled_full"] = recalled, whole.candidates
    decisions["label"], decisions["route"] = label, np.where((label != "") & ~defect, "mend: " + label, "")
    recall = {"sequential": int(recalled.sum()), "full_pool": int(whole.candidates.sum())}
    return Funnel(
        decisions=decisions, stages=_stages(gone, text, solved, states, recall), reasons=_reasons(decisions),
        overlap=_overlap(gone), incidence=part.incidence, incidence_full=incidence(whole.flag), states=states,
        ablation=text, saturation=solved, rules=part, rules_full=whole, wrong=wrong,
    )  # fmt: skip


def _lacks_blind(pool: CurationPool) -> str:
    if pool.blind is None:
        return "not run: no model was run without the image"
    if not len(pool.inspectors):
        return "not run: no model is named as inspector"
    return "" if pool.blind.of(pool.inspectors).trials.any() else "not run: no inspector was run without the image"


def _rules(pool: CurationPool, settings: RuleSettings, items: NDArray) -> RuleResult:
    answers = None if pool.answers is None else pool.answers.of(pool.panel).at(items)
    known = None
    if "key" in pool.items:
        known = pool.items["key"].notna().to_numpy() & pool.items["key"].astype(str).ne("").to_numpy()
        known = known[items]
    families = pool.providers[pool.panel] if settings.family_aware else None
    return rules(answers, pool.full.of(pool.panel).at(items), pool.k[items], pool.source[items], settings, families,
                 known)  # fmt: skip


def _confirmed(
    pool: CurationPool, settings: CurationSettings, confirmed: pd.DataFrame | None
) -> tuple[NDArray, NDArray[np.bool_]]:
    """Confirmed label of each item ("" without one), and whether it removes the item."""
    unknown = set(settings.remove) - set(LABELS)
    if unknown:
        raise AuditError(f"unknown label {sorted(unknown)[0]!r} to remove", mend=f"give {', '.join(LABELS)}")
    label = np.full(len(pool.items), "", dtype=object)
    if confirmed is None:
        return label, np.zeros(len(label), bool)
    lacking = [c for c in ("item", "state", "label") if c not in confirmed]
    if lacking:
        raise AuditError(f"the confirmed items have no column {lacking[0]}", mend="give item, state and label")
    place = pd.Series(np.arange(len(pool.items)), index=pool.items["item"].astype(str))
    given = confirmed["item"].astype(str)
    if given.duplicated().any():
        raise AuditError(f"item {given[given.duplicated()].iloc[0]} is decided twice", mend="give one row per item")
    absent = given[~given.isin(place.index)]
    if len(absent):
        raise AuditError(f"item {absent.iloc[0]} is not in the pool", mend="decide items of this pool")
    yes = confirmed["state"].eq("confirmed").to_numpy()
    said = confirmed["label"].astype(object).where(confirmed["label"].notna(), "").to_numpy(dtype=object)[yes]
    strange = [x for x in said if x not in LABELS]
    if strange:
        raise AuditError(f"a confirmed item has label {strange[0]!r}", mend=f"give {', '.join(LABELS)}")
    label[place[given[yes]].to_numpy()] = said
    return label, np.isin(label.astype(str), list(settings.remove))


def _decisions(
    pool: CurationPool, text: Ablation | None, solved: Saturation, whole: RuleResult, gone: NDArray,
    names: Sequence[NDArray | str | None],
) -> pd.DataFrame:  # fmt: skip
    """One row per item; the first stage that removes it gives ``stage`` and ``reason``."""
    removed, first = gone.any(axis=1), gone.argmax(axis=1)
    said = np.full(gone.shape, "", dtype=object)
    for j, name in enumerate(names):
        if name is not None:
            said[:, j] = np.where(gone[:, j], name, "")
    table = pool.items[[c for c in ("item", "source", "capability", "k", "answer_type") if c in pool.items]].copy()
    table["stage"] = np.where(removed, np.array(STAGES, dtype=object)[first], "")
    table["removed"] = removed
    table["reason"] = said[np.arange(len(said)), first]
    table["reasons"] = _joined(said)
    marks = {"undecided": text.undecided, "any_inspector": text.any_inspector} if text is not None else {}
    marks["borderline"] = solved.outcome == "borderline"
    if solved.all_tiers is not None:
        marks["all_tiers"] = solved.all_tiers
    table["flags"] = _joined(np.stack([np.where(m, name, "") for name, m in marks.items()], axis=1))
    if text is not None:
        table["text_rate"], table["text_threshold"] = text.rate, text.threshold
        table["text_undecided"], table["any_inspector"] = text.undecided, text.any_inspector
    table["panel_rate"], table["outcome"] = solved.rate, solved.outcome
    table["models_at_threshold"] = solved.models_at_threshold
    if solved.all_tiers is not None:
        table["all_tiers"] = solved.all_tiers
    for j, rule in enumerate(RULES):
        table[rule], table[f"{rule}_score"] = whole.flag[:, j], whole.score[:, j]
    table["soft_zero"] = whole.soft
    return table.reset_index(drop=True)


def _joined(words: NDArray) -> NDArray:
    """Words of each row with ``; `` between, "" left out; joined once for each combination."""
    combos, of = np.unique(words.astype(str), axis=0, return_inverse=True)
    texts = np.array(["; ".join(filter(None, row)) for row in combos] or [""], dtype=object)
    return texts[of.ravel()]


def _stages(
    gone: NDArray, text: Ablation | None, solved: Saturation, states: dict[str, str], recall: dict[str, int]
) -> pd.DataFrame:
    """Counts of each stage, in sequence and on the full pool."""
    items = len(gone)
    none = np.zeros(items, bool)
    judged = [none if text is None else text.judged, solved.judged, solved.judged]
    unsure = [none if text is None else text.undecided, solved.outcome == "borderline", none]
    rows = []
    for mode in ("sequential", "full_pool"):
        here = np.ones(items, bool)
        for j, stage in enumerate(STAGES):
            out = here & gone[:, j]
            rows.append({
                "stage": stage, "mode": mode, "state": states[stage], "items_in": int(here.sum()),
                "judged": int((here & judged[j]).sum()), "undecided": int((here & unsure[j]).sum()),
                "recalled": recall[mode] if stage == "defects" else 0, "removed": int(out.sum()),
                "left": int((here & ~out).sum()), "share_removed": out.sum() / max(int(here.sum()), 1),
            })  # fmt: skip
            if mode == "sequential":
                here = here & ~out
    return pd.DataFrame(rows)


def _reasons(decisions: pd.DataFrame) -> pd.DataFrame:
    """How often each reason came first, applied at all, and applied alone."""
    every = decisions["reasons"].str.split("; ")
    names = ("text_ablation", "any_inspector", "saturation", *LABELS)
    return pd.DataFrame({
        "reason": names,
        "exclusive": [int(decisions["reason"].eq(n).sum()) for n in names],
        "overlapping": [int(sum(n in r for r in every)) for n in names],
        "alone": [int(decisions["reasons"].eq(n).sum()) for n in names],
    })  # fmt: skip


def _overlap(gone: NDArray) -> pd.DataFrame:
    places = np.bincount(gone.astype(np.int64) @ (4, 2, 1), minlength=8)
    table = pd.DataFrame(list(product((False, True), repeat=3)), columns=list(STAGES))
    return table.assign(n=places, share=places / max(len(gone), 1))
