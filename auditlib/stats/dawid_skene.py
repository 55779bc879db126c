"""Raters without a gold standard: each rater's confusion and each item's class by expectation maximisation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class DawidSkene:
    """A fitted model.

    Attributes
    ----------
    posterior : shape (items, levels), probability of each class of each item; rows of items without a rating are NaN.
    confusion : shape (raters, levels, levels), probability that a rater says the last index where the class is the
        middle one.
    prevalence : shape (levels,). log_likelihood : of the ratings. iterations, converged : of the fit.
    """

    posterior: NDArray[np.float64]
    confusion: NDArray[np.float64]
    prevalence: NDArray[np.float64]
    log_likelihood: float
    iterations: int
    converged: bool


def dawid_skene(
    codes: ArrayLike, levels: int, *, pseudo: float = 0.01, tolerance: float = 1e-9, most: int = 2000
) -> DawidSkene:
    """Fit the model of Dawid and Skene (1979): given its class, an item's ratings are independent.

    Parameters
    ----------
    codes : int array, shape (items, raters)
        Rating of each item by each rater; negative = none.
    levels : int
        Number of classes.
    pseudo : float
        Added to each cell of a rater's table, so that no probability is 0; 0 gives the maximum-likelihood fit.
    tolerance, most : largest change of a posterior at which the fit ends; iterations at most.

    Raises
    ------
    ValueError
        No integer matrix, a code beyond the levels, or no rating at all.

    Notes
    -----
    Starts from the share of each label among an item's ratings, alternates ``pi, p`` given the posteriors and
    posteriors ``~ p_c prod_r pi_r[c, x_ir]``. Classes are told apart by the start only: raters that are worse than
    chance as a body swap them. Judges that share mistakes (one provider, or a second round in which they have seen each
    other) are not independent, and come out better than they are.
    """
    x = np.asarray(codes)
    if x.ndim != 2 or x.dtype.kind not in "iub":
        raise ValueError("codes must be an integer matrix, items x raters")
    if x.size and int(x.max()) >= levels:
        raise ValueError(f"a code is {int(x.max())} but there are {levels} levels")
    rated = (x >= 0).any(axis=1) if x.size else np.zeros(len(x), bool)
    if not rated.any():
        raise ValueError("no item has a rating")
    # one-hot ratings (items, raters, levels); all zeros where there is none
    said = (x[rated][:, :, None] == np.arange(levels)).astype(float)
    post = said.sum(axis=1)
    post /= post.sum(axis=1, keepdims=True)
    converged, step = False, 0
    while not converged and step < most:
        step += 1
        confusion, prevalence = _maximise(said, post, pseudo)
        new, loglik = _expect(said, confusion, prevalence)
        change, post = float(np.abs(new - post).max()), new
        converged = change < tolerance
    out = np.full((len(x), levels), np.nan)
    out[rated] = post
    return DawidSkene(out, confusion, prevalence, loglik, step, converged)


def _maximise(said: NDArray, post: NDArray, pseudo: float) -> tuple[NDArray, NDArray]:
    counts = np.einsum("ic,irl->rcl", post, said) + pseudo
    total = counts.sum(axis=2, keepdims=True)
    # a class that nobody ever has leaves no trace in a rater's table
    confusion = np.divide(counts, total, out=np.full_like(counts, 1 / counts.shape[2]), where=total > 0)
    return confusion, post.mean(axis=0)


def _expect(said: NDArray, confusion: NDArray, prevalence: NDArray) -> tuple[NDArray, float]:
    tiny = np.finfo(float).tiny
    log = np.log(np.maximum(prevalence, tiny)) + np.einsum("irl,rcl->ic", said, np.log(np.maximum(confusion, tiny)))
    top = log.max(axis=1, keepdims=True)
    weight = np.exp(log - top)
    total = weight.sum(axis=1, keepdims=True)
    return weight / total, float((top + np.log(total)).sum())
