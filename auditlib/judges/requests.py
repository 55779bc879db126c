"""Put decisions to a live judge: best-of-n and pairwise requests in balanced orders, and the calls their replies are.

Requests go through the inference layer like any other: a stored reply is never paid twice, a stopped run goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from auditlib import frames
from auditlib.calls import Generation, Part, Picture, Reply, Request
from auditlib.errors import AuditError
from auditlib.judges.calls import Calls, calls_frame, stated
from auditlib.judges.verdicts import written_choice

PURPOSE = "judging"
#: outcomes of a call that leave no reply to read
NO_REPLY = ("empty", "filtered", "refused_request", "failed", "truncated")
_TASK = {
    "best_of_n": "Below are a request and {n} candidates. Which candidate fulfils the request best?",
    "pairwise": "Below are a request and two candidates. Which candidate fulfils the request better?",
}
_STYLES = {"plain": "", "explained": " Explain your choice first, in a few sentences."}
_TIE = " If no candidate is better than the others, write tie in the place of the number."
_CLOSE = "End with one line of this form, with the number of one candidate:\nChoice: <number>"


@dataclass(frozen=True)
class Decision:
    """A prompt and its candidates.

    Attributes
    ----------
    prompt : its name. text : what was asked for. pictures : pictures that belong to the request.
    candidates : name -> parts (text, pictures) in a fixed order.
    """

    prompt: str
    text: str
    candidates: tuple[tuple[str, tuple[Part, ...]], ...]
    pictures: tuple[Picture, ...] = ()
    cluster: str = ""
    comparison: str = ""


@dataclass(frozen=True)
class DecisionSettings:
    """How a judge is asked.

    Attributes
    ----------
    model : name at the server. paradigm : ``best_of_n``, or ``pairwise``: every two candidates of a prompt.
    style : ``plain`` or ``explained``. orders : ``cyclic`` (each candidate in each slot once; two orders of a pair) or
        ``given`` (one order: an effect of the order cannot be told). repeats : calls in each order; two or more tell
        sampling from an effect of the order.
    ties : the judge may declare a tie. image : ``shown``, or ``withheld``: the request's own pictures are left out.
    """

    model: str
    paradigm: str = "best_of_n"
    style: str = "plain"
    orders: str = "cyclic"
    repeats: int = 1
    ties: bool = False
    image: str = "shown"
    generation: Generation = field(default_factory=lambda: Generation(max_tokens=512))

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("paradigm", self.paradigm, tuple(_TASK)),
            ("style", self.style, tuple(_STYLES)),
            ("orders", self.orders, ("cyclic", "given")),
            ("image", self.image, ("shown", "withheld")),
        ):
            if value not in allowed:
                raise ValueError(f"{name} is {value!r}, expected one of {', '.join(allowed)}")
        if self.repeats < 1:
            raise ValueError("repeats must be at least one")

    @property
    def version(self) -> str:
        """Name of the prompt."""
        return f"{self.paradigm.replace('_', '-')}-{self.style}{'-ties' if self.ties else ''}-1"


@dataclass(frozen=True)
class Planned:
    """A request and what it is a call of."""

    request: Request
    prompt: Decision
    shown: tuple[str, ...]
    repeat: int


def orders_of(n: int, orders: str = "cyclic") -> list[tuple[int, ...]]:
    """Orders in which n candidates are shown: all cyclic shifts, or the given order only.

    Examples
    --------
    >>> orders_of(3)
    [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    """
    shifts = [tuple((i + s) % n for i in range(n)) for s in range(n)]
    return shifts if orders == "cyclic" else shifts[:1]


def plan_decisions(decisions: Iterable[Decision], settings: DecisionSettings) -> Iterator[Planned]:
    """All requests: prompt by prompt, order by order, repeat by repeat.

    Raises
    ------
    AuditError
        A prompt with one candidate, or with two of one name.
    """
    for decision in decisions:
        names = [name for name, _ in decision.candidates]
        if len(names) < 2 or len(set(names)) < len(names):
            what = "has fewer than two candidates" if len(names) < 2 else "has two candidates of one name"
            raise AuditError(f"prompt {decision.prompt!r} {what}", mend="give two or more, each with its own name")
        whole = range(len(names))
        for group in [tuple(whole)] if settings.paradigm == "best_of_n" else combinations(whole, 2):
            for order in orders_of(len(group), settings.orders):
                shown = [decision.candidates[group[i]] for i in order]
                for repeat in range(settings.repeats):
                    yield Planned(_request(decision, shown, settings, repeat), decision,
                                  tuple(name for name, _ in shown), repeat)  # fmt: skip


def _request(
    decision: Decision, shown: Sequence[tuple[str, tuple[Part, ...]]], settings: DecisionSettings, repeat: int
) -> Request:
    task = _TASK[settings.paradigm].format(n=len(shown)) + _STYLES[settings.style] + (_TIE if settings.ties else "")
    parts: list[Part] = [f"{task}\n\nRequest: {decision.text}"]
    parts += decision.pictures if settings.image == "shown" else ()
    for number, (_, content) in enumerate(shown, start=1):
        parts += [f"\nCandidate {number}:", *content]
    # names of candidates are never shown: they may tell who made them
    return Request(
        item=decision.prompt,
        model=settings.model,
        condition="judge",
        parts=(*parts, f"\n{_CLOSE}"),
        generation=settings.generation,
        sample=repeat,
        prompt_version=settings.version,
        purpose=PURPOSE,
    )


def calls_of(planned: Iterable[Planned], settings: DecisionSettings, answer: Callable[[str], Reply | None]) -> Calls:
    """Replies as judge calls.

    Parameters
    ----------
    answer : the reply to a request's key, such as :meth:`~auditlib.inference.store.Store.get`.

    Notes
    -----
    A reply that was cut, filtered, empty or refused is a call without a reply; one that was never made is no call and
    is counted in the coverage.
    """
    rows: list[dict[str, Any]] = []
    lost = 0
    for p in planned:
        reply = answer(p.request.key)
        if reply is None:
            lost += 1
            continue
        gone = reply.outcome in NO_REPLY
        state, slot = ("no_reply", -1) if gone else written_choice(reply.text, len(p.shown))
        if state == "tie" and not settings.ties:
            state = "unparsed"
        image = settings.image if p.prompt.pictures else "none"
        rows.append({"judge": settings.model, "instance": p.prompt.prompt, "cluster": p.prompt.cluster,
                     "comparison": p.prompt.comparison, "paradigm": settings.paradigm, "style": settings.style,
                     "image": image, "shown": p.shown, "repeat": p.repeat, "state": state, "slot": slot,
                     "raw": reply.text, "tokens_in": reply.tokens_in, "tokens_out": reply.tokens_out})  # fmt: skip
    table = calls_frame(rows)
    coverage = stated(table) if len(table) else []
    if lost:
        coverage.append(frames.coverage_row("not run", n=lost, model=settings.model, reason="calls that were not made"))
    return Calls(table, frames.frame("coverage", coverage))
