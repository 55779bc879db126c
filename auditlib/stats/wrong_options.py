"""Do two models that are both wrong choose the same wrong option, and how often would they by chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from auditlib.stats.intervals import Interval
from auditlib.stats.rates import share_interval

NAN = float("nan")


@dataclass(frozen=True)
class SameWrong:
    """Agreement of two models on items both got wrong with an option.

    ``same`` of ``n`` items; ``shuffled`` and ``rejudged`` are the shares expected under the two baselines of
    :func:`same_wrong_option`.
    """

    same: int
    n: int
    interval: Interval
    shuffled: float
    rejudged: float

    @property
    def estimate(self) -> float:
        return self.same / self.n if self.n else NAN

    def as_row(self, baseline: str = "shuffled") -> dict[str, Any]:
        """Fields of a statistics row against one baseline, ``shuffled`` or ``rejudged``."""
        null = {"shuffled": self.shuffled, "rejudged": self.rejudged}[baseline]
        return {"null_kind": baseline, "n": self.n, "estimate": self.estimate, "low": self.interval.low,
                "high": self.interval.high, "null": null, "excess": self.estimate - null}  # fmt: skip


def same_wrong_option(
    a: ArrayLike, b: ArrayLike, key: ArrayLike, *, cluster: ArrayLike | None = None, level: float = 0.95
) -> SameWrong:
    """Share of same wrong options among items both models got wrong, beside two closed-form baselines.

    Parameters
    ----------
    a, b, key : int arrays, shape (items,)
        Option codes; negative = no letter (such items count for neither model), or no key.
    cluster : array, shape (items,), optional
        Clusters of items, which the interval then heeds.

    Notes
    -----
    Both baselines shuffle the second model's letters over the items.

    * ``shuffled``: a letter keeps its own wrongness.  Wrong letters of the two models then meet at random, so the
      expected share is ``sum_l a_l b_l / (A B)``, with a_l, b_l wrong letters l and A, B their totals; exact.
    * ``rejudged``: a letter is wrong if it is not the key of the item it lands on.  Both letters then avoid the same
      key, which alone lifts agreement (to 1/3 with four options).  Ratio of the two expected counts over items where
      the first model is wrong: ``sum_i n_(a_i) / sum_i (N - n_(key_i))``, n_l letters l of the second model, right or
      wrong, N their total.

    Examples
    --------
    >>> r = same_wrong_option([1, 1, 0, 2], [1, 2, 0, 2], [0, 0, 0, 0])
    >>> r.same, r.n, round(r.shuffled, 3)
    (2, 3, 0.444)
    """
    x, y, k = (np.asarray(v, np.int64) for v in (a, b, key))
    if not x.shape == y.shape == k.shape:
        raise ValueError("letters and keys must be vectors of one length")
    wrong_a, wrong_b = (x >= 0) & (k >= 0) & (x != k), (y >= 0) & (k >= 0) & (y != k)
    both = wrong_a & wrong_b
    same, n = int((both & (x == y)).sum()), int(both.sum())
    levels = int(max(x.max(initial=0), y.max(initial=0), k.max(initial=0))) + 1
    count_a, count_b = np.bincount(x[wrong_a], minlength=levels), np.bincount(y[wrong_b], minlength=levels)
    letters = np.bincount(y[(y >= 0) & (k >= 0)], minlength=levels)
    pairs = int(count_a.sum()) * int(count_b.sum())
    judged = int((letters.sum() - letters[k[wrong_a]]).sum())
    return SameWrong(
        same, n, share_interval((x == y)[both], None if cluster is None else np.asarray(cluster)[both], level=level),
        int(count_a @ count_b) / pairs if pairs else NAN,
        int(letters[x[wrong_a]].sum()) / judged if judged else NAN,
    )  # fmt: skip


@dataclass(frozen=True)
class SameWrongPairs:
    """Agreement over all pairs of models together: same of ``n`` pair-items, and the share the shuffle expects."""

    same: int
    n: int
    shuffled: float

    @property
    def estimate(self) -> float:
        return self.same / self.n if self.n else NAN


def same_wrong_in_all_pairs(letters: ArrayLike, key: ArrayLike) -> SameWrongPairs:
    """:func:`same_wrong_option` of every pair of models, added up, without going through the pairs.

    Parameters
    ----------
    letters : int array, shape (items, models)
        Option codes; negative = no letter.
    key : int array, shape (items,)

    Notes
    -----
    On an item with ``c_l`` wrong votes for letter l, ``sum_l c_l (c_l - 1) / 2`` pairs agree and ``C (C - 1) / 2`` are
    both wrong, C all wrong votes. The shuffled baseline is each pair's own, weighted by the items on which both are
    wrong; with a models x letters table W of wrong letters in shares and the models x models table N of such items, it
    is ``sum_ab N_ab (W W')_ab / sum_ab N_ab`` over pairs: matrix products, exact.

    Examples
    --------
    >>> r = same_wrong_in_all_pairs([[1, 1], [1, 2], [0, 0], [2, 2]], [0, 0, 0, 0])
    >>> r.same, r.n, round(r.shuffled, 3)
    (2, 3, 0.444)
    """
    x, k = np.asarray(letters, np.int64), np.asarray(key, np.int64)
    wrong = (x >= 0) & (k >= 0)[:, None] & (x != k[:, None])
    levels = int(x.max(initial=0)) + 1
    counts = np.stack([(wrong & (x == letter)).sum(axis=1) for letter in range(levels)], axis=1)
    total = counts.sum(axis=1)
    same, n = int((counts * (counts - 1) // 2).sum()), int((total * (total - 1) // 2).sum())
    each = np.stack([(wrong & (x == letter)).sum(axis=0) for letter in range(levels)], axis=1).astype(float)
    made = each.sum(axis=1, keepdims=True)
    share = np.divide(each, made, out=np.zeros_like(each), where=made > 0)
    both = wrong.astype(np.float32).T @ wrong.astype(np.float32)
    pairs = np.triu_indices(x.shape[1], 1)
    weight = both[pairs].astype(float)
    expected = float(weight @ (share @ share.T)[pairs]) / n if n else NAN
    return SameWrongPairs(same, n, expected)
