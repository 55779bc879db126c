r"""Questions as prompts: text and pictures in order, the question's own parts marked.

Two layouts. ``vlmevalkit`` sends what VLMEvalKit's multiple-choice sets send: hint, question, lettered options, and a
line that asks to select one. ``reasoning`` asks to think and to end with ``\boxed{}`` (read it with the chain
``[boxed, letters]``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from auditlib.calls import Part, Picture
from auditlib.frames import option_name

if TYPE_CHECKING:
    from auditlib.inference.items import QuestionItem

Layout = Literal["vlmevalkit", "reasoning"]
Placeholder = Literal["keep", "remove"]
LAYOUTS: tuple[str, ...] = ("vlmevalkit", "reasoning")
PLACEHOLDERS: tuple[str, ...] = ("keep", "remove")

_SELECT = "Please select the correct answer from the options above. \n"
_YES_NO = "Please answer yes or no."
_THINK = "Think step by step. Then end your answer with {} in the form \\boxed{{{}}}."
_BOXED = {"choice": ("the letter of the option", "LETTER"), "yesno": ("yes or no", "ANSWER")}
_PLACE = re.compile(r"<image (\d{1,2})>")
_ENDS = re.compile(r"<image \d{1,2}>\s*$")


@dataclass(frozen=True)
class Prompt:
    """The full prompt of an item.

    Attributes
    ----------
    parts : texts and pictures in order; texts joined by line ends are the prompt's text.
    question_parts : places of the texts that hold the question and its hint.
    version : name of the layout, its version and the placeholder policy.
    """

    parts: tuple[Part, ...]
    question_parts: frozenset[int]
    version: str


def prompt_version(layout: str = "vlmevalkit", placeholder: str = "keep") -> str:
    """Name under which answers to a layout are stored.

    Examples
    --------
    >>> prompt_version("vlmevalkit"), prompt_version("reasoning", "remove")
    ('vlmevalkit-1', 'reasoning-1-interleaved')
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}, expected one of {', '.join(LAYOUTS)}")
    if placeholder not in PLACEHOLDERS:
        raise ValueError(f"placeholder is {placeholder!r}, expected one of {', '.join(PLACEHOLDERS)}")
    return f"{layout}-1" + ("-interleaved" if placeholder == "remove" else "")


def build_prompt(item: QuestionItem, layout: str = "vlmevalkit", placeholder: str = "keep") -> Prompt:
    """The full prompt of one item.

    Parameters
    ----------
    item : the question; options without text are not shown, the others keep their letters.
    layout : ``vlmevalkit`` or ``reasoning``.
    placeholder : what becomes of ``<image 1>`` in the text. ``keep``: it stays, the pictures stand first (as in
        VLMEvalKit's general sets). ``remove``: the picture stands in its place (as in its MMMU sets); pictures that no
        placeholder names stand first.

    Returns
    -------
    Prompt
        Its text is the same whether the item's pictures are there or not.

    Notes
    -----
    Options are shown as written. VLMEvalKit reads its tables with pandas, which takes texts such as ``None`` or ``NA``
    for missing, and leaves those options out. Texts between pictures that hold blanks only are left out here.
    """
    version = prompt_version(layout, placeholder)
    question, rest = _texts(item, layout)
    if placeholder == "keep":
        texts: list[tuple[Part, bool]] = [(question, True), *([(rest, False)] if rest else [])]
        named: set[int] = set()
    else:
        named = set()
        texts = [(p, True) for p in _placed(question, item.pictures, named)]
        # the line end between the two would be lost beside a picture
        rest = f"\n{rest}" if rest and _ENDS.search(question) else rest
        texts += [(p, False) for p in _placed(rest, item.pictures, named)]
    first: list[tuple[Part, bool]] = [(p, False) for i, p in enumerate(item.pictures) if i not in named]
    parts = first + texts
    own = frozenset(i for i, (part, asked) in enumerate(parts) if asked and isinstance(part, str))
    return Prompt(tuple(part for part, _ in parts), own, version)


def _texts(item: QuestionItem, layout: str) -> tuple[str, str]:
    """The question's text, and what follows it; a line end joins the two."""
    if item.answer_type == "choice":
        question = (f"Hint: {item.hint}\n" if item.hint else "") + f"Question: {item.question}"
        shown = [f"{option_name(i)}. {text}\n" for i, text in enumerate(item.options) if text.strip()]
        options = "Options:\n" + "".join(shown) if shown else ""
        if layout == "vlmevalkit":
            return (question, options + _SELECT) if shown else (question + "\n", "")
        return question, options + _thinking("choice")
    if layout == "reasoning":
        return item.question, _thinking(item.answer_type)
    asked = _YES_NO.rstrip(".").lower() in item.question.lower()
    return item.question, "" if item.answer_type != "yesno" or asked else _YES_NO


def _thinking(answer_type: str) -> str:
    return _THINK.format(*_BOXED.get(answer_type, ("the answer", "ANSWER")))


def _placed(text: str, pictures: tuple[Picture, ...], named: set[int]) -> list[Part]:
    """A text with its pictures in the place of their placeholders; remembers which were named."""
    out: list[Part] = []
    for i, piece in enumerate(_PLACE.split(text)):
        if i % 2 == 0:
            out += [piece] if piece.strip() else []
        elif 0 < (number := int(piece)) <= len(pictures):
            named.add(number - 1)
            out.append(pictures[number - 1])
    return out
