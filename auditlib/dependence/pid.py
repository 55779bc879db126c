"""Pointwise information of image and question about the key, and its split into four parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: how what both views say is told apart from what each says alone
METHODS = ("min", "lsmi", "ccs")


def pointwise_information(probability: ArrayLike, k: ArrayLike) -> NDArray[np.float64]:
    """``log p(key | evidence) + log K``, clipped to ``+-log K``; shape (items, 4).

    Chance, not the options-only probability, is the reference: an item that its options give away is redundant, since
    each view of the annotation protocol shows the options.
    """
    most = np.log(np.asarray(k, float))[:, None]
    with np.errstate(divide="ignore"):
        return np.clip(np.log(np.asarray(probability, float)) + most, -most, most)


def surprisal(x: ArrayLike, *, shrink: float = 0.1) -> NDArray[np.float64]:
    """``-log density`` of each row under a Gaussian with shrunk covariance, standardised over rows.

    Columns are whitened to one scale first: differential entropy depends on units, and the view with the smaller one
    would win every minimum of the ``lsmi`` split.
    """
    z = np.asarray(x, float)
    z = (z - z.mean(0)) / np.maximum(z.std(0), 1e-9)
    cov = np.cov(z, rowvar=False).reshape(z.shape[1], z.shape[1])
    cov = (1 - shrink) * cov + shrink * np.trace(cov) / len(cov) * np.eye(len(cov))
    h = 0.5 * (np.linalg.solve(np.linalg.cholesky(cov), z.T) ** 2).sum(0)
    return (h - h.mean()) / max(h.std(), 1e-9)


def decompose(
    probability: ArrayLike,
    k: ArrayLike,
    method: str = "min",
    *,
    surprisals: tuple[ArrayLike, ArrayLike] | None = None,
) -> NDArray[np.float64]:
    """Redundant, visual, textual and synergistic information of each item.

    Parameters
    ----------
    probability : shape (items, 4)
        Of the key, given nothing but the options, with the image, with the question, with both.
    k : shape (items,), options
    method : ``min``, ``lsmi`` or ``ccs``
    surprisals : pair of shape (items,)
        ``-log density`` of image and question, for ``lsmi``.

    Returns
    -------
    array, shape (items, 4), columns r, u_V, u_T, s.

    Notes
    -----
    ``i_V = r + u_V, i_T = r + u_T, i_VT = r + u_V + u_T + s``; the method sets r. ``min``: the smaller of both, at
    least 0. ``lsmi``: ``min(h_V, h_T) - min(h_V - i_V, h_T - i_T)``, the pointwise lattice of Finn and Lizier (2018)
    as in Yang et al. (2025). ``ccs``: the change in surprisal that both share, where all signs agree (Ince 2017).
    """
    i = pointwise_information(probability, k)
    image, question, both = i[:, 1], i[:, 2], i[:, 3]
    if method == "min":
        r = np.maximum(np.minimum(image, question), 0)
    elif method == "ccs":
        shared = image + question - both
        signs = np.sign([image, question, both, shared])
        r = np.where((signs == signs[0]).all(0), shared, 0.0)
    elif method == "lsmi":
        if surprisals is None:
            raise ValueError("lsmi needs the surprisals of both views")
        h = np.asarray(surprisals, float)
        r = h.min(0) - np.minimum(h[0] - image, h[1] - question)
    else:
        raise ValueError(f"method {method!r} is none of {', '.join(METHODS)}")
    return np.stack([r, image - r, question - r, both - image - question + r], axis=1)
