"""Can the key be told from the text alone? A cross-fitted choice model over options, against shuffled keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditlib.threads import single_threaded

NAN = float("nan")


@dataclass(frozen=True)
class TextProbe:
    """Out-of-fold performance of the probe.

    Attributes
    ----------
    n : items. accuracy : share whose most probable option is the key (ties count in parts).
    null, null_sd : mean and sd of the same with keys drawn anew among each item's options, models fitted anew.
    p : ``(g + 1) / (shuffles + 1)``. probability : of the key, out of fold, shape (items,). hit : shape (items,).
    null_hits : shape (shuffles, items), for strata.
    """

    n: int
    accuracy: float
    null: float
    null_sd: float
    p: float
    probability: NDArray[np.float64] = field(repr=False)
    hit: NDArray[np.float64] = field(repr=False)
    null_hits: NDArray[np.float32] = field(repr=False)

    @property
    def excess(self) -> float:
        return self.accuracy - self.null

    def as_row(self) -> dict[str, Any]:
        return {"n": self.n, "estimate": self.accuracy, "null": self.null, "null_sd": self.null_sd,
                "excess": self.excess, "p": self.p, "p_method": "shuffle"}  # fmt: skip

    def inside(self, items: ArrayLike) -> TextProbe:
        """The same over some items (a stratum); the models stay those of all items."""
        at = np.asarray(items)
        hit, drawn = self.hit[at], self.null_hits[:, at]
        return _probe(hit, drawn, self.probability[at])


def text_probe(x: Any, item: ArrayLike, key: ArrayLike, group: ArrayLike | None = None, *, rng: np.random.Generator,
               folds: int = 5, shuffles: int = 99, penalty: float = 1.0) -> TextProbe:  # fmt: skip
    """Fit a probe of option texts in folds and judge it on the items it has not seen.

    Parameters
    ----------
    x : array or scipy sparse matrix, shape (options, features)
        Features of each option of each item; what all options of an item share says nothing.
    item : int array, shape (options,)
        Item 0.. of each option, in order; every item has two options or more.
    key : bool array, shape (options,)
        The key, one for each item.
    group : array, shape (items,), optional
        Items of one group (near-duplicates) always share a fold.
    folds, shuffles : numbers of folds, and of shuffled keys.
    penalty : of the squared coefficients, per fit.

    Raises
    ------
    ValueError
        An item without exactly one key, or fewer groups than folds.

    Notes
    -----
    Conditional logit ``P(j) = exp(x_j b) / sum exp(x b)`` over the options of an item, with an L2 penalty, by L-BFGS.
    Under the null the key is any option of its item with equal chance, so the p is exact for the whole procedure: every
    shuffle draws new keys and fits all folds again.
    """
    from scipy import sparse

    x = sparse.csr_array(x)
    start = np.flatnonzero(np.diff(np.asarray(item), prepend=-1))
    size = np.diff(np.append(start, x.shape[0]))
    gold = np.flatnonzero(np.asarray(key, bool))
    n = len(start)
    if len(gold) != n or (gold < start).any() or (gold >= start + size).any() or size.min(initial=2) < 2:
        raise ValueError("each item needs two options or more and exactly one key")
    parts = _folds(np.arange(n) if group is None else np.asarray(group), folds, rng)
    plans = [_Plan(x, start, size, parts != f, parts == f, penalty) for f in range(folds)]
    drawn = np.empty((shuffles, n), np.float32)
    with single_threaded():
        hit, probability = _fit(plans, gold, n)
        for i in range(shuffles):
            drawn[i] = _fit(plans, start + np.floor(rng.random(n) * size).astype(np.int64), n)[0]
    return _probe(hit, drawn, probability)


def _probe(hit: NDArray, drawn: NDArray, probability: NDArray) -> TextProbe:
    n = len(hit)
    accuracy, null = (float(hit.mean()), drawn.mean(1, dtype=float)) if n else (NAN, np.full(len(drawn), NAN))
    p = (1 + int((null >= accuracy - 1e-9).sum())) / (len(null) + 1) if n else NAN
    sd = float(null.std(ddof=1)) if len(null) > 1 else NAN
    return TextProbe(n, accuracy, float(null.mean()) if len(null) else NAN, sd, p, probability, hit, drawn)


def _folds(group: NDArray, folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Fold of each item: groups in random order, each to the fold with fewest items."""
    _, code, sizes = np.unique(group, return_inverse=True, return_counts=True)
    if len(sizes) < folds:
        raise ValueError(f"{len(sizes)} groups of items cannot fill {folds} folds")
    held, of = np.zeros(folds, np.int64), np.empty(len(sizes), np.int64)
    order = rng.permutation(len(sizes))
    for g in order[np.argsort(-sizes[order], kind="stable")]:
        of[g] = int(held.argmin())
        held[of[g]] += sizes[g]
    return of[code.ravel()]


class _Plan:
    """One fold: rows to learn from and rows to judge, with the columns that the former use."""

    def __init__(self, x: Any, start: NDArray, size: NDArray, learn: NDArray, judge: NDArray, penalty: float):
        self.learn_items, self.judge_items = np.flatnonzero(learn), np.flatnonzero(judge)
        self.first, self.rows = _rows(start, size, self.learn_items)
        self.judge_first, self.judge_rows = _rows(start, size, self.judge_items)
        used = np.unique(x[self.rows].indices)
        self.x, self.judge_x = x[self.rows][:, used], x[self.judge_rows][:, used]
        self.size, self.judge_size, self.start, self.penalty = size[learn], size[judge], start, penalty
        self.transposed = self.x.T.tocsr()

    def solve(self, gold: NDArray) -> NDArray[np.float64]:
        """Probabilities of the judged options, from keys at rows ``gold`` of all options."""
        from scipy.optimize import minimize

        right = self.first + gold[self.learn_items] - self.start[self.learn_items]
        target = np.zeros(self.x.shape[0])
        target[right] = 1.0

        def loss(b: NDArray) -> tuple[float, NDArray]:
            p = _softmax(self.x @ b, self.first, self.size)
            value = -np.log(np.maximum(p[right], 1e-300)).sum() + self.penalty / 2 * float(b @ b)
            return value, self.transposed @ (p - target) + self.penalty * b

        found = minimize(loss, np.zeros(self.x.shape[1]), jac=True, method="L-BFGS-B",
                         options={"maxiter": 60, "ftol": 1e-6})  # fmt: skip
        return _softmax(self.judge_x @ found.x, self.judge_first, self.judge_size)


def _rows(start: NDArray, size: NDArray, items: NDArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First place of each of some items among their own options, and the rows of all these options."""
    sizes = size[items]
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    return first, np.repeat(start[items] - first, sizes) + np.arange(int(sizes.sum()))


def _fit(plans: Sequence[_Plan], gold: NDArray, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Hit (ties in parts) and probability of the key of every item, out of fold."""
    hit, probability = np.zeros(n), np.zeros(n)
    for plan in plans:
        p = plan.solve(gold)
        top = np.maximum.reduceat(p, plan.judge_first)
        best = p >= np.repeat(top, plan.judge_size) - 1e-9
        mine = plan.judge_first + gold[plan.judge_items] - plan.start[plan.judge_items]
        ties = np.add.reduceat(best.astype(float), plan.judge_first)
        hit[plan.judge_items] = best[mine] / ties
        probability[plan.judge_items] = p[mine]
    return hit, probability


def _softmax(score: NDArray, first: NDArray, size: NDArray) -> NDArray[np.float64]:
    e = np.exp(score - np.repeat(np.maximum.reduceat(score, first), size))
    return e / np.repeat(np.add.reduceat(e, first), size)
