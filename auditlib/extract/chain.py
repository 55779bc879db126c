"""The chain: named readers in order, the first that answers wins; and the chain over a whole frame of responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from auditlib.extract.boxed import read_boxed
from auditlib.extract.letters import read_letters
from auditlib.extract.numeric import read_numeric
from auditlib.extract.option_text import read_option_text
from auditlib.extract.text import Reading, abstain
from auditlib.extract.yesno import read_yesno
from auditlib.frames import ABSTENTION, LETTERS

Reader = Callable[[str, Sequence[str]], Reading]

READERS: dict[str, Reader] = {
    "letters": read_letters,
    "boxed": read_boxed,
    "option_text": read_option_text,
    "yesno": read_yesno,
    "numeric": read_numeric,
}

#: chains for answers that are neither a letter nor yes or no
OPEN_CHAINS: dict[str, tuple[str, ...]] = dict.fromkeys(("number", "numeric", "integer", "float"), ("numeric",))
#: how an item is read: kind of answer, options, chain
Kind = tuple[str, tuple[str, ...], tuple[str, ...]]
#: statuses of a cell without a reply: its letter is missing, not an abstention
NO_REPLY = ("missing", "failed", "filtered")


def extract(text: str, options: Sequence[str], chain: Sequence[str] = ("letters",)) -> Reading:
    """Read a reply with a chain of named readers.

    Parameters
    ----------
    text : the raw reply.
    options : option texts in letter order; see :func:`auditlib.extract.text.read_options`.
    chain : names of :data:`READERS`, in order.

    Returns
    -------
    Reading
        The answer of the first reader that finds one, its rule prefixed by the reader's name (``letters:bare``); if
        none does, ``Z`` with the first reader's reason.

    Raises
    ------
    KeyError
        A name is not in :data:`READERS`.
    ValueError
        The chain is empty.

    Examples
    --------
    >>> extract("The answer is blue.", ["red", "blue"], ("letters", "option_text"))
    Reading(value='B', rule='option_text:exact')
    """
    if not chain:
        raise ValueError("a chain names at least one reader")
    reason = None
    for name in chain:
        found = READERS[name](text, options)
        if found.answered:
            return Reading(found.value, f"{name}:{found.rule}")
        reason = reason or abstain(f"{name}:{found.rule}")
    return reason


def extract_frame(
    responses: pd.DataFrame,
    items: pd.DataFrame,
    chain: Sequence[str] = ("letters",),
    yesno_chain: Sequence[str] = ("yesno",),
    memo: dict[tuple[str, Kind], tuple[str, str, str | None]] | None = None,
) -> pd.DataFrame:
    """Fill ``letter``, ``rule`` and ``answer`` of a frame of responses.

    Parameters
    ----------
    responses : responses contract; ``item``, ``prediction`` and, where known, ``status`` and ``order`` (the item's
        letters in the order in which this reply's options were shown; letters are mapped back).
    items : items contract, one row per item; ``options``, ``k`` and ``answer_type`` where known.
    chain : readers for items with options.
    yesno_chain : readers for items whose ``answer_type`` is ``yesno``.
    memo : readings of earlier calls; those of this one are added.

    Returns
    -------
    DataFrame
        A copy with the three columns. Items with options: ``letter`` by ``chain``. Yes/no items: ``answer`` by
        ``yesno_chain``, and ``letter`` is ``Z``, for there is no letter to accept. Open answers: ``answer`` by the
        reader of their type, ``letter`` is ``Z``. A missing, failed or filtered reply has no letter and no answer, a
        truncated one is ``Z``; the rule names the status.

    Notes
    -----
    Each row is read by itself, from its text and its item's options: row order, other rows and the key play no part.
    Where an item's option texts are unknown, its first ``k`` letters are accepted.
    """
    kinds = _kinds(items, tuple(chain), tuple(yesno_chain))
    cache = {} if memo is None else memo
    rows = []
    statuses = responses["status"] if "status" in responses else ["ok"] * len(responses)
    orders = responses["order"] if "order" in responses else [""] * len(responses)
    columns = (responses["item"], responses["prediction"], statuses, orders)
    for item, text, status, order in zip(*(c if isinstance(c, list) else c.tolist() for c in columns)):
        state = status if isinstance(status, str) else "ok"
        if state in NO_REPLY or not isinstance(text, str):
            rows.append((None, state if state in NO_REPLY else "missing", None))
            continue
        kind = kinds.get(item)
        if kind is None:
            rows.append((None, "no-item", None))
            continue
        if state == "truncated":
            rows.append((ABSTENTION, "truncated", None if kind[0] == "choice" else ABSTENTION))
            continue
        order = order if isinstance(order, str) and kind[0] == "choice" else ""
        kind = _shown_in(kind, order) if order else kind
        key = (text, kind)
        if key not in cache:
            cache[key] = _read(text, *kind)
        letter, rule, answer = cache[key]
        rows.append((own_letter(letter, order), rule, answer) if order else cache[key])
    letters, rules, answers = zip(*rows) if rows else ((), (), ())
    filled = {"letter": letters, "rule": rules, "answer": answers}
    return responses.assign(**{n: pd.Series(v, index=responses.index, dtype="str") for n, v in filled.items()})


def _shown_in(kind: Kind, order: str) -> Kind:
    return kind[0], shown_in(kind[1], order), kind[2]


def shown_in(options: Sequence[str], order: str) -> tuple[str, ...]:
    """Option texts as one reply saw them: ``order`` holds the item's letters in the order shown."""
    return tuple(options[i] if i < len(options) else "" for i in map(LETTERS.index, order))


def own_letter(letter: str, order: str) -> str:
    """The item's own letter of an option that was shown under ``letter``."""
    place = LETTERS.index(letter)
    return order[place] if letter != ABSTENTION and place < len(order) else ABSTENTION


def _read(text: str, kind: str, options: tuple[str, ...], chain: tuple[str, ...]) -> tuple[str, str, str | None]:
    if not chain:
        return ABSTENTION, "open-answer", None
    found = extract(text, options, chain)
    return (found.value, found.rule, None) if kind == "choice" else (ABSTENTION, found.rule, found.value)


def _kinds(items: pd.DataFrame, chain: tuple[str, ...], yesno_chain: tuple[str, ...]) -> dict[Any, Kind]:
    """How each item is read: kind of answer, options, chain."""
    columns = [c for c in ("item", "options", "k", "answer_type") if c in items]
    kinds: dict[Any, Kind] = {}
    for row in items[columns].to_dict("records"):
        kind = row.get("answer_type")
        kind = kind.strip().lower() if isinstance(kind, str) and kind.strip() else "choice"
        if kind == "yesno":
            kinds[row["item"]] = (kind, (), yesno_chain)
        elif kind == "choice":
            kinds[row["item"]] = (kind, shown_options(row), chain)
        else:
            kinds[row["item"]] = (kind, (), OPEN_CHAINS.get(kind, ()))
    return kinds


def shown_options(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Option texts of an item row; ``k`` blanks where no text is known, so that its first ``k`` letters count."""
    raw = item.get("options")
    options = () if raw is None or isinstance(raw, (str, float)) else tuple(raw)
    options = tuple(t if isinstance(t, str) else "" for t in options)
    if any(t.strip() for t in options):
        return options
    k = item.get("k")
    known = k is not None and not pd.isna(k)
    return ("",) * (int(k) if known else len(options))
