"""Put the items to live models under every condition, and the calls that their replies are.

Requests go through the inference layer like any other: a stored reply is never paid twice, a stopped run goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib import frames, seeds
from auditlib.calls import Generation, Picture, Reply, Request
from auditlib.errors import AuditError
from auditlib.extract import extract
from auditlib.extract.open_answers import matches
from auditlib.inference.conditions import ablate, joined
from auditlib.inference.images import PicturePool, blank, gray
from auditlib.inference.items import QuestionItem
from auditlib.inference.prompts import build_prompt
from auditlib.readers import files
from auditlib.sensitivity.conditions import LEVELS, REFERENCES, Condition
from auditlib.sensitivity.margins import margin_of_scores
from auditlib.sensitivity.records import Calls, calls_frame
from auditlib.sensitivity.reformulate import Form, as_is, by_rule, key_of, option_texts
from auditlib.sensitivity.transforms import GRID, NoPlace, Region, Unchanged, change

PURPOSE = "sensitivity"
NAN = float("nan")


@dataclass(frozen=True)
class PlanSettings:
    """How models are asked.

    Attributes
    ----------
    models : names. samples : repeats of the item as it is; two or more tell sampling from an effect of the change.
    generation : its ``logprobs`` give margins of option letters.
    unchanged : what becomes of a picture that a change leaves as it was: ``error``, or ``leave_out``.
    scope : other pictures come from the same ``stratum`` or from ``any``. layout : of the prompt.
    """

    models: tuple[str, ...]
    samples: int = 1
    generation: Generation = field(default_factory=Generation)
    unchanged: str = "error"
    scope: str = "stratum"
    layout: str = "vlmevalkit"
    seed: int = 0


@dataclass(frozen=True)
class Planned:
    """A request and the call that its reply is."""

    request: Request
    condition: Condition
    form: Form
    image: str
    sample: int
    image_sha256: str


def conditions_of(
    families: Iterable[str], *, levels: Mapping[str, Sequence[float]] | None = None, seeds: int = 3,
    forms: Iterable[str] = (), variants: Sequence[str] = ("random", "contiguous"),
) -> list[Condition]:  # fmt: skip
    """All conditions of some families: each level and seed of the image's changes, then the forms of the question.

    Parameters
    ----------
    levels : family -> levels, where they are not the usual ones.
    seeds : draws of random removal and of control boxes.
    forms : names of forms; ``cannot_tell`` is also asked blind, where it should be chosen.

    Raises
    ------
    AuditError
        A family that cannot be made here.
    """
    out: list[Condition] = []
    for family in families:
        if family in REFERENCES:
            out.append(Condition(family))
            continue
        if family not in LEVELS:
            raise AuditError(f"{family!r} is no family of changes", mend=f"use {', '.join((*REFERENCES, *LEVELS))}")
        steps = (levels or {}).get(family, LEVELS[family]) or (0.0,)
        if family == "occlude_grid":
            steps = tuple(range(1, GRID * GRID + 1))
        for variant in variants if family == "tokens" else ("",):
            for level in map(float, steps):
                random = family == "occlude_control" or (family == "tokens" and variant == "random" and level < 1)
                out += [Condition(family, variant, level, s) for s in range(seeds if random else 1)]
    for form in forms:
        out.append(Condition(form=form))
        if form == "cannot_tell":
            out.append(Condition("blind", form=form))
    return list(dict.fromkeys(out))


def plan_calls(
    items: Sequence[QuestionItem],
    conditions: Iterable[Condition],
    settings: PlanSettings,
    *,
    forms: Mapping[tuple[str, str], Form] | None = None,
    regions: Mapping[str, Sequence[Region]] | None = None,
) -> tuple[list[Planned], pd.DataFrame]:
    """Every request, and what is left out with the reason.

    Parameters
    ----------
    forms : (item, form) -> paraphrases and negations; other forms are made by rule.
    regions : item -> where its evidence lies.

    Raises
    ------
    AuditError
        A change leaves a picture as it was (unless such items are to be left out), or a picture cannot be decoded.

    Notes
    -----
    The hash of the picture as sent is part of each request and of its record. A transform that silently failed would
    therefore be seen twice: here, where its pixels are compared, and in the record.
    """
    pool, texts = PicturePool(items), option_texts(items)
    plan: list[Planned] = []
    gone: Counter[tuple[str, str]] = Counter()
    for condition in conditions:
        for item in items:
            try:
                form = _form(item, condition, forms or {}, texts, settings.seed)
            except AuditError as e:
                gone[condition.name, f"the form does not fit: {_reason(e)}"] += 1
                continue
            try:
                parts = _parts(item, form, condition, pool, settings, (regions or {}).get(item.item, ()))
            except (Unchanged, NoPlace) as e:
                if isinstance(e, Unchanged) and settings.unchanged == "error":
                    raise
                why = "the change leaves the picture as it was" if isinstance(e, Unchanged) else (
                    "no region of evidence, or no room beside it")  # fmt: skip
                gone[condition.name, why] += 1
                continue
            if parts is None:
                gone[condition.name, "the item has no picture, or there is no other one"] += 1
                continue
            plan += _requests(item, form, condition, parts, settings)
    rows = [frames.coverage_row("not run", n=n, condition=c, reason=why) for (c, why), n in gone.items()]
    return plan, frames.frame("coverage", rows)


def _reason(e: AuditError) -> str:
    """The mistake without the item's name, so that reasons add up."""
    words = e.what.split(" ")
    return " ".join("..." if w.startswith(("'", '"')) else w for w in words)


def _form(item: QuestionItem, condition: Condition, forms: Mapping[tuple[str, str], Form],
          texts: Mapping[str, Mapping[str, tuple[str, ...]]], seed: int) -> Form:  # fmt: skip
    if not condition.form:
        return as_is(item)
    if (item.item, condition.form) in forms:
        return forms[item.item, condition.form]
    if condition.kind in ("paraphrase", "negation"):
        raise AuditError("nobody has written one", mend="name a file of forms or a rewriter")
    others = [t for other, own in texts[item.stratum].items() if other != item.item for t in own]
    return by_rule(item, condition, others, seeds.generator(seed, "distractors", item.item, condition.form))


def _parts(item: QuestionItem, form: Form, condition: Condition, pool: PicturePool, settings: PlanSettings,
           regions: Sequence[Region]) -> tuple | None:  # fmt: skip
    prompt = build_prompt(form.item, settings.layout)
    family = condition.family
    if family in ("full", "blind"):
        return joined(ablate(prompt.parts, family, question_parts=prompt.question_parts))
    if not item.pictures:
        return None
    if family == "wrong_image":
        new = pool.wrong(item, settings.scope, settings.seed, len(item.pictures))
    elif family in ("blank", "gray"):
        new = tuple((blank if family == "blank" else gray)(p) for p in item.pictures)
    else:
        if family.startswith("occlude") and len(item.pictures) > 1:
            raise NoPlace(f"item {item.item!r} has several pictures")
        new = tuple(change(p, condition, seed=settings.seed, item=item.item, regions=regions) for p in item.pictures)
    if len(new) < len(item.pictures):
        return None
    if any(a.sha256 == b.sha256 for a, b in zip(new, item.pictures)):
        raise Unchanged(f"{condition.name} leaves the picture of item {item.item!r} as it was",
                        mend="sensitivity.unchanged: leave_out leaves such items out")  # fmt: skip
    places = iter(new)
    return joined(tuple(next(places) if isinstance(p, Picture) else p for p in prompt.parts))


def _requests(item: QuestionItem, form: Form, condition: Condition, parts: tuple, settings: PlanSettings
              ) -> list[Planned]:  # fmt: skip
    prompt = build_prompt(form.item, settings.layout)
    sent = "+".join(p.sha256 for p in parts if isinstance(p, Picture))
    repeats = settings.samples if condition == Condition() else 1
    choice = form.item.answer_type == "choice"
    generation = settings.generation if choice else replace(settings.generation, logprobs=False)
    out = []
    for model in settings.models:
        for sample in range(repeats):
            request = Request(item=item.item, model=model, condition=condition.name, parts=parts,
                              generation=generation, sample=sample, prompt_version=prompt.version, purpose=PURPOSE,
                              letters=form.item.letters if choice else "")  # fmt: skip
            out.append(Planned(request, condition, form, item.cluster or item.image_key or item.item, sample, sent))
    return out


def calls_of(
    planned: Iterable[Planned], answer: Callable[[str], Reply | None], *, chain: Sequence[str] = ("letters",)
) -> Calls:
    """Replies as calls.

    Parameters
    ----------
    answer : the reply to a request's key. chain : readers of option letters; see :mod:`auditlib.extract`.

    Notes
    -----
    A call that failed or was filtered has no hit; a reply without an answer is an abstention, which is wrong. With
    log-probabilities the margin is that of the letters; an option that the server did not list counts with the least
    that it listed, so that the margin is then a lower bound; without the key's own there is none.
    """
    rows: list[dict[str, Any]] = []
    lost: Counter[str] = Counter()
    for p in planned:
        reply = answer(p.request.key)
        if reply is None:
            lost[p.request.model] += 1
            continue
        c, item = p.condition, p.form.item
        said, hit = read_answer(reply, item, chain)
        scores = reply.letter_logprobs or {}
        margin = NAN
        if item.answer_type == "choice" and item.key in scores and not scores[item.key][1]:
            margin = margin_of_scores({o: v for o, (v, _) in scores.items()}, item.key)
        rows.append({"model": p.request.model, "item": p.request.item, "image": p.image, "family": c.family,
                     "variant": c.variant, "level": c.level, "seed": c.seed, "form": c.form, "sample": p.sample,
                     "answer": said, "meaning": p.form.meaning_of(said), "key": key_of(item), "hit": hit,
                     "margin": margin, "k": item.k, "image_sha256": p.image_sha256, "raw": reply.text})  # fmt: skip
    calls = calls_frame(rows)
    more = [frames.coverage_row("not run", n=n, model=m, reason="calls that were not made") for m, n in lost.items()]
    return Calls(calls.table, pd.concat([calls.coverage, frames.frame("coverage", more)], ignore_index=True)
                 if more else calls.coverage)  # fmt: skip


def read_answer(reply: Reply, item: QuestionItem, chain: Sequence[str] = ("letters",)) -> tuple[str, float]:
    """What a reply answers and whether it is right: a letter, yes or no, a text, ``Z`` for none; ``""`` and NaN where
    there is no reply."""
    if reply.outcome not in ("ok", "truncated", "empty"):
        return "", NAN
    if item.answer_type in ("choice", "yesno"):
        found = extract(reply.text, item.options, ("yesno",) if item.answer_type == "yesno" else tuple(chain))
        return found.value, float(found.value == key_of(item))
    right, _ = matches(reply.text, item.references or (item.key,), kind="auto")
    if right is None:
        return "Z", 0.0
    return (key_of(item) if right else " ".join(reply.text.lower().split())[:80]), float(right)


def read_regions(path: str | Path) -> dict[str, list[Region]]:
    """Regions of evidence from a table with the columns ``item``, ``left``, ``top``, ``right``, ``bottom`` (shares of
    width and height); several rows of an item are several regions.

    Raises
    ------
    AuditError
        A column is missing, or a row is no region.
    """
    path = Path(path)
    table = files.open_table(path)
    sides = ("left", "top", "right", "bottom")
    if lost := [c for c in ("item", *sides) if c not in table]:
        raise AuditError(f"there is no column {lost[0]!r}", file=path, row=1, mend=f"give item, {', '.join(sides)}")
    out: dict[str, list[Region]] = {}
    for at, row in zip(table.index, table.to_dict("records")):
        try:
            out.setdefault(str(row["item"]), []).append(Region(*(float(row[s]) for s in sides)))
        except (ValueError, AuditError) as e:
            what = e.what if isinstance(e, AuditError) else "a side of the region is no number"
            raise AuditError(what, file=path, row=int(at) + 2, mend="give shares of width and height") from None
    return out
