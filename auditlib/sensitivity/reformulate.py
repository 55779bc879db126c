"""Other forms of a question: other words for the same, its negation, other kinds of answer, other sets of options.

What can be made by rule is made by rule; paraphrases and negations come from a file or from a model. A negation turns
the key of a yes/no question; where nobody can say what the key becomes, the form is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from auditlib.errors import AuditError
from auditlib.frames import option_name
from auditlib.inference.items import QuestionItem
from auditlib.sensitivity.conditions import EXPANDED, REFORMULATED, Condition
from auditlib.sensitivity.signal import CANNOT

CANNOT_TEXT = "It cannot be determined from what is given"
OPPOSITE = {"yes": "no", "no": "yes"}


@dataclass(frozen=True)
class Form:
    """An item in another form.

    Attributes
    ----------
    form : name as in :class:`~auditlib.sensitivity.conditions.Condition`.
    item : what is shown and its key.
    meaning : answer to this form -> answer to the item as it is (or ``cannot_tell``); an answer that is not listed
        keeps its name where the options stayed, and has no meaning of the old item where it is a new option.
    """

    form: str
    item: QuestionItem
    meaning: Mapping[str, str] = field(default_factory=dict)

    def meaning_of(self, answer: str) -> str:
        """An answer to this form in terms of the item as it is."""
        return self.meaning.get(answer, answer)


def as_is(item: QuestionItem) -> Form:
    """The item itself."""
    return Form("", item)


def key_of(item: QuestionItem) -> str:
    """The key as calls are compared: a letter, ``yes`` or ``no``, else the text as written."""
    return item.key.strip().lower() if item.answer_type == "yesno" else item.key.strip()


def reworded(item: QuestionItem, form: str, question: str, key: str = "") -> Form:
    """A paraphrase or a negation with its own question; the key of a negated yes/no question turns.

    Parameters
    ----------
    key : of the new form, needed for the negation of a question that is not answered by yes or no.

    Raises
    ------
    AuditError
        The question did not change; a negation without a key that can be known; a key that contradicts the turn.
    """
    kind = form.partition("-")[0]
    if not question.strip() or _plain(question) == _plain(item.question):
        raise AuditError(f"{form} of item {item.item!r} changes nothing", mend="give other words, or leave it out")
    new = replace(item, question=question.strip())
    if kind == "paraphrase":
        return Form(form, new)
    own = key_of(item)
    if item.answer_type == "yesno":
        turned = OPPOSITE.get(own, "")
        if not turned or key.strip().lower() not in ("", turned):
            mend = f"its key is {turned!r}" if turned else "the item's own key must be yes or no"
            raise AuditError(f"the negation of item {item.item!r} has the key {key or own!r}", mend=mend)
        return Form(form, replace(new, key=turned), OPPOSITE)
    if not key.strip():
        raise AuditError(f"item {item.item!r} is no yes/no question: the key of its negation is not known",
                         mend="give the key in the file of forms")  # fmt: skip
    if key.strip() == own:
        raise AuditError(f"the negation of item {item.item!r} keeps the key {own!r}", mend="give the key it has now")
    swap = {own: key.strip(), key.strip(): own} if item.k == 2 else {}
    return Form(form, replace(new, key=key.strip()), swap)


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().lower()


def two_options(item: QuestionItem) -> Form:
    """A yes/no question with the options Yes and No."""
    own = key_of(item)
    if item.answer_type != "yesno" or own not in OPPOSITE:
        raise AuditError(f"item {item.item!r} is no yes/no question", mend="leave it out of two_options")
    new = replace(item, answer_type="choice", options=("Yes", "No"), key="A" if own == "yes" else "B")
    return Form("two_options", new, {"A": "yes", "B": "no"})


def yes_no(item: QuestionItem) -> Form:
    """A question with two options asked as whether the first of them is right."""
    if item.answer_type != "choice" or len(item.letters) != 2:
        raise AuditError(f"item {item.item!r} has not two options", mend="leave it out of yes_no")
    first, second = item.letters
    text = item.options[ord(first) - 65].strip()
    question = f'{item.question}\nIs the right answer "{text}"?'
    new = replace(item, answer_type="yesno", options=(), question=question, key="yes" if item.key == first else "no")
    return Form("yes_no", new, {"yes": first, "no": second})


def without_options(item: QuestionItem, form: str = "no_options") -> Form:
    """The question alone; the right option's text is the answer that counts (forms ``open`` and ``no_options``)."""
    if item.answer_type != "choice" or item.key not in item.letters or not item.key:
        raise AuditError(f"item {item.item!r} has no option with a text as key", mend=f"leave it out of {form}")
    texts = {x: item.options[ord(x) - 65].strip() for x in item.letters}
    new = replace(item, answer_type="open", options=(), key=texts[item.key], references=(texts[item.key],))
    return Form(form, new, {t: x for x, t in texts.items()})


def with_cannot(item: QuestionItem) -> Form:
    """The options and, last, that it cannot be determined."""
    if item.answer_type == "yesno":
        base = two_options(item)
        added = _added(base.item, [CANNOT_TEXT])
        return Form("cannot_tell", added, {**base.meaning, "C": CANNOT})
    added = _added(item, [CANNOT_TEXT])
    return Form("cannot_tell", added, {added.letters[-1]: CANNOT})


def with_distractors(item: QuestionItem, number: int, others: Sequence[str], rng: np.random.Generator) -> Form:
    """``number`` more options, drawn from texts of other items of the stratum; the key keeps its letter.

    Raises
    ------
    AuditError
        Fewer texts than wanted that differ from the item's own options.
    """
    own = {_plain(t) for t in item.options}
    free = list(dict.fromkeys(t.strip() for t in others if t.strip() and _plain(t) not in own))
    if len(free) < number:
        what = f"stratum {item.stratum!r} has {len(free)} further options for item {item.item!r}, not {number}"
        raise AuditError(what, mend="leave distractors out, or lower their number")
    drawn = [free[int(j)] for j in rng.permutation(len(free))[:number]]
    added = _added(item, drawn)
    new = added.letters[len(item.letters) :]
    return Form(f"distractors-{number}", added, {x: f"new:{x}" for x in new})


def _added(item: QuestionItem, texts: Sequence[str]) -> QuestionItem:
    if item.answer_type != "choice" or not item.letters:
        raise AuditError(f"item {item.item!r} has no options to add to", mend="leave it out")
    options = (*item.options[: ord(item.letters[-1]) - 64], *texts)
    if len(options) > 26:
        raise AuditError(f"item {item.item!r} would have {len(options)} options", mend="add fewer")
    return replace(item, options=options)


def by_rule(item: QuestionItem, condition: Condition, others: Sequence[str], rng: np.random.Generator) -> Form:
    """A form that needs no writer: ``two_options``, ``yes_no``, ``open``, ``cannot_tell``, ``distractors-N``,
    ``no_options``."""
    kind = condition.kind
    if kind == "two_options":
        return two_options(item)
    if kind == "yes_no":
        return yes_no(item)
    if kind in ("open", "no_options"):
        return without_options(item, kind)
    if kind == "cannot_tell":
        return with_cannot(item)
    if kind == "distractors" and condition.number:
        return with_distractors(item, condition.number, others, rng)
    raise AuditError(f"{condition.form!r} is made by no rule", mend=f"forms: {', '.join((*REFORMULATED, *EXPANDED))}; "
                     "paraphrases and negations come from sensitivity.forms or a rewriter")  # fmt: skip


def option_texts(items: Iterable[QuestionItem]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Option texts by stratum and item, to draw distractors from."""
    out: dict[str, dict[str, tuple[str, ...]]] = {}
    for item in items:
        texts = tuple(item.options[i] for i in range(len(item.options)) if option_name(i) in item.letters)
        out.setdefault(item.stratum, {})[item.item] = texts
    return out
