"""Items that belong beside one another: the same picture, the same or nearly the same text, the same finding."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from auditlib.integrity.facts import loose

#: questions alike from here on (Indel similarity of texts folded in case and width) are shown beside each other
NEAR = 0.9
#: shortest question, and shortest sum of option texts (characters), of which likeness says anything
LONG = 25
#: items named per group; how many there are is said
MOST = 6
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")

WORDS = {
    "picture": "Same picture",
    "cluster": "Belongs to the same set",
    "question": "Same question",
    "similar": "Nearly the same question",
    "options": "Same options",
    "finding": "Same category, same finding",
}


@dataclass(frozen=True)
class Group:
    """Neighbours of one kind: the first of them, and how many there are."""

    kind: str
    items: tuple[str, ...]
    total: int


class Neighbours:
    """Neighbours within one table of items.

    Parameters
    ----------
    table : columns item, question, options (pairs of letter and text), stratum, image_key, cluster, in the
        benchmark's order.
    findings : flagged findings with item and kind, worst first.

    Notes
    -----
    Neighbours come in the benchmark's order, those with the same finding worst first. Nearly the same question: Indel
    similarity of at least :data:`NEAR`, both at least :data:`LONG` characters long, with the same numbers in the same
    order, and not equal. Same options: the same texts in any order, :data:`LONG` characters together or more.
    """

    def __init__(self, table: pd.DataFrame, findings: pd.DataFrame):
        self.ids = table["item"].tolist()
        self.place = {item: i for i, item in enumerate(self.ids)}
        self.questions = [loose(q) for q in table["question"]]
        options = [tuple(sorted(filter(None, (loose(t) for _, t in o)))) for o in table["options"]]
        self.keys = {
            "picture": table["image_key"].tolist(),
            "cluster": table["cluster"].tolist(),
            "question": self.questions,
            "options": [o if sum(map(len, o)) >= LONG else () for o in options],
        }
        self.members = {kind: _groups(keys) for kind, keys in self.keys.items()}
        self.strata = table["stratum"].tolist()
        self.kinds: dict[int, list[str]] = defaultdict(list)
        self.found: dict[tuple[str, str], list[int]] = defaultdict(list)
        for item, kind in dict.fromkeys(zip(findings["item"], findings["kind"])):
            at = self.place.get(item)
            if at is not None:
                self.kinds[at].append(kind)
                self.found[self.strata[at], kind].append(at)
        self._similar: dict[int, list[int]] = {}

    def of(self, item: str, most: int = MOST) -> tuple[Group, ...]:
        """The neighbours of an item, one group per kind that has any."""
        at = self.place[item]
        out = []
        for kind in WORDS:
            found = self._found(kind, at)
            if found:
                out.append(Group(kind, tuple(self.ids[i] for i in found[:most]), len(found)))
        return tuple(out)

    def look_at(self, items: Iterable[str]) -> None:
        """Compare the questions of many items at once, which is faster than one at a time."""
        self._compare([self.place[i] for i in items])

    def _found(self, kind: str, at: int) -> list[int]:
        if kind == "similar":
            self._compare([at])
            return self._similar[at]
        if kind == "finding":
            found = (i for k in self.kinds.get(at, ()) for i in self.found[self.strata[at], k])
            return [i for i in dict.fromkeys(found) if i != at]
        key = self.keys[kind][at]
        return [i for i in self.members[kind].get(key, ()) if i != at] if key else []

    def _compare(self, places: Sequence[int]) -> None:
        """Fill in who has nearly the same question."""
        asked: dict[tuple[str, ...], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for p in dict.fromkeys(places):
            if p not in self._similar:
                self._similar[p] = []
                if len(text := self.questions[p]) >= LONG:
                    asked[numbers(text)][text].append(p)
        for block, texts in asked.items():
            for one, other in _alike(sorted(texts, key=len), self._blocks[block]):
                for p in texts[one]:
                    self._similar[p] += self.members["question"][other]
        for texts in asked.values():
            for p in (p for same in texts.values() for p in same):
                self._similar[p].sort()

    @cached_property
    def _blocks(self) -> dict[tuple[str, ...], list[str]]:
        """Different questions that are long enough, by their numbers, short ones first."""
        out: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for text in sorted((t for t in self.members["question"] if len(t) >= LONG), key=len):
            out[numbers(text)].append(text)
        return out


def numbers(text: str) -> tuple[str, ...]:
    """The numbers in a text: questions that differ in one ask for something else."""
    return tuple(_NUMBER.findall(text))


def _alike(asked: list[str], known: list[str], step: int = 64) -> Iterator[tuple[str, str]]:
    """Pairs of different texts that are nearly the same; both lists are sorted by length."""
    from rapidfuzz import fuzz, process

    lengths = np.array([len(t) for t in known])
    # similarity 2m/(a+b) with m <= min(a, b): lengths differ by a factor of at most (2 - NEAR) / NEAR
    factor = (2 - NEAR) / NEAR
    for start in range(0, len(asked), step):
        part = asked[start : start + step]
        low = int(np.searchsorted(lengths, len(part[0]) / factor - 1))
        high = int(np.searchsorted(lengths, len(part[-1]) * factor + 1, side="right"))
        score = process.cdist(part, known[low:high], scorer=fuzz.ratio, score_cutoff=100 * NEAR, dtype=np.float32)
        for q, k in zip(*np.nonzero(score)):
            if part[q] != known[low + k]:
                yield part[q], known[low + k]


def _groups(keys: Sequence) -> dict:
    members: dict = defaultdict(list)
    for i, key in enumerate(keys):
        if key:
            members[key].append(i)
    return members
