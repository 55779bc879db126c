"""Options of one item that say the same thing."""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

import numpy as np
import pandas as pd
from rapidfuzz.fuzz import ratio

from auditlib.detectors.contract import Detector, findings
from auditlib.frames import evidence, option_name
from auditlib.params import AuditParams
from auditlib.pool import Pool

FLAG_AT = 0.9
_CEILING = 0.89
_ARTICLES = frozenset({"a", "an", "the"})
# a word that turns the meaning is no mere addition
_TURNING = frozenset(
    {"and", "or", "only", "all", "both", "none", "no", "not", "never", "neither", "nor", "without", "non", "except"}
)
_NUMBER = re.compile(r"[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:/\d+)?")
_QUANTITY = re.compile(
    r"^\s*(?P<cur>[$€£¥]?)\s*(?P<num>[-+−]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?:/\d+)?)"
    r"\s*(?P<unit>[^\W\d_]*|%|°[CF]?)\s*\.?\s*$"
)
_FORMULA = re.compile(r"[=^<>≤≥√∑∫π\\{}_*×÷+|~]|\w/\w|\d\s*[-−]\s*\w|^[-−]|[²³¹⁰-₿→←↔∆∇]")
_WORD = re.compile(r"[^\W_]+(?:\.\d+)?", re.UNICODE)


def similarity(a: str, b: str) -> float:
    """Similarity of two option texts in [0, 1].

    1: equal after NFKC, case folding, dropping articles and punctuation, or equal number and unit (``0.5``, ``1/2``).
    0.9: one is the other plus one word that does not turn its meaning (``left``, ``left side``).
    0: numbers differ, or any other pair with a formula. Otherwise min(0.89, Levenshtein ratio).

    Notes
    -----
    Short symbols (tokens of at most two letters, such as ``Co`` and ``CO``) keep their case.
    """
    x, y = _nfkc(a), _nfkc(b)
    if x == y:
        return 1.0
    qa, qb = _quantity(x), _quantity(y)
    if qa and qb and not _unit_added(qa, qb):
        return 1.0 if qa == qb else 0.0
    if _FORMULA.search(x) or _FORMULA.search(y):
        return 1.0 if re.sub(r"\s+", "", x) == re.sub(r"\s+", "", y) else 0.0
    ta, tb = _tokens(x), _tokens(y)
    if ta == tb and ta:
        return 1.0
    if _numbers(x) != _numbers(y):
        return 0.0
    if not ta or not tb:
        return 0.0
    if _one_word_more(ta, tb) or _one_word_more(tb, ta):
        return FLAG_AT
    return min(_CEILING, ratio(" ".join(ta), " ".join(tb)) / 100)


@lru_cache(maxsize=4096)
def _nfkc(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).split())


@lru_cache(maxsize=4096)
def _tokens(text: str) -> tuple[str, ...]:
    words = _WORD.findall(text)
    symbol = all(len(w) <= 2 for w in words)
    words = [w if symbol else w.casefold() for w in words]
    kept = [w for w in words if w.casefold() not in _ARTICLES or (symbol and len(words) == 1)]
    return tuple(kept or words)


@lru_cache(maxsize=4096)
def _numbers(text: str) -> tuple[str, ...]:
    return tuple(sorted(n.replace(",", "") for n in _NUMBER.findall(text) if any(c.isdigit() for c in n)))


@lru_cache(maxsize=4096)
def _quantity(text: str) -> tuple[Fraction, str] | None:
    found = _QUANTITY.match(text)
    if not found:
        return None
    number = found["num"].replace(",", "").replace("−", "-")
    top, _, below = number.partition("/")
    if below and int(below) == 0:
        return None
    value = Fraction(top) / (int(below) if below else 1)
    return value, found["cur"] + found["unit"]


def _unit_added(p: tuple[Fraction, str], q: tuple[Fraction, str]) -> bool:
    """Whether one is the bare number of the other, whose unit is a word (``3``, ``3 dots``)."""
    return p[0] == q[0] and (p[1] == "") != (q[1] == "") and (p[1] + q[1]).isalpha()


def _one_word_more(short: tuple[str, ...], long: tuple[str, ...]) -> bool:
    if len(long) != len(short) + 1:
        return False
    for i, word in enumerate(long):
        if long[:i] + long[i + 1 :] == short:
            return len(word) > 1 and word.casefold() not in _TURNING and not word[0].isdigit()
    return False


def needs(pool: Pool) -> str:
    if "options" not in pool.items:
        return "the texts of the options are unknown"
    texts = pool.items["options"]
    return "" if any(_has_two(o) for o in texts) else "no item has two option texts"


def _has_two(options: object) -> bool:
    return isinstance(options, list | tuple | np.ndarray) and sum(bool(str(t).strip()) for t in options) >= 2


def detect(pool: Pool, settings: AuditParams) -> pd.DataFrame:
    """Score = the most similar pair of an item's options. High where the key stands beside an equal option."""
    rows = []
    keys = pool.items["key"] if "key" in pool.items else [None] * len(pool.items)
    for item, options, key in zip(pool.items["item"], pool.items["options"], keys):
        if not _has_two(options):
            continue
        shown = [(option_name(i), str(t)) for i, t in enumerate(options) if str(t).strip()]
        pairs = [(similarity(s, t), p, q) for (p, s), (q, t) in combinations(shown, 2)]
        # the key's own pair decides among equals: it makes the item unfair, not only odd
        best = max(pairs, key=lambda z: (z[0], key in z[1:]))
        rows.append((item, *best, key, dict(shown)))
    flag = [r[1] >= FLAG_AT for r in rows]
    return findings(
        "distractor_similarity",
        "",
        item=[r[0] for r in rows],
        score=[r[1] for r in rows],
        flag=flag,
        severity=["high" if r[1] == 1 and r[4] in r[2:4] else "info" for r in rows],
        evidence=[evidence(pair=[r[2], r[3]], texts=[r[5][r[2]], r[5][r[3]]], key=r[4] or "") for r in rows],
        message=[_say(*r[1:5], texts=r[5]) for r in rows],
    )


def _say(score: float, p: str, q: str, key: str | None, *, texts: dict[str, str]) -> str:
    pair = f"{p} {texts[p]!r} and {q} {texts[q]!r}"
    beside = ", one of them the key" if key in (p, q) else ""
    if score == 1:
        return f"options {pair} say the same{beside}"
    if score >= FLAG_AT:
        return f"options {pair} differ by one word{beside}"
    return f"closest options {pair} ({score:.2f})"


DETECTOR = Detector(
    "distractor_similarity", "pairwise option similarity", "near-duplicate options", False, detect, needs, (2, None)
)
