"""The text-shortcut probe of a pool: what question and option texts give away, without any model run."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib.pool import Pool
from auditlib.stats.multiplicity import bh
from auditlib.stats.text_probe import TextProbe, text_probe

#: columns of hashed words; features of an option beside its words
WORDS = 1 << 14
STATISTICS = (
    "length", "longest", "shortest", "words", "shared with the question", "digits", "middle number", "all or none",
)  # fmt: skip
#: cosine of two items' words from which on they are near-duplicates; beyond so many items only equal texts are
NEAR, MOST = 0.9, 20_000
#: fewest items that a probe, and a stratum of it, needs
FEWEST, STRATUM = 100, 20
_TOKENS = re.compile(r"[^\W_]+", re.UNICODE)
_ALL = re.compile(r"\b(?:all|none|both|neither)\b.*\b(?:above|these|them|options|choices)\b|\bnone\b", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)?")


@dataclass(frozen=True)
class Shortcut:
    """``probe`` over all items used, ``items`` their ids, ``strata`` one row for each stratum of 20 items or more
    (stratum, n, estimate, null, excess, p, q), ``groups`` of near-duplicates.
    """

    probe: TextProbe
    items: pd.Series
    strata: pd.DataFrame
    groups: int


def why_not(pool: Pool) -> str:
    """Why a pool cannot be probed; empty where it can."""
    if "options" not in pool.items:
        return "no option texts"
    used = _used(pool)
    return (
        "" if len(used) >= FEWEST else f"{len(used)} items with a key and two different option texts, {FEWEST} needed"
    )


def text_shortcut(pool: Pool, *, folds: int = 5, shuffles: int = 99) -> Shortcut:
    """Probe the option texts of a pool.

    Parameters
    ----------
    folds, shuffles
        As in :func:`auditlib.stats.text_probe.text_probe`.

    Raises
    ------
    ValueError
        When :func:`why_not` has a reason.

    Notes
    -----
    Features of an option: its words (hashed, unit length), and :data:`STATISTICS`, each taken relative to the item's
    other options. The place of an option is no feature: where keys sit has a test of its own. Items whose texts
    (question and options) are nearly equal share a fold.
    """
    reason = why_not(pool)
    if reason:
        raise ValueError(reason)
    used = _used(pool)
    questions = pool.items["question"].fillna("").astype(str).tolist() if "question" in pool.items else None
    options = [[str(t) for t in pool.items["options"].iloc[i]] for i in used]
    asked = ["" if questions is None else questions[i] for i in used]
    shown = [[j for j, t in enumerate(o) if t.strip()] for o in options]
    x = option_features(asked, [[o[j] for j in s] for o, s in zip(options, shown)])
    item = np.repeat(np.arange(len(used)), [len(s) for s in shown])
    key = np.concatenate([np.array(s) == k for s, k in zip(shown, pool.key_codes[used])])
    group = near_groups([f"{q} {' '.join(sorted(o))}" for q, o in zip(asked, options)])
    probe = text_probe(x, item, key, group, rng=pool.rng("text shortcut"), folds=folds, shuffles=shuffles)
    return Shortcut(probe, pool.items["item"].iloc[used], _strata(pool, used, probe), int(group.max()) + 1)


def _used(pool: Pool) -> NDArray[np.int64]:
    """Items with a letter as key among two option texts or more that are not all alike."""
    good = []
    for i, (options, key) in enumerate(zip(pool.items["options"], pool.key_codes.tolist())):
        if not isinstance(options, list | tuple | np.ndarray) or not 0 <= key < len(options):
            continue
        texts = [str(t).strip() for t in options]
        if texts[key] and len({t for t in texts if t}) >= 2:
            good.append(i)
    return np.array(good, np.int64)


def _strata(pool: Pool, used: NDArray, probe: TextProbe) -> pd.DataFrame:
    rows = []
    if pool.strata is not None:
        names = pool.strata[used]
        for name in sorted(set(names)):
            here = np.flatnonzero(names == name)
            if len(here) >= STRATUM:
                rows.append({"stratum": name} | probe.inside(here).as_row())
    table = pd.DataFrame(rows)
    return table.assign(q=bh(table["p"].to_numpy())) if len(table) else table


def option_features(questions: Sequence[str], options: Sequence[Sequence[str]]) -> Any:
    """Features of every option of every item, a scipy sparse matrix (options, words and statistics)."""
    from scipy import sparse

    rows, columns, values, dense, at = [], [], [], [], 0
    for question, texts in zip(questions, options):
        asked = set(_tokens(question))
        words = [_tokens(t) for t in texts]
        dense.append(_statistics(texts, words, asked))
        for said in words:
            places = sorted({zlib.crc32(w.encode()) % WORDS for w in said})
            rows += [at] * len(places)
            columns += places
            values += [1 / np.sqrt(len(places))] * len(places)
            at += 1
    bag = sparse.csr_array((values, (rows, columns)), shape=(at, WORDS))
    return sparse.csr_array(sparse.hstack([bag, sparse.csr_array(np.concatenate(dense))]))


def _statistics(texts: Sequence[str], words: Sequence[list[str]], asked: set[str]) -> NDArray[np.float64]:
    length = np.array([len(t) for t in texts], float)
    n = np.array([len(w) for w in words], float)
    shared = np.array([len(asked & set(w)) / max(1, len(set(w))) for w in words])
    digits = np.array([sum(c.isdigit() for c in t) / max(1, len(t)) for t in texts])
    above = np.array([bool(_ALL.search(t)) for t in texts], float)
    columns = [np.log1p(length), length == length.max(), length == length.min(), np.log1p(n), shared, digits,
               _middle(texts), above]  # fmt: skip
    # an option that is longest together with all others is not longest
    return np.column_stack([np.asarray(c, float) - np.mean(np.asarray(c, float)) for c in columns])


def _middle(texts: Sequence[str]) -> NDArray[np.float64]:
    """1 for options whose number lies strictly inside the range of the item's numbers."""
    found = [_NUMBER.search(t) for t in texts]
    if not all(found):
        return np.zeros(len(texts))
    value = np.array([float(m.group().replace(",", ".")) for m in found if m])
    return ((value > value.min()) & (value < value.max())).astype(float)


def _tokens(text: str) -> list[str]:
    return _TOKENS.findall(text.casefold())


def near_groups(texts: Sequence[str]) -> NDArray[np.int64]:
    """Group of each text: nearly equal ones (cosine of word counts from .9 on) together, directly or by a chain.

    Beyond 20,000 texts only those with equal words are grouped.
    """
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    words = [_tokens(t) for t in texts]
    _, same = np.unique(np.array([" ".join(sorted(w)) for w in words], dtype=object).astype(str), return_inverse=True)
    if len(texts) > MOST:
        return same.ravel()
    codes = {w: i for i, w in enumerate(sorted({w for ws in words for w in ws}))}
    rows = np.repeat(np.arange(len(words)), [len(w) for w in words])
    x = sparse.csr_array((np.ones(len(rows)), (rows, [codes[w] for ws in words for w in ws])),
                         shape=(len(words), max(1, len(codes))))  # fmt: skip
    norm = np.sqrt(np.asarray(x.multiply(x).sum(axis=1)).ravel())
    x = sparse.csr_array(sparse.diags_array(1 / np.maximum(norm, 1e-12)) @ x)
    pairs = []
    for start in range(0, len(words), 2000):
        near = (x[start : start + 2000] @ x.T).tocoo()
        close = near.data >= NEAR
        pairs.append(np.stack([near.coords[0][close] + start, near.coords[1][close]]))
    a, b = np.concatenate(pairs, axis=1)
    graph = sparse.coo_array((np.ones(len(a)), (a, b)), shape=(len(words), len(words)))
    return connected_components(graph, directed=False)[1].astype(np.int64)
