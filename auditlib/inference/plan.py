"""What is to be asked: requests made one at a time, and what they will cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from auditlib import seeds
from auditlib.calls import PROMPT_MODES, Generation, Part, Picture, Reply, Request
from auditlib.errors import AuditError
from auditlib.frames import CONDITIONS, coverage_row
from auditlib.inference import images
from auditlib.inference.conditions import REPLACED, WITH_PICTURE, ablate, joined
from auditlib.inference.items import QuestionItem
from auditlib.inference.prompts import Prompt, build_prompt, prompt_version

#: guesses for a forecast without a sample: characters per token, tokens round a message and of a picture, of a reply
_CHARACTERS, _ROUND, _PICTURE = 4.0, 8, 800
_REPLY = {"vlmevalkit": 8, "reasoning": 400}


@dataclass(frozen=True)
class RunSettings:
    """What one model is asked.

    Attributes
    ----------
    model : name at the server.
    conditions : any of :data:`~auditlib.frames.CONDITIONS`.
    prompt_mode : ``silent`` or ``told_to_guess``; for all conditions, since modes are never mixed.
    layout, placeholder : see :func:`~auditlib.inference.prompts.build_prompt`.
    samples : replies per item and condition; a seed given in ``generation`` is raised by one for each.
    generation : sampling settings.
    wrong_image : where another item's picture comes from: the item's stratum, or ``any``.
    seed : of the draw of wrong pictures.
    system : text of a system message.
    """

    model: str
    conditions: tuple[str, ...] = ("full", "blind")
    prompt_mode: str = "silent"
    layout: str = "vlmevalkit"
    placeholder: str = "keep"
    samples: int = 1
    generation: Generation = field(default_factory=Generation)
    wrong_image: Literal["stratum", "any"] = "stratum"
    seed: int = 0
    system: str | None = None

    def __post_init__(self) -> None:
        prompt_version(self.layout, self.placeholder)
        for name, value, allowed in (
            *(("condition", c, CONDITIONS) for c in self.conditions),
            ("prompt_mode", self.prompt_mode, PROMPT_MODES),
            ("wrong_image", self.wrong_image, ("stratum", "any")),
        ):
            if value not in allowed:
                raise ValueError(f"{name} is {value!r}, expected one of {', '.join(allowed)}")
        if self.samples < 1 or not self.conditions:
            raise ValueError("samples and conditions must hold at least one")


@dataclass(frozen=True)
class Forecast:
    """What a plan will take.

    Attributes
    ----------
    calls, tokens_in, tokens_out : totals.
    price : in the currency of the prices given; None without prices.
    seconds : at the measured rate; None without one.
    basis : what the token counts rest on.
    by_condition : calls per condition.
    """

    calls: int
    tokens_in: int
    tokens_out: int
    price: float | None
    seconds: float | None
    basis: str
    by_condition: dict[str, int]


def requests_of(
    items: Sequence[QuestionItem], settings: RunSettings, *, only: Collection[str] | None = None
) -> Iterator[Request]:
    """Requests of a plan, one at a time: for each item every condition, for each condition every sample.

    Parameters
    ----------
    items : all questions of the benchmark; wrong pictures are drawn from all of them.
    settings : the plan.
    only : ids of the items to ask; all when not given.

    Notes
    -----
    So a run that stops early has whole items. A blank or grey picture is made when its request is, which decodes the
    item's own: take requests off the event loop (``asyncio.to_thread(next, ...)``) for these conditions.

    Raises
    ------
    AuditError
        No item has a picture and a condition needs one, or a picture cannot be decoded.
    """
    _check_pictures(items, settings)
    pool = images.PicturePool(items) if "wrong_image" in settings.conditions else None
    for item, prompt, condition in _asked(items, settings, pool, only):
        own = [p for p in prompt.parts if isinstance(p, Picture)]
        replacements = _replacements(own, item, condition, settings, pool)
        parts = _parts(prompt, condition, settings, replacements)
        for sample in range(settings.samples):
            yield Request(
                item=item.item,
                model=settings.model,
                condition=condition,
                parts=parts,
                generation=_generation(settings.generation, sample),
                prompt_mode=settings.prompt_mode,
                sample=sample,
                prompt_version=prompt.version,
                system=settings.system,
                letters=item.letters if item.answer_type == "choice" else "",
            )


def plan_coverage(items: Sequence[QuestionItem], settings: RunSettings) -> list[dict[str, Any]]:
    """Coverage rows of what is not asked, and why."""
    pool = images.PicturePool(items) if "wrong_image" in settings.conditions else None
    counts: Counter[tuple[str, str]] = Counter()
    some = any(i.pictures for i in items)
    for item in items:
        for condition in settings.conditions:
            if reason := _left_out(item, condition, settings, pool, some):
                counts[condition, reason] += 1
    return [
        coverage_row("excluded", n=n, reason=reason, model=settings.model, condition=condition)
        for (condition, reason), n in counts.items()
    ]


def pilot(items: Sequence[QuestionItem], settings: RunSettings, n: int = 20) -> list[Request]:
    """Requests of some items, drawn once for all by the seed, about ``n`` in all: a sample to forecast from.

    Their answers are part of the run: they have the keys under which the run looks.
    """
    per_item = len(settings.conditions) * settings.samples
    take = min(len(items), max(1, -(-n // per_item)))
    rng = seeds.generator(settings.seed, "pilot")
    chosen = set(rng.choice(len(items), size=take, replace=False).tolist())
    only = {item.item for i, item in enumerate(items) if i in chosen}
    return list(requests_of(items, settings, only=only))[:n]


def forecast(
    items: Sequence[QuestionItem],
    settings: RunSettings,
    *,
    sample: Iterable[tuple[Request, Reply]] = (),
    price_in: float | None = None,
    price_out: float | None = None,
    concurrency: int = 1,
    rate: float | None = None,
    picture_tokens: int = _PICTURE,
) -> Forecast:
    """What a plan will take in calls, tokens, money and time.

    Parameters
    ----------
    items, settings : the plan.
    sample : requests with their replies, as of :func:`pilot`; token counts and latencies are taken from them. Without
        one, tokens are guessed from the text's length.
    price_in, price_out : per million tokens.
    concurrency : calls at a time, for the time.
    rate : calls per second as measured; stands for the latencies of the sample.
    picture_tokens : tokens of a picture, where there is no sample.
    """
    _check_pictures(items, settings)
    seen = [(q, a) for q, a in sample if a.tokens_in is not None and a.answered]
    by_condition: Counter[str] = Counter()
    guessed: Counter[str] = Counter()
    pool = images.PicturePool(items) if "wrong_image" in settings.conditions else None
    for _, prompt, condition in _asked(items, settings, pool):
        own = tuple(p for p in prompt.parts if isinstance(p, Picture))
        parts = _parts(prompt, condition, settings, own)
        shown = sum(isinstance(p, Picture) for p in parts)
        length = sum(len(p) for p in parts if isinstance(p, str)) + len(settings.system or "")
        by_condition[condition] += settings.samples
        guessed[condition] += settings.samples * guessed_tokens(length, shown, picture_tokens)
    calls = sum(by_condition.values())
    tokens_in = float(sum(guessed.values()))
    tokens_out = float(calls * min(_REPLY[settings.layout], settings.generation.max_tokens or 10**9))
    basis = "length of the texts"
    if seen:
        basis = f"{len(seen)} replies"
        heard = {c: [a.tokens_in or 0 for q, a in seen if q.condition == c] for c in by_condition}
        tokens_in = float(sum(n * np.mean(heard[c]) if heard[c] else guessed[c] for c, n in by_condition.items()))
        tokens_out = calls * float(np.mean([a.tokens_out or 0 for _, a in seen]))
    latencies = [a.latency for _, a in seen if a.latency]
    seconds = calls / rate if rate else calls * float(np.mean(latencies)) / max(concurrency, 1) if latencies else None
    known = price_in is not None or price_out is not None
    price = (tokens_in * (price_in or 0.0) + tokens_out * (price_out or 0.0)) / 1e6 if known else None
    return Forecast(calls, round(tokens_in), round(tokens_out), price, seconds, basis, dict(by_condition))


def guessed_tokens(characters: int, pictures: int = 0, picture_tokens: int = _PICTURE) -> int:
    """Tokens of a prompt, guessed from its length: four characters each, a few for the message, more for pictures."""
    return round(characters / _CHARACTERS + _ROUND + pictures * picture_tokens)


def _asked(
    items: Sequence[QuestionItem],
    settings: RunSettings,
    pool: images.PicturePool | None,
    only: Collection[str] | None = None,
) -> Iterator[tuple[QuestionItem, Prompt, str]]:
    some = any(i.pictures for i in items)
    for item in items if only is None else (i for i in items if i.item in only):
        prompt = build_prompt(item, settings.layout, settings.placeholder)
        for condition in settings.conditions:
            if not _left_out(item, condition, settings, pool, some):
                yield item, prompt, condition


def _left_out(
    item: QuestionItem, condition: str, settings: RunSettings, pool: images.PicturePool | None, some: bool
) -> str:
    """Why an item is not asked under a condition; empty where it is."""
    if not item.pictures and (some or condition in WITH_PICTURE):
        return "the item has no picture"
    if condition == "wrong_image" and pool is not None and not pool.has_wrong(item, settings.wrong_image):
        return "no other picture in its stratum" if settings.wrong_image == "stratum" else "no other picture"
    if condition == "none" and not _parts(build_prompt(item, settings.layout), condition, settings):
        return "nothing is left without question and picture"
    return ""


def _check_pictures(items: Sequence[QuestionItem], settings: RunSettings) -> None:
    need = [c for c in settings.conditions if c in WITH_PICTURE]
    if need and items and not any(i.pictures for i in items):
        mend = "give the file with the pictures, or ask for the condition 'blind' only"
        raise AuditError(f"the questions have no pictures, and the condition {need[0]!r} needs them", mend=mend)


def _parts(
    prompt: Prompt, condition: str, settings: RunSettings, replacements: tuple[Picture, ...] = ()
) -> tuple[Part, ...]:
    return joined(
        ablate(
            prompt.parts,
            condition,
            question_parts=prompt.question_parts,
            replacements=replacements,
            prompt_mode=settings.prompt_mode,
        )
    )


def _replacements(
    own: Sequence[Picture], item: QuestionItem, condition: str, settings: RunSettings, pool: images.PicturePool | None
) -> tuple[Picture, ...]:
    if condition not in REPLACED:
        return ()
    if condition == "wrong_image":
        assert pool is not None
        return pool.wrong(item, settings.wrong_image, settings.seed, len(own))
    make = images.blank if condition == "blank" else images.gray
    return tuple(make(p) for p in own)


def _generation(generation: Generation, sample: int) -> Generation:
    return generation if generation.seed is None or not sample else replace(generation, seed=generation.seed + sample)
