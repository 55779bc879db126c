"""A curation from a pool and its params, step by step as the notebook shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from auditlib import frames
from auditlib.curation.ablation import AblationSettings
from auditlib.curation.adjudication import Adjudication, Ask, adjudicate, candidates_of
from auditlib.curation.adjudication_decisions import AdjudicationSettings, decide
from auditlib.curation.adjudication_prompts import Judge
from auditlib.curation.data import CurationPool
from auditlib.curation.funnel import CurationSettings, Funnel, funnel
from auditlib.curation.people import People, from_readings
from auditlib.curation.reading import curation_pool
from auditlib.curation.rules import RuleSettings
from auditlib.curation.saturation import SaturationSettings
from auditlib.curation.votes import DEFECTS, read_votes
from auditlib.errors import AuditError
from auditlib.params import CurationParams
from auditlib.pool import Pool

if TYPE_CHECKING:
    from auditlib.inference.items import QuestionItem


@dataclass(frozen=True)
class Curation:
    """A curation under way.

    Attributes
    ----------
    source : the pool as read. pool : the same as curation sees it. settings : of the stages.
    funnel : decisions so far. adjudication, people : None while there is none, and ``waiting`` says why.
    """

    source: Pool
    pool: CurationPool
    params: CurationParams
    settings: CurationSettings
    funnel: Funnel
    adjudication: Adjudication | None = None
    people: People | None = None
    waiting: Mapping[str, str] | None = None

    @property
    def kept(self):
        """Boolean per item: it stays in the benchmark."""
        return self.funnel.kept

    @property
    def candidates(self) -> list[str]:
        """Ids of the items that the rules recall after the first two stages."""
        return self.funnel.decisions.loc[self.funnel.decisions["recalled"], "item"].tolist()


def stage_settings(params: CurationParams) -> CurationSettings:
    """Settings of the stages, thresholds as the exact numbers that the YAML states."""
    r = params.rules
    remove = ("key_error", "ambiguous", "scorer_risk") if params.scorer_risk == "remove" else ("key_error", "ambiguous")
    return CurationSettings(
        AblationSettings(str(params.text_binary), str(params.text_other), params.ablation),
        SaturationSettings(threshold=str(params.saturation)),
        RuleSettings(
            soft=r.soft_zero, majority=str(r.majority), backing=str(r.majority_models), entropy=str(r.entropy),
            gap=str(r.near_tie), pair=str(r.near_tie_mass), extraction=str(r.extraction), family_aware=r.families,
            budget=None if r.budget is None else str(r.budget),
        ),
        remove,
    )  # fmt: skip


def vote_settings(params: CurationParams, seed: int) -> AdjudicationSettings:
    """How the judges' votes are counted."""
    a = params.adjudication
    fix = "remove" if params.scorer_risk == "remove" else "fix"
    if a is None:
        return AdjudicationSettings(seed=seed, scorer_risk=fix)
    return AdjudicationSettings(agree=a.quorum, quorum=a.least_cast, seed=seed, scorer_risk=fix)


def recall(pool: Pool) -> Curation:
    """The first two stages and the five rules: who leaves, and which items go before judges.

    Raises
    ------
    AuditError
        The pool has no run with the image, or a role names a model that it lacks.
    """
    params = (pool.params.curation if pool.params else None) or CurationParams()
    settings = stage_settings(params)
    seen = curation_pool(pool, params)
    waiting = {"adjudication": "no judge has seen the items", "people": "nobody has read them"}
    return Curation(pool, seen, params, settings, funnel(seen, settings), waiting=waiting)


def judged(
    curation: Curation,
    outputs: str | Path,
    *,
    ask: Ask | None = None,
    questions: Sequence[QuestionItem] | None = None,
) -> Curation:
    """Votes on the candidates, in two rounds: saved ones, an embedded pool's, or those of models that are asked.

    Parameters
    ----------
    outputs : the outputs folder, where embedded pools are laid out.
    ask : sends requests; see :func:`auditlib.inference.asking.asker`.
    questions : the benchmark's items with key and picture, needed to ask.

    Raises
    ------
    AuditError
        Damaged vote files, judges named without the benchmark's own table.
    """
    a, wanted = curation.params.adjudication, curation.candidates
    seed = curation.source.seed
    settings = vote_settings(curation.params, seed)
    if a is None:
        return _waits(curation, "adjudication", "the params have no curation.adjudication block")
    if not wanted:
        return _waits(curation, "adjudication", "no item was recalled")
    # in a quick look at the first items, rows on the others are known and left out
    everyone = set(curation.pool.items["item"]) | curation.source.beyond
    files = list(a.votes) or _companion(curation.source, "votes", outputs)
    # those of an embedded pool name all its items, also where only the first ones are looked at
    votes = read_votes(files, everyone if a.votes else None) if files else None
    coverage = frames.frame("coverage")
    if votes is not None:
        coverage = frames.frame("coverage", lopsided(votes, a.quorum) if a.votes else [])
        beyond = votes["item"].isin(curation.source.beyond)
        if a.votes and beyond.any():
            why = "votes on items beyond the limit of this quick look"
            row = frames.coverage_row("excluded", n=int(beyond.sum()), reason=why)
            coverage = pd.concat([coverage, frames.frame("coverage", [row])], ignore_index=True)
        votes = votes[~beyond]
        aside = ~votes["item"].isin(wanted)
        if a.votes and aside.any():
            why = "votes on items that no rule recalled"
            row = frames.coverage_row("excluded", n=int(aside.sum()), reason=why)
            coverage = pd.concat([coverage, frames.frame("coverage", [row])], ignore_index=True)
            if aside.all() and not a.judges:
                return _waits(curation, "adjudication", f"all {len(votes):,} {why}")
        votes = votes[~aside].reset_index(drop=True)
    if a.judges:
        if ask is None or not questions:
            raise AuditError("curation.adjudication names judges, but not what to show them",
                             file=curation.source.params.source if curation.source.params else None,
                             mend="give the benchmark's own table as curation.adjudication.items")  # fmt: skip
        replies = curation.source.responses if curation.source.responses is not None else pd.DataFrame()
        cases = candidates_of(questions, replies, settings, wanted=wanted)
        known = dict(zip(curation.pool.models["model"], curation.pool.providers))
        judges = [Judge(j.name, known.get(j.name, ""), generation=_generation(a)) for j in a.judges]
        found = adjudicate(cases, judges, ask, settings, votes=votes)
        said = pd.concat([coverage, found.coverage], ignore_index=True) if len(coverage) else found.coverage
        return replace(curation, adjudication=replace(found, coverage=said))
    if votes is None or not len(votes):
        return _waits(curation, "adjudication", "no vote file is named, and no judge to ask")
    decisions = decide(votes, settings, items=wanted)
    return replace(curation, adjudication=Adjudication(votes, decisions, coverage))


def lopsided(votes: pd.DataFrame, quorum: int) -> list[dict[str, Any]]:
    """Coverage rows about votes of one round only, or of fewer judges than must agree."""
    rows, cast = [], votes[votes["label"].ne("")]
    rounds = sorted(cast["round"].unique().tolist())
    if len(rounds) == 1:
        lost = "no judge saw the others' reasons, and nothing is confirmed" if rounds == [1] else (
            "what judges said before they saw each other's reasons is not known")  # fmt: skip
        reason = f"all votes are of round {rounds[0]}: {lost}"
        rows.append(frames.coverage_row("warning", n=len(cast), reason=reason))
    judges = sorted(cast["judge"].unique().tolist())
    if 0 < len(judges) < quorum or len(judges) == 1:
        who = f"one judge ({judges[0]})" if len(judges) == 1 else f"{len(judges)} judges"
        reason = f"all votes are of {who}, {quorum} must agree to confirm: nothing can be confirmed" if (
            len(judges) < quorum) else f"all votes are of {who}: agreement cannot be told"  # fmt: skip
        rows.append(frames.coverage_row("warning", n=len(cast), reason=reason))
    return rows


def _generation(a: Any) -> Any:
    from auditlib.calls import Generation

    return Generation(temperature=a.temperature, max_tokens=a.max_tokens)


def _waits(curation: Curation, what: str, why: str) -> Curation:
    return replace(curation, waiting={**(curation.waiting or {}), what: why})


def _companion(pool: Pool, what: str, outputs: str | Path) -> list[Path]:
    """A file that comes with an embedded pool of answer counts; none for others."""
    from auditlib.synth.embedded import companion, is_counts

    name = pool.params.data.embedded if pool.params else None
    return [companion(name, what, outputs)] if name and is_counts(name) else []


def read_by_people(curation: Curation, outputs: str | Path, people: People | None = None) -> Curation:
    """The word of people on what the judges named, and the final decision on every item.

    Parameters
    ----------
    people : from a review packet, see :func:`auditlib.curation.packet.people_of`; by default the readings that come
        with an embedded pool, if any.

    Notes
    -----
    Nothing is removed as a defect without a person's word: where there is none, the judges' candidates stay in the
    benchmark and are listed as waiting.
    """
    if curation.adjudication is None:
        return _waits(curation, "people", "there are no judges' decisions to read")
    decisions = curation.adjudication.decisions
    if people is None:
        files = _companion(curation.source, "readings", outputs)
        if not files:
            return _waits(curation, "people", "no decisions of readers are given")
        named = decisions.loc[decisions["state"].isin(["confirmed", "defect_any"]), "item"].tolist()
        readings = pd.read_csv(files[0], dtype=str, keep_default_na=False)
        people = from_readings(readings, named, curation.source.rng("curation", "readers"))
    judges_label = dict(zip(decisions["item"], decisions["label"]))
    known = [i for i in people.outcome if i in judges_label]
    confirmed = pd.DataFrame({
        "item": known,
        "state": ["confirmed" if people.outcome[i] == "confirmed" else "rejected" for i in known],
        "label": [label if (label := people.label.get(i, "")) in DEFECTS else judges_label[i] for i in known],
    })  # fmt: skip
    return replace(curation, people=people, funnel=funnel(curation.pool, curation.settings, confirmed))
