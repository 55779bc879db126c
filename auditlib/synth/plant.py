"""Defects planted in a pool on purpose: wrong keys, two defensible answers, right answers that the scorer loses.

Draws are moved as the defect would move them, so that the truth is known and nothing else of the pool changes. Pools
of answer counts go through :func:`plant`; arrays of answers, and worlds made of them, through the functions below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.curation.data import NO_ANSWER, Answers, CurationPool, Draws
from auditlib.errors import AuditError
from auditlib.seeds import generator
from auditlib.synth.worlds import OPEN_ANSWERS, World

DEFECTS = ("key_error", "ambiguous", "scorer_risk")
#: key of an open item that no answer equals
_NOBODY = -2
#: share of the right draws that go to the second answer of an ambiguous item: from, to
_SPLIT = (0.35, 0.65)
#: share of the right draws that a scorer loses: from, to
_LOST = (0.5, 0.8)


@dataclass(frozen=True)
class Planted:
    """A pool with planted defects.

    Attributes
    ----------
    pool : the pool, without its runs without the image (whose answers a pool does not keep).
    truth : one row per item: item, planted (one of DEFECTS, "" where nothing was planted).
    """

    pool: CurationPool
    truth: pd.DataFrame

    def is_(self, defect: str) -> np.ndarray:
        """Items with a planted defect, shape (items,)."""
        return self.truth["planted"].eq(defect).to_numpy()


def plant(pool: CurationPool, shares: Mapping[str, float], seed: int, among: ArrayLike | None = None) -> Planted:
    """Plant defects in randomly chosen items.

    Parameters
    ----------
    pool : needs the answers, not only verdicts.
    shares : defect -> share of the items to choose from that get it.
    among : boolean, shape (items,), optional
        Items to choose from; by default all whose key is an answer that was or could be given.

    Returns
    -------
    Planted

    Raises
    ------
    AuditError
        No answers, graded verdicts, an unknown defect, shares that sum to more than 1.

    Notes
    -----
    ``key_error``: another answer becomes the key, one of the options, or one that was given to an open item (none such:
    one that nobody gave). ``ambiguous``: 35 to 65% of the draws with the key give a second answer, the commonest wrong
    one. ``scorer_risk``: 50 to 80% of the draws with the key are not read; of an open item, half of these are read as
    another answer.
    """
    answers = pool.answers
    if answers is None:
        raise AuditError("defects cannot be planted: the runs hold verdicts only", mend="give replies or answer counts")
    if pool.full.unit != 1:
        raise AuditError("defects cannot be planted among graded verdicts", mend="use verdicts of 0 and 1")
    unknown = sorted(set(shares) - set(DEFECTS))
    if unknown:
        raise AuditError(f"unknown defect {unknown[0]!r}", mend=f"use {', '.join(DEFECTS)}")
    if sum(shares.values()) > 1 or min(shares.values(), default=0) < 0:
        raise AuditError("the shares of planted defects are no shares", mend="give shares that sum to at most 1")
    rng = generator(seed, pool.name, "plant")
    open_item = np.isnan(pool.k)
    can = answers.key >= 0
    if among is not None:
        can &= np.asarray(among, bool)
    order = rng.permutation(np.flatnonzero(can))
    kind = np.full(len(pool.items), "", dtype=object)
    start = 0
    for name in DEFECTS:
        stop = start + round(shares.get(name, 0) * len(order))
        kind[order[start:stop]] = name
        start = stop
    key = _wrong_keys(answers, kind == "key_error", open_item, rng)
    moved = _moved(answers, kind, open_item, rng)
    moved = replace(moved, key=key)
    full = _counted(pool.full, moved, kind != "")
    items = pool.items
    if "key" in items:
        texts = items["key"].astype(object).to_numpy().copy()
        for i in np.flatnonzero(kind == "key_error"):
            texts[i] = answers.name(int(i), int(key[i])) if key[i] >= 0 else "(an answer that nobody gave)"
        items = items.assign(key=texts)
    truth = pd.DataFrame({"item": pool.items["item"].to_numpy(), "planted": kind})
    return Planted(replace(pool, items=items, full=full, blind=None, answers=moved), truth)


def _wrong_keys(answers: Answers, wrong: np.ndarray, open_item: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Keys with those of ``wrong`` items replaced by another code of the item."""
    key, size = answers.key.copy(), answers.size
    step = 1 + np.floor(rng.random(len(key)) * np.maximum(size - 1, 1)).astype(key.dtype)
    other = np.where(size > 1, (key + step) % np.maximum(size, 1), np.where(open_item, _NOBODY, key))
    key[wrong] = other[wrong]
    return key


def _moved(answers: Answers, kind: np.ndarray, open_item: np.ndarray, rng: np.random.Generator) -> Answers:
    """Answers with the draws of ambiguous and scorer-risk items moved; new rows where an answer is new to a model."""
    size = answers.size.copy()
    items = len(size)
    second = _commonest_wrong(answers, items)
    two, lost = kind == "ambiguous", kind == "scorer_risk"
    # an open item of which only the key was seen gets an answer of its own; so does a scorer's misreading
    lone = two & (second < 0)
    second[lone] = np.where(open_item[lone], size[lone], (answers.key[lone] + 1) % np.maximum(size[lone], 2))
    misread = np.where(lost & open_item, size, NO_ANSWER)
    size = np.where((lone | lost) & open_item, size + 1, np.maximum(size, np.where(lone, second + 1, 0)))
    share = np.where(two, rng.uniform(*_SPLIT, items), np.where(lost, rng.uniform(*_LOST, items), 0.0))
    right = np.flatnonzero((answers.answer == answers.key[answers.item]) & (share[answers.item] > 0))
    place = answers.item[right]
    out = {name: getattr(answers, name).copy() for name in ("odd", "even")}
    rows = []
    taken = {name: rng.binomial(out[name][right], share[place]) for name in out}
    for name in out:
        out[name][right] -= taken[name]
    halves = {name: np.where(open_item[place] & lost[place], rng.binomial(t, 0.5), t) for name, t in taken.items()}
    for part, target in ((halves, np.where(two[place], second[place], NO_ANSWER)),
                         ({n: taken[n] - halves[n] for n in taken}, misread[place])):  # fmt: skip
        rows.append(pd.DataFrame({"item": place, "model": answers.model[right], "answer": target} | part))
    table = pd.concat([pd.DataFrame({"item": answers.item, "model": answers.model, "answer": answers.answer} | out),
                       *rows], ignore_index=True)  # fmt: skip
    table = table.groupby(["item", "model", "answer"], as_index=False, sort=True)[["odd", "even"]].sum()
    table = table[(table["odd"] + table["even"]) > 0]
    columns = {c: table[c].to_numpy(np.int32) for c in ("item", "model", "answer", "odd", "even")}

    def name(i: int, code: int) -> str:
        return answers.name(i, code) if code < answers.size[i] else "(another way to write it)"

    return Answers(**columns, size=size.astype(answers.size.dtype), key=answers.key, name=name)


def _commonest_wrong(answers: Answers, items: int) -> np.ndarray:
    """Code of the wrong answer given most often to each item, -1 where nobody gave one."""
    wrong = (answers.answer >= 0) & (answers.answer != answers.key[answers.item])
    table = pd.DataFrame({"item": answers.item[wrong], "answer": answers.answer[wrong], "n": answers.draws[wrong]})
    table = table.groupby(["item", "answer"], as_index=False)["n"].sum().sort_values(["item", "n"], kind="stable")
    last = table.drop_duplicates("item", keep="last")
    out = np.full(items, -1)
    out[last["item"]] = last["answer"]
    return out


def _counted(draws: Draws, answers: Answers, changed: np.ndarray) -> Draws:
    """Counts of the changed items made anew from their answers."""
    shape = draws.hits.shape
    cell = answers.item.astype(np.int64) * shape[1] + answers.model
    right = answers.answer == answers.key[answers.item]
    none = answers.answer == NO_ANSWER
    hits = np.bincount(cell, answers.draws * right, shape[0] * shape[1]).reshape(shape)
    silent = np.bincount(cell, answers.draws * none, shape[0] * shape[1]).reshape(shape)
    where = changed[:, None]
    return Draws(np.where(where, hits, draws.hits).astype(draws.hits.dtype), draws.trials,
                 np.where(where, silent, draws.abstained).astype(draws.abstained.dtype), draws.unit)  # fmt: skip


def flip_keys(key: ArrayLike, k: ArrayLike, where: ArrayLike, rng: np.random.Generator, to: ArrayLike | None = None
              ) -> NDArray:  # fmt: skip
    """Keys with those of ``where`` items replaced by another option.

    Parameters
    ----------
    key, k : int arrays, shape (items,)
        Key codes and options shown.
    where : int array
        Positions of the items to spoil; an item with one option stays.
    to : int array, shape (items,), optional
        The option that becomes the key (the pool's commonest wrong one, say); negative, or the key itself, = any other.
    """
    out, places = np.array(key), np.asarray(where, np.intp)
    size = np.asarray(k, np.int64)[places]
    old = out[places].astype(np.int64)
    step = 1 + np.floor(rng.random(len(places)) * np.maximum(size - 1, 1)).astype(np.int64)
    new = np.where(size > 1, (old + step) % np.maximum(size, 1), old)
    if to is not None:
        wanted = np.asarray(to, np.int64)[places]
        new = np.where((wanted >= 0) & (wanted < size) & (wanted != old), wanted, new)
    out[places] = new
    return out


def shift_keys(key: ArrayLike, start: int, stop: int, lag: int = 1) -> NDArray:
    """Keys of the rows ``start`` to ``stop`` moved down by ``lag`` rows inside that stretch, the last to its top."""
    out = np.array(key)
    out[start:stop] = np.roll(out[start:stop], lag)
    return out


def shuffle_keys(key: ArrayLike, where: ArrayLike, rng: np.random.Generator) -> NDArray:
    """Keys of some items dealt anew among these items."""
    out, places = np.array(key), np.asarray(where, np.intp)
    out[places] = out[rng.permutation(places)]
    return out


def swap_runs(full: ArrayLike, blind: ArrayLike, where: ArrayLike) -> tuple[NDArray, NDArray]:
    """Answers of some items with and without the image exchanged, as when two runs are mixed up."""
    a, b, places = np.array(full), np.array(blind), np.asarray(where, np.intp)
    a[places], b[places] = b[places], np.asarray(full)[places]
    return a, b


def second_answers(answers: ArrayLike, key: ArrayLike, k: ArrayLike, where: ArrayLike, rng: np.random.Generator,
                   share: tuple[float, float] = _SPLIT) -> NDArray:  # fmt: skip
    """Answers in which a part of those equal to the key give one other option of the item instead.

    The other option is drawn for each item: a second defensible answer, or the key's twin among the options. The part
    is uniform between the two ends of ``share``.
    """
    out, places = np.array(answers), np.asarray(where, np.intp)
    gold = np.asarray(key)[places].astype(np.int64)
    size = np.asarray(k, np.int64)[places]
    other = (gold + 1 + np.floor(rng.random(len(places)) * np.maximum(size - 1, 1)).astype(np.int64)) % size
    part = rng.uniform(*share, size=len(places))
    here = out[places]
    moves = (here == gold[:, None]) & (rng.random(here.shape) < part[:, None])
    out[places] = np.where(moves, other[:, None], here)
    return out


#: what :func:`spoil` can plant in a world
WORLD_DEFECTS = ("wrong_key", "ambiguous", "near_duplicate", "swapped_runs")


def spoil(world: World, shares: Mapping[str, float], seed: int) -> World:
    """Plant defects in items of a world, no item more than one.

    Parameters
    ----------
    shares : defect of :data:`WORLD_DEFECTS` -> share of all items.

    Raises
    ------
    AuditError
        An unknown defect, or shares that are none.

    Notes
    -----
    ``wrong_key``: another option becomes the key, half of the times the pool's commonest wrong answer. ``ambiguous``:
    35 to 65% of the right answers give one other option. ``near_duplicate``: half of them do, for an option that says
    the same. ``swapped_runs``: answers with and without the image change places. ``truth["true_key"]`` stays.
    """
    unknown = sorted(set(shares) - set(WORLD_DEFECTS))
    if unknown:
        raise AuditError(f"unknown defect {unknown[0]!r}", mend=f"use {', '.join(WORLD_DEFECTS)}")
    if sum(shares.values()) > 1 or min(shares.values(), default=0) < 0:
        raise AuditError("the shares of planted defects are no shares", mend="give shares that sum to at most 1")
    rng = generator(seed, world.name, "spoil")
    n = len(world.key)
    order, planted, start = rng.permutation(n), world.truth["planted"].to_numpy(dtype=object).copy(), 0
    k = np.full(n, OPEN_ANSWERS) if world.open else world.truth["k"].to_numpy().astype(int)
    key, full, blind = world.key, world.full, world.blind
    for defect in WORLD_DEFECTS:
        stop = start + round(shares.get(defect, 0) * n)
        where = order[start:stop]
        planted[where] = defect
        start = stop
        if defect == "wrong_key":
            modal = np.where(rng.random(n) < 0.5, commonest_wrong(full, key), -1)
            key = flip_keys(key, k, where, rng, modal)
        elif defect == "swapped_runs":
            full, blind = swap_runs(full, blind, where)
        elif len(where):
            share = _SPLIT if defect == "ambiguous" else (0.5, 0.5)
            full, blind = (second_answers(x, key, k, where, np.random.default_rng([seed, stop]), share)
                           for x in (full, blind))  # fmt: skip
    truth = world.truth.assign(planted=planted)
    return replace(world, truth=truth, key=key, full=full, blind=blind)


def commonest_wrong(answers: ArrayLike, key: ArrayLike) -> NDArray[np.int64]:
    """Code of the wrong option given most often to each item (the lowest of equals), -1 where none was given."""
    said, gold = np.asarray(answers), np.asarray(key)
    levels = int(said.max(initial=0)) + 1
    best, out = np.zeros(len(said), np.int64), np.full(len(said), -1)
    for c in range(levels):
        votes = np.where(gold == c, 0, (said == c).sum(1))
        out[votes > best], best = c, np.maximum(best, votes)
    return out
