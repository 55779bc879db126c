"""Question, options and key of an item, from a dataset's own row or from the text of the prompt."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from auditlib.frames import LETTERS
from auditlib.readers import cells, choices
from auditlib.readers.replies import FACTS

# a line feed first: a literal start makes the search several times as quick as ^ of every line
_MARK = re.compile(r"\n[ \t]*\(?([A-Z])[.):]\)?(?:[ \t]+|(?=\n)|$)")
_OPTION_FIELDS = ("options", "choices", "endings")
_QUESTION_FIELDS = ("question", "query", "problem", "input", "goal", "text")
_KEY_FIELDS = ("answer", "label", "gold", "gt_answer", "target", "answerKey")


def options_in(prompt: str) -> tuple[str, list[str]]:
    r"""Split a prompt at its option lines: ``(question, options)``; no options, whole prompt otherwise.

    Option lines start with ``A.``, ``A)``, ``(A)`` or ``A:``, and their letters run A, B, C, ... ; the last such list
    counts, for examples may stand before the question. An option reaches to the next letter's line, the last one to
    the end of its line: what follows is the instruction.

    Examples
    --------
    >>> options_in("Which?\nA. red\nB. blue\nAnswer with the letter.")
    ('Which?', ['red', 'blue'])
    """
    body = "\n" + prompt
    marks = list(_MARK.finditer(body))
    if 1 < len(marks) <= 26 and "".join([m[1] for m in marks]) == LETTERS[: len(marks)]:  # the usual case, quickly
        ends = [*[m.start() for m in marks[1:]], body.find("\n", marks[-1].end())]
        ends[-1] = ends[-1] if ends[-1] >= 0 else len(body)
        return body[: marks[0].start()].strip(), [body[m.end() : e].strip() for m, e in zip(marks, ends)]
    for start in [i for i, m in enumerate(marks) if m.group(1) == "A"][::-1]:
        run = [marks[start]]
        for m in marks[start + 1 :]:
            if len(run) < 26 and m.group(1) == LETTERS[len(run)]:
                run.append(m)
        if len(run) > 1:
            texts = [body[m.end() : n.start()].strip() for m, n in itertools.pairwise(run)]
            return body[: run[0].start()].strip(), [*texts, body[run[-1].end() :].partition("\n")[0].strip()]
    question, options = choices.from_question(prompt)
    return (question.strip(), options) if options else (prompt, [])


def options_of(doc: Mapping[str, Any]) -> list[str]:
    """Options in a dataset's row: a list, a mapping of letters, ``{"text": [...]}``, or columns A, B, ..."""
    for name in _OPTION_FIELDS:
        value = doc.get(name)
        if isinstance(value, str) and value.strip()[:1] in ("[", "{"):
            try:
                value = cells.option_list(value)
            except ValueError:
                continue
        if isinstance(value, Mapping):
            if isinstance(value.get("text"), list):
                value = value["text"]
            elif value and all(isinstance(k, str) and k in LETTERS for k in value):
                value = [value.get(letter, "") for letter in LETTERS[: LETTERS.index(max(value)) + 1]]
        if isinstance(value, list) and value and not any(isinstance(v, list | dict) for v in value):
            return cells.trimmed([cells.cell_text(v) for v in value])
    letters = choices.option_columns(list(doc))
    return cells.trimmed([cells.cell_text(doc[c]) for c in letters]) if len(letters) > 1 else []


def question_of(doc: Mapping[str, Any]) -> str:
    """The question in a dataset's row, ``""`` where no usual column holds one."""
    return next((v for n in _QUESTION_FIELDS if isinstance(v := doc.get(n), str) and v.strip()), "")


def key_of(target: Any, doc: Mapping[str, Any], options: list[str], *, index: bool = False) -> str:
    """The key as text; a number of an option becomes its letter where ``index`` says so or the row holds a number.

    Examples
    --------
    >>> key_of("1", {"answer": 1}, ["red", "blue"]), key_of("1", {"answer": "1"}, ["1", "2"])
    ('B', '1')
    """
    text = cells.cell_text(target).strip()
    if text.isdecimal() and options and int(text) < min(len(options), 26):
        held = [doc[n] for n in _KEY_FIELDS if n in doc]
        if index or (any(type(v) is int and str(v) == text for v in held) and text not in options):
            return LETTERS[int(text)]
    return text


def facts_in(sources: list[Mapping[str, Any]]) -> dict[str, str]:
    """Item columns that a row's mappings fill (dataset's row, metric dictionaries); the first that has one counts."""
    out: dict[str, str] = {}
    for ours, name, at in _places(tuple(map(tuple, sources))):
        value = sources[at][name]
        if ours not in out and value is not None and not isinstance(value, list | dict):
            out[ours] = cells.cell_text(value).strip()
    return out


@lru_cache(maxsize=256)
def _places(names: tuple[tuple[Any, ...], ...]) -> tuple[tuple[str, str, int], ...]:
    """Where facts may stand in mappings of these keys, best place first; rows of one file mostly have the same."""
    return tuple(
        (ours, name, at)
        for ours, theirs in FACTS.items()
        for name in theirs
        for at, keys in enumerate(names)
        if name in keys
    )


def likelihoods(replies: Any) -> list[float] | None:
    """Log-likelihoods of the options where a row holds those and no text: pairs of a number and a truth value."""
    if not isinstance(replies, list) or len(replies) < 2:
        return None
    found = [_likelihood(r) for r in replies]
    return None if any(f is None for f in found) else found


def _likelihood(value: Any) -> float | None:
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str) and value[:1] in "([" and value[-1:] in ")]":
        value = [part.strip() for part in value[1:-1].split(",")]
    if not isinstance(value, list) or len(value) != 2 or str(value[1]) not in ("True", "False", "0", "1"):
        return None
    try:
        return float(value[0])
    except (TypeError, ValueError):
        return None


def message_text(text: str) -> str:
    """A prompt as text: where it is a JSON list of messages, what the last one says."""
    if not text.startswith("[{"):
        return text
    try:
        messages = json.loads(text)
    except ValueError:
        return text
    content = messages[-1].get("content") if isinstance(messages, list) and isinstance(messages[-1], dict) else None
    if isinstance(content, list):
        content = "\n".join(str(p.get("text", "")) for p in content if isinstance(p, dict) and p.get("type") == "text")
    return content if isinstance(content, str) else text
