"""Items that stand in a benchmark twice: the same, nearly the same, or the same with different keys."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from auditlib.frames import LETTERS
from auditlib.integrity.facts import Defect, known, loose, plain

#: texts alike from here on are looked at word by word
NEAR = 0.95
#: shortest text (characters) of which near-equality says anything
LONG = 25
#: repeated texts in this share of the items are the benchmark's design
BY_DESIGN = 0.2
#: blocks up to this size are compared pair by pair, larger ones by shared rare words
BLOCK = 300
#: neighbours compared in a crowded bucket
WINDOW = 20
_WORDS = re.compile(r"[^\W_]+", re.UNICODE)
#: marks that change what a text asks
_SIGNS = re.compile(r"[-+*/=<>%$^°≤≥±√∑∫−×÷¬]")
_SMALL = frozenset(
    _WORDS.findall("a an the is are was were do does did in on of to at by for with this that these those")
)


@dataclass(frozen=True)
class Duplicates:
    """``found``: item and defect; ``repeats``: items whose text others share (by design, or on other pictures)."""

    found: list[tuple[str, Defect]] = field(default_factory=list)
    repeats: int = 0
    by_design: bool = False


def duplicates(items: pd.DataFrame, *, near: bool = True) -> Duplicates:
    """Compare items by question, options (in any order) and picture.

    Where the picture is unknown, equal texts are no proof, and three or more of them are a template; where many items
    share their text, or items are answered with yes or no, they are the benchmark's design and only counted. ``near``
    compares texts that are alike, too.
    """
    if "question" not in items:
        return Duplicates()
    texts = [loose(plain(q)) for q in items["question"]]
    picture = [plain(p) for p in items["image_key"]] if "image_key" in items else [""] * len(items)
    base = [plain(c) for c in items["cluster"]] if "cluster" in items else [""] * len(items)
    options = _option_sets(items)
    ids = items["item"].astype(str).tolist()
    keys = _key_texts(items)
    groups: dict[tuple, list[int]] = defaultdict(list)
    for i, text in enumerate(texts):
        if text:
            groups[text, options[i]].append(i)
    repeated = [g for g in groups.values() if len(g) > 1]
    n_repeats = sum(map(len, repeated))
    yesno = items["answer_type"].eq("yesno").to_numpy() if "answer_type" in items else np.zeros(len(items), bool)
    unknown = [i for g in repeated for i in g if not picture[i]]
    by_design = len(unknown) > BY_DESIGN * len(items) or (bool(unknown) and yesno[unknown].mean() > 0.5)
    out = Duplicates([], n_repeats, by_design)
    for group in repeated:
        _exact(group, texts, picture, base, keys, ids, by_design, out.found)
    if near and not by_design:
        done = {i for g in repeated for i in g}
        for a, b in _near(texts, options, picture, done):
            if not (base[a] and base[a] == base[b]):
                out.found.extend(_near_defects(a, b, ids, picture))
    return out


def _option_sets(items: pd.DataFrame) -> list[tuple[str, ...]]:
    given = items["options"] if "options" in items else [None] * len(items)
    return [tuple(sorted(t for o in x if (t := loose(plain(o))))) if known(x) else () for x in given]


def _key_texts(items: pd.DataFrame) -> list[str]:
    """The text that each key stands for, so that the same answer under another letter is the same."""
    given = items["options"] if "options" in items else [None] * len(items)
    keys = [plain(k) for k in items["key"]] if "key" in items else [""] * len(items)
    out = []
    for key, options in zip(keys, given):
        place = LETTERS.index(key) if len(key) == 1 and key in LETTERS else -1
        text = plain(options[place]) if known(options) and 0 <= place < len(options) else ""
        out.append(loose(text or key))
    return out


def _exact(group, texts, picture, base, keys, ids, by_design, found) -> None:
    """Findings of items with one text: apart by picture, and by what the keys say."""
    parts: dict[str, list[int]] = defaultdict(list)
    for i in group:
        parts[picture[i]].append(i)
    for shown, members in parts.items():
        if len(members) < 2 or (by_design and not shown) or len({base[i] or ids[i] for i in members}) < 2:
            continue
        said = {keys[i] for i in members if keys[i]}
        for i in members:
            others = [ids[j] for j in members if j != i]
            names = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
            facts = {"same_as": others[:20], "picture": "same" if shown else "unknown"}
            if len(said) > 1:
                severity = "high" if shown else "low" if len(members) == 2 else "info"
                where = "same text and picture" if shown else "same text, picture unknown,"
                words = f"{where} as {names}, but another key"
                found.append((ids[i], ("contradictory_duplicate", severity, words, facts | {"keys": sorted(said)})))
            else:
                words = f"same text{' and picture' if shown else ', picture unknown,'} as {names}"
                found.append((ids[i], ("duplicate_item", "low" if shown else "info", words, facts)))


def _near_defects(a: int, b: int, ids: list[str], picture: list[str]) -> Iterator[tuple[str, Defect]]:
    shown = bool(picture[a])
    for one, other in ((a, b), (b, a)):
        words = f"nearly the same text{' and the same picture' if shown else ', picture unknown,'} as {ids[other]}"
        facts = {"same_as": [ids[other]], "picture": "same" if shown else "unknown"}
        yield ids[one], ("near_duplicate_item", "low" if shown else "info", words, facts)


def _near(texts, options, picture, done) -> list[tuple[int, int]]:
    """Pairs of nearly equal texts with the same options and, where known, the same picture."""
    blocks: dict[tuple, list[int]] = defaultdict(list)
    for i, text in enumerate(texts):
        if len(text) >= LONG and i not in done:
            blocks[options[i], picture[i]].append(i)
    blocks = {k: b for k, b in blocks.items() if len(b) > 1}
    words = {i: _WORDS.findall(texts[i]) for b in blocks.values() for i in b}
    pairs: set[tuple[int, int]] = set()
    for block in blocks.values():
        for part in [block] if len(block) <= BLOCK else _buckets(block, words, texts):
            pairs |= _alike(part, texts, words)
    return sorted(pairs)


def _buckets(block: list[int], words: dict[int, list[str]], texts: list[str]) -> Iterator[list[int]]:
    """Groups that share one of their two rarest words; crowded ones in windows over the sorted texts."""
    seen = Counter(w for i in block for w in set(words[i]))
    buckets: dict[str, list[int]] = defaultdict(list)
    for i in block:
        shared = sorted({w for w in words[i] if seen[w] > 1}, key=lambda w: (seen[w], w))
        for w in shared[:2]:
            buckets[w].append(i)
    for part in buckets.values():
        if len(part) <= BLOCK:
            yield part
            continue
        part = sorted(part, key=lambda i: texts[i])
        for start in range(0, len(part), WINDOW):
            yield part[start : start + 2 * WINDOW]


def _alike(part: list[int], texts: list[str], words: dict[int, list[str]]) -> set[tuple[int, int]]:
    from rapidfuzz import fuzz, process

    if len(part) < 2:
        return set()
    said = [texts[i] for i in part]
    score = process.cdist(said, said, scorer=fuzz.ratio, score_cutoff=100 * NEAR, dtype=np.uint8)
    rows, columns = np.nonzero(np.triu(score, 1))
    pairs = ((part[a], part[b]) for a, b in zip(rows.tolist(), columns.tolist()))
    return {
        (min(p), max(p))
        for p in pairs
        if _same_sense(words[p[0]], words[p[1]]) and _SIGNS.findall(texts[p[0]]) == _SIGNS.findall(texts[p[1]])
    }


def _same_sense(one: list[str], two: list[str]) -> bool:
    """Whether texts differ in small words and spelling only: never in a number, a letter or a word of its own."""
    from rapidfuzz import fuzz

    a, b = Counter(one), Counter(two)
    left, right = (sorted(c.elements()) for c in (a - b, b - a))
    left, right = ([w for w in side if w not in _SMALL] for side in (left, right))
    if not left and not right:
        return one == two or sorted(one) != sorted(two)  # the same words in another order are another question
    if len(left) != len(right) or any(len(w) < 3 or any(c.isdigit() for c in w) for w in left + right):
        return False
    return all(max(fuzz.ratio(w, v) for v in right) >= 80 for w in left)


def shared_pictures(items: pd.DataFrame) -> np.ndarray | None:
    """Sizes of the groups of items that share a picture; None where pictures are unknown."""
    if "image_key" not in items:
        return None
    pictures = [p for p in map(plain, items["image_key"]) if p]
    return np.array(sorted(Counter(pictures).values(), reverse=True), int) if pictures else None
