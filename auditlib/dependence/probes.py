"""Conditional-logit probes: how well embeddings of image and question tell the right option, out of fold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax

from auditlib.errors import AuditError
from auditlib.threads import single_threaded


@dataclass(frozen=True)
class Folds:
    """How probes are cross-fitted: number of folds, ridge, seed of the split."""

    count: int = 5
    ridge: float = 8.0
    seed: int = 0


#: the defaults
FOLDS = Folds()


def whiten(x: ArrayLike, dimensions: int) -> NDArray[np.float64]:
    """Rows projected on their leading principal axes, each of variance 1; shape (n, at most ``dimensions``).

    Embeddings of no more than ``dimensions`` columns keep their axes and are only scaled, so that products between
    image, question and option stay products of the same coordinate.
    """
    z = np.asarray(x, float)
    z = z - z.mean(0)
    if z.shape[1] > dimensions:
        axes = np.linalg.eigh(z.T @ z)[1]
        z = z @ axes[:, ::-1][:, :dimensions]
    return z / np.maximum(z.std(0), 1e-9)


def _shared_space(
    visual: NDArray, textual: NDArray, options: NDArray, dimensions: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The three kinds of vector in one space of at most ``dimensions`` coordinates, each scaled to variance 1."""
    n, k, d = options.shape
    if visual.shape[1] == textual.shape[1] == d:
        flat = options.reshape(n * k, d)
        if d > dimensions:
            # one projection for all three: a coordinate must mean the same in each
            stack = np.vstack([(e - e.mean(0)) / max(e.std(), 1e-9) for e in (visual, textual, flat)])
            axes = np.linalg.eigh(stack.T @ stack)[1][:, ::-1][:, :dimensions]
            visual, textual, flat = visual @ axes, textual @ axes, flat @ axes
        parts = [whiten(e, e.shape[1]) for e in (visual, textual, flat)]
    else:
        least = min(dimensions, visual.shape[1], textual.shape[1], d)
        parts = [whiten(e, least) for e in (visual, textual, options.reshape(n * k, d))]
    return parts[0], parts[1], parts[2].reshape(n, k, -1)


def _conditional_logit(x: NDArray, key: NDArray, shown: NDArray, ridge: float) -> NDArray[np.float64]:
    """Weights of ``p(option) ~ exp(w x)`` under a ridge; x (n, K, p)."""
    rows = np.arange(len(x))
    flat = x.reshape(-1, x.shape[2])
    target = x[rows, key].sum(0)

    def loss(w: NDArray) -> tuple[float, NDArray]:
        logp = log_softmax(np.where(shown, (flat @ w).reshape(shown.shape), -np.inf), axis=1)
        grad = flat.T @ np.exp(logp).ravel() - target + ridge * w
        return -logp[rows, key].sum() + 0.5 * ridge * w @ w, grad

    return minimize(loss, np.zeros(x.shape[2]), jac=True, method="L-BFGS-B", options={"maxiter": 100}).x


def _tempered(score: NDArray, key: NDArray, shown: NDArray) -> NDArray[np.float64]:
    """Probability of the key after one temperature for all items, chosen on the out-of-fold scores."""
    rows = np.arange(len(score))

    def logp(log_scale: float) -> NDArray:
        return log_softmax(np.where(shown, np.exp(log_scale) * score, -np.inf), axis=1)[rows, key]

    best = minimize_scalar(lambda s: -logp(s).mean(), bounds=(-6, 3), method="bounded")
    return np.exp(logp(best.x))


def _fold_of(groups: NDArray | None, n: int, folds: Folds) -> NDArray[np.int64]:
    rng = np.random.default_rng(folds.seed)
    codes = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    return (rng.permutation(codes.max() + 1) % folds.count)[codes]


def probe_probabilities(
    visual: ArrayLike,
    textual: ArrayLike,
    options: ArrayLike,
    key: ArrayLike,
    *,
    k: ArrayLike,
    groups: ArrayLike | None = None,
    dimensions: int = 64,
    folds: Folds = FOLDS,
) -> NDArray[np.float64]:
    """Probability of the key given the options and nothing, the image, the question, or both; shape (items, 4).

    Parameters are those of :meth:`auditlib.dependence.structure.StructuralPrior.from_embeddings`.

    Raises
    ------
    AuditError
        Arrays of different lengths, values that are not finite, too few items, a key beyond the options.

    Notes
    -----
    The options' scores are linear in o, in v o (image), t o (question), and v t o (their binding), products taken
    coordinate by coordinate; every probability comes from probes that did not see the item.
    """
    v, t, o = (np.asarray(e, float) for e in (visual, textual, options))
    place, sizes = np.asarray(key, int), np.asarray(k, int)
    if o.ndim != 3 or v.ndim != 2 or t.ndim != 2 or len({len(e) for e in (v, t, o, place, sizes)}) > 1:
        raise AuditError(
            f"embeddings have shapes {v.shape}, {t.shape}, {o.shape}",
            mend="give (items, d), (items, d) and (items, options, d) with one key each",
        )
    shown = np.arange(o.shape[1]) < sizes[:, None]
    o = np.where(shown[:, :, None], o, 0.0)
    if not (np.isfinite(v).all() and np.isfinite(t).all() and np.isfinite(o).all()):
        raise AuditError("embeddings hold values that are not finite", mend="leave those items out or embed them again")
    if ((place < 0) | (place >= sizes)).any():
        raise AuditError("a key lies beyond the item's options", mend="give the place of the right option, from 0")
    if len(o) < 2 * folds.count:
        raise AuditError(f"{len(o)} items are too few for {folds.count} folds", mend="use fewer folds or another prior")
    fold = _fold_of(None if groups is None else np.asarray(groups), len(o), folds)
    with single_threaded():
        return _out_of_fold(*_shared_space(v, t, o, dimensions), place, shown, fold, folds.ridge)


def _out_of_fold(
    v: NDArray, t: NDArray, o: NDArray, place: NDArray, shown: NDArray, fold: NDArray, ridge: float
) -> NDArray[np.float64]:
    """Tempered probability of the key under each condition, from probes fitted without the item's fold."""
    image, question, both = v[:, None] * o, t[:, None] * o, (v * t)[:, None] * o
    views = ([o], [o, image], [o, question], [o, image, question, both])
    out = np.empty((len(o), 4))
    for c, parts in enumerate(views):
        x = np.concatenate(parts, axis=2) / np.sqrt(len(parts))
        score = np.empty(shown.shape)
        for f in np.unique(fold):
            test = fold == f
            score[test] = x[test] @ _conditional_logit(x[~test], place[~test], shown[~test], ridge)
        out[:, c] = _tempered(score, place, shown)
    return out
