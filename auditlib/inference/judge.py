"""A language model as extraction judge: it names the option that a reply means, and never sees the key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from auditlib import frames
from auditlib.calls import Generation, Reply, Request
from auditlib.extract.chain import own_letter, shown_in
from auditlib.extract.text import after_thoughts
from auditlib.frames import ABSTENTION, coverage_row, option_name
from auditlib.inference.items import QuestionItem

PURPOSE = "extraction"
_YES_NO = ("Yes", "No")
_TASK = (
    "Below are a question, its options, and a reply to the question. Which option does the reply choose? Do not answer "
    "the question yourself: only say what the reply chose. If the reply chooses none, more than one, or none of these "
    "options, write Z."
)
_TASK_YES_NO = (
    "Below are a yes-or-no question and a reply to it. Does the reply say yes or no? Do not answer the question "
    "yourself: only say what the reply said. If it says neither, or both, write Z."
)
_CLOSE = "Write {} only."
#: what may stand round the letter
_ROUND = r"[\s*_`\"'(\[{<]*{}[\s*_`\"')\]}>.:]*"


@dataclass(frozen=True)
class JudgeSettings:
    """Which model judges and how.

    Attributes
    ----------
    model : name at the server.
    generation : sampling settings; a thinking model needs a larger ``max_tokens``.
    repeats : how often each reply is judged; the first counts, the others tell how far the judge agrees with itself.
    longest : characters of a reply that are shown, its end; answers come last.
    """

    model: str
    generation: Generation = field(default_factory=lambda: Generation(max_tokens=16))
    repeats: int = 1
    longest: int = 8000

    @property
    def version(self) -> str:
        """Name of the judge's prompt."""
        return "extraction-1"


@dataclass(frozen=True)
class Judged:
    """Verdicts of an extraction judge.

    Attributes
    ----------
    judgements : judgements contract and ``hit_stored``.
    coverage : what has no verdict, and why.
    agreement : share of the replies judged more than once for which all letters are the same; None without repeats.
    repeated : number of replies judged more than once.
    """

    judgements: pd.DataFrame
    coverage: list[dict[str, Any]]
    agreement: float | None
    repeated: int


def judge_requests(
    items: Iterable[QuestionItem], responses: pd.DataFrame, settings: JudgeSettings
) -> Iterator[Request]:
    """One request for each different reply to each item, and each repeat.

    A request holds the question, the options in the order in which the reply saw them, and the reply; never the key.
    Equal replies to an item share one request, whoever gave them and under whatever condition.
    """
    by_id = {i.item: i for i in items}
    seen: set[str] = set()
    for response in responses.to_dict("records"):
        for request in _requests(by_id.get(response["item"]), response, settings):
            if request.key not in seen:
                seen.add(request.key)
                yield request


def read_judge_reply(text: str, letters: Sequence[str]) -> str:
    """The letter (or ``Yes``, ``No``) that a judge wrote, or ``Z``; anything beyond that one word is ``Z``.

    Examples
    --------
    >>> read_judge_reply("**B**.", "ABCD"), read_judge_reply("B or C", "ABCD"), read_judge_reply("E", "ABCD")
    ('B', 'Z', 'Z')
    >>> read_judge_reply("yes", ("Yes", "No"))
    'Yes'
    """
    said = after_thoughts(text or "")
    if said is None:
        return ABSTENTION
    for name in letters:
        ignore = re.IGNORECASE if len(name) > 1 else 0
        if re.fullmatch(_ROUND.replace("{}", re.escape(name), 1), said, ignore):
            return name
    return ABSTENTION


def judgements_of(
    items: Iterable[QuestionItem],
    responses: pd.DataFrame,
    settings: JudgeSettings,
    answer: Callable[[str], Reply | None],
) -> Judged:
    """Verdicts from a judge's answers.

    Parameters
    ----------
    items, responses, settings : as for :func:`judge_requests`.
    answer : the judge's reply to a request's key, such as :meth:`~auditlib.inference.store.Store.get`.

    Notes
    -----
    The letter is read first and compared with the key after. A judge that says nothing readable, or whose server
    refuses, has abstained: ``Z``, no hit. Where the call failed or was not made there is no row.
    """
    by_id = {i.item: i for i in items}
    rows: list[dict[str, Any]] = []
    lost = unread = same = repeated = 0
    for response in responses.to_dict("records"):
        item = by_id.get(response["item"])
        replies = [answer(r.key) for r in _requests(item, response, settings)]
        if item is None or not replies:
            continue
        letters = [_letter(item, response, r) for r in replies if r is not None and r.outcome != "failed"]
        if replies[0] is None or replies[0].outcome == "failed":
            lost += 1
            continue
        extracted = letters[0]
        unread += extracted == ABSTENTION and replies[0].outcome != "ok"
        if len(letters) > 1:
            repeated, same = repeated + 1, same + (len(set(letters)) == 1)
        hit = float(extracted != ABSTENTION and extracted.lower() == item.key.strip().lower()) if item.key else None
        rows.append(
            {"run": response["run"], "item": item.item, "model": response["model"], "condition": response["condition"],
             "sample": response["sample"], "judge": settings.model, "hit": hit, "extracted": extracted,
             "source": "llm", "hit_stored": hit}
        )  # fmt: skip
    coverage = []
    if lost:
        coverage.append(coverage_row("not run", n=lost, reason=f"replies that {settings.model} did not judge"))
    if unread:
        reason = f"verdicts of {settings.model} that were empty, cut or refused: abstentions"
        coverage.append(coverage_row("warning", n=unread, reason=reason))
    table = frames.frame("judgements", rows)
    table = table.astype({"hit": float, "hit_stored": float}) if rows else table
    return Judged(table, coverage, same / repeated if repeated else None, repeated)


def _requests(item: QuestionItem | None, response: dict[str, Any], settings: JudgeSettings) -> list[Request]:
    """The judge's requests for one response; none where there is no reply or no option to name."""
    reply = response.get("prediction")
    if item is None or response.get("status") not in ("ok", "truncated") or not isinstance(reply, str):
        return []
    said = (after_thoughts(reply) or "").strip()
    names = _names(item, response)
    if not said or not names:
        return []
    if len(said) > settings.longest:
        said = f"[...] {said[-settings.longest :]}"
    yesno = item.answer_type == "yesno"
    shown = _shown(item, response)
    options = "" if yesno else "\n\nOptions:\n" + "\n".join(f"{option_name(i)}. {t}" for i, t in shown)
    close = _CLOSE.format("Yes, No or Z" if yesno else "one letter (" + ", ".join([*names, ABSTENTION]) + ")")
    task = _TASK_YES_NO if yesno else _TASK
    text = f"{task}\n\nQuestion: {item.question}{options}\n\nReply:\n<<<\n{said}\n>>>\n\n{close}"
    return [
        Request(
            item=item.item,
            model=settings.model,
            condition="judge",
            parts=(text,),
            generation=settings.generation,
            sample=repeat,
            prompt_version=settings.version,
            purpose=PURPOSE,
        )
        for repeat in range(settings.repeats)
    ]


def _order(response: dict[str, Any]) -> str:
    order = response.get("order")
    return order if isinstance(order, str) else ""


def _shown(item: QuestionItem, response: dict[str, Any]) -> list[tuple[int, str]]:
    """Place and text of the options that the reply saw."""
    order = _order(response)
    texts = shown_in(item.options, order) if order else item.options
    return [(i, t) for i, t in enumerate(texts[:25]) if t.strip()]


def _names(item: QuestionItem, response: dict[str, Any]) -> tuple[str, ...]:
    """What the judge may name."""
    if item.answer_type == "yesno":
        return _YES_NO
    return tuple(option_name(i) for i, _ in _shown(item, response)) if item.answer_type == "choice" else ()


def _letter(item: QuestionItem, response: dict[str, Any], reply: Reply) -> str:
    """The item's own letter that a judge's reply names; an unfinished or missing one names none."""
    if reply.outcome != "ok":
        return ABSTENTION
    said = read_judge_reply(reply.text, _names(item, response))
    order = _order(response)
    return own_letter(said, order) if order and said != ABSTENTION and item.answer_type == "choice" else said
