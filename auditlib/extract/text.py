"""The text a reader sees: normalised, without thinking and without decoration that carries no meaning.

Every reader starts from :func:`prepare`, in this order: text up to the last closing think tag is dropped (an opening
tag left unclosed after it makes the reply truncated); Unicode NFKC, so that full-width and circled letters become
plain ones; invisible characters, control characters and emoji go; chat-template tokens, HTML formatting tags, LaTeX
text commands and back-slash escapes are unwrapped. Case, punctuation and line breaks stay, because the readers' rules
need them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from auditlib.frames import ABSTENTION, LETTERS


class Reading(NamedTuple):
    """What a reader made of a reply: a letter or normalised answer and its rule, or ``Z`` and the reason."""

    value: str
    rule: str

    @property
    def answered(self) -> bool:
        """Whether the reader found an answer."""
        return self.value != ABSTENTION


def abstain(reason: str) -> Reading:
    """The reading of a reply that gives no answer, with its reason."""
    return Reading(ABSTENTION, reason)


#: reasons that hold for every reader, before any rule is tried
RULES: list[tuple[str, str]] = [
    ("empty", "No text, or none after the thinking: Z."),
    ("truncated-think", "A think block is opened and never closed, so the answer was cut off: Z."),
]

#: a letter or digit next to which a capital is part of a word; CJK characters are left out, they touch without a space
WORD = r"[0-9A-Za-z\u00c0-\u058f\u1e00-\u1fff]"

_THINK = r"think|thinking|thought|thoughts|reasoning|seed:think"
OPENED = re.compile(rf"<(?:{_THINK})(?:\s[^<>]{{0,99}})?>|◁think▷|\[THINK\]", re.I)
CLOSED = re.compile(rf"</(?:{_THINK})\s*>|◁/think▷|\[/THINK\]|<\|channel\|>final<\|message\|>", re.I)


def after_thoughts(text: str) -> str | None:
    """What follows the last closed block of thoughts; None where a block never closes.

    Examples
    --------
    >>> after_thoughts("<think>A?</think> B"), after_thoughts("B"), after_thoughts("<think>A?")
    (' B', 'B', None)
    """
    closed = list(CLOSED.finditer(text))
    said = text[closed[-1].end() :] if closed else text
    return None if OPENED.search(said) else said


_LINE = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_HIDDEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
)
#: symbols that say "wrong" stay in the text, so that a letter beside one is not bare
_DENIAL = "✖✗✘❌❎☒⛔🚫👎"
_EMOJI = re.compile(f"(?![{_DENIAL}♭♮♯])[\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]")

_TOKEN = re.compile(r"<\|[^<>|\s]{1,40}\|>|</?s>|<(?:eos|bos|end_of_turn|pad)>")
_BREAK = re.compile(r"</?(?:br|p|div|li|ul|ol|h[1-6]|tr|table|tbody|pre|html|body|hr)(?:\s[^<>]{0,200})?/?>", re.I)
#: lower case only: <B> is an answer, <b> is bold
_TAG = re.compile(r"</?(?:b|i|u|em|strong|span|font|code|mark|sub|sup|small|center|td|th|kbd)(?:\s[^<>]{0,200})?/?>")
_ENTITY = re.compile(r"&(lt|gt|amp|quot|nbsp|#34|#39|apos);")
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "nbsp": " ", "#34": '"', "#39": "'", "apos": "'"}
#: brackets and quotation marks of other scripts and of mathematics, as the plain ones
_BRACKETS = str.maketrans("〔〕‹›⟨⟩⟦⟧〖〗⁅⁆〝〞〟", '()()()()()()"""')
_LATEX_TEXT = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|up)?|math(?:rm|bf|it|sf|tt|bb)|operatorname|mbox|emph|underline)\s*(?=\{)"
)
_LATEX_SWITCH = re.compile(r"\\(?:bf|it|rm|em|sf|tt|large|Large|LARGE|huge|Huge|small)(?![a-zA-Z])")
_LATEX_SPACE = re.compile(r"\\[,;:! ~]|\\q?quad(?![a-z])")
_ESCAPED_LINE = re.compile(r"\\n(?![a-z])")
_ESCAPED = re.compile(r"\\([()\[\]{}$*_\"'`.#\-])")


@lru_cache(maxsize=1)
def _mark_run() -> re.Pattern[str]:
    marks = "".join(chr(c) for c in range(0x300, 0x1F000) if unicodedata.combining(chr(c)))
    return re.compile(f"([{marks}]{{30}})[{marks}]+")


def normalise(text: str) -> str:
    """NFKC in linear time.

    Notes
    -----
    Canonical reordering of one long run of combining marks is quadratic; runs are cut at 30 marks first, the limit of
    the stream-safe text format (Unicode Standard Annex 15).
    """
    return text if text.isascii() else unicodedata.normalize("NFKC", _mark_run().sub(r"\1", text))


@lru_cache(maxsize=16)
def prepare(text: str) -> tuple[str, str]:
    """The text to read and, where there is none, the reason: ``""``, ``"empty"`` or ``"truncated-think"``.

    Examples
    --------
    >>> prepare("<think>A or C?</think> **Ｂ**")
    ('**B**', '')
    >>> prepare("<think>A or C?")
    ('', 'truncated-think')
    """
    # cut before normalising too: a combining mark right after the tag would otherwise change its last character
    text = _HIDDEN.sub("", normalise(_after_thinking(text)))
    text = _after_thinking(text)
    if OPENED.search(text):
        return "", "truncated-think"
    text = _LINE.sub("\n", text).strip()
    if not text.isascii():
        text = _EMOJI.sub(" ", text).translate(_BRACKETS)
    if "&" in text:
        text = _ENTITY.sub(lambda m: _ENTITIES[m[1]], text)
    if "<" in text:
        text = text.replace("<|begin_of_box|>", r"\boxed{").replace("<|end_of_box|>", "}")
        text = _TOKEN.sub("", text)
        text = _TAG.sub("", _BREAK.sub("\n", text))
    if "\\" in text:
        text = _LATEX_SPACE.sub(" ", _LATEX_SWITCH.sub("", _LATEX_TEXT.sub("", text)))
        text = _ESCAPED.sub(r"\1", _ESCAPED_LINE.sub("\n", text))
    text = text.strip()
    return text, "" if text else "empty"


def _after_thinking(text: str) -> str:
    end = 0
    for found in CLOSED.finditer(text):
        end = found.end()
    return text[end:]


_QUOTES = "\"'“”‘’«»`*_ "
_MARKS = ".,;:!?…。、"


def words(text: str) -> str:
    """Text as options are compared: case folded, white space collapsed, outer quotes and final punctuation dropped."""
    text = " ".join(text.casefold().split()).lstrip(_QUOTES).rstrip(_QUOTES + _MARKS)
    return text[1:-1].strip() if len(text) > 2 and text[0] == text[-1] == "$" else text


_ARTICLE = re.compile(r"(?<![\w'-])(?:an?|the)\s+(?=\S)")


def bare_words(text: str) -> str:
    """:func:`words` without articles."""
    return _ARTICLE.sub("", words(text)) or words(text)


@dataclass(frozen=True)
class Options:
    """Options of an item as the readers need them.

    Attributes
    ----------
    shown : letters that the model saw, in order.
    texts : normalised text by letter, only for letters that have one.
    lettered : letter to text, for texts that open like an option letter (``c. elegans``).
    letter_text : whether some option's text is another option's letter.
    """

    shown: str
    texts: dict[str, str]
    lettered: dict[str, str]
    letter_text: bool


_LETTERED = re.compile(r"[a-z](?![\w])(?=.*\w)", re.S)


def read_options(options: Sequence[str]) -> Options:
    """Which letters an item shows, and their texts.

    Parameters
    ----------
    options : texts in letter order, ``""`` where a letter has no text.

    Notes
    -----
    A letter without text was not shown, whether it is the last one (an item with three options in a table of four
    columns) or an inner one (an option named ``None`` that a reader lost). Where *no* letter has a text, the texts are
    unknown rather than absent, so all letters count as shown; an item without letters is ``[]``.
    """
    return _read_options(tuple(t if isinstance(t, str) else "" for t in options))


@lru_cache(maxsize=65_536)
def _read_options(options: tuple[str, ...]) -> Options:
    clean = [words(_HIDDEN.sub("", normalise(t))) or t.strip() for t in options[: len(LETTERS) - 1]]
    texts = {letter: text for letter, text in zip(LETTERS, clean) if text}
    shown = "".join(texts) or LETTERS[: len(clean)]
    letter_text = any(len(t) == 1 and t.upper() in shown and t.upper() != letter for letter, t in texts.items())
    lettered = {letter: t for letter, t in texts.items() if _LETTERED.match(t)}
    return Options(shown, texts, lettered, letter_text)
