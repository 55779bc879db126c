"""Inverse curvature of the penalised likelihood as a preconditioner: items eliminated, abilities by what is left.

The Gauss-Newton matrix has an arrow shape: one 8 x 8 block per item, one border for all abilities.  Its inverse needs
the item blocks and the Schur complement of the border only.  It is a metric: single precision is enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from auditlib.dependence.objective import sufficiency_logits
from auditlib.dependence.problem import GATES, Problem, Workspace, bounded, featured, gate

_PAIRS = np.array(np.triu_indices(5))
#: sums of condition weights that occur in GATES' diag(w) GATES: all, with image, with question, with both
_SUMS = np.array([[1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1]], float)
#: which of them coordinates k and l share
_SHARED = np.array([[0, 1, 2, 3], [1, 1, 3, 3], [2, 3, 2, 3], [3, 3, 3, 3]])
#: items from which the border of the abilities is estimated; it is a sum over items, and only a metric
_BORDER_ITEMS = 128


def _places() -> NDArray[np.int64]:
    """Row, in totals of (15 products of features) x (4 sums of conditions), of each of an item's 8 x 8 entries."""
    full = np.empty((5, 5), int)
    full[_PAIRS[0], _PAIRS[1]] = full[_PAIRS[1], _PAIRS[0]] = np.arange(15)
    of = np.array([0, 1, 2, 3, 4, 4, 4, 4])
    k = np.arange(8) % 4
    return (4 * full[of[:, None], of] + _SHARED[k[:, None], k]).ravel()


_PLACES = _places()


@dataclass(frozen=True)
class Metric:
    """Approximate inverse Hessian of the objective per item.

    Attributes
    ----------
    items : shape (items, 8, 8), inverses of the blocks of slopes and difficulties.
    pull : shape (8 * items, 4 * subjects), how far an item at its best follows an ability.
    subjects : shape (4 * subjects, 4 * subjects), inverse Schur complement. Abilities vary slowest in both.
    """

    items: NDArray[np.float32]
    pull: NDArray[np.float32]
    subjects: NDArray[np.float64]

    def __call__(self, g: NDArray[np.float64]) -> NDArray[np.float64]:
        """Newton step up the gradient: parameters in the order of :func:`auditlib.dependence.problem.unpack`."""
        n, m = len(self.items), len(self.subjects)
        out = np.empty_like(g)
        of_items = np.ascontiguousarray(g[m:].reshape(8, n).T, dtype=np.float32)
        moved = self.subjects @ (g[:m].reshape(-1, 4).T.ravel() - of_items.ravel() @ self.pull)
        out[:m] = moved.reshape(4, -1).T.ravel()
        step = np.matmul(self.items, of_items[:, :, None])[:, :, 0]
        step -= (self.pull @ moved.astype(np.float32)).reshape(n, 8)
        out[m:].reshape(8, n)[:] = step.T
        out *= n
        return out


def inverses(h: NDArray, spare: NDArray | None = None) -> NDArray:
    """Inverse of symmetric positive definite matrices (k, k, items), by Gauss-Jordan without pivots on all at once.

    ``h`` is overwritten, and so is ``spare``, of its shape, where given.
    """
    k = len(h)
    spare = np.empty_like(h) if spare is None else spare
    for j in range(k):
        pivot = 1 / h[j, j]
        row = h[j] * pivot
        column = h[:, j].copy()
        h -= np.multiply(column[:, None], row[None], out=spare)
        h[j] = row
        np.multiply(column, -pivot, out=h[:, j])
        h[j, j] = pivot
    return h


def _item_blocks(w: NDArray, scale: NDArray, pairs: NDArray, work: Workspace) -> NDArray[np.float32]:
    """Likelihood's part of the item blocks, shape (8, 8, width); ``w`` of shape (subjects, 4, width)."""
    m, _, width = w.shape
    totals = np.matmul(_SUMS, (pairs @ w.reshape(m, -1)).reshape(15, 4, width)).reshape(60, width)
    h = work("blocks", 64, width, dtype=np.float32)
    np.take(totals.astype(np.float32), _PLACES, axis=0, out=h, mode="clip")
    h = h.reshape(8, 8, width)
    h *= scale[:, None]
    h *= scale[None]
    return h


def _levels(w: NDArray[np.float64]) -> NDArray[np.float32]:
    """Weights (subjects, 4, width) summed over conditions, shape (width, 4 sums, subjects)."""
    return np.ascontiguousarray(np.matmul(_SUMS, w).transpose(2, 1, 0), dtype=np.float32)


def curvature(problem: Problem, x: NDArray[np.float64], into: Metric | None = None) -> Metric:
    """The metric at ``x``: items exactly, the border of abilities from evenly spaced items.

    ``into`` is an old metric of the same problem, whose arrays are overwritten.
    """
    s, m, n, work = problem.settings, problem.subjects, problem.items, problem.work
    theta, a, b = bounded(problem, x)
    features = featured(theta)
    pairs = np.ascontiguousarray((features[:, _PAIRS[0]] * features[:, _PAIRS[1]]).T)
    scales = np.vstack([a * (1 - a / s.a_max), (b / s.b_max) ** 2 - 1]).astype(np.float32)
    turn = (1 - (theta / s.theta_max) ** 2).T.astype(np.float32)
    # one copy per coordinate that it meets: long inner loops
    thetas = np.repeat(theta.T.astype(np.float32)[:, None], 4, axis=1)
    every = max(1, n // _BORDER_ITEMS)
    of_items = np.empty((n, 8, 8), np.float32) if into is None else into.items
    pull = (np.empty((8 * n, 4 * m), np.float32) if into is None else into.pull).reshape(n, 8, 4 * m)
    border, used = np.zeros((4 * m, 4 * m)), 0
    for block in problem.blocks:
        cut = block.cut
        width, scale = cut.stop - cut.start, scales[:, cut]
        p = np.matmul(features, gate(a[:, cut], b[:, cut]).reshape(5, -1), out=work("p", m, 4 * width))
        expit(p, out=p)
        w1 = np.subtract(1, p, out=work("r", m, 4 * width))
        w1 *= p
        w = w1 if block.trials is None else np.multiply(w1, block.trials, out=work("eta", m, 4 * width))
        h = _item_blocks(w.reshape(m, 4, width), scale, pairs, work)
        levels = _levels(w.reshape(m, 4, width))
        slope = np.ascontiguousarray(a[:, cut].T, dtype=np.float32)
        lever = slope[:, :, None] * turn
        # what entries of the item share with abilities: slopes, then difficulties
        cross = work("cross", width, 8, 4, m, dtype=np.float32)
        shared = np.take(levels, _SHARED, axis=1, out=work("shared", width, 4, 4, m, dtype=np.float32), mode="clip")
        np.multiply(shared, lever[:, None], out=cross[:, 4:])
        np.multiply(cross[:, 4:], thetas, out=cross[:, :4])
        cross *= scale.T[:, :, None, None]
        rows = cross.reshape(width, 8, 4 * m)
        if problem.aligned:
            weight, jac, own = _align(problem, p, w1, features, lever, cut, None if w is not w1 else levels)
            jac *= scale
            for r in range(2):
                h += np.multiply((weight[r] * jac[r])[:, None], jac[r][None], out=work("spare", 8, 8, width,
                                                                                         dtype=np.float32))  # fmt: skip
            turned = np.ascontiguousarray((weight[:, None] * jac).transpose(2, 1, 0))
            rows += np.matmul(turned, own, out=work("turned", *rows.shape, dtype=np.float32))
        h[range(8), range(8)] += s.residual
        of_items[cut] = inverses(h, work("spare", 8, 8, width, dtype=np.float32)).transpose(2, 0, 1)
        np.matmul(of_items[cut], rows, out=pull[cut])
        some = slice(-cut.start % every, None, every)
        used += len(range(width)[some])
        border += _abilities(slope[some], turn, levels[some])
        border -= rows[some].reshape(-1, 4 * m).T @ pull[cut][some].reshape(-1, 4 * m)
        if problem.aligned:
            mine = own[some]
            border += (mine * weight.T[some, :, None]).reshape(-1, 4 * m).T @ mine.reshape(-1, 4 * m)
    border *= n / used
    border[range(4 * m), range(4 * m)] += s.ability
    return Metric(of_items, pull.reshape(8 * n, 4 * m), np.linalg.inv(border))


def _align(
    problem: Problem, p: NDArray, w1: NDArray, features: NDArray, lever: NDArray, cut: slice, levels: NDArray | None
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """What the two sufficiency logits of each item add.

    Parameters
    ----------
    p, w1 : shape (subjects, 4 * B), probabilities and ``p (1 - p)``. lever : shape (B, 4, subjects).
    levels : of ``w1`` where they are known.

    Returns
    -------
    weight : shape (2, B). jac : shape (2, 8, B), derivatives by slopes and difficulties, before their bounds.
    own : shape (B, 2, 4 * subjects), derivatives by abilities.
    """
    m, width = problem.subjects, cut.stop - cut.start
    q = (np.add.reduce(p, axis=0) / m).reshape(4, -1)
    logit, by_view, by_full = sufficiency_logits(problem, q, cut)
    suffices = expit(logit)
    weight = (problem.weight[cut] * suffices * (1 - suffices)).astype(np.float32)
    first = (features.T @ w1).reshape(5, 4, -1) / m
    # accuracies move with a slope by weighted abilities, with a difficulty by the weights
    jump = GATES.T[:, :, None] * np.concatenate([first[:4], np.repeat(first[4:], 4, 0)]).reshape(2, 4, 4, -1)
    jump = jump.reshape(8, 4, -1)
    jac = (jump[:, 1:3].swapaxes(0, 1) * by_view + jump[:, 3] * by_full[:, None]).astype(np.float32)
    levels = _levels(w1.reshape(m, 4, width)) if levels is None else levels
    view, full = (by_view / m).astype(np.float32), (by_full / m).astype(np.float32)
    own = problem.work("own", width, 2, 4, m, dtype=np.float32)
    both = levels[:, 3]
    for r in range(2):
        # the logit moves with its own condition (coordinates base and 1 + r) and with the full one (all four)
        joint = full[r][:, None] * both
        either = joint + (levels[:, 1 + r] - both) * view[:, None]
        for k in range(4):
            np.multiply(either if k in (0, 1 + r) else joint, lever[:, k], out=own[:, r, k])
    return weight, jac, own.reshape(width, 2, 4 * m)


def _abilities(a: NDArray, turn: NDArray, levels: NDArray) -> NDArray[np.float64]:
    """Likelihood's curvature in abilities, shape (4 * subjects, 4 * subjects): one 4 x 4 block per subject."""
    m = levels.shape[2]
    products = (a[:, :, None] * a[:, None]).reshape(-1, 16)
    sums = (products.T @ levels.reshape(-1, 4 * m)).reshape(4, 4, 4, m)
    k = np.arange(4)
    blocks = sums[k[:, None], k, _SHARED] * turn[:, None] * turn[None]
    out = np.zeros((4, m, 4, m))
    out[:, range(m), :, range(m)] = blocks.transpose(2, 0, 1)
    return out.reshape(4 * m, 4 * m)
