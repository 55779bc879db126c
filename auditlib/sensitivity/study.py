"""Sensitivity of a pool from its params, step by step: calls from files, the pool, live models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from auditlib import frames
from auditlib.calls import Generation, Reply, Request
from auditlib.errors import AuditError
from auditlib.params import SensitivityParams
from auditlib.pool import Pool
from auditlib.sensitivity.conditions import words
from auditlib.sensitivity.layers import States, read_states
from auditlib.sensitivity.margins import with_sample_margins
from auditlib.sensitivity.pool_calls import calls_of_pool
from auditlib.sensitivity.records import Calls, join, read_calls, without_credit

if TYPE_CHECKING:
    from auditlib.inference.items import QuestionItem

Ask = Callable[[list[Request]], list[Reply]]
#: columns that name whose calls under which condition
WHOSE = ["model", "family", "variant", "level", "form"]


@dataclass(frozen=True)
class Sensitivity:
    """A study under way.

    Attributes
    ----------
    source : the pool as read. calls : from all sources; None where there are none. states : of the layers, if any.
    sources : what the calls came from, in words.
    """

    source: Pool
    params: SensitivityParams
    calls: Calls | None = None
    states: States | None = None
    sources: tuple[str, ...] = ()


def read(pool: Pool, outputs: str | Path) -> Sensitivity:
    """Calls of the params' files, or those that come with an embedded pool, and the pool's own runs for what they lack.

    Parameters
    ----------
    outputs : the outputs folder, where embedded pools are laid out.

    Raises
    ------
    AuditError
        Damaged files of calls or states.
    """
    from auditlib.synth.embedded import sensitivity_files

    params = (pool.params.sensitivity if pool.params else None) or SensitivityParams()
    embedded = pool.params.data.embedded if pool.params else None
    own = sensitivity_files(embedded, outputs) if embedded else None
    files, states = list(params.calls), params.states
    if own is not None:
        files, states = files or [own[0]], states or own[1]
    here = Sensitivity(pool, params)
    if files:
        calls = read_calls(files, columns=params.columns, conditions=params.conditions, where=params.where)
        here = _with(here, _of_items(calls, pool), f"{len(files)} file{'s' * (len(files) > 1)} of calls")
    runs = calls_of_pool(pool, params.conditions)
    if runs is not None:
        here = _with(here, runs, "the pool's runs")
    if states is not None:
        here = replace(here, states=read_states(states, rng=pool.rng("sensitivity", "states")))
    return here


def _of_items(calls: Calls, pool: Pool) -> Calls:
    """Calls of the pool's items, so that a look at the first ones is one; all where the files share none with it.

    Either is stated.
    """
    ours = calls.table["item"].isin(pool.items["item"].astype(str))
    if ours.all():
        return calls
    what, n, reason = (
        ("excluded", int((~ours).sum()), "calls to items that are not in the pool")
        if ours.any()
        else ("warning", len(ours), "no call is to an item of the pool: all are kept, and no finding is the pool's")
    )
    said = frames.frame("coverage", [frames.coverage_row(what, n=n, reason=reason)])
    coverage = pd.concat([calls.coverage, said], ignore_index=True)
    return Calls(calls.table[ours].reset_index(drop=True) if ours.any() else calls.table, coverage, calls.inputs)


def _with(s: Sensitivity, new: Calls, words: str) -> Sensitivity:
    """The study with more calls: those of a model under a condition that it has already stay as they are."""
    if s.calls is None:
        return replace(s, calls=new, sources=(*s.sources, words))
    have = pd.MultiIndex.from_frame(s.calls.table[WHOSE].drop_duplicates())
    fresh = ~pd.MultiIndex.from_frame(new.table[WHOSE]).isin(have)
    if not fresh.any():
        return s
    kept = Calls(new.table[fresh].reset_index(drop=True), new.coverage, new.inputs)
    return replace(s, calls=join(s.calls, kept), sources=(*s.sources, words))


def asked(
    s: Sensitivity,
    ask: Ask | None,
    questions: Sequence[QuestionItem] | None,
    *,
    write: Ask | None = None,
) -> Sensitivity:
    """The study with the answers of the models that the params name; unchanged where they name none.

    Parameters
    ----------
    ask : sends requests; see :func:`auditlib.inference.asking.asker`. write : the same for the rewriter.
    questions : the benchmark's items with key and pictures.

    Raises
    ------
    AuditError
        Models are named, but not what to show them; a change leaves a picture as it was.
    """
    from auditlib.sensitivity.requests import PlanSettings, calls_of, conditions_of, plan_calls, read_regions
    from auditlib.sensitivity.rewriting import read_forms, rewriting_requests, rewritten

    a = s.params.ask
    if a is None:
        return s
    if ask is None or not questions:
        raise AuditError("sensitivity.ask names models, but not what to show them",
                         file=s.source.params.source if s.source.params else None,
                         mend="give the benchmark's own table as sensitivity.ask.items")  # fmt: skip
    ids = set(s.source.items["item"].astype(str))
    items = [q for q in questions if q.item in ids] or list(questions)
    forms, said = read_forms(a.forms, items) if a.forms else ({}, [])
    if a.rewriter is not None and write is not None:
        wanted = [w for w in rewriting_requests(items, a.wordings, a.rewriter.name) if (w[1].item, w[2]) not in forms]
        more, lost = rewritten(wanted, write)
        forms, said = forms | more, said + lost
    conditions = conditions_of(a.families, levels=a.levels, seeds=a.seeds, forms=a.wordings)
    settings = PlanSettings(
        tuple(m.name for m in a.models), a.samples,
        Generation(temperature=a.temperature, max_tokens=a.max_tokens, logprobs=a.logprobs), a.unchanged,
        a.wrong_image, a.layout, s.source.seed,
    )  # fmt: skip
    plan, left_out = plan_calls(items, conditions, settings, forms=forms,
                                regions=read_regions(a.regions) if a.regions else None)  # fmt: skip
    replies = {r.key: r for r in ask([p.request for p in plan])}
    calls = calls_of(plan, replies.get)
    coverage = pd.concat([calls.coverage, left_out, frames.frame("coverage", said)], ignore_index=True)
    # live answers replace the pool's runs of the same models, whose prompts may differ
    live = Sensitivity(s.source, s.params, Calls(calls.table, coverage), s.states, (f"{len(a.models)} models asked",))
    return live if s.calls is None else _with(live, s.calls, ", ".join(s.sources))


def scored(s: Sensitivity) -> pd.DataFrame:
    """The calls with margins, from scores or from repeats.

    Raises
    ------
    AuditError
        There are no calls, or none to the items as they are.
    """
    mend = "name files of calls as sensitivity.calls, or models as sensitivity.ask"
    if s.calls is None:
        raise AuditError("there are no calls under changed images or questions", mend=mend)
    table = with_sample_margins(s.calls.table)
    if not (table["family"].eq("full") & table["form"].eq("")).any():
        raise AuditError("no call shows an item as it is (condition full)", mend="map it in sensitivity.conditions")
    verify(table)
    return without_credit(table) if s.params.abstentions == "wrong" else table


def verify(calls: pd.DataFrame) -> None:
    """Refuse calls whose picture, by its hash, is the one of the item as it is although a change is named.

    Raises
    ------
    AuditError
        A transform silently failed.
    """
    full = calls[calls["family"].eq("full") & calls["image_sha256"].ne("")]
    own = full.drop_duplicates("item").set_index("item")["image_sha256"]
    changed = ~calls["family"].isin(["full", "blind"]) & calls["image_sha256"].ne("")
    same = calls[changed & calls["image_sha256"].eq(calls["item"].map(own))]
    if len(same):
        r = same.iloc[0]
        what = f"{len(same)} calls under a change were sent the picture as it is, first item {r['item']!r} under "
        raise AuditError(what + words(r["family"], r["variant"], r["level"]), file=r["run"] or None,
                         row=int(r["row"]) or None,
                         mend="the transform failed: make these calls again, or leave them out")  # fmt: skip


def facts_of(s: Sensitivity) -> dict[str, Any]:
    """Counts of the calls, JSON-able."""
    table = s.calls.table
    return {"calls": len(table), "models": s.calls.models, "items": int(table["item"].nunique()),
            "images": int(table["image"].nunique()), "sources": list(s.sources),
            "samples": int(table["sample"].max()) + 1, "abstentions": s.params.abstentions,
            "credited": int((table["abstained"] & table["hit"].gt(0)).sum()),
            "hashed": int(table["image_sha256"].ne("").sum())}  # fmt: skip
