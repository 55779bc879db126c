"""Inverse curvature of the penalised likelihood as a preconditioner: items eliminated, abilities by what is left.

The Gauss-Newton matrix has an arrow shape: one 8 x 8 block per item, one border for all abilities.  Its inverse needs
the item blocks and the Schur complement of the border only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditlib.dependence.objective import GATES, Problem, align_terms, bounded, gate

_PAIRS = np.array(np.triu_indices(5))
#: sums of condition weights that occur in GATES' diag(w) GATES: all, with image, with question, with both
_SUMS = np.array([[1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1]], float)
#: which of them coordinates k and l share
_SHARED = np.array([[0, 1, 2, 3], [1, 1, 3, 3], [2, 3, 2, 3], [3, 3, 3, 3]])
#: items from which the border of the abilities is estimated; it is a sum over items, and only a metric
_BORDER_ITEMS = 3_000


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
    pull : shape (8 * items, 4 * subjects), how far an item at its best follows an ability; single precision.
    subjects : shape (4 * subjects, 4 * subjects), inverse Schur complement. Abilities vary slowest in both.
    """

    items: NDArray[np.float64]
    pull: NDArray[np.float32]
    subjects: NDArray[np.float64]

    def __call__(self, g: NDArray[np.float64]) -> NDArray[np.float64]:
        """Newton step up the gradient: parameters in the order of :func:`auditlib.dependence.objective.unpack`."""
        n, m = len(self.items), len(self.subjects)
        out = np.empty_like(g)
        of_items = np.ascontiguousarray(g[m:].reshape(8, n).T)
        moved = self.subjects @ (g[:m].reshape(-1, 4).T.ravel() - of_items.ravel().astype(np.float32) @ self.pull)
        out[:m] = moved.reshape(4, -1).T.ravel()
        step = np.matmul(self.items, of_items[:, :, None])[:, :, 0]
        step -= (self.pull @ moved.astype(np.float32)).reshape(n, 8)
        out[m:].reshape(8, n)[:] = step.T
        out *= n
        return out


def inverses(h: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inverse of symmetric positive definite matrices (k, k, items), by Gauss-Jordan without pivots on all at once."""
    h = h.copy()
    k = len(h)
    for j in range(k):
        pivot = 1 / h[j, j]
        row = h[j] * pivot
        column = h[:, j].copy()
        h -= column[:, None] * row[None]
        h[j] = row
        h[:, j] = -column * pivot
        h[j, j] = pivot
    return h


def _item_blocks(w: NDArray, scale: NDArray, pairs: NDArray) -> NDArray[np.float64]:
    """Likelihood's part of the item blocks, shape (8, 8, width); ``w`` of shape (subjects, 4, width)."""
    m, _, width = w.shape
    totals = np.matmul(_SUMS, (pairs @ w.reshape(m, -1)).reshape(15, 4, width)).reshape(60, width)
    h = totals[_PLACES].reshape(8, 8, width)
    h *= scale[:, None]
    h *= scale[None]
    return h


def _levels(w: NDArray[np.float64]) -> NDArray[np.float32]:
    """Weights (subjects, 4, width) summed over conditions, shape (width, 4 sums, subjects)."""
    return np.ascontiguousarray(np.matmul(_SUMS, w).transpose(2, 1, 0), dtype=np.float32)


def curvature(problem: Problem, x: NDArray[np.float64]) -> Metric:
    """The metric at ``x``: items exactly, the border of abilities from evenly spaced runs of items."""
    s, m, n, aligned = problem.settings, problem.subjects, problem.items, problem.aligned
    theta, a, b = bounded(problem, x)
    features = np.column_stack([theta, np.ones(m)])
    pairs = (features[:, _PAIRS[0]] * features[:, _PAIRS[1]]).T
    scales = np.vstack([a * (1 - a / s.a_max), (b / s.b_max) ** 2 - 1])
    turn, thetas = (1 - (theta / s.theta_max) ** 2).T, np.ascontiguousarray(theta.T, dtype=np.float32)[:, None]
    every = max(1, n // _BORDER_ITEMS)
    of_items, pull = np.empty((n, 8, 8)), np.empty((n, 8, 4 * m), np.float32)
    border, used = np.zeros((4 * m, 4 * m)), 0
    for at, block in enumerate(problem.blocks):
        cut = block.cut
        width, scale = cut.stop - cut.start, scales[:, cut]
        p = features @ gate(-a[:, cut], -b[:, cut]).reshape(5, -1)
        np.exp(p, out=p)
        p += 1
        np.reciprocal(p, out=p)
        w1 = p * (1 - p)
        w = (w1 if block.trials is None else w1 * block.trials).reshape(m, 4, width)
        h = _item_blocks(w, scale, pairs)
        levels = _levels(w)
        lever = (a[:, cut].T[:, :, None] * turn).astype(np.float32)
        # what entries of the item share with abilities, and under them what the two aligned logits do
        cross = np.empty((width, 10 if aligned else 8, 4, m), np.float32)
        np.multiply(levels[:, _SHARED], lever[:, None], out=cross[:, 4:8])
        np.multiply(cross[:, 4:8], thetas, out=cross[:, :4])
        left = np.zeros((width, 8, cross.shape[1]))
        left[:, range(8), range(8)] = scale.T
        if aligned:
            _, _, dq, lw = align_terms(problem, p.mean(0).reshape(4, -1), cut)
            first = (features.T @ w1).reshape(5, 4, -1) / m
            jump = GATES.T[:, :, None] * np.concatenate([first[:4], np.repeat(first[4:], 4, 0)]).reshape(2, 4, 4, -1)
            jac = (dq[:, None] * jump.reshape(8, 4, -1)[None]).sum(2) * scale
            seen = levels if block.trials is None else _levels(w1.reshape(m, 4, width))
            _align_abilities(cross[:, 8:], dq.astype(np.float32) / np.float32(m), seen, lever)
            for r in range(2):
                weighted = lw[r] * jac[r]
                h += weighted[:, None] * jac[r][None]
                left[:, :, 8 + r] = weighted.T
        h[range(8), range(8)] += s.residual
        of_items[cut] = inverses(h).transpose(2, 0, 1)
        rows = cross.reshape(width, -1, 4 * m)
        np.matmul(np.matmul(of_items[cut], left).astype(np.float32), rows, out=pull[cut])
        if at % every == 0:
            used += width
            back = np.matmul(left.astype(np.float32).transpose(0, 2, 1), pull[cut])
            border += _abilities(a[:, cut], turn, levels)
            if aligned:
                back[:, 8:] -= lw.T[:, :, None].astype(np.float32) * rows[:, 8:]
            border -= rows.reshape(-1, 4 * m).T @ back.reshape(-1, 4 * m)
    border *= n / used
    border[range(4 * m), range(4 * m)] += s.ability
    return Metric(of_items, pull.reshape(8 * n, 4 * m), np.linalg.inv(border))


def _align_abilities(out: NDArray, dq: NDArray, levels: NDArray, lever: NDArray) -> None:
    """Derivatives of the two sufficiency logits by abilities into ``out``, shape (width, 2, 4, subjects)."""
    both = levels[:, 3]
    for r in range(2):
        # the logit moves with its own condition (coordinates base and 1 + r) and with the full one (all four)
        alone = levels[:, 1 + r] - both
        full = dq[r, 3][:, None] * both
        out[:, r] = full[:, None]
        alone *= dq[r, 1 + r][:, None]
        out[:, r, 0] += alone
        out[:, r, 1 + r] += alone
        out[:, r] *= lever


def _abilities(a: NDArray, turn: NDArray, levels: NDArray) -> NDArray[np.float64]:
    """Likelihood's curvature in abilities, shape (4 * subjects, 4 * subjects): one 4 x 4 block per subject."""
    m = levels.shape[2]
    products = (a[:, None] * a[None]).reshape(16, -1)
    sums = (products @ levels.reshape(len(levels), -1)).reshape(4, 4, 4, m)
    k = np.arange(4)
    blocks = sums[k[:, None], k, _SHARED] * turn[:, None] * turn[None]
    out = np.zeros((4, m, 4, m))
    out[:, range(m), :, range(m)] = blocks.transpose(2, 0, 1)
    return out.reshape(4 * m, 4 * m)
