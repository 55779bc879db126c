"""Votes of a panel on every item: the histogram of answers, the two largest shares, the models behind the largest.

The key is no argument here: the vote is formed without it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditlib.curation.data import NO_ANSWER, Answers
from auditlib.curation.exact import times, whole

#: ``modal`` of an item without a single largest answer
NO_MODAL = -1


@dataclass(frozen=True)
class Vote:
    """One vote on every item; whole-number weights of shape (items,), shares are weights over ``total``.

    Attributes
    ----------
    total : weight of the draws with an answer. first, second : weights of the two largest answers. silent : weight of
        the draws without an answer. modal : code of the largest answer, ``NO_MODAL`` where none or several are.
    backing, voters : weight of the models whose most frequent answer (ties count) is ``modal``, and of all models with
        a draw; another unit than the weights above. entropy : of the shares, in nats. seen : distinct answers given.
    """

    total: NDArray
    first: NDArray
    second: NDArray
    silent: NDArray
    modal: NDArray[np.int64]
    backing: NDArray
    voters: NDArray
    entropy: NDArray[np.float64]
    seen: NDArray[np.int64]


def draws_made(answers: Answers, draws: NDArray, models: int) -> NDArray[np.int64]:
    """Draws of each item and model, those without an answer included, shape (items, models)."""
    cell = answers.item.astype(np.int64) * models + answers.model
    return np.bincount(cell, draws, len(answers.size) * models).astype(np.int64).reshape(-1, models)


def vote(answers: Answers, draws: NDArray, models: int, families: NDArray | None = None) -> Vote:
    """Count one vote: each model weighs 1, its n draws 1/n each, those without an answer being left out of the shares.

    Parameters
    ----------
    draws : shape (rows,)
        Draws of each row of ``answers`` that take part: all, or those of the odd or even samples.
    models : number of models
    families : codes 0.. of each model's provider, optional
        The models of one provider that drew an item then share a weight of 1.
    """
    items, code = len(answers.size), answers.answer
    made = draws_made(answers, draws, models)
    share = _sharing(made > 0, families)
    units = whole(np.where(made > 0, made * share, 1), models)
    common = np.lcm.reduce(units, axis=1, initial=1)
    weight = times(draws, (common[:, None] // units)[answers.item, answers.model])
    valid = code != NO_ANSWER
    # two spare cells for each item, so that a second largest answer always exists
    start = np.concatenate([[0], np.cumsum(answers.size + 2)])
    cells = _add(start[answers.item[valid]] + code[valid], weight[valid], int(start[-1]))
    total = np.add.reduceat(cells, start[:-1])
    first = np.maximum.reduceat(cells, start[:-1])
    owner = np.repeat(np.arange(items), answers.size + 2)
    top = np.flatnonzero(cells == first[owner])
    place = top[np.unique(owner[top], return_index=True)[1]]
    single = np.bincount(owner[top], minlength=items) == 1
    modal = np.where(single & (total > 0), place - start[:-1], NO_MODAL).astype(np.int64)
    rest = cells.copy()
    rest[place] = 0
    backing, voters = _backing(answers, draws, modal, made, share)
    return Vote(
        total=total, first=first, second=np.maximum.reduceat(rest, start[:-1]),
        silent=_add(answers.item[~valid], weight[~valid], items), modal=modal, backing=backing, voters=voters,
        entropy=_entropy(cells, total, owner, items),
        seen=np.add.reduceat((cells > 0).astype(np.int64), start[:-1]),
    )  # fmt: skip


def _sharing(drew: NDArray[np.bool_], families: NDArray | None) -> NDArray[np.int64]:
    """How many models share a model's weight on each item, shape (items, models)."""
    if families is None:
        return np.ones(drew.shape, np.int64)
    one_hot = np.asarray(families)[:, None] == np.arange(int(np.max(families, initial=-1)) + 1)
    return np.maximum((drew.astype(np.int64) @ one_hot.astype(np.int64))[:, families], 1)


def _add(at: NDArray, weight: NDArray, size: int) -> NDArray:
    """Sums of whole weights by place, exact: floats hold whole numbers below 2**53."""
    if weight.dtype != object and int(weight.max(initial=0)) * max(len(weight), 1) < 2**53:
        return np.bincount(at, weight, size).astype(np.int64)
    out = np.zeros(size, weight.dtype)
    np.add.at(out, at, weight)
    return out


def _backing(
    answers: Answers, draws: NDArray, modal: NDArray, made: NDArray, share: NDArray
) -> tuple[NDArray, NDArray]:
    """Weight of the models for whom the modal answer is a most frequent one, and of all that drew the item."""
    models = made.shape[1]
    cell = answers.item.astype(np.int64) * models + answers.model
    given = np.where(answers.answer != NO_ANSWER, draws, 0)
    most = np.zeros(made.size, np.int64)
    np.maximum.at(most, cell, given)
    backs = (answers.answer == modal[answers.item]) & (given > 0) & (given == most[cell])
    hit = np.zeros(made.size, bool)
    hit[cell[backs]] = True
    part = whole(share, models)
    weight = np.lcm.reduce(part, axis=1, initial=1)[:, None] // part
    return (hit.reshape(made.shape) * weight).sum(axis=1), ((made > 0) * weight).sum(axis=1)


def _entropy(cells: NDArray, total: NDArray, owner: NDArray, items: int) -> NDArray[np.float64]:
    given = cells > 0
    p = cells[given].astype(float) / total[owner[given]].astype(float)
    return np.abs(np.bincount(owner[given], -p * np.log(p), items))
