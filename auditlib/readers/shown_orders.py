"""Options that runs showed in different orders: one order for the item, and each reply's own as letters of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from auditlib.frames import LETTERS


def canonical(shown: Sequence[tuple[str, bool, tuple[str, ...]]]) -> tuple[str, ...]:
    """The order of options that stands for an item.

    Of the runs that did not say that they shuffle (of all, where every run says so) the order most runs showed, and of
    equally frequent ones that of the first run by its label.

    Parameters
    ----------
    shown : for each run its label, whether it says that it shuffles, and the options in the order shown.

    Examples
    --------
    >>> canonical([("a", True, ("y", "x")), ("b", False, ("x", "y"))])
    ('x', 'y')
    """
    plain = [(run, texts) for run, shuffles, texts in shown if not shuffles] or [(r, t) for r, _, t in shown]
    often = Counter(texts for _, texts in plain)
    return min(plain, key=lambda one: (-often[one[1]], one[0]))[1]


def order_of(shown: Sequence[str], options: Sequence[str]) -> str | None:
    """Letters of ``options`` in the order shown; ``""`` where it is the same order, None where the texts differ.

    Equal texts are told apart by nothing but their place: the first one shown is taken for the first one listed.

    Examples
    --------
    >>> order_of(("blue", "red"), ("red", "blue")), order_of(("a", "b"), ("a", "b")), order_of(("a",), ("b",))
    ('BA', '', None)
    """
    if tuple(shown) == tuple(options):
        return ""
    if Counter(shown) != Counter(options) or len(options) >= len(LETTERS):
        return None
    free = list(range(len(options)))
    places = []
    for text in shown:
        place = next(i for i in free if options[i] == text)
        free.remove(place)
        places.append(LETTERS[place])
    return "".join(places)


def relettered(answer: str, order: str) -> str:
    """An answer of letters (``"B"``, ``"A, C"``) in the order shown, as letters of the item's own order.

    Examples
    --------
    >>> relettered("A", "CAB"), relettered("red", "CAB"), relettered("A,B", "BA")
    ('C', 'red', 'A,B')
    """
    parts = [p.strip() for p in answer.split(",")]
    if not order or not all(len(p) == 1 and p in LETTERS[: len(order)] for p in parts):
        return answer
    return ",".join(sorted(order[LETTERS.index(p)] for p in parts))
